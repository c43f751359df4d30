"""What a plan's function calls when it runs: threads that can be interrupted, errors of kernels, NumPy in their place."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tensormagic.backend import flags
from tensormagic.backend.inline import is_room
from tensormagic.backend.kernel_text import Fault
from tensormagic.ir.graph import Guard, check, sizer
from tensormagic.ir.node import Node, topological
from tensormagic.ir.size import Symbol


def raised(faults: Sequence[Fault], noted: Any) -> None:
    """Raise what a kernel noted."""
    number, *values = noted.tolist()
    error, texts = faults[number - 1]
    raise error(*(text.format(*values) for text in texts))


class Interpreted:
    """What computes nodes by NumPy, given the values of others.

    Parameters
    ----------
    results
        What is computed: each as an array of its own.
    given
        What is there.
    guards
        What has to hold of integers among them.
    """

    def __init__(self, results: Sequence[Node], given: Sequence[Node], guards: Sequence[Guard] = ()) -> None:
        self.results = results
        self.given = given
        self.guards = guards
        known = set(given)
        self.nodes = [n for n in topological(results, stop=lambda n: n in known) if n not in known]

    def __call__(self, sizes: Mapping[Any, int], values: Sequence[Any]) -> list[Any]:
        """The values of the results."""
        table: dict[Any, Any] = dict(zip(self.given, values, strict=True))
        size = sizer(sizes, table)
        with np.errstate(all="ignore"):
            for node in self.nodes:
                if is_room(node):
                    table[node] = np.empty(tuple(map(size, node.type.shape)), node.type.dtype)
                else:
                    table[node] = node.op.evaluate(node, [table[a] for a in node.args], size)  # type: ignore[attr-defined]
        for guard in self.guards:
            check(guard, size.atom)
        return [np.array(table[n], n.type.dtype, order="C") for n in self.results]


# interrupts -----------------------------------------------------------------------------------------------------------

_idle_flag = np.zeros(1, np.uint8)
IDLE: int = _idle_flag.ctypes.data
_unused = np.zeros(1, np.uint64)
UNUSED: int = (
    _unused.ctypes.data
)  # where Numba's calling convention puts a result and an exception, which kernels do not have


class _Stoppable(threading.local):
    """The address of the flag that stops what this thread runs."""

    flag: int = IDLE


stoppable = _Stoppable()


def patiently(
    run: Callable[..., list[Any]], sizes: dict[Symbol, int], values: tuple[Any, ...], **more: Any
) -> list[Any]:
    """Run something long beside the main thread: an interrupt reaches that, and then the kernels stop early."""
    if threading.current_thread() is not threading.main_thread():
        return run(sizes, *values, flag=stoppable.flag, **more)
    flag = np.zeros(1, np.uint8)
    outcome: list[Any] = []

    def work() -> None:
        flags.clear()
        try:
            outcome.append((True, run(sizes, *values, flag=flag.ctypes.data, **more), flags.seen()))
        except BaseException as error:  # noqa: BLE001 (raised again by the thread that waits)
            outcome.append((False, error, flags.seen()))

    thread = threading.Thread(target=work, name="tensormagic run", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.1)
    except BaseException:
        flag[0] = 1
        thread.join()
        raise
    done, value, found = outcome[0]
    flags.take_over(found)
    if done:
        return value
    raise value
