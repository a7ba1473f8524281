"""What a recorded body changed, done again in replay: the same objects, changed in place."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar, Token
from functools import partial
from types import FunctionType, ModuleType
from typing import Any

from tape_jupyter.core.memoised import MEMOISED, CachedCall, Kept, read_kept, set_kept
from tape_jupyter.core.open_file import OPEN_FILE
from tape_jupyter.core.stubs import do_nothing
from tape_jupyter.effects import kinds, whole_objects
from tape_jupyter.effects.kinds import kind_of_type
from tape_jupyter.effects.made_classes import (
    MAPPINGS,
    SEQUENCES,
    TEXTS,
    find_made_class,
    made_base,
    make_bare,
)
from tape_jupyter.effects.paths import follow_path, format_path, parse_path
from tape_jupyter.effects.scope import NAMES, Scope
from tape_jupyter.effects.writing import MADE, EffectReader, PartRestorer
from tape_jupyter.encoding.values.user_classes import dict_of, fill, set_attributes, slots_of
from tape_jupyter.encoding.values.walker import At, need
from tape_jupyter.errors import CassetteError


class Redo:
    """The changes of one call, and the objects that they lead to: sought before anything changes."""

    def __init__(self, changes: Sequence[Mapping[str, Any]], scope: Scope) -> None:
        self._changes, self._scope = changes, scope
        self._by_path: dict[str, Any] = {}
        self._walk = EffectReader(partial(_require_standing, self._by_path))
        self.problems: list[str] = []
        """What could not be done, in words."""
        self._make_objects()
        self._find_paths(list(changes))
        self._before = self._copy_shared()

    def _make_objects(self) -> None:
        """Those that the body made: what is in them is put there once all are here."""
        for change in self._changes:
            if "class" not in change:
                continue
            try:
                kind = find_made_class(change, None)
                is_text = made_base(kind) in TEXTS
                text = self._walk.thaw(change["content"], None) if is_text else None
                self._by_path[str(change.get("at"))] = make_bare(kind, text)
            except Exception as why:
                self.problems.append(f"{change['class']}: {why}"[:300])

    def _copy_shared(self) -> dict[str, Any]:
        """By path, what is in the containers that code changes which runs in replay, too."""
        shared = [str(change.get("at")) for change in self._changes if change.get("over")]
        live = {path: self._by_path[path] for path in shared if path in self._by_path}
        return {
            path: kind.copy_state(each)
            for path, each in live.items()
            if (kind := _container_kind(each))
        }

    def _find_paths(self, structure: Any) -> None:
        """Follow every path in it."""
        if type(structure) is list:
            for each in structure:
                self._find_paths(each)
        elif type(structure) is dict:
            path = structure.get("at")
            if (
                type(path) is str
                and (path not in self._by_path)
                and ("<type>" not in structure or structure["<type>"] == "standing")
            ):
                target = self._follow_path(path)
                if target is not None:
                    self._by_path[path] = target
            for each in structure.values():
                self._find_paths(each)

    def place(self, place: str) -> Any:
        """What stands at a path, or was put where `$...` says; None where nothing does."""
        if place.startswith("$"):
            return self._walk.places().get(place)
        known = self._by_path.get(place)
        return self._follow_path(place) if known is None else known

    def _follow_path(self, path: str) -> Any:
        try:
            return follow_path(path, self._scope)
        except (LookupError, AttributeError, TypeError, ValueError, CassetteError):
            return None

    def flush(self) -> None:
        """What the program wrote into files that are open is in the files, before those are
        compared.
        """
        for target in self._by_path.values():
            if isinstance(target, OPEN_FILE) and not target.closed:
                target.flush()

    def run(self) -> None:
        """Change the objects."""
        for number, change in self._list_numbered():
            path = str(change.get("at"))
            try:
                if path in self._before:
                    _refill(_require_standing(self._by_path, path), self._before[path])
                self._apply_change(_require_standing(self._by_path, path), change, (None, number))
            except Exception as why:
                self.problems.append(f"{format_path(path)}: {why}"[:300])

    def run_handlers(self) -> None:
        """Of the changes only those of which handlers loggers have: records go to them meanwhile."""
        for number, change in self._list_numbered():
            path = str(change.get("at"))
            if path.endswith(".handlers") and path in self._by_path:
                self._apply_change(self._by_path[path], change, (None, number))

    def _list_numbered(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """The changes, numbered past the objects that were made."""
        number = 0
        for change in self._changes:
            yield number, change
            number += "class" not in change

    def _apply_change(self, live: Any, change: Mapping[str, Any], at: At) -> None:
        self._walk.holder = type(live) if kinds.is_librarys(type(live)) else None
        if "class" in change:
            self._fill_made(live, change)
        elif "whole" in change:
            self._replace_contents(live, self._walk.thaw(change["whole"], (at, "whole")))
        elif "kept" in change:
            self._set_kept(live, change, at)
        elif "splice" in change:
            self._splice_items(live, change, at)
        elif "attributes" in change or not isinstance(
            kind := kind_of_type(type(live)), (kinds.MappingKind, kinds.SetKind)
        ):
            self._set_attributes(live, change, at)
        elif isinstance(kind, kinds.MappingKind):
            self._set_keys(live, change, at)
        else:
            base = kinds.base_of(type(live))
            base.update(live, self._walk.thaw(change.get("add", []), (at, "add")))
            base.difference_update(
                live, self._walk.thaw(change.get("discard", []), (at, "discard"))
            )

    def _fill_made(self, live: Any, change: Mapping[str, Any]) -> None:
        place = ((None, MADE), parse_path(str(change["at"]))[1][0][1])
        base, at = made_base(type(live)), (place, "content")
        content = change.get("content")
        if base in SEQUENCES:
            self._fill_sequence(live, base, change, at)
        elif base in MAPPINGS:
            for key, value in self._walk.items(content, at):
                base.__setitem__(live, key, value)
        elif base is set:
            base.update(live, self._walk.sequence(content, at))
        elif kinds.element_base(type(live)) is not None:
            for name, value in self._walk.mapping(content, at).items():
                _set_element_part(live, name, value)
        set_attributes(
            live, self._walk.mapping(change.get("attributes", {}), (place, "attributes"))
        )

    def _fill_sequence(self, live: Any, base: Any, change: Mapping[str, Any], at: At) -> None:
        if base is deque:
            deque.__init__(live, maxlen=change.get("maxlen"))
        base.extend(live, self._walk.sequence(change.get("content"), at))

    def _replace_contents(self, live: Any, recorded: Any) -> None:
        kind = kind_of_type(type(live))
        if not isinstance(kind, whole_objects.WholeKind):
            raise _refuse_other(live)
        kind.put(live, recorded)

    def _set_kept(self, live: Any, change: Mapping[str, Any], at: At) -> None:
        """Entries of a memoised function put behind its first `head` ones; behind all, where they
        were behind all when it was recorded.
        """
        if type(live) is not MEMOISED:
            raise _refuse_other(live)
        hits, misses = need(change["kept"], list, at)
        head = need(change["head"], int, at)
        put = [
            CachedCall(tuple(args), kwargs, result)
            for args, kwargs, result in self._walk.thaw(change["put"], (at, "put"))
        ]
        now = read_kept(live)
        if head == need(change["of"], int, at):
            head = len(now.entries)
        entries = [*now.entries[:head], *put]
        set_kept(live, Kept(entries, max(0, now.hits + hits), max(0, now.misses + misses)))

    def _splice_items(self, live: Any, change: Mapping[str, Any], at: At) -> None:
        """Items put between the first `head` and the last `tail` ones; the same items again change
        nothing.
        """
        head, tail = need(change["splice"], list, at)
        length = need(change["of"], int, at)
        items = self._walk.thaw(change["put"], (at, "put"))
        now = kinds.SEQUENCE.copy_state(live)
        if (
            len(now) != length
            and len(now) == head + len(items) + tail
            and now[head : head + len(items)] == items
        ):
            return  # somebody did it already
        if len(now) != length and head == length and not tail:
            head = len(now)  # items were added at the end, and other code added some meanwhile
        elif len(now) != length:
            raise CassetteError(
                f"it has {len(now)} items here, and had {length} when recorded: it is left as it is"
            )
        result = [*now[:head], *items, *now[len(now) - tail :]]
        base = kinds.base_of(type(live))
        base.clear(live)
        base.extend(live, result)

    def _set_keys(self, live: dict[Any, Any], change: Mapping[str, Any], at: At) -> None:
        items = dict(self._walk.items(change.get("set", []), (at, "set")))
        base = kinds.base_of(type(live))
        if change.get("anew"):
            base.clear(live)
        for key in self._walk.thaw(change.get("delete", []), (at, "delete")):
            base.pop(live, key, None)
        for key, value in items.items():
            base.__setitem__(live, key, value)

    def _set_attributes(self, live: Any, change: Mapping[str, Any], at: At) -> None:
        values = self._walk.mapping(change.get("attributes", {}), (at, "attributes"))
        removed = [need(name, str, at) for name in change.get("delete", [])]
        setter, remover = _find_accessors(live, at)
        for name, value in values.items():
            setter(name, value)
        for name in removed:
            remover(name)


def _require_standing(by_path: Mapping[str, Any], path: str) -> Any:
    if path not in by_path:
        raise CassetteError(f"there is no {format_path(path)} here")
    return by_path[path]


def _container_kind(live: Any) -> kinds.Kind | None:
    kind = kind_of_type(type(live))
    return kind if isinstance(kind, kinds.CONTAINER_KINDS) else None


def _refill(live: Any, content: Any) -> None:
    base = kinds.base_of(type(live))
    base.clear(live)
    (base.update if isinstance(content, dict | set) else base.extend)(live, content)


def _refuse_other(live: Any) -> CassetteError:
    return CassetteError(f"a {type(live).__name__} is here now")


def _find_accessors(live: Any, at: At) -> tuple[Callable[[str, Any], Any], Callable[[str], Any]]:
    """How an attribute of this object is set, and how it is taken away."""
    if isinstance(live, NAMES):
        return live.set, live.delete
    if isinstance(live, ContextVar):
        return (lambda _name, value: _set_context(live, value)), lambda _name: _clear_context(live)
    if isinstance(live, type):
        return (
            lambda name, value: type.__setattr__(live, _require_plain_name(name), value)
        ), lambda name: type.__delattr__(live, name)
    if isinstance(live, (ModuleType, FunctionType)):
        return (lambda name, value: _bind_name(live, name, value)), lambda name: vars(live).pop(
            name, None
        )
    if kinds.is_widget(type(live)):
        return (lambda name, value: _set_trait(live, name, value)), do_nothing
    return (
        lambda name, value: _set_attribute(live, name, value, at)
    ), lambda name: _remove_attribute(live, name)


_UNSET: dict[ContextVar[Any], Token[Any]] = {}
"""Of context variables that a replay gave their first value: what takes it away."""


def _set_context(variable: ContextVar[Any], value: Any) -> None:
    was = variable.get(kinds.MISSING)
    token = variable.set(value)
    if was is kinds.MISSING:
        _UNSET[variable] = token


def _clear_context(variable: ContextVar[Any]) -> None:
    """Let it have no value, as before the first. Raises CassetteError where nobody can."""
    if variable.get(kinds.MISSING) is kinds.MISSING:
        return
    try:
        variable.reset(_UNSET.pop(variable))
    except (LookupError, ValueError, RuntimeError):  # set by the program, or in another context
        raise CassetteError("it had no value then, and a replay cannot take it away") from None


def _set_element_part(element: Any, name: str, value: Any) -> None:
    """Set what is written in an element of `xml.etree`, past any code of a class derived of it."""
    base: Any = kinds.element_base(type(element))
    if name == "children":
        base.__setitem__(element, slice(None), value)
    elif name == "attrib":
        attributes = vars(base)["attrib"].__get__(element)
        attributes.clear()
        attributes.update(value)
    else:
        vars(base)[name].__set__(element, value)


def _bind_name(live: ModuleType | FunctionType, name: str, value: Any) -> None:
    if name.startswith("__") and kinds.is_settable(live, name):
        setattr(live, name, value)
    else:
        vars(live)[_require_plain_name(name)] = value


def _set_attribute(live: Any, name: str, value: Any, at: At) -> None:
    if name in kinds.ELEMENT_PARTS and kinds.element_base(type(live)) is not None:
        _set_element_part(live, name, value)
    elif name != "__class__":
        fill(live, {name: value}, at)
    elif kinds.is_users_class(value) and kinds.is_users_class(type(live)):
        object.__setattr__(live, name, value)
    else:
        raise CassetteError(f"it cannot become a {value!r}")


def _set_trait(widget: Any, name: str, value: Any) -> None:
    """Let a widget show it; what listens to it did so when it was recorded."""
    if name not in widget.traits():
        raise CassetteError(f"a {type(widget).__name__} has no {name!r}")
    vars(widget)["_trait_values"][name] = value
    if name in widget.keys:
        widget.send_state(name)


def _require_plain_name(name: str) -> str:
    if name.startswith("__"):
        raise CassetteError(f"{name!r} is not an attribute that a value can have")
    return name


def _remove_attribute(live: Any, name: str) -> None:
    slots = slots_of(type(live))
    if name in slots:
        slots[name].__delete__(live)
    else:
        dict_of(live).pop(name, None)


def restore_own_objects(structure: Any, same: Mapping[str, str], redo: Redo | None) -> Any:
    """A recorded result, its parts that are the program's own objects as those."""
    resolve = redo.place if redo is not None else (lambda _place: None)
    return PartRestorer(same, resolve).thaw(structure, None)
