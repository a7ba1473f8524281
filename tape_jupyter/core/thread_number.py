"""The number of the thread that runs: one function for all who compare such numbers.

gevent puts another into `threading` whose numbers are those of greenlets. Where that happens within
a cell, the thread that began it would be no more the one that ends it.
"""

from __future__ import annotations

from threading import get_ident as thread_number

__all__ = ["thread_number"]
