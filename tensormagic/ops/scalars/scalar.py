"""The scalar functions that a float loop is made of: one record each, with its derivative and its loop code."""

# pyright: reportUnusedImport=false
# Scalar functions are imported from here, whichever file defines them.
from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from tensormagic.ir.node import Node, install_operators
from tensormagic.ops.leaf import constant_value
from tensormagic.ops.op import Tangent, Value
from tensormagic.ops.pointwise import astype
from tensormagic.ops.reverse.squares import is_sum_of_squares
from tensormagic.ops.scalars.arithmetic import (  # noqa: F401 (as above)
    add,
    cbrt,
    divide,
    floor_divide,
    fmod,
    multiply,
    negative,
    positive,
    reciprocal,
    remainder,
    sqrt,
    square,
    subtract,
)
from tensormagic.ops.scalars.between import of_power
from tensormagic.ops.scalars.comparison import (  # noqa: F401 (as above)
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    ceil,
    copysign,
    equal,
    floor,
    fmax,
    fmin,
    gcd,
    greater,
    greater_equal,
    heaviside,
    invert,
    isfinite,
    isinf,
    isnan,
    lcm,
    left_shift,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    nextafter,
    not_equal,
    right_shift,
    rint,
    signbit,
    trunc,
    where,
)
from tensormagic.ops.scalars.function import INF, divided, float_loop, one_like, real_loop, scalar_op, typed  # noqa: F401 (as above)
from tensormagic.ops.tangents import multiply_by

# arithmetic -----------------------------------------------------------------------------------------------------------


def _power_partials(out: Node, x: Node, y: Node) -> tuple[Node, Node]:
    exponent, squares = constant_value(y), is_sum_of_squares(x)
    if exponent is not None and not squares and exponent.all():  # all exponents are nonzero
        by_base = multiply(y, power(x, subtract(y, 1)))
    else:
        flat = logical_and(equal(x, 0), less(y, 1) if squares else equal(y, 0))
        by_base = where(flat, 0, multiply(y, power(where(flat, 1, x), subtract(y, 1))))
    known = logical_or(equal(x, 0), less(x, 0)) if x.type.dtype.kind == "f" else equal(x, 0)
    by_exponent = where(equal(x, 0), where(equal(y, 0), typed(-INF, x), 0), multiply(out, log(where(known, 1, x))))
    if x.type.dtype.kind == "f":
        by_exponent = where(less(x, 0), np.nan, by_exponent)
    return by_base, by_exponent


power = scalar_op(
    "power",
    weight=40,
    steep=True,
    infix="**",
    raises=lambda node: node.type.dtype.kind in "iu",  # raises for negative exponents
    source="power({0}, {1})",
    complex_source="complex_power({0}, {1})",
    partials=_power_partials,
    domain=(0.2, 3.0),
    numbers={"f": operator.pow},
    between=of_power,
    doc="The first number to the power of the second.",
)
# exponentials and logarithms ------------------------------------------------------------------------------------------

exp = scalar_op(
    "exp",
    not_negative=True,
    source="exp({0})",
    partials=lambda out, _x: out,
    complex_source="complex_exp({0})",
    doc="e to the power of the number.",
)
exp2 = scalar_op(
    "exp2",
    not_negative=True,
    source="exp2({0})",
    partials=lambda out, _x: out * float(np.log(2)),
    doc="Two to the power of the number.",
)
expm1 = scalar_op(
    "expm1", weight=22, source="expm1({0})", partials=lambda _out, x: exp(x), doc="exp(x) - 1, accurate near 0."
)
log = scalar_op(
    "log",
    steep=True,
    source="log({0})",
    complex_source="complex_log({0})",
    partials=lambda _out, x: 1 / x,
    domain=(0.05, INF),
    doc="The natural logarithm.",
)
log2 = scalar_op(
    "log2",
    steep=True,
    source="log2({0})",
    partials=lambda _out, x: 1 / (x * float(np.log(2))),
    domain=(0.05, INF),
    doc="The logarithm to base 2.",
)
log10 = scalar_op(
    "log10",
    steep=True,
    source="log10({0})",
    partials=lambda _out, x: 1 / (x * float(np.log(10))),
    domain=(0.05, INF),
    doc="The logarithm to base 10.",
)
log1p = scalar_op(
    "log1p",
    weight=22,
    steep=True,
    source="log1p({0})",
    partials=lambda _out, x: 1 / (1 + x),
    domain=(-0.9, INF),
    doc="log(1 + x), accurate near 0.",
)


def _sigmoid(x: Value) -> Value:
    """Return the logistic function, by NumPy alone, since importing SciPy's takes longer than most first results."""
    x = np.asarray(x)
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, x.dtype.type(1), e) / (1 + e)


sigmoid = scalar_op(
    "sigmoid",
    _sigmoid,
    weight=22,
    not_negative=True,
    source="sigmoid({0})",
    dtypes=real_loop,
    partials=lambda out, x: out * sigmoid(-x),
    in_numpy="scipy.special.expit",
    doc="The logistic function 1/(1 + exp(-x)).",
)


