"""The process that compiles: reads kernels as source on its standard input, and answers with object code.

``python worker.py COUNT``. Messages are JSON behind their length; an empty one says that it is alive. It ends when its
input does, or with its parent. It keeps nothing: no file stands between it and who asked. It imports the compiler's files
alone, and neither NumPy nor what else the package is.
"""

from __future__ import annotations

import base64
import gc
import io
import os
import sys
import threading
import time
from types import ModuleType
from typing import Any

# Compiled when there is nothing to compile yet: what every kernel uses is then imported and known.
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
BEAT = 1.0  # seconds between signs of life
COLLECTED = 8  # so many answers apart garbage is collected


def _stand_in() -> None:
    """Have the package's files found without running its own: a session's imports take ten times as long as the compiler's."""
    package = ModuleType("tensormagic")
    package.__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]  # noqa: PTH100, PTH120 (pathlib takes a while)
    sys.modules["tensormagic"] = package


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Do what a request asks."""
    from tensormagic.backend.cpu_code import compile_source

    try:
        code = compile_source(request["source"])
    except Exception as error:  # noqa: BLE001 (whatever goes wrong is the answer)
        return {"key": request["key"], "error": f"{type(error).__name__}: {error}"[:4000]}
    data = base64.b64encode(code.data).decode()
    return {"key": request["key"], "error": "", "symbol": code.symbol, "data": data, "seconds": code.seconds}


def _warm() -> None:
    from tensormagic.backend.cpu_code import compile_source

    compile_source(_WARM)


def _follow_parent() -> None:
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(0)


class _Output:
    """Where answers go; while there is work, a sign of life goes between them every second."""

    def __init__(self) -> None:
        from tensormagic.backend.messages import send

        self._send = send
        self._stream = io.FileIO(os.dup(1), "w")
        self._lock = threading.Lock()
        self.busy = threading.Event()
        os.dup2(2, 1)  # what a library prints must not be taken for an answer
        threading.Thread(target=self._live, daemon=True).start()

    def send(self, message: dict[str, Any]) -> None:
        """Write one message."""
        with self._lock:
            self._send(self._stream, message)

    def _live(self) -> None:
        while True:
            self.send({})
            time.sleep(BEAT)
            self.busy.wait()


def main(most: int) -> None:
    """Answer requests until there are none, or ``most`` are answered."""
    from tensormagic.backend.messages import receive

    output = _Output()
    requests = io.FileIO(os.dup(0), "r")
    if hasattr(os, "getppid"):
        threading.Thread(target=_follow_parent, daemon=True).start()
    gc.disable()  # searching for cycles takes a sixth of a compilation: now and then behind an answer is enough
    while most and (request := receive(requests)) is not None:
        output.busy.set()
        if request:
            output.send(answer(request))
            most -= 1
            if most % COLLECTED == 0:
                gc.collect()
        else:
            _warm()
            gc.collect()
            gc.freeze()
        output.busy.clear()


if __name__ == "__main__":
    _stand_in()
    main(int(sys.argv[1]))
