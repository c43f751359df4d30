"""Every pointwise op against NumPy: dtype, shape and bits for each dtype, pair of dtypes, edge and layout."""

# tests named elsewhere

import itertools
import re

import mpmath
import numpy as np
import pytest
import scipy

from tensormagic.ir.errors import DTypeError
from tensormagic.ops import pointwise
from tensormagic.ops.leaf import constant
from tensormagic.ops.pointwise import ASTYPE, Pointwise, astype
from tests.ops.harness import (
    BACKENDS,
    DTYPES,
    assert_same,
    layouts,
    place,
    registry,
    sample,
)

OPS = [op for op in registry.values() if isinstance(op, Pointwise) and op is not ASTYPE]


def in_loop(function, loop):
    """A function without integer loops of its own, in the dtypes that NumPy's ``loop`` computes in."""

    def call(*operands):
        weak = [type(v) if type(v) in {int, float, complex} else np.asarray(v).dtype for v in operands]
        *dtypes, out = loop.resolve_dtypes((*weak, None))
        cast = [np.asarray(v).astype(d) for v, d in zip(operands, dtypes, strict=True)]
        return np.asarray(function(*cast)).astype(out)[()]

    return call


def log1mexp(x):
    return np.where((x > -np.log(2)) & (x <= 0), np.log(-np.expm1(x)), np.log1p(-np.exp(x))).astype(x.dtype)


def log_erfc(x):
    far = np.log(scipy.special.erfcx(x)) - x * x
    between = np.where(x < 8, np.log(scipy.special.erfc(x)), far)
    return np.where(x < 0.5, np.log1p(-scipy.special.erf(x)), between).astype(x.dtype)


def log_hypot(x, y):
    def real(x, y):
        if not (np.isfinite(x) and np.isfinite(y)) or not (x or y):
            return np.log(np.hypot(x, y))
        with mpmath.workdps(700):
            return float(mpmath.log(mpmath.mpf(float(x)) ** 2 + mpmath.mpf(float(y)) ** 2) / 2)

    return np.frompyfunc(real, 2, 1)(x, y)


def of_reals(op, function):
    """SciPy's function as it is; complex numbers are refused where the op refuses them."""

    def call(*operands):
        if any(np.iscomplexobj(v) for v in operands):
            op.resolve([place(v).type for v in operands])
        return function(*operands)

    return call


def in_its_loop(op, function):
    """A function that no library has, in the dtypes of the op's loop."""

    def call(*operands):
        dtypes, out = op.resolve([place(v).type for v in operands])
        cast = [np.asarray(v).astype(d) for v, d in zip(operands, dtypes, strict=True)]
        return np.asarray(function(*cast)).astype(out)[()]

    return call


def of_parts(first, second):
    """The complex number of two parts, in the dtype of their common loop."""
    part = in_loop(np.add, np.arctan2)(first, second).dtype
    parts = (np.asarray(v).astype(np.result_type(part, np.float32)) for v in np.broadcast_arrays(first, second))
    pairs = np.stack([*parts], axis=-1)
    return pairs.view(np.result_type(pairs.dtype, np.complex64))[..., 0][()]


# What is not in NumPy under the name of the op, and is held against something else than what the op says that it is in NumPy.
ORACLES = {
    "from_parts": of_parts,
    "stop_gradient": lambda x: np.array(x)[()],
    "sinc": in_loop(np.sinc, np.exp),
    "sigmoid": in_loop(scipy.special.expit, np.cbrt),
    "softplus": in_loop(lambda x: np.logaddexp(x, x.dtype.type(0)), np.cbrt),
    "log1mexp": in_loop(log1mexp, np.cbrt),
    "xlogy": in_loop(scipy.special.xlogy, np.arctan2),
    "logit": in_loop(scipy.special.logit, np.cbrt),
    "erf": in_loop(scipy.special.erf, np.exp),
    "erfc": in_loop(scipy.special.erfc, np.exp),
    "log_erfc": in_loop(log_erfc, np.cbrt),
    "log_hypot": in_loop(log_hypot, np.arctan2),
    "polygamma": in_loop(scipy.special.polygamma, np.arctan2),
    "digamma": in_loop(scipy.special.digamma, np.cbrt),
    "gammaln": in_loop(scipy.special.gammaln, np.cbrt),
}
ULP = {"sigmoid": 4, "softplus": 4, "log_hypot": 2}
EXTREMES = {
    "b": (False, True),
    "i": (0, 1, -1, 2, 7, 100),
    "u": (0, 1, 2, 7, 100),
}
CORNERS = (0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan)


