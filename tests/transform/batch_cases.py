"""How each op of the registry is tried on stacks: operands, what builds its node, and whether a gradient is compared."""

import numpy as np
import pytest

from tensormagic.ir.graph import Graph
from tensormagic.ir.node import make
from tensormagic.ir.type import array, symbol
from tensormagic.ops.bit_folds import BIT_FOLDS
from tensormagic.ops.contract import einsum
from tensormagic.ops.convolution import convolve
from tensormagic.ops.draws.random import draw, seeded
from tensormagic.ops.draws.slopes import gamma_slope
from tensormagic.ops.draws.state import encoded
from tensormagic.ops.effects.checks import fixed, in_range
from tensormagic.ops.effects.raising import after, check
from tensormagic.ops.fold import fold, row
from tensormagic.ops.fold_kind import Fold, Row
from tensormagic.ops.indices.gather import gather
from tensormagic.ops.indices.selection import PLACES, count_true, unique
from tensormagic.ops.indices.sorting import searchsorted
from tensormagic.ops.leaf import constant, parameter, size_of
from tensormagic.ops.move import broadcast, concatenate, reshape, slice_, transpose
from tensormagic.ops.op import registry
from tensormagic.ops.opaque import item, items
from tensormagic.ops.pointwise import ASTYPE, Pointwise
from tensormagic.ops.regions import control
from tensormagic.ops.regions.recursion import itself, recursive
from tensormagic.ops.reverse.tape import ADD_TAPES, LEAD_TAPE, SUM_TAPE, choose_tape, read_tape
from tensormagic.ops.scalars.scalar import add, cos, greater, less, multiply, sin
from tensormagic.ops.update import add_at, set_at
from tests.ops.cases_tapes import added, played, written
from tests.ops.harness import FIXED

RNG = np.random.default_rng(7)
SIZES = (4, 1, 0)
SQUARE = np.eye(3) * 4

STAYS_REAL = np.linalg.eigvals(np.eye(1)).dtype.kind == "f"  # NumPy 2.5 has complex eigenvalues alone


def normal(*shape):
    return lambda lead: RNG.normal(size=(*lead, *shape))


def unit(*shape):
    return lambda lead: RNG.uniform(0.1, 0.9, size=(*lead, *shape))


def spread(*shape):
    """Elements that differ by far from each other, so that no order is a tie."""
    return lambda lead: RNG.permuted(
        np.linspace(-2, 2, int(np.prod(shape))).reshape(shape) + np.zeros((*lead, *shape)), axis=-1
    )


def whole(*shape):
    return lambda lead: RNG.integers(1, 60, size=(*lead, *shape))


def matrices(*shape):
    return lambda lead: RNG.normal(size=(*lead, *shape)) + (SQUARE if shape == (3, 3) else 0)


def places(mask):
    """Where a mask is true: the op itself, though the mask is known."""
    return make(PLACES, (constant(mask),), length=size_of(count_true(constant(mask))))


def definite(lead):
    a = RNG.normal(size=(*lead, 3, 3))
    return a @ np.swapaxes(a, -1, -2) + SQUARE


def banded(lead):
    """Three diagonals of which the middle one is large."""
    return RNG.normal(size=(*lead, 3, 3)) + np.array([[0.0], [6.0], [0.0]])


def distinct(lead):
    """Coefficients whose roots are real and far apart."""
    return np.array([2.0, -3.0, -5.0, 1.0]) + 0.1 * RNG.normal(size=(*lead, 4))


def rising(n):
    return lambda lead: np.sort(RNG.normal(size=(*lead, n)), axis=-1)


def integers(stop, *shape, start=0):
    return lambda lead: RNG.integers(start, stop, size=(*lead, *shape))


def op(name, /, **params):
    """A call that makes the op's node as it is, and gives its results."""

    def build(*nodes):
        node = make(registry[name], nodes, **params)
        return list(items(node))

    return build


def seeds(lead):
    return RNG.integers(1000, size=(*lead, 2))


