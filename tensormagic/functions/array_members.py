"""Members of lazy arrays that look into their computation: the graph, the code, the explanation of the rewriting, and the time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from tensormagic import session
from tensormagic.backend.numpy_tier.text import numpy_source
from tensormagic.capture.hooks import hooks
from tensormagic.capture.values.value import Tensor
from tensormagic.functions.explaining import explained
from tensormagic.ir.graph import Graph
from tensormagic.ir.site import Lens


class Lines(str):
    """Text of several lines, which a notebook shows as lines where it is the value of a cell."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def code_of(executable: session.Executable) -> Lines:
    """Return the source of kernels and, on the CPU, of the function that runs them."""
    return _on_cpu(executable) if executable.device == "cpu" else _on_card(executable)


def _on_cpu(executable: session.Executable) -> Lines:
    plan = executable.plan
    return Lines("\n\n".join([*(k.source for k in plan.kernels), plan.driver.source]))


def _on_card(executable: session.Executable) -> Lines:
    from tensormagic.backend.cuda.kernels.listing import device_source  # with all kinds of kernels

    return Lines(device_source(executable.graph))


def _graph(self: Tensor) -> Graph:
    """Return the graph of this value down to its inputs, before rewriting.

    Examples
    --------
    >>> import tensormagic as tm
    >>> "add" in str((tm.tensor([1.0, 2.0]) + 1).graph)
    True
    """
    return session.close_over([self.node], use_values=False).graph


def _executable(self: Tensor) -> session.Executable:
    return session.executable(_graph(self), self.level)


def _optimized(self: Tensor) -> Graph:
    """Return the graph of this value down to its inputs, after rewriting.

    Examples
    --------
    >>> import numpy as np, tensormagic as tm
    >>> "log1p" in str(np.log(1 + tm.tensor([0.5])).optimized)
    True
    """
    return _executable(self).graph


_SOURCES: dict[str, Callable[[session.Executable], Lines]] = {
    "cpu": _on_cpu,
    "cuda": _on_card,
    "numpy": lambda executable: Lines(numpy_source(executable.graph)),
}


def _code(self: Tensor, target: str = "cpu") -> str:
    """Return the source of what computes this value.

    Parameters
    ----------
    target
        ``"cpu"``: the kernels for the processor. ``"cuda"``: those for an NVIDIA GPU, which need no GPU to be read.
        ``"numpy"``: a function in plain NumPy.

    Returns
    -------
    str
        Shown as lines where it is the value of a cell.

    Raises
    ------
    ValueError
        For another target.

    Examples
    --------
    >>> import numpy as np, tensormagic as tm
    >>> "np.exp(" in np.exp(tm.tensor([0.0, 1.0]) * 2).code("numpy")
    True
    """
    if target not in _SOURCES:
        raise ValueError(f"there is code for 'cpu', 'cuda' and 'numpy', not for {target!r}")
    return _SOURCES[target](_executable(self))


def _explain(self: Tensor, *, measure: bool = True) -> str:
    """Return what was rewritten, by which rule and where, what each step gained, and what was withheld.

    Parameters
    ----------
    measure
        Whether errors, operations and bytes are measured: errors for the values that the inputs have, at up to 64 elements,
        against mpmath. It takes up to some seconds.

    Returns
    -------
    str
        Shown as lines where it is the value of a cell.

    Examples
    --------
    >>> import numpy as np, tensormagic as tm
    >>> said = np.log(1 + tm.tensor([1e-18])).explain(measure=False)
    >>> "log(1 + x) -> log1p(x)" in said
    True
    """
    closed = session.close_over([self.node], use_values=False)
    values = lambda: [session.value_of(leaf) for leaf in closed.leaves]  # noqa: E731 (asked for where it is measured)
    return Lines(explained(closed.graph, self.level, Lens(closed.mapping), values, measure=measure))


def _time(self: Tensor, repeat: int = 7) -> float:
    """Return the median seconds of a computation of this value from its inputs, on the tier that is ready.

    Parameters
    ----------
    repeat : int
        How many times it is computed; once more before these.

    Returns
    -------
    float

    Examples
    --------
    >>> import tensormagic as tm
    >>> 0 < (tm.tensor([1.0, 2.0]) * 2).time() < 60
    True
    """
    closed = session.close_over([self.node], use_values=False)
    values = [session.value_of(leaf) for leaf in closed.leaves]
    sizes = closed.graph.bind([np.shape(v) for v in values])
    executable = session.executable(closed.graph, self.level)
    executable.run(sizes, *values)
    seconds: list[float] = []
    for _ in range(repeat):
        start = time.perf_counter()
        executable.run(sizes, *values)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


hooks.methods["graph"] = property(_graph)  # type: ignore[assignment]  (bound to the lazy array like a method)
hooks.methods["optimized"] = property(_optimized)  # type: ignore[assignment]  (as above)
hooks.methods["code"] = _code
hooks.methods["explain"] = _explain
hooks.methods["time"] = _time