def oracle(op):
    """NumPy's function of the name; for others SciPy's own, the text that the op is in NumPy, or what computes it, in the loop's dtypes."""
    library = re.fullmatch(r"scipy\.special\.(\w+)", op.in_numpy)
    if op.name in ORACLES:
        return ORACLES[op.name]
    if library:
        return of_reals(op, getattr(scipy.special, library[1]))
    if hasattr(np, op.name):
        return getattr(np, op.name)
    names = [f"x{k}" for k in range(op.arity)]
    text = op.in_numpy.format(*names)
    return in_its_loop(op, eval(f"lambda {', '.join(names)}: {text}", {"np": np, "scipy": scipy}) if text else op.numpy)


def operands(op, dtypes, rng, shape):
    """Random operands; the condition of ``where`` is one of its operands like any other."""
    return [sample(rng, d, shape) for d in dtypes]


def edges(op, dtype):
    """The op's edges in a dtype, with the dtype's own extremes."""
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        whole = [e for e in op.edges if float(e).is_integer() and info.min <= e <= info.max]
        return np.array(sorted({*whole, *EXTREMES[dtype.kind], info.min, info.max}), dtype)
    if dtype.kind == "b":
        return np.array(EXTREMES["b"])
    with np.errstate(all="ignore"):
        if dtype.kind == "c":
            return np.array([complex(a, b) for a in CORNERS for b in CORNERS], dtype)
        return np.array(
            [*op.edges, np.finfo(dtype).max, np.finfo(dtype).tiny, np.finfo(dtype).smallest_subnormal], dtype
        )


def signatures(op):
    """Dtypes of operands: all pairs for two and for the last two of three, which a bool comes before for where."""
    if op.arity == 3:
        if op.name != "where":
            return [(a, a, b) for a, b in itertools.product(DTYPES, DTYPES)]
        return [(np.dtype(bool), a, b) for a, b in itertools.product(DTYPES, DTYPES)]
    if op.arity > 3:  # all pairs, the first of them for all but the last operand
        return [(*[a] * (op.arity - 1), b) for a, b in itertools.product(DTYPES, DTYPES)]
    return list(itertools.product(DTYPES, repeat=op.arity))


@pytest.mark.share(4)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_values_of_every_dtype(op, backend):
    rng = np.random.default_rng(1)
    worked = [
        assert_same(backend, op, oracle(op), operands(op, dtypes, rng, (2, 3)), ULP.get(op.name, 0))
        for dtypes in signatures(op)
    ]
    assert any(worked)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_values_at_edges(op, backend):
    if op.name == "hyp2f1":
        pytest.skip("SciPy's own overflows the stack at the largest numbers, and ends the process")
    for dtype in DTYPES:
        found = edges(op, dtype)
        if op.arity > 1 and dtype.kind == "c":
            found = found[::5]
        if op.name == "where":
            assert_same(backend, op, oracle(op), [found[None, :] != 0, found[:, None], found[None, ::-1]])
        else:
            shapes = [(1,) * k + (-1,) + (1,) * (op.arity - 1 - k) for k in range(op.arity)]
            assert_same(backend, op, oracle(op), [found.reshape(s) for s in shapes], ULP.get(op.name, 0))


