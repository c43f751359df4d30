"""Every op of the registry on stacks: values and gradients are those of single calls, for any stacked operands."""

import itertools

import numpy as np
import pytest

import tensormagic.ops.bessel
import tensormagic.ops.control
import tensormagic.ops.fft
import tensormagic.ops.form
import tensormagic.ops.least_squares
import tensormagic.ops.linalg
import tensormagic.ops.matrix_function
import tensormagic.ops.sorting
import tensormagic.ops.spectral  # noqa: F401 (every op is in the registry)
from tensormagic.backend import reference
from tensormagic.ir import site
from tensormagic.ir.graph import Graph, close
from tensormagic.ir.node import make
from tensormagic.ir.type import array, symbol
from tensormagic.ops import control
from tensormagic.ops.checks import fixed, in_range
from tensormagic.ops.contract import einsum
from tensormagic.ops.convolution import convolve
from tensormagic.ops.fold import Fold, Row, fold, row
from tensormagic.ops.gather import gather
from tensormagic.ops.leaf import INPUT, Source, constant, input_node, open_type, parameter, size_of
from tensormagic.ops.move import broadcast, concatenate, reshape, slice_, transpose
from tensormagic.ops.op import Op, registry
from tensormagic.ops.opaque import item, items
from tensormagic.ops.pointwise import ASTYPE, Pointwise
from tensormagic.ops.raising import after, check
from tensormagic.ops.random import draw, seeded
from tensormagic.ops.random_slopes import gamma_slope
from tensormagic.ops.random_state import encoded
from tensormagic.ops.scalar import add, cos, greater, less, multiply, sin, where
from tensormagic.ops.selection import PLACES, count_true, unique
from tensormagic.ops.sorting import searchsorted
from tensormagic.ops.tape import ADD_TAPES, LEAD_TAPE, SUM_TAPE, choose_tape, read_tape
from tensormagic.ops.update import add_at, set_at, zeros_like
from tensormagic.transform import grad as modes
from tensormagic.transform.batch import batch
from tests.ops.cases_tapes import added, played, written
from tests.ops.harness import FIXED

RNG = np.random.default_rng(7)
SIZES = (4, 1, 0)
SQUARE = np.eye(3) * 4


def normal(*shape):
    return lambda lead: RNG.normal(size=(*lead, *shape))


def unit(*shape):
    return lambda lead: RNG.uniform(0.1, 0.9, size=(*lead, *shape))


def spread(*shape):
    """Elements that differ by far from each other, so that no order is a tie."""
    return lambda lead: RNG.permuted(
        np.linspace(-2, 2, int(np.prod(shape))).reshape(shape) + np.zeros((*lead, *shape)), axis=-1
    )


def matrices(*shape):
    return lambda lead: RNG.normal(size=(*lead, *shape)) + (SQUARE if shape == (3, 3) else 0)


def places(mask):
    """Where a mask is true: the op itself, though the mask is known."""
    return make(PLACES, (constant(mask),), length=size_of(count_true(constant(mask))))


def definite(lead):
    a = RNG.normal(size=(*lead, 3, 3))
    return a @ np.swapaxes(a, -1, -2) + SQUARE


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


