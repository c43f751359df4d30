"""The process that compiles: reads kernels as source on its standard input, writes object code into the cache, answers.

``python -m tensormagic.backend.worker COUNT``. Messages are JSON behind their length. It ends when its
input does, or with its parent.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import struct
import sys
import threading
import time
from pathlib import Path
from typing import Any, BinaryIO

from tensormagic.backend import cache

# Compiled when there is nothing to compile yet: Numba is imported, and knows what every kernel uses.
_WARM = """
def kernel(table):
    x = array(table, 1, "float64", 0)
    for start in range(0, table[2], 1024):
        if stopped(table):
            return
        stop = start + 1024 if start + 1024 < table[2] else table[2]
        total = 0.0
        for i in range(start, stop):
            total = add_reassoc(total, exp(x[i] * real(table, 3)))
        x[start // 1024] = max_propagate(total, 1 / total)
"""
_LENGTH = struct.Struct(">I")


def send(stream: BinaryIO, message: dict[str, Any]) -> None:
    """Write one message."""
    data = json.dumps(message).encode()
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def receive(stream: BinaryIO) -> dict[str, Any] | None:
    """Read one message; None at the end of the stream."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = stream.read(length)
    return json.loads(data) if len(data) == length else None


def compile_source(source: str) -> cache.Code:
    """Object code for a kernel's source; the function is called as Numba calls: ``f(result*, exception*, table*)``.

    Raises
    ------
    RuntimeError
        Where the code needs a symbol that a process without Numba does not have.
    """
    import numpy as np
    from numba import types
    from numba.core import compiler, registry

    from tensormagic.backend.cpu_types import NAMES

    begin = time.perf_counter()
    names: dict[str, Any] = {**NAMES, "np": np, "math": math}
    exec(compile(source, "<kernel>", "exec"), names)  # noqa: S102 (the project's own text)
    flags: Any = compiler.Flags()
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    flags.error_model = "numpy"
    target = registry.cpu_target
    arguments = (types.CPointer(types.int64),)
    result = compiler.compile_extra(
        target.typing_context, target.target_context, names["kernel"], arguments, types.void, flags, {}
    )
    library = result.library
    _refuse_foreign(library._final_module)  # noqa: SLF001 (Numba has no public way to object code)
    data = library._get_compiled_object()  # noqa: SLF001
    return cache.Code(result.fndesc.llvm_func_name, data, time.perf_counter() - begin)


def _refuse_foreign(module: Any) -> None:
    process = ctypes.CDLL(None)
    names = [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]
    missing = [name for name in names if name.startswith(("numba", "NRT", "Py", "_Py")) or not hasattr(process, name)]
    if missing:
        raise RuntimeError(f"the code needs {', '.join(missing)}")


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Do what a request asks."""
    try:
        code = compile_source(request["source"])
        cache.write(Path(request["folder"]), request["key"], code)
    except Exception as error:  # noqa: BLE001 (whatever goes wrong is the answer)
        return {"key": request["key"], "error": f"{type(error).__name__}: {error}"[:4000]}
    return {"key": request["key"], "error": "", "seconds": code.seconds}


def _follow_parent() -> None:
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(0)


def main(most: int) -> None:
    """Answer requests until there are none, or ``most`` are answered."""
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not be taken for an answer
    if hasattr(os, "getppid"):
        threading.Thread(target=_follow_parent, daemon=True).start()
    while most and (request := receive(sys.stdin.buffer)) is not None:
        if request:
            send(output, answer(request))
            most -= 1
        else:
            compile_source(_WARM)


if __name__ == "__main__":
    main(int(sys.argv[1]))
