"""The functions of NumPy that are used most: creation, reductions, shapes, order, statistics, products, polynomials."""

from typing import Any

import numpy as np

from tests.namespace.cases import Case, over

RNG = np.random.default_rng(20)
HOLES = RNG.normal(size=(4, 3))
HOLES[[0, 2, 2], [1, 0, 2]] = np.nan
case = over(
    {
        "x": RNG.normal(size=7),
        "y": RNG.normal(size=7),
        "p": RNG.uniform(0.2, 0.9, 7),
        "s": 0.7,
        "A": RNG.normal(size=(4, 3)),
        "B": RNG.normal(size=(4, 3)),
        "S": RNG.normal(size=(3, 3)),
        "T": RNG.normal(size=(2, 3, 4)),
        "H": HOLES,
        "z": RNG.normal(size=5) + 1j * RNG.normal(size=5),
        "f": RNG.normal(size=6).astype(np.float32),
        "g": np.cumsum(RNG.uniform(0.2, 0.9, 7)),
        "i": RNG.integers(-9, 9, 7),
        "j": RNG.integers(0, 4, 7),
        "I": RNG.integers(0, 9, (4, 3)),
        "u": RNG.integers(0, 200, 6).astype(np.uint8),
        "m": RNG.normal(size=7) > 0,
        "M": RNG.normal(size=(4, 3)) > 0,
        "n": 3,
    }
)
INTEGERS, STEPS, NONE = "integers or truth values", "piecewise constant", "no float is read"
CASES: tuple[Case, ...] = ()


def table(function: str, *sources: str, **options: Any) -> None:
    """Add the cases of one function."""
    global CASES
    CASES += tuple(case(function, source, **options) for source in sources)


# creation -------------------------------------------------------------------------------------------------------------

table("np.zeros", "np.zeros((n, 2))", "np.zeros(4, dtype=int)", "np.zeros(A.shape, order='F')", constant=NONE)
table("np.ones", "np.ones(3)", "np.ones((2, n), np.float32)", constant=NONE)
table("np.ones", "np.ones(x.shape) * x")
table("np.empty", "np.empty((2, n)).shape", constant=NONE)
table("np.full", "np.full((2, 3), s)", "np.full(3, x[0] * 2)")
table("np.zeros_like", "np.zeros_like(x)", "np.zeros_like(i, dtype=float)", constant=NONE)
table("np.ones_like", "np.ones_like(A) * A")
table("np.full_like", "np.full_like(A, s)", "np.full_like(x, 2, dtype=int).sum() * s")
table("np.array", "np.array([s, 2 * s, 1])", "np.array([[x[0], 1], [2, x[1]]])", "np.array(x, ndmin=2)")
table("np.asarray", "np.asarray(x) * 2", "np.asarray([x, y])")
table("np.copy", "np.copy(A)", "np.copy(A, order='F')")
table("np.arange", "np.arange(7)", "np.arange(2, 9, 3)", "np.arange(0, 1, 0.25)", "np.arange(9, 0, -2)", constant=NONE)
table("np.arange", "np.arange(len(x)) * x")
table("np.linspace", "np.linspace(0, s, 5)", "np.linspace(x, 2 * y, 4)", "np.linspace(s, 2, 5, endpoint=False)")
table("np.linspace", "np.linspace(x, y, 4, retstep=True)", "np.linspace(A, B, 3, axis=1)")
table("np.logspace", "np.logspace(s, 2, 4)", "np.logspace(s, 1, 4, base=2, endpoint=False)")
table("np.geomspace", "np.geomspace(s, 8, 4)", close=1e-14)
table("np.eye", "np.eye(3) @ S", "np.eye(3, 4, k=1) * s", "np.eye(len(x), dtype=np.float32) * 2")
table("np.identity", "np.identity(3) - S")
table("np.meshgrid", "np.meshgrid(x, y[:3])", "np.meshgrid(x, y, indexing='ij')", "np.meshgrid(x, y, sparse=True)")
table("np.mgrid", "np.mgrid[0:3, 0:4]", "np.mgrid[0:1:5j, 0:2:3j]", "np.mgrid[0:3:0.5]", constant=NONE)
table("np.mgrid", "np.mgrid[0:len(x)] * x")
table("np.ogrid", "np.ogrid[0:4, 0:3][0] * A")
table("np.indices", "np.indices((4, 3)) * A", "np.indices((2, 3), sparse=True)[1] * s")
table("np.fromfunction", "np.fromfunction(lambda a, b: a * s + b, (2, 3))")
table("np.r_", "np.r_[x, 1, 2:5]", "np.r_[0:1:3j, y]", "np.r_['0,2', x, y]")
table("np.c_", "np.c_[x, y]", "np.c_[A, B]")
table("np.s_", "A[np.s_[1:, ::2]]")
table("np.ix_", "A[np.ix_([0, 2], [1, 0])]")

