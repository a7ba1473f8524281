"""What strace saw a command change on the disk: the paths, each as it is from the root.

done = subprocess.run([*strace(log), "tape", ...], cwd=here)
paths = changed_paths(log.read_text(), here)
"""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

STRACE = shutil.which("strace")
CALLS = "execve,connect,open,openat,creat,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,symlink,symlinkat,link,linkat"
OPENED = re.compile(r"^\d+ +(?:open|openat|creat)\((.*)\) += \d", re.MULTILINE)
CHANGED = re.compile(r"^\d+ +(?:rename|unlink|mkdir|symlink|link)\w*\((.*)\) += 0$", re.MULTILINE)
UNFINISHED = " <unfinished ...>"
NAMED = re.compile(r'(?:<([^>]*)>, )?"([^"]*)"')


def strace(log: Path) -> list[str]:
    """What goes before a command: each process of it is followed."""
    options = ["-f", "-y", "-v", "-qq", "-s", "100000", "-e", f"trace={CALLS}", "-o", str(log)]
    return [STRACE or "strace", *options]


def read_trace(log: Path) -> str:
    """One line for each call; one that others came in between of is put together."""
    begun: dict[str, str] = {}
    lines = []
    for line in log.read_text("utf-8", "replace").splitlines():
        process, _, call = line.partition(" ")
        if call.endswith(UNFINISHED):
            begun[process] = line.removesuffix(UNFINISHED)
        elif call.lstrip().startswith("<... ") and process in begun:
            lines.append(begun.pop(process) + call.partition(" resumed>")[2])
        else:
            lines.append(line)
    return "\n".join([*lines, *begun.values()])


def is_for_writing(words: str) -> bool:
    """Of an open file, by the arguments of the call."""
    return re.search("O_WRONLY|O_RDWR|O_CREAT", words.rpartition('"')[2]) is not None


def last_path(words: str, here: Path) -> str:
    """Of a call's arguments the path that it makes or changes."""
    folder, name = NAMED.findall(words)[-1]
    return os.path.normpath(os.path.join(folder or here, name))


def changed_paths(trace: str, here: Path) -> Iterator[str]:
    """What was opened to be written, made, moved, linked or removed."""
    yield from (last_path(words, here) for words in OPENED.findall(trace) if is_for_writing(words))
    yield from (last_path(words, here) for words in CHANGED.findall(trace))
