"""A candidate fix: a small TOML file that says what is another than in the recordings.

```toml
notebook = "fixed.ipynb"            # cells from another notebook, or of a git revision: git = "HEAD~1"
packages = ["httpx==0.28.1"]        # in place of those of the environment
[[cell]]                            # replaced cells, by number, id or a regular expression in the source
number = 3
source = "..."                      # or: replace = "regex", with = "text"
[[override]]                        # replies by rule: tool, model, match (all that are given must fit)
tool = "stock"
value = { left = 3 }                # or text, message, fault
[[request]]                         # asked again, live, with changed parameters or prompt text
model = "claude-.*"
set = { temperature = 0 }           # and/or message = "...", replace = "regex", with = "text"
```
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
import subprocess
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tape_jupyter.cassette.index_entries import Entry
from tape_jupyter.core.call import FunctionCall, Request
from tape_jupyter.core.notebook_text import parse_notebook
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.headless import run as headless_run
from tape_jupyter.isolation.namespaces import git_command
from tape_jupyter.providers import http

if TYPE_CHECKING:
    from nbformat import NotebookNode

AS_RECORDED = "as recorded"
"""The name of the candidate that changes nothing."""
_WAYS = ("text", "message", "value", "fault")
_KEYS = {
    "": {"name", "notebook", "git", "packages", "cell", "override", "request"},
    "cell": {"number", "id", "match", "source", "replace", "with"},
    "override": {"tool", "model", "match", "nth", *_WAYS},
    "request": {"model", "match", "nth", "set", "message", "replace", "with"},
}


class FitsNothing(TapeUsageError):
    """A rule speaks of a cell that this notebook has not."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """What is tried. `cells`, `overrides` and `requests` are rules as the file has them; `sources`
    are cells of another notebook (id, source), `git` a revision of each notebook.
    """

    name: str = AS_RECORDED
    cells: Sequence[Mapping[str, Any]] = ()
    overrides: Sequence[Mapping[str, Any]] = ()
    requests: Sequence[Mapping[str, Any]] = ()
    packages: Sequence[str] = ()
    git: str = ""
    sources: Sequence[tuple[str, str]] = field(default=(), repr=False)

    @property
    def digest(self) -> str:
        """Of all that it changes; its name is no part of that."""
        values = {key: value for key, value in asdict(self).items() if key != "name"}
        return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()

    def digest_for(self, notebook: Path | None) -> str:
        """The same, of what its revision holds of this notebook now (`HEAD` moves)."""
        if not self.git or notebook is None:
            return self.digest
        try:
            revision = _read_revision(notebook, self.git)
        except TapeUsageError:  # the row says so
            return self.digest
        return hashlib.sha256(f"{self.digest}\n{revision}".encode()).hexdigest()

    def record(self) -> dict[str, Any]:
        """As plain structure, for a worker."""
        return asdict(self)

    def changed(self, saved: NotebookNode, notebook: Path | None) -> NotebookNode:
        """The notebook with its cells replaced. `notebook` is where it lies, for git. Raises
        FitsNothing, TapeUsageError.
        """
        node = copy.deepcopy(saved)
        cells = [cell for cell in node.cells if headless_run.has_code(cell)]
        sources = self.sources or (_read_revision(notebook, self.git) if self.git else ())
        _replace_sources(cells, sources, self.name)
        for rule in self.cells:
            for cell in _find_cells(rule, cells, self.name):
                cell.source = _apply_cell_rule(rule, cell.source)
        return node


def read_candidate(file: Path) -> Candidate:
    """The candidate of a file. Raises TapeUsageError naming file and key."""
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise TapeUsageError(f"{file}: it cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TapeUsageError(f"{file}: it is not TOML: {error}") from None
    _require_keys(table, "", file)
    lists: dict[str, list[dict[str, Any]]] = {}
    for kind in ("cell", "override", "request"):
        rules = table.get(kind, [])
        if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
            raise TapeUsageError(f"{file}: write each {kind} as a table of its own: [[{kind}]]")
        for rule in rules:
            _require_keys(rule, kind, file)
            _CHECKS[kind](rule, file)
        lists[kind] = rules
    packages = table.get("packages", [])
    if not isinstance(packages, list) or not all(isinstance(each, str) for each in packages):
        raise TapeUsageError(f'{file}: packages is a list of requirements: ["httpx==0.28.1"]')
    sources: Sequence[tuple[str, str]] = ()
    if table.get("notebook"):
        other = headless_run.read_notebook(file.parent / str(table["notebook"]))
        sources = _read_sources(other)
    name = str(table.get("name") or file.stem)
    if name == AS_RECORDED:
        raise TapeUsageError(
            f"{file}: {name!r} is what the recordings are called; name it otherwise"
        )
    candidate = Candidate(
        name, lists["cell"], lists["override"], lists["request"], packages,
        str(table.get("git") or ""), sources,
    )  # fmt: skip
    if candidate.digest == Candidate().digest:
        raise TapeUsageError(f"{file}: it changes nothing; keys: {', '.join(sorted(_KEYS['']))}")
    return candidate


def candidate_of_record(record: Mapping[str, Any]) -> Candidate:
    """What `record` gave."""
    return Candidate(**{**record, "sources": tuple((one, two) for one, two in record["sources"])})


def _require_keys(table: Mapping[str, Any], kind: str, file: Path) -> None:
    for key in table:
        if key not in _KEYS[kind]:
            at = f"[[{kind}]] " if kind else ""
            raise TapeUsageError(
                f"{file}: {at}{key}: there is no such key; there are: {', '.join(sorted(_KEYS[kind]))}"
            )


def _check_pattern(rule: Mapping[str, Any], key: str, file: Path) -> None:
    try:
        re.compile(str(rule.get(key, "")))
    except re.error as error:
        raise TapeUsageError(
            f"{file}: {key} = {rule[key]!r} is not a regular expression: {error}"
        ) from None


def _check_cell(rule: Mapping[str, Any], file: Path) -> None:
    if sum(key in rule for key in ("number", "id", "match")) != 1:
        raise TapeUsageError(f"{file}: [[cell]] is named by one of number, id and match")
    if ("source" in rule) == ("replace" in rule):
        raise TapeUsageError(f"{file}: [[cell]] has source, or replace (and with)")
    for key in ("match", "replace"):
        _check_pattern(rule, key, file)


def _check_override(rule: Mapping[str, Any], file: Path) -> None:
    _check_rule(rule, file, "override", ("tool", "model", "match"))
    if sum(key in rule for key in _WAYS) != 1:
        raise TapeUsageError(f"{file}: [[override]] has one of {', '.join(_WAYS)}")


def _check_request(rule: Mapping[str, Any], file: Path) -> None:
    _check_rule(rule, file, "request", ("model", "match"))
    if not any(key in rule for key in ("set", "message", "replace")):
        raise TapeUsageError(f"{file}: [[request]] has set, message or replace (and with)")
    if "set" in rule and not isinstance(rule["set"], dict):
        raise TapeUsageError(f"{file}: [[request]] set = {{ temperature = 0 }}")
    _check_pattern(rule, "replace", file)


def _check_rule(rule: Mapping[str, Any], file: Path, kind: str, keys: Sequence[str]) -> None:
    if not any(key in rule for key in keys):
        raise TapeUsageError(f"{file}: [[{kind}]] says of which calls: {', '.join(keys)}")
    for key in keys:
        _check_pattern(rule, key, file)
    nth = rule.get("nth", 1)
    if type(nth) is not int or nth < 1:
        raise TapeUsageError(f"{file}: nth = {nth!r} is not a number of a call, counted from 1")


_CHECKS = {"cell": _check_cell, "override": _check_override, "request": _check_request}


# ---------------------------------------------------------------- cells


def _read_sources(notebook: NotebookNode) -> list[tuple[str, str]]:
    cells = [cell for cell in notebook.cells if headless_run.has_code(cell)]
    return [(str(cell.get("id") or ""), cell.source) for cell in cells]


def _read_revision(notebook: Path | None, revision: str) -> list[tuple[str, str]]:
    """The cells of a notebook as they were at a git revision."""
    if notebook is None:
        raise TapeUsageError(f"git = {revision!r}: a bundle has no revisions")
    name = f"{revision}:./{notebook.name}"
    try:
        line = git_command(notebook.parent, "cat-file", "blob", name)
    except OSError as error:
        raise TapeUsageError(f"git = {revision!r}: {error}") from None
    done = subprocess.run(line, capture_output=True, check=False)  # noqa: S603 - git, no shell
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise TapeUsageError(f"git = {revision!r}: {notebook.name}: {' '.join(lines[:1])}")
    text = done.stdout.decode("utf-8", "replace")
    try:
        return _read_sources(parse_notebook(text))
    except ValueError as error:
        raise TapeUsageError(f"git = {revision!r}: {notebook.name}: {error}") from error


def _replace_sources(cells: list[Any], sources: Sequence[tuple[str, str]], name: str) -> None:
    """Sources by cell id where both notebooks have ids in common, else by place."""
    if not sources:
        return
    by_id = {one: source for one, source in sources if one}
    cell_ids = [str(cell.get("id") or "") for cell in cells]
    if by_id.keys() & set(cell_ids):
        for cell, one in zip(cells, cell_ids, strict=True):
            cell.source = by_id.get(one, cell.source)
        return
    if len(sources) != len(cells):
        raise TapeUsageError(
            f"{name}: that notebook has {len(sources)} code cells, this one {len(cells)}, and no ids tell "
            "which is which"
        )
    for cell, (_, source) in zip(cells, sources, strict=True):
        cell.source = source


def _find_cells(rule: Mapping[str, Any], cells: list[Any], name: str) -> list[Any]:
    if "number" in rule:
        number = rule["number"]
        if isinstance(number, int) and number > 0:
            matching = cells[number - 1 : number]
        else:
            matching = []
    elif "id" in rule:
        matching = [cell for cell in cells if cell.get("id") == rule["id"]]
    else:
        matching = [cell for cell in cells if re.search(str(rule["match"]), cell.source)]
    if "replace" in rule:
        matching = [cell for cell in matching if re.search(str(rule["replace"]), cell.source)]
    if not matching:
        conditions = {key: rule[key] for key in ("number", "id", "match", "replace") if key in rule}
        raise FitsNothing(f"{name}: [[cell]] {conditions} fits no cell")
    return matching


def _apply_cell_rule(rule: Mapping[str, Any], source: str) -> str:
    if "source" in rule:
        return str(rule["source"])
    return re.sub(str(rule["replace"]), str(rule.get("with", "")), source)


# ---------------------------------------------------------------- calls


def fitting(rule: Mapping[str, Any], calls: Sequence[Entry]) -> list[Entry]:
    """The calls that a rule speaks of, in their order; `nth` of them counts from 1."""
    matching = [entry for entry in calls if _is_fitting(rule, entry)]
    nth = rule.get("nth")
    return matching if nth is None else matching[nth - 1 : nth]


def _is_fitting(rule: Mapping[str, Any], entry: Entry) -> bool:
    head = entry.head()
    kind, kit = head.get("kind"), head.get("kit")
    if "tool" in rule and not (
        kind in ("tool", "retrieval") and re.fullmatch(str(rule["tool"]), str(head.get("name", "")))
    ):
        return False
    model = str(kit.get("model", "")) if isinstance(kit, Mapping) else ""
    if "model" in rule and not (kind == "model" and re.fullmatch(str(rule["model"]), model)):
        return False
    return "match" not in rule or bool(re.search(str(rule["match"]), _read_asked_text(entry)))


def _read_asked_text(entry: Entry) -> str:
    """What a call asks, as the rules' `match` reads it."""
    request = entry.request()
    if isinstance(request, FunctionCall):
        return json.dumps(dict(request.arguments), ensure_ascii=False, default=str)
    body = http.decoded_body(request.headers, request.body) or b""
    return f"{request.method} {request.url}\n{body.decode('utf-8', 'replace')}"


