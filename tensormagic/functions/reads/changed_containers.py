"""The caller's containers that a call changes: their copies for capture, and their contents before."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.foreign import rebuilt_containers
from tensormagic.capture.tree import Build, is_container
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.node import Node

Path = tuple[Any, ...]  # the keys, indices and field names that lead to a container
_WHOLE: set[Path] = {(), (0,), (1,)}  # the paths of the arguments as a whole, which each call builds anew


@dataclass(slots=True, eq=False)
class Run:
    """One run: the caller's arguments, the containers built so far (by the identity of those of the trace), and conditions."""

    call: Any
    made: dict[int, Any]
    holds: Callable[[Node], bool]


class Halfway(Exception):  # noqa: N818 (who calls the body goes on with the user's own)
    """Raised if the body has raised an error after changing its arguments, printing, or checking data; ``changed`` says which.

    ``tell`` prints the pending output, and raises the errors of checks, for the values of the call. ``met`` is the
    error, which may be one of this package.
    """

    def __init__(
        self, *, changed: bool = True, tell: Callable[[], None] = lambda: None, met: Exception | None = None
    ) -> None:
        super().__init__()
        self.changed, self.tell, self.met = changed, tell, met


class Containers:
    """The containers of one trace.

    Parameters
    ----------
    given
        The arguments, as the body has them.
    there
        The objects that existed before the call, by identity; None if they are not known.
    label
        The function, for messages.
    """

    def __init__(self, given: Any, there: Mapping[int, Any] | None, label: str) -> None:
        self.there = there
        self.returned = False  # whether a given container is returned
        self.asked: list[Node] = []  # conditions that decide which container is returned
        self.unknown: str | None = None  # the name of a container whose identity in the result is unknown
        self._label = label
        self._found: dict[int, tuple[Any, Path, list[Any]]] = {}
        self._fixed: dict[int, Path] = {}  # tuples, which never change, with their paths
        self._met: dict[int, Any] = {}
        self._find(given, ())

    def _find(self, value: Any, path: Path) -> None:
        if not is_container(value):
            return
        if isinstance(value, tuple):
            self._fixed[id(value)] = path
        else:
            self._found[id(value)] = value, path, _contents(value)
        for key, part in parts_of(value):
            self._find(part, (*path, key))

    def is_changed(self) -> bool:
        """Return whether the body has changed a container."""
        return any(not _alike(_contents(v), before) for v, _, before in self._found.values())

    def changed(self) -> list[tuple[Path, Any]]:
        """Return the containers that the body has changed: their paths and their new contents."""
        found = [(p, v) for v, p, before in self._found.values() if not _alike(_contents(v), before)]
        if found and self.there is None:
            raise refused(self._label)
        return [(path, dict(parts_of(v)) if not isinstance(v, list) else list(v)) for path, v in found]

    def callers(self, call: Any) -> dict[int, Any]:
        """Return the caller's container, in the arguments of ``call``, for the identity of each container of the trace."""
        return {} if call is None else {key: reached(call, path) for key, path in self._places()}

    def _places(self) -> list[tuple[int, Path]]:
        fixed = [(key, path) for key, path in self._fixed.items() if path not in _WHOLE]
        return [*((key, path) for key, (_, path, _) in self._found.items()), *fixed]

    def same(self, call: Any) -> dict[Path, Path]:
        """Return for the place of each container in the arguments of ``call`` the first place of the same container."""
        return {} if call is None else same_places(call, [path for _, path in self._places()])

    def released(self, given: Any) -> dict[int, tuple[Any, Path]]:
        """Return the containers, with the caller's paths, after putting the original arguments in place of the trace's stand-ins.

        Otherwise anything that still holds one would seem to have kept lazy values.
        """
        at = {path: copy for copy, path, _ in self._found.values()}

        def instead(part: Any, path: Path) -> Any:
            if path in at or not isinstance(part, tuple) or not is_container(part):
                return at.get(path, part)
            return rebuilt_containers.sequence(type(part), [instead(v, (*path, k)) for k, v in enumerate(part)])

        for path, copy in at.items():
            now = {key: instead(part, (*path, key)) for key, part in parts_of(reached(given, path))}
            fill(copy, [*now.values()] if isinstance(copy, list) else now)
        return {key: (copy, path) for key, (copy, path, _) in self._found.items()}

    def special(self, tree: Any, usual: Callable[[], Build]) -> Build:
        """Return how a container of the result is built: an existing one is itself, and one that occurs twice is built once."""
        key = id(tree)
        path = self._found[key][1] if key in self._found else self._fixed.get(key, ())
        if path not in _WHOLE:
            self.returned = True
            return lambda rest: reached(rest.run.call, path)  # type: ignore[attr-defined]
        if self.there is not None and key in self.there:
            return _Constant(tree)
        if key in self._met:
            return lambda rest: rest.run.made[key]  # type: ignore[attr-defined]
        self._met[key], build = tree, usual()
        ways = self._ways(tree)
        self.asked += [holds for holds, _ in ways]
        self.returned = self.returned or bool(ways)

        def made(rest: Iterator[Any]) -> Any:
            run: Run = rest.run  # type: ignore[attr-defined]
            one = build(rest)
            for holds, older in ways:  # rarely any, though each call comes by here
                if run.holds(holds):
                    one = older(run.call)
                    break
            run.made[key] = one
            return one

        return made

    def _ways(self, tree: Any) -> list[tuple[Node, Callable[[Any], Any]]]:
        """Return for a container that depends on conditions which given or existing container it is for a call."""
        capture = context.current()
        for one in reversed(() if capture is None else capture.heap.chosen):
            if any(tree is made for made in one.made):
                if one.known and any(self._older(c) for c in one.behind if all(c is not side for *_, side in one.ways)):
                    self.unknown = one.said
                found = [(holds, self._older(side)) for made, holds, side in one.ways if made is tree]
                return [(holds, older) for holds, older in found if older is not None]
        return []

    def _older(self, container: Any) -> Callable[[Any], Any] | None:
        """Return a function that gives a call's counterpart of a container of the trace, or None for a new container."""
        key = id(container)
        if key in self._found:
            path = self._found[key][1]
            return lambda call: reached(call, path)
        return _Constant(container) if self.there is not None and key in self.there else None


