"""From plans to running machine code: the cache first, else the compile worker; never in the way of the caller.

The process that calls this does not import Numba: a worker process compiles, and object code is loaded from the cache.
"""

from __future__ import annotations

import atexit
import os
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Literal

from tensormagic.backend import cache
from tensormagic.backend.compiler import Compiler
from tensormagic.backend.messages import Code
from tensormagic.backend.plan import Plan
from tensormagic.backend.telling import tell_once
from tensormagic.ir.type import Symbol

State = Literal["pending", "ready", "failed"]


Answer = tuple[str, str, Code | None, str]  # a key, its source, and the code or the error
Work = Callable[[], None]


class Handle:
    """A plan on its way to machine code.

    Attributes
    ----------
    plan
        What is compiled.
    error
        Why there will be no machine code; empty otherwise.
    compile_seconds
        The time that the compiler took for the kernels that had to be compiled.
    from_cache
        Whether all machine code was there already.
    """

    def __init__(self, plan: Plan, on_ready: Callable[[Handle], None] | None = None) -> None:
        self.plan = plan
        self.error = ""
        self.compile_seconds = 0.0
        self.from_cache = True
        self.run: Callable[..., list[Any]] = self._not_ready
        self._on_ready = on_ready
        self._done = threading.Event()
        self._functions: dict[str, Callable[..., None] | None] = {}
        self._errors: list[str] = []

    def _not_ready(self, sizes: dict[Symbol, int], *values: Any) -> list[Any]:
        raise RuntimeError(self.error or "the machine code is not ready")

    @property
    def state(self) -> State:
        """``"pending"``, ``"ready"`` or ``"failed"``."""
        if not self._done.is_set():
            return "pending"
        return "failed" if self.error else "ready"

    def ready(self) -> bool:
        """Whether ``run`` may be called."""
        return self.state == "ready"

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until there is machine code, or an error, at most ``timeout`` seconds; whether it is ready."""
        self._done.wait(timeout)
        return self.ready()

    def take(self, source: str, function: Callable[..., None] | None, error: str = "") -> None:
        """One kernel is there, or will not be: NumPy does its part. With the last one the handle is ready."""
        self._functions[source] = function
        if function is None:
            self._errors.append(error)
        if len(self._functions) == len(self.plan.sources):
            if len(self._errors) == len(self._functions) or (self._errors and self.plan.grows):
                self.finish(self._errors[0])
                return
            self.run = self.plan.compile([self._functions[s] for s in self.plan.sources])
            self.finish("")

    def finish(self, error: str) -> None:
        """The handle is ready, or has failed."""
        if self._done.is_set():
            return
        self.error = error
        self._done.set()
        if self._on_ready is not None:
            self._on_ready(self)

    def abandon(self, error: str) -> None:
        """Fail in a forked child: the thread that held the old event's lock may be missing there."""
        self._done = threading.Event()
        self.finish(error)


def start(plan: Plan, on_ready: Callable[[Handle], None] | None = None) -> Handle:
    """Have ``plan`` compiled; returns at once.

    Parameters
    ----------
    plan
        What to compile.
    on_ready
        Called with the handle when it is ready or has failed, on another thread.
    """
    handle = Handle(plan, on_ready)
    if not plan.sources:
        handle.run = plan.compile([])
        handle.finish("")
    elif not compiles() and _lent.keys().isdisjoint(plan.sources):
        handle.finish(NO_COMPILER)
    else:
        _service().submit(handle)
    return handle


def prepare() -> None:
    """Have the loader and the compile worker started, in the background: the first plan is then compiled sooner."""
    if compiles():
        _service().prepare()


NO_COMPILER = "Numba is not installed"
_MOST_LENT = 4096
_lent: OrderedDict[str, Code] = OrderedDict()  # code by its source, from files that can be trusted


def lend(codes: Mapping[str, Code]) -> None:
    """Have code at hand for these sources, which need not be compiled then: of this machine, and to be trusted."""
    if find_spec("llvmlite") is not None:
        _lent.update(codes)
        while len(_lent) > _MOST_LENT:
            _lent.popitem(last=False)


def codes(sources: Sequence[str], timeout: float = 60.0) -> dict[str, Code]:
    """The object code of these sources, as far as it is kept; what has just been compiled is waited for."""
    found: dict[str, Code] = {}
    if find_spec("llvmlite") is None:
        return found
    done = threading.Event()

    def look() -> None:
        from tensormagic.backend.cpu_loader import key_of

        try:
            known = ((source, _lent.get(source) or cache.read(key_of(source))) for source in sources)
            found.update((source, code) for source, code in known if code is not None)
        finally:
            done.set()

    _service().ask(look)
    done.wait(timeout)
    return dict(found)


