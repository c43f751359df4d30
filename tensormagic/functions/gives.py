"""What a call gives of what was there before it: the caller's own containers and arrays, and NumPy's views of these.

A function is captured over copies of the containers that it is given. Where it gives one back, that is the caller's; where it
has changed one, the caller's is changed in the same way once everything has worked. An array that is a part of an input, or of
another result, is NumPy's view of that.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensormagic.capture import context, remade
from tensormagic.capture.number_classes import of_class
from tensormagic.capture.stores.place import Place
from tensormagic.capture.tree import Build, Rest, is_container
from tensormagic.capture.value import Tensor
from tensormagic.functions.outward import codes_behind, is_frozen
from tensormagic.functions.sources import Source, Way, sources_of, ways_of
from tensormagic.ir.errors import CaptureError, SharedResultError
from tensormagic.ir.graph import bare_symbol
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, Symbol, evaluate, nodes_of
from tensormagic.ir.type import Type, hint
from tensormagic.ops.effects.outside import Changed

Path = tuple[Any, ...]  # the keys, indices and names of fields that lead to a container


@dataclass(slots=True, eq=False)
class _Run:
    """One run: what the caller has given, the containers that were put together, by the identity of those of the trace, and conditions."""

    call: Any
    made: dict[int, Any]
    holds: Callable[[Node], bool]


class Halfway(Exception):  # noqa: N818 (who calls the body goes on with the user's own)
    """The body has raised something, after it has changed what it was given, or has printed, or checked data: ``changed`` says which.

    ``tell`` prints what was to be printed until then, and raises what a check raises, for the values of the call.
    """

    def __init__(self, *, changed: bool = True, tell: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.changed, self.tell = changed, tell


class Containers:
    """The containers of one trace.

    Parameters
    ----------
    given
        The arguments, as the body has them.
    there
        What was there before the call, by identity; None where that is not known.
    label
        The function, for messages.
    """

    def __init__(self, given: Any, there: Mapping[int, Any] | None, label: str) -> None:
        self.there = there
        self.returned = False  # whether one that was given is given back
        self.asked: list[Node] = []  # conditions that say which of them is
        self.unknown: str | None = None  # one of which it is not known whether it is
        self._label = label
        self._found: dict[int, tuple[Any, Path, list[Any]]] = {}
        self._fixed: dict[int, Path] = {}  # tuples, which nothing changes: where each is
        self._met: dict[int, Any] = {}
        self._find(given, ())

    def _find(self, value: Any, path: Path) -> None:
        if not is_container(value):
            return
        if isinstance(value, tuple):
            self._fixed[id(value)] = path
        else:
            self._found[id(value)] = value, path, _contents(value)
        for key, part in _parts(value):
            self._find(part, (*path, key))

    def is_changed(self) -> bool:
        """Whether the body has changed one."""
        return any(not _alike(_contents(v), before) for v, _, before in self._found.values())

    def changed(self) -> list[tuple[Path, Any]]:
        """Where the body has changed a container, and what that holds now."""
        found = [(p, v) for v, p, before in self._found.values() if not _alike(_contents(v), before)]
        if found and self.there is None:
            raise refused(self._label)
        return [(path, dict(_parts(v)) if not isinstance(v, list) else list(v)) for path, v in found]

    def callers(self, call: Any) -> dict[int, Any]:
        """For the identity of each the caller's container, which is in the arguments of ``call``."""
        return {} if call is None else {key: _reached(call, path) for key, path in self._places()}

    def _places(self) -> list[tuple[int, Path]]:
        whole = {(), (0,), (1,)}  # the arguments themselves are made anew by each call
        fixed = [(key, path) for key, path in self._fixed.items() if path not in whole]
        return [*((key, path) for key, (_, path, _) in self._found.items()), *fixed]

    def same(self, call: Any) -> dict[Path, Path]:
        """For the place of each in the arguments of ``call`` the first place of the same container."""
        return {} if call is None else _same(call, [path for _, path in self._places()])

    def released(self, given: Any) -> dict[int, tuple[Any, Path]]:
        """Them, with the places of the caller's: they hold what was ``given`` instead of what stood for it, or was computed of that.

        What still has one would seem to have kept lazy values, else.
        """
        at = {path: copy for copy, path, _ in self._found.values()}

        def instead(part: Any, path: Path) -> Any:
            if path in at or not isinstance(part, tuple) or not is_container(part):
                return at.get(path, part)
            return remade.sequence(type(part), [instead(v, (*path, k)) for k, v in enumerate(part)])

        for path, copy in at.items():
            now = {key: instead(part, (*path, key)) for key, part in _parts(_reached(given, path))}
            _fill(copy, [*now.values()] if isinstance(copy, list) else now)
        return {key: (copy, path) for key, (copy, path, _) in self._found.items()}

    def special(self, tree: Any, usual: Callable[[], Build]) -> Build:
        """How a container of the result is put together: what was there is itself, and what occurs twice is one."""
        key = id(tree)
        if key in self._found:
            self.returned, path = True, self._found[key][1]
            return lambda rest: _reached(rest.run.call, path)  # type: ignore[attr-defined]
        if self.there is not None and key in self.there:
            return _Constant(tree)
        if key in self._met:
            return lambda rest: rest.run.made[key]  # type: ignore[attr-defined]
        if isinstance(tree, tuple):
            return usual()
        self._met[key], build = tree, usual()
        ways = self._ways(tree)
        self.asked += [holds for holds, _ in ways]
        self.returned = self.returned or bool(ways)

        def made(rest: Iterator[Any]) -> Any:
            run: _Run = rest.run  # type: ignore[attr-defined]
            one = build(rest)
            taken = next((older for holds, older in ways if run.holds(holds)), None)
            run.made[key] = one = one if taken is None else taken(run.call)
            return one

        return made

    def _ways(self, tree: Any) -> list[tuple[Node, Callable[[Any], Any]]]:
        """What one of the result is on conditions, of the containers that were given or there, by the arguments of a call."""
        capture = context.current()
        for one in reversed(() if capture is None else capture.chosen):
            if any(tree is made for made in one.made):
                if one.known and any(self._older(c) for c in one.behind if all(c is not side for *_, side in one.ways)):
                    self.unknown = one.said
                found = [(holds, self._older(side)) for made, holds, side in one.ways if made is tree]
                return [(holds, older) for holds, older in found if older is not None]
        return []

    def _older(self, container: Any) -> Callable[[Any], Any] | None:
        """What gives, by the arguments of a call, the container that one of the trace stands for; None for a new one."""
        key = id(container)
        if key in self._found:
            path = self._found[key][1]
            return lambda call: _reached(call, path)
        return _Constant(container) if self.there is not None and key in self.there else None


