"""The rank-0 form of a value: array without axes, NumPy scalar, or Python number, which promotes weakly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensormagic.ir.node import Node, make
from tensormagic.ir.type import Form, Size, Type
from tensormagic.ops.move_kind import Move
from tensormagic.ops.op import Value, as_form


@dataclass(frozen=True, eq=False, kw_only=True)
class ToForm(Move):
    """The identity on a rank-0 value, in another form."""

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
        return Type(args[0].type.dtype, (), params["form"])

    def evaluate(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        return as_form(values[0], node["form"])

    def expression(self, node: Node, given: Sequence[str], scope: Any) -> str | None:
        return scope.text.formed(given[0], node.args[0].type, node.type)


FORM = ToForm(
    name="form",
    hands_on=True,
    doc="A number as an array without axes, as a NumPy scalar or as a Python number.",
    shape=lambda _args, _params: (),
    stacked=lambda _node, x, _size: x,
    numpy=lambda node, values, _size: as_form(values[0], node["form"]),
    back=lambda node, cotangent: to_form(cotangent, node.args[0].type.form),
    index=lambda _node, index: index,
)


def to_form(x: Node, form: Form) -> Node:
    """Return ``x``, of rank 0, in another form; forms in between are dropped."""
    while x.op is FORM and not x.params.get("own"):
        x = x.args[0]
    return x if x.type.form == form else make(FORM, (x,), form=form)


def own_form(x: Node) -> Node:
    """Return ``x``, of rank 0, as a new node in the same form, about which nothing is known."""
    return make(FORM, (x,), form=x.type.form, own=True)


def as_array(op: Callable[..., Node]) -> Callable[..., Node]:
    """Return ``op``, with an array as the result even at rank 0."""
    return lambda *args: to_form(op(*args), "array")
