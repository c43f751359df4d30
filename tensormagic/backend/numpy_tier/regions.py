"""Branches, loops, calls and the tapes between them as text in plain NumPy: a graph inside is a function inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from tensormagic.ir.errors import CaptureError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.operation import Operation
from tensormagic.ir.type import Size, Type
from tensormagic.ops.indices.gather import ADD_ALONG_AXIS
from tensormagic.ops.leaf import CONSTANT, PARAMETER
from tensormagic.ops.opaque import Store
from tensormagic.ops.regions.control import CALL, CHECKPOINT, COND, CUSTOM, GRAD, LOOP, WHILE
from tensormagic.ops.reverse.tape import ADD_RECORD, ADD_TAPES, EMPTY, RECORD, REPLAY
from tensormagic.ops.reverse.tape_stack import EXTENT, STACK_TAPE, UNSTACK_TAPE
from tensormagic.ops.scalars.comparison import where

_PLAIN = {"pointwise", "fold"}  # kinds of op whose results without axes are NumPy's scalars
_MADE_ARRAYS = {where}  # less these
TAPES = {EMPTY, RECORD, ADD_RECORD, REPLAY, ADD_TAPES, STACK_TAPE, UNSTACK_TAPE, EXTENT}


class Text(Protocol):
    """What writes the text of a graph."""

    names: dict[Node, str]

    def function(self, graph: Graph, name: str) -> list[str]:
        """Return the lines of a function for an inner graph."""
        ...

    def size(self, size: Size) -> str:
        """Return a size."""
        ...

    def dtype(self, node: Node) -> str:
        """Return a node's dtype."""
        ...

    def shape(self, shape: tuple[Size, ...]) -> str:
        """Return a shape."""
        ...


# forms ----------------------------------------------------------------------------------------------------------------


def _formed(text: str, t: Type) -> str:
    """Return a number converted to Python's, to NumPy's, or to a rank-0 array."""
    made = {"python": ".item()", "scalar": "[()]"}.get(t.form, "")
    return f"np.asarray({text}){made}"


def _given(text: Text, node: Node, wanted: Type) -> str:
    own = text.names[node]
    return own if wanted.shape or wanted.form in {"tape", node.type.form} else _formed(own, wanted)


def results_text(names: Sequence[str], results: Sequence[Node]) -> str:
    """Return the return value of an inner function, with numbers in the forms of their types."""
    return ", ".join(
        name
        if r.type.shape or r.type.form == "tape" or r.op in {CONSTANT, PARAMETER} or _has_form(r)
        else _formed(name, r.type)
        for name, r in zip(names, results, strict=True)
    )


def _has_form(node: Node) -> bool:
    kind = node.op.kind
    return node.type.form == "scalar" and kind in _PLAIN and node.op not in _MADE_ARRAYS


# regions --------------------------------------------------------------------------------------------------------------


def region_lines(text: Text, node: Node, name: str) -> list[str]:
    """Return the lines that assign ``name`` the value of a region, or a tuple of its values.

    Raises
    ------
    CaptureError
        For a recursive function.
    """
    write = _REGIONS.get(node.op)
    if write is None:
        raise CaptureError("a function that calls itself has no text in NumPy", "Use code('cpu').")
    return write(text, node, name)


def _operands(text: Text, nodes: Sequence[Node], graph: Graph, first: int = 0) -> list[str]:
    return [_given(text, a, p.type) for a, p in zip(nodes, graph.parameters[first:], strict=True)]


def _call(text: Text, node: Node, name: str) -> list[str]:
    graph: Graph = node["graph"]
    given = _operands(text, node.args, graph)
    return [*text.function(graph, f"call_{name}"), f"{name} = call_{name}({', '.join(given)})"]


def _cond(text: Text, node: Node, name: str) -> list[str]:
    lines: list[str] = []
    calls: list[str] = []
    for which in ("then", "otherwise"):
        graph: Graph = node[which]
        lines += text.function(graph, f"{which}_{name}")
        calls.append(f"{which}_{name}({', '.join(_operands(text, node.args[1:], graph))})")
    return [*lines, f"{name} = {calls[0]} if {text.names[node.args[0]]} else {calls[1]}"]