class _Constant:
    """Gives an object that was there before; what that holds is no part of the result."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, _rest: Iterator[Any]) -> Any:
        return self.value


class Copies:
    """Containers that a body has in the place of others, which it would change in Python.

    Parameters
    ----------
    given, copy
        What holds the ones, and what holds the others at the same places.
    """

    def __init__(self, given: Any, copy: Any) -> None:
        self._found: dict[int, tuple[Any, Any, list[Any]]] = {}
        self._find(given, copy)

    def _find(self, given: Any, copy: Any) -> None:
        if not is_container(copy) or given is copy:
            return
        if not isinstance(copy, tuple):
            self._found[id(copy)] = given, copy, _contents(copy)
        for (_, part), (_, other) in zip(_parts(given), _parts(copy), strict=False):
            self._find(part, other)

    def _changed(self) -> list[tuple[Any, Any]]:
        return [(given, copy) for given, copy, before in self._found.values() if not _alike(_contents(copy), before)]

    def refuse(self, label: str) -> None:
        """Refuse that one has changed, where its caller would not see that."""
        if self._changed():
            raise refused(label)

    def put_back(self, was: Mapping[int, Any]) -> None:
        """Change what was given as the copies were; ``was`` says for what values stand, by their identity."""
        for given, copy in self._changed():
            now = [(key, self._given(part, was)) for key, part in _parts(copy)]
            _fill(given, [part for _, part in now] if isinstance(given, list) else dict(now))

    def _given(self, value: Any, was: Mapping[int, Any]) -> Any:
        if id(value) in was:
            return was[id(value)]
        if id(value) in self._found:
            return self._found[id(value)][0]
        if not is_container(value):
            return value
        parts = [(key, self._given(part, was)) for key, part in _parts(value)]
        if all(a is b for (_, a), (_, b) in zip(parts, _parts(value), strict=True)):
            return value
        if isinstance(value, tuple):
            own = [part for _, part in parts]
            return remade.sequence(type(value), own)
        _fill(value, [part for _, part in parts] if isinstance(value, list) else dict(parts))
        return value


def _parts(container: Any) -> list[tuple[Any, Any]]:
    """What a container holds, each with its key."""
    if isinstance(container, dict):
        return [*container.items()]
    if isinstance(container, tuple | list):
        return [*enumerate(container)]
    inside = getattr(container, "__dict__", None)
    if inside is not None:
        return [*inside.items()]
    names = [f.name for f in dataclasses.fields(container)]
    return [(n, getattr(container, n)) for n in names if hasattr(container, n)]


def _contents(container: Any) -> list[Any]:
    return [part for pair in _parts(container) for part in pair]


def _alike(now: Sequence[Any], before: Sequence[Any]) -> bool:
    return len(now) == len(before) and all(
        a is b or (type(a) is type(b) is int and a == b) for a, b in zip(now, before, strict=True)
    )


def _reached(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key] if isinstance(value, dict | tuple | list) else getattr(value, key)
    return value


def _same(call: Any, paths: Iterable[Path]) -> dict[Path, Path]:
    first: dict[int, Path] = {}
    return {path: first.setdefault(id(_reached(call, path)), path) for path in paths}


def _fill(container: Any, contents: Any) -> None:
    if isinstance(container, list | dict):
        remade.refill(container, contents)
    else:
        for name, _ in _parts(container):
            if name not in contents:
                object.__delattr__(container, name)
        for name, value in contents.items():
            object.__setattr__(container, name, value)


def refused(label: str, why: str = "") -> CaptureError:
    """The refusal to change a container."""
    return CaptureError(f"{label} changes a container that is an argument{why}", "Make a new one, and return it.")


@dataclass(eq=False)
class Gives:
    """What the results of one program are, beside what it computes.

    Parameters
    ----------
    label
        The function, for messages.
    sources
        What results are parts of, by number.
    extents
        Which axis of which input a symbol of the trace is.
    changed
        The containers of the arguments that are changed: what they hold then comes behind the result.
    by_call
        Whether the caller's containers are asked for.
    there
        The identities of what is there beside the arguments.
    own
        Results that are arrays of that.
    classes
        Results that are numbers of data-dependent class: which result says that, and what it may say.
    ways
        Results that are, by a data-dependent choice, one of several inputs or other results.
    unknown
        What a result may be a part of, where it is not known which part, or when: calls are Python's then.
    halfway
        Whether the code changes something before a data-dependent error.
    asked
        Conditions that say which containers results are.
    numbers
        For conditions of these, and for integers that decide where results lie in what they are parts of: which result says that.
    wholes
        Computed arrays of which several results are parts: they follow the results.
    frozen
        Results that NumPy computes and gives as what cannot be stored into.
    keeps
        Whether the trace has left values in objects, which may hold containers of the result, too.
    made
        These containers as one run has put them together, by the identity of those of the trace.
    identities
        Whether the code has asked which object a container of the arguments is: the trace holds for one call.
    same
        For the place of each of these the first place of the same one, where the code has asked which of them are one.
    copies
        What the trace had in the place of the caller's containers, with the places of these: it may have kept some.
    """

    label: str
    sources: dict[int, Source]
    extents: dict[Symbol, tuple[int, int]]
    changed: tuple[Path, ...]
    by_call: bool
    there: Mapping[int, Any]
    own: dict[int, Any] = field(default_factory=dict[int, Any])
    classes: dict[int, tuple[int, list[Type]]] = field(default_factory=dict[int, tuple[int, list[Type]]])
    ways: dict[int, list[Way]] = field(default_factory=dict[int, "list[Way]"])
    unknown: str | None = None
    halfway: bool = False
    asked: Sequence[Node] = ()
    numbers: dict[Node, int] = field(default_factory=dict[Node, int])
    wholes: list[Node] = field(default_factory=list[Node])
    frozen: tuple[int, ...] = ()
    keeps: bool = False
    made: dict[int, Any] = field(default_factory=dict[int, Any])
    identities: bool = False
    same: dict[Path, Path] = field(default_factory=dict[Path, Path])
    copies: dict[int, tuple[Any, Path]] = field(default_factory=dict[int, tuple[Any, Path]])

    def __bool__(self) -> bool:
        return (
            bool(self.sources or self.own or self.ways or self.classes or self.same or self.frozen or self.unknown)
            or self.by_call
        )

    def with_more(self, nodes: Sequence[Node]) -> list[Node]:
        """The nodes of results, and behind them what says of which class numbers are, and where parts lie, where that is data-dependent."""
        every = [*nodes, *self.wholes]
        self.classes.update(codes_behind(nodes, every))
        ways = [way for several in self.ways.values() for way in several]
        sources = [*self.sources.values(), *(way.source for way in ways)]
        asked = [node for s in sources for place, shape in s.places for node in _asked(place, shape)]
        for node in dict.fromkeys([*asked, *self.asked, *(way.holds for way in ways if way.holds is not None)]):
            self.numbers[node] = len(every)
            every.append(node)
        return every

    def is_single(self, count: int, build: Build) -> bool:
        """Whether ``count`` results are put together to the one that there is."""
        marker = object()
        if count - len(self.classes) - len(self.numbers) - len(self.wholes) != 1 or self.by_call:
            return False
        try:
            return build(Rest([marker], _Run(None, {}, bool))) is marker
        except (TypeError, ValueError):  # of a text, and of one of several values
            return False

    def fits(self, call: Any) -> bool:
        """Whether the containers of a call are one where they have to be."""
        return not self.same or (call is not None and _same(call, self.same) == self.same)

    def check(self, call: Any) -> None:
        """Refuse results of which it is not known what they are, and to change a container that the code has met as another object, too."""
        if self.unknown:
            raise SharedResultError(
                f"{self.label} returns what may be a part of {self.unknown}, depending on data",
                "Return a copy, made with .copy().",
            )
        if not self.fits(call):
            raise Changed("another two containers among the arguments are one than when the function was captured")
        for path in self.changed:
            own = _reached(call, path)
            if _count(call, own) > 1:
                raise refused(self.label, ", in more than one place")
            if id(own) in self.there:
                raise refused(self.label, " and that it also reads by another name")

    def arrays(self, results: list[Any], values: Sequence[Any]) -> list[Any]:
        """The results, with arrays that are there, and views of these, where Python gives such."""
        views: dict[Place, Any] = {}
        for k in self.frozen:
            results[k].flags.writeable = False
        for k, ways in self.ways.items():
            taken = next((w for w in ways if w.holds is None or results[self.numbers[w.holds]]), None)
            if taken is not None:
                results[k] = self._part(taken.source, results[k], values, results, {})
        for k, source in self.sources.items():
            results[k] = self._part(source, results[k], values, results, views)
        for k, array in self.own.items():
            results[k] = array
        for k, (code, types) in self.classes.items():
            results[k] = of_class(results[k], types[int(results[code])])
        return results

    def _part(
        self, source: Source, computed: Any, values: Sequence[Any], results: Sequence[Any], views: dict[Place, Any]
    ) -> Any:
        """The part of what is there that a result is; what was ``computed`` for it, where that is no part."""
        whole = (results if source.of_result else values)[source.number]
        try:
            for place, shape in source.places:
                if place not in views:
                    views[place] = place.taken_from(whole, lambda s: self._size(s, values, results), shape)
                whole = views[place]
                if whole is None:
                    return computed
        except LookupError:  # the choice is data-dependent
            return computed
        return whole

    def _size(self, size: Size, values: Sequence[Any], results: Sequence[Any]) -> int:
        def extent(a: Any) -> int:
            if a in self.numbers:
                return int(results[self.numbers[a]])
            if a in self.extents:
                number, axis = self.extents[a]
                return np.shape(values[number])[axis]
            if isinstance(a, Symbol) and a.hint is not None:
                return a.hint
            raise LookupError

        return evaluate(size, extent)

    def kept(self, call: Any) -> dict[int, tuple[Any, Any]]:
        """For what the trace had in the place of the caller's containers, by identity: that, and the caller's."""
        return {key: (copy, _reached(call, path)) for key, (copy, path) in self.copies.items()}

    def together(self, build: Build, results: list[Any], call: Any) -> Any:
        """What the function gives; the caller's containers hold what they have to then."""
        run = _Run(call, {}, lambda holds: bool(results[self.numbers[holds]]))
        found = build(Rest(results, run))
        self.made = run.made if self.keeps else {}
        if not self.changed:
            return found
        result, *contents = found
        own = [_reached(call, path) for path in self.changed]  # before one of them holds others
        for container, now in zip(own, contents, strict=True):
            _fill(container, now)
        return result