# indexing -------------------------------------------------------------------------------------------------------------

table("indexing", "x[2]", "x[1:5:2]", "x[::-1]", "A[1, :]", "A[:, -1]", "T[..., 0]", "x[:, None] * y", "A[1:, 1:] ** 2")
table("indexing", "x[[0, 2, 2]]", "A[[0, 1], [2, 0]]", "x[j]", "T[:, [0, 2]]", "A[I[:2, 0] % 4]")
table("stores", "v = x.copy()\nv[1:3] = y[:2]\nv * 2", "v = np.zeros(7)\nv[::2] = x[::2]\nv[1] += 3 * y[0]\nv")

# elements -------------------------------------------------------------------------------------------------------------

for name in (
    "exp",
    "sin",
    "cos",
    "tanh",
    "abs",
    "arctan",
    "sinh",
    "expm1",
    "square",
    "negative",
    "cbrt",
    "exp2",
    "rad2deg",
):
    table(f"np.{name}", f"np.{name}(x)")
for name in ("sqrt", "log", "log1p", "log2", "log10", "arcsin", "arccos", "tan", "reciprocal", "arctanh", "deg2rad"):
    table(f"np.{name}", f"np.{name}(p)")
for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum", "hypot", "arctan2", "logaddexp", "fmax"):
    table(f"np.{name}", f"np.{name}(A, B)")
table("np.power", "np.power(p, x)", "x ** 3", "p ** s", "2.0 ** x")
table("np.remainder", "np.remainder(x, p)", "x % 0.4")
table("np.floor_divide", "x // 0.4", "np.floor_divide(i, 4)", constant=STEPS)
table("np.sign", "np.sign(x)", constant=STEPS)
table("np.heaviside", "np.heaviside(x, 0.5)", constant=STEPS)
table("np.floor", "np.floor(x)", "np.ceil(A)", "np.trunc(A)", constant=STEPS)
table("np.round", "np.round(x, 2)", "np.around(A, 1)", "np.rint(x)", "np.round(i * 13, -1)", constant=STEPS)
table("np.fix", "np.fix(x * 3)", constant=STEPS)
table("np.modf", "np.modf(x)")
table("np.clip", "np.clip(x, -0.5, 0.5)", "np.clip(A, None, B)", "x.clip(min=s)")
table("np.clip", "np.clip(u, -1, 100)", "np.clip(u[:0], -1, 1)", constant=INTEGERS)
table("np.where", "np.where(x > 0, x, y)", "np.where(M, A, 0)", "np.where(m, s, x * 2)")
table("np.select", "np.select([x > 1, x < 0], [x, y], s)")
table("np.piecewise", "np.piecewise(x, [x < 0, x >= 0.5], [lambda v: v * 2, lambda v: v ** 2, 9])")
table(
    "np.choose",
    "np.choose(j, [x, y, x * y, 2 * x])",
    "np.choose(i, [x, y], mode='wrap')",
    "np.choose(i, [x, y], mode='clip')",
)
table("np.nan_to_num", "np.nan_to_num(H)", "np.nan_to_num(H, nan=2.0)", "v = H.copy()\nnp.nan_to_num(v, copy=False)\nv")
table("np.sinc", "np.sinc(x)", close=1e-15)
table("np.i0", "np.i0(x)", close=1e-15)
table("np.unwrap", "np.unwrap(x * 5)", "np.unwrap(A * 5, axis=0, discont=4)", "np.unwrap(x * 9, period=4)")
table("np.isclose", "np.isclose(x, y, atol=0.5)", "np.isclose(H, H, equal_nan=True)", constant=INTEGERS)
table("np.allclose", "np.allclose(x, x + 1e-9)", constant=INTEGERS)
table("np.array_equal", "np.array_equal(x, y)", "np.array_equal(H, H, equal_nan=True)", constant=INTEGERS)
for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
    table(f"np.{name}", f"np.{name}(i, j)", f"np.{name}(j, [1, 2])", constant=INTEGERS)