class _Constant:
    """A builder that returns an existing object, whose contents are not part of the result."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, _rest: Iterator[Any]) -> Any:
        return self.value


class Copies:
    """Containers passed to a body in place of others, which it would change in Python.

    Parameters
    ----------
    given, copy
        The structures that hold the originals and the copies at the same places.
    """

    def __init__(self, given: Any, copy: Any) -> None:
        self._found: dict[int, tuple[Any, Any, list[Any]]] = {}
        self._find(given, copy)

    def _find(self, given: Any, copy: Any) -> None:
        if not is_container(copy) or given is copy:
            return
        if not isinstance(copy, tuple):
            self._found[id(copy)] = given, copy, _contents(copy)
        for (_, part), (_, other) in zip(parts_of(given), parts_of(copy), strict=False):
            self._find(part, other)

    def _changed(self) -> list[tuple[Any, Any]]:
        return [(given, copy) for given, copy, before in self._found.values() if not _alike(_contents(copy), before)]

    def refuse(self, label: str) -> None:
        """Raise if a copy has changed, since its caller would not see that."""
        if self._changed():
            raise refused(label)

    def put_back(self, was: Mapping[int, Any]) -> None:
        """Change the originals as the copies were changed; ``was`` maps values, by identity, to the originals' values."""
        for given, copy in self._changed():
            now = [(key, self._given(part, was)) for key, part in parts_of(copy)]
            fill(given, [part for _, part in now] if isinstance(given, list) else dict(now))

    def _given(self, value: Any, was: Mapping[int, Any]) -> Any:
        if id(value) in was:
            return was[id(value)]
        if id(value) in self._found:
            return self._found[id(value)][0]
        if not is_container(value):
            return value
        parts = [(key, self._given(part, was)) for key, part in parts_of(value)]
        if all(a is b for (_, a), (_, b) in zip(parts, parts_of(value), strict=True)):
            return value
        if isinstance(value, tuple):
            own = [part for _, part in parts]
            return rebuilt_containers.sequence(type(value), own)
        fill(value, [part for _, part in parts] if isinstance(value, list) else dict(parts))
        return value


def parts_of(container: Any) -> list[tuple[Any, Any]]:
    """Return the items of a container with their keys."""
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
    return [part for pair in parts_of(container) for part in pair]


def _alike(now: Sequence[Any], before: Sequence[Any]) -> bool:
    return len(now) == len(before) and all(
        a is b or (type(a) is type(b) is int and a == b) for a, b in zip(now, before, strict=True)
    )


def reached(value: Any, path: Path) -> Any:
    """Return the value at the end of a path."""
    for key in path:
        value = value[key] if isinstance(value, dict | tuple | list) else getattr(value, key)
    return value


def same_places(call: Any, paths: Iterable[Path]) -> dict[Path, Path]:
    """Return for each path the first one that leads to the same container of a call."""
    first: dict[int, Path] = {}
    return {path: first.setdefault(id(reached(call, path)), path) for path in paths}


def fill(container: Any, contents: Any) -> None:
    """Replace the contents of a container or object."""
    if isinstance(container, list | dict):
        rebuilt_containers.refill(container, contents)
    else:
        for name, _ in parts_of(container):
            if name not in contents:
                object.__delattr__(container, name)
        for name, value in contents.items():
            object.__setattr__(container, name, value)


def refused(label: str, why: str = "") -> CaptureError:
    """Return the error for a change of a container that is an argument."""
    return CaptureError(f"{label} changes a container that is an argument{why}", "Make a new one, and return it.")
