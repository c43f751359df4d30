"""``scipy.special`` on lazy arrays, by the functions' names: SciPy is imported only where the user's code imports it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.library.reductions import axis_of
from tensormagic.capture.names import implements
from tensormagic.capture.values.arguments import pad_empty_axes
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, done, wrap
from tensormagic.ir.errors import DTypeError
from tensormagic.ir.node import Node
from tensormagic.ops import fold as folds
from tensormagic.ops.fold import axes_of, fold, reduce_sum, row
from tensormagic.ops.form import to_form
from tensormagic.ops.move import broadcast, expand_dims, reshape
from tensormagic.ops.move_kind import broadcast_shapes
from tensormagic.ops.op import registry
from tensormagic.ops.pointwise import Pointwise, astype
from tensormagic.ops.scalars import bessel, scalar, special

# functions of one element ---------------------------------------------------------------------------------------------


def in_loop(name: str, operands: Sequence[Any]) -> list[Node]:
    """Return operands in the dtypes of SciPy's loop for them; Python numbers alone make NumPy scalars."""
    nodes = [node_of(v) for v in operands]
    if all(n.type.form == "python" for n in nodes):
        nodes = [to_form(n, "scalar") for n in nodes]
    weak = [type(n.type.dtype.type(0).item()) if n.type.form == "python" else n.type.dtype for n in nodes]
    function = getattr(import_module("scipy.special"), name)
    try:
        *loop, _ = function.resolve_dtypes((*weak, None))
    except TypeError as error:
        raise DTypeError(f"scipy.special.{name}: {error}") from None
    return [
        to_form(astype(n, d), "scalar") if not n.type.shape else astype(n, d) for n, d in zip(nodes, loop, strict=True)
    ]


def _elementwise(name: str, build: Callable[..., Node]) -> None:
    def call(*operands: Any) -> Tensor:
        return done(build(*in_loop(name, operands)))

    implements(f"scipy.special.{name}")(call)


_IN_SCIPY = re.compile(r"scipy\.special\.(\w+)")
_APART = {"polygamma", "zeta", "digamma"}  # two take other operands than the ops, below; the third is SciPy's psi
_ALSO = {op.name: op for op in (scalar.cbrt, scalar.exp2, scalar.expm1, scalar.log1p)} | {"psi": special.digamma}
_FOUND = [(_IN_SCIPY.fullmatch(op.in_numpy), op) for op in registry.values() if isinstance(op, Pointwise)]
_OPS: dict[str, Pointwise] = {m[1]: op for m, op in _FOUND if m and m[1] not in _APART} | _ALSO
for _name, _op in _OPS.items():
    _elementwise(_name, _op)


def _number(value: float, like: Node) -> Node:
    return scalar.typed(value, like)


def xlog1py(x: Node, y: Node) -> Node:
    """Return the product x log(1 + y), which is 0 for x = 0."""
    zero = scalar.logical_and(scalar.equal(x, 0), scalar.logical_not(scalar.isnan(y)))
    return scalar.where(zero, _number(0, x), x * scalar.log1p(scalar.where(zero, _number(0, y), y)))


def entr(x: Node) -> Node:
    """Return the entropy -x log(x), -inf for negative numbers."""
    inside = scalar.greater_equal(x, 0)
    safe = scalar.where(inside, x, 1)
    outside = scalar.where(scalar.isnan(x), np.nan, _number(-np.inf, x))
    return scalar.where(inside, _number(0, x) - special.xlogy(safe, safe), outside)


def _divergence(x: Node, y: Node, extra: Callable[[Node, Node], Node], edge: Node) -> Node:
    """Return the divergence x log(x/y) with ``extra`` for positive numbers, ``edge`` for x = 0 and y >= 0, else inf."""
    inside = scalar.logical_and(scalar.greater_equal(x, 0), scalar.greater(y, 0))
    first, second = scalar.where(inside, x, 1), scalar.where(inside, y, 1)
    value = extra(special.xlogy(first, first / second), first - second)
    at_edge = scalar.logical_and(scalar.equal(x, 0), scalar.greater_equal(y, 0))
    unknown = scalar.logical_or(scalar.isnan(x), scalar.isnan(y))
    outside = scalar.where(unknown, np.nan, scalar.where(at_edge, edge, _number(np.inf, x)))
    return scalar.where(inside, value, outside)


def huber(delta: Node, r: Node) -> Node:
    """Return half of r*r within ``delta`` of 0, linear beyond."""
    size = scalar.absolute(r)
    value = scalar.where(scalar.less_equal(size, delta), 0.5 * r * r, delta * (size - 0.5 * delta))
    return scalar.where(scalar.less(delta, 0), _number(np.inf, r), value)


