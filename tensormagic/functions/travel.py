"""How functions made of the user's functions bind as methods and are pickled: by the maker and its arguments.

A made function holds graphs, machine code and names of its process. The user's function with its text, and the
options, are pickled instead, and traced anew on arrival; if the made function is found under its name in a module,
only the name is pickled.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, ClassVar, ParamSpec, TypeVar, cast

from tensormagic.functions.texts import Texts, take, texts_of

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
_MAKERS: dict[str, Callable[..., Any]] = {}
_PORTABLE = ".portable"


class Made:
    """An object made by :func:`maker`: bound as a method like its function, and pickled by what it was made of."""

    made: tuple[str, tuple[Any, ...], dict[str, Any]] | None = None
    offered: ClassVar[tuple[str, ...]] = ("source",)

    def __dir__(self) -> list[str]:
        """Return the names offered for completion."""
        return sorted({*(n for n in object.__dir__(self) if n.startswith("__")), *self.offered})

    @property
    def source(self) -> Any:
        """The function that this was made of, or None if it is not known."""
        return self.made[1][0] if self.made is not None and self.made[1] else None

    @property
    def binds(self) -> bool:
        """Whether it becomes a method in a class, as a Python function does and a ufunc does not."""
        source = self.source
        return source.binds if isinstance(source, Made) else isinstance(source, FunctionType)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None or not self.binds else MethodType(cast("Callable[..., Any]", self), instance)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self.made is None:
            return super().__reduce_ex__(protocol)
        module, name = getattr(self, "__module__", ""), getattr(self, "__qualname__", "")
        maker_name, args, options = self.made
        if module != "__main__":
            if _found(module, name) is self:
                return name
        elif isinstance(self.source, FunctionType):
            args = (self.portable, *args[1:])
        return remade, (maker_name, args, options, texts_of(self.source, _inner))

    def __dask_tokenize__(self) -> Any:
        """Return Dask's identity: what it was made of, or the file it came from."""
        if self.made is not None:
            name, args, options = self.made
            return "tensormagic", name, args, options
        make, args = cast("tuple[Any, Any]", self.__reduce_ex__(4)[:2])
        return "tensormagic", make, args

    @functools.cached_property
    def portable(self) -> Any:
        """The script's function under an importable name, if the function made of it has taken its own."""
        function = self.source
        if not isinstance(function, FunctionType):
            return function
        name = function.__qualname__
        if name.endswith(_PORTABLE):
            return function
        found = _found(function.__module__, name)
        while isinstance(found, Made) and found is not self:
            found, name = found.source, f"{name}.source"
        if found is not self:
            return function
        same = FunctionType(
            function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        )
        same.__kwdefaults__ = function.__kwdefaults__
        same.__dict__.update(function.__dict__)
        same.__module__, same.__doc__ = function.__module__, function.__doc__
        same.__qualname__ = name + _PORTABLE
        return same


def sealed(kind: type[T]) -> type[T]:
    """Return the class with the fields of a dataclass hidden, as Dask searches them for its own tasks."""
    kind.__dataclass_fields__ = {}  # type: ignore[attr-defined]
    return kind


def maker(make: Callable[P, R]) -> Callable[P, R]:
    """Return ``make`` such that its results remember its arguments; a class or static method is made again as such."""

    @functools.wraps(make)
    def making(*args: Any, **options: Any) -> Any:
        given = args[0] if args else None
        if isinstance(given, classmethod | staticmethod):
            return type(given)(making(given.__func__, *args[1:], **options))
        found: Any = cast("Callable[..., Any]", make)(*args, **options)
        if isinstance(found, Made) and found.made is None:
            object.__setattr__(found, "made", (make.__name__, args, options))
            if isinstance(given, FunctionType | Made):
                own = getattr(given, "__qualname__", "").partition(_PORTABLE)[0]
                object.__setattr__(found, "__module__", getattr(given, "__module__", None))
                object.__setattr__(found, "__qualname__", own)
        return found

    _MAKERS[make.__name__] = making
    return cast("Callable[P, R]", making)


def _inner(value: Any) -> Any:
    """Return the object that a made function was made from, or None for other values."""
    return value.source if isinstance(value, Made) else None


def remade(name: str, args: tuple[Any, ...], options: dict[str, Any], texts: Texts) -> Any:
    """Return the result of a maker for these arguments, or the existing one if it is found under the name."""
    source = args[0]
    take(texts)
    path = getattr(source, "__qualname__", "")
    found = _found(getattr(source, "__module__", ""), path.partition(_PORTABLE)[0].partition(".source")[0])
    while isinstance(found, Made) and found.made is not None:
        if found.source is source or (isinstance(source, FunctionType) and found.portable is source):
            try:
                if found.made[0] == name and (found.made[1][1:], found.made[2]) == (args[1:], options):
                    return found
            except ValueError:  # the options contain arrays
                break
        found = found.source
    if isinstance(source, FunctionType):
        source.__qualname__ = path.partition(_PORTABLE)[0].partition(".source")[0]
    return _MAKERS[name](*args, **options)


def _found(module: str | None, name: str) -> Any:
    """Return the object under a dotted name in a module, or None if there is none."""
    found: Any = sys.modules.get(module or "")
    for part in name.split("."):
        found = getattr(found, part, None)
    return found
