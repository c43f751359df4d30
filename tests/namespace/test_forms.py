"""What NumPy gives as a number and what as an array without axes, and what of a result is the argument's own memory."""

from __future__ import annotations

import numpy as np
import pytest

from tensormagic.ir.errors import CaptureError
from tests.capture.harness import check

OF_NUMBERS = """
v.reshape(()); v.reshape(1); v.T; v.ravel(); v.flatten(); v.squeeze(); v.transpose(); v.copy(); v.astype(int); v.real;
v.conj(); v.sum(); v.clip(0,1); v.round(); v[()]; v[...]; v.cumsum(); v.repeat(1); v.view(); v.take(0); v.max(); v.argmax();
v.any(); v.mean(); v.prod(); v.reshape(-1); np.atleast_1d(v); np.asarray(v); np.flip(v); np.transpose(v); np.squeeze(v);
np.copy(v); np.broadcast_to(v,()); np.expand_dims(v,0); np.real(v); np.roll(v,1); np.where(True,v,v); np.clip(v,0,1);
np.take(v,0); np.cumsum(v); np.full_like(v,1); np.zeros_like(v); np.negative(v); np.add.outer(v,v); np.tensordot(v,v,0);
np.outer(v,v); np.kron(v,v); np.einsum('->',v); np.dot(v,v); np.nan_to_num(v); np.around(v); np.angle(v); np.sum(v);
np.abs(v); np.ravel(v); np.vdot(v,v); np.inner(v,v); np.median(v); np.quantile(v,.5); np.fix(v); np.sign(v);
np.select([True],[v]); np.sinc(v); np.tile(v,()); np.tile(v,2); np.repeat(v,1); np.stack([v]); np.hstack([v]);
np.append(v,v); np.nansum(v); np.heaviside(v,1); np.std(v); np.ptp(v); np.isclose(v,v); np.digitize(v,[0,1]);
np.searchsorted([0,1],v); np.copysign(v,1); np.modf(v)[0]; np.divmod(v,1)[0]; np.astype(v,int); np.average(v);
np.count_nonzero(v); np.argmin(v); np.polyval([1,2],v); np.power(v,2); np.broadcast_arrays(v,v)[0]; np.meshgrid(v,v)[0];
np.ascontiguousarray(v); np.linalg.norm(v); np.atleast_2d(v); np.min(v,axis=()); np.sum(v,axis=()); np.max(v,keepdims=True);
np.extract([True],v); np.convolve(v,v); np.nanmax(v); np.diff(np.stack([v,v])); np.imag(v); np.conj(v); np.unique(v);
np.sort(v,axis=None); np.argsort(v,axis=None); np.allclose(v,v); np.array_equal(v,v); np.ndim(v); np.shape(v); np.size(v);
len(np.shape(v)); np.cumprod(v); np.prod(v,keepdims=True); np.any(v,keepdims=True); np.isscalar(v); np.var(v);
np.percentile(v,[50]); np.nanmean(v); np.maximum(v,v); np.linspace(v,v,2); np.full(2,v); np.full((),v); np.zeros(());
np.ones(()); np.array(v); np.array(v,ndmin=1); np.trunc(v); np.bincount(np.astype(np.stack([v]),int));
np.lexsort((np.stack([v]),)); np.insert(np.stack([v]),0,v);
np.delete(np.stack([v,v]),0); np.resize(v,2); np.ravel(v)[0]; v+np.array(v); np.array(v)+1; np.array(v)[()];
np.array(v)[...]; np.array(v).T; np.array(v).copy(); -np.array(v); np.array(v).reshape(()); np.array(v).sum();
np.array(v).astype(int); np.array(v).squeeze(); np.array(v).ravel(); np.reshape(np.array(v),()); np.where(np.array(v)>0,1,v);
np.clip(np.array(v),0,1); np.array(v).round(); np.array(v).real; np.array(v).conj(); np.conj(np.array(v));
np.real(np.array(v)); np.transpose(np.array(v)); np.array(v).view(); np.squeeze(np.array(v)); np.array(v).clip(0,1);
np.abs(np.array(v)); np.around(np.array(v)); np.nan_to_num(np.array(v)); np.take(np.array(v),0); np.array(v).flatten();
np.asarray(np.array(v)); np.copy(np.array(v)); np.array(v)*v; np.dot(np.array(v),np.array(v)); np.array(v).cumsum();
np.array(v).max(keepdims=True); np.stack([np.array(v)]); np.flip(np.array(v)); np.roll(np.array(v),1); np.fix(np.array(v));
np.sinc(np.array(v)); np.sign(np.array(v)); np.angle(np.array(v)); np.interp(np.array(v),[0,1],[0,1]);
np.polyval([1,2],np.array(v)); np.median(np.array(v)); np.linalg.norm(np.array(v)); np.searchsorted([0,1],np.array(v));
np.digitize(np.array(v),[0,1]); np.heaviside(np.array(v),1); np.select([True],[np.array(v)]); np.isclose(np.array(v),1);
np.full_like(np.array(v),2); np.einsum('->',np.array(v)); np.kron(np.array(v),v); np.tensordot(np.array(v),v,0);
np.astype(np.array(v),int); np.broadcast_to(np.array(v),()); np.tile(np.array(v),()); np.where(v>0,v,1);
np.where(v>0,np.array(v),v)
"""

