"""Numbers whose dtype is data-dependent, and arrays made of them, to which NumPy might give a narrower dtype.

Where one branch gives an integer and the other a float, the number is a float here on both. In NumPy, an array of
such numbers is an array of integers if each of them is one; a float that is stored into it is truncated then.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import refuse
from tensormagic.ir.errors import TensorError
from tensormagic.ir.node import Node, moves, substitute, topological
from tensormagic.ops.effects.checks import REQUIRE
from tensormagic.ops.leaf import CONSTANT, Source, constant, input_node


def note(node: Node, narrower: np.dtype[Any]) -> None:
    """Record that a value would have the dtype ``narrower`` in NumPy for some data."""
    capture = context.current()
    if capture is not None and narrower != node.type.dtype:
        capture.classes.undecided[node] = narrower


def narrowest(node: Node) -> np.dtype[Any]:
    """Return the dtype that a value may have in NumPy for some data."""
    capture, below = context.current(), node
    known = {} if capture is None else capture.classes.undecided
    while below not in known and _shows_another(below):
        below = below.args[0]
    return known.get(below, node.type.dtype)


def _shows_another(node: Node) -> bool:
    """Return whether a node is another value, only moved or checked."""
    return node.op is REQUIRE or moves(node)


def is_undecided(node: Node) -> bool:
    """Return whether data may decide the dtype of a number, because they decide that of a number it is computed from."""
    capture = context.current()
    known = {} if capture is None else capture.classes.undecided
    inside = topological([node], stop=known.__contains__) if known else []
    below = [n for n in inside if n in known]
    if not below or node in known:
        return bool(below)
    narrower = {n: input_node(Source("a number of another dtype"), replace(n.type, dtype=known[n])) for n in below}
    narrower |= {n: constant(int(n["bits"].array())) for n in inside if may_be_integer(n)}
    try:
        return substitute([node], narrower)[0].type.dtype != node.type.dtype
    except (TensorError, TypeError):  # an operation that does not support such numbers
        return False


def may_be_integer(node: Node) -> bool:
    """Return whether a Python float in the code may be written as an integer: beside a float that makes no difference."""
    weak = node.op is CONSTANT and node.type.form == "python" and node.type.dtype.kind == "f"
    return weak and abs(value := float(node["bits"].array())) < _LARGE and value.is_integer()


_LARGE = 2**62


def joined(node: Node, parts: Iterable[Node]) -> Node:
    """Return an array of parts, recorded as undecided if its parts are."""
    capture = context.current()
    if capture is not None and capture.classes.undecided:
        note(node, np.result_type(*map(narrowest, parts)))
    return node


def refuse_cut(first: Node, value: Node) -> None:
    """Raise if a store into an array, whose first value was ``first``, would truncate the stored value for some data."""
    narrower = narrowest(first)
    if narrower != first.type.dtype and not np.can_cast(value.type.dtype, narrower, "same_kind"):
        refuse(
            f"a store of {value.type.dtype} into an array that is {narrower} or {first.type.dtype}, depending on the data,",
            "Let both branches give numbers of the same kind: 0.0 instead of 0.",
        )
