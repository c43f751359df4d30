"""Choice, comparison, logic, bits and rounding: scalar functions most of which are steps, and so without derivative."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tensormagic.ir.node import Node, make
from tensormagic.ir.size import apply
from tensormagic.ops.leaf import CONSTANT, constant
from tensormagic.ops.op import Tangent
from tensormagic.ops.pointwise import ASTYPE, Pointwise, Weak, astype
from tensormagic.ops.scalars.between import of_choice, of_mask
from tensormagic.ops.scalars.function import INF, SPECIAL, scalar_op, typed
from tensormagic.ops.tangents import masked_by, multiply_by, total

# choice ---------------------------------------------------------------------------------------------------------------


def _where_dtypes(operands: Sequence[Weak]) -> tuple[tuple[np.dtype[Any], ...], np.dtype[Any]]:
    samples = [w(0) if isinstance(w, type) else np.zeros((), w) for w in operands[1:]]
    out = np.result_type(*samples)
    return (np.dtype(bool), out, out), out


def _where_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    _, x, y = tangents
    return where(node.args[0], 0 if x is None else x, 0 if y is None else y)


where = scalar_op(
    "where",
    np.where,
    weight=2,
    picks=True,
    arity=3,
    dtypes=_where_dtypes,
    source={"b": "{1} if {0} else {2}"},
    linearise=_where_tangent,
    back=lambda node, ct, linear: (
        None,
        where(node.args[0], ct, 0) if linear[1] else None,
        where(node.args[0], 0, ct) if linear[2] else None,
    ),
    complex_source="{1} if {0} else {2}",
    between=of_choice,
    linear="rest",
    fixed=((True, False, True, True),),
    doc="The second number where the first is true, else the third.",
)


def _chosen(*, larger: bool) -> Callable[[Node, Sequence[Tangent]], Tangent]:
    """Return the rule for the tangent of the chosen operand (the mean on ties); the other operand's is ignored even if infinite."""

    def linearise(node: Node, tangents: Sequence[Tangent]) -> Tangent:
        terms: list[Node] = []
        for tangent, x, y in zip(tangents, node.args, reversed(node.args), strict=True):
            if tangent is not None:
                share = where(equal(x, y), typed(0.5, tangent), typed(1, tangent))
                ahead = greater_equal(x, y) if larger else less_equal(x, y)
                terms.append(masked_by(ahead, multiply_by(share, tangent)))
        return total(terms)

    return linearise


_GREATER = "{0} if {0} > {1} else {1}"
_LESS = "{0} if {0} < {1} else {1}"
maximum = scalar_op(
    "maximum",
    weight=3,
    sizes=partial(apply, "max"),
    keeps_sign=True,
    picks=True,
    source={"f": "max_propagate({0}, {1})", "i": _GREATER, "u": _GREATER, "b": "{0} | {1}"},
    linearise=_chosen(larger=True),
    doc="The larger number; nan if either is nan.",
)
minimum = scalar_op(
    "minimum",
    weight=3,
    sizes=partial(apply, "min"),
    picks=True,
    source={"f": "min_propagate({0}, {1})", "i": _LESS, "u": _LESS, "b": "{0} & {1}"},
    linearise=_chosen(larger=False),
    doc="The smaller number; nan if either is nan.",
)
fmax = scalar_op("fmax", picks=True, linearise=_chosen(larger=True), doc="The larger number; a nan is ignored.")
fmin = scalar_op("fmin", picks=True, linearise=_chosen(larger=False), doc="The smaller number; a nan is ignored.")

# comparison and logic -------------------------------------------------------------------------------------------------


class Comparison(Pointwise):
    """A comparison; Python integers of any size are compared exactly, as in NumPy."""

    def __call__(self, *operands: Any) -> Node:
        nodes = [operand if isinstance(operand, Node) else constant(operand) for operand in operands]
        left, right = nodes
        return super().__call__(_unweakened(left, right), _unweakened(right, left))


def _unweakened(x: Node, other: Node) -> Node:
    """Return a Python integer as an int64, if it may not fit the dtype of ``other``, else ``x``."""
    if (
        x.type.form != "python"
        or x.type.dtype.kind != "i"
        or other.type.form == "python"
        or other.type.dtype.kind not in "iu"
    ):
        return x
    if x.op is not CONSTANT:
        return make(ASTYPE, (x,), dtype=x.type.dtype.str, strong=True)
    value, limits = x["bits"].array()[()], np.iinfo(other.type.dtype)
    return x if limits.min <= int(value) <= limits.max else constant(value)


def _comparison(name: str, symbol: str, *, commutative: bool = False) -> Pointwise:
    source = dict.fromkeys("fiub", f"{{0}} {symbol} {{1}}")
    return Comparison(
        name=name,
        numpy=getattr(np, name),
        source=source,
        complex_source=source["f"] if commutative else "",  # complex numbers are compared for equality only
        infix=symbol,
        weight=3,
        edges=SPECIAL,
        step=True,
        commutative=commutative,
        doc=f"Whether x {symbol} y.",
    )


less = _comparison("less", "<")
less_equal = _comparison("less_equal", "<=")
greater = _comparison("greater", ">")
greater_equal = _comparison("greater_equal", ">=")
equal = _comparison("equal", "==", commutative=True)
not_equal = _comparison("not_equal", "!=", commutative=True)

