"""What a process that is ours alone does first: a command's, not a kernel's."""

from __future__ import annotations

import sys


def without_grammars() -> None:
    """Where jsonschema finds rfc3987_syntax, it compiles 38 grammars (1.2 s of each command) for
    formats that no notebook has: it does not find it.
    """
    # Python's word for: not to be imported
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
