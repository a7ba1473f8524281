"""Whether a command line is known to stay on this machine. Pure: reads words, runs nothing.

Fails closed: a program that is not listed, an interpreter, and a shell's script that hides what it
runs (`eval`, `$( )`, backquotes, a variable for a program, /dev/tcp) all count as reaching the
network.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import PurePath


def _split_names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SYSTEM = _split_names(
    # asked for by libraries
    "uname ldconfig lscpu getconf lsb_release sysctl stty tput locale which clear"
)
_PLAIN = _split_names(
    """[ arch awk base64 basename bunzip2 bzip2 cal cat cc chmod cksum cmp col column comm cp cut date df diff dir
    dirname dot du echo egrep expand expr factor false fc-list fc-match fgrep file find fmt fold free gawk gcc
    getopt git grep groups gunzip gzip head hexdump hostname iconv id join jq kpsewhich latex ld ln ls lsblk
    lualatex mawk md5 md5sum mkdir mktemp mv neato nl nproc nvidia-smi objdump od paste pdfinfo pdflatex
    pdftotext pgrep pr printenv printf ps pstree pwd readlink realpath rev rm rmdir sed seq sha1sum sha256sum
    sha512sum shasum shuf sleep sort split stat strings sum sw_vers sync tac tail tar tee test touch tr tree
    true truncate tsort tty uniq unlink unxz unzip uptime vmstat wc whereis whoami xelatex xxd xz xzcat yes zcat
    zip zipinfo"""
)
_BUILTINS = _split_names(
    ": cd exit export for pwd read return set shift type ulimit umask unset wait"
)
_HARMLESS = _SYSTEM | _PLAIN
_KEYWORDS = _split_names("if then elif else while until do ! { } fi done time")
_WRAPPERS = _split_names("sudo env nohup time timeout exec command nice")
_GIT = _split_names(
    """add apply blame branch cat-file check-ignore checkout commit config describe diff diff-files diff-index diff-tree
    for-each-ref hash-object help init log ls-files ls-tree merge-base mv name-rev reset restore rev-list rev-parse rm
    shortlog show show-ref stash status switch symbolic-ref tag var version"""
)
_FILES = _split_names("/dev/null /dev/stdin /dev/stdout /dev/stderr")
# What makes a harmless program run another, or ask the network.
_TEX = r"shell-escape|enable-write18"
_AWK = r"system|getline|\||/inet|@load|^-(f|i|l|E|-file|-include|-load|-exec)"
_RISKY = {
    "find": r"^-(exec|ok)",
    "tar": r"^-[a-zA-Z]*I|^-\w*F|-command|-script|compress-program|checkpoint-action|:",
    "sort": r"compress-prog",
    "split": r"^--filter",
    "zip": r"^-T|^--(unzip-command|test)",
    "hostname": r"^-",
    "sed": r"^-(\w*f|-file)|(^|[;{}\d$/!])\s*e(\s|$)|[^\w\s][gpimIM0-9]*e[gpimIM0-9]*\s*($|[;}])",
    "awk": _AWK,
    "gawk": _AWK,
    "mawk": _AWK,
    "git": r"^-c|^--(config-env|exec-path|upload-pack|remote)|://",
    "gcc": r"^-(fplugin|B|wrapper|specs)|^@",
    "cc": r"^-(fplugin|B|wrapper|specs)|^@",
    "ld": r"plugin",
    **dict.fromkeys(("latex", "pdflatex", "xelatex", "lualatex"), _TEX),
    "dot": r"://",
}
_HIDDEN = re.compile(r"\$\(|`|[<>]\(|\$\{?!|/dev/(tcp|udp)")


def harmless(arguments: Sequence[str]) -> bool:
    """True if everything that this command line runs is known to stay on the machine."""
    if is_script(arguments):
        return _is_harmless_script(arguments[2])
    command = _unwrap_command(arguments)
    return bool(command) and _is_harmless_command(command, _HARMLESS)


def silent(arguments: Sequence[str]) -> bool:
    """True for what libraries ask of the system as they start: not worth a word."""
    return bool(arguments) and PurePath(arguments[0]).name in _SYSTEM and harmless(arguments)


def is_script(arguments: Sequence[str]) -> bool:
    """`sh -c SCRIPT`, by whatever shell."""
    return (
        len(arguments) >= 3
        and PurePath(arguments[0]).name.endswith("sh")
        and re.fullmatch(r"-\w*c", arguments[1]) is not None
    )


def _is_harmless_script(text: str) -> bool:
    """Each command of it is, and none is hidden."""
    if _HIDDEN.search(text):
        return False
    tokens = _split_tokens(text.replace("\\\n", " ").replace("\n", " ; "))
    if tokens is None or not _has_harmless_redirections(tokens):
        return False
    commands = [command for command in map(_unwrap_command, _split_commands(tokens)) if command]
    return all(_is_harmless_command(command, _HARMLESS | _BUILTINS) for command in commands)


def _has_harmless_redirections(tokens: Sequence[str]) -> bool:
    targets = [
        after for token, after in pairwise(tokens) if re.fullmatch(r"[<>&|]*[<>][<>&|]*", token)
    ]
    return not any(
        "$" in target or (target.startswith("/dev/") and target not in _FILES) for target in targets
    )


def _is_harmless_command(command: Sequence[str], known: frozenset[str]) -> bool:
    program = command[0].removesuffix(".exe")
    folder, slash, name = program.rpartition("/")
    if name not in known or (slash and PurePath(folder).name not in ("bin", "sbin")):
        return False
    risky = _RISKY.get(name)
    if risky and any(re.search(risky, argument) for argument in command[1:]):
        return False
    return name != "git" or _is_local_git(command[1:])


def _is_local_git(arguments: Sequence[str]) -> bool:
    left = list(arguments)
    while left and left[0].startswith("-"):
        option = left.pop(0)
        if option == "-C" and left:
            left.pop(0)
        if option in ("--version", "--help"):
            return True
    return bool(left) and left[0] in _GIT


def _split_commands(tokens: Sequence[str]) -> Iterator[list[str]]:
    command: list[str] = []
    for token in tokens:
        if re.fullmatch(r"[;&|()]+", token):
            yield command
            command = []
        else:
            command.append(token)
    yield command


def _split_tokens(script: str) -> list[str] | None:
    lexer = shlex.shlex(script, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:  # an open quote
        return None


def _unwrap_command(arguments: Sequence[str]) -> list[str]:
    """`then FOO=1 timeout 5 curl x` -> `curl x`."""
    left = list(arguments)
    wrapped = False
    while left:
        wrapped = wrapped or left[0] in _WRAPPERS
        option = wrapped and re.match(r"-|\d+s?$", left[0])
        if left[0] not in _KEYWORDS | _WRAPPERS and not option and not re.match(r"\w+=", left[0]):
            break
        left.pop(0)
    return left
