"""Numbers of which data decide the dtype, and arrays that are made of them: NumPy's might be of a narrower one.

Where one way of a branch gives an integer and the other a float, the number is a float here on both. An array of such numbers is an array
of integers in NumPy, where each of them is one; a float that is stored into it is cut then.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.refusal import refuse
from tensormagic.ir.node import Node


def note(node: Node, narrower: np.dtype[Any]) -> None:
    """Note that a value would be of ``narrower`` in NumPy, as data say."""
    capture = context.current()
    if capture is not None and narrower != node.type.dtype:
        capture.undecided[node] = narrower


def narrowest(node: Node) -> np.dtype[Any]:
    """The dtype that a value may be of in NumPy, as data say."""
    capture, below = context.current(), node
    known = {} if capture is None else capture.undecided
    while below not in known and _shows_another(below):
        below = below.args[0]
    return known.get(below, node.type.dtype)


def joined(node: Node, parts: Iterable[Node]) -> Node:
    """An array of parts, noted where these are such numbers."""
    capture = context.current()
    if capture is not None and capture.undecided:
        note(node, np.result_type(*map(narrowest, parts)))
    return node


def _shows_another(node: Node) -> bool:
    """Whether a value is another one, moved, or asked for something before."""
    return node.op.name == "require" or (getattr(node.op, "kind", "") == "move" and len(node.args) == 1)


def refuse_cut(first: Node, value: Node) -> None:
    """Refuse to store what an array, that was ``first`` at first, would cut, as data say."""
    narrower = narrowest(first)
    if narrower != first.type.dtype and not np.can_cast(value.type.dtype, narrower, "same_kind"):
        refuse(
            f"a store of {value.type.dtype} into an array of which data decide whether it is {narrower} or {first.type.dtype},",
            "Let both branches give numbers of one kind: 0.0 in place of 0.",
        )