_TRUTH = dict.fromkeys("fiu", "({0} != 0) {op} ({1} != 0)") | {"b": "{0} {op} {1}"}


def _truth(op: str) -> dict[str, str]:
    return {kind: text.replace("{op}", op) for kind, text in _TRUTH.items()}


logical_and = scalar_op(
    "logical_and", weight=3, source=_truth("&"), step=True, commutative=True, doc="Whether both are true."
)
logical_or = scalar_op(
    "logical_or", weight=3, source=_truth("|"), step=True, commutative=True, doc="Whether at least one is true."
)
logical_xor = scalar_op(
    "logical_xor", weight=3, source=_truth("!="), step=True, commutative=True, doc="Whether exactly one is true."
)
logical_not = scalar_op(
    "logical_not", weight=3, source=dict.fromkeys("fiub", "{0} == 0"), step=True, doc="Whether it is false."
)
# bits and rounding ----------------------------------------------------------------------------------------------------

bitwise_and = scalar_op(
    "bitwise_and",
    weight=3,
    between=of_mask,
    infix="&",
    source=dict.fromkeys("iub", "{0} & {1}"),
    step=True,
    commutative=True,
    doc="Bits that are set in both.",
)
bitwise_or = scalar_op(
    "bitwise_or",
    weight=3,
    infix="|",
    source=dict.fromkeys("iub", "{0} | {1}"),
    step=True,
    commutative=True,
    doc="Bits that are set in at least one.",
)
bitwise_xor = scalar_op(
    "bitwise_xor",
    weight=3,
    infix="^",
    source=dict.fromkeys("iub", "{0} ^ {1}"),
    step=True,
    commutative=True,
    doc="Bits that are set in exactly one.",
)
invert = scalar_op(
    "invert", weight=3, source={"i": "~{0}", "u": "~{0}", "b": "not {0}"}, step=True, doc="Every bit inverted."
)
left_shift = scalar_op(
    "left_shift",
    infix="<<",
    source={"i": "({0} << {1} if 0 <= {1} < 64 else 0)", "u": "({0} << {1} if {1} < 64 else {0} ^ {0})"},
    step=True,
    doc="Bits shifted left.",
    edges=(0, 1, 2, 7, 31, 63),
)
right_shift = scalar_op(
    "right_shift",
    infix=">>",
    source={
        "i": "({0} >> {1} if 0 <= {1} < 64 else (-1 if {0} < 0 else 0))",
        "u": "({0} >> {1} if {1} < 64 else {0} ^ {0})",
    },
    step=True,
    doc="Bits shifted right.",
    edges=(0, 1, 2, 7, 31, 63),
)
gcd = scalar_op("gcd", step=True, doc="The greatest common divisor.")
lcm = scalar_op("lcm", step=True, doc="The least common multiple.")

floor = scalar_op(
    "floor", weight=3, source={"f": "np.floor({0})", "i": "{0}", "u": "{0}", "b": "{0}"}, step=True, doc="Rounded down."
)
ceil = scalar_op(
    "ceil", weight=3, source={"f": "np.ceil({0})", "i": "{0}", "u": "{0}", "b": "{0}"}, step=True, doc="Rounded up."
)
trunc = scalar_op(
    "trunc",
    weight=3,
    source={"f": "np.trunc({0})", "i": "{0}", "u": "{0}", "b": "{0}"},
    step=True,
    doc="Rounded to zero.",
)
rint = scalar_op(
    "rint", weight=3, source="np.rint({0})", step=True, doc="Rounded to the nearest integer, halves to even."
)

signbit = scalar_op("signbit", step=True, doc="Whether the sign bit is set.")
isnan = scalar_op(
    "isnan",
    weight=3,
    source={"f": "{0} != {0}", "i": "False", "u": "False", "b": "False"},
    step=True,
    complex_source="{0}.real != {0}.real or {0}.imag != {0}.imag",
    doc="Whether it is nan.",
)
isinf = scalar_op(
    "isinf",
    weight=3,
    source={"f": "abs({0}) == np.inf", "i": "False", "u": "False", "b": "False"},
    step=True,
    complex_source="abs({0}.real) == np.inf or abs({0}.imag) == np.inf",
    doc="Whether it is infinite.",
)
isfinite = scalar_op(
    "isfinite",
    weight=3,
    source={"f": "abs({0}) < np.inf", "i": "True", "u": "True", "b": "True"},
    step=True,
    complex_source="abs({0}.real) < np.inf and abs({0}.imag) < np.inf",
    doc="Whether it is neither infinite nor nan.",
)
copysign = scalar_op(
    "copysign",
    picks=True,
    partials=lambda _out, x, y: (where(equal(signbit(x), signbit(y)), typed(1, x), -1), None),
    domain=(0.05, INF),
    doc="The first number with the sign of the second.",
)
heaviside = scalar_op(
    "heaviside",
    partials=lambda _out, x, _h: (None, astype(equal(x, 0), x.type.dtype)),
    domain=(0.05, INF),
    doc="0, h or 1 for negative, zero or positive x.",
)
nextafter = scalar_op(
    "nextafter",
    partials=lambda _out, x, _towards: (typed(1, x), None),
    doc="The next floating-point number towards the second.",
)
