"""Calls of the device's library on matrices and rows: products, linear algebra, transforms."""

from __future__ import annotations

import math

import numpy as np

from tensormagic.backend.cuda.device import DeviceArray
from tensormagic.backend.cuda.library.call import Call, call
from tensormagic.ops.contract import split
from tensormagic.ops.op import Value

# products -------------------------------------------------------------------------------------------------------------


@call("contract")
def _contract(c: Call) -> Value:
    x, y = c.array(0), c.array(1)
    (a, b), out = split(c.node["subscripts"])
    if 1 <= len(a) <= 2 and 1 <= len(b) <= 2 and a[-1] == b[0] and a[:-1] + b[1:] == out:
        return c.xp.matmul(x, y)
    return c.xp.einsum(c.node["subscripts"], x, y)


@call("gram")
def _gram(c: Call) -> Value:
    x = c.array(0)
    return c.xp.matmul(c.xp.swapaxes(x, -1, -2), x)


# linear algebra and transforms ----------------------------------------------------------------------------------------


def _lin(c: Call, *options: str) -> Value:
    given = {name: c.node[name] for name in options if name in c.node.params}
    return getattr(c.xp.linalg, c.node.op.name)(*[c.array(k) for k in range(len(c.values))], **given)


call("inv", "det")(_lin)
call("slogdet")(lambda c: tuple(_lin(c)))
call("eigvalsh")(lambda c: _lin(c, "UPLO"))
call("eigh")(lambda c: tuple(_lin(c, "UPLO")))
call("svd")(lambda c: tuple(_lin(c, "full_matrices")))
call("svdvals")(lambda c: c.xp.linalg.svd(c.array(0), compute_uv=False))
call("qr")(lambda c: tuple(_lin(c, "mode")))


@call("cholesky")
def _cholesky(c: Call) -> Value:
    """Return the lower factor, or the upper one, which is the adjoint of the lower factor of the adjoint."""
    x = c.array(0)
    if not c.node.params.get("upper"):
        return c.xp.linalg.cholesky(x)
    factor = c.xp.linalg.cholesky(c.xp.conjugate(c.xp.swapaxes(x, -1, -2)))
    return c.xp.conjugate(c.xp.swapaxes(factor, -1, -2))


@call("solve")
def _solve(c: Call) -> Value:
    a, b = c.array(0), c.array(1)
    if b.ndim > 1:
        return c.xp.linalg.solve(a, b)
    found = c.xp.linalg.solve(a, c.xp.broadcast_to(c.xp.reshape(b, (-1, 1)), (*a.shape[:-2], b.shape[0], 1)))
    return found[..., 0]


@call("solve_triangular")
def _solve_triangular(c: Call) -> Value:
    """Solve with the triangle alone as a general system; a zero on its diagonal raises SciPy's error."""
    xp, a, b = c.xp, c.array(0), c.array(1)
    count = a.shape[-1]
    rows = xp.reshape(xp.arange(count), (count, 1))
    inside = rows >= xp.arange(count) if c.node["lower"] else rows <= xp.arange(count)
    triangle = xp.where(inside, a, a.dtype.type(0))
    own = xp.equal(rows, xp.arange(count))
    if c.node["unit_diagonal"]:
        triangle = xp.where(own, a.dtype.type(1), triangle)
    singular = xp.logical_and(xp.equal(triangle, 0), own)

    def raises() -> None:
        c.node.op.numpy(c.device.fetch(a), c.device.fetch(b), c.node["lower"], c.node["unit_diagonal"])

    if b.size:
        c.fails(xp.any(singular), raises)
    return xp.linalg.solve(xp.where(singular, a.dtype.type(1), triangle), b)


def _adjoint(c: Call, x: DeviceArray) -> DeviceArray:
    return c.xp.conjugate(c.xp.swapaxes(x, -1, -2))


def _inverses(c: Call, s: DeviceArray, bound: float) -> DeviceArray:
    """Return the reciprocals of singular values, with 0 for those below a fraction of the largest."""
    xp = c.xp
    large = s > xp.max(s, axis=-1, keepdims=True) * s.dtype.type(bound)
    return xp.where(large, s.dtype.type(1) / xp.where(large, s, s.dtype.type(1)), s.dtype.type(0))


def _bound(c: Call, usual: float) -> float:
    rcond, x = c.node["rcond"], c.array(0)
    size = float(np.finfo(x.dtype).eps) * max(x.shape[-2:])
    return usual if rcond is None else size if isinstance(rcond, str) else rcond


@call("pinv")
def _pinv(c: Call) -> Value:
    x = c.array(0)
    if not x.size:
        return c.xp.zeros((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)
    u, s, vh = c.xp.linalg.svd(x, full_matrices=False)
    scaled = c.xp.expand_dims(_inverses(c, s, _bound(c, 1e-15)), -1) * _adjoint(c, u)
    return c.xp.matmul(_adjoint(c, vh), scaled)


@call("lstsq")
def _lstsq(c: Call) -> Value:
    x, b = c.array(0), c.array(1)
    if not x.size or not b.size:
        return c.xp.zeros((*x.shape[:-2], x.shape[-1], b.shape[-1]), x.dtype)
    u, s, vh = c.xp.linalg.svd(x, full_matrices=False)
    inverses = _inverses(c, s, _bound(c, float(np.finfo(x.dtype).eps) * max(x.shape[-2:])))
    return c.xp.matmul(_adjoint(c, vh), c.xp.expand_dims(inverses, -1) * c.xp.matmul(_adjoint(c, u), b))


@call("convolve")
def _convolve(c: Call) -> Value:
    xp, a, v = c.xp, c.array(0), c.array(1)
    if a.ndim == 1:
        return xp.convolve(a, v)
    lead, extent = a.shape[:-1], a.shape[-1] + v.shape[-1] - 1
    count = math.prod(lead)
    rows = zip(xp.reshape(a, (count, a.shape[-1])), xp.reshape(v, (count, v.shape[-1])), strict=True)
    found = [xp.convolve(x, y) for x, y in rows]
    return xp.reshape(xp.stack(found), (*lead, extent)) if found else xp.zeros((*lead, extent), a.dtype)


@call("fft", "ifft", "rfft", "irfft")
def _fft(c: Call) -> Value:
    function = getattr(c.xp.fft, c.node.op.name)
    return function(c.array(0), n=c.size(c.node["n"]), axis=c.node["axis"], norm=c.node.params.get("norm"))


@call("resolved")
def _resolved(c: Call) -> Value:
    xp, differences, values = c.xp, c.array(0), c.array(1)
    if not values.size:
        return differences
    bound = xp.max(xp.absolute(values), axis=-1) * values.dtype.type(values.shape[-1] * np.finfo(values.dtype).eps)
    bound = xp.reshape(bound, (*bound.shape, *[1] * (differences.ndim - bound.ndim)))
    return xp.where(xp.absolute(differences) <= bound, differences.dtype.type(0), differences)


@call("over_gaps")
def _over_gaps(c: Call) -> Value:
    xp, x, gaps = c.xp, c.array(0), c.array(1)
    zero = xp.equal(gaps, 0)

    def raises() -> None:
        c.node.op.numpy(np.ones(1), np.zeros(1), c.node["what"])

    c.fails(xp.any(xp.logical_and(zero, xp.not_equal(x, 0))), raises)
    return xp.where(zero, x.dtype.type(0), x / xp.where(zero, gaps.dtype.type(1), gaps))
