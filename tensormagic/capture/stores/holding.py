"""Arrays in containers, objects and functions of the notebook: lazy while a storing cell is captured, so that stores reach them."""

from __future__ import annotations

import ast
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from types import CellType, CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from tensormagic.capture.foreign import rebuilt_containers
from tensormagic.capture.inputs import snapshots
from tensormagic.capture.inputs.items import Lifting
from tensormagic.capture.inputs.notebook_names import content
from tensormagic.capture.python.bytecode import names_in, stores, within
from tensormagic.capture.staging.trials.attributes import Attributes, containers_of, is_users_class, is_users_module
from tensormagic.capture.stores.alias import beside, end
from tensormagic.capture.stores.overlap import connect, share
from tensormagic.capture.stores.place import Buffer, Place
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.modules import is_users, may_be_users, module_of
from tensormagic.ir.plain_texts import key_text
from tensormagic.ir.type import Size

LIMIT = 2000  # arrays and containers that are visited, at most
_STORING = {
    "fill",
    "sort",
    "put",
    "place",
    "putmask",
    "copyto",
    "fill_diagonal",
    "at",
    "resize",
    "partition",
    "out",
    "shuffle",
    "put_along_axis",
    "nan_to_num",
    *(
        f"__i{name}__"
        for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor")
    ),
    *("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "imatmul"),  # from ``operator``
}


_ATOMS = (type(None), bool, int, float, complex, str, bytes, np.ndarray, np.generic, Tensor)
_FUNCTIONS: dict[type, tuple[str, ...]] = {  # attributes of what holds functions in classes
    property: ("fget", "fset", "fdel"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    cached_property: ("func",),
}


_HOLDING = {np.ndarray, list, dict, tuple, deque}  # classes of class attributes that are walked through


class Recast(dict[str, Any]):
    """The notebook's variables, some of them in another dtype: ``originals`` has the unconverted values."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.originals: dict[str, Any] = dict(values.originals) if isinstance(values, Recast) else {}


@dataclass
class Held:
    """Represents the arrays found in containers.

    Parameters
    ----------
    tensors
        The lazy array of each array, by its id.
    fresh
        Those that the cell does not read by a name.
    back
        By the id of each replacement: the replacement and the original.
    """

    tensors: dict[int, Tensor] = field(default_factory=dict[int, Tensor])
    fresh: list[Tensor] = field(default_factory=list[Tensor])
    back: dict[int, tuple[Any, Any]] = field(default_factory=dict[int, tuple[Any, Any]])

    def original(self, value: Any) -> Any:
        """Return the notebook's own tuple for one that replaced it; other values unchanged."""
        new, old = self.back.get(id(value), (None, None))
        return old if new is value and isinstance(value, tuple) else value

    def arrays(self) -> list[Any]:
        """Return the arrays that have a lazy array."""
        return [t.place.buffer.array for t in self.tensors.values()]


def notebooks_array(place: Place, number: Callable[[Size], int]) -> Any:
    """Return the notebook's array at a place, or NumPy's view of it; None if NumPy cannot make a view.

    ``number`` evaluates sizes; a data-dependent one is computed.
    """
    return place.within(place.buffer.array, number)


@contextmanager
def lifted(
    source: str,
    visible: dict[str, Any],
    notebook: Mapping[str, Any],
    found: Mapping[str, Tensor],
    moving: Iterable[str] = (),
) -> Generator[Held]:
    """Replace arrays that ``visible`` names lead to by lazy ones, if a cell stores anywhere; put the arrays back afterwards.

    So it is for what ``moving`` names lead to, which gradients are with respect to, where a cell stores nowhere.
    """
    held = Held({id(t.place.buffer.array): t for t in found.values() if t.place.buffer.array is not None})
    roots = {n: notebook[n] for n in visible if n not in found}
    originals = notebook.originals if isinstance(notebook, Recast) else {}
    search = _Search(held, [v for v in roots.values() if isinstance(v, np.ndarray)], found, originals)
    roots = {n: v for n, v in roots.items() if not isinstance(v, ModuleType) or is_users_module(v)}
    if roots and not _stores(ast.parse(source)) and not any(map(search.stores, roots.values())):
        roots = {n: v for n, v in roots.items() if n in moving}
    for name, value in roots.items():
        if isinstance(value, tuple):
            visible[name] = search.replaced(value, name)
        else:
            search.walk(value, name)
    try:
        yield held
    finally:
        held.back = search.back
        search.restore()
        for tensor in held.fresh:
            end(tensor.place.buffer, "an earlier cell")


def _stores(tree: ast.AST) -> bool:
    """Return whether code stores into something that is not a name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AugAssign):
            return True
        if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
            return True
        if isinstance(node, ast.Attribute) and node.attr in _STORING:
            return True
        if isinstance(node, ast.keyword) and node.arg == "out":
            return True
    return False


def _code_stores(code: CodeType) -> bool:
    """Return whether compiled code, or a function in it, stores into something that is not a name."""
    texts = [c for part in within(code) for c in part.co_consts if isinstance(c, tuple)]
    return stores(code) or not _STORING.isdisjoint(names_in(code)) or any("out" in t for t in texts)


def is_own(value: Any) -> bool:
    """Return whether an object is an instance of a class that the user has written."""
    kind = type(value)
    if issubclass(kind, ModuleType | type | Tensor) or next(containers_of(value), None) is None:
        return False
    return kind is SimpleNamespace or module_of(kind) in {"__main__", "builtins"} or _is_of_users_file(kind)


def attributes_of(value: Any) -> Iterable[MutableMapping[str, Any]]:
    """Return the mappings of the attributes of an object of a user's class; nothing for others."""
    return containers_of(value) if is_own(value) else ()


def _methods(value: Any) -> list[FunctionType]:
    """Return the functions of a user's class, or of an object of one, with properties and static methods."""
    kind = value if isinstance(value, type) else type(value)
    classes = [c for c in kind.__mro__ if c.__module__ in {"__main__", "builtins"} or _is_of_users_file(c)]
    own = [v for c in classes for v in vars(c).values()]
    inside = [getattr(v, name, None) for v in own for name in _FUNCTIONS.get(type(v), ())]
    return [v for v in (*own, *inside) if isinstance(v, FunctionType)]


def _referents(value: Any) -> list[Any]:
    """Return the objects that a function, an object or a container refers to."""
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, FunctionType):
        if not may_be_users(value.__code__.co_filename):
            return []
        named = [value.__globals__.get(n) for n in names_in(value.__code__)]
        cells = [content(cell) for cell in value.__closure__ or ()]
        return [*named, *cells, *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    if isinstance(value, partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, dict):
        return list(islice(value.values(), LIMIT))
    if isinstance(value, list | tuple | deque):
        return list(islice(value, LIMIT))
    if isinstance(value, type):
        return list(_methods(value))
    if is_users_module(value):
        return list(vars(value).values())
    if not is_own(value):
        return []
    return [*_methods(value), *(v for inside in containers_of(value) for v in inside.values())]


def _part(name: str) -> Callable[[Any], str]:
    return lambda key: f"{name}.{key}"


def _is_of_users_file(kind: type) -> bool:
    file = getattr(sys.modules.get(module_of(kind)), "__file__", None)
    return file is not None and is_users(file)


class _Search:
    """Walks containers, objects and functions, and puts lazy arrays into them."""

    def __init__(self, held: Held, raw: list[Any], found: Mapping[str, Tensor], originals: Mapping[str, Any]) -> None:
        self.held = held
        self.originals = {n: a for n, a in originals.items() if n in found and isinstance(a, np.ndarray)}
        self.raw = raw  # arrays that the cell reads unchanged
        self.found = found
        self.seen: dict[int, Any] = {}
        self.classes: set[type] = set()
        self.undo: list[Callable[[], None]] = []
        own = [t for n, t in found.items() if n not in originals and t.place.buffer.array is not None]
        self.back: dict[int, tuple[Any, Any]] = {id(t): (t, t.place.buffer.array) for t in own}

    # whether anything stores ------------------------------------------------------------------------------------------

    def stores(self, value: Any) -> bool:
        """Return whether calling ``value``, one of its methods, or anything reachable from it, may store into an array."""
        pending, seen = [value], dict[int, Any]()
        while pending and len(seen) < LIMIT:
            one = pending.pop()
            if isinstance(one, _ATOMS) or id(one) in seen:
                continue
            seen[id(one)] = one
            if isinstance(one, FunctionType) and may_be_users(one.__code__.co_filename) and _code_stores(one.__code__):
                return True
            pending += _referents(one)
        return False

    # lazy arrays for arrays -------------------------------------------------------------------------------------------

    def walk(self, value: Any, name: str) -> None:
        """Put lazy arrays into ``value``, which is found under ``name``."""
        if id(value) in self.seen or len(self.seen) > LIMIT:
            return
        if isinstance(value, MethodType):
            self.walk(value.__self__, name)
            value = value.__func__
        self.seen[id(value)] = value
        self._inside(value, name)
        if is_own(value) or isinstance(value, type):
            for method in _methods(value):
                self.walk(method, name)
            self._classes(value if isinstance(value, type) else type(value))

    def _inside(self, value: Any, name: str) -> None:
        """Put lazy arrays into what a container, a function or an object holds."""
        if isinstance(value, dict):
            self._entries(value, list(value), lambda k: f"{name}[{key_text(k)}]")
        elif isinstance(value, Lifting):
            return  # one lazy array already
        elif isinstance(value, list | deque):
            self._entries(value, range(len(value)), lambda k: f"{name}[{k}]")
        elif isinstance(value, FunctionType):
            self._function(value)
        elif isinstance(value, partial):
            for part in (value.func, *value.args, *value.keywords.values()):
                self.walk(part, name)
        elif is_users_module(value):
            self._entries(vars(value), [k for k in vars(value) if not k.startswith("__")], _part(name))
        elif is_own(value):
            for inside in containers_of(value):
                self._entries(inside, list(inside), _part(name))

    def _classes(self, kind: type) -> None:
        """Put lazy arrays into the attributes of the user's classes themselves."""
        for base in kind.__mro__:
            if is_users_class(base) and base not in self.classes:
                self.classes.add(base)
                inside = Attributes(base)
                self._entries(inside, [k for k in inside if type(inside[k]) in _HOLDING], _part(base.__name__))

    def _entries(self, holder: Any, keys: Iterable[Any], name: Callable[[Any], str]) -> None:
        for key in keys:
            new = self.replaced(holder[key], name(key))
            if new is not holder[key]:
                holder[key] = new
        self.undo.append(lambda: self._put_back(holder))

    def _defaults(self, function: FunctionType) -> None:
        old = function.__defaults__ or ()
        new = self.replaced(old, function.__name__)
        if new is not old:
            function.__defaults__ = new

            def undo() -> None:
                if function.__defaults__ is new:
                    function.__defaults__ = old

            self.undo.append(undo)
        if function.__kwdefaults__:
            self.walk(function.__kwdefaults__, function.__name__)

    def _function(self, function: FunctionType) -> None:
        if not may_be_users(function.__code__.co_filename):
            return
        self._defaults(function)
        space = function.__globals__
        for name in sorted(names_in(function.__code__)):
            if name in space and not name.startswith("__"):
                new = self._named(space[name], name)
                if new is not space[name]:
                    self._name(space, name, new)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self._cell(cell, name)

    def _name(self, space: dict[str, Any], name: str, new: Any) -> None:
        old = space[name]
        space[name] = new

        def undo() -> None:
            if space.get(name) is new:
                space[name] = old

        self.undo.append(undo)

    def _cell(self, cell: CellType, name: str) -> None:
        try:
            old = cell.cell_contents
        except ValueError:  # not filled yet
            return
        new = self.replaced(old, name)
        if new is old:
            return
        cell.cell_contents = new

        def undo() -> None:
            if cell.cell_contents is new:
                cell.cell_contents = old

        self.undo.append(undo)

    def _named(self, value: Any, name: str) -> Any:
        """Return what a function finds under a global name: the cell's own lazy array, where the cell reads that name, too."""
        tensor = self.found.get(name)
        if isinstance(value, np.ndarray) and tensor is not None and tensor.place.buffer.array is not None:
            return tensor
        return self.replaced(value, name)

    def replaced(self, value: Any, name: str) -> Any:
        """Return a lazy array for an array, a tuple with lazy arrays for one with arrays; walk through anything else."""
        if type(value) is np.ndarray:
            return self._tensor(value, name)
        if isinstance(value, tuple):
            parts = [self.replaced(v, f"{name}[{k}]") for k, v in enumerate(value)]
            if all(a is b for a, b in zip(parts, value, strict=True)):
                return value
            new = rebuilt_containers.sequence(type(value), parts)
            self.back[id(new)] = new, value
            return new
        self.walk(value, name)
        return value

    def _tensor(self, array: Any, name: str) -> Any:
        known = self.held.tensors.get(id(array))
        if known is None:
            if not _is_supported(array) or len(self.held.tensors) > LIMIT or any(share(array, r) for r in self.raw):
                return array
            buffer = Buffer.unread(array, name, lambda: snapshots.of_array(array, name))
            for other in self.held.arrays():
                if share(array, other):
                    connect(self.held.tensors[id(other)].place.buffer, buffer)
            for cast, original in self.originals.items():
                if share(array, original):  # the cell has it as a copy in another dtype
                    beside(buffer, cast)
                    beside(self.found[cast].place.buffer, name)
            known = self.held.tensors[id(array)] = Tensor(Place(buffer))
            self.held.fresh.append(known)
        self.back[id(known)] = known, array
        return known

    # afterwards -------------------------------------------------------------------------------------------------------

    def _put_back(self, holder: Any) -> None:
        for key in list(holder) if isinstance(holder, MutableMapping) else range(len(holder)):
            new, old = self.back.get(id(holder[key]), (None, None))
            if new is not None and new is holder[key]:
                holder[key] = old

    def restore(self) -> None:
        """Put the arrays back where their lazy arrays still are."""
        for undo in reversed(self.undo):
            undo()


def _is_supported(array: Any) -> bool:
    return (
        array.dtype.kind in "biufc"
        and array.dtype.isnative
        and array.dtype.itemsize <= (16 if array.dtype.kind == "c" else 8)
    )