TURN = region([COUNT, VECTOR, NUMBER, VECTOR], lambda k, x, s, c: [sin(x) * c + multiply(s, k), s * 0.9])
PLAIN = region([VECTOR, VECTOR], lambda x, y: [sin(x) * y, add(y, y)])
BACK = region([VECTOR] * 4, lambda x, y, a, b: [a * cos(x) * y, a * sin(x) + b * 2.0])
OTHER = region([VECTOR, VECTOR], lambda x, y: [cos(x), multiply(y, 3.0)])
LOSS = region([VECTOR, VECTOR], lambda x, y: [fold(registry["sum"], sin(x) * y, (0,))])
GROWS = region([NUMBER, VECTOR], lambda s, x: [s * 1.5, x + 1.0])
SMALL = region([NUMBER, VECTOR], lambda s, x: [less(s, 9.0)])
TURNS = region([COUNT, VECTOR], lambda k, x: [k + 1, x * 0.5])
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
    "require": [([unit(3)], lambda x: [in_range(x, -9, 9, "out of range")], True)],
    "check": [([unit(3)], lambda x: [check(x, greater(x, -9), ValueError, [("value", "low")])], True)],
    "after": [([unit(3)], lambda x: [after(greater(x, 0), x * 2)], True)],
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
    "adjugate": [([matrices(3, 3)], op("adjugate"), True)],
    "det": [([matrices(3, 3)], op("det"), True)],
    "slogdet": [([matrices(3, 3)], op("slogdet"), True)],
    "cholesky": [([definite], op("cholesky", upper=False), True)],
    "eigh": [([definite], op("eigh", UPLO="L"), True)],
    "eigvalsh": [([definite], op("eigvalsh", UPLO="L"), True)],
    "svd": [([matrices(4, 3)], op("svd", full_matrices=False), True)],
    "svdvals": [([matrices(4, 3)], op("svdvals"), True)],
    "qr": [([matrices(4, 3)], op("qr", mode="reduced"), True)],
    "eig": [([definite], op("eig", real=True), True)],
    "eigvals": [([definite], op("eigvals", real=True), True)],
    "scipy_eigh": [
        ([definite], op("scipy_eigh", lower=True), True),
        ([definite] * 2, op("scipy_eigh", lower=True), True),
    ],
    "lu": [([definite], lambda a: list(items(make(registry["lu"], (a,))))[1:], True)],
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
            lambda n, x, s, c: list(control.loop(n, TURN, (x, s), (c,))),
            False,
        )
    ],
    "while": [
        ([unit(), normal(3)], lambda s, x: list(control.while_loop(SMALL, GROWS, (s, x))), False),
        ([integers(3), normal(3)], lambda k, x: list(control.while_loop(EARLY, TURNS, (k, x))), False),
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

        differentiable = not function.step and all(d == "f8" for d in loop[1 if function.name == "where" else 0 :])
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
            yield pytest.param(
                [spread(2, 3)], one(lambda x, f=function: fold(f, x, (0,))), function.differentiable, id=f"{name}-first"
            )
            yield pytest.param(
                [spread(2, 3)], one(lambda x, f=function: fold(f, x, (0, 1))), function.differentiable, id=f"{name}-all"
            )


def test_every_op_is_tried():
    tried = {param.id.rsplit("-", 1)[0] if param.id.rsplit("-", 1)[0] in registry else param.id for param in cases()}
    leaves = {name for name, o in registry.items() if o.kind == "leaf" and name != "item"}
    assert tried | leaves == set(registry)


def place(value, name):
    source = Source(name)
    return input_node(source, open_type(source, value.dtype, value.shape, "array" if value.ndim else "scalar"))


def evaluate(results, inputs, values):
    graph = close(results, lambda n: n.op is INPUT, parameter, leaves=inputs).graph
    with np.errstate(all="ignore"):
        return reference.evaluate_graph(graph, values)


def of_single(build, values, cotangents):
    """The results, and with cotangents the gradient of each float operand."""
    inputs = [place(v, f"x{k}") for k, v in enumerate(values)]
    results = build(*inputs)
    if cotangents is None:
        return evaluate(results, inputs, values)
    given = [place(c, f"c{k}") for k, c in enumerate(cotangents)]
    floats = [n for n in inputs if n.type.inexact]
    found = [zeros_like(n) if c is None else c for n, c in zip(floats, modes.vjp(results, given, floats), strict=True)]
    return evaluate(found, [*inputs, *given], [*values, *cotangents])


def of_stack(build, values, flags, cotangents):
    """The same for a stack: operands that are not stacked get the sum of the gradients."""
    stacks = [place(v, f"s{k}") for k, v in enumerate(values)]
    singles = [
        input_node(Source("x"), s.type.with_shape(s.type.shape[1:])) if f else s
        for s, f in zip(stacks, flags, strict=True)
    ]
    lead = next(s.type.shape[0] for s, f in zip(stacks, flags, strict=True) if f)
    results = build(*singles)
    found = batch(results, {n: s for n, s, f in zip(singles, stacks, flags, strict=True) if f}, lead)
    found = [broadcast(r, (lead, *r.type.shape)) if f is None else f for r, f in zip(results, found, strict=True)]
    for node, single in zip(found, results, strict=True):
        assert node.type.dtype == single.type.dtype
        assert node.type.ndim == single.type.ndim + 1
    if cotangents is None:
        return evaluate(found, stacks, values)
    given = [place(c, f"c{k}") for k, c in enumerate(cotangents)]
    floats = [n for n in stacks if n.type.inexact]
    pulled = [zeros_like(n) if c is None else c for n, c in zip(floats, modes.vjp(found, given, floats), strict=True)]
    return evaluate(pulled, [*stacks, *given], [*values, *cotangents])


def example(values, flags, k):
    return [np.asarray(v[k]) if f else v for v, f in zip(values, flags, strict=True)]


@pytest.mark.parametrize(("operands", "build", "differentiable"), list(cases()))
def test_a_stack_is_its_single_calls(operands, build, differentiable):
    combinations = [f for f in itertools.product((True, False), repeat=len(operands)) if any(f)]
    for flags in combinations:
        for size in SIZES[:2]:
            values = [np.asarray(make_one((size,) if f else ())) for make_one, f in zip(operands, flags, strict=True)]
            singles = [of_single(build, example(values, flags, k), None) for k in range(size)]
            found = of_stack(build, values, flags, None)
            for stack, parts in zip(found, zip(*singles, strict=True), strict=True):
                np.testing.assert_allclose(stack, np.stack(parts), rtol=1e-12, atol=1e-12)
            if differentiable:
                assert_gradients(build, values, flags, size, found)


def assert_gradients(build, values, flags, size, found):
    cotangents = [RNG.normal(size=np.shape(v)) for v in found]
    floats = [k for k, v in enumerate(values) if v.dtype.kind == "f"]
    pulled = of_stack(build, values, flags, cotangents)
    parts = [of_single(build, example(values, flags, k), [np.asarray(c[k]) for c in cotangents]) for k in range(size)]
    for number, k in enumerate(floats):
        each = np.stack([p[number] for p in parts])
        expected = each if flags[k] else each.sum(axis=0)
        np.testing.assert_allclose(pulled[number], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "name", ["contract", "gather", "scatter_add", "sort", "solve", "cond", "loop", "while", "set", "fft"]
)
def test_an_empty_stack_has_empty_results(name):
    operands, build, _ = CASES[name][0]
    flags = [True] * len(operands)
    values = [np.asarray(make_one((0,))) for make_one in operands]
    singles = of_single(build, [np.asarray(make_one(())) for make_one in operands], None)
    for stack, single in zip(of_stack(build, values, flags, None), singles, strict=True):
        assert stack.shape == (0, *np.shape(single))


def test_a_stack_of_stacks():
    """Two new axes, one after the other, for an op that moves axes and one with letters."""
    x, w = RNG.normal(size=(2, 3, 4, 5)), RNG.normal(size=(2, 5))
    single, vector = place(x[0, 0], "x"), place(w[0], "w")
    result = transpose(einsum("ij,j->i", transpose(single, (0, 1)), vector) * 2.0, (0,))
    inner, outer = place(x[0], "xs"), place(x, "xss")
    (once,) = batch([result], {single: inner}, inner.type.shape[0])
    weights = place(w, "ws")
    (twice,) = batch([once], {inner: outer, vector: weights}, outer.type.shape[0])
    (value,) = evaluate([twice], [outer, weights], [x, w])
    np.testing.assert_allclose(value, 2 * np.einsum("abij,aj->abi", x, w))


def test_what_no_stack_reaches_stays():
    stack, y = place(np.ones((4, 3)), "s"), place(np.ones(3), "y")
    x = input_node(Source("x"), stack.type.with_shape(stack.type.shape[1:]))
    kept, moved = batch([sin(y), sin(x)], {x: stack}, stack.type.shape[0])
    assert kept is None
    assert moved is sin(stack)


def test_sites_are_inherited():
    stack = place(np.ones((4, 3)), "s")
    x = input_node(Source("x"), stack.type.with_shape(stack.type.shape[1:]))
    node = sin(x) * 5.25
    site.record(node, site.Site("In[1]", 1, 2))
    (moved,) = batch([node], {x: stack}, stack.type.shape[0])
    assert [s.line for s in site.of(moved)] == [2]


def test_an_op_without_a_rule_is_named():
    class Strange(Op):
        pass

    strange = Strange(name="strange_without_batches")
    try:
        x, stack = place(np.ones(3), "x"), place(np.ones((4, 3)), "s")
        with pytest.raises(NotImplementedError, match="strange_without_batches has no rule for batches"):
            batch([make(strange, (x,), type=array(float, 3))], {x: stack}, stack.type.shape[0])
    finally:
        del registry["strange_without_batches"]


def test_where_keeps_its_condition():
    condition, x = place(np.array([True, False]), "c"), place(np.ones(2), "x")
    conditions = place(np.array([[True, False], [False, False], [True, True]]), "cs")
    (moved,) = batch([where(condition, x, constant(0.0))], {condition: conditions}, conditions.type.shape[0])
    (value,) = evaluate(
        [moved], [conditions, x], [np.array([[True, False], [False, False], [True, True]]), np.array([2.0, 3.0])]
    )
    np.testing.assert_array_equal(value, [[2, 0], [0, 0], [2, 3]])
