"""Ops that tell whether a call of a library succeeds, for code that catches its error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tensormagic.ir.errors import CaptureError
from tensormagic.ir.node import Node, make
from tensormagic.ir.type import Size, Type
from tensormagic.ops.effects.checks import DIFFERS
from tensormagic.ops.op import Value, registry
from tensormagic.ops.opaque import Opaque, concrete


class _Works(Opaque):
    """An op that runs a call and returns whether it succeeds."""

    def evaluate(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        params = concrete(node.params, size)
        call: Any = registry[params.pop("call")]
        try:
            call.numpy(*values, **params)
        except np.linalg.LinAlgError as error:
            if str(error) != call.fails:
                raise
            return np.False_
        return np.True_


def _type(_args: tuple[Node, ...], _params: Mapping[str, Any]) -> Type:
    return Type(np.dtype(bool), (), "scalar")


def _stacked(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
    raise CaptureError(*DIFFERS["try"][1:])


WORKS = _Works(
    name="works",
    types=_type,
    numpy=lambda *_: np.True_,
    tangent=lambda _node, _tangents: None,
    stacked=_stacked,
    names={"call": lambda name: name in registry},
    doc="Whether a call of a library on these operands raises no error.",
)


def works(node: Node, args: Sequence[Node]) -> Node:
    """Return a node that is true if the call of ``node`` succeeds on ``args``."""
    return make(WORKS, args, call=node.op.name, **node.params)


def failure(node: Node) -> str:
    """Return the message of the error a call may raise; empty if it has none, or several."""
    return node.op.fails
