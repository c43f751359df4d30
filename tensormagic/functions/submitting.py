"""Calls in the background: ``tm.submit``, which returns a future."""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import itertools
import os
import queue
import sys
import threading
from collections.abc import Callable, Collection, Generator
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import suppress
from contextvars import copy_context
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from tensormagic import session
from tensormagic.backend.running import runtime
from tensormagic.backend.running.per_process import OnePerProcess
from tensormagic.capture import context
from tensormagic.capture.errors import floating
from tensormagic.capture.hooks import hooks
from tensormagic.capture.python import usercode
from tensormagic.capture.tree import flatten
from tensormagic.capture.values.value import Tensor
from tensormagic.functions.calls.callables import of_callable
from tensormagic.functions.compiled.compile import captured_for
from tensormagic.functions.compiled.compiled_function import Compiled
from tensormagic.ir.errors import ArgumentError, CaptureError, GuardError, TensorError

_PLAIN = (str, bytes, bool, int, float, complex, type(None), np.generic, type, slice)


class Stopped(BaseException):
    """Raised in a thread whose work is cancelled."""


class Submitted(Future[Any]):
    """The result of a call in the background, later: a future of ``concurrent.futures``, which can be awaited, too.

    Interrupting ``result()`` ends the waiting alone; ``cancel()`` stops the work.

    Parameters
    ----------
    name
        What was called.
    place
        The line that it was submitted from.
    """

    def __init__(self, name: str, place: str) -> None:
        super().__init__()
        self.name = name
        self.place = place
        self._thread = 0  # the number of the thread that runs it
        self._guard = threading.Lock()
        self._flag = runtime.Flag()
        self._doing: session.Doing | None = None  # the current work of that thread

    def __repr__(self) -> str:
        """Return ``Submitted(loss of In[3] line 2: computing for 5 s · iteration 1,200 of 10,000 · by NumPy)`` and the like."""
        return f"Submitted({self.name} of {self.place}: {self.state})"

    @property
    def state(self) -> str:
        """Its state in words: waiting, its progress, or how it has ended."""
        if not self.done():
            far = self.far
            if far is not None and far.seconds >= 1:
                return far.words
            return "running" if self.running() else "waiting"
        failed = None if self.cancelled() else self.exception()
        return "cancelled" if self.cancelled() else f"failed: {failed!r}" if failed else "done"

    @property
    def progress(self) -> float | None:
        """The part that is done, of a loop's iterations or of the time that the same took before; None where nothing tells it.

        Examples
        --------
        >>> later = submit(lambda x: x + 1, 1.0)
        >>> later.result(), later.progress
        (2.0, 1.0)
        """
        if self.done():
            return 1.0
        far = self.far
        if far is None:
            return None if self.running() else 0.0
        return far.fraction if far.fraction >= 0 else None

    @property
    def far(self) -> session.Far | None:
        """Its progress, in words and as a fraction; None if it does not run."""
        doing = self._doing
        return None if doing is None else doing.far()

    def __await__(self) -> Generator[Any, None, Any]:
        return asyncio.wrap_future(self).__await__()

    def cancel(self) -> bool:
        """Cancel it, also where it runs: machine code stops, no result is kept, and ``result()`` raises ``CancelledError``.

        Returns
        -------
        bool
            False where it is done already.

        Examples
        --------
        >>> later = submit(lambda x: x + 1, 1.0)
        >>> later.result(), later.cancel()
        (2.0, False)
        """
        with self._guard:
            if not self._thread:
                return super().cancel()
            if not self._flag.stopped:
                self._flag.stop()
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), ctypes.py_object(Stopped))
            return True

    def cancelled(self) -> bool:
        """Return whether it was cancelled, and has stopped.

        Returns
        -------
        bool
            False where it is done, waits or still runs.

        Examples
        --------
        >>> later = submit(lambda x: x + 1, 1.0)
        >>> later.result(), later.cancelled()
        (2.0, False)
        """
        return super().cancelled() or (self.done() and isinstance(super().exception(), CancelledError))

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return the exception that the call has raised, after waiting for it.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait at most.

        Returns
        -------
        BaseException or None
            None where it has a result.

        Raises
        ------
        CancelledError
            Where it was cancelled.
        TimeoutError
            Where it is not done in time.

        Examples
        --------
        >>> submit(lambda x: x + 1, 1.0).exception() is None
        True
        """
        error = super().exception(timeout)
        if isinstance(error, CancelledError):
            raise error
        return error

    def work(self, call: Callable[[], Any]) -> None:
        """Run the call on this thread, and store its result."""
        with self._guard:
            if not self.set_running_or_notify_cancel():
                return
            self._thread = threading.get_ident()
        result, failed = None, None
        try:
            try:
                runtime.stoppable.flags.append(self._flag)
                self._doing = session.doing()
                result = call()
            finally:
                runtime.stoppable.flags.clear()
                self._doing = None
                with self._guard:
                    self._thread = 0
        except BaseException as error:  # noqa: BLE001 (it is the future's)
            failed = error
            hooks.failed(error)
        if self._flag.stopped:
            result, failed = None, CancelledError()
        if failed is None:
            self.set_result(result)
        else:
            self.set_exception(failed)

    def lost(self) -> None:
        """Fail in a forked child, where the threads that compute it, and those that wait, do not exist."""
        self._condition, self._guard = threading.Condition(), threading.Lock()
        self._waiters, self._done_callbacks = [], []
        if not self.done():
            self.set_exception(
                GuardError(
                    f"{self.name} of {self.place} was being computed when the process was forked",
                    "Ask for the result in the process that submitted it, or before that process forks.",
                )
            )

    def settle(self) -> None:
        """Finish it even if the stopping exception arrives after its work (it is sent once)."""
        for _ in range(2):
            with suppress(Stopped, InvalidStateError):
                if not self.done():
                    self.set_exception(CancelledError())


def submit(fun: Any, /, *args: Any, **named: Any) -> Submitted:
    """Call a function in the background, and return at once.

    The function is captured at once: its arguments, and other arrays that it reads, have the values of this moment, whatever
    is stored into them later. Errors of capture are raised here, those of the run by ``result()``. What is submitted
    begins in the order of submission and runs side by side; what it prints is printed when it runs.

    Parameters
    ----------
    fun
        A function, as for ``tm.tensor``, or a result of :func:`compile`.
    *args, **named
        Arrays, lazy values, numbers, texts, and containers of these.

    Returns
    -------
    Submitted
        A future with ``result(timeout)``, ``exception()``, ``done()``, ``cancel()`` and ``add_done_callback(...)``, as in
        ``concurrent.futures``; ``await`` works, too. ``progress`` is the part that is done, from 0 to 1.

    Raises
    ------
    ArgumentError
        If an argument is an object that could change while the call runs.
    CaptureError
        If the function stores into its arguments, or the call stands in captured code.

    Examples
    --------
    >>> import tensormagic as tm
    >>> x = np.arange(3.0)
    >>> later = tm.submit(lambda x: np.sum(x * x), x)
    >>> x[:] = 0
    >>> float(later.result())
    5.0
    """
    if context.current() is not None:
        raise CaptureError(
            "tm.submit is called in captured code",
            "Call it in plain Python, with the captured function.",
        )
    by_position = fun.by_position if isinstance(fun, Compiled) else of_callable(fun).positional
    given = _own(by_position(args, named) if named else args)
    made = _made_for(fun, given)
    try:
        values, sizes = made.bound_to(given)
    except TypeError as error:
        raise error if isinstance(error, TensorError) else ArgumentError(str(error)) from None
    owned = [_copy(v) for v in values]

    def call() -> Any:
        with floating.naming_lines(lambda: made.traced.lens):
            return made.built(made.computed(sizes, owned))

    return background(made.traced.name, usercode.here(), call)


def background(name: str, place: str, call: Callable[[], Any], after: Collection[Future[Any]] = ()) -> Submitted:
    """Run ``call`` on a thread in the present context, after all of ``after`` are done."""
    future, here = Submitted(name, place), copy_context()
    _pool().add(future, lambda: here.run(call), after)
    return future


_known: WeakKeyDictionary[Any, Compiled] = WeakKeyDictionary()  # the last capture for each function


def _made_for(fun: Any, args: tuple[Any, ...]) -> Compiled:
    """Return a function as a graph for these arguments; an existing one if it holds for them."""
    if isinstance(fun, Compiled):
        fun.refuse_changes()
        return fun
    found = None
    with suppress(TypeError):  # functions without weak references
        found = _known.get(fun)
    if found is not None:
        with suppress(GuardError, TypeError):
            found.refuse_changes()
            found.bound_to(args)
            return found
    found = captured_for(fun, args)
    with suppress(TypeError):
        _known[fun] = found
    return found


def _own(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return copies of arguments, which nobody else can change."""
    leaves, build = flatten(args)
    return build(iter([_owned(v) for v in leaves]))