def states(lead):
    words = [encoded(np.random.default_rng(seed)) for seed in seeds(lead).reshape(-1, 2)]
    return np.reshape(words, (*lead, 7)) if words else np.zeros((*lead, 7), np.uint64)


def drawn(state, x):
    operands = {"loc": x, "scale": constant(2.0)}
    return draw(state, "normal", operands, size=(2, 3), shape=(2, 3), dtype=np.float64, form="array")


def one(function):
    return lambda *nodes: [function(*nodes)]


def fft_params(axis, n):
    return {"axis": axis, "n": n, "norm": "backward"}


# regions: closed graphs over a vector of n0 elements, and numbers

VECTOR = array(float, symbol("n0"))
NUMBER = array(float)
COUNT = array(np.int64)


def region(types, build):
    parameters = tuple(parameter(k, t) for k, t in enumerate(types))
    return Graph(parameters, tuple(build(*parameters)))


ITERATION = region([COUNT, VECTOR, NUMBER, VECTOR], lambda k, x, s, c: [sin(x) * c + multiply(s, k), s * 0.9])
PLAIN = region([VECTOR, VECTOR], lambda x, y: [sin(x) * y, add(y, y)])
BACK = region([VECTOR] * 4, lambda x, y, a, b: [a * cos(x) * y, a * sin(x) + b * 2.0])
OTHER = region([VECTOR, VECTOR], lambda x, y: [cos(x), multiply(y, 3.0)])
LOSS = region([VECTOR, VECTOR], lambda x, y: [fold(registry["sum"], sin(x) * y, (0,))])
GROWS = region([NUMBER, VECTOR], lambda s, x: [s * 1.5, x + 1.0])
SMALL = region([NUMBER, VECTOR], lambda s, x: [less(s, 9.0)])
ITERATIONS = region([COUNT, VECTOR], lambda k, x: [k + 1, x * 0.5])
END = region([NUMBER, VECTOR], lambda s, x: [x * s])
AGAIN = region([NUMBER, VECTOR], lambda s, x: [sin(itself("f_own", [s - 1.0, x], [VECTOR])[0]) + x])
OWN = region([NUMBER, VECTOR], lambda s, x: control.cond(less(s, 1.0), END, AGAIN, [s, x]))
EARLY = region([COUNT, VECTOR], lambda k, x: [less(k, 4)])


