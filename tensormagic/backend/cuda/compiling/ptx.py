"""Compile a kernel's source to PTX by numba-cuda's front end and NVIDIA's NVVM, without a driver or a GPU.

NVVM is called here and not through numba-cuda, which would load NVRTC for the architectures that it knows and a
library of functions that kernels do not use; and products and sums stay unfused, as NumPy rounds them.

Only the compile worker imports this: it takes a second, the front end changes the warnings of the whole process
while it works, and no thread of a session may run meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from tensormagic.backend.compiling.messages import Code

_OLD = "row_stack"  # NumPy 2.5 lacks this name, which numba-cuda looks up while it is imported


def compile_kernel(source: str, types: Sequence[str], written: Sequence[bool], cc: tuple[int, int]) -> Code:
    """Return the PTX of the function ``kernel`` in a source; the arguments are as in `Request`."""
    begin = time.perf_counter()
    names: dict[str, Any] = {**dialect.NAMES, "np": np}
    exec(compile(source, "<kernel>", "exec"), names)  # noqa: S102 (the project's own text)
    for name, function in list(names.items()):
        if callable(function) and getattr(function, "__code__", None) is not None and name != "kernel":
            own: dict[str, Any] = function.__globals__  # functions are defined before those that call them
            own.update({called: names[called] for called in function.__code__.co_names if called in names})
            names[name] = front.inlined(function)
    symbol, text = dialect.lowered(names["kernel"], types, written, cc)
    return Code(symbol, front.assembled(text, cc), time.perf_counter() - begin)


def _imported() -> list[Any]:
    old = not hasattr(np, _OLD)
    try:
        if old:
            setattr(np, _OLD, np.vstack)
        import_module("numba.cuda.np.arrayobj")
        return [import_module(f"tensormagic.backend.cuda.compiling.{file}") for file in ("dialect", "front")]
    finally:
        if old:
            delattr(np, _OLD)


dialect, front = _imported()