OF_ARRAYS = """
x.conj(); x.real; x.imag; np.real(x); np.imag(x); np.conj(x); x.T; x.mT; x.squeeze(); np.squeeze(x); x.ravel(); np.ravel(x);
x.reshape(-1); x.reshape(3,2); np.reshape(x,(3,2)); x.view(); x.transpose(); np.transpose(x); x.swapaxes(0,1);
np.moveaxis(x,0,1); np.rollaxis(x,1); x[None]; x[...]; x[:]; np.expand_dims(x,0); np.atleast_1d(x); np.atleast_2d(x);
np.atleast_3d(x); np.asarray(x); np.asanyarray(x); np.ascontiguousarray(x); np.array(x,copy=False); np.array(x,copy=None);
np.array(x); np.copy(x); np.flip(x); np.flip(x,0); np.fliplr(x); np.flipud(x); np.rot90(x); np.diagonal(x).copy();
np.split(x,2)[0]; np.array_split(x,2)[1]; np.hsplit(x,3)[1]; np.vsplit(x,2)[1]; np.real_if_close(x);
np.nan_to_num(x,copy=False); np.nan_to_num(x); np.asfortranarray(x); np.matrix_transpose(x); np.permute_dims(x,(1,0));
np.linalg.matrix_transpose(x); np.unstack(x)[0]; x.astype(x.dtype,copy=False); x.astype(x.dtype);
np.astype(x,x.dtype,copy=False); np.broadcast_arrays(x,x)[0]; np.meshgrid(x[0],x[0])[0]; np.tril(x); np.roll(x,0);
np.sort(x); np.unwrap(x); x.flatten(); np.delete(x,[],0); np.insert(x,[],0,0); np.append(x,[]); np.concatenate([x]);
np.stack([x])[0]; np.hstack([x]); np.vstack([x]); np.resize(x,x.shape); np.tile(x,1); np.repeat(x,1,axis=0);
np.take(x,[0],axis=0); x[[0]]; x[x>-9]; x[True]; np.where(True,x,x); np.choose(0,[x,x]); np.around(x); np.round(x,1);
x.round(); np.fix(x); np.trunc(x); np.floor(x); +x; np.positive(x); np.abs(x); np.einsum('ij->ji',x); np.einsum('ij',x);
np.einsum('ii->i',x[:,:2]); np.lib.stride_tricks.sliding_window_view(x,(1,1)).copy(); x.take([0]); x.repeat(1);
x.clip(-99,99); x.cumsum(0); x.sum(axis=()); x.max(axis=()); x.min(axis=()); np.sum(x,axis=()); np.max(x,axis=());
np.prod(x,axis=()); np.mean(x,axis=()); np.ediff1d(x); np.diff(x,0); np.diff(x,n=0); np.nanmax(x,axis=()); np.pad(x,0);
np.maximum(x,x); np.block(x); np.block([x]); np.dstack([x]); np.column_stack([x]);
np.array([x])[0]; np.array(list(x)); np.gradient(x)[0]; np.cov(x); np.fft.fftshift(x); np.fft.ifftshift(x);
np.piecewise(x,[x>9],[1]); np.extract(x>-9,x); np.compress([True],x,axis=0); np.unique(x); next(iter(x)); list(x)[0];
[r for r in x][1]; [*x][0]; x.copy(); np.triu(x,-9); np.nanmin(x,axis=()); np.i0(x); np.hypot(x,0);
np.broadcast_to(x,x.shape).copy(); x.T.T; x.swapaxes(0,0); np.transpose(x,(0,1)); np.squeeze(x[None]); x.reshape(x.shape);
np.reshape(x,x.shape,copy=True); x.reshape(2,3,1); x.ravel('F'); x.flatten('F'); x.reshape(-1,order='F'); x.T.ravel();
x.T.reshape(-1); x[::-1].ravel(); x[:,:1].ravel(); x[:1].ravel(); x[:,1:].reshape(-1); x[1].reshape(3,1); np.ravel(x,'K');
x.T.ravel('K'); x.ravel('A'); x.T.ravel('A'); x.T.copy(); x.T.flatten(); np.atleast_1d(x[0])
"""
STORES = ("w[...] += 1", "w *= 2; q = x + 1", "x[0] = 7", "w.sort(); x[0, 0] = 5")


