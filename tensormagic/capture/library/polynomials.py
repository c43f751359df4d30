"""NumPy's polynomials as arrays of coefficients, highest power first, on lazy arrays; their number is known at capture."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.library.complex_numbers import as_values_say, taken_for_real
from tensormagic.capture.library.diagonals import vander
from tensormagic.capture.library.joining import concatenate_
from tensormagic.capture.names import computed, implements
from tensormagic.capture.values.arguments import at_capture, done, extent_number, known, pad_empty_axes, tensor
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.node import Node
from tensormagic.ir.size import apply
from tensormagic.ir.type import hint
from tensormagic.ops.contract import matmul
from tensormagic.ops.convolution import convolve
from tensormagic.ops.effects.checks import require
from tensormagic.ops.fold import reduce_sum
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import constant, constant_value, iota, size_node
from tensormagic.ops.matrices import least_squares, linalg, spectral
from tensormagic.ops.move import broadcast, concatenate, expand_dims, reshape, slice_, transpose
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar
from tensormagic.ops.update import zeros_like


def _numbers(p: Any) -> Any:
    """Return the coefficients of an ``np.poly1d``; other values unchanged."""
    return p.coeffs if isinstance(p, np.poly1d) else p


def _gives_poly1d(own: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function of polynomials to return an ``np.poly1d`` if one of the arguments is one."""

    def call(*args: Any, **options: Any) -> Any:
        found = own(*map(_numbers, args), **{name: _numbers(value) for name, value in options.items()})
        if not any(isinstance(v, np.poly1d) for v in (*args, *options.values())):
            return found
        return tuple(map(np.poly1d, found)) if isinstance(found, tuple) else np.poly1d(found)

    return call


def _coefficients(p: Any) -> Node:
    node = node_of(p)
    if node.type.ndim > 1:
        refuse("a polynomial whose coefficients have several axes", "Take its rows one by one.")
    return reshape(node, (1,)) if not node.type.ndim else node


def _counted(p: Any) -> Node:
    """Return coefficients like :func:`_coefficients`; raise for a number, for functions that take their length."""
    if not node_of(p).type.ndim:
        raise TypeError("len() of unsized object")
    return _coefficients(p)


@implements(np.polyval)
def polyval(p: Any, x: Any) -> Any:
    """Implement ``np.polyval``: by Horner's rule."""
    coefficients = tensor(_numbers(p))
    if not coefficients.ndim:
        raise TypeError("iteration over a 0-d array")
    parts = [coefficients[k] for k in range(extent_number(coefficients.node, 0))]
    if isinstance(x, np.poly1d):  # a value of another polynomial
        return functools.reduce(lambda found, part: found * x + part, parts, np.poly1d(0))
    value = node_of(x)
    return done(functools.reduce(lambda found, part: found * value + part.node, parts, zeros_like(value)))


@implements(np.polyder)
@_gives_poly1d
def polyder(p: Any, m: Any = 1) -> Any:
    """Implement ``np.polyder``."""
    m = int(known(m, "the order of np.polyder"))
    if m < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    result = _counted(p)
    for _ in range(m):
        n = apply("max", result.type.shape[0] - 1, 0)
        result = slice_(result, ((0, n, 1),)) * (size_node(n) - iota((n,), 0))
    return done(result)


@implements(np.polyint)
@_gives_poly1d
def polyint(p: Any, m: Any = 1, k: Any = None) -> Any:
    """Implement ``np.polyint``."""
    m = int(known(m, "the order of np.polyint"))
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    constants = tensor(np.zeros(m) if k is None else k).reshape(-1)
    count = extent_number(constants.node, 0)
    if count < m and count != 1:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    if not m:
        return done(to_form(node_of(p), "array"))
    result = _counted(p)
    for iteration in range(m):
        n = result.type.shape[0]
        result = node_of(
            concatenate_(
                [done(result / (size_node(n) - iota((n,), 0))), constants[iteration if count > 1 else 0].reshape(1)]
            )
        )
    return done(result)