def _softplus(x: Value) -> Value:
    """Return ``log(1 + exp(x))``, computed in place, as NumPy's logaddexp takes three times as long.

    Single precision is computed in double: NumPy's own exponential and logarithm are off by up to two units there.
    """
    x = np.asarray(x)
    e = np.array(np.abs(x), np.float64 if x.dtype == np.float32 else None)
    np.negative(e, out=e)
    np.exp(e, out=e)
    np.log1p(e, out=e)
    e += np.maximum(x, x.dtype.type(0))
    return e.astype(x.dtype, copy=False)


softplus = scalar_op(
    "softplus",
    _softplus,
    weight=24,
    not_negative=True,
    dtypes=real_loop,
    partials=lambda _out, x: sigmoid(x),
    body=lambda x: maximum(x, 0) + log1p(exp(-absolute(x))),
    in_numpy="np.logaddexp({0}, 0)",
    doc="log(1 + exp(x)), without overflow.",
)


def _share(x: Node, y: Node) -> Node:
    """Return the weight of ``x`` in ``logaddexp(x, y)``, also for equal infinities."""
    return where(logical_and(equal(x, y), isinf(x)), 0.5, sigmoid(x - y))


logaddexp = scalar_op(
    "logaddexp",
    weight=24,
    partials=lambda _out, x, y: (_share(x, y), _share(y, x)),
    body=lambda x, y: where(equal(x, y), x + float(np.log(2)), maximum(x, y) + log1p(exp(-absolute(x - y)))),
    commutative=True,
    doc="log(exp(x) + exp(y)), without overflow.",
)
logaddexp2 = scalar_op(
    "logaddexp2",
    partials=lambda _out, x, y: (
        _share(x * float(np.log(2)), y * float(np.log(2))),
        _share(y * float(np.log(2)), x * float(np.log(2))),
    ),
    commutative=True,
    doc="log2(2**x + 2**y), without overflow.",
)


def _log1mexp(x: Value) -> Value:
    x = np.asarray(x)
    with np.errstate(all="ignore"):
        near = np.log(-np.expm1(x))
        far = np.log1p(-np.exp(x))
    return np.where((x > -np.log(2)) & (x <= 0), near, far).astype(x.dtype)


log1mexp = scalar_op(
    "log1mexp",
    _log1mexp,
    weight=24,
    dtypes=real_loop,
    partials=lambda _out, x: -1 / expm1(-x),
    body=lambda x: where(logical_and(greater(x, -float(np.log(2))), less_equal(x, 0)), log(-expm1(x)), log1p(-exp(x))),
    domain=(-INF, -0.05),
    in_numpy="np.where(({0} > -np.log(2)) & ({0} <= 0), np.log(-np.expm1({0})), np.log1p(-np.exp({0})))",
    doc="log(1 - exp(x)) for negative x, accurate near 0 and far from it; -inf where exp(x) is rounded to 1.",
)

# trigonometry ---------------------------------------------------------------------------------------------------------

sin = scalar_op("sin", source="sin({0})", partials=lambda _out, x: cos(x), doc="The sine of an angle in radians.")
cos = scalar_op("cos", source="cos({0})", partials=lambda _out, x: -sin(x), doc="The cosine of an angle in radians.")
tan = scalar_op(
    "tan",
    source="tan({0})",
    partials=lambda out, _x: 1 + out * out,
    domain=(-1.2, 1.2),
    doc="The tangent of an angle in radians.",
)
arcsin = scalar_op(
    "arcsin",
    steep=True,
    source="arcsin({0})",
    partials=lambda _out, x: 1 / sqrt(1 - x * x),
    domain=(-0.9, 0.9),
    doc="The inverse sine.",
)
arccos = scalar_op(
    "arccos",
    steep=True,
    source="arccos({0})",
    partials=lambda _out, x: -1 / sqrt(1 - x * x),
    domain=(-0.9, 0.9),
    doc="The inverse cosine.",
)
arctan = scalar_op("arctan", source="arctan({0})", partials=lambda _out, x: 1 / (1 + x * x), doc="The inverse tangent.")


def _angle_partials(_out: Node, y: Node, x: Node) -> tuple[Node, Node]:
    """Return the partial derivatives, taken as 0 at the origin."""
    size = x * x + y * y
    origin = equal(size, 0)
    safe = where(origin, 1, size)
    return where(origin, 0, x / safe), where(origin, 0, -y / safe)


