"""The source texts of functions that are pickled by value, which are needed where these arrive, to capture their loops and branches.

Functions of cells, of scripts, and within others are found under no name elsewhere. The texts of their files are sent
with them, as they were where the functions were made; on arrival `linecache` gives them for the files of their code.
"""

from __future__ import annotations

import linecache
import sys
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any, cast

from tensormagic.capture.python.bytecode import within
from tensormagic.capture.staging.syntax.received_code import arrive, mark
from tensormagic.functions.reads.names_in_code import named
from tensormagic.ir.modules import is_users

Texts = dict[str, tuple[bytes, frozenset[int]]]
"""For each file its text, compressed, and the marks of the code in it."""


def texts_of(root: Any, inner: Callable[[Any], Any]) -> Texts:
    """Return the texts of the files of a function and of the functions it reads, as far as these are pickled by value.

    Parameters
    ----------
    root
        The function.
    inner
        What a made function was made of; None for anything else.
    """
    reached = {f.__code__ for f in _reached(root, inner) if not _has_name(f)}
    texts = {name: "".join(linecache.getlines(name)) for name in sorted({code.co_filename for code in reached})}
    return {
        name: (zlib.compress(text.encode()), frozenset(map(mark, _codes(name, text, reached))))
        for name, text in texts.items()
        if text
    }


def take(texts: Texts) -> None:
    """Make the texts of functions that have arrived available."""
    for name, (packed, marks) in texts.items():
        arrive(name, zlib.decompress(packed).decode(), marks)
    is_users.cache_clear()  # its results depend on texts


def _codes(name: str, text: str, reached: Iterable[CodeType]) -> Iterator[CodeType]:
    """Yield the code of a file's functions: of those reached, and of its classes."""
    pending = [code for code in reached if code.co_filename == name]
    with suppress(SyntaxError), warnings.catch_warnings(action="ignore"):  # a cell may have lines in IPython's syntax
        pending.append(compile(text, name, "exec", dont_inherit=True))
    for code in pending:
        yield from within(code)


def _has_name(function: FunctionType) -> bool:
    """Return whether a module that can be imported has a function under its name, by which it is then pickled."""
    module = function.__module__
    if not module or module == "__main__":
        return False
    found: Any = sys.modules.get(module)
    for part in function.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is not None


def _reached(root: Any, inner: Callable[[Any], Any]) -> Iterator[FunctionType]:
    """Yield the Python functions that a function may run, as far as its names and cells lead to them."""
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
    """Return the values of a function's names, cells and defaults."""
    space = function.__globals__
    held = [space[name] for name in named(function.__code__).reads if name in space]
    for cell in function.__closure__ or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:  # the cell is still empty
            continue
    return [*held, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values(), _class_of(function)]


def _class_of(function: Any) -> Any:
    """Return the class of a script's method, whose methods call each other."""
    path = getattr(function, "__qualname__", "").split(".")
    found = sys.modules.get(getattr(function, "__module__", None) or "")
    return getattr(found, path[0], None) if len(path) > 1 else None
