"""The notebook's own variables, where its functions look names up: while a cell runs, they hold what the cell sees, where that matters."""

from __future__ import annotations

import functools
import gc
import inspect
import re
import weakref
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import filterfalse, islice
from types import CellType, CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np

from tensormagic.capture.python.builtin_facts import IN_NAMESPACES
from tensormagic.capture.python.bytecode import named
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.modules import is_users, module_of, package_of

_MOST = 2000  # objects that are visited, and items of one container, at most
_ATOMS = (
    *weakref.ProxyTypes,  # checked first: once its object is freed, nothing else of it can be read
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    np.ndarray,
    np.generic,
    np.dtype,
    Tensor,
    ModuleType,
)
_PARTS: tuple[tuple[Any, tuple[str, ...]], ...] = (  # attributes that lead to further functions
    (MethodType, ("__func__", "__self__")),
    (functools.partial, ("func", "args", "keywords")),
    ((staticmethod, classmethod), ("__func__",)),
    (property, ("fget", "fset")),
)
_LIBRARIES = {"numpy", "scipy", "pandas", "matplotlib", "IPython", "builtins"}
_WHOLE = IN_NAMESPACES | {"get_ipython"}  # names by which code reaches every variable
_MISSING: Any = object()
Holder = list[Any] | dict[Any, Any] | CellType | FunctionType
"""What holds values: of a function, in its defaults."""
_HISTORY = re.compile(r"_i?\d+")
_history: set[str] = set()  # such names that were seen


def variables(space: Mapping[str, Any]) -> list[str]:
    """Return the names of a notebook's variables without IPython's history (``_i12``, ``_12``), of which there may be thousands."""
    found = list(filterfalse(_history.__contains__, space))
    new = {name for name in found if name.startswith("_") and _HISTORY.fullmatch(name)}
    _history.update(new)
    return [name for name in found if name not in new] if new else found


def seen(space: Mapping[str, Any], reads: Collection[str]) -> dict[str, Any]:
    """Return the variables visible to code with these names in it; of IPython's history only those that it names."""
    if not (_WHOLE | {"locals", "dir"}).isdisjoint(reads):
        return dict(space)
    own = variables(space)
    return {name: space[name] for name in (*own, *(n for n in reads if n in _history and n in space))}


def bound(code: CodeType) -> frozenset[str]:
    """Return the names that a cell's code binds, including loop counters and names in its functions."""
    return named(code, "STORE_NAME", "STORE_GLOBAL", "DELETE_NAME", "DELETE_GLOBAL")


