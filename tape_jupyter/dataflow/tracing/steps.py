"""What each statement of an execution read and may have written, from its text, from what ran and
from what is different afterwards.

Reads are what was really read: where nothing that was read differs, a statement does the same
again. Writes are what could be written: with another reply it may take another way.
"""

from __future__ import annotations

import ast
import os
import re
import types
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tape_jupyter.core.user_code import SDKS, root_module
from tape_jupyter.dataflow.fingerprint.fingerprint import Print
from tape_jupyter.dataflow.history import (
    ELEMENT,
    EVERYTHING,
    Step,
    covers,
    find_presence,
    is_part,
    name_of,
    presence,
    split_path,
)
from tape_jupyter.dataflow.identity import is_shells
from tape_jupyter.dataflow.static.effects import MUTATORS, code_changes, may_change
from tape_jupyter.dataflow.static.names import (
    Statement,
    cell_names,
    code_names,
    find_identifiers,
    transform,
)
from tape_jupyter.dataflow.static.outcomes import statement_outcome
from tape_jupyter.dataflow.static.outcomes.values import UNSURE, StatementOutcome, part_root
from tape_jupyter.dataflow.static.uses import Touch
from tape_jupyter.dataflow.tracing import paths as tracing_paths
from tape_jupyter.dataflow.tracing.observations import Draft, ExecutionFacts
from tape_jupyter.dataflow.tracing.surroundings import Surroundings
from tape_jupyter.dataflow.tracing.variables import (
    MISSING,
    Variables,
    is_module_of_users,
)


@dataclass(slots=True)
class Built:
    steps: tuple[Step, ...] = ()
    changed: frozenset[str] = frozenset()
    opaque: frozenset[str] = frozenset()
    claimed: frozenset[str] = frozenset()
    """Of `changed`, those that the text says may change: no older entry need have done it."""


def build(seen: ExecutionFacts) -> Built:
    """The steps of an execution. A cell that is no Python has one, which touches what its words
    name.
    """
    drafts = [_build_draft(seen, each) for each in seen.cell.statements]
    if not drafts:
        return Built()
    _share_out_codes(seen, drafts)
    for each in drafts:
        _add_reads(seen, each)
        _add_bindings(seen, each)
    changed, opaque = _find_changed_names(seen, drafts)
    for each in drafts:
        _add_possible_changes(seen, each)
    claimed = changed & {
        n for d in drafts for r in d.strong | d.weak if (n := name_of(r)) is not None
    }
    _share_out_changes(seen, drafts, changed)
    surroundings = Surroundings(seen)
    for each in drafts:
        surroundings.add(each)
    for each in drafts:
        _narrow_writes(seen, each)
    _add_dependencies(seen, drafts, changed)
    steps = tuple(_build_step(seen, each) for each in drafts)
    return Built(steps, frozenset(changed), frozenset(opaque), frozenset(claimed))


def mentioned(statement: Statement, variables: Variables) -> set[str]:
    """Variables that a statement's text names, anywhere in it."""
    code = statement.code
    names = (
        script_names(statement)
        | code.reads
        | code.stores
        | code.deletes
        | code.later_reads
        | code.later_stores
        | statement.uses.exists
    )
    for magic in statement.uses.magics:
        names |= find_identifiers(
            f"{magic.line} {'' if magic.name in ('writefile', 'bash', 'html') else magic.body}"
        )
    resources = variables.resources("", names)
    for name in names:
        value = variables.value(name)
        if is_module_of_users(value):
            paths = {p for root, p in statement.uses.parts if root == name}
            if name in statement.uses.bare or not paths:
                resources.update(variables.globals_of(value.__name__))
            attributes = map(tracing_paths.first, paths)
            resources.update(variables.resources(value.__name__, attributes))
    return resources


def script_names(statement: Statement) -> frozenset[str]:
    """Names that files which `%run` runs read or bind."""
    names: set[str] = set()
    for magic in statement.uses.magics:
        if magic.name == "run":
            for path in re.findall(r"[^\s'\"]+\.(?:py|ipy)\b", magic.line):
                names |= _find_names_in_file(path)
    return frozenset(names)


