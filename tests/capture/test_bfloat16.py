"""bfloat16 of ml_dtypes in captured code: the package's own ufuncs, run by NumPy, say which values and dtypes there are."""

import pickle
from types import FunctionType

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.numpy_tier.text import numpy_source
from tensormagic.ir.stored import dtype_of
from tests.capture.harness import captured, plain

bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
RNG = np.random.default_rng(0)
X, Y = ((RNG.normal(size=(7, 20)) * 2).astype(bfloat16) for _ in range(2))
W, V = RNG.normal(size=(20, 4)).astype(bfloat16), X[0].copy()
NAMES = {"x": X, "y": Y, "w": W, "v": V, "np": np, "bfloat16": bfloat16}

EXACT = """
x * x | x * 2 | 2 - x | x * 2.5 | x / 3 | 1 / x | x * np.float32(2) | x + np.float16(1) | x + np.arange(20) | x + np.arange(20.0)
x + np.arange(20, dtype='i1') | x + np.arange(20, dtype='i2') | x * True | x * 1j | x - y | x / y | -x | +x | abs(x) | x // 2 | x % 2
x**2 | x**3 | np.abs(x)**0.5 | x == 2 | x > y | (x > 0) & (y > 0) | x * bfloat16(2.5) | x[1, 2] * 2 | x[1, 2] * 2.5 | x[1, 2]
np.sqrt(np.abs(x)) | np.square(x) | np.reciprocal(x) | np.floor(x) | np.rint(x) | np.round(x) | np.sign(x) | np.isnan(x)
np.isfinite(x) | np.maximum(x, y) | np.minimum(x, 1) | np.maximum(x, 0.5) | np.copysign(x, y) | np.heaviside(x, y) | np.fmod(x, y)
np.where(x > 2, x, 0) | np.where(x > 2, x, y) | np.where(x > 2, x, 0.5) | np.clip(x, 0, 2) | np.clip(x, -0.3, 0.7) | np.hypot(x, 0 * y)
x.max() | x.max(axis=1) | x.min(axis=0) | x.argmax() | x.argmin(axis=0) | np.ptp(x) | np.any(x > 1) | np.all(x) | np.count_nonzero(x)
np.maximum.accumulate(x, axis=1) | np.diff(x) | np.sort(x) | np.argsort(v, kind='stable') | np.median(x) | np.unique(v)
np.searchsorted(np.sort(v), v) | np.concatenate([x, y]) | np.stack([x, y]) | np.vstack([x, y]) | np.pad(x, 1) | np.roll(x, 1)
np.triu(x) | np.tile(v, 2) | np.repeat(v, 2) | np.outer(v, v) | np.broadcast_to(v, (3, 20)) | np.nan_to_num(x)
x[np.array([0, 1])] | x[x > 0] | x[1:, ::2] | x.T | x.reshape(-1) | x[::-1] | x.ravel() | x.copy() | np.take(x, [3, 3, 0], axis=1)
x.astype('f4') | x.astype('f8') | x.astype('i4') | x.astype(complex) | x.astype(np.float16) | x.astype(bool) | x.astype(bfloat16)
(x.astype(np.float32) * 1.1).astype(x.dtype) | np.arange(7).astype(bfloat16) | np.asarray(x, np.float32) | np.multiply(x, y, dtype='f4')
np.zeros_like(x) | np.zeros((3, 4), bfloat16) | np.ones((3, 4), dtype=x.dtype) | np.full((3, 2), 2, bfloat16) | np.full_like(x, 2)
np.linspace(0, 1, 3, dtype=bfloat16) | np.eye(3, dtype=bfloat16) | np.array([1.5, 2], dtype=bfloat16) | np.select([x > 0], [x])
"""
NEAR = """
np.exp(x) | np.log(np.abs(x)) | np.sin(x) | np.tanh(x) | np.log1p(np.abs(x)) | np.expm1(x) | np.cbrt(x) | np.arctan2(x, y)
np.logaddexp(x, y) | np.power(np.abs(x), y) | np.exp2(x) | np.deg2rad(x) | np.radians(x) | np.rad2deg(x)
x @ w | np.dot(x, w) | np.dot(v, v) | v @ v | np.inner(v, v) | np.vdot(v, v) | np.tensordot(x, w, 1) | np.kron(v, v) | np.trace(x)
np.sum(x, dtype='f4') | np.linalg.norm(v) | np.gradient(v) | np.interp(v, np.sort(v), v) | np.percentile(x, 30) | np.convolve(v, v)
"""
SUMS = """
x.sum() | x.sum(axis=0) | np.sum(x, axis=1, keepdims=True) | x.mean() | x.mean(axis=1) | x.var() | x.std(axis=0) | np.average(v)
np.cumsum(x, axis=1) | x.prod(axis=0) | np.cumprod(v[:5])
"""


