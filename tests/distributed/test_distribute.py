"""Functions over the workers of a Dask cluster: what is split, what comes back, and what is refused."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensormagic as tm

distributed = pytest.importorskip("distributed", reason="Dask is an optional extra of the package")
import dask.array as da  # noqa: E402  (after the check that it is there)

pytestmark = pytest.mark.usefixtures("by_numpy")

RNG = np.random.default_rng(3)
X, Y, W = RNG.normal(size=(50, 3)), RNG.normal(size=50), RNG.normal(size=3)


def loss(x, y, p):
    z = x @ p["w"] + p["b"]
    return np.mean(np.logaddexp(0, z) - y * z)


P = {"w": W, "b": 0.5}


def test_a_loss_and_its_gradient_over_all_kinds_of_chunks(client: Any, tmp_path: Path):
    value, slopes = tm.value_and_grad(loss, argnums=2)(X, Y, P)
    file = np.memmap(tmp_path / "x", dtype=float, mode="w+", shape=X.shape)
    file[:] = X
    f = tm.distribute(tm.value_and_grad(loss, argnums=2), client)
    batches = ((X[k : k + 13] for k in range(0, 50, 13)), (Y[k : k + 13] for k in range(0, 50, 13)))
    dask = da.from_array(X, chunks=((20, 0, 29, 1), 2)), da.from_array(Y, chunks=7)
    for x, y in [
        (tm.shard(X, rows=7), tm.shard(Y)),
        batches,
        dask,
        (file, tm.shard(Y)),
        (file[::-1][::-1], tm.shard(Y)),
    ]:
        found, slope = f(x, y, P)
        np.testing.assert_allclose(found, value, rtol=1e-13)
        np.testing.assert_allclose(slope["w"], slopes["w"], rtol=1e-12)
        np.testing.assert_allclose(slope["b"], slopes["b"], rtol=1e-12)


def test_rows_come_back_as_arrays_of_dask(client: Any):
    f = tm.distribute(lambda x, y: (np.exp(x), (x - x.mean(axis=0)).T * y, len(x), x.max()), client)
    rows, turned, count, largest = f(da.from_array(X, chunks=(20, 3)), tm.shard(Y))
    assert isinstance(rows, da.Array)
    assert (rows.chunks, turned.chunks) == (((20, 20, 10), (3,)), ((3,), (20, 20, 10)))
    np.testing.assert_array_equal(rows.compute(), np.exp(X))
    np.testing.assert_allclose(turned.compute(), (X - X.mean(axis=0)).T * Y, rtol=1e-13)
    assert (count, largest) == (50, X.max())


def test_a_shard_is_as_it_was_and_names_are_read_at_each_call(client: Any):
    own, scale = X.copy(), np.ones(3)
    kept = tm.shard(own, rows=9)
    f = tm.distribute(lambda x: (x * scale).sum(), client)
    first = f(kept)
    own[:] = 0
    assert f(kept) == first
    scale *= 2
    assert f(kept) == 2 * first


def test_what_is_refused(client: Any):
    with pytest.raises(tm.TensorError, match="none of the arguments is split"):
        tm.distribute(loss, client)(X, Y, P)
    with pytest.raises(tm.TensorError, match="have 49 and 50 rows"):
        tm.distribute(loss, client)(tm.shard(X), tm.shard(Y[1:]), P)
    with pytest.raises(tm.CaptureError, match="argument 2 is not split and has the length of what is split"):
        tm.distribute(loss, client)(tm.shard(X), Y, P)
    with pytest.raises(tm.CaptureError, match=r"test_distribute.py line \d+: sort runs along the rows"):
        tm.distribute(lambda x: np.sort(x, axis=0), client)(tm.shard(X))
    with pytest.raises(tm.TensorError, match="1 rows are not split"):
        tm.distribute(lambda x: x + 1, client).plan(tm.shard(X[:1]))
    with pytest.raises(tm.TensorError, match="is inside a container"):
        tm.distribute(loss, client)(tm.shard(X), tm.shard(Y), {"w": tm.shard(W), "b": 0.5})
    with pytest.raises(tm.DTypeError, match=r"datetime64\[s\] are not split"):
        tm.distribute(lambda x: x, client)(tm.shard(np.arange(4).astype("M8[s]")))
    with pytest.raises(tm.CaptureError, match=r"test_distribute.py line \d+: <lambda> stores into its argument w"):
        tm.distribute(lambda x, w: w.__setitem__(0, x.sum()), client)(tm.shard(X), W.copy())


def test_arguments_by_name(client: Any):
    given = {"y": tm.shard(Y), "p": P}
    wanted = tm.value_and_grad(loss, argnums=2)(X, Y, P)
    f, slope = tm.distribute(loss, client), tm.distribute(tm.value_and_grad(loss, argnums=2), client)
    np.testing.assert_allclose(f(tm.shard(X), **given), wanted[0], rtol=1e-13)
    np.testing.assert_allclose(slope(x=tm.shard(X), **given)[0], wanted[0], rtol=1e-13)
    assert f.plan(tm.shard(X), **given).rows == 50


def scaled(x, y, *, scale=1.0, p=None):
    shift = 0.0 if p is None else p["b"]
    return x * scale + y[:, None], (x * y[:, None]).sum() * scale + shift, np.diff(y)


def test_arguments_that_have_names_alone_and_any_number_of_rows(client: Any):
    f = tm.distribute(scaled, client)
    kinds = (tm.shard, lambda a: da.from_array(a, chunks=-1), lambda a: iter([a[:1], a[1:]]))
    for rows, kind, named in itertools.product((0, 1, 2, 50), kinds, ({}, {"scale": 2.5}, {"p": P, "scale": 3})):
        found = f(kind(X[:rows]), kind(Y[:rows]), **named)
        for one, expected in zip(found, scaled(X[:rows], Y[:rows], **named), strict=True):
            assert np.shape(one) == np.shape(expected)
            np.testing.assert_allclose(np.asarray(one), expected, rtol=1e-12)
        assert isinstance(found[0], da.Array)
        assert f.report is not None
        assert f.report.rows == rows
    weighted = tm.distribute(lambda x, *, weights: (x * weights[:, None]).sum(), client)
    assert weighted(tm.shard(X), weights=tm.shard(Y)) == pytest.approx((X * Y[:, None]).sum())
    with pytest.raises(ValueError, match="zero-size array"):
        tm.distribute(lambda x: x.max(), client)(tm.shard(X[:0]))


def test_errors_of_data_name_the_line_and_the_rows(client: Any, tier: str):

    def looked_up(k, w):
        a = k + 1
        return w[a], w[a].sum()

    def halved(k, w):
        return tm.fori_loop(0, 2, lambda i, c: w[k + i] + c, w[0] * k).sum()

    for function, line in ((looked_up, 2), (halved, 1)):
        with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3") as caught:
            tm.distribute(function, client)(tm.shard(np.arange(4), rows=2), W)
        (note,) = caught.value.__notes__
        where = function.__code__.co_firstlineno + line
        assert note == f"At test_distribute.py line {where}, in chunk 1, whose first row is row 2."


def test_errors_of_data_come_back(client: Any):
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
        tm.distribute(lambda k, w: w[k], client)(tm.shard(np.arange(4), rows=2), W)[0].compute()


def test_the_axis_of_a_shard_is_said_by_its_name_or_number():
    x = np.arange(12.0).reshape(6, 2)
    for made in (tm.shard(x, "batch"), tm.shard(x, 0), tm.shard(x, axis="batch", rows=2), tm.shard(x, rows=2)):
        assert repr(made) == "<shard: float64[6, 2]>"
    for axis in ("rows", 1, -2, True, None, 1000):
        with pytest.raises(tm.TensorError, match="only the leading axis is split"):
            tm.shard(x, axis)  # type: ignore[arg-type]
    with pytest.raises(tm.TensorError, match="a chunk of 0 rows"):
        tm.shard(x, "batch", rows=0)
