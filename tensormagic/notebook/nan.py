"""Find where a nan came from: the first node, its line, and in a loop the iteration, that made one from numbers.

Nodes inside loops and branches are found by recomputing these under observation, as for the graph view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size
from tensormagic.notebook.display.annotate import line_of
from tensormagic.notebook.display.forms import Panel, table
from tensormagic.notebook.pictures.adaptor import Portrait
from tensormagic.notebook.pictures.labels import clean, operation, symbol
from tensormagic.notebook.pictures.watching import Enough, Frame, Looking, is_region, watched
from tensormagic.ops.contract import CONTRACT
from tensormagic.ops.effects.telling import silently
from tensormagic.ops.leaf import CONSTANT, PARAMETER

_MOST = 5
Number = Callable[[Size], int]


@dataclass(frozen=True)
class _Made:
    """A node that has made a nan of its operands' values, the iterations that the loops around it were in, and the outermost."""

    node: Node
    value: Any
    operands: tuple[Any, ...]
    names: tuple[str, ...]
    iterations: tuple[int, ...] = ()
    around: Node | None = None


def nan_panel(shown: Portrait, source: str) -> Panel:
    """Return the nodes that make a nan of numbers, by line: the first is where to look; and inputs that hold nan themselves."""
    graph = shown.executable.graph
    with np.errstate(all="ignore"), silently():
        found = list(_made_in(graph, shown.values, shown.number, shown.graph.names))
    rows = sorted((_line(shown, made) or 0, k, made) for k, made in enumerate(found))
    if not rows:
        return table("nan: none in the computation of this value", ("",), [])
    lines = source.splitlines()
    more = f" (and {len(rows) - _MOST} more places)" if len(rows) > _MOST else ""
    head = ("where", "operation", "first nan at", "from")
    told = [[_place(made, line, lines), _operation(made), *_told(made)] for line, _, made in rows[:_MOST]]
    return table(f"nan: first made here{more}", head, told, [True])


def _line(shown: Portrait, made: _Made) -> int | None:
    if not made.node.args:
        return None
    around = made.around
    users = [n for n in shown.executable.graph.nodes if around in n.args] if around is not None else []
    known = [line_of(shown, n) for n in (made.node, *([around] if around is not None else []), *users)]
    return next((line for line in known if line is not None), None)


def _place(made: _Made, line: int, lines: Sequence[str]) -> str:
    if not made.node.args:
        return "input"
    text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    iteration = f", iteration {', '.join(map(str, made.iterations))}" if made.iterations else ""
    return f"{f'line {line}' if line else '–'}{iteration}  {text}".strip()


def _operation(made: _Made) -> str:
    return operation(_label(made.node)) if made.node.args else clean(made.names[0], 40)


def _label(node: Node) -> str:
    return "@" if node.op is CONTRACT else node.op.name


# finding --------------------------------------------------------------------------------------------------------------


def _made_in(graph: Graph, given: Sequence[Any], number: Number, names: Sequence[str]) -> Iterator[_Made]:
    """Yield the nodes of a graph that make a nan, in the order of computation."""
    values: dict[Node, Any] = dict(zip(graph.parameters, given, strict=True))
    called = dict(zip(graph.parameters, names, strict=False))
    for node in graph.parameters:
        if has_nan(values[node]):
            yield _Made(node, values[node], (), (called.get(node, "parameter"),))
    for node in graph.nodes:
        if node in values:
            continue
        operands = [values[a] for a in node.args]
        values[node] = node.op.evaluate(node, operands, number)
        if has_nan(values[node]) and not any(map(has_nan, operands)):
            inner = _made_inside(node, operands, number) if is_region(node) else []
            yield from inner or [
                _Made(node, values[node], tuple(operands), tuple(called.get(a, "") for a in node.args))
            ]


def _made_inside(region: Node, operands: Sequence[Any], number: Number) -> list[_Made]:
    """Return the nodes that make a nan in a region that ends in one; in a loop, in the first iteration that does."""
    finding = _Finding()
    with suppress(Enough):
        watched(region, operands, number, finding)
    noting = _Noting(finding.iteration)
    with suppress(Enough):
        watched(region, operands, number, noting)
    return noting.found


class _Finding(Looking):
    """Finds the first iteration after which a carry holds a nan."""

    iteration = 0

    def started(self, frame: Frame, table: Mapping[Node, Any]) -> None:
        if len(self.frames) > 1:
            return
        if frame.iteration > 1 and _is_spoilt(frame, table):
            raise Enough
        self.iteration = frame.iteration