table("np.isin", "np.isin(i, j)", "np.isin(i, [1, 2], invert=True)", constant=INTEGERS)
table("np.isnan", "np.isnan(H)", "np.isfinite(H)", "np.isposinf(x)", constant=INTEGERS)
table("np.bitwise_and", "i & 3", "i | j", "i ^ 5", "~i", "j << 2", "i >> 1", constant=INTEGERS)
table("np.bitwise_count", "np.bitwise_count(i)", "np.bitwise_count(u)", constant=INTEGERS)
table("np.logical_and", "np.logical_and(m, x > 0)", "~m", "m ^ (x > 0)", constant=INTEGERS)

# reductions -----------------------------------------------------------------------------------------------------------

table("np.sum", "np.sum(x)", "A.sum(axis=0)", "np.sum(T, axis=(0, 2), keepdims=True)", "np.sum(A, axis=1, where=M)")
table("np.sum", "np.sum(x, initial=s)", "np.sum(f, dtype=np.float64) * s", "np.sum(s, axis=0)")
table("np.sum", "np.sum(u)", "np.sum(M, axis=0)", constant=INTEGERS)
table("np.prod", "np.prod(x)", "np.prod(A, axis=1, keepdims=True)", "np.prod(A, axis=0, where=M, initial=2.0)")
table(
    "np.mean",
    "np.mean(x)",
    "A.mean(axis=-1)",
    "np.mean(T, axis=(0, 1), keepdims=True)",
    "np.mean(A, axis=1, where=M | True)",
)
table(
    "np.var",
    "np.var(x)",
    "np.var(A, axis=0, ddof=1)",
    "np.var(T, axis=(0, 2))",
    "np.var(A, where=M)",
    "np.var(z)",
    close=1e-15,
)
table("np.std", "np.std(x)", "np.std(T, axis=(1, 2), keepdims=True)", "np.std(A, axis=1, correction=1)")
table("np.max", "np.max(x)", "A.max(axis=0)", "np.max(T, axis=(0, 2))", "np.max(A, axis=1, where=M, initial=-9.0)")
table("np.min", "np.min(x)", "np.min(A, axis=1, keepdims=True)", "np.min(A, initial=0.1)")
table("np.argmax", "np.argmax(x)", "np.argmax(A, axis=1)", "np.argmax(A, axis=0, keepdims=True)", constant=INTEGERS)
table("np.argmin", "np.argmin(A)", "np.argmin(s, axis=0)", constant=INTEGERS)
table("np.any", "np.any(A > 1, axis=0)", "np.any(m)", constant=INTEGERS)
table("np.all", "np.all(A > -1, axis=1)", "np.all(M, where=M)", constant=INTEGERS)
table("np.count_nonzero", "np.count_nonzero(I % 2, axis=0)", "np.count_nonzero(m)", constant=INTEGERS)
table("np.ptp", "np.ptp(x)", "np.ptp(A, axis=0)")
table("np.cumsum", "np.cumsum(x)", "np.cumsum(A, axis=0)", "A.cumsum()")
table("np.cumprod", "np.cumprod(x)", "np.cumprod(A, axis=1)")
table("np.cumulative_sum", "np.cumulative_sum(x, include_initial=True)")
table("np.add.reduce", "np.add.reduce(A)", "np.multiply.reduce(A, axis=1)", "np.logaddexp.reduce(x)", close=1e-15)
table("np.add.reduce", "np.subtract.reduce(A, axis=1)", "np.hypot.reduce(A, axis=1)")
table("np.bitwise_or.reduce", "np.bitwise_or.reduce(i)", "np.logical_xor.reduce(m)", constant=INTEGERS)
table("np.maximum.accumulate", "np.maximum.accumulate(x)", "np.minimum.accumulate(A, axis=1)")
table("np.add.accumulate", "np.add.accumulate(A)", "np.subtract.accumulate(A, axis=1)")
table("np.add.reduceat", "np.add.reduceat(x, [0, 3, 1, 5])", "np.maximum.reduceat(A, [0, 2], axis=0)", close=1e-15)
table("np.multiply.outer", "np.multiply.outer(x, A)", "np.subtract.outer(x, y)")

# without nan ----------------------------------------------------------------------------------------------------------

