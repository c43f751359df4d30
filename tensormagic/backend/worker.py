"""The process that compiles: reads kernels as source on its standard input, writes object code into the cache, answers.

``python -m tensormagic.backend.worker COUNT``. Messages are JSON behind their length. It ends when its
input does, or with its parent.
"""

from __future__ import annotations

import gc
import json
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
COLLECTED = 8  # so many answers apart garbage is collected
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


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Do what a request asks."""
    from tensormagic.backend.cpu_code import compile_source

    try:
        code = compile_source(request["source"])
        cache.write(Path(request["folder"]), request["key"], code)
    except Exception as error:  # noqa: BLE001 (whatever goes wrong is the answer)
        return {"key": request["key"], "error": f"{type(error).__name__}: {error}"[:4000]}
    return {"key": request["key"], "error": "", "seconds": code.seconds}


def _warm() -> None:
    from tensormagic.backend.cpu_code import compile_source

    compile_source(_WARM)


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
    gc.disable()  # searching for cycles takes a sixth of a compilation: now and then behind an answer is enough
    while most and (request := receive(sys.stdin.buffer)) is not None:
        if request:
            send(output, answer(request))
            most -= 1
            if most % COLLECTED == 0:
                gc.collect()
        else:
            _warm()
            gc.collect()
            gc.freeze()


if __name__ == "__main__":
    main(int(sys.argv[1]))