def _find_names_in_file(path: str) -> set[str]:
    try:
        inner = cell_names(transform(Path(path).expanduser().read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return set()
    return {
        n
        for s in inner.statements
        for n in s.code.reads | s.code.later_reads | s.code.stores | s.code.later_stores
    }


# -------------------------------------------------------------------- what was read
def _build_draft(seen: ExecutionFacts, statement: Statement) -> Draft:
    mention = mentioned(statement, seen.variables)
    return Draft(statement, mention, seen.variables.closure(mention))


def _share_out_codes(seen: ExecutionFacts, drafts: list[Draft]) -> None:
    """Which statement ran which code: by its place in the cell, by what can reach it; else any of
    them.
    """
    for place, code in seen.ran.codes:
        in_cell = code.co_filename == seen.ran.cell_file
        if place == "" and in_cell and code.co_name == "<module>":
            continue
        here = (code.co_name, code.co_firstlineno)
        takers = [d for d in drafts if place == "" and in_cell and here in d.statement.nested]
        takers += [
            d for d in drafts if d not in takers and _can_reach_code(seen, d.reach, place, code)
        ]
        for each in takers or drafts:
            each.codes.add((place, code))
    if not seen.ran.complete:  # what could have run may have run
        for each in drafts:
            each.codes |= {
                c for r in each.reach if (p := seen.variables.prints.get(r)) for c in p.codes
            }


def _can_reach_code(
    seen: ExecutionFacts, reach: Iterable[str], place: str, code: types.CodeType
) -> bool:
    prints = seen.variables.prints
    for each in reach:
        for known in (prints.get(each), seen.before.get(each)):
            if known is not None and any(
                p == place and (c is code or code in c.co_consts) for p, c in known.codes
            ):
                return True
    return False


def _add_reads(seen: ExecutionFacts, draft: Draft) -> None:
    code, used = draft.statement.code, draft.statement.uses
    names = set(code.reads)
    if not seen.ran.complete:
        names |= code.later_reads
    names |= script_names(draft.statement)
    for magic in used.magics:
        names |= _find_magic_reads(magic.name, magic.line, magic.body)
    for name in names - _find_bound_first(draft):
        if (resource := seen.variables.resource("", name)) is not None:
            draft.reads |= tracing_paths.read_parts(
                resource, used, seen.variables, moved=_has_changed_value(seen, resource)
            )
        elif is_shells(name):
            draft.reads |= _find_result_reads(name, seen)
    draft.reads |= {n for n in used.exists if not is_shells(n)}
    draft.reads |= {
        f"output:{part}"
        for root, path in used.parts
        if root == "Out" and (part := tracing_paths.index(path)) is not None
    }
    for place, each in draft.codes:
        _add_code_reads(seen, draft, place, each)
    if _may_read_everything(seen, draft):
        draft.reads.add(EVERYTHING)


def _has_changed_value(seen: ExecutionFacts, name: str) -> bool:
    """Whether the cell changed its value: `log[-1]` may have been another element then."""
    was, now = seen.before.get(name), seen.variables.prints.get(name)
    return name in seen.before and (
        was is None or now is None or was.digest != now.digest or now.opaque
    )


def _add_code_reads(seen: ExecutionFacts, draft: Draft, place: str, code: types.CodeType) -> None:
    by = _find_reaching_name(seen, draft, place, code)
    for name in code_names(code).reads:
        resource = seen.variables.resource(place, name)
        if resource is not None and resource not in draft.reads:
            draft.reads.add(resource)
            if by:
                draft.via[resource] = by


def _find_bound_first(draft: Draft) -> frozenset[str]:
    """Names that a statement only reads where it has bound them itself just before: `for x in xs:
    f(x)`.
    """
    return draft.statement.bound_first


def _find_reaching_name(
    seen: ExecutionFacts, draft: Draft, place: str, code: types.CodeType
) -> str:
    """The name in the statement's text by which a piece of code was reached; "" where it stands
    there itself.
    """
    prints = seen.variables.prints
    for name in sorted(draft.mention):
        if (known := prints.get(name)) is not None and (place, code) in known.codes:
            return name.rpartition(":")[2]
    for name in sorted(draft.mention):
        if any(
            (place, code) in p.codes for r in seen.variables.closure([name]) if (p := prints.get(r))
        ):
            return name.rpartition(":")[2]
    return ""


def _find_magic_reads(name: str, line: str, body: str) -> frozenset[str]:
    if name in ("system", "getoutput", "sx", "!", "bash", "sh", "script"):
        return find_identifiers(" ".join(tracing_paths.expanded(line)))
    if name in (
        "time",
        "timeit",
        "capture",
        "prun",
        "writefile",
        "html",
        "markdown",
        "latex",
        "javascript",
        "svg",
    ):
        return find_identifiers(" ".join(tracing_paths.expanded(line)))
    if name in ("reset", "reset_selective", "xdel"):
        return frozenset()
    return find_identifiers(f"{line} {body}")


def _find_result_reads(name: str, seen: ExecutionFacts) -> set[str]:
    """`_` is the newest result; another reply may make an older cell show one, so all newer ones
    count.
    """
    if name in ("Out", "_oh"):
        return {"output:*"} if not any(root == name for root, _ in seen_parts(seen)) else set()
    if name.lstrip("_") == "" and len(name) <= 3:
        return {f"output:{n}" for n in seen.results[-len(name) :]} | {"output:newest"}
    if name[1:].isdigit():
        return {f"output:{name[1:]}"}
    return set()


def seen_parts(seen: ExecutionFacts) -> Iterable[tuple[str, str]]:
    return (part for s in seen.cell.statements if "Out" not in s.uses.bare for part in s.uses.parts)


_FRAMES = frozenset({"f_globals", "f_locals", "__globals__", "__main__"})


def _may_read_everything(seen: ExecutionFacts, draft: Draft) -> bool:
    names = draft.statement.uses.dynamic & {"globals", "locals", "vars", "dir"}
    for _, code in draft.codes:
        names |= code_names(code).reads & {"globals", "dir"}
    names |= _FRAMES & draft.statement.code.identifiers
    for _, code in draft.codes:
        names |= _FRAMES & code_names(code).identifiers
    magics = {m.name for m in draft.statement.uses.magics}
    if magics & {"who", "whos", "who_ls", "store", "psearch", "pylab"}:
        return True
    runs_text = draft.statement.uses.dynamic & {"exec", "eval"}
    return bool(names) or (bool(runs_text) and not seen.ran.complete)


# -------------------------------------------------------------------- what was written
def _add_bindings(seen: ExecutionFacts, draft: Draft) -> None:
    """Names that the text binds: for certain, where the statement came to its end."""
    code = draft.statement.code
    stored = code.stores | code.deletes
    for place, each in draft.codes:
        used = code_names(each)
        draft.weak |= {r for n in used.stores | used.deletes if (r := _to_resource(place, n))}
    for place, inner in _find_possible_codes(seen, draft):
        draft.weak |= {r for n in code_names(inner).stores if (r := _to_resource(place, n))}
    done = seen.failed_at is None or (seen.failed_at > 0 and draft.statement.end < seen.failed_at)
    names = {n for n in stored if not is_shells(n)}
    names -= {
        n
        for n in draft.statement.caught
        if n not in seen.variables.prints and seen.before.get(n) is None
    }
    draft.strong |= {
        n
        for n in names
        if done and (n in draft.statement.always or _is_bound_only_here(seen, draft, n))
    }
    draft.reads |= {n for n in names if _tells_when_dropped(seen.before.get(n))}
    draft.weak |= names - draft.strong
    draft.weak |= draft.statement.uses.binds - {""}
    draft.weak |= {
        n for n in script_names(draft.statement) if n in seen.variables.prints and not is_shells(n)
    }
    if code.star:
        draft.weak |= {n for n, p in seen.before.items() if p is None and ":" not in n}


def _tells_when_dropped(was: Print | None) -> bool:
    """Whether code of the user's runs when the value that a name had goes."""
    return was is not None and any(code.co_name == "__del__" for _, code in was.codes)


def _find_possible_codes(seen: ExecutionFacts, draft: Draft) -> set[tuple[str, types.CodeType]]:
    """Code that it could call with another reply."""
    if not (draft.statement.uses.called or draft.codes):
        return set()
    return draft.codes | {
        c for r in draft.reach if (p := seen.variables.prints.get(r)) for c in p.codes
    }


def _to_resource(place: str, name: str) -> str:
    if place:
        return f"{place}:{name}"
    return "" if is_shells(name) else name


def _is_bound_only_here(seen: ExecutionFacts, draft: Draft, name: str) -> bool:
    """It was bound (or removed) in this execution, and only this statement could have done it."""
    others = [
        s
        for s in seen.cell.statements
        if s is not draft.statement and name in s.code.stores | s.code.deletes
    ]
    return not others and name in seen.rebound


def _find_changed_names(seen: ExecutionFacts, drafts: list[Draft]) -> tuple[set[str], set[str]]:
    changed, opaque = set(seen.rebound), set()
    reached = set().union(*(d.reach for d in drafts))
    for name, was in seen.before.items():
        now = seen.variables.prints.get(name)
        if (was is None) != (now is None) or (was and now and was.digest != now.digest):
            changed.add(name)
        if now is not None and not now.is_whole:
            opaque.add(name)
            if name in reached and now.opaque and not now.vast:
                changed.add(name)
    return changed, opaque


def _add_possible_changes(seen: ExecutionFacts, draft: Draft) -> None:
    """What the statement's uses of its names may change, seen or not, and what shares an object
    with that.
    """
    hit: set[str] = set()
    for touch in draft.statement.touches:
        name = seen.variables.resource("", touch.root)
        if name is None or name not in draft.statement.code.reads | draft.statement.code.stores:
            continue
        value = seen.variables.value(name)
        if value is MISSING or _is_of_process(value):
            continue
        if touch.how == "method" and touch.path:
            touched = tracing_paths.value_at(touch.path, value)
        else:
            touched = value
        if may_change(
            touch, value if touched is MISSING else touched, _find_receiving_function(seen, touch)
        ) or (touched is MISSING and touch.what in MUTATORS):
            if (exact := _find_changed_object(touch, value)) is not MISSING:
                draft.weak |= {name} | seen.variables.holding(exact)
            else:
                hit.add(name)
    for place, code in _find_possible_codes(seen, draft):
        if code_changes(code):
            hit |= _find_data_of_code(seen, place, code)
    prints = seen.variables.prints
    hit |= {n for n in draft.reach if (p := prints.get(n)) and p.opaque and not p.vast}
    draft.weak |= hit
    for name in hit:
        shared = seen.variables.sharing([name])
        draft.weak |= {n for n in shared if not _is_another_reply(seen, name, n)}


def _is_of_process(value: Any) -> bool:
    """Whether what it holds has no name of the notebook: dataflow/tracing/surroundings.py."""
    return isinstance(value, types.ModuleType) or value is os.environ


def _find_data_of_code(seen: ExecutionFacts, place: str, code: types.CodeType) -> set[str]:
    """The variables with changeable data that a piece of code reads."""
    found = set()
    for used in seen.variables.resources(place, code_names(code).reads):
        print_ = seen.variables.prints.get(used)
        if print_ and print_.ids and _is_data(seen.variables.value(used)):
            found.add(used)
    return found


def _is_another_reply(seen: ExecutionFacts, name: str, other: str) -> bool:
    """Whether `name` holds a reply, or a client, and `other` one that shows no change: two replies
    have their client in common, which is as it was when they were read.
    """
    one, two = seen.variables.value(name), seen.variables.value(other)
    if one is two or not {root_module(type(one)), root_module(type(two))} <= SDKS:
        return False
    was, now = seen.before.get(other), seen.variables.prints.get(other)
    return now is not None and (
        now.opaque or other not in seen.before or (was is not None and was.digest == now.digest)
    )


def _find_changed_object(touch: Touch, value: Any) -> Any:
    """The one object that a use changes, where its text tells; MISSING else."""
    if not touch.path or touch.how not in ("item", "attr", "method"):
        return MISSING
    if touch.how == "method":
        target = tracing_paths.value_at(touch.path, value)
        return target if type(target) in (list, dict, set) else MISSING
    return tracing_paths.stored_object(touch.path, value)


def _is_data(value: Any) -> bool:
    return not isinstance(value, types.FunctionType | types.ModuleType | types.BuiltinFunctionType)


def _find_receiving_function(seen: ExecutionFacts, touch: Touch) -> Any:
    """The function that a value is handed to; None unknown."""
    if touch.how != "argument":
        return None
    root, *path = touch.what.split(".")
    value = seen.variables.value(root)
    for each in path:
        value = tracing_paths.static_attribute(value, each)
    return None if value is MISSING else value


def _share_out_changes(seen: ExecutionFacts, drafts: list[Draft], changed: set[str]) -> None:
    """Which statement changed what: those that bind it, may change it or can reach it; else any
    that calls.
    """
    for name in sorted(changed):
        written = [d for d in drafts if name in d.strong or name in d.weak]
        if any(name in d.strong for d in written) or written == drafts:
            continue
        takers = [
            d
            for d in drafts
            if name in d.reach or not d.reach.isdisjoint(seen.variables.sharing([name]))
        ]
        if (
            takers and seen.before.get(name) is not None
        ):  # it may be held elsewhere by now: sys.stdout = buffer
            takers += [
                d
                for d in drafts[drafts.index(takers[0]) :]
                if d not in takers and d.statement.uses.called
            ]
        takers = (
            takers
            or [d for d in drafts if d.statement.uses.called or d.statement.uses.magics]
            or drafts
        )
        certain = (
            len(takers) == 1 and seen.failed_at is None and name in seen.rebound and ":" not in name
        )
        for each in takers:
            (each.strong if certain else each.weak).add(name)


def _narrow_writes(seen: ExecutionFacts, draft: Draft) -> None:
    """A whole name that was only written in parts that the text tells becomes these parts."""
    for name in [n for n in draft.weak if n in draft.statement.code.reads]:
        appended = _find_appended_element(seen, draft, name)
        paths = appended or tracing_paths.written_parts(name, draft.statement.uses, seen.variables)
        if not paths:
            continue
        others = seen.variables.sharing([name]) & draft.reach - {name}
        is_read_by_code = any(
            name in seen.variables.resources(place, code_names(code).reads)
            for place, code in draft.codes
        )
        if others or is_read_by_code:
            continue
        draft.weak.discard(name)
        draft.weak |= paths
        if draft.statement.repeats or not (draft.statement.calm or draft.statement.calm_call):
            stored = {
                t.path for t in draft.statement.touches if t.root == name and t.how != "method"
            }
            for path in paths:
                if path.endswith("]") and (path in stored or path in appended):
                    at = _find_last_step(path)
                    draft.weak.add(presence(path[:at], path[at:]))


def _find_appended_element(seen: ExecutionFacts, draft: Draft, name: str) -> set[str]:
    """One element, where the statement appends in any case and the cell does nothing else to the
    list.
    """
    statement = draft.statement
    if not (statement.calm or statement.calm_call) or statement.repeats:
        return set()
    if any(
        t.root == name
        for s in seen.cell.statements
        if s is not statement
        for t in s.touches
        if t.how not in ("argument", "next")
    ):
        return set()
    element = tracing_paths.appended(name, statement.uses, seen.variables)
    return {element} if element else set()


_AT_ONCE = frozenset({"<module>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})


def _add_dependencies(seen: ExecutionFacts, drafts: list[Draft], changed: set[str]) -> None:
    """What each thing that is written depends on, where all that ran is understood
    (dataflow/static/outcomes/__init__.py).
    """
    if seen.background or seen.leaves_background or seen.failed_at is not None:
        return
    bound = (
        frozenset().union(*(d.statement.code.stores | d.statement.code.deletes for d in drafts))
        | seen.rebound
    )
    binders = Counter(n for d in drafts for n in d.statement.code.stores | d.statement.code.deletes)
    once = frozenset(name for name, count in binders.items() if count == 1)
    boxes = _find_new_boxes(seen, drafts)
    appends: dict[str, list[tuple[Draft, int]]] = {}
    for place, draft in enumerate(drafts):
        used = draft.statement.uses
        node = draft.statement.parse()
        if (
            node is None
            or used.dynamic
            or used.magics
            or not (draft.codes or used.called or used.touches or _binds_written_box(node))
        ):
            continue
        made = {name for name, binder in boxes.items() if binder < place}
        outcome = statement_outcome(node, seen.variables, bound - made, frozenset(changed), once)
        codes = {
            code
            for _, code in draft.codes
            if code.co_name not in _AT_ONCE and code.co_filename != "<string>"
        }
        if outcome is None or not codes <= outcome.codes:
            continue
        _apply_outcome(seen, draft, outcome, changed)
        for path, count in outcome.appends.items():
            appends.setdefault(path, []).append((draft, count))
    for path, added in appends.items():
        if all(count < UNSURE for _, count in added):
            _number_appended_elements(seen, path, added, drafts)


def _binds_written_box(node: ast.stmt) -> bool:
    """`xs = [r, 1]`: each of its elements depends on something of its own."""
    if not isinstance(node, ast.Assign):
        return False
    if isinstance(node.value, ast.List | ast.Tuple):
        return not any(isinstance(each, ast.Starred) for each in node.value.elts)
    return isinstance(node.value, ast.Dict)


def _find_new_boxes(seen: ExecutionFacts, drafts: list[Draft]) -> dict[str, int]:
    """The names that one statement of the cell binds, and no other, to a list or dict that is
    written down there, with the place of that statement: whatever the reply was, they hold one
    after it.
    """
    nodes = [d.statement.parse() for d in drafts]
    written = {
        target.id: place
        for place, node in enumerate(nodes[:-1])
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List | ast.Dict)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    if not written or any(d.statement.uses.dynamic or d.statement.uses.magics for d in drafts):
        return {}
    binders = Counter(
        name
        for draft, node in zip(drafts, nodes, strict=True)
        if not _extends_with_list(node)
        for name in draft.statement.code.stores | draft.statement.code.deletes
    )
    elsewhere = {
        name
        for draft in drafts
        for place, code in _find_possible_codes(seen, draft)
        if not place
        for name in code_names(code).stores | code_names(code).deletes
    }
    return {
        name: place
        for name, place in written.items()
        if binders[name] == 1 and name not in elsewhere
    }


def _extends_with_list(node: ast.stmt | None) -> bool:
    return isinstance(node, ast.AugAssign) and isinstance(node.value, ast.List)


def _number_appended_elements(
    seen: ExecutionFacts, path: str, added: list[tuple[Draft, int]], drafts: list[Draft]
) -> None:
    """The elements that statements add to a list, where nobody else in their cell changes that."""
    some, root = f"{path}{ELEMENT}", part_root(path)
    if path != root:
        box = tracing_paths.value_at(path, seen.variables.value(root))
    else:
        box = seen.variables.value(root)
    count = sum(each for _, each in added)
    if type(box) is not list or len(box) < count or _changes_otherwise(path, added, drafts):
        return
    first = len(box) - count
    for draft, each in added:
        places = range(first, first + each)
        first += each
        for written in {w for w in draft.weak if w.startswith(some)}:
            numbered = {f"{path}[{place}]{written.removeprefix(some)}" for place in places}
            draft.weak = draft.weak - {written} | numbered
            draft.needs = {**draft.needs, **dict.fromkeys(numbered, draft.needs[written])}
            del draft.needs[written]


def _changes_otherwise(path: str, added: list[tuple[Draft, int]], drafts: list[Draft]) -> bool:
    """Whether a statement of the cell may do another thing to a list than add to it; to bind it
    anew before it is first added to is none.
    """
    adders = [draft for draft, _ in added]
    begun = False
    for draft in drafts:
        adds = draft in adders
        begun = begun or adds
        binds = not adds and not begun and part_root(path) in draft.strong
        for written in (draft.weak | draft.strong) if not binds else ():
            own = adds and (written == path or written.startswith(f"{path}{ELEMENT}"))
            if not own and part_root(written) == part_root(path) and covers(written, path):
                return True
    return False


def _apply_outcome(
    seen: ExecutionFacts, draft: Draft, outcome: StatementOutcome, changed: set[str]
) -> None:
    prints = seen.variables.prints
    written: dict[str, frozenset[str]] = {}
    settled = set[str]()
    for path, deps in outcome.writes.items():
        root = part_root(path)
        if _is_of_process(seen.variables.value(root)):
            continue  # a library's state: dataflow/tracing/surroundings.py
        if path.endswith(ELEMENT) and tracing_paths.is_array(seen.variables.value(root)):
            places = {path} | {
                f"{n}{ELEMENT}" if tracing_paths.is_array(seen.variables.value(n)) else n
                for n in seen.variables.sharing([root]) - {root}
            }
        else:
            places = _find_written_places(seen, path, root, settled)
        for each in places:
            written[each] = written.get(each, frozenset()) | deps
    roots = settled | {part_root(path) for path in written}
    for name in [n for n in draft.weak if n in prints]:
        opaque = prints[name].opaque
        if name in written or name in outcome.binds or opaque:
            continue
        if name in roots or name not in changed:
            draft.weak.discard(name)
    parts_of = {
        w for w in draft.weak if (root := part_root(w)) in roots and root != w and root in prints
    }
    draft.weak -= parts_of - written.keys()
    draft.strong -= outcome.grows
    draft.weak |= {path for path in written if part_root(path) not in draft.strong}
    draft.needs = {
        **draft.needs,
        **{
            each: written.get(each, frozenset()) | outcome.binds.get(each, frozenset())
            for each in written.keys() | outcome.binds
        },
    }
    draft.raises = outcome.raises
    for name in draft.strong & outcome.made.keys():
        if parts := outcome.parts_of_made(name):
            draft.weak |= parts.keys()
            made = outcome.made[name]
            draft.needs = {**draft.needs, **parts, name: made.deps | made.late | outcome.raises}
    _narrow_reads(seen, draft, outcome)


def _find_written_places(seen: ExecutionFacts, path: str, root: str, settled: set[str]) -> set[str]:
    """A part that is written, wherever the object stands of which it is one: `s.view[*]`, too, for
    `s.log[*]`. A whole name where its place in it is not known; where it is, `settled` gets the name.
    """
    value = seen.variables.value(root)
    way, mark, rest = path.partition(ELEMENT)
    last = f"{mark}{rest}"
    if path == root or value is MISSING:
        return seen.variables.sharing([root]) | {root}
    if not mark:
        at = at if (at := find_presence(path)) >= 0 else _find_last_step(path)
        way, last = path[:at], path[at:]
    target = tracing_paths.value_at(way.removeprefix(root), value)
    if target is MISSING:
        return seen.variables.sharing([root]) | {root}
    written = _find_row_holders(seen, root, target) if rest else set()
    for name in seen.variables.holding(target) | {root}:
        held = seen.variables.value(name)
        places = tracing_paths.find_places(name, held, target, last)
        written |= {name} if places is None else places
        settled |= {name} if places is not None else set()
    return written


def _find_row_holders(seen: ExecutionFacts, root: str, rows: Any) -> set[str]:
    """The names that hold a row of a list, and not the list."""
    if type(rows) is not list or len(rows) > _ROWS:
        holders = seen.variables.sharing([root])
    else:
        holders = set().union(*map(seen.variables.holding, rows))
    return holders - seen.variables.holding(rows)


_ROWS = 5_000
"""Rows that are looked at one by one."""


def _find_last_step(path: str) -> int:
    """Where the last step of a path begins."""
    return len(path) - len(split_path(path)[-1])


def _narrow_reads(seen: ExecutionFacts, draft: Draft, outcome: StatementOutcome) -> None:
    """Names whose parts alone are read."""
    by_root: dict[str, set[str]] = {}
    for each in outcome.reads | outcome.raises:
        by_root.setdefault(part_root(each), set()).add(each)
    read = {root for each in draft.reads if (root := part_root(each)) in seen.variables.prints}
    for name in read:
        if _is_data(seen.variables.value(name)) and not isinstance(
            seen.variables.value(name), type
        ):
            parts = by_root.get(name, set())
            if name in draft.reads and parts and name not in parts:
                draft.reads.discard(name)
                draft.reads |= parts
            _narrow_parts(draft, name, parts)


def _narrow_parts(draft: Draft, name: str, parts: set[str]) -> None:
    """`h[0]` is `h[0]['c']`, where that alone is read of it: in `h[0].get("c")`."""
    for each in [read for read in draft.reads - {name} if part_root(read) == name]:
        inner = {part for part in parts if part.startswith((f"{each}[", f"{each}."))}
        if inner and not any(part == each or is_part(part, each) for part in parts):
            draft.reads = draft.reads - {each} | inner


def _build_step(seen: ExecutionFacts, draft: Draft) -> Step:
    statement = draft.statement
    unsure = statement.uses.dynamic & {"exec"}
    if unsure and _is_in_notebook_namespace(draft):
        draft.weak.add(EVERYTHING)
    return Step(
        statement.line, statement.end, frozenset(draft.reads), frozenset(draft.strong),
        frozenset(draft.weak - draft.strong), {k: v for k, v in draft.via.items() if k in draft.reads}, statement.calm,
        statement.calm_call,
        frozenset(_find_amended_names(seen, draft)), draft.needs, draft.raises,
        frozenset(draft.strong - statement.always), _find_direct_reads(seen, draft), statement.place,
    )  # fmt: skip


def _find_direct_reads(seen: ExecutionFacts, draft: Draft) -> frozenset[str]:
    used = draft.statement.uses
    if not seen.ran.complete or used.dynamic or used.magics or used.python:
        return frozenset()
    codes = [code for _, code in draft.codes if code.co_name not in _AT_ONCE]
    inside = frozenset().union(*(code_names(code).reads for code in codes))
    rows = {part_root(each) for each in draft.reads if ELEMENT in each}
    return frozenset((draft.reads | rows) & draft.statement.code.reads) - inside


def _find_amended_names(seen: ExecutionFacts, draft: Draft) -> Iterable[str]:
    """Names of which it only binds a part: `s.goal = "draw"` differs where `s` does, but what it
    writes does not.
    """
    used = draft.statement.uses
    for name in draft.reads & {touch.root for touch in used.touches}:
        if name in used.bare or any(
            root == name for root, p in used.parts if not p.endswith(".append()")
        ):
            continue
        ways = [t for t in used.touches if t.root == name]
        stores = all(t.how in ("item", "attr") and t.path for t in ways)
        if name not in draft.weak and (
            stores or tracing_paths.appended(name, used, seen.variables)
        ):
            yield name


def _is_in_notebook_namespace(draft: Draft) -> bool:
    """It runs a text in the notebook's namespace, not in one that it is handed."""
    return not draft.statement.uses.spaced


def written_names(step: Step) -> set[str]:
    return {n for r in step.strong | step.weak if (n := name_of(r)) is not None}