table("np.nansum", "np.nansum(H)", "np.nansum(H, axis=0)")
table("np.nanprod", "np.nanprod(H, axis=1)")
table("np.nanmean", "np.nanmean(H)", "np.nanmean(H, axis=1, keepdims=True)")
table("np.nanvar", "np.nanvar(H, axis=1)", "np.nanvar(H, ddof=1)")
table("np.nanstd", "np.nanstd(H, axis=0)")
table("np.nanmax", "np.nanmax(H)", "np.nanmin(H, axis=0)")
table("np.nanargmax", "np.nanargmax(H, axis=1)", "np.nanargmin(H)", constant=INTEGERS)
table("np.nancumsum", "np.nancumsum(H, axis=0)", "np.nancumprod(H)")
table("np.nanmedian", "np.nanmedian(H)", "np.nanmedian(H, axis=0)")
table("np.nanpercentile", "np.nanpercentile(H, 30, axis=1)", "np.nanquantile(H, [0.1, 0.6], axis=0)")

# order and statistics -------------------------------------------------------------------------------------------------

table("np.sort", "np.sort(x)", "np.sort(A, axis=0)", "np.sort(A, axis=None)", "np.sort(x)[::-1]")
table("np.argsort", "np.argsort(x)", "np.argsort(A, axis=0, kind='stable')", constant=INTEGERS)
table("np.argsort", "x[np.argsort(y)]")
table("np.lexsort", "np.lexsort((x, j))", constant=INTEGERS)
table("np.partition", "np.sort(np.partition(x, 3)[:4])")
table("np.searchsorted", "np.searchsorted(g, A)", "np.searchsorted(g, s, side='right')", constant=INTEGERS)
table("np.digitize", "np.digitize(x, [-0.5, 0, 0.5])", "np.digitize(x, g[::-1], right=True)", constant=INTEGERS)
table("np.bincount", "np.bincount(j)", "np.bincount(j, minlength=9)", constant=INTEGERS)
table("np.bincount", "np.bincount(j, weights=x)")
table("np.histogram", "np.histogram(x)[0]", "np.histogram(x, [-1, 0, 1])[0]", constant=INTEGERS)
table("np.histogram", "np.histogram(x, 4, weights=y)", "np.histogram(x, 5, range=(-1, 1), weights=y, density=True)")
table("np.histogram", "np.histogram(A, bins=[-1, 0, 0.5, 2], weights=B)")
table("np.histogram2d", "np.histogram2d(x, y, bins=3)", "np.histogram2d(x, y, [[-1, 0, 1], [0, 1]], weights=p)")
table("np.median", "np.median(x)", "np.median(A, axis=0)", "np.median(T, axis=(0, 2), keepdims=True)")
table(
    "np.percentile", "np.percentile(x, 30)", "np.percentile(A, [10, 50], axis=0)", "np.percentile(T, 25, axis=(0, 1))"
)
for method in ("inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen",
               "weibull", "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint", "nearest"):  # fmt: skip
    table("np.quantile", f"np.quantile(A, [0.1, 0.45], axis=0, method={method!r})")
table("np.quantile", "np.quantile(x, 0.3, weights=p, method='inverted_cdf')")
table("np.quantile", "np.quantile(A, [0.3, 0.8], axis=1, weights=p[:3], method='inverted_cdf')")
table("np.quantile", "np.quantile(x, s)", "np.quantile(A, 0.3, axis=1, keepdims=True)")
table(
    "np.average",
    "np.average(A)",
    "np.average(A, axis=0, weights=p[:4])",
    "np.average(A, weights=B ** 2, returned=True)",
)
table("np.cov", "np.cov(A)", "np.cov(x, y)", "np.cov(A, rowvar=False, ddof=0)", close=1e-15)
table("np.cov", "np.cov(x, aweights=p, fweights=j + 1)", close=1e-14)
table("np.corrcoef", "np.corrcoef(A.T)", "np.corrcoef(x, y)[0, 1]", close=1e-14)

# by indices -----------------------------------------------------------------------------------------------------------

table("np.take", "np.take(x, j)", "np.take(A, [0, 2], axis=1)", "A.take([9, -9], axis=0, mode='clip')")
table("np.take_along_axis", "np.take_along_axis(A, np.argsort(B, axis=0), axis=0)")
table("np.put_along_axis", "v = A.copy()\nnp.put_along_axis(v, np.argmax(B, axis=0)[None], s, axis=0)\nv")
table(
    "np.unravel_index",
    "np.unravel_index(np.argmax(A), A.shape)",
    "np.unravel_index(j, (2, 4), order='F')",
    constant=INTEGERS,
)
table("np.ravel_multi_index", "np.ravel_multi_index((j, j), (4, 5))", constant=INTEGERS)
table("np.ravel_multi_index", "np.ravel_multi_index((i, j), (4, 5), mode=('wrap', 'clip'))", constant=INTEGERS)