def _aligned(first: Any, second: Any) -> tuple[Node, Node]:
    """Return the coefficients of two polynomials, padded with zeros to the same number of powers."""
    nodes = [_coefficients(first), _coefficients(second)]
    counts = [extent_number(n, 0) for n in nodes]
    most = max(counts)
    wide = [
        n if c == most else concatenate([broadcast(constant(n.type.dtype.type(0)), (most - c,)), n], 0)
        for n, c in zip(nodes, counts, strict=True)
    ]
    return wide[0], wide[1]


implements(np.polyadd)(_gives_poly1d(lambda a1, a2: done(scalar.add(*_aligned(a1, a2)))))
implements(np.polysub)(_gives_poly1d(lambda a1, a2: done(scalar.subtract(*_aligned(a1, a2)))))


@implements(np.polymul)
@_gives_poly1d
def polymul(a1: Any, a2: Any) -> Any:
    """Implement ``np.polymul``; NumPy drops leading zeros, so there may be none."""
    return done(convolve(_leading(_coefficients(a1)), _leading(_coefficients(a2))))


def _leading(p: Node) -> Node:
    """Return coefficients without leading zeros: dropped if they are known, otherwise an error when the graph runs."""
    if p.type.shape[0] == 0:
        return constant(np.zeros(1, p.type.dtype))
    values = constant_value(p)
    if values is not None:
        kept = np.trim_zeros(values, "f")
        return constant(kept if kept.size else np.zeros(1, values.dtype))
    if p.type.shape[0] == 1:
        return p
    p = pad_empty_axes(p, (0,), 0)
    first = slice_(p, ((0, 1, 1),))
    alone = scalar.equal(size_node(p.type.shape[0]), 1)
    message = (
        "np.polymul of a polynomial whose leading coefficient is 0, so that the length of the result depends on data"
    )
    return require(p, scalar.logical_or(scalar.not_equal(first, 0), alone), message, "capture")


@implements(np.polydiv)
@_gives_poly1d
def polydiv(u: Any, v: Any) -> Any:
    """Implement ``np.polydiv`` of values that are known at capture: the remainder's length depends on them."""
    return at_capture(np.polydiv, "np.polydiv", u, v)


@implements(np.roots)
def roots(p: Any) -> Any:
    """Implement ``np.roots``: in a cell by the values; in a function for polynomials whose leading coefficient is not 0."""
    p, capture = _numbers(p), context.current()
    if capture is None or not (capture.abstract or capture.actual(node_of(p)) is not node_of(p)):
        values = np.asarray(computed(p))
        if values.ndim != 1 or not values[:1].any():  # the number of roots depends on the values
            return at_capture(np.roots, "np.roots", p)
    if not node_of(p).type.ndim:  # NumPy would take the array for the list of its operands
        raise TypeError("dispatcher for __array_function__ did not return an iterable")
    x = pad_empty_axes(node_of(p), (0,), 0)
    if x.type.ndim != 1:
        raise ValueError("Input must be a rank-1 array.")
    x = x if x.type.dtype.kind in "fc" else astype(x, np.float64)
    if x.type.dtype.kind == "c":
        return done(spectral.roots(x, real=False, site=-1))
    real, site = taken_for_real(x, np.roots)
    return done(spectral.roots(x, real=real, site=site))