def several(text: str) -> list[str]:
    return [part.strip() for line in text.strip().splitlines() for part in line.split("|")]


def of(source: str):
    """What a function gives, and what NumPy with the package does."""
    function = eval(f"lambda x, y, w, v: {source}", {"np": np, "bfloat16": bfloat16})
    with np.errstate(all="ignore"):
        return np.asarray(tm.tensor(function)(X, Y, W, V)), function


def wide(value) -> np.ndarray:
    array = np.asarray(value)
    return array.astype(float) if array.dtype == bfloat16 else array


@pytest.mark.parametrize("source", several(EXACT))
def test_values_and_dtypes_are_those_of_the_package(source: str):
    own, function = of(source)
    with np.errstate(all="ignore"):
        theirs = np.asarray(function(X, Y, W, V))
    assert (own.dtype, own.shape) == (theirs.dtype, theirs.shape)
    np.testing.assert_array_equal(wide(own), wide(theirs))


@pytest.mark.parametrize("source", several(NEAR))
def test_functions_are_rounded_from_single_precision(source: str):
    own, function = of(source)
    theirs = np.asarray(function(X, Y, W, V))
    assert (own.dtype, own.shape) == (theirs.dtype, theirs.shape)
    units = 2.0**-7 if own.dtype == bfloat16 else 2.0**-6  # NumPy rounds on the way to some results of another dtype
    np.testing.assert_allclose(wide(own), wide(theirs), rtol=units, atol=units * np.abs(wide(theirs)).max())


@pytest.mark.parametrize("source", several(SUMS))
def test_sums_keep_single_precision_until_their_end(source: str):
    """ml_dtypes rounds each partial sum."""
    own, function = of(source)
    assert own.dtype == np.asarray(function(X, Y, W, V)).dtype
    exact = np.asarray(function(*(a.astype(float) for a in (X, Y, W, V))))
    np.testing.assert_allclose(wide(own), exact, rtol=2.0**-7, atol=2.0**-8 * np.abs(exact).max())


def test_a_thousand_ones():
    ones = np.ones(1000, bfloat16)
    assert tm.tensor(lambda x: x.sum())(ones) == 1000
    assert ones.sum() == 256


