"""Machine code on disk, in a folder that only the user can write.

Files are named by all that decides their content, and written by atomic rename. Knows neither graphs nor compilers.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
import warnings
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tensormagic.config import config

MOST_BYTES = 512 << 20


@dataclass(frozen=True)
class Code:
    """Object code of one kernel.

    Parameters
    ----------
    symbol
        The function's name.
    data
        The object file.
    seconds
        How long it took to compile.
    """

    symbol: str
    data: bytes
    seconds: float


def folder() -> Path:
    """``config.cache_folder``, made if it is not there.

    A folder that others own or can write is refused with a warning; a private temporary one serves this process then.
    """
    return _usable(config.cache_folder)


@cache
def _usable(path: Path) -> Path:
    problem = _problem(path)
    if problem:
        warnings.warn(f"compiled code is not kept: {problem}", RuntimeWarning, stacklevel=3)
        return Path(tempfile.mkdtemp(prefix="tensormagic-"))
    return path


def _problem(path: Path) -> str:
    """Why a folder cannot be trusted with code that will be run; empty where it can."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.stat()
    except OSError as error:
        return f"{path}: {error}"
    if hasattr(os, "getuid"):
        if status.st_uid != os.getuid():
            return f"{path} belongs to somebody else"
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return f"others can write in {path}"
    return "" if os.access(path, os.W_OK) else f"{path} cannot be written"


def _file(place: Path, key: str) -> Path:
    return place / f"{key}.o"


def read(place: Path, key: str) -> Code | None:
    """What is kept under ``key``; None where nothing is, or where the file is damaged."""
    path = _file(place, key)
    try:
        head, _, data = path.read_bytes().partition(b"\n")
        header = json.loads(head)
        if header["sha256"] != hashlib.sha256(data).hexdigest():
            return None
        code = Code(header["symbol"], data, header["seconds"])
    except (OSError, ValueError, KeyError):
        return None
    with suppress(OSError):
        os.utime(path)
    return code


def write(place: Path, key: str, code: Code) -> None:
    """Keep ``code`` under ``key``, and forget what was not used for longest where there is too much."""
    header = {"symbol": code.symbol, "seconds": code.seconds, "sha256": hashlib.sha256(code.data).hexdigest()}
    handle, name = tempfile.mkstemp(dir=place, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(json.dumps(header).encode() + b"\n" + code.data)
        Path(name).replace(_file(place, key))
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _evict(place)


def _evict(place: Path) -> None:
    files: list[tuple[float, int, Path]] = []
    for path in place.glob("*.o"):
        with suppress(OSError):
            status = path.stat()
            files.append((status.st_mtime, status.st_size, path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= MOST_BYTES:
            return
        with suppress(OSError):
            path.unlink()
        total -= size