arctan2 = scalar_op(
    "arctan2",
    source="arctan2({0}, {1})",
    partials=_angle_partials,
    domain=(0.1, INF),
    doc="The angle of the point (x, y), given as arctan2(y, x).",
)
sinh = scalar_op("sinh", source="sinh({0})", partials=lambda _out, x: cosh(x), doc="The hyperbolic sine.")
cosh = scalar_op(
    "cosh", not_negative=True, source="cosh({0})", partials=lambda _out, x: sinh(x), doc="The hyperbolic cosine."
)
tanh = scalar_op("tanh", source="tanh({0})", partials=lambda out, _x: 1 - square(out), doc="The hyperbolic tangent.")
arcsinh = scalar_op(
    "arcsinh",
    source="arcsinh({0})",
    partials=lambda _out, x: 1 / sqrt(x * x + 1),
    doc="The inverse hyperbolic sine.",
)
arccosh = scalar_op(
    "arccosh",
    steep=True,
    source="arccosh({0})",
    partials=lambda _out, x: 1 / sqrt(x * x - 1),
    domain=(1.2, INF),
    doc="The inverse hyperbolic cosine.",
)
arctanh = scalar_op(
    "arctanh",
    steep=True,
    source="arctanh({0})",
    partials=lambda _out, x: 1 / (1 - x * x),
    domain=(-0.9, 0.9),
    doc="The inverse hyperbolic tangent.",
)
hypot = scalar_op(
    "hypot",
    weight=24,
    not_negative=True,
    source="hypot({0}, {1})",
    partials=lambda out, x, y: (where(equal(out, 0), 0, x / out), where(equal(out, 0), 0, y / out)),
    domain=(0.05, INF),
    doc="sqrt(x*x + y*y), without overflow.",
)
degrees = scalar_op(
    "degrees", np.degrees, partials=lambda _out, x: (180 / np.pi) * (x * 0 + 1), doc="Radians to degrees."
)
radians = scalar_op(
    "radians", np.radians, partials=lambda _out, x: (np.pi / 180) * (x * 0 + 1), doc="Degrees to radians."
)
# complex numbers ------------------------------------------------------------------------------------------------------


def _absolute_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    (x,), (t,) = node.args, tangents
    if t is None:
        return None
    if x.type.dtype.kind != "c":
        return multiply_by(sign(x), t)
    return real(conjugate(sign(x)) * t)


absolute = scalar_op(
    "absolute",
    weight=2,
    not_negative=True,
    picks=True,
    source={"f": "abs({0})", "i": "abs({0})", "u": "{0}", "b": "{0}"},
    linearise=_absolute_tangent,
    domain=(0.05, INF),
    numbers={"c": abs},
    complex_source="hypot({0}.real, {0}.imag)",
    doc="The absolute value.",
)
real = scalar_op(
    "real",
    lambda x: np.real(x).copy(),
    weight=3,
    dtypes=lambda operands: ((np.dtype(operands[0]),), np.zeros(0, operands[0]).real.dtype),
    source={"c": "{0}.real", "f": "{0}"},
    linearise=lambda _node, tangents: real(tangents[0]),
    back=lambda node, ct, _linear: (astype(ct, node.args[0].type.dtype),),
    in_numpy="np.real({0})",
    complex_source="{0}.real",
    doc="The real part.",
)
imag = scalar_op(
    "imag",
    lambda x: np.imag(x).copy(),
    weight=3,
    dtypes=lambda operands: ((np.dtype(operands[0]),), np.zeros(0, operands[0]).real.dtype),
    source={"c": "{0}.imag", "f": "0.0"},
    linearise=lambda _node, tangents: imag(tangents[0]),
    back=lambda node, ct, _linear: (
        astype(ct, node.args[0].type.dtype) * -1j if node.args[0].type.dtype.kind == "c" else ct * 0,
    ),
    in_numpy="np.imag({0})",
    complex_source="{0}.imag",
    doc="The imaginary part.",
)
conjugate = scalar_op(
    "conjugate",
    weight=3,
    source={"f": "{0}", "i": "{0}", "u": "{0}", "c": "{0}.conjugate()"},
    linearise=lambda _node, tangents: conjugate(tangents[0]),
    back=lambda _node, ct, _linear: (conjugate(ct),),
    complex_source="{0}.conjugate()",
    doc="The complex conjugate.",
)
sign = scalar_op(
    "sign",
    weight=3,
    source={
        "f": "(1 if {0} > 0 else (-1 if {0} < 0 else (0 if {0} == 0 else {0})))",
        "i": "(1 if {0} > 0 else (-1 if {0} < 0 else 0))",
        "u": "(1 if {0} > 0 else 0)",
    },
    step="fiub",
    linearise=lambda node, tangents: _sign_tangent(node, tangents[0]),
    doc="-1, 0 or 1; for complex numbers z/|z|.",
)


def _sign_tangent(node: Node, tangent: Tangent) -> Tangent:
    (z,) = node.args
    if tangent is None:
        return None
    size = absolute(z)
    rotation = conjugate(node) * tangent
    return node * astype(imag(rotation), z.type.dtype) * 1j / astype(size, z.type.dtype)


stop_gradient = scalar_op(
    "stop_gradient",
    lambda x: np.array(x),
    dtypes=lambda operands: ((np.dtype(operands[0]),), np.dtype(operands[0])),
    source=dict.fromkeys("fiubc", "{0}"),
    step=True,
    in_numpy="{0}",
    complex_source="{0}",
    doc="The number itself, treated as a constant by derivatives.",
)

install_operators(
    {
        "add": add,
        "subtract": subtract,
        "multiply": multiply,
        "divide": divide,
        "power": power,
        "negative": negative,
        "absolute": absolute,
        "less": less,
        "less_equal": less_equal,
        "greater": greater,
        "greater_equal": greater_equal,
    }
)