# shapes ---------------------------------------------------------------------------------------------------------------

table(
    "np.reshape", "np.reshape(A, (2, 6))", "A.reshape(-1)", "A.reshape(2, -1, order='F')", "np.reshape(T, (4, -1)) ** 2"
)
table("np.ravel", "np.ravel(A)", "A.ravel(order='F')", "A.T.ravel()")
table("np.transpose", "A.T", "np.transpose(T, (2, 0, 1))", "T.swapaxes(0, 2)", "np.moveaxis(T, 0, -1)")
table("np.squeeze", "np.squeeze(x[None, :, None])", "np.expand_dims(A, (0, 2))", "np.atleast_2d(x)")
table("np.broadcast_to", "np.broadcast_to(x, (3, 7))", "np.broadcast_arrays(x, y[:, None])")
table("np.concatenate", "np.concatenate([x, y])", "np.concatenate([A, B], axis=1)", "np.concatenate([A, B], axis=None)")
table("np.stack", "np.stack([x, y])", "np.stack([A, B], axis=-1)")
table("np.vstack", "np.vstack([x, y])", "np.hstack([A, B])", "np.dstack([A, B])", "np.column_stack([x, y])")
table("np.block", "np.block([[A, B], [B, A]])", "np.block([x, 1])")
table("np.append", "np.append(x, s)", "np.append(A, B, axis=0)")
table(
    "np.split", "np.split(A, 2)", "np.split(x, [2, 5])", "np.array_split(x, 3)", "np.hsplit(A, 3)", "np.vsplit(A, [1])"
)
table("np.insert", "np.insert(x, 2, s)", "np.insert(A, [1, 3], y[:3], axis=0)", "np.insert(x, [1, 1, 4], y[:3])")
table("np.delete", "np.delete(x, 2)", "np.delete(A, [0, -1], axis=0)", "np.delete(x, np.argmax(y))")
table("np.flip", "np.flip(x)", "np.flip(T, (0, 2))", "np.flipud(A)", "np.fliplr(A)")
table("np.rot90", "np.rot90(A)", "np.rot90(T, 3, axes=(1, 2))")
table("np.roll", "np.roll(x, 2)", "np.roll(A, (1, -1), axis=(0, 1))", "np.roll(x, np.argmax(y))")
table("np.tile", "np.tile(x, 2)", "np.tile(A, (2, 1, 2))")
table("np.repeat", "np.repeat(x, 2)", "np.repeat(A, 3, axis=1)", "np.repeat(A, [1, 0, 2, 3], axis=0)")
table("np.resize", "np.resize(x, (3, 4))")
table("np.tri", "np.tri(4, 3, 1) * A", "np.tril(S)", "np.triu(T, -1)", "np.tril(x, k=1)")
table("np.tril_indices", "S[np.tril_indices(3)]", "A[np.triu_indices_from(A, 1)]")
table("np.diag", "np.diag(x)", "np.diag(S)", "np.diag(x, -2)", "np.diag(A, 1)", "np.diagflat(A)")
table("np.diagonal", "np.diagonal(S)", "T.diagonal(1, axis1=1, axis2=2)")
table("np.trace", "np.trace(S)", "np.trace(T, offset=1, axis1=1, axis2=2)")
table("np.vander", "np.vander(x, 3)", "np.vander(p, increasing=True)")
for mode in ("constant", "edge", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect", "symmetric", "wrap"):
    table(
        "np.pad", f"np.pad(A, ((1, 2), (0, 2)), mode={mode!r})", close=1e-15 if mode in {"mean", "linear_ramp"} else 0.0
    )
table("np.pad", "np.pad(x, (2, 1), constant_values=(s, 1))", "np.pad(A, 2, 'reflect', reflect_type='odd')")
table("np.pad", "np.pad(x, 17, 'wrap')", "np.pad(A, 2, 'mean', stat_length=2)")

# sampled functions ----------------------------------------------------------------------------------------------------

table("np.diff", "np.diff(x)", "np.diff(A, 2, axis=0)", "np.diff(x, prepend=s, append=[1, 2])")
table("np.ediff1d", "np.ediff1d(A, to_end=[1.0], to_begin=s)")
table(
    "np.gradient", "np.gradient(x)", "np.gradient(x, g)", "np.gradient(A, 0.5, p[0])", "np.gradient(x, s, edge_order=2)"
)
table("np.gradient", "np.gradient(x, g, edge_order=2)", "np.gradient(A, axis=0)")
table("np.trapezoid", "np.trapezoid(x)", "np.trapezoid(x, g)", "np.trapezoid(A, dx=0.1, axis=0)")
table("np.interp", "np.interp(s, g, x)", "np.interp(A, g, x, left=-1)", "np.interp(x, p, y, period=2.0)", close=1e-15)
for mode in ("full", "same", "valid"):
    table("np.convolve", f"np.convolve(x, p[:3], {mode!r})")
    table("np.correlate", f"np.correlate(x[:4], y, {mode!r})", close=1e-15)

WINDOWS = "np.lib.stride_tricks.sliding_window_view"
table(WINDOWS, f"{WINDOWS}(x, 3).mean(-1)", f"{WINDOWS}(A, (2, 2))", f"{WINDOWS}(T, (1, 2), axis=(0, 2))")
table(WINDOWS, f"{WINDOWS}(A, (2, 2), axis=(0, 0))")

# products -------------------------------------------------------------------------------------------------------------

table("np.dot", "np.dot(x, y)", "np.dot(A, S)", "np.dot(S, x[:3])", "x @ y", "A @ S")
table("np.dot", "np.dot(T, A)", close=1e-15)
table("np.tensordot", "np.tensordot(T, A, axes=([2], [0]))", "np.tensordot(A, B)")
table("np.einsum", "np.einsum('ij,ij->i', A, B)", "np.einsum('ijk,kl', T, A)", close=1e-15)
table("np.kron", "np.kron(A, x[:2])")
table("np.outer", "np.outer(x, y)")
table("np.inner", "np.inner(A, B)")
table("np.vdot", "np.vdot(x, y)", "np.vdot(z, z * 2)")
table("np.cross", "np.cross(A, B)")

# polynomials ----------------------------------------------------------------------------------------------------------

table(
    "np.polyfit",
    "np.polyfit(x, y, 2)",
    "np.polyfit(x, y, 1, w=p)",
    "np.polyfit(x, np.stack([x, y]).T ** 2, 1)",
    close=1e-12,
)
table("np.polyfit", "np.polyfit(x, y, 1, cov=True)", close=1e-12)
table("np.polyval", "np.polyval(y[:4], x)", "np.polyval([1, 2, 3], A)")
table("np.polyder", "np.polyder(x)", "np.polyder(x, 2)")
table("np.polyint", "np.polyint(x)", "np.polyint(x, 2, k=[1.0, s])")
table("np.polyadd", "np.polyadd(x, y[:3])", "np.polysub(y[:3], x)", "np.polymul(x, y[:3])")
table("np.poly", "np.poly(x)", close=1e-15)

# again and again ------------------------------------------------------------------------------------------------------

table("np.apply_along_axis", "np.apply_along_axis(lambda v: v * v.sum(), 1, A)", "np.apply_along_axis(np.max, 0, T)")
table("np.apply_over_axes", "np.apply_over_axes(np.sum, T, [0, 2])")
table("np.vectorize", "np.vectorize(lambda a, b: a * b + 1)(x, s)", "np.vectorize(lambda a: a * 2, otypes=[float])(A)")

# sizes that depend on data --------------------------------------------------------------------------------------------

table("np.repeat", "np.repeat(x, j)", "np.repeat(A, j[:4], axis=0)")
table("np.delete", "np.delete(x, j)", "np.delete(A, m[:4], axis=0)")

# refused --------------------------------------------------------------------------------------------------------------

table("np.pad", "np.pad(x, 1, mode=lambda *a: None)", refused="np.pad with a function as its mode")
table("np.polyfit", "np.polyfit(x, y, 1, full=True)", refused="np.polyfit with full=True")
table("np.r_", "np.r_['r', x, y]", refused="which makes an np.matrix")
table("np.vectorize", "np.vectorize(np.sum, signature='(n)->()')(A)", refused="np.vectorize with a signature")
table("np.geomspace", "np.geomspace(z[0], 8, 4)", refused="np.geomspace between complex numbers")
table("np.bitwise_or.reduce", "np.bitwise_or.reduceat(i, [0, 2])", refused="np.bitwise_or.reduceat")
table("np.mgrid", "np.mgrid[0:s]", refused="a grid whose ends depend on data")
