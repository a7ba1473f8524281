"""The class of every open file, to be asked for by `isinstance`."""

import io
from typing import Any

OPEN_FILE: Any = io.IOBase.__mro__[1]
"""What `io.IOBase` is derived from, in C. `io.IOBase` itself is an abstract class: each new class
that it is asked about is sought among all its subclasses, 0.2 ms where large libraries are loaded.
"""