# operands (each a function of the leading axes), what is built of them, and whether a gradient is compared
CASES = {
    "astype": [
        ([normal(2, 3)], lambda x: [make(ASTYPE, (x,), dtype="<f4")], False),
        ([normal(3)], lambda x: [make(ASTYPE, (x,), dtype="<c16")], False),
    ],
    "broadcast": [
        ([normal(3)], one(lambda x: broadcast(x, (2, 5, 3))), True),
        ([normal(4, 1)], one(lambda x: broadcast(x, (4, 2))), True),
        ([normal()], one(lambda x: broadcast(x, (3,))), True),
    ],
    "transpose": [([normal(2, 3, 4)], one(lambda x: transpose(x, (2, 0, 1))), True)],
    "reshape": [
        ([normal(2, 6)], one(lambda x: reshape(x, (3, -1))), True),
        ([normal()], one(lambda x: reshape(x, (1, 1))), True),
    ],
    "slice": [([normal(5, 3)], one(lambda x: slice_(x, ((4, 3, -2), (1, 2, 1)))), True)],
    "concatenate": [([normal(2, 3), normal(2, 1)], one(lambda *parts: concatenate(parts, 1)), True)],
    "set": [([normal(5), normal(2)], one(lambda x, v: set_at(x, v, ((1, 2, 2),))), True)],
    "add_at": [([normal(5, 2), normal(3, 2)], one(lambda x, v: add_at(x, v, ((4, 3, -1), (0, 2, 1)))), True)],
    "contract": [
        ([normal(*left), normal(*right)], one(lambda x, y, s=subscripts: einsum(s, x, y)), True)
        for subscripts, left, right in (
            ("ij,jk->ik", (2, 3), (3, 4)),
            ("ij,j->i", (2, 3), (3,)),
            ("i,i->", (3,), (3,)),
            ("i,j->ji", (3,), (2,)),
            ("bij,bjk->bki", (2, 3, 4), (2, 4, 5)),
            ("ab,bc->", (2, 3), (3, 2)),
        )
    ],
    "form": [([normal()], op("form", form="python"), True)],
    "item": [([matrices(3, 3)], lambda a: [item(make(registry["qr"], (a,), mode="reduced"), 1)], True)],
    "gather": [
        ([normal(2, 4, 3), integers(4, *shape, start=-4)], op("gather", axis=axis), True)
        for axis, shape in ((1, (5,)), (1, ()))
    ]
    + [
        ([normal(4, 3), integers(3, 2, 2)], op("gather", axis=1), True),
        ([normal(4), integers(4, 3)], op("gather", axis=0), True),
    ],
    **{
        name: [
            ([normal(2, 4, 3), integers(4, 5, start=-4), normal(2, 5, 3)], op(name, axis=1), True),
            ([normal(4, 3), integers(4, 2, 2), normal(2, 2, 3)], op(name, axis=0), True),
            ([normal(2, 4), integers(4), normal(2)], op(name, axis=1), True),
        ]
        for name in ("scatter_set", "scatter_add", "scatter_multiply", "scatter_maximum", "scatter_minimum")
    },
    "position": [([integers(3, 2, start=-3)], op("position", extent=3, number=0), False)],
    "places": [([normal(3)], lambda x: [gather(x, places(np.array([True, False, True])), 0)], True)],
    **{
        name: [([normal(3)], lambda x: [gather(x, unique(constant(np.array([2.0, 1.0, 2.0])))[0], 0)], True)]
        for name in ("unique", "count_unique")
    },
    "take_along_axis": [([normal(2, 4), integers(4, 2, 3)], op("take_along_axis", axis=1), True)],
    "add_along_axis": [([normal(2, 4), integers(4, 2, 3), normal(2, 3)], op("add_along_axis", axis=1), True)],
    "sort": [([spread(2, 4)], op("sort", axis=axis, kind=None), True) for axis in (0, 1)],
    "argsort": [([spread(2, 4)], op("argsort", axis=1, kind="stable"), False)],
    "searchsorted": [
        ([rising(5), normal(2, 3)], op("searchsorted", side="left"), False),
        ([normal(2, 3)], lambda x: [searchsorted(constant(np.array([-1.0, 0.0, 1.0])), x, "right")], False),
    ],
    "convolve": [
        ([normal(5), normal(3)], op("convolve"), True),
        ([normal(4)], lambda x: [convolve(x, constant(np.array([1.0, 2.0])))], True),
    ],
    "record": [([normal(3)], lambda x: [played(written(x), x)], True)],
    "replay": [([normal(3)], lambda x: [played(written(x), x, 0), played(written(x), x)], True)],
    "add_record": [([normal(3), normal(3)], lambda x, y: [played(added(x, y), x)], True)],
    "add_tapes": [([normal(3), normal(3)], lambda x, y: [played(make(ADD_TAPES, (written(x), written(y))), x)], True)],
    "lead_tape": [
        (
            [normal(3)],
            lambda x: [
                read_tape(
                    make(LEAD_TAPE, (written(x),), axis=0, size=2), constant(1), x.type.with_shape((2, *x.type.shape))
                )
            ],
            True,
        )
    ],
    "sum_tape": [
        (
            [normal(2, 3)],
            lambda x: [
                read_tape(
                    make(SUM_TAPE, (written(x),), axis=0, size=2), constant(1), x.type.with_shape(x.type.shape[1:])
                )
            ],
            True,
        )
    ],
    "choose_tape": [
        (
            [normal(3, 2), normal(3, 2)],
            lambda x, y: [played(choose_tape(constant(np.array([True, False, True])), written(x), written(y)), x)],
            True,
        )
    ],
    "custom_gradient": [
        (
            [normal(3), normal(3)],
            lambda x, y: list(control.custom(PLAIN, BACK, (x, y))),
            True,
        ),
    ],
    "checkpoint": [
        ([normal(3), normal(3)], lambda x, y: list(control.checkpoint(PLAIN, (x, y))), True),
    ],
    "resolved": [([normal(3, 3), normal(3)], op("resolved"), True)],
    "over_gaps": [([normal(3, 3), unit(3, 3)], op("over_gaps", what="the vectors"), True)],
    "gram": [([normal(4, 3)], op("gram"), True)],
    "beta_slopes": [([unit(3), unit(3), unit(3)], op("beta_slopes"), False)],
    "von_mises_slope": [([unit(3), unit(3)], op("von_mises_slope"), False)],
    "require": [([unit(3)], lambda x: [in_range(x, -9, 9, "out of range")], True)],
    "check": [([unit(3)], lambda x: [check(x, greater(x, -9), ValueError, [("value", "low")])], True)],
    "after": [([unit(3)], lambda x: [after(greater(x, 0), x * 2)], True)],
    **{
        name: [([unit(), normal(3)], lambda s, x: recursive("f_own", {"f_own": OWN}, [s + 2.0, x]), True)]
        for name in ("recursive", "itself")
    },
    "fixed": [([normal(3)], lambda x: [x * fixed(constant(2.0), [constant(1.0)])], True)],  # where no stack reaches it
    "draw": [([states, unit(3)], drawn, False)],
    "random_state": [([seeds], lambda n: [seeded(n, "PCG64", legacy=False)], False)],
    "gamma_slope": [([unit(3), unit(3)], one(gamma_slope), False)],
    "fft": [([lambda lead: normal(2, 6)(lead) + 0j], op("fft", **fft_params(1, 6)), False)],
    "ifft": [([lambda lead: normal(4, 2)(lead) + 0j], op("ifft", **fft_params(0, 4)), False)],
    "rfft": [([normal(2, 6)], op("rfft", **fft_params(1, 8)), False)],
    "irfft": [([lambda lead: normal(2, 4)(lead) + 0j], op("irfft", **fft_params(1, 6)), False)],
    "solve": [([matrices(3, 3), normal(3, 2)], op("solve"), True)],
    "solve_triangular": [
        ([matrices(3, 3), normal(3, 2)], op("solve_triangular", lower=True, unit_diagonal=False), True)
    ],
    "inv": [([matrices(3, 3)], op("inv"), True)],
    "pinv": [([matrices(4, 3)], op("pinv", rcond=None), True)],
    "adjugate": [([matrices(3, 3)], op("adjugate"), True), ([matrices(3, 3), normal(3, 3)], op("adjugate"), True)],
    "det": [([matrices(3, 3)], op("det"), True)],
    "slogdet": [([matrices(3, 3)], op("slogdet"), True)],
    "cholesky": [([definite], op("cholesky", upper=False), True)],
    "eigh": [([definite], op("eigh", UPLO="L"), True)],
    "eigvalsh": [([definite], op("eigvalsh", UPLO="L"), True)],
    "svd": [([matrices(4, 3)], op("svd", full_matrices=False), True)],
    "svdvals": [([matrices(4, 3)], op("svdvals"), True)],
    "qr": [([matrices(4, 3)], op("qr", mode="reduced"), True)],
    "eig": [([definite], op("eig", real=STAYS_REAL), True)],
    "eigvals": [([definite], op("eigvals", real=STAYS_REAL), True)],
    "scipy_eigh": [
        ([definite], op("scipy_eigh", lower=True), True),
        ([definite] * 2, op("scipy_eigh", lower=True), True),
    ],
    "lu": [([definite], lambda a: list(items(make(registry["lu"], (a,))))[1:], True)],
    "pivots": [
        ([lambda lead: np.broadcast_to(np.array([2, 0, 1], np.int32), (*lead, 3)).copy()], op("pivots", count=3), False)
    ],
    "pivoted": [
        (
            [lambda lead: np.broadcast_to(np.array([2, 2, 2], np.int32), (*lead, 3)).copy()],
            op("pivoted", count=3),
            False,
        )
    ],
    "schur": [([definite], op("schur"), False)],
    "solve_sylvester": [([definite, definite, matrices(3, 3)], op("solve_sylvester"), True)],
    "solve_banded": [([banded, normal(3, 2)], op("solve_banded", lower=1, upper=1), True)],
    "roots": [([distinct], op("roots", real=True, site=-1), True)],
    "lstsq": [([matrices(4, 3), normal(4, 2)], op("lstsq", rcond=None), True)],
    "lstsq_residuals": [([matrices(4, 3), normal(4, 2)], op("lstsq_residuals", rcond=None), True)],
    "matrix_function": [
        ([definite], op("matrix_function", name="expm"), True),
        ([definite, matrices(3, 3)], op("matrix_function", name="expm"), True),
    ],
    "call": [([normal(3), normal(3)], lambda x, y: list(control.call(PLAIN, (x, y))), True)],
    "grad": [([normal(3), normal(3)], lambda x, y: list(control.grad(LOSS, (x, y), (0, 1))), False)],
    "cond": [
        (
            [normal(), normal(3), normal(3)],
            lambda p, x, y: list(control.cond(greater(p, 0.0), PLAIN, OTHER, (x, y))),
            True,
        )
    ],
    "loop": [
        (
            [integers(5), normal(3), normal(), normal(3)],
            lambda n, x, s, c: list(control.loop(n, ITERATION, (x, s), (c,))),
            False,
        )
    ],
    "while": [
        ([unit(), normal(3)], lambda s, x: list(control.while_loop(SMALL, GROWS, (s, x))), False),
        ([integers(3), normal(3)], lambda k, x: list(control.while_loop(EARLY, ITERATIONS, (k, x))), False),
    ],
}
AXES = {"cumsum": (1,), "cumprod": (1,), "cummax": (1,), "cummin": (1,), "argmax": (1,), "argmin": (1,)}


