"""Calls of the device's library on matrices and rows: products, linear algebra, transforms."""

from __future__ import annotations

import numpy as np

from tensormagic.backend.cuda.library_call import Call, call
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

_INEXACT = frozenset("fc")


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
    """Of the lower triangle; an upper factor is the adjoint of that of the adjoint."""
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
