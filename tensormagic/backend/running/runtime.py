"""What a plan's function calls when it runs: interruptible threads, errors of kernels, and NumPy in place of a kernel."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tensormagic.backend.planning.inline import is_room
from tensormagic.backend.planning.work_counts import Pace
from tensormagic.backend.printing.kernel_text import Fault, Raised
from tensormagic.backend.running import flags
from tensormagic.ir.graph import Graph, Guard, check, sizer
from tensormagic.ir.node import Node, topological
from tensormagic.ir.size import Symbol
from tensormagic.ops.effects.failing import computes_floats
from tensormagic.ops.effects.outside import OUTSIDE
from tensormagic.ops.regions.loops import turning


def raised(faults: Sequence[Fault | Raised], noted: Any) -> None:
    """Raise what a kernel noted."""
    number, *values = noted.tolist()
    raise faults[number - 1].made(values)


class Interpreted:
    """Computes nodes with NumPy from the values of other nodes.

    Parameters
    ----------
    results
        What is computed: each as an array of its own.
    given
        The known nodes.
    guards
        Guards on integers among them.
    """

    def __init__(self, results: Sequence[Node], given: Sequence[Node], guards: Sequence[Guard] = ()) -> None:
        self.results = results
        self.given = given
        self.guards = guards
        known = set(given)
        self.nodes = [n for n in topological(results, stop=lambda n: n in known) if n not in known]

    def __call__(self, sizes: Mapping[Any, int], values: Sequence[Any]) -> list[Any]:
        """Return the values of the results."""
        table: dict[Any, Any] = dict(zip(self.given, values, strict=True))
        size = sizer(sizes, table)
        with np.errstate(all="ignore"):
            for node in self.nodes:
                if is_room(node):
                    table[node] = np.empty(tuple(map(size, node.type.shape)), node.type.dtype)
                else:
                    table[node] = node.op.evaluate(node, [table[a] for a in node.args], size)
        for guard in self.guards:
            check(guard, size.atom)
        return [np.array(table[n], n.type.dtype, order="C") for n in self.results]


def evaluator(node: Node) -> Callable[..., Any]:
    """Return how NumPy computes a node among machine code: without floating-point warnings, except for the user's own functions."""
    graphs = [v for _, v in node.param_items if isinstance(v, Graph)]
    if not computes_floats(node) or node.op is OUTSIDE or any(OUTSIDE.name in g.ops for g in graphs):
        return partial(node.op.evaluate, node)

    def evaluate(values: Sequence[Any], size: Callable[[Any], int]) -> Any:
        with np.errstate(all="ignore"):
            return node.op.evaluate(node, values, size)

    return evaluate


# interrupts -----------------------------------------------------------------------------------------------------------


class Flag:
    """Memory that machine code polls while it runs, to be stopped or asked for its progress.

    The first byte stops it. The second one asks: the outermost loop then writes its iteration and the number of
    iterations (0 if unknown) behind these two, and clears it.
    """

    def __init__(self) -> None:
        self._words = np.zeros(3, np.int64)
        self._bytes = self._words.view(np.uint8)
        self.address: int = self._words.ctypes.data

    @property
    def stopped(self) -> bool:
        """Return whether it was told to stop."""
        return bool(self._bytes[0])

    def stop(self) -> None:
        """Have it stop."""
        self._bytes[0] = 1

    def iteration(self) -> tuple[int, int] | None:
        """Return the last reported iteration and the number of iterations, after a short wait for a report, or None if there is none."""
        self._bytes[1] = 1
        for _ in range(4):
            if self._bytes[1]:
                time.sleep(5e-4)
        done, count = self._words[1:].tolist()
        return (done, count) if done or count else None


_idle_flag = Flag()
IDLE: int = _idle_flag.address
_unused = np.zeros(1, np.uint64)
UNUSED: int = (
    _unused.ctypes.data
)  # where Numba's calling convention puts a result and an exception, which kernels do not have


class _Stoppable(threading.local):
    """The flags of what this thread runs, innermost last."""

    def __init__(self) -> None:
        self.flags: list[Flag] = []

    @property
    def address(self) -> int:
        """Return where what begins now is told to stop."""
        return self.flags[-1].address if self.flags else IDLE


stoppable = _Stoppable()


def patiently(
    run: Callable[..., list[Any]],
    sizes: dict[Symbol, int],
    values: tuple[Any, ...],
    pace: Pace | None = None,
    amount: int = 0,
    **more: Any,
) -> list[Any]:
    """Run something long beside the main thread, so that an interrupt reaches it and stops the kernels early.

    ``pace`` learns how long this amount of work took.
    """
    if threading.current_thread() is not threading.main_thread():
        return run(sizes, *values, flag=stoppable.address, **more)
    flag, loops = Flag(), turning.loops
    outcome: list[Any] = []

    def work() -> None:
        flags.clear()
        turning.loops = loops
        try:
            start = time.perf_counter()
            results = run(sizes, *values, flag=flag.address, **more)
            if pace is not None:
                pace.note(amount, time.perf_counter() - start)
            outcome.append((True, results, flags.seen()))
        except BaseException as error:  # noqa: BLE001 (raised again by the thread that waits)
            outcome.append((False, error, flags.seen()))

    thread = threading.Thread(target=work, name="tensormagic run", daemon=True)
    stoppable.flags.append(flag)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.1)
    except BaseException:
        flag.stop()
        thread.join()
        raise
    finally:
        stoppable.flags.remove(flag)
    done, value, found = outcome[0]
    flags.take_over(found)
    if done:
        return value
    raise value
