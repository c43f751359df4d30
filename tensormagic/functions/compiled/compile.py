"""``tm.compile``: functions and graphs compiled for types."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensormagic import session
from tensormagic.capture.tree import flatten
from tensormagic.config import config, leveled
from tensormagic.functions.calls.callables import of_callable
from tensormagic.functions.reads.arrays_in_objects import undoing
from tensormagic.functions.reads.record import Record
from tensormagic.functions.tensor import checked_place
from tensormagic.functions.tracing import Traced, refuse_untyped, traced
from tensormagic.functions.travel import maker
from tensormagic.ir.errors import ArgumentError, CaptureError
from tensormagic.ir.graph import Graph

if TYPE_CHECKING:
    pass
from tensormagic.functions.compiled.compiled_function import ARRAY, SYMBOL, Compiled


@maker
def compile(fun: Any, *types: Any, device: str = "", math: str | None = None, without: str = "") -> Compiled:
    """Compile a function ahead of time.

    Parameters
    ----------
    fun, types
        As for :func:`trace`. Or a graph alone, as :func:`trace`, :func:`rewrite` and :func:`parse` give it: its parameters are the
        arguments, and the result is a tuple where there are several.
    device
        ``"cpu"``, ``"gpu"``, or ``"auto"``, which chooses by sizes; empty for what ``config.device`` says now.
    math
        Which rewrites may be used; by default the function's own level, else ``config.math``.
    without
        What to switch off, as names with commas: themes of rules, ``"stability"``, ``"loops"``, ``"fusion"``.

    Returns
    -------
    Compiled
        ``.run(*args)``, ``.save(path)``, ``.code``, ``.kernels``, ``.memory``, ``.cost`` and ``.graph``.

    Raises
    ------
    ParseError, ShapeError, DTypeError, CaptureError
        As for :func:`trace`.
    ValueError
        If there is no such level, device or theme.

    Examples
    --------
    >>> import numpy as np
    >>> f = compile(lambda x: np.exp(x) - 1, "float64[n]")
    >>> f.run(np.zeros(3))
    array([0., 0., 0.])
    """
    if not types and not isinstance(fun, Graph):
        refuse_untyped(of_callable(fun), "tm.compile", "@tm.tensor makes a function that compiles at its calls.")
    if without:
        math = leveled(math or getattr(fun, "math", "") or config.math, without)
    made = _of_graph(fun, types, device, math) if isinstance(fun, Graph) else _made(fun, types, device, math)
    if config.tier != "numpy" and made.executable.device == "cpu":
        made.executable.compile().wait()
    return made


def captured_for(fun: Any, args: tuple[Any, ...]) -> Compiled:
    """Return a function for arguments like these, compiled when that pays."""
    return _made(fun, args, "", None)


def _made(fun: Any, types: tuple[Any, ...], device: str, math: str | None) -> Compiled:
    """Return a newly compiled function for types."""
    function = of_callable(fun)
    placed = checked_place(device)[0] or function.placed[0]
    level = math or function.math
    with config.using(math=level):
        found = traced(function, types, classes=True)
    with undoing(found.before):
        _refuse_moving(found)
    with config.using(device=placed):
        executable = session.executable(found.graph, level)

    def again(made: Compiled, sizes: dict[str, str]) -> Compiled:
        return _made(fun, _sized(made, sizes), placed, made.math)

    return Compiled(
        found.graph.with_results(found.graph.results[: found.outward.count]),
        executable,
        level or config.math,
        found,
        types,
        found.record,
        again=again,
        named=function.positional,
    )


def _refuse_moving(found: Traced) -> None:
    """Raise for state that a compiled function would not notice, or not change."""
    if found.drawn:
        raise CaptureError(
            f"{found.name} draws from {found.drawn[0]}, whose state a compiled function does not advance",
            "Make the generator in the function, np.random.default_rng(seed), of a seed that is an argument; or use tm.tensor.",
        )
    if why := found.record.why:
        raise CaptureError(
            f"{found.name} reads {why}, and a compiled function would not notice changes of it",
            "Pass it as an argument, or use tm.tensor, which captures the function at every call.",
        )


def _of_graph(graph: Graph, types: tuple[Any, ...], device: str, math: str | None) -> Compiled:
    """Return a graph that the user has traced, rewritten or read, compiled as a function of its parameters."""
    if types:
        raise ArgumentError("a graph can be compiled only for the types of its parameters", "Leave them out.")
    level = math or config.math
    with config.using(device=checked_place(device)[0]):
        executable = session.executable(graph, level)
    build: Callable[[Any], Any] = next if len(graph.results) == 1 else tuple
    found = Traced(graph, build, [], (), "graph")
    return Compiled(graph, executable, level, found, tuple(p.type for p in graph.parameters), Record(()))


def _sized(made: Compiled, sizes: dict[str, str]) -> tuple[Any, ...]:
    """Return the arguments of a compiled function as types, with numbers for some symbols of sizes."""
    leaves, build = flatten(made.arguments)
    types = iter(made.graph.parameters)
    mixed = [
        SYMBOL.sub(lambda found: sizes.get(found[0], found[0]), str(next(types).type)) if f is ARRAY else v
        for v, f in zip(leaves, made.fixed, strict=True)
    ]
    return build(iter(mixed))
