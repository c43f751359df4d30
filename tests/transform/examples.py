"""One graph for each rule that is a procedure: what it has to change, and values to hold it against."""

from __future__ import annotations

import numpy as np

from tensormagic.ir.node import Node
from tensormagic.ops import contract, fold, move, update
from tensormagic.ops.indices.gather import gather
from tensormagic.ops.indices.scatter import scatter_add
from tensormagic.ops.leaf import constant, iota, size_node
from tensormagic.ops.matrices import determinants, linalg, matrix
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar, special
from tensormagic.transform.rewriting.expansions import less_beginning
from tensormagic.transform.rewriting.terms import behind
from tests.transform.example import Example, M, N

MATRIX, OTHER, VECTOR = (N, N), (N, N), (N,)


def one_less_cosine(x: Node) -> Node:
    """``1 - cos(x)``, as it is rewritten."""
    return behind(scalar.less(0.5, scalar.cos(x)), 2 * scalar.square(scalar.sin(x * 0.5)), 1, scalar.cos(x))


def one_and_tangent(x: Node) -> Node:
    """``1 + tanh(x)``, as it is rewritten."""
    return behind(scalar.less(x, -1.0), 2 * scalar.sigmoid(2 * x), 1, -scalar.tanh(x))


def sine_less_operand(x: Node) -> Node:
    """``sin(x) - x``, as it is rewritten."""
    found = less_beginning(scalar.sin(x) - x, x.type.dtype)
    return behind(found.near, found.value, scalar.sin(x), x)


def exponentials_apart(x: Node, y: Node) -> Node:
    """``exp(x) - exp(y)``, as it is rewritten."""
    near = scalar.less(scalar.absolute(x - y), 0.5)
    return behind(near, scalar.exp(y) * scalar.expm1(x - y), scalar.exp(x), scalar.exp(y))


def logarithm_apart(x: Node, y: Node) -> Node:
    """``log(exp(x) - exp(y))``, as it is rewritten at ``stable``."""
    far = scalar.logical_and(scalar.less(80.0, x), scalar.less(y, x))
    inner = scalar.where(far, 1, exponentials_apart(x, y))
    return scalar.where(far, x + scalar.log1mexp(scalar.where(far, y - x, -1)), scalar.log(inner))


def part(start: int, length: int, step: int = 1) -> tuple:
    return ((start, length, step),)


def triangle(a: Node, b: Node) -> Node:
    """The angle between two sides, in which the third one is longer than each and shorter than both."""
    c = scalar.cbrt(a * a * a + b * b * b)
    return scalar.arccos((a * a + b * b - c * c) / (2 * a * b))


def inverse_softplus(x: Node) -> Node:
    """``log(expm1(x))``, as it is rewritten."""
    far = scalar.less(2, x)
    return scalar.where(
        far, x + scalar.log1mexp(scalar.where(far, -x, -1)), scalar.log(scalar.where(far, 1, scalar.expm1(x)))
    )


def deviance(x: Node, y: Node) -> Node:
    return x * scalar.log(x / y) - x + y


def rows(x: Node, op: object = fold.SUM, axes: tuple[int, ...] = (1,)) -> Node:
    return fold.spread(fold.fold(op, x, axes), x, axes)


def shifted(v: Node) -> Node:
    return v - rows(v, fold.MAX)


def placed(x: Node) -> Node:
    """The derivative of a diagonal."""
    n = x.type.shape[0]
    flat = scatter_add(zeros(n * n, x), matrix.diagonal_places(n, n), x)
    return move.reshape(flat, (n, n))


def kept_log(product: Node, value: Node) -> Node:
    kept = scalar.isfinite(product)
    return scalar.where(kept, scalar.log(scalar.where(kept, product, 1)), value)


def zero(x: Node) -> Node:
    return constant(x.type.dtype.type(0))


def zeros(n: int, x: Node) -> Node:
    return move.broadcast(zero(x), (n,))


def diag(x: Node) -> Node:
    n = x.type.shape[0]
    return scalar.where(scalar.equal(iota((n, n), 1), iota((n, n), 0)), move.broadcast(x, (n, n)), 0)


