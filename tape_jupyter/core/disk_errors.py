"""What the machine says where a file cannot be read or written: a person's to mend, nobody's to report."""

from __future__ import annotations

import errno

_OF_THE_DISK = {
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.ENOLCK,
    errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR,
}  # fmt: skip
"""What a disk, a quota or a folder that is gone makes of any reading and writing."""


def describe_disk_error(error: BaseException) -> str:
    """In a line, which file and what; "" for an error that is none of a disk."""
    if not isinstance(error, OSError) or not error.strerror:
        return ""
    place = error.filename2 or error.filename  # of a copy: where it goes to
    if place is None and error.errno not in _OF_THE_DISK:
        return ""
    return f"{place}: {error.strerror}" if place else error.strerror