@implements(np.poly)
def poly(seq_of_zeros: Any) -> Any:
    """Implement ``np.poly``: the product of the linear factors; for complex roots in conjugate pairs it is real."""
    x = tensor(_numbers(seq_of_zeros))
    if not x.ndim:
        raise TypeError("np.poly takes a sequence of roots or a matrix, not a number")
    shape = [extent_number(x.node, k) for k in range(x.ndim)]
    if shape == [shape[0]] * 2 and shape[0]:
        x = cast("Any", np.linalg.eigvals(cast("Any", x)))
    elif len(shape) != 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    factors = x if x.dtype.char in "fdFD" else x.astype(np.float64)
    result = constant(np.ones(1, factors.dtype))
    if not shape[0]:
        return 1.0
    for k in range(shape[0]):
        linear = concatenate([constant(np.ones(1, factors.dtype)), reshape(-factors[k].node, (1,))], 0)
        result = convolve(result, linear)
    if factors.dtype.kind != "c":
        return done(result)
    pairs: Any = np.sort(cast("Any", factors)) == np.sort(factors.conj())
    return as_values_say(done(result), pairs.all())


@implements(np.polyfit)
def polyfit(
    x: Any, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None, cov: bool | str = False
) -> Any:
    """Implement ``np.polyfit``: least squares in the powers of ``x``, each scaled to length 1."""
    if full:
        refuse(
            "np.polyfit with full=True",
            "The sizes of its results depend on data: use np.linalg.lstsq(np.vander(x, n), y).",
        )
    order = int(known(deg, "the degree of np.polyfit")) + 1
    if order < 1:
        raise ValueError("expected deg >= 0")
    points, values = (v + 0.0 for v in (node_of(x), node_of(y)))
    if points.type.ndim == 1 and hint(points.type.shape[0]) is None:
        refuse(
            "np.polyfit of points whose number is not known", "v = np.vander(x, n); np.linalg.solve(v.T @ v, v.T @ y)."
        )
    _check(points, values)
    columns = node_of(vander(done(points), order))
    if w is not None:
        weight = node_of(w) + 0.0
        if weight.type.ndim != 1:
            raise TypeError("expected a 1-d array for weights")
        columns = columns * expand_dims(weight, (1,))
        values = values * (expand_dims(weight, (1,)) if values.type.ndim == 2 else weight)
    scale = scalar.sqrt(reduce_sum(columns * columns, (0,)))
    columns = columns / scale
    count = extent_number(points, 0)
    bound = count * float(np.finfo(points.type.dtype).eps) if rcond is None else rcond
    right = values if values.type.ndim == 2 else expand_dims(values, (1,))
    found = least_squares.lstsq(columns, right, bound, asked_by="np.polyfit")
    found = found if values.type.ndim == 2 else reshape(found, found.type.shape[:1])
    fit = done(found / (expand_dims(scale, (1,)) if values.type.ndim == 2 else scale))
    if not cov:
        return fit
    return fit, _covariance(columns, values, found, scale, (count, order), cov)


def _check(x: Node, y: Node) -> None:
    if x.type.ndim != 1:
        raise TypeError("expected 1D vector for x")
    if x.type.size == 0:
        raise TypeError("expected non-empty vector for x")
    if y.type.ndim not in {1, 2}:
        raise TypeError("expected 1D or 2D array for y")
    if extent_number(x, 0) != extent_number(y, 0):
        raise TypeError("expected x and y to have same length")


def _covariance(
    columns: Node, values: Node, found: Node, scale: Node, counts: tuple[int, int], cov: bool | str
) -> Tensor:
    """Return the covariance of the coefficients, from the residuals' variance."""
    base = linalg.inv(matmul(transpose(columns, (1, 0)), columns))
    base = base / (expand_dims(scale, (1,)) * scale)
    count, order = counts
    several = values.type.ndim == 2
    base = expand_dims(base, (2,)) if several else base
    if cov == "unscaled":
        return done(base)
    if count <= order:
        raise ValueError("the number of data points must exceed order to scale the covariance matrix")
    rest = values - matmul(columns, found)
    residuals = reduce_sum(
        scalar.real(rest * scalar.conjugate(rest)) if rest.type.dtype.kind == "c" else rest * rest, (0,)
    )
    return done(base * (residuals / astype(constant(count - order), residuals.type.dtype)))