@dataclass
class _Notes:
    """What made a nan in a region, up to now; in a loop in this iteration, or in the one that was the first."""

    made: list[_Made] = field(default_factory=list[_Made])
    settled: bool = False


class _Noting(Looking):
    """Records the nodes that make a nan in one iteration of the outermost loop; nans that do not leave an iteration are dropped."""

    def __init__(self, iteration: int) -> None:
        super().__init__()
        self.iteration = iteration
        self.found: list[_Made] = []
        self._notes: list[_Notes] = []
        self._given: list[tuple[Any, ...] | None] = []

    def begins(self, node: Node, given: Sequence[Any]) -> None:
        super().begins(node, given)
        notes = bool(self._notes) and self.frames[0].iteration == self.iteration and not any(map(has_nan, given))
        self._given.append(tuple(given) if notes else None)
        if is_region(node):
            self._notes.append(_Notes(self.found) if not self._notes else _Notes())

    def started(self, frame: Frame, table: Mapping[Node, Any]) -> None:
        notes = self._notes[-1]
        if len(self.frames) == 1:
            if frame.iteration > self.iteration:
                raise Enough
        elif frame.running == "body" and not notes.settled:
            notes.settled = frame.iteration > 1 and _is_spoilt(frame, table)
            if not notes.settled:
                notes.made.clear()

    def ends(self, node: Node, value: Any) -> None:
        super().ends(node, value)
        inner = self._notes.pop().made if is_region(node) else []
        given = self._given.pop()
        if given is not None and not self._notes[-1].settled and has_nan(value):
            self._notes[-1].made += inner or [self._made(node, value, given)]

    def _made(self, node: Node, value: Any, given: tuple[Any, ...]) -> _Made:
        graph = self.frames[-1].graph
        called = dict(zip(graph.parameters, graph.names, strict=False)) if graph is not None else {}
        names = tuple(called.get(a, "") for a in node.args)
        return _Made(node, value, given, names, tuple(frame.iteration for frame in self.loops()), self.frames[0].node)


def _is_spoilt(frame: Frame, table: Mapping[Node, Any]) -> bool:
    """Return whether one of the operands of an iteration holds a nan."""
    return frame.graph is not None and any(has_nan(table[p]) for p in frame.graph.parameters)


def has_nan(value: Any) -> bool:
    """Return whether a value, or one of several, holds a nan."""
    if isinstance(value, tuple | list):
        return any(map(has_nan, value))
    array = np.asarray(value)
    return array.dtype.kind in "fc" and bool(np.isnan(array).any())


# telling --------------------------------------------------------------------------------------------------------------


def _told(made: _Made) -> list[str]:
    """Return the index of the first nan in a result, and the operands there."""
    if isinstance(made.value, tuple | list):
        return ["–", ""]
    array = np.asarray(made.value)
    index = tuple(int(k) for k in np.argwhere(np.isnan(array))[0])
    pairs = zip(made.node.args, made.operands, made.names, strict=True) if made.operands else ()
    operands = [_operand(arg, value, name, array.shape, index) for arg, value, name in pairs]
    return [f"[{_at(index)}]" if index else "the number", ", ".join(operands)]


def _at(index: Sequence[int]) -> str:
    return ", ".join(map(str, index))


def _operand(arg: Node, value: Any, name: str, shape: tuple[int, ...], index: tuple[int, ...]) -> str:
    """Return an operand where the nan is; of one with other axes, which numbers are in it."""
    if isinstance(value, tuple | list):
        return symbol(_label(arg))
    held = np.asarray(value)
    known = f"{clean(name, 40)} = " if name and arg.op in {PARAMETER, CONSTANT} else ""
    if not held.shape:
        return f"{known}{held[()]:.6g}"
    if held.shape == shape:
        return f"{known.replace(' = ', f'[{_at(index)}] = ')}{held[index]:.6g}"
    least = f"{np.min(held):.4g} … {np.max(held):.4g}" if held.size and held.dtype.kind in "iuf" else ""
    endless = int(np.isinf(held).sum()) if held.dtype.kind in "fc" else 0
    parts = [f"{known}{held.dtype}[{', '.join(map(str, held.shape))}]", least, f"{endless} inf" if endless else ""]
    return " ".join(part for part in parts if part)
