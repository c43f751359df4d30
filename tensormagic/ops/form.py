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
    """A move of one element to where it is."""

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
    """``x``, which has no axes, in a form: whatever forms it had in between."""
    while x.op is FORM and not x.params.get("own"):
        x = x.args[0]
    return x if x.type.form == form else make(FORM, (x,), form=form)


def own_form(x: Node) -> Node:
    """``x``, which has no axes, in the form that it has, as another node: nothing that is known of ``x`` is known of that."""
    return make(FORM, (x,), form=x.type.form, own=True)


def as_array(op: Callable[..., Node]) -> Callable[..., Node]:
    """``op`` of arrays, which gives an array where they have no axes, too."""
    return lambda *args: to_form(op(*args), "array")
