"""From a kernel's source to PTX: numba-cuda's front end and NVIDIA's NVVM, used as compilers only. Needs no driver and no card.

NVVM is called here and not through numba-cuda, which would load NVRTC for the architectures that it knows and a library of
functions that kernels have no use for; and products and sums stay apart, as NumPy rounds them.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, lru_cache
from importlib import import_module, metadata
from typing import Any

import numpy as np

from tensormagic.backend import cache as disk
from tensormagic.backend.cuda.launch import UnsupportedError
from tensormagic.backend.messages import Code
from tensormagic.ir.errors import DeviceError

HOW = "pip install 'tensormagic[gpu]'"
FORMAT = 4  # of what is kept on disk
MOST_KEPT = 512  # kernels in memory
_lock = threading.Lock()


class MissingCompilerError(DeviceError, ImportError):
    """What compiles kernels for a graphics card is not installed."""


@lru_cache(MOST_KEPT)
def ptx(source: str, types: tuple[str, ...], written: tuple[bool, ...], cc: tuple[int, int] = (9, 0)) -> Code:
    """PTX of the function ``kernel`` in a source, from the disk cache where it is there.

    Parameters
    ----------
    source
        The text of the kernel and of the functions that it calls.
    types
        For each parameter ``"*float32"``, a pointer, or ``"int64"``, a number.
    written
        For each parameter whether the kernel stores there; no other pointer leads to what one that it does not write to shows.
    cc
        The compute capability of the card.
    """
    key = "cuda-" + hashlib.sha256(repr((FORMAT, source, types, written, cc, versions())).encode()).hexdigest()
    found = disk.read(key)
    if found is None:
        found = _compiled(source, types, written, cc)
        disk.write(key, found)
    return found


@cache
def versions() -> tuple[str, ...]:
    """The versions of what compiles kernels."""
    try:
        found = [metadata.version("numba-cuda")]
    except metadata.PackageNotFoundError:
        raise MissingCompilerError(
            "the package numba-cuda is missing, which compiles for a graphics card", HOW
        ) from None
    for name in ("numba", "llvmlite", "cuda-bindings", "nvidia-nvvm"):  # NVVM may be that of an installed toolkit
        with suppress(metadata.PackageNotFoundError):
            found.append(f"{name} {metadata.version(name)}")
    return (*found, np.__version__)


def is_there() -> bool:
    """Whether there is a compiler."""
    try:
        versions()
    except MissingCompilerError:
        return False
    return True


def _compiled(source: str, types: Sequence[str], written: Sequence[bool], cc: tuple[int, int]) -> Code:
    begin = time.perf_counter()
    with _lock:
        dialect, front = _dialect()
        names: dict[str, Any] = {**dialect.NAMES, "np": np}
        exec(compile(source, "<kernel>", "exec"), names)  # noqa: S102 (the project's own text)
        for name, function in names.items():
            if callable(function) and getattr(function, "__code__", None) is not None and name != "kernel":
                names[name] = front.inlined(function)
        try:
            symbol, text = dialect.lowered(names["kernel"], types, written, cc)
            data = front.assembled(text, cc)
        except Exception as error:  # of whatever kind: the library computes the nodes
            raise UnsupportedError(f"the compiler refuses a kernel: {error}") from error
        return Code(symbol, data, time.perf_counter() - begin)


@cache
def _dialect() -> Any:
    """The files that know numba-cuda; NumPy 2.5 lacks a name that it looks at while it is imported."""
    versions()
    name = "row_stack"
    old = not hasattr(np, name)
    try:
        if old:
            setattr(np, name, np.vstack)
        import_module("numba.cuda.np.arrayobj")
        return tuple(import_module(f"tensormagic.backend.cuda.{file}") for file in ("dialect", "front"))
    except ImportError as error:
        message = f"what compiles for a graphics card cannot be loaded: {error}"
        raise MissingCompilerError(message, HOW) from error
    finally:
        if old:
            delattr(np, name)