def updated(x: Node) -> Node:
    """A diagonal matrix and an outer product."""
    n = x.type.shape[0]
    column = move.broadcast(move.reshape(x, (n, 1)), (n, n))
    return diag(scalar.exp(x)) + column * move.broadcast(x, (n, n))


def eye(like: Node, n: object) -> Node:
    return astype(scalar.equal(iota((n, n), 0), iota((n, n), 1)), like.type.dtype)


def blocks(a: Node, b: Node) -> Node:
    n, m = a.type.shape[0], b.type.shape[0]
    first = update.set_at(move.broadcast(zero(a), (n + m, n + m)), a, ((0, n, 1), (0, n, 1)))
    return update.set_at(first, b, ((n, m, 1), (n, m, 1)))


def kron(a: Node, b: Node) -> Node:
    (m, n), (p, q) = a.type.shape, b.type.shape
    left = move.broadcast(move.reshape(a, (m, 1, n, 1)), (m, p, n, q))
    return move.reshape(left * move.broadcast(move.reshape(b, (1, p, 1, q)), (m, p, n, q)), (m * p, n * q))


def gram(q: Node) -> Node:
    return contract.einsum("ab,ac->bc", q, q)


def square_of(a: Node) -> Node:
    return contract.einsum("ab,cb->ac", a, a)


def head(x: Node, rows: int) -> Node:
    return move.slice_(x, ((0, rows, 1), *((0, s, 1) for s in x.type.shape[1:])))


def cancelled(root: Node, x: Node) -> Node:
    """A root and ``x``, in the form that their sum has become."""
    near = scalar.less(x, 0)
    return scalar.where(near, 1 / (root - x), root - scalar.where(near, root, -x))


def guarded(a: Node, b: Node) -> Node:
    """A difference in its accurate form."""
    near = scalar.less(a, b)
    return scalar.where(near, a - b, a - scalar.where(near, a, b))


