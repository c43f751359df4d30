"""The source texts of functions that travel by value: to be captured where they arrive, their loops and branches have to be read there.

Functions of cells, of scripts, and within others are found under no name elsewhere. What is sent with them is the text of
their files, as it was where they were made; on arrival it is what `linecache` gives for these files.
"""

from __future__ import annotations

import linecache
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any, cast

from tensormagic.capture.staging.source import is_users
from tensormagic.functions.named import named

Texts = dict[str, bytes]
_ARRIVED = " (arrived {})"


def texts_of(root: Any, inner: Callable[[Any], Any]) -> Texts:
    """The texts of the files of a function, and of the functions that it reads, as far as these travel by value.

    Parameters
    ----------
    root
        The function.
    inner
        What a made function was made of; None for anything else.
    """
    files = {f.__code__.co_filename for f in _reached(root, inner) if not _has_name(f)}
    texts = {name: "".join(linecache.getlines(name)) for name in sorted(files)}
    return {name: zlib.compress(text.encode()) for name, text in texts.items() if text}


def take(root: Any, texts: Texts, inner: Callable[[Any], Any]) -> None:
    """Have the texts of a function that has arrived at hand; where a file of that name has another text, its code is renamed."""
    renamed: dict[str, str] = {}
    for name, packed in texts.items():
        text = zlib.decompress(packed).decode()
        if "".join(linecache.getlines(name)) != text:
            own = name + _ARRIVED.format(f"{zlib.crc32(packed):08x}") if linecache.getlines(name) else name
            linecache.cache[own] = (len(text), None, text.splitlines(keepends=True), own)
            renamed[name] = own
            is_users.cache_clear()
    changed = {name: own for name, own in renamed.items() if name != own}
    for function in _reached(root, inner) if changed else ():
        own = changed.get(function.__code__.co_filename)
        if own and not _has_name(function):
            function.__code__ = _renamed(function.__code__, own)


def _renamed(code: CodeType, filename: str) -> CodeType:
    constants = tuple([_renamed(c, filename) if isinstance(c, CodeType) else c for c in code.co_consts])
    return code.replace(co_filename=filename, co_consts=constants)


def _has_name(function: FunctionType) -> bool:
    """Whether a module that can be imported has a function under its name: it travels by that."""
    module = function.__module__
    if not module or module == "__main__":
        return False
    found: Any = sys.modules.get(module)
    for part in function.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is not None


def _reached(root: Any, inner: Callable[[Any], Any]) -> Iterator[FunctionType]:
    """The functions of Python's that a function may run, as far as its names and cells lead to them."""
    pending, seen = [root], set[int]()
    while pending:
        value: Any = pending.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        source = inner(value)
        if source is not None:
            pending += [source, _class_of(source)]
        elif isinstance(value, FunctionType):
            yield value
            pending += _read_by(value)
        elif isinstance(value, MethodType):
            pending += [value.__func__, type(value.__self__)]
        elif isinstance(value, partial):
            pending += [value.func, *value.args]
        elif isinstance(value, staticmethod | classmethod):
            pending.append(cast("Any", value).__func__)
        elif isinstance(value, type) and value.__module__ == "__main__":
            pending += vars(value).values()


def _read_by(function: FunctionType) -> list[Any]:
    """What the names, cells and defaults of a function hold."""
    space = function.__globals__
    held = [space[name] for name in named(function.__code__).reads if name in space]
    for cell in function.__closure__ or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:  # nothing yet
            continue
    return [*held, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values(), _class_of(function)]


def _class_of(function: Any) -> Any:
    """The class that a method of a script stands in: its methods call each other."""
    path = getattr(function, "__qualname__", "").split(".")
    found = sys.modules.get(getattr(function, "__module__", None) or "")
    return getattr(found, path[0], None) if len(path) > 1 else None
