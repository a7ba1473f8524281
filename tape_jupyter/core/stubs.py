"""What stands where nothing is to be done."""

from __future__ import annotations


def do_nothing(*_: object) -> None:
    """Nothing is to be done, told or taken back."""