EXAMPLES = [
    Example("fold_constants", ((N,),), lambda x: scalar.exp(zero(x))),
    Example("tangents_by_one_function", (VECTOR,), one_and_tangent),
    Example("equal_truth_values", ((N,),), lambda x: constant(np.array([True, True]))),
    Example("through_broadcasts", ((N,), (M, N)), lambda x, y: scalar.exp(move.broadcast(x, y.type.shape))),
    Example("squares", ((N,),), lambda x: x**2),
    Example("differences", ((N,),), lambda x: scalar.exp(x + 0.25) - scalar.exp(x)),
    Example("remainders", ((N,),), lambda x: scalar.sinh(x) - x),
    Example("powers_near_one", ((N,), (N,)), lambda x, y: (1 + scalar.square(x)) ** y),
    Example("right_angles", ((N,),), lambda x: np.pi / 2 - scalar.arctan(scalar.exp(x)), level="real"),
    Example("deviances", ((N,), (N,)), lambda x, y: deviance(scalar.exp(x), scalar.exp(y))),
    Example(
        "logarithms_of_exponentials",
        ((N,), (N,), (N,)),
        lambda x, y, z: scalar.log((scalar.exp(x) + scalar.exp(y) + scalar.exp(z)) * 0.25),
    ),
    Example(
        "quotients_of_sums", ((N,), (N,)), lambda x, y: scalar.exp(x) / (scalar.exp(x) + scalar.exp(y) * 2), scale=200
    ),
    Example("second_differences", ((N,), (N,)), lambda x, y: scalar.exp(x + y) - 2 * scalar.exp(x) + scalar.exp(x - y)),
    Example("law_of_cosines", ((N,), (N,)), lambda x, y: x * x + y * y - 2 * x * y * scalar.cos(x + y)),
    Example("sides_of_triangles", ((N,), (N,)), lambda x, y: (x + y + scalar.exp(x)) / 2 - y),
    Example(
        "logarithms_of_large_differences",
        ((N,), (N,)),
        lambda x, y: scalar.log(exponentials_apart(x + scalar.exp(y), x)),
    ),
    Example("quotients_of_remainders", ((N,),), lambda x: sine_less_operand(x) / (x * x * x)),
    Example("forms_over_squares", ((N,), (N,)), lambda x, y: one_less_cosine(x) / (y * y)),
    Example("quotients_by_squares", ((N,),), lambda x: x / (x * x + 1)),
    Example("roots_of_large_squares", ((N,),), lambda x: scalar.sqrt(x * x + 1)),
    Example("logarithms_of_large_squares", ((N,),), lambda x: scalar.log(x * x + 3)),
    Example("logarithms_of_one_and_large_squares", ((N,),), lambda x: scalar.log1p(x * x)),
    Example(
        "logarithms_of_large_products", ((N,), (N,)), lambda x, y: scalar.log(scalar.softplus(x) * scalar.softplus(y))
    ),
    Example("logarithms_of_large_powers", ((N,), (N,)), lambda x, y: scalar.log(scalar.power(scalar.softplus(x), y))),
    Example(
        "logarithms_of_products_of_many_exponentials",
        ((N,),),
        lambda x: scalar.log(fold.fold(fold.PROD, scalar.exp(x), (0,))),
    ),
    Example("lengths_that_run_over", ((N,),), lambda x: scalar.sqrt(fold.reduce_sum(x * x, (0,)))),
    Example("powers_of_lengths_that_run_over", ((N,),), lambda x: fold.reduce_sum(x * x, (0,)) ** 0.25),
    Example("logarithms_that_run_over", ((N,),), lambda x: scalar.log(fold.reduce_sum(x * x, (0,)))),
    Example("gradients_of_logarithms_of_lengths", ((N,),), lambda x: x * (1 / rows(x * x, axes=(0,)))),
    Example(
        "gradients_of_logarithms_of_products",
        ((N,),),
        lambda x: fold.prod_others(x, (0,)) * fold.spread(1 / fold.fold(fold.PROD, x, (0,)), x, (0,)),
    ),
    Example(
        "folds_along_axes_that_run_over", ((N, M),), lambda x: scalar.sqrt(fold.reduce_sum(x * x, (1,))), level="real"
    ),
    Example("powers_that_are_roots", ((N,),), lambda x: fold.reduce_sum(x * x, (0,)) ** 0.5),
    Example("products_of_large_exponentials", ((N,), (N,)), lambda x, y: scalar.exp(x) * scalar.exp(y)),
    Example("quotients_by_tails", ((N,), (N,)), lambda x, y: y * scalar.exp(-scalar.square(x)) / special.erfc(x)),
    Example("quotients_by_large_squares", ((N,), (N,)), lambda x, y: x / (x * x + y * y)),
    Example("slopes_of_logistic_functions", ((N,),), lambda x: scalar.exp(x) / scalar.square(1 + scalar.exp(x))),
    Example("ratios_of_other_factorials", ((N,),), lambda x: special.gammaln(x + 2) - special.gammaln(x)),
    Example(
        "logarithms_of_products_of_exponentials", ((N,), (N,)), lambda x, y: scalar.log(scalar.exp(x) * y * y), scale=3
    ),
    Example(
        "logarithms_of_positive_products",
        ((N,), (N,)),
        lambda x, y: kept_log(scalar.exp(x) * scalar.exp(y * y) * 3, x + y * y + float(np.log(3))),
        level="real",
    ),
    Example("logarithms_of_tails", ((N,),), lambda x: scalar.log(0.5 * special.erfc(x)), scale=3),
    Example(
        "angles_between_directions",
        ((N,), (N,)),
        lambda x, y: scalar.arccos(
            scalar.sin(x) * scalar.sin(y) + scalar.cos(x) * scalar.cos(y) * scalar.cos(x - y + 0.1)
        ),
    ),
    Example(
        "logarithms_of_mixtures",
        ((N,), (N,)),
        lambda x, y: scalar.log(scalar.square(x) * scalar.exp(y) + scalar.square(y) * scalar.exp(x)),
        scale=3,
    ),
    Example(
        "logarithms_of_sums_near_one",
        ((N,), (N,)),
        lambda x, y: scalar.log(scalar.square(1 + scalar.square(x)) + scalar.square(y)),
    ),
    Example("logarithms_beside_one", ((N,),), lambda x: scalar.log(one_less_cosine(x))),
    Example("squares_of_squares_apart", ((N,),), lambda x: scalar.square(x * x) - x * x),
    Example(
        "logistic_functions_of_odds",
        ((N,),),
        lambda x: scalar.sigmoid(scalar.log(scalar.sigmoid(x) / (1 - scalar.sigmoid(x)))),
        level="real",
    ),
    Example("logarithms_of_quotients", ((N,), (N,)), lambda x, y: scalar.log(scalar.exp(x) / scalar.exp(y))),
    Example("variances", ((N, M),), lambda x: fold.mean(scalar.square(x), (1,)) - scalar.square(fold.mean(x, (1,)))),
    Example(
        "logarithms_beside_inverses",
        ((N,),),
        lambda x: scalar.arccosh(2 + scalar.square(x)) - scalar.log(2 * (2 + scalar.square(x))),
    ),
    Example(
        "logarithms_of_rises_beside_exponents",
        ((N,),),
        lambda x: inverse_softplus(scalar.exp(x)) - scalar.exp(x),
    ),
    Example("differences_of_directions", ((N,), (N,)), lambda x, y: scalar.arctan2(y, x) - scalar.arctan2(y, x + 0.1)),
    Example(
        "logarithms_of_sums_with_weights",
        ((N,), (N,)),
        lambda x, y: scalar.log(scalar.sigmoid(y) * scalar.exp(x) + (1 - scalar.sigmoid(y))),
    ),
    Example(
        "logarithms_of_sums_less_a_term",
        ((N,), (N,)),
        lambda x, y: scalar.logaddexp(x, y) - scalar.maximum(x, y),
    ),
    Example("products_with_tails", ((N,), (N,)), lambda x, y: scalar.exp(x * x) * y * special.erfc(x)),
    Example("fractions_in_one_exponential", ((N,),), lambda x: 1 / scalar.expm1(x) - scalar.exp(-x)),
    Example(
        "powers_less_what_they_begin_with",
        ((N,), (N,)),
        lambda x, y: (1 + scalar.tanh(x) * 0.5) ** scalar.softplus(y) - 1 - scalar.tanh(x) * 0.5 * scalar.softplus(y),
    ),
    Example(
        "quotients_by_rises",
        ((N,), (N,)),
        lambda x, y: (y - scalar.square(y) * scalar.exp(x)) / (1 - scalar.exp(x)),
    ),
    Example("roots_of_squares_less_a_number", ((N,),), lambda x: scalar.sqrt(1 - scalar.square(scalar.sin(x)))),
    Example(
        "angles_by_what_is_less_than_one",
        ((N,), (N,)),
        lambda x, y: triangle(scalar.exp(x), scalar.exp(y)),
    ),
    Example("angles_less_right_angles", ((N,),), lambda x: constant(np.pi / 2) - scalar.arctan(scalar.exp(x))),
    Example("logarithms_of_lengths", ((N,), (N,)), lambda x, y: scalar.log(x * x + y * y)),
    Example(
        "logarithms_of_means_by_rises",
        ((4, N),),
        lambda x: scalar.log(fold.fold(fold.SUM, scalar.exp(x), (0,)) / constant(4.0)),
    ),
    Example("inverse_sines", ((N,),), lambda x: scalar.log(cancelled(scalar.sqrt(x * x + 1), x))),
    Example(
        "inverse_cosines",
        ((N,),),
        lambda x: scalar.log(cancelled(scalar.sqrt(scalar.square(scalar.exp(x + 3)) - 1), scalar.exp(x + 3))),
    ),
    Example(
        "logarithms_of_differences",
        ((N,), (N,)),
        lambda x, y: logarithm_apart(x + scalar.exp(y), x),
        level="real",
    ),
    Example("power_of_two", ((N,),), lambda x: x / 8),
    Example("whole_powers", ((N,),), lambda x: astype(x, np.int64) ** 5),
    Example("powers_by_squares", ((N,),), lambda x: x**-7, level="real"),
    Example("powers_by_roots", ((N,),), lambda x: scalar.absolute(x) ** 2.5, level="real"),
    Example("division_by_numbers", ((N,),), lambda x: x / 3, level="real"),
    Example("transposes", ((N, M),), lambda x: move.transpose(move.transpose(x, (1, 0)), (1, 0))),
    Example("reshapes", ((N, M),), lambda x: move.reshape(move.reshape(x, (N * M,)), (M, N))),
    Example("broadcasts", ((N,), (M,)), lambda x, _y: move.broadcast(move.broadcast(x, (M, N)), (3, M, N))),
    Example("moves_of_equals", ((), (N, M)), lambda x, _y: move.transpose(move.broadcast(x, (N, M)), (1, 0))),
    Example("slices_of_slices", ((9,),), lambda x: move.slice_(move.slice_(x, part(8, 4, -2)), part(3, 3, -1))),
    Example("slices_of_parts", ((4,), (5,)), lambda x, y: move.slice_(move.concatenate([x, y], 0), part(5, 2, 2))),
    Example(
        "joined_slices",
        ((9,),),
        lambda x: move.concatenate([move.slice_(x, part(1, 3)), move.slice_(x, part(4, 5))], 0),
    ),
    Example("concatenates", ((4,), (5,)), lambda x, y: move.concatenate([move.concatenate([x, y], 0), x], 0)),
    Example("read_of_store", ((9,), (3,)), lambda x, v: move.slice_(update.set_at(x, v, part(2, 3)), part(2, 3))),
    Example("read_beside_sum", ((9,), (3,)), lambda x, v: move.slice_(update.add_at(x, v, part(2, 3)), part(5, 3))),
    Example("stores", ((9,), (3,)), lambda x, v: update.set_at(update.set_at(x, v, part(2, 3)), v * 2, part(2, 3))),
    Example("sums_with_zeros", ((3,),), lambda v: update.add_at(zeros(3, v), v, part(0, 3))),
    Example(
        "read_of_sum_with_zeros", ((3,),), lambda v: move.slice_(update.add_at(zeros(9, v), v, part(2, 3)), part(2, 3))
    ),
    Example("sums_of_sparse", ((9,), (3,)), lambda x, v: x + update.add_at(zeros(9, x), v, part(2, 3))),
    Example("casts", ((N,),), lambda x: astype(astype(x, np.float64), np.int64)),
    Example("extremes_of_extremes", ((N, M),), lambda x: fold.fold(fold.MAX, fold.fold(fold.MAX, x, (0,)), (0,))),
    Example("axes_of_one", ((1, N),), lambda x: fold.reduce_sum(x, (0,))),
    Example("extremes_of_equals", ((N,), (M,)), lambda x, _y: fold.fold(fold.MIN, move.broadcast(x, (M, N)), (0,))),
    Example("sums_of_sums", ((N, M),), lambda x: fold.reduce_sum(fold.reduce_sum(x, (1,)), (0,))),
    Example("sums_of_equals", ((N,), (M,)), lambda x, _y: fold.reduce_sum(move.broadcast(x, (M, N)), (0,))),
    Example("signs_outwards", ((N, M),), lambda x: fold.fold(fold.SUM, -x, (1,))),
    Example("sign_before_max", ((N, M),), lambda x: fold.fold(fold.MAX, -x, (1,))),
    Example("sign_before_min", ((N, M),), lambda x: fold.fold(fold.MIN, -x, (1,))),
    Example("factors_outwards", ((N, M), ()), lambda x, s: fold.reduce_sum(x * s, (1,)), level="real"),
    Example("divisors_outwards", ((N, M), ()), lambda x, s: fold.reduce_sum(x / s, (1,)), level="real"),
    Example("logarithms_of_sums", ((N, M),), lambda v: scalar.log(fold.reduce_sum(scalar.exp(v), (1,))), scale=80),
    Example("logarithms_of_means", ((N, M),), lambda v: scalar.log(fold.mean(scalar.exp(v), (0, 1))), scale=80),
    Example("softmaxes", ((N, M),), lambda v: scalar.exp(v) / rows(scalar.exp(v)), scale=80),
    Example(
        "softmaxes_by_factor",
        ((N, M), (N,)),
        lambda v, y: scalar.exp(v) * fold.spread(y / fold.reduce_sum(scalar.exp(v), (1,)), v, (1,)),
        scale=80,
    ),
    Example("shifts", ((N, M),), lambda v: fold.row(fold.SOFTMAX, shifted(v), (1,)), scale=80),
    Example("logarithms_of_softmaxes", ((N, M),), lambda v: scalar.log(fold.row(fold.SOFTMAX, v, (1,))), scale=80),
    Example(
        "exponentials_of_log_softmaxes", ((N, M),), lambda v: scalar.exp(fold.row(fold.LOG_SOFTMAX, v, (1,))), scale=80
    ),
    Example("log_softmaxes", ((N, M),), lambda v: v - rows(v, fold.LOGSUMEXP), scale=80),
    Example(
        "shifted_logsumexps",
        ((N, M),),
        lambda v: fold.fold(fold.LOGSUMEXP, shifted(v), (1,)) + fold.fold(fold.MAX, v, (1,)),
        scale=80,
    ),
    Example("products_of_exponentials", ((N, M),), lambda v: fold.fold(fold.PROD, scalar.exp(v), (1,)), level="real"),
    Example(
        "logarithms_of_folded_products",
        ((N, M),),
        lambda v: scalar.log(fold.fold(fold.PROD, scalar.absolute(v), (1,))),
        level="real",
    ),
    Example("parts_of_arithmetic", ((9,), (9,)), lambda x, y: move.slice_(x * y, part(2, 3))),
    Example("parts_of_functions", ((9, N), (N,)), lambda x, y: head(scalar.arctan2(x, move.broadcast(y, (9, N))), 2)),
    Example("parts_of_transposes", ((N, 9),), lambda x: head(move.transpose(scalar.sqrt(x), (1, 0)), 2)),
    Example("parts_of_products", ((9, N), (N, M)), lambda a, b: head(contract.matmul(a, b), 3)),
    Example("units_of_products", ((1, N), (N, M)), contract.matmul),
    Example("units_of_products", ((1, N, M), (1, M, N)), contract.matmul),
    Example("parts_of_extremes", ((9, N),), lambda x: head(fold.fold(fold.MAX, x, (1,)), 2)),
    Example("parts_of_sums", ((9, N),), lambda x: head(fold.row(fold.CUMSUM, x, (1,)), 2)),
    Example("parts_of_sums", ((9, N, M),), lambda x: head(fold.reduce_sum(x, (1,)), 2)),
    Example("transposes_outwards", ((N, M),), lambda x: move.transpose(x, (1, 0)) * 2.0),
    Example("extremes_of_transposes", ((N, M, 3),), lambda x: fold.fold(fold.MIN, move.transpose(x, (2, 0, 1)), (1,))),
    Example("sums_of_transposes", ((N, M, 3),), lambda x: fold.reduce_sum(move.transpose(x, (2, 1, 0)), (1,))),
    Example("slices_by_indices", ((9,),), lambda x: gather(x, 7 - iota((3,), 0) * 2, 0)),
    Example("joined_equals", ((N, M),), lambda x: move.concatenate([x, x, x], 1)),
    Example(
        "joined_products", (MATRIX, OTHER), lambda a, b: move.concatenate([contract.matmul(c, a) for c in (a, b)], 0)
    ),
    Example("comparisons_of_sizes", ((N,),), lambda _x: scalar.less(iota((N,), 0), size_node(N))),
    Example("extremes_of_sizes", ((N,),), lambda _x: scalar.maximum(iota((N,), 0), constant(np.int64(0)))),
    Example("places_by_size", ((N,),), lambda _x: iota((N,), 0) * size_node(N) + iota((N,), 0)),
    Example("extremes_of_stretched", ((N,), (M,)), lambda x, _y: fold.fold(fold.MIN, move.broadcast(x, (M, N)), (1,))),
    Example("sums_of_stretched", ((N,), (M,)), lambda x, _y: fold.reduce_sum(move.broadcast(x, (M, N)), (1,))),
    Example(
        "factors_of_products",
        ((N, M), ()),
        lambda x, s: fold.fold(fold.PROD, x * scalar.absolute(s), (1,)),
        level="real",
    ),
    Example(
        "sums_of_outer_products",
        ((N,), (M,)),
        lambda x, y: fold.reduce_sum(move.expand_dims(x, (1,)) * y, (0,)),
        level="real",
    ),
    Example(
        "sums_of_outer_products",
        ((N, M), (3, M)),
        lambda a, b: fold.reduce_sum(scalar.square(move.expand_dims(a, (1,)) * b), (2,)),
        level="real",
    ),
    Example("products_with_placed_diagonals", (VECTOR, (N, M)), lambda x, a: contract.matmul(placed(x), a)),
    Example("products_with_placed_diagonals", (VECTOR, (3, N)), lambda x, a: contract.matmul(a, placed(x))),
    *(
        Example(rule, shapes, build, level="real")
        for rule, shapes, build in (
            ("products_with_diagonals", (VECTOR, (N, M)), lambda x, a: contract.matmul(diag(x), a)),
            ("products_with_diagonals", (VECTOR, (3, N)), lambda x, a: contract.matmul(a, diag(x))),
            ("products_with_diagonals", ((N, M),), lambda a: contract.matmul(eye(a, N), a)),
            ("products_with_zeros", ((N, M),), lambda a: contract.matmul(move.broadcast(zero(a), (3, N)), a)),
            ("products_with_selections", ((N, M),), lambda a: contract.matmul(a, gather(eye(a, M), iota((3,), 0), 1))),
            ("products_with_selections", ((N, M),), lambda a: contract.matmul(gather(eye(a, N), iota((3,), 0), 0), a)),
            ("products_with_blocks", (MATRIX, (M, M), (N + M, 3)), lambda a, b, c: contract.matmul(blocks(a, b), c)),
            ("products_with_kroneckers", ((2, N), (M, 3), (N * 3,)), lambda a, b, x: contract.matmul(kron(a, b), x)),
            ("products_with_kroneckers", ((2, N), (M, 3), (3, 2 * M)), lambda a, b, x: contract.matmul(x, kron(a, b))),
            ("products_of_orthonormals", ((M, 3),), lambda a: gram(linalg.qr(a)[0])),
            ("determinants_of_triangles", (VECTOR,), lambda x: determinants.det(diag(x))),
            ("determinants_of_triangles", (MATRIX,), lambda a: determinants.det(matrix.triu(a))),
            ("inverses_of_diagonals", (VECTOR,), lambda x: linalg.inv(diag(x))),
            ("inverses_of_orthogonals", (MATRIX,), lambda a: linalg.inv(linalg.svd(a)[0])),
            ("factors_of_diagonals", (VECTOR,), lambda x: linalg.cholesky(diag(scalar.exp(x)))),
            ("factors_of_squares", (MATRIX,), lambda a: linalg.cholesky(square_of(matrix.tril(scalar.exp(a))))),
            ("systems_of_diagonals", (VECTOR, (N, M)), lambda x, b: linalg.solve(diag(x), b)),
            ("systems_of_triangles", (MATRIX, (N, M)), lambda a, b: linalg.solve(matrix.tril(scalar.exp(a)), b)),
            ("systems_of_inverses", (MATRIX, (N, M)), lambda a, b: linalg.solve(linalg.inv(a), b)),
            ("systems_of_inverses", (MATRIX, (N, M)), lambda a, b: linalg.solve(linalg.svd(a)[2], b)),
            ("values_of_diagonals", (VECTOR,), lambda x: linalg.svdvals(diag(x))),
            ("values_of_diagonals", (VECTOR,), lambda x: linalg.eigvalsh(diag(x))),
            ("functions_of_blocks", (MATRIX, (M, M)), lambda a, b: determinants.det(blocks(a, b))),
            ("functions_of_blocks", (MATRIX, (M, M)), lambda a, b: linalg.inv(blocks(a, b))),
            (
                "functions_of_blocks",
                (MATRIX, (M, M), (N + M,)),
                lambda a, b, x: linalg.solve(blocks(a, b), move.expand_dims(x, (1,))),
            ),
            ("functions_of_kroneckers", (MATRIX, (M, M)), lambda a, b: linalg.inv(kron(a, b))),
            ("functions_of_kroneckers", (MATRIX, (M, M)), lambda a, b: determinants.det(kron(a, b))),
            ("systems_of_kroneckers", (MATRIX, (3, 3), (N * 3, 1)), lambda a, b, x: linalg.solve(kron(a, b), x)),
            ("transposes_of_symmetric", (MATRIX,), lambda a: move.transpose(a + move.transpose(a))),
            ("systems_of_low_rank", (VECTOR, (N, M)), lambda x, b: linalg.solve(updated(x), b)),
            ("inverses_of_low_rank", (VECTOR,), lambda x: linalg.inv(updated(x))),
            ("determinants_of_low_rank", (VECTOR,), lambda x: determinants.det(updated(x))),
            ("logarithms_of_determinants", (VECTOR,), lambda x: determinants.slogdet(updated(x))[1]),
            ("logarithms_of_determinants", (MATRIX,), lambda a: determinants.slogdet(matrix.triu(a))[0]),
            (
                "logarithms_of_determinants_of_parts",
                (MATRIX, (M, M)),
                lambda a, b: determinants.slogdet(blocks(a, b))[1],
            ),
            ("logarithms_of_determinants_of_parts", (MATRIX, (M, M)), lambda a, b: determinants.slogdet(kron(a, b))[1]),
        )
    ),
    Example("transposed_operands", (MATRIX, VECTOR), lambda a, x: contract.matmul(move.transpose(a), x)),
    Example("transposed_products", (MATRIX, OTHER), lambda a, b: move.transpose(contract.matmul(a, b))),
    Example("signs_of_operands", (MATRIX, VECTOR), lambda a, x: contract.matmul(-a, x)),
    Example("inverses_to_systems", (MATRIX, VECTOR), lambda a, x: contract.matmul(linalg.inv(a), x), level="real"),
    Example("inverses_to_systems", (MATRIX, VECTOR), lambda a, x: contract.matmul(x, linalg.inv(a)), level="real"),
    Example("inverses_to_systems", (MATRIX, OTHER), lambda a, b: contract.matmul(b, linalg.inv(a)), level="real"),
    Example(
        "inverses_to_systems", ((3, N, N), (3, N, M)), lambda a, b: contract.matmul(linalg.inv(a), b), level="real"
    ),
    Example("determinants_of_inverses", (MATRIX,), lambda a: determinants.det(linalg.inv(a)), level="real"),
    Example("inverses_of_inverses", (MATRIX,), lambda a: linalg.inv(linalg.inv(a)), level="real"),
    Example("absolute_determinants", (MATRIX,), lambda a: scalar.log(scalar.absolute(determinants.det(a)))),
    Example("determinants", (MATRIX,), lambda a: scalar.log(determinants.det(contract.matmul(a, move.transpose(a))))),
    Example("diagonals_of_products", ((N, M), (M, N)), lambda a, b: matrix.diagonal(contract.matmul(a, b), 0, 1)),
    Example(
        "diagonals_of_products",
        ((3, N, M), (3, M, N)),
        lambda a, b: matrix.diagonal(contract.matmul(a, b), 2, 1),
    ),
    Example("traces_of_products", ((N, M), (M, N)), lambda a, b: linalg.diagonals(contract.matmul(a, b))),
    Example(
        "traces_of_products",
        ((N, M), (M, N)),
        lambda a, b: fold.reduce_sum(linalg.diagonals(contract.matmul(a, b)).args[0], (0, 1)),
    ),
    Example(
        "sums_of_products", ((N, M), (M, N)), lambda a, b: fold.reduce_sum(contract.matmul(a, b), (0,)), level="real"
    ),
    Example(
        "chains",
        (MATRIX, OTHER, VECTOR),
        lambda a, b, x: contract.matmul(contract.matmul(a, b), x),
        level="real",
    ),
    Example(
        "shared_sides",
        (MATRIX, VECTOR, VECTOR),
        lambda a, x, y: contract.matmul(a, x) - contract.matmul(a, y),
        level="real",
    ),
]
