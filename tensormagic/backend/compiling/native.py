"""From plans to running machine code: the cache first, else the compile worker; never in the way of the caller.

The process that calls this does not import Numba: a worker process compiles, and object code is loaded from the cache.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

from tensormagic.backend.compiling import cache
from tensormagic.backend.compiling.messages import Code, Request
from tensormagic.backend.compiling.service import Awaited, Service, service
from tensormagic.backend.planning.plan import Plan
from tensormagic.ir.type import Symbol


class Handle(Awaited):
    """A plan on its way to machine code.

    Parameters
    ----------
    plan
        What to compile, or what makes it: on the service's thread then.
    on_ready
        Called with the handle when it is ready or has failed, on another thread.

    Attributes
    ----------
    plan
        What is compiled.
    compile_seconds
        The time that the compiler took for the kernels that had to be compiled.
    from_cache
        Whether all machine code was there already.
    """

    plan: Plan

    def __init__(self, plan: Plan | Callable[[], Plan], on_ready: Callable[[Handle], None] | None = None) -> None:
        super().__init__()
        self._make: Callable[[], Plan] | None = None
        if callable(plan):
            self._make = plan
        else:
            self.plan = plan
        self.compile_seconds = 0.0
        self.from_cache = True
        self.run: Callable[..., list[Any]] = self._not_ready
        self._on_ready = on_ready
        self._functions: dict[str, Callable[..., None] | None] = {}
        self._errors: list[str] = []

    def _not_ready(self, sizes: dict[Symbol, int], *values: Any) -> list[Any]:
        raise RuntimeError(self.error or "the machine code is not ready")

    def begin(self, service: Service) -> None:
        """Take each kernel that is in memory or on disk, and request the others."""
        if self._make is not None:
            make, self._make = self._make, None
            self.plan = make()
            if self.needs_none():
                return
        from tensormagic.backend.cpu.loader import key_of  # llvmlite takes a tenth of a second to import

        for source in sorted(self.plan.sources, key=len, reverse=True):  # the longest takes longest
            key = key_of(source)
            code = None if key in _loaded else _lent.get(source) or cache.read(key)
            if key in _loaded or code is not None:
                self.take(source, _function(key, code))
            elif not compiles():
                self.take(source, None, NO_COMPILER)
            else:
                self.from_cache = False
                service.compile(self, key, Request(source), partial(self._answered, key, source))

    def needs_none(self) -> bool:
        """Return whether no service is needed: nothing to compile, or no compiler."""
        if not self.plan.sources:
            self.run = self.plan.compile([])
            self.finish("")
        elif not compiles() and _lent.keys().isdisjoint(self.plan.sources):
            self.finish(NO_COMPILER)
        return self._done.is_set()

    def _answered(self, key: str, source: str, code: Code | None, error: str) -> bool:
        """Handle the answer for one kernel; returns whether it loads."""
        function = None
        if code is not None:
            self.compile_seconds += code.seconds
            try:
                function = _function(key, code)
            except RuntimeError as wrong:
                error = f"the compiled code does not load: {wrong}"
        if function is None:
            self.tell(error)
        self.take(source, function, error)
        return function is not None

    def take(self, source: str, function: Callable[..., None] | None, error: str = "") -> None:
        """Accept one kernel, or its failure, in which case NumPy does its part; the last one makes the handle ready."""
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
        super().finish(error)
        if self._on_ready is not None:
            self._on_ready(self)


_loaded: dict[str, Callable[..., None]] = {}  # of the service's thread


def _function(key: str, code: Code | None) -> Callable[..., None]:
    """Return the function of a kernel, loaded once."""
    if code is not None and key not in _loaded:
        from tensormagic.backend.cpu.loader import load

        _loaded[key] = load(code)
    return _loaded[key]


def start(plan: Plan | Callable[[], Plan], on_ready: Callable[[Handle], None] | None = None) -> Handle:
    """Compile ``plan`` (or what it makes on another thread) in the background; returns at once.

    Parameters
    ----------
    plan, on_ready
        See :class:`Handle`.
    """
    handle = Handle(plan, on_ready)
    if callable(plan) or not handle.needs_none():
        service().submit(handle)
    return handle


def prepare() -> None:
    """Start the loader and the compile worker in the background, so that the first plan compiles sooner."""
    if compiles():
        service().compiler.prepare()
        service().ask(_warm_loader)


def _warm_loader() -> None:
    from tensormagic.backend.cpu.loader import key_of

    key_of("")


NO_COMPILER = "Numba is not installed"
_MOST_LENT = 4096
_lent: OrderedDict[str, Code] = OrderedDict()  # code by its source, from files that can be trusted


def lend(codes: Mapping[str, Code]) -> None:
    """Provide code for these sources, which then need not be compiled; it must be this machine's, and trusted."""
    if find_spec("llvmlite") is not None:
        _lent.update(codes)
        while len(_lent) > _MOST_LENT:
            _lent.popitem(last=False)


def codes(sources: Sequence[str], timeout: float = 60.0) -> dict[str, Code]:
    """Return the stored object code of these sources; code that has just been compiled is waited for."""
    found: dict[str, Code] = {}
    if find_spec("llvmlite") is None:
        return found
    done = threading.Event()

    def look() -> None:
        from tensormagic.backend.cpu.loader import key_of

        try:
            known = ((source, _lent.get(source) or cache.read(key_of(source))) for source in sources)
            found.update((source, code) for source, code in known if code is not None)
        finally:
            done.set()

    service().ask(look)
    done.wait(timeout)
    return dict(found)


def compiles() -> bool:
    """Return whether there is a compiler."""
    return find_spec("numba") is not None


def compiled(plan: Plan, timeout: float = 60.0) -> Handle:
    """Return a handle that is ready.

    Raises
    ------
    RuntimeError
        If the plan does not compile in time.
    """
    handle = start(plan)
    begin = time.monotonic()
    if not handle.wait(timeout):
        raise RuntimeError(handle.error or f"not compiled in {time.monotonic() - begin:.0f} s")
    return handle