def pseudo_huber(delta: Node, r: Node) -> Node:
    """Return the smooth loss delta**2 (sqrt(1 + (r/delta)**2) - 1), computed without cancellation."""
    off = scalar.logical_or(scalar.equal(delta, 0), scalar.equal(r, 0))
    u, v = scalar.where(off, 1, delta), scalar.where(off, 1, r) / scalar.where(off, 1, delta)
    value = u * u * (v * v) / (1 + scalar.sqrt(1 + v * v))
    # Around r = 0 the function is r*r/2: its value there is 0, and its curvature stays 1.
    value = scalar.where(off, 0.5 * r * r * astype(scalar.not_equal(delta, 0), r.type.dtype), value)
    return scalar.where(scalar.less(delta, 0), _number(np.inf, r), value)


_elementwise("log_expit", lambda x: -scalar.softplus(-x))
_elementwise("xlog1py", xlog1py)
_elementwise("entr", entr)
_elementwise("rel_entr", lambda x, y: _divergence(x, y, lambda value, _gap: value, _number(0, x)))
_elementwise("kl_div", lambda x, y: _divergence(x, y, lambda value, gap: value - gap, y))
_elementwise("huber", huber)
_elementwise("pseudo_huber", pseudo_huber)
_elementwise("exp10", lambda x: scalar.power(_number(10, x), x))
_elementwise("ndtr", lambda x: special.erfc(x * -math.sqrt(0.5)) * 0.5)
_elementwise("k0", lambda x: bessel.kv(_number(0, x), x))
_elementwise("k1", lambda x: bessel.kv(_number(1, x), x))


@implements("scipy.special.softplus")
def softplus(x: Any, **options: Any) -> Any:
    """Implement ``scipy.special.softplus``."""
    if options:
        refuse(f"scipy.special.softplus with {', '.join(options)}", "Leave the option out.")
    node = node_of(x)
    return done(scalar.softplus(to_form(node, "scalar") if node.type.form == "python" else node))


@implements("scipy.special.polygamma")
def polygamma(n: Any, x: Any) -> Any:
    """Implement ``scipy.special.polygamma``, differentiable in ``x``."""
    return done(special.polygamma(astype(node_of(n), np.float64), astype(node_of(x), np.float64)))


@implements("scipy.special.zeta")
def zeta(x: Any, q: Any = None, out: Any = None) -> Any:
    """Implement ``scipy.special.zeta`` of two operands."""
    if q is None or out is not None:
        refuse("scipy.special.zeta without q, or with out=", "For x > 1 write zeta(x, 1).")
    return done(special.zeta(*in_loop("huber", (x, q))))


@implements("scipy.special.yn")
def yn(n: Any, x: Any) -> Any:
    """Implement ``scipy.special.yn``: the Bessel function of integer order."""
    order, value = in_loop("yn", (n, x))
    if order.type.dtype.kind == "f":
        refuse("scipy.special.yn of an order that is not an integer", "Use scipy.special.yv.")
    return done(bessel.yv(astype(order, value.type.dtype), value))


@implements("scipy.special.multigammaln")
def multigammaln(a: Any, d: Any) -> Any:
    """Implement ``scipy.special.multigammaln``."""
    (x,) = in_loop("gammaln", (a,))
    terms = [special.gammaln(x - j / 2) for j in range(int(d))]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return done(total + int(d) * (int(d) - 1) * 0.25 * math.log(math.pi))


def _strong(value: Any) -> Node:
    """Return an operand that went through ``np.asarray``: a Python number is not weak."""
    node = node_of(value)
    return to_form(node, "array") if node.type.form == "python" else node


@implements("scipy.special.comb")
def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:
    """Implement ``scipy.special.comb`` in floating point."""
    if exact:
        refuse("scipy.special.comb with exact=True", "Leave exact out: the result is a float.")
    if repetition:
        whole, part = node_of(N), node_of(k)
        n, m = in_loop("binom", (wrap(whole + part - 1), part))
        none = scalar.logical_and(scalar.equal(part, 0), scalar.greater_equal(whole, 0))
        return done(scalar.where(none, _number(1, n), special.binom(n, m)))
    n, m = in_loop("binom", [_strong(v) for v in (N, k)])
    known = scalar.logical_and(
        scalar.less_equal(m, n), scalar.logical_and(*(scalar.greater_equal(v, 0) for v in (n, m)))
    )
    return done(scalar.where(known, special.binom(n, m), _number(0, n)))