def _owned(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.numpy()
    if type(value) is np.ndarray:
        return value  # copied when it is bound
    if isinstance(value, _PLAIN):
        return value
    raise ArgumentError(
        f"tm.submit takes arrays, numbers, texts and containers of these, not {type(value).__name__}, which could change while it runs",
        "Pass its arrays; instead of a random generator, pass a seed and make the generator in the function.",
    )


def _copy(value: Any) -> Any:
    return np.array(value, order="K") if isinstance(value, np.ndarray) else value


# threads --------------------------------------------------------------------------------------------------------------


class _Pool:
    """Threads that run submitted work in order."""

    def __init__(self) -> None:
        self._todo: queue.SimpleQueue[tuple[Submitted, Callable[[], Any]]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._idle = 0
        self.unfinished: WeakSet[Submitted] = WeakSet()
        self._order = itertools.count()

    def add(self, future: Submitted, call: Callable[[], Any], after: Collection[Future[Any]] = ()) -> None:
        """Run something after all of ``after`` are done; no thread waits for these."""
        with self._lock:
            self.unfinished.add(future)
        left, lock = len(after), threading.Lock()

        def one_less(_: Future[Any]) -> None:
            nonlocal left
            with lock:
                left -= 1
                ready = left == 0
            if ready:
                self._begin(future, call)

        for other in after:
            other.add_done_callback(one_less)
        if not after:
            self._begin(future, call)

    def _begin(self, future: Submitted, call: Callable[[], Any]) -> None:
        with self._lock:
            starts = self._idle <= self._todo.qsize() and self._threads < (os.cpu_count() or 1)
            self._threads += starts
        self._todo.put((future, call))
        if starts:
            threading.Thread(target=self._work, name=f"tensormagic submit {next(self._order)}", daemon=True).start()

    def _work(self) -> None:
        session.background_thread()
        while True:
            with suppress(Stopped):  # the exception may arrive late
                self._count(1)
                try:
                    future, call = self._todo.get()
                finally:
                    self._count(-1)
                try:
                    with suppress(Stopped):  # the exception may arrive between the end of the work and its record
                        future.work(call)
                finally:
                    future.settle()
                    self.unfinished.discard(future)
                    del future, call

    def _count(self, more: int) -> None:
        with self._lock:
            self._idle += more

    def close(self) -> list[Submitted]:
        """Stop all work, and return what was not finished."""
        left = [f for f in list(self.unfinished) if not f.done()]
        for future in left:
            future.cancel()
        return left


def _lose(old: _Pool) -> None:
    for future in list(old.unfinished):
        future.lost()


_pool = OnePerProcess(_Pool, _lose)


@atexit.register
def _tell_unfinished() -> None:
    """Warn of calls that are lost when the process ends."""
    left = _pool.made.close() if _pool.made is not None else []
    if left:
        listed = ", ".join(f"{f.name} of {f.place}" for f in left[:5]) + ", …" * (len(left) > 5)
        some = f"{len(left)} submitted computation{'s were' if len(left) > 1 else ' was'}"
        text = f"tensormagic: {some} not finished: {listed}"
        print(text, file=sys.stderr, flush=True)  # noqa: T201 (nobody else says it; a kernel's stream sends what is flushed)