def compiles() -> bool:
    """Whether there is a compiler."""
    return find_spec("numba") is not None


class _Service:
    """One thread that loads what the cache has, and asks the compiler for the rest."""

    def __init__(self) -> None:
        self._requests: queue.SimpleQueue[Handle | Answer | Work | None] = queue.SimpleQueue()
        self._compiler = Compiler(lambda *answer: self._requests.put(answer))
        self._waiting: dict[str, list[tuple[Handle, str]]] = {}
        self._loaded: dict[str, Callable[..., None]] = {}
        self.handles: list[Handle] = []
        threading.Thread(target=self._work, name="tensormagic loader", daemon=True).start()

    def submit(self, handle: Handle) -> None:
        """Put a handle into the queue of what is to be compiled and loaded."""
        self.handles = [h for h in self.handles if h.state == "pending"] + [handle]
        self._requests.put(handle)

    def ask(self, work: Work) -> None:
        """Put work into the queue, behind all that is there."""
        self._requests.put(work)

    def prepare(self) -> None:
        """Import and start what the first handle needs."""
        self._compiler.prepare()
        self._requests.put(None)

    def _work(self) -> None:
        while True:
            item = self._requests.get()
            try:
                if item is None:
                    _warm_loader()
                elif isinstance(item, Handle):
                    self._begin(item)
                elif callable(item):
                    item()
                else:
                    self._answered(*item)
            except Exception as error:  # noqa: BLE001 (the handle says so; the thread goes on)
                key = item[0] if isinstance(item, tuple) else ""
                failed = [item] if isinstance(item, Handle) else [h for h, _ in self._waiting.pop(key, [])]
                for handle in failed:
                    handle.finish(f"{type(error).__name__}: {error}")

    def _begin(self, handle: Handle) -> None:
        from tensormagic.backend.cpu_loader import key_of  # llvmlite takes a tenth of a second to import

        for source in sorted(handle.plan.sources, key=len, reverse=True):  # the longest takes longest
            key = key_of(source)
            if self._offer(key, source, handle):
                continue
            if not compiles():
                handle.take(source, None, NO_COMPILER)
            else:
                handle.from_cache = False
                waiting = self._waiting.setdefault(key, [])
                waiting.append((handle, source))
                if len(waiting) == 1:
                    self._compiler.submit(key, source)

    def _offer(self, key: str, source: str, handle: Handle) -> bool:
        """Give a handle a kernel that is in memory or on disk."""
        function = self._loaded.get(key)
        if function is None:
            code = _lent.get(source) or cache.read(key)
            if code is None:
                return False
            function = self._load(key, code)
        handle.take(source, function)
        return True

    def _load(self, key: str, code: Code) -> Callable[..., None]:
        from tensormagic.backend.cpu_loader import load

        function = self._loaded[key] = load(code)
        return function

    def _answered(self, key: str, source: str, code: Code | None, error: str) -> None:
        """Give all who wait for a kernel its code, then keep it; or the error."""
        function = None
        if code is not None:
            try:
                function = self._load(key, code)
            except RuntimeError as wrong:
                error = f"the compiled code does not load: {wrong}"
        with _keeping:
            for handle, _ in self._waiting.pop(key, []):
                handle.compile_seconds += code.seconds if code is not None else 0.0
                handle.take(source, function, error)
            if code is not None and function is not None:
                cache.write(key, code)
        if code is None or function is None:
            tell_once(f"NumPy computes what could not be compiled: {error}")


def _warm_loader() -> None:
    from tensormagic.backend.cpu_loader import key_of

    key_of("")


_current: _Service | None = None
_lock = threading.Lock()
_keeping = threading.Lock()  # held while code is handed out and written to the cache
_PATIENCE = 1.0  # seconds that the end of a process waits for that


@atexit.register
def _wait_until_kept() -> None:
    if _keeping.acquire(timeout=_PATIENCE):
        _keeping.release()


def _service() -> _Service:
    global _current
    with _lock:
        if _current is None:
            _current = _Service()
        return _current


def _after_fork() -> None:
    global _current, _lock, _keeping
    _lock, _keeping = threading.Lock(), threading.Lock()
    old, _current = _current, None
    for handle in old.handles if old else ():
        handle.abandon("the process was forked while this was compiled")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def compiled(plan: Plan, timeout: float = 60.0) -> Handle:
    """A handle that is ready.

    Raises
    ------
    RuntimeError
        Where the plan does not compile in time.
    """
    handle = start(plan)
    begin = time.monotonic()
    if not handle.wait(timeout):
        raise RuntimeError(handle.error or f"not compiled in {time.monotonic() - begin:.0f} s")
    return handle