@pytest.mark.parametrize(
    "source",
    [
        "z = x * 2 + y",
        "z = x.copy()\nz[0] = 3\nz += 1\nz[1:3] = z[1:3] * 2\nz[:, 4] += x[:, 5]\nz[2] = 0.3",
        "z = x\nz = z * 2\nz = z.tolist()[0]",
        "z = np.zeros(3, bfloat16) + x[0, :3]",
        "z = x[0, 0]\nq = z * 2.5\nr = float(z)",
        "z = 0\nfor k in range(3):\n    z = z + x[k]",
        "z = [r.max() for r in x]",
        "z = x\nwhile z.max() < 100:\n    z = z * 2",
        "if x[0, 0] > 100:\n    z = x * 2\nelse:\n    z = x / 3",
        "z = np.array([1.5, 2], dtype=bfloat16)",
        "z = x.view(np.uint16)",
        "z = bfloat16(2.5) * x",
        "z = np.sort(x)",
        "z = v.copy()\nz[np.array([0, 0, 3])] = 2\nz[np.array([1, 4])] += 1",
        "z = v.copy()\nz[z > 0.3] = 0",
        "z = v.copy()\nnp.add.at(z, np.array([0, 5, 3]), v[:3])",
        "z = np.linalg.solve(np.eye(4, dtype=bfloat16), x[:4, :4])",
        "z = x.copy()\nz.sort(axis=0)",
        "z = x.astype('f4').sum()\nq = z.astype(bfloat16)",
    ],
)
def test_cells(source: str):
    ran, expected = captured(source, dict(NAMES)), plain(source, dict(NAMES))
    assert ran.error is None
    for name in ("z", "q", "r"):
        if name in expected.names:
            own, theirs = ran.names[name], expected.names[name]
            assert type(own) is type(theirs)
            assert getattr(own, "dtype", None) == getattr(theirs, "dtype", None)
            np.testing.assert_array_equal(wide(own), wide(theirs))


def test_compiled(tier: str):
    """The class is no state that a compiled function would have to watch."""

    def steps(x, y):
        z = x * 2 + y
        for _ in range(5):
            z = z * 2 - z / 3
        z = z.copy()
        z[1:3] = x[1:3]
        return (z.T[:, 1:] * 2.5).astype(bfloat16)

    found = tm.compile(steps, "bfloat16[n, m]", "bfloat16[n, m]")(X, Y)
    assert found.dtype == bfloat16
    np.testing.assert_array_equal(wide(found), wide(steps(X, Y)))


def test_derivatives():
    """They have the dtype of what they are by, and are computed in single precision: those of float32, rounded."""

    def loss(x):
        return (np.tanh(x @ W).astype(np.float32) ** 2).sum()

    found = tm.grad(loss)(X)
    assert found.dtype == bfloat16
    wider = tm.grad(lambda x: (np.tanh(x @ W.astype(np.float32)) ** 2).sum())(X.astype(np.float32))
    np.testing.assert_allclose(wide(found), wider, rtol=2.0**-6, atol=2.0**-7)
    np.testing.assert_array_equal(wide(tm.grad(lambda x: (x * x * 2).sum())(V)), wide(V * 4))
    places = np.zeros(1000, int)
    np.testing.assert_array_equal(wide(tm.grad(lambda x: x[places].sum())(V))[:2], [1000, 0])
    np.testing.assert_array_equal(wide(tm.vmap(lambda r: r * 2)(X)), wide(X * 2))


def test_what_numpy_refuses_is_refused_with_a_way_out():
    with pytest.raises(TypeError) as caught:
        of("np.einsum('ij,ij', x, y)")
    assert ".astype(np.float32)" in str(caught.value)
    with pytest.raises(TypeError, match="is not computed of bfloat16") as caught:
        tm.trace(lambda x: x.sort(), "bfloat16[n]")  # which NumPy sorts in place
    assert ".astype(np.float32)" in str(caught.value)


def test_a_type_as_text_and_a_graph_as_text():
    traced = tm.trace(lambda x: (x * 2, x.astype("f4")), "bfloat16[n]")
    assert "bfloat16[n0]" in str(traced)
    assert tm.parse(str(traced)).parameters[0].type.dtype == bfloat16
    assert dtype_of("bfloat16") == bfloat16
    names: dict = {}
    exec(numpy_source(tm.trace(lambda x: x * bfloat16(1.5), "bfloat16[n]")), names)
    (function,) = [v for v in names.values() if isinstance(v, FunctionType)]
    np.testing.assert_array_equal(wide(function(V)), wide(V * bfloat16(1.5)))


def test_values_are_pickled():
    value = tm.tensor(lambda x: x * 2)(V)
    np.testing.assert_array_equal(wide(pickle.loads(pickle.dumps(np.asarray(value)))), wide(V * 2))