class Reach:
    """Represents the notebook variables that functions, reachable from some values, read and bind.

    Parameters
    ----------
    values
        What a cell reads.
    home
        The notebook's variables, the functions' globals.

    ``holders`` contain lazy values: lists, dictionaries (also of attributes), closure cells, and functions with such
    defaults; ``handed`` says whether an object of a library refers to functions, which it calls unchanged.
    """

    def __init__(self, values: Iterable[Any], home: Mapping[str, Any]) -> None:
        self.home = home
        self.holders: list[Holder] = []
        self.reads: set[str] = set()
        self.handed = False
        self.binds: set[str] = set()
        self._seen: set[int] = set()
        self._pending = list(values)
        while self._pending and len(self._seen) < _MOST:
            value = self._pending.pop()
            if not isinstance(value, _ATOMS) and id(value) not in self._seen:
                self._seen.add(id(value))
                self._look(value)

    def _look(self, value: Any) -> None:
        if isinstance(value, FunctionType):
            self._function(value)
        elif (names := next((names for kinds, names in _PARTS if isinstance(value, kinds)), None)) is not None:
            self._pending += [getattr(value, n, None) for n in names]
        elif isinstance(value, list | tuple | set | frozenset | dict):
            items = [*islice(value.values() if isinstance(value, dict) else value, _MOST)]
            self._pending += [v for v in items if not isinstance(v, _ATOMS)]
            if type(value) in {list, dict} and any(map(is_lazy, items)):
                self.holders.append(value)  # type: ignore[arg-type]
            self._follow_library_object([getattr(value, "default_factory", None)])
        elif package_of(type(value)) == "tensormagic":
            self._captured(value)
        elif isinstance(value, type):
            self._pending += [p for c in value.__mro__ if _is_users(c) for p in vars(c).values()]
        elif isinstance(value, weakref.ref):
            self._follow_library_object([value()])
        elif isinstance(value, MappingProxyType) or _librarys_code_runs(value):
            self._follow_library_object([v for v in gc.get_referents(value) if not isinstance(v, type)])
        elif _is_users(type(value)):
            self._pending += [type(value), getattr(value, "__dict__", None)]

    def _follow_library_object(self, values: list[Any]) -> None:
        """Follow what a library's object refers to."""
        inside = [v for value in values for v in (value.values() if isinstance(value, dict) else [value])]
        self.handed = self.handed or any(isinstance(v, FunctionType | MethodType) for v in inside)
        self._pending += values

    def _function(self, function: FunctionType) -> None:
        cells = function.__closure__ or ()
        self._pending += map(content, cells)
        self._pending += [
            *(function.__defaults__ or ()),
            function.__kwdefaults__,
            getattr(function, "__wrapped__", None),
        ]
        self.holders += [cell for cell in cells if is_lazy(content(cell))]
        self.holders += [function] * is_lazy(function.__defaults__)
        self.handed = self.handed or (bool(function.__closure__) and not is_users(function.__code__.co_filename))
        if function.__globals__ is self.home:
            self.binds |= named(function.__code__, "STORE_GLOBAL", "DELETE_GLOBAL")
            names = named(function.__code__, "LOAD_GLOBAL", "LOAD_NAME")
            self._read(names)
            if not _WHOLE.isdisjoint(names):
                self.reads.update(self.home)

    def _captured(self, value: Any) -> None:
        """Follow a captured function of the notebook, which knows what it reads."""
        reads = [name for name, space in getattr(value, "reads", ()) if space is self.home]
        filled = getattr(value, "parameters", ()) if getattr(value, "fills", False) else ()
        self._read([*reads, *filled])
        self._pending.append(getattr(value, "__wrapped__", None))

    def _read(self, names: Iterable[str]) -> None:
        self.reads.update(names)
        self._pending += [self.home[n] for n in names if n in self.home]


def functions_of(values: Iterable[Any], home: Mapping[str, Any]) -> Iterator[FunctionType]:
    """Yield the functions over a notebook's variables reachable from values: methods, wrapped functions, in containers or closures."""
    pending, seen = list(values), set[int]()
    while pending and len(seen) < _MOST:
        value = pending.pop()
        if isinstance(value, _ATOMS) or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, FunctionType):
            if value.__globals__ is home:
                yield value
            pending += [content(cell) for cell in value.__closure__ or ()]
            pending += [*(value.__defaults__ or ()), getattr(value, "__wrapped__", None)]
        elif isinstance(value, type) and value.__module__ == "__main__":
            pending += vars(value).values()
        else:
            pending += _parts(value)


def _parts(value: Any) -> list[Any]:
    names = next((names for kinds, names in _PARTS if isinstance(value, kinds)), ("__wrapped__",))
    if isinstance(value, list | tuple | set | frozenset | dict):
        return list(islice(value.values() if isinstance(value, dict) else value, _MOST))
    own = getattr(value, "__dict__", None) if module_of(type(value)) == "__main__" else None
    found = [inspect.getattr_static(value, n, None) if n == "__wrapped__" else getattr(value, n, None) for n in names]
    return [*found, own, type(value) if own is not None else None]


def _librarys_code_runs(value: Any) -> bool:
    """Return whether code of a library, or in C, runs where an object is called, as with ``functools.cache``."""
    own = isinstance(getattr(type(value), "__call__", None), FunctionType) and _is_users(type(value))  # noqa: B004 (of which kind it is)
    return callable(value) and not own


def _is_users(kind: type) -> bool:
    return package_of(kind) not in _LIBRARIES


def is_lazy(value: Any) -> bool:
    """Return whether a value is lazy, or a tuple with such values."""
    return type(value) is Tensor or (type(value) is tuple and any(map(is_lazy, value)))


def content(cell: CellType) -> Any:
    """Return the content of a closure cell; None if it is empty."""
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


@contextmanager
def holding(home: dict[str, Any], space: Mapping[str, Any]) -> Generator[dict[str, Any]]:
    """Yield the notebook's variables with those of ``space`` added; restore them afterwards."""
    before = dict(home)
    home.update(space)
    try:
        yield home
    finally:
        for name in [n for n in home if n not in before]:
            del home[name]
        for name, value in before.items():
            if home.get(name, _MISSING) is not value:
                home[name] = value