def split(table: str) -> list[str]:
    """The expressions of a table."""
    return [e for e in table.replace(";\n", "; ").strip().split("; ") if e]


@pytest.mark.share(3)
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "c16", "?"])
@pytest.mark.parametrize("made", ["z[0]", "z.sum()", "z[k[0]]"])
def test_numbers_and_arrays_without_axes(made: str, dtype: str):
    """Each has the type that NumPy's has."""
    wrong: list[str] = []
    for expression in split(OF_NUMBERS):
        try:
            check(f"v = {made}\nr = {expression}", z=np.array([1, 0, 3], dtype), k=np.array([2]))
        except AssertionError as error:
            wrong.append(f"{expression}: {str(error).splitlines()[0]}")
        except CaptureError:
            if dtype != "c16":  # no order
                raise
    assert not wrong


@pytest.mark.share(3)
@pytest.mark.parametrize("dtype", ["f8", "i8", "c16"])
@pytest.mark.parametrize("store", STORES)
def test_what_shares_memory(store: str, dtype: str):
    """A store into the result is one into the argument where it is in NumPy, and the other way round."""
    wrong: list[str] = []
    for expression in split(OF_ARRAYS):
        try:
            check(f"w = {expression}\n{store}", x=np.array([[0, 1, 2], [3, 4, 0]], dtype))
        except AssertionError as error:
            wrong.append(f"{expression}: {str(error).splitlines()[0]}")
    assert not wrong


def test_a_view_of_another_kind_lies_in_the_same_memory():
    check("v = x.view(np.int32)\nv[1] = 7\ny = x * 2\nx[0] = 3", x=np.ones(3))
    check("v = x.view(np.int64)", x=np.ones(3))
    check("v = x.view(np.matrix)\nv[0, 1] = 7\ny = x * 2\nx[0] = 3\nz = v * v.T", x=np.ones(3))
    check("v = x.view(np.ndarray)\nv[0] = 3\nw = x.view(np.float64)\nw.shape = -1\nw[1] = 4", x=np.ones((2, 2)))


def test_a_grid_without_copies_shares_memory():
    check("a, b = np.meshgrid(x, y, sparse=True, copy=False)\na[0, 1] = 7\nx[2] = 5", x=np.ones(3), y=np.ones(2))
    check("a, b = np.meshgrid(x, y, sparse=True)\na[0, 1] = 7\nx[2] = 5", x=np.ones(3), y=np.ones(2))
