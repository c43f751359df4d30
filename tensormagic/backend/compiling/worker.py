"""The process that compiles: reads kernels as source on its standard input, and answers with object code, or with PTX for a GPU.

``python worker.py COUNT``. Messages are JSON behind their length; an empty one says that it is alive. It ends when its
input does, or with its parent. It keeps nothing: no file stands between it and who asked. It imports the compiler's files
alone, and neither NumPy nor what else the package is; what compiles for a GPU, and NumPy with it, once that is asked for.
Where several kernels are asked for at once, copies of it compile side by side.
"""

from __future__ import annotations

import base64
import gc
import io
import json
import os
import select
import sys
import threading
import time
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

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
MOST_AT_ONCE = 4  # kernels that are compiled side by side, on as many processors
SOON = 0.002  # seconds in which another request belongs to the same plan


def _stand_in() -> None:
    """Make the package's modules importable without running the package itself, whose imports take ten times as long."""
    package = ModuleType("tensormagic")
    package.__path__ = [os.path.abspath(__file__).rsplit(os.sep, 3)[0]]  # noqa: PTH100 (pathlib takes a while)
    sys.modules["tensormagic"] = package


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Do what a request asks."""
    try:
        code = _compiled(**request)
    except Exception as error:  # noqa: BLE001 (whatever goes wrong is the answer)
        return {"key": request["key"], "error": f"{type(error).__name__}: {error}"[:4000]}
    data = base64.b64encode(code.data).decode()
    return {"key": request["key"], "error": "", "symbol": code.symbol, "data": data, "seconds": code.seconds}


def _compiled(source: str, kind: str, types: list[str], written: list[bool], cc: list[int], **_key: Any) -> Any:
    if kind == "card":
        from tensormagic.backend.cuda.compiling.ptx import compile_kernel

        return compile_kernel(source, types, written, (cc[0], cc[1]))
    from tensormagic.backend.cpu.code import compile_source

    return compile_source(source)


def _load(kind: str) -> None:
    """Import the GPU compiler if it is asked for, so that forked copies have it."""
    if kind == "card":
        with suppress(Exception):  # the answer says what is wrong
            import_module("tensormagic.backend.cuda.compiling.ptx")


def _warm() -> None:
    from tensormagic.backend.cpu.code import compile_source

    compile_source(_WARM)


def _follow_parent() -> None:
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(0)


class _Output:
    """Where answers go; during work, a sign of life is sent every second."""

    def __init__(self) -> None:
        from tensormagic.backend.compiling.messages import send

        self._send = send
        self.stream = io.FileIO(os.dup(1), "w")
        self._lock = threading.Lock()
        self._working = 0
        self._busy = threading.Event()
        os.dup2(2, 1)  # what a library prints must not be taken for an answer
        threading.Thread(target=self._live, daemon=True).start()

    def send(self, message: dict[str, Any]) -> None:
        """Write one message."""
        with self._lock:
            self._send(self.stream, message)

    def work(self, more: int) -> None:
        """Note that the amount of work at hand has grown by ``more``, or shrunk."""
        with self._lock:
            self._working += more
            (self._busy.set if self._working else self._busy.clear)()

    def _live(self) -> None:
        while True:
            self.send({})
            time.sleep(BEAT)
            self._busy.wait()


class _Copies:
    """Forked copies of this process, each of which compiles one kernel."""

    def __init__(self, requests: io.FileIO, output: _Output) -> None:
        self._requests, self._output = requests, output
        self._alive = 0
        self._lock = threading.Lock()
        cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
        self._most = min(MOST_AT_ONCE, cores) - 1  # beside this process

    def take(self, request: dict[str, Any]) -> bool:
        """Let a copy answer a request, if another request is waiting and there is a free processor."""
        if self._alive >= self._most or not select.select([self._requests], [], [], SOON)[0]:
            return False
        ours, theirs = os.pipe()
        process = os.fork()
        if not process:
            self._answer(request, theirs)
        os.close(theirs)
        self._count(1)
        self._output.work(1)
        threading.Thread(target=self._collect, args=(process, ours, request["key"])).start()
        return True

    def _count(self, more: int) -> None:
        with self._lock:
            self._alive += more

    def _answer(self, request: dict[str, Any], pipe: int) -> NoReturn:
        """Answer a request in the copy, which first closes the session's pipes: otherwise the session's end would go unnoticed."""
        try:
            for stream in (self._requests.fileno(), self._output.stream.fileno(), 0):
                os.close(stream)
            threading.Thread(target=_follow_parent, daemon=True).start()
            with os.fdopen(pipe, "wb") as stream:
                stream.write(json.dumps(answer(request)).encode())
        finally:
            os._exit(0)

    def _collect(self, process: int, pipe: int, key: str) -> None:
        with os.fdopen(pipe, "rb") as stream:
            data = stream.read()
        os.waitpid(process, 0)
        self._count(-1)
        try:
            message = json.loads(data)
        except ValueError:
            message = {"lost": key}
        with suppress(OSError):  # the session has ended
            self._output.send(message)
        self._output.work(-1)


def main(most: int) -> None:
    """Answer requests until there are none, or ``most`` are answered."""
    from tensormagic.backend.compiling.messages import receive

    output = _Output()
    requests = io.FileIO(os.dup(0), "r")
    copies = _Copies(requests, output)
    if hasattr(os, "getppid"):
        threading.Thread(target=_follow_parent, daemon=True).start()
    gc.disable()  # searching for cycles takes a sixth of a compilation: now and then behind an answer is enough
    while most and (request := receive(requests)) is not None:
        output.work(1)
        if request:
            _load(request["kind"])
            if not copies.take(request):
                output.send({"at": request["key"]})
                output.send(answer(request))
            most -= 1
            if most % COLLECTED == 0:
                gc.collect()
        else:
            _warm()
            gc.collect()
            gc.freeze()
        output.work(-1)


if __name__ == "__main__":
    _stand_in()
    main(int(sys.argv[1]))
