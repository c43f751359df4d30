"""Findings of first calls about the texts of functions, kept on disk, so that known texts need not be analysed again.

A record is named by everything it depends on: the texts, the meanings of their names, the kind of the arguments, the
level, and the versions of Python, NumPy and this package.
"""

from __future__ import annotations

import atexit
import hashlib
import marshal
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from tensormagic.backend.compiling import cache
from tensormagic.backend.compiling.messages import Code
from tensormagic.capture.staging.analysis.ordinary import Kept, Ordinary, meanings
from tensormagic.capture.staging.syntax import source
from tensormagic.capture.staging.syntax.received_code import parts_of, renamed
from tensormagic.config import config

Verdicts = dict[frozenset[Any], bool]
"""Whether rules change nothing in the texts, by the loops of at most one iteration and the folds of one element."""

_RECORD = "first-"
_MOST = 256  # records that wait to be written
_SECONDS = 0.25  # seconds in which records are completed when the process ends
_PARTS = "capture", "ir", "ops", "transform"  # packages that determine the content of a record
enabled = True


@dataclass(eq=False)
class Memory:
    """The stored findings about the texts of a call.

    Parameters
    ----------
    codes
        The code objects of the functions.
    beside
        The other parts of the record's key.
    kept
        The record; None if there is none.
    verdicts, squares
        Which rules apply in the texts, as far as that was asked.
    """

    codes: list[CodeType]
    beside: tuple[Any, ...]
    kept: Kept | None = None
    verdicts: Verdicts = field(default_factory=Verdicts)
    squares: str = ""

    @cached_property
    def key(self) -> str:
        """The name of the record."""
        texts = [(parts_of(code), code.co_varnames, source.text_of(code)) for code in self.codes]
        return _RECORD + hashlib.sha256(repr((self.beside, texts)).encode()).hexdigest()

    @property
    def files(self) -> list[str]:
        """The files that contain the texts."""
        return [code.co_filename for code in self.codes]


class Note(NamedTuple):
    """A record waiting to be written, and a function that completes it."""

    memory: Memory
    kept: Kept
    complete: Callable[[], Kept | None] | None


def memory_of(found: Ordinary, args: tuple[Any, ...]) -> Memory | None:
    """Return the stored findings about the texts of a call, or None if nothing is stored."""
    if not enabled or _VERSIONS is None:
        return None
    beside = _VERSIONS, config.level(""), [*map(_kind, args)], [*meanings(found)]
    memory = Memory([f.__code__ for f in found.reached], beside)
    code = cache.read(memory.key) if _is_there(memory) else None
    if code is not None:
        with suppress(ValueError, EOFError, TypeError, IndexError):
            _take(memory, marshal.loads(code.data))  # noqa: S302 (nobody else could have written it)
    return memory


def _is_there(memory: Memory) -> bool:
    """Return whether the folder had the record when it was first read: missing records are not searched for again."""
    records = _records(config.cache_folder)
    return bool(records) and memory.key in records


@lru_cache(maxsize=16)
def _records(folder: Path) -> frozenset[str]:
    """Return the names of the records in a folder."""
    with suppress(OSError):
        return frozenset([path.stem for path in folder.iterdir() if path.name.startswith(_RECORD)])
    return frozenset()


def _kind(value: Any) -> Any:
    """Return the part of an argument that decides which rules apply: the value of an integer, and which axes have one element."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, tuple([min(n, 2) for n in value.shape])
    known = isinstance(value, int | np.integer | np.bool_)
    return type(value).__name__, int(value) if known else None


_Record = tuple[bool, tuple[tuple[int, int], ...], list[Any], list[Any], str]


def _take(memory: Memory, record: _Record) -> None:
    looks, counted, copies, verdicts, squares = record
    made = {(k, looked, noted): _in_file(code, memory.files[k]) for k, looked, noted, code in copies}
    memory.verdicts = {frozenset(_placed(one, memory.files) for one in shorts): nothing for shorts, nothing in verdicts}
    memory.squares = squares
    memory.kept = Kept(looks, counted, made)


def _placed(short: Any, files: list[str]) -> Any:
    (k, *place), count = short
    return (files[k], *place), count


def _record(memory: Memory, kept: Kept) -> bytes:
    copies = [(*key, code) for key, code in kept.copies.items()]
    verdicts = [
        ([((memory.files.index(file), *place), count) for (file, *place), count in shorts], nothing)
        for shorts, nothing in memory.verdicts.items()
    ]
    return marshal.dumps((kept.looks, kept.counted, copies, verdicts, memory.squares))


def _in_file(code: CodeType, file: str) -> CodeType:
    """Return code, with the places recorded in it, relocated to the file where its text is now."""
    before = code.co_filename
    constants = tuple([(file, *c[1:]) if isinstance(c, tuple) and c[:1] == (before,) else c for c in code.co_consts])
    return renamed(code.replace(co_consts=constants), file)


# writing --------------------------------------------------------------------------------------------------------------

_waiting: dict[int, Note] = {}  # by the identities of their contents, as they get their names when they are written


def note(memory: Memory, kept: Kept, complete: Callable[[], Kept | None] | None = None) -> None:
    """Store the knowledge about a call's texts at the end of the process; ``complete`` adds to it before that."""
    if memory.kept is not None:
        kept = kept._replace(copies={**memory.kept.copies, **kept.copies})
    _waiting[id(memory)] = Note(memory, kept, complete)
    while len(_waiting) > _MOST:
        _waiting.pop(next(iter(_waiting)))


@atexit.register
def write() -> None:
    """Write the waiting records."""
    until, written = time.perf_counter() + _SECONDS, set[str]()
    while _waiting:
        _, (memory, kept, complete) = _waiting.popitem()
        if memory.key in written:  # a later note has more
            continue
        written.add(memory.key)
        with suppress(Exception):
            more = complete() if complete is not None and time.perf_counter() < until else None
            if more is not None:
                kept = kept._replace(copies={**kept.copies, **more.copies})
            cache.write_for_later(memory.key, Code("first call", _record(memory, kept), 0.0))
    _records.cache_clear()


def _versions() -> tuple[Any, ...] | None:
    """Return what records depend on apart from the user's program: versions, and this package's files, which may change within a version.

    None if the package is not in files.
    """
    here = Path(__file__).parent
    package = here.parents[1]
    try:
        files = [f for part in _PARTS for f in _files(package / part)] + [
            *_files(here, "first_call.py", "remembered_calls.py")
        ]
    except OSError:
        return None
    return sys.version, np.__version__, hashlib.sha256(repr(files).encode()).hexdigest()


def _files(folder: Path, *only: str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda e: e.name):
            if entry.name.endswith(".py") and (not only or entry.name in only):
                status = entry.stat()
                yield entry.name, status.st_mtime_ns, status.st_size
            elif not only and entry.name != "__pycache__" and entry.is_dir():
                yield from _files(Path(entry.path))


_VERSIONS = _versions()  # computed at import, since files that change later are not the running code