def _loop(text: Text, node: Node, name: str) -> list[str]:
    body, carries = node["body"], node["carries"]
    start, rest = _starts(text, node.args[1:], body, carries, 1)
    iteration = f"iteration_{name}({', '.join([f'i_{name}', _spread(name, carries), *rest])})"
    return [
        *text.function(body, f"iteration_{name}"),
        f"{name} = {start}",
        f"for i_{name} in range({text.names[node.args[0]]}):",
        f"    {name} = {iteration}",
    ]


def _while(text: Text, node: Node, name: str) -> list[str]:
    body, carries = node["body"], node["carries"]
    start, rest = _starts(text, node.args, body, carries, 0)
    given = ", ".join([_spread(name, carries), *rest])
    return [
        *text.function(node["test"], f"test_{name}"),
        *text.function(body, f"iteration_{name}"),
        f"{name} = {start}",
        f"while test_{name}({given}):",
        f"    {name} = iteration_{name}({given})",
    ]


def _starts(text: Text, args: Sequence[Node], body: Graph, carries: int, first: int) -> tuple[str, list[str]]:
    """Return the initial carries as one text, and the constants."""
    given = _operands(text, args, body, first)
    return given[0] if carries == 1 else f"({', '.join(given[:carries])})", given[carries:]


def _spread(name: str, carries: int) -> str:
    return name if carries == 1 else f"*{name}"


_REGIONS: dict[Operation, Callable[[Text, Node, str], list[str]]] = {
    LOOP: _loop,
    WHILE: _while,
    COND: _cond,
    GRAD: lambda text, node, name: _call(text, GRAD.expand(node), name),
    **dict.fromkeys((CALL, CHECKPOINT, CUSTOM), _call),
}


# tapes: dictionaries of values by their index ---------------------------------------------------------------------------


def tape_text(text: Text, node: Node, args: Sequence[str]) -> str | None:
    """Return the text of an operation on tapes, or None for those of batches."""
    if len(node.args) > 1 and node.op is not ADD_TAPES and node.args[1].type.ndim:
        return None
    t = node.type
    if node.op is EMPTY:
        return "{}"
    if node.op is RECORD:
        return f"{{**{args[0]}, int({args[1]}): {args[2]}}}"
    if node.op is ADD_RECORD:
        return f"{{**{args[0]}, int({args[1]}): {args[0]}[int({args[1]})] + {args[2]} if int({args[1]}) in {args[0]} else {args[2]}}}"
    if node.op is REPLAY:
        nothing = "{}" if t.form == "tape" else f"np.zeros({text.shape(node['shape'])}, {text.dtype(node)})"
        found = f"{args[0]}.get(int({args[1]}), {nothing})"
        return found if node["shape"] or t.form == "tape" else _formed(found, t)
    if node.op is ADD_TAPES:
        one, other = args
        both = f"{{**{one}, **{other}}}"
        return f"{{k: {one}[k] + {other}[k] if k in {one} and k in {other} else {both}[k] for k in {both}}}"
    if node.op is STACK_TAPE:
        count, shape = text.size(node["shape"][0]), text.shape(node["shape"])
        return f"np.array([{args[0]}[k] for k in range({count})], {text.dtype(node)}).reshape({shape})"
    if node.op is UNSTACK_TAPE:
        return f"dict(enumerate({args[0]}))"
    # extent
    return f"(np.shape({args[0]}[int({args[1]})])[{node['axis']}] if int({args[1]}) in {args[0]} else 0)"


# stores by integer arrays -----------------------------------------------------------------------------------------------


def scatter_lines(node: Node, name: str, args: Sequence[str]) -> list[str] | None:
    """Return the lines that assign ``name`` an array with values stored by an integer array, or None for other ops."""
    if not isinstance(node.op, Store):
        return None
    x, indices, values = args
    axis, ufunc = node["axis"], node.op.joins
    if node.op is ADD_ALONG_AXIS:
        rank = node.type.ndim
        grid = f"np.indices(np.shape({indices}), sparse=True)"
        place = f"tuple({indices} if k == {axis} else {grid}[k] for k in range({rank}))"
    else:
        place = f"({'slice(None), ' * axis}{indices},)"
    store = f"np.{ufunc}.at({name}, {place}, {values})" if ufunc else f"{name}[{place}] = {values}"
    return [f"{name} = np.array({x})", store]