def pointwise_case(function):
    kinds = [np.dtype(d) for d in ("f8", "i8", "?")]
    for kind in kinds:
        types = [array(kind)] * function.arity if function.name != "where" else [array(bool), array(kind), array(kind)]
        try:
            loop, _ = function.resolve(types)
        except TypeError:
            continue
        low, high = max(function.domain[0], 0.1), min(function.domain[1], 0.9)
        low, high = (low, high) if low < high else (max(function.domain[0], 0) + 1.1, max(function.domain[0], 0) + 2)

        def make_one(dtype, low=low, high=high):
            if dtype.kind == "f":
                return lambda lead: RNG.uniform(low, high, size=(*lead, 2, 3)).astype(dtype)
            return lambda lead: RNG.integers(0, 2, size=(*lead, 2, 3)).astype(dtype)

        differentiable = function.step is not True and all(
            d == "f8" for d in loop[1 if function.name == "where" else 0 :]
        )
        return (
            [make_one(d) for d in loop],
            one(lambda *x: make(function, x)),
            differentiable and (function.name == "where" or function.name not in FIXED),
        )
    raise AssertionError(function.name)


def cases():
    for name, function in registry.items():
        if name in CASES:
            for number, case in enumerate(CASES[name]):
                yield pytest.param(*case, id=f"{name}-{number}")
        elif isinstance(function, Pointwise):
            yield pytest.param(*pointwise_case(function), id=name)
        elif isinstance(function, Row):
            yield pytest.param([unit(2, 3)], one(lambda x, f=function: row(f, x, (1,))), True, id=name)
        elif isinstance(function, Fold):
            given = [whole(2, 3) if function in BIT_FOLDS.values() else spread(2, 3)]
            for axes, ending in (((0,), "first"), ((0, 1), "all")):
                yield pytest.param(
                    given,
                    one(lambda x, f=function, a=axes: fold(f, x, a)),
                    function.differentiable,
                    id=f"{name}-{ending}",
                )