@pytest.mark.share(5)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
@pytest.mark.parametrize("dtype", [np.dtype("d"), np.dtype("l"), np.dtype("?"), np.dtype("F")], ids=str)
def test_shapes_and_layouts(op, dtype, backend):
    rng = np.random.default_rng(2)
    for shape in [(), (0,), (1,), (5,), (2, 0, 3), (1, 3), (17, 5)]:
        values = operands(op, (dtype,) * op.arity, rng, shape)
        for variant in zip(*(list(layouts(v)) for v in values), strict=True):
            assert_same(backend, op, oracle(op), variant, ULP.get(op.name, 0))
        of_numbers = oracle(op) if shape else op.numbers.get(dtype.kind, oracle(op))
        assert_same(backend, op, of_numbers, [v[()] for v in values], ULP.get(op.name, 0))  # NumPy scalars for rank 0


@pytest.mark.share(2)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("op", [op for op in OPS if op.arity == 2], ids=lambda op: op.name)
def test_python_numbers_are_weak(op, backend):
    rng = np.random.default_rng(3)
    for dtype, number in itertools.product(DTYPES, (True, 2, 300, -1, 0.5, 1e300, 2j)):
        x = sample(rng, dtype, (3,))
        assert_same(backend, op, oracle(op), [x, number], ULP.get(op.name, 0))
        assert_same(backend, op, oracle(op), [number, x], ULP.get(op.name, 0))


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_operands_that_are_no_numbers_are_refused(op):
    node = place(np.array(["a", "b"]))
    with pytest.raises(DTypeError, match=op.name):
        op(*[node] * op.arity)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("source", DTYPES, ids=str)
def test_casts(source, backend):
    rng = np.random.default_rng(4)
    fit = np.array([0, 1, 100, 0.4, 1.7]) if source.kind != "c" else np.array([0, 1, 2 + 3j, 0.4j])
    with np.errstate(all="ignore"):
        x = np.concatenate([sample(rng, source, (5,)), fit.astype(source)])
    for target in DTYPES:
        if source.kind in "fc" and target.kind == "u":
            x = abs(x).astype(source)  # NumPy's own result for what does not fit depends on the machine

        def oracle(v, target=target):
            return (v.real if v.dtype.kind == "c" and target.kind not in "cb" else v).astype(target)

        assert assert_same(backend, lambda n, target=target: astype(n, target), oracle, [x])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("number", [True, 300, -1, 2**40, 0.5, 1e300])
def test_a_python_constant_fits_or_is_refused_as_in_numpy(dtype, number):
    if isinstance(number, float) and dtype.kind in "biu":
        number = int(number > 1)  # a float is never cast to an integer weakly
    for name in ("add", "less"):
        op = registry[name]
        assert_same(
            "reference", lambda x, op=op: op(x, number), lambda x, op=op: op.numpy(x, number), [np.ones(3, dtype)]
        )


def test_a_python_integer_beyond_64_bits_is_refused():
    with pytest.raises(DTypeError, match="64 bits"):
        constant(2**70)


@pytest.mark.parametrize(
    "function", [np.sin, np.hypot, lambda x: x + 1j, np.isnan], ids=["sin", "hypot", "+ 1j", "isnan"]
)
def test_large_arrays_are_computed_in_parts(function, monkeypatch):
    monkeypatch.setattr(pointwise, "PART", 100)
    rng = np.random.default_rng(0)
    seen = []

    def counted(*given):
        seen.append(given[0].size)
        return function(*given)

    for shape in [(1003,), (7, 50, 3), (400, 1), (1, 5000)]:
        given = [rng.standard_normal(shape) for _ in range(getattr(function, "nin", 1))]
        for called in (function, counted):
            found = pointwise.in_parts(called, given)
            expected = function(*given)
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
    assert max(n for n in seen if n != 5000) <= 150
    x = rng.standard_normal((30, 40)).T
    assert pointwise.in_parts(np.sin, [x]).flags.f_contiguous
    np.testing.assert_array_equal(pointwise.in_parts(np.add, [x.ravel(), np.float64(2.0)]), x.ravel() + 2.0)
