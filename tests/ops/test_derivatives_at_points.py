"""First and second derivatives of scalar functions at zeros, ones and ties, held against differences of their values."""

# tests named elsewhere

import itertools

import numpy as np
import pytest

from tensormagic.ops.leaf import constant
from tensormagic.transform.grad import jvp, vjp
from tests.ops.harness import BACKENDS, FIXED, closed, place
from tests.ops.test_derivatives import POINTWISE, takes, zeros_where_none

POINTS = (0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0)
STEP = 1e-3


def grid(count):
    """Every choice of points for operands, each operand as a row."""
    choices = itertools.product(POINTS if count < 3 else POINTS[:4], repeat=count)
    return [np.array(row) for row in zip(*choices, strict=True)]


def moved(points, *steps):
    return [p + sum(s for k, s in steps if k == number) for number, p in enumerate(points)]


def smooth_slopes(run, points, k):
    """Differences along operand ``k``; nan where those of both sides are not the same."""
    at = {j: run(moved(points, (k, j * STEP / 2))) for j in (-4, -2, -1, 0, 1, 2, 4)}

    def sides(j):
        h = j * STEP / 2
        ends = (4 * at[j] - 3 * at[0] - at[2 * j]) / (2 * h), (3 * at[0] - 4 * at[-j] + at[-2 * j]) / (2 * h)
        return *ends, (8 * (at[j] - at[-j]) - (at[2 * j] - at[-2 * j])) / (12 * h)

    (*ends, slope), (*_, coarse) = sides(1), sides(2)
    same = [np.abs(other - slope) < 1e-4 * (1 + np.abs(slope)) for other in (*ends, coarse)]
    return np.where(np.all(same, axis=0), slope, np.nan)


def bends(run, points, j, k):
    """Second differences along operands ``j`` and ``k``; nan where two steps do not give the same."""

    def at(h):
        if j == k:
            return (run(moved(points, (k, h))) - 2 * run(points) + run(moved(points, (k, -h)))) / h**2
        corners = [(a, b) for a in (1, -1) for b in (1, -1)]
        return sum(a * b * run(moved(points, (j, a * h), (k, b * h))) for a, b in corners) / (4 * h**2)

    fine, coarse = at(STEP), at(2 * STEP)
    return np.where(np.abs(fine - coarse) < 1e-4 * (1 + np.abs(fine)), fine, np.nan)


def derivatives(op, fixed, points):
    """The value, the gradient by both modes and the second derivatives, of each operand, as one run."""
    nodes = [place(p) for p in points]
    out = op(*map(constant, fixed), *nodes)
    one = constant(np.ones(points[0].shape))
    first = zeros_where_none(vjp([out], [one], nodes), nodes)
    ahead = [zeros_where_none(jvp([out], {n: one}), [out])[0] for n in nodes]
    second = [zeros_where_none(vjp([g], [one], nodes), nodes) for g in first]
    graph = closed([*first, *ahead, *itertools.chain(*second)], nodes)
    found = BACKENDS["reference"](graph)(points)
    n = len(nodes)
    return found[:n], found[n : 2 * n], [found[2 * n + n * k : 3 * n + n * k] for k in range(n)]


# Not here: complex values; and where poles of two gamma functions cancel, derivatives are nan.
OTHERS = {"from_parts", "beta", "binom"}
ADVICE = (
    "write partials that hold there, too, as where(equal(x, 0), the limit, the quotient with where(equal(x, 0), 1, x))"
)


@pytest.mark.parametrize(
    "op", [op for op in POINTWISE if takes(op, "d") and op.name not in OTHERS], ids=lambda op: op.name
)
def test_derivatives_at_zeros_and_ties(op):
    fixed = FIXED.get(op.name, [])
    points = grid(op.arity - len(fixed))
    fixed = [np.resize(f, points[0].shape) for f in fixed]
    own = closed([op(*map(constant, fixed), *(nodes := [place(p) for p in points]))], nodes)

    def run(values):
        return np.asarray(BACKENDS["reference"](own)(values)[0])

    with np.errstate(all="ignore"):
        first, ahead, second = derivatives(op, fixed, points)
        slopes = [smooth_slopes(run, points, k) for k in range(len(points))]
        smooth = np.all([np.isfinite(s) for s in slopes], axis=0)
        for k, slope in enumerate(slopes):
            for found in (first[k], ahead[k]):
                wrong = smooth & ~(np.abs(found - slope) <= 1e-5 * (1 + np.abs(slope)))
                assert not wrong.any(), (
                    f"by operand {k} at {[p[wrong] for p in points]} partials give {found[wrong]}, "
                    f"differences of values {slope[wrong]}: {ADVICE}"
                )
        for j, k in itertools.product(range(len(points)), repeat=2):
            bend, found = bends(run, points, j, k), second[j][k]
            # a slope with a bend in it has no derivative there, and its differences do not say so
            wrong = smooth & np.isfinite(bend) & ~(np.abs(found - bend) <= 1e-3 * (1 + np.abs(bend)))
            assert not wrong.any(), (
                f"by operands {j} and {k} at {[p[wrong] for p in points]} second derivatives are {found[wrong]}, "
                f"differences of values say {bend[wrong]}: {ADVICE}"
            )
