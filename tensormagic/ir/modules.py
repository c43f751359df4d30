"""Where classes and code come from: this package, the user, or a library."""

from __future__ import annotations

import linecache
import os
import sysconfig
from functools import lru_cache
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).resolve().parents[1]
_LIBRARIES = tuple(
    {str(Path(sysconfig.get_path(kind)).resolve()) for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
)
_INSTALLED = frozenset({"site-packages", "dist-packages"})  # names of folders for packages, wherever they are

PURE = frozenset({
    "numpy", "scipy", "math", "cmath", "operator", "_operator", "functools", "_functools", "itertools", "copy", "collections",
    "_collections", "typing", "dataclasses", "builtins", "tensormagic", "numbers", "fractions", "string", "re", "abc", "enum", "ml_dtypes",
})  # fmt: skip
"""Packages whose functions depend on their operands alone, except NumPy's random draws and a few of ``builtins``."""

PURE_OF_VALUES = frozenset({
    "_collections_abc", "_abc", "types", "bisect", "_bisect", "heapq", "_heapq", "contextlib", "statistics", "_statistics",
    "__future__", "typing_extensions", "reprlib", "json", "_json", "struct", "_struct", "textwrap", "base64", "binascii", "colorsys",
    "pickle", "_pickle", "array",
})  # fmt: skip
"""Further modules of Python's, whose functions do not know lazy values."""

CHANGES_NOTHING = frozenset({
    "datetime", "_datetime", "_pydatetime", "time", "calendar", "zoneinfo", "decimal", "_decimal", "_pydecimal", "uuid", "unicodedata",
    "zlib", "hashlib", "_hashlib", "_md5", "_sha1", "_sha2", "_sha3", "_blake2", "posixpath", "ntpath", "genericpath",
})  # fmt: skip
"""Modules whose functions may read clocks and files, but change nothing, so that calling them twice does no harm."""


def is_pure(module: str, more: frozenset[str] = frozenset()) -> bool:
    """Return whether the functions of a module depend on their arguments alone: its package is in ``PURE`` or in ``more``."""
    package = module.partition(".")[0]
    return (package in PURE or package in more) and not module.startswith("numpy.random")


def module_of(kind: type) -> str:
    """Return the name of a class's module, or an empty text if there is none (Cython's function classes have a descriptor instead)."""
    found: Any = kind.__module__
    return found if isinstance(found, str) else ""


def package_of(kind: type) -> str:
    """Return the top-level package of a class."""
    return module_of(kind).partition(".")[0]


@lru_cache(maxsize=4096)
def is_users(filename: str) -> bool:
    """Return whether a file is the user's: a cell, or a file outside installed libraries."""
    if filename.startswith("<"):
        return not filename.startswith("<frozen") and bool(linecache.getlines(filename))
    path = os.path.realpath(filename)
    return not path.startswith((str(_PACKAGE) + os.sep, *_LIBRARIES)) and not _is_installed(Path(path))


def _is_installed(file: Path) -> bool:
    """Return whether a file lies in a folder of installed packages: a user site, a distribution's, or a target of pip."""
    if not _INSTALLED.isdisjoint(file.parts):
        return True
    folder = file.parent
    while (folder / "__init__.py").exists() and folder.parent != folder:
        folder = folder.parent
    return _has_packages(folder)


@lru_cache(maxsize=256)
def _has_packages(folder: Path) -> bool:
    """Return whether pip has installed packages into a folder, which then has ``*.dist-info`` folders."""
    return next(folder.glob("*.dist-info"), None) is not None


def may_be_users(filename: str) -> bool:
    """Return whether :func:`is_users` holds for a file; True for code made by ``exec``, whose text is unknown."""
    return not filename.startswith("<frozen") if filename.startswith("<") else is_users(filename)
