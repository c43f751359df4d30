"""Values known while a function is being captured: those of the call that it is captured for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.inputs import door
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.node import Node, topological
from tensormagic.ir.size import Atom, Size, Symbol, evaluate
from tensormagic.ops.effects.telling import silently
from tensormagic.ops.leaf import CONSTANT, INPUT


def value_here(node: Node, what: str) -> Any:
    """Return the value of a node in the call being captured; ``what`` names what needs it.

    Raises
    ------
    CaptureError
        If an operand has no value: in a batch, or with types alone.
    """
    capture = context.current()
    if capture is None:
        raise AssertionError
    table = capture.inputs.values

    def number(atom: Atom) -> int:
        found = atom.hint if isinstance(atom, Symbol) else int(table[atom])
        if found is None:
            raise _missing(what)
        return found

    def size(s: Size) -> int:
        return s if isinstance(s, int) else evaluate(s, number)

    missing = (n for n in topological([node], stop=lambda n: n in table) if n not in table)
    for one in list(missing):
        table[one] = _leaf(one, capture, what) if one.op is INPUT else _computed(one, table, size)
    return table[node]


def _computed(node: Node, table: dict[Node, Any], size: Callable[[Size], int]) -> Any:
    if node.op is CONSTANT:
        return node.op.evaluate(node, (), int)
    with np.errstate(all="ignore"), silently():  # warnings and prints come when the graph runs
        return node.op.evaluate(node, [table[a] for a in node.args], size)


def _leaf(node: Node, capture: context.Capture, what: str) -> Any:
    """Return the value of an input: of its argument, or of a name that the function was found to read."""
    if node in capture.inputs.behind:
        return value_here(capture.inputs.behind[node], what)
    source = node["source"]
    read = getattr(source, "read", None)
    if read is not None:
        return read()
    for place, tensor in capture.names.lifted.items():
        first = getattr(getattr(getattr(tensor, "place", None), "buffer", None), "first", None)
        if first is node and place in capture.names.noted:
            name, space = capture.names.noted[place]
            return door.variable(space[name], name)
    raise _missing(what)


def _missing(what: str) -> CaptureError:
    return CaptureError(
        f"{what} needs the values of its arguments, which are not known here",
        "Call the function with arrays; in a batch, or when compiling for types, write it as NumPy code.",
    )