def rule_edit(rule: Mapping[str, Any]) -> dict[str, Any]:
    """The edit of a rule's override, as cassette/takes/edits.py has them."""
    if "text" in rule:
        return {"form": "text", "text": str(rule["text"])}
    if "value" in rule:
        return {"form": "value", "value": json.dumps(rule["value"], default=str)}
    if "message" in rule:
        return {"form": "partial", "message": rule["message"]}
    name, _, options = str(rule["fault"]).partition(":")
    parsed_options = dict(each.partition("=")[::2] for each in options.split(",") if each)
    return {"form": "fault", "name": name, "options": parsed_options}


def settings_of(rule: Mapping[str, Any], request: Request) -> tuple[list[str], str | None]:
    """What a request rule changes, in the words of `tape resend`: its settings, and its message."""
    settings = [f"{key}={json.dumps(value)}" for key, value in dict(rule.get("set", {})).items()]
    message = rule.get("message")
    if "replace" not in rule:
        return settings, None if message is None else str(message)
    body = http.loads(http.decoded_body(request.headers, request.body) or b"")
    for name in ("messages", "input", "contents", "system", "systemInstruction", "instructions"):
        old_value = body.get(name) if isinstance(body, Mapping) else None
        if old_value is not None and (new := _replace_texts(old_value, rule)) != old_value:
            settings.append(f"{name}={json.dumps(new, ensure_ascii=False)}")
    return settings, None if message is None else str(message)


def _replace_texts(content: Any, rule: Mapping[str, Any]) -> Any:
    """The same structure with its texts changed."""
    if isinstance(content, str):
        return re.sub(str(rule["replace"]), str(rule.get("with", "")), content)
    if isinstance(content, list):
        return [_replace_texts(each, rule) for each in content]
    if isinstance(content, dict):
        return {
            key: value if key in ("role", "type", "id") else _replace_texts(value, rule)
            for key, value in content.items()
        }
    return content