@implements("scipy.special.factorial")
def factorial(n: Any, exact: bool = False, extend: str = "zero") -> Any:
    """Implement ``scipy.special.factorial`` in floating point."""
    if exact or extend != "zero":
        refuse("scipy.special.factorial with exact=True or extend", "Leave the option out: the result is a float.")
    node = node_of(n)
    if node.type.dtype.kind == "c":
        raise ValueError("In order to use non-integer arguments, you must opt into this by passing `extend='complex'`.")
    x = astype(node, node.type.dtype if node.type.dtype in {np.dtype("f4"), np.dtype("f8")} else np.float64)
    negative = scalar.less(x, 0)
    value = astype(special.gamma(1 + scalar.where(negative, 0, x)), np.float64)
    return done(scalar.where(negative, _number(0, value), value))


# along axes -----------------------------------------------------------------------------------------------------------


def _real(name: str, value: Any) -> Node:
    """Return an operand of exp: floats unchanged, integers converted as NumPy's exp converts them."""
    node = node_of(value)
    if node.type.dtype.kind == "c":
        refuse(f"scipy.special.{name} of complex numbers", "Take the real part, or write it with np.exp.")
    if node.type.dtype.kind == "b":
        raise DTypeError(f"scipy.special.{name} does not take truth values: they cannot be subtracted")
    return node if node.type.dtype.kind == "f" else astype(node, np.exp.resolve_dtypes((node.type.dtype, None))[-1])


@implements("scipy.special.softmax")
def softmax(x: Any, axis: Any = None) -> Any:
    """Implement ``scipy.special.softmax``."""
    node = _real("softmax", x)
    found = folds.whole_softmax(node, axes_of(node, axis_of(axis)))
    return done(found if node.type.shape else to_form(found, "scalar"))


@implements("scipy.special.log_softmax")
def log_softmax(x: Any, axis: Any = None) -> Any:
    """Implement ``scipy.special.log_softmax``."""
    node = _real("log_softmax", x)
    found = row(folds.LOG_SOFTMAX, node, axes_of(node, axis_of(axis)))
    return done(found if node.type.shape else to_form(found, "scalar"))


@implements("scipy.special.logsumexp")
def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """Implement ``scipy.special.logsumexp``."""
    x = node_of(a)
    w = None if b is None else node_of(b)
    dtype = np.result_type(
        *(n.type.dtype.type(0).item() if n.type.form == "python" else n.type.dtype for n in (x, w) if n is not None)
    )
    x = astype(x, dtype if dtype.kind in "fc" else np.float64)
    x = x if x.type.ndim else reshape(x, (1,))
    if dtype.kind != "c" and w is None and not return_sign:
        axes = axes_of(x, axis_of(axis))
        return done(fold(folds.LOGSUMEXP, pad_empty_axes(x, axes, -np.inf), axes, keepdims=keepdims))
    if return_sign and dtype.kind == "c":
        refuse("logsumexp of complex numbers with return_sign", "Take the sign of the sum of the exponentials.")
    if w is not None:
        w = astype(w, x.type.dtype)
    return _weighted(x, w, axis, keepdims, return_sign)


def _weighted(x: Node, w: Node | None, axis: Any, keepdims: bool, return_sign: bool) -> Any:
    """Return the result of ``logsumexp`` in the general case: with weights, a sign, or complex numbers."""
    if w is not None:
        shape = broadcast_shapes([x.type.shape, w.type.shape])
        x, w = broadcast(x, shape), broadcast(w, shape)
    axes = axes_of(x, axis_of(axis))
    size = scalar.real(x) if x.type.dtype.kind == "c" else x
    counted = size if w is None else scalar.where(scalar.equal(w, 0), _number(-np.inf, size), size)
    top = fold(folds.MAX, counted, axes)
    top = scalar.stop_gradient(scalar.where(scalar.isfinite(top), top, _number(0, top)))
    shifted = x - astype(expand_dims(top, axes), x.type.dtype)
    if w is not None:  # an element without weight adds nothing, even if it is infinite
        beyond = scalar.logical_not(
            scalar.less(size - expand_dims(top, axes), 700 if size.type.dtype.itemsize == 8 else 88)
        )
        shifted = scalar.where(scalar.logical_and(scalar.equal(w, 0), beyond), _number(-np.inf, shifted), shifted)
    terms = scalar.exp(shifted) if w is None else w * scalar.exp(shifted)
    total = reduce_sum(terms, axes)
    sign = scalar.sign(total)
    is_complex = x.type.dtype.kind == "c"
    result = scalar.log(total if is_complex else scalar.absolute(total)) + astype(top, x.type.dtype)
    if not return_sign and not is_complex:
        result = scalar.where(scalar.less(sign, 0), np.nan, result)
    found = [expand_dims(n, axes) if keepdims else n for n in (result, sign)]
    return tuple(map(done, found)) if return_sign else done(found[0])
