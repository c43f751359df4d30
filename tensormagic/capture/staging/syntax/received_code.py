"""Code that came from another process, and where its source text is.

Pickles of functions by value may leave out the files of their code, or the file has another text here. Code is
therefore known by a mark, which is the same in every process, and is given the file that has its text when it is
first met.
"""

from __future__ import annotations

import linecache
import zlib
from collections.abc import Iterable
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any, cast

_UNKNOWN = "<dynamic-code>"  # the file name of all code that cloudpickle brings, from its version 3.1.3 on
_files: dict[int, str] = {}


def arrive(name: str, text: str, marks: Iterable[int]) -> None:
    """Keep the text of a file from another process, for the code with these marks; a file that has another text here keeps that."""
    own = name
    if "".join(linecache.getlines(name)) != text:
        if linecache.getlines(name):
            own = f"{name} (arrived {zlib.crc32(text.encode()):08x})"
        _keep(own, text)
    for known in marks:
        _files[known] = own
    if not linecache.getlines(_UNKNOWN):
        _keep(_UNKNOWN, "# code from another process\n")  # a name that makes it count as the user's


def _keep(name: str, text: str) -> None:
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)


def located(code: CodeType) -> CodeType:
    """Return ``code`` with the file that has its text, where that has arrived; else itself."""
    own = _files.get(mark(code)) if _files else None
    return code if own is None or own == code.co_filename else renamed(code, own)


def locate(function: FunctionType) -> None:
    """Give the code of a function that has arrived its file, for everything that holds the function."""
    if _files and (code := located(function.__code__)) is not function.__code__:
        function.__code__ = code


@lru_cache(maxsize=4096)
def mark(code: CodeType) -> int:
    """Return a checksum that is the same for the same code on the same lines, in any file and any process."""
    return zlib.crc32(repr(parts_of(code)).encode())


def parts_of(value: Any) -> Any:
    """Return the part of a value that :func:`mark` hashes: code without its file, sets sorted."""
    if isinstance(value, CodeType):
        own = (value.co_name, value.co_firstlineno, value.co_code, value.co_linetable, value.co_names)
        return (*own, parts_of(value.co_consts))
    if isinstance(value, tuple):
        return tuple([parts_of(v) for v in cast("tuple[Any, ...]", value)])
    if isinstance(value, frozenset):
        return sorted([repr(parts_of(v)) for v in cast("frozenset[Any]", value)])
    return value


def renamed(code: CodeType, filename: str) -> CodeType:
    """Return code moved to another file, including nested code."""
    constants = tuple([renamed(c, filename) if isinstance(c, CodeType) else c for c in code.co_consts])
    return code.replace(co_filename=filename, co_consts=constants)