def _asked(place: Place, shape: tuple[Size, ...]) -> list[Node]:
    """The integers that decide where a place lies in the one that it is a part of."""
    found: list[Node] = []

    def number(size: Size) -> int:
        found.extend(nodes_of(size))
        return hint(size) or 0

    if place.parent is not None:
        whole = place.parent.read().type
        place.taken_from(np.broadcast_to(np.zeros((), whole.dtype), [*map(number, whole.shape)]), number, shape)
        _ = [*map(number, shape)]
    return found


def gives_of(
    label: str, results: Sequence[Any], tensors: Sequence[Tensor], containers: Containers, changed: Any, *, users: bool
) -> Gives:
    """What a trace gives, of which ``changed`` are the containers that it has changed; ``users`` says that the results are the user's."""
    extents: dict[Symbol, tuple[int, int]] = {}
    for k, t in enumerate(tensors):
        for axis, size in enumerate(t.place.buffer.first.type.shape):
            symbol = bare_symbol(size)
            if symbol is not None:
                extents.setdefault(symbol, (k, axis))
    paths = tuple([path for path, _ in changed])
    by_call = bool(paths) or containers.returned
    sources, several = sources_of(results, tensors)
    ways, unknown = ways_of(results, tensors) if users else ({}, None)
    frozen = tuple([k for k, v in enumerate(results) if k not in sources and is_frozen(v)])
    return Gives(
        label,
        sources,
        extents,
        paths,
        by_call,
        (containers.there or {}) if paths else {},
        wholes=several,
        frozen=frozen,
        ways=ways,
        unknown=unknown or containers.unknown,
        asked=containers.asked,
    )


def _count(tree: Any, own: Any) -> int:
    """How often a container stands in the arguments."""
    if tree is own:
        return 1
    return sum(_count(part, own) for _, part in _parts(tree)) if is_container(tree) else 0


__all__ = ["Containers", "Copies", "Gives", "Halfway", "gives_of", "refused"]
