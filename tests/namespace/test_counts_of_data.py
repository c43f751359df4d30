"""Every function of an array whose length is data-dependent: several elements, one, and none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy

import tensormagic as tm
from tensormagic.ir.errors import CaptureError
from tests.programs.growing import compiled

FUNCTIONS = """
v + v[::-1]; v.sum(); v.mean(); v.std(); v.var(); v.max(); v.min(); v.argmax(); v.argmin(); v.prod(); v.any(); v.all();
np.cumsum(v); np.cumprod(v); np.sort(v); np.argsort(v); np.unique(v); np.diff(v); np.ediff1d(v); np.gradient(v);
np.median(v); np.percentile(v,50); np.quantile(v,[.2,.5]); np.ptp(v); np.histogram(v,[0,1,2,9])[0];
np.bincount(v.astype(int)); np.digitize(v,[1,2]); np.searchsorted(v,1.5); np.interp(1.5,np.sort(v),v); np.convolve(v,[1,2]);
np.outer(v,v); np.dot(v,v); v@v; np.inner(v,v); np.vdot(v,v); np.kron(v,[1,2]); np.tensordot(v,v,0); np.einsum('i,i',v,v);
np.linalg.norm(v); np.linalg.norm(v,1); np.linalg.norm(v,np.inf); np.trapezoid(v); np.roll(v,1); np.flip(v);
np.rot90(v[None]); np.tile(v,2); np.repeat(v,2); np.append(v,1); np.insert(v,0,5); np.concatenate([v,v]);
np.stack([v,v]); np.hstack([v,v]); np.vstack([v,v]); np.column_stack([v,v]); np.dstack([v,v]); np.pad(v,1);
np.pad(v,1,'edge'); np.pad(v,1,'linear_ramp'); np.pad(v,1,'maximum'); np.where(v>1,v,0); np.where(v>1)[0];
np.nonzero(v)[0]; np.argwhere(v); np.flatnonzero(v); np.count_nonzero(v); np.clip(v,0,1); np.take(v,[0],mode='clip');
np.choose((v>1).astype(int),[v,-v]); np.select([v>1],[v],0); np.piecewise(v,[v>1],[1,0]); np.compress(v>1,v);
np.extract(v>1,v); np.isin(v,[1,2]); np.intersect1d(v,[1,2]); np.union1d(v,[1]); np.setdiff1d(v,[1]); np.setxor1d(v,[1]);
np.nan_to_num(v); np.nanmax(v); np.nansum(v); np.nanmean(v); np.nanmedian(v); np.nanstd(v); np.cov(v); np.corrcoef(v,v);
np.average(v); np.average(v,weights=v); np.polyval([1,2],v); np.polyder(v);
np.polyint(v); np.polymul(v,v); np.vander(v,2); np.diag(v); np.diagflat(v); np.tri(len(v));
np.tril(np.outer(v,v)); np.triu(np.outer(v,v)); np.trace(np.outer(v,v)); np.eye(len(v)); np.identity(len(v));
np.arange(len(v)); np.linspace(0,1,len(v)); np.logspace(0,1,len(v)); np.zeros(len(v)); np.ones_like(v); np.full(len(v),2);
np.meshgrid(v,v)[0]; np.indices(v.shape); np.ix_(v)[0]; np.mgrid[0:len(v)]; np.reshape(v,(-1,1)); np.reshape(v,(1,-1));
v[:,None]; v[None]; v[::2]; v[1:]; v[:-1]; v[-1:]; v[:1]; v.ravel(); v.copy(); v.flatten(); np.expand_dims(v,1);
np.moveaxis(v[None],0,1); np.swapaxes(v[None],0,1); np.atleast_2d(v); np.atleast_3d(v); v.astype(int); v.round(); np.fix(v);
np.fft.fft(v); np.fft.rfft(v); np.fft.ifft(v); np.fft.fftshift(v); np.fft.fftfreq(len(v)); np.fft.fft(v,4); np.lexsort((v,));
np.partition(v,0); np.argpartition(v,0); np.sinc(v); np.i0(v); np.unwrap(v); np.angle(v); np.real(v); np.imag(v); np.conj(v);
np.maximum.reduce(v); np.add.reduce(v); np.add.accumulate(v); np.multiply.outer(v,v); np.add.reduceat(v,[0]);
np.logaddexp.reduce(v); np.logical_and.reduce(v); np.minimum.accumulate(v); np.apply_along_axis(np.sum,0,v);
np.apply_over_axes(np.sum,v,0); np.fromfunction(lambda i:i,(len(v),)); np.array([v,v]); np.array([q for q in v]);
np.resize(v,4); np.rollaxis(v[None],1); np.array_equal(v,v); np.allclose(v,v); np.isclose(v,v);
np.bitwise_count(v.astype(int)); np.lib.stride_tricks.sliding_window_view(v,1); np.unravel_index(np.arange(len(v)),(4,4))[0];
np.ravel_multi_index((np.arange(len(v)),),(4,)); np.cumulative_sum(v); np.nancumsum(v); np.nanargmax(v);
np.argmax(v[None],axis=0); np.max(v[None],axis=0); np.sum(v[:,None],axis=1); np.mean(v[:,None],axis=0);
np.max(v[:,None],axis=1); np.sort(v[:,None],axis=0); np.argsort(v[:,None],axis=1); np.cumsum(v[None],axis=0);
np.median(v[None],axis=0); np.std(v[:,None],axis=1); np.percentile(v[None],30,axis=0); np.any(v[:,None],axis=1);
np.linalg.norm(v[:,None],axis=1); np.linalg.det(np.outer(v,v)); np.linalg.inv(np.eye(len(v)));
np.linalg.solve(np.eye(len(v)),v); np.linalg.eigh(np.eye(len(v)))[0]; np.linalg.svd(np.eye(len(v)))[1];
np.linalg.qr(np.eye(len(v)))[1]; np.linalg.cholesky(np.eye(len(v))); np.linalg.matrix_rank(np.eye(len(v)));
np.linalg.pinv(np.eye(len(v))); np.linalg.matrix_power(np.eye(len(v)),2); np.linalg.slogdet(np.eye(len(v)))[1];
np.block([v,v]); np.unstack(v[None])[0]; np.fmax(v,1); np.hypot(v,v); np.logaddexp(v,v); np.heaviside(v,1); v//2; v%2; v**2;
2**v; -v; abs(v); (v>1)&(v<3); ~(v>1); v[v>1]; v[len(v)//2:]; v[np.argsort(v)]; v[np.arange(len(v))[::-1]];
np.take_along_axis(v,np.argsort(v),0); v.reshape(v.size); v.reshape(-1,1)*v; np.matmul(v[None],v[:,None]);
np.matmul(v[:,None],v[None]); v[:,None]@v[None]; np.vecdot(v,v); np.linalg.multi_dot([v[None],v[:,None]]);
np.linalg.outer(v,v); np.copysign(v,-1); np.nextafter(v,9); np.float_power(v,2); np.cbrt(v); np.exp(v); np.modf(v)[0];
np.divmod(v,2)[0]; np.signbit(v); np.rint(v); np.around(v,1); np.isnan(v); np.nanmin(v); np.nanprod(v); np.nanvar(v);
np.nanpercentile(v,50); np.nanquantile(v,.5); np.histogram(v,3,range=(0,4))[0]; np.histogram(v,3)[1];
np.histogram2d(v,v,[[0,2,4],[0,2,4]])[0]; np.histogram_bin_edges(v,2); np.cov(v,v); np.cov(np.stack([v,v]));
np.corrcoef(np.stack([v,v])); np.nan_to_num(v/0); np.flatnonzero(v>1)[:1]; np.diagonal(np.outer(v,v));
np.rot90(np.outer(v,v)); np.fliplr(np.outer(v,v)); np.trace(np.outer(v,v),1);
scipy.special.logsumexp(v); scipy.special.softmax(v); scipy.special.expit(v);
scipy.special.gammaln(v); scipy.linalg.toeplitz(v); scipy.linalg.circulant(v); scipy.linalg.hankel(v);
scipy.linalg.block_diag(v,v); scipy.special.xlogy(v,v); scipy.signal.convolve(v,[1.,2]); scipy.stats.norm.logpdf(v);
scipy.linalg.expm(np.outer(v,v)*0); scipy.linalg.norm(v); scipy.special.erf(v); np.diagonal(np.outer(v,v),2);
np.diagonal(np.outer(v,v),-2); np.trace(np.outer(v,v),-3); scipy.linalg.toeplitz(v,[1.,2]); scipy.linalg.toeplitz([1.,2],v);
scipy.linalg.hankel(v,[1.,2]); np.polyder(v,2); np.polyder(v,5); np.polymul(v,[1,2]); np.histogram(v,4,density=True)[0];
np.fft.rfftfreq(len(v)); np.linalg.norm(np.outer(v,v),np.inf); np.linalg.norm(np.outer(v,v),1);
np.linalg.norm(np.outer(v,v),2); np.linalg.norm(v,-np.inf); np.linalg.norm(v[None],np.inf,axis=0);
np.linalg.norm(v[None],np.inf,axis=1); scipy.special.logsumexp(v[None],axis=1); scipy.special.logsumexp(v[None],axis=0);
np.resize(v,(2,3))
"""
REFUSED = (
    "np.delete(v,[])",
    "np.split(v,1)[0]",
    "np.array_split(v,2)[1]",
    "np.pad(v,1,'reflect')",
    "np.pad(v,1,'wrap')",
    "np.pad(v,(0,2),'symmetric')",
    "np.polyfit(v,v,0)",
    "np.polyval(v,2)",
    "np.polyadd(v,v)",
    "np.vander(v)",
    "sum(v)",
    "np.vsplit(v[:,None],1)[0]",
    "np.hsplit(np.outer(v,v),1)[0]",
)
LAST_DIGITS = ("logsumexp",)  # SciPy adds them in another order


@pytest.mark.share(3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", FUNCTIONS.replace(";\n", "; ").strip().split("; "))
def test_a_function_of_as_many_as_data_say(expression: str, monkeypatch: pytest.MonkeyPatch):
    """The value is NumPy's, or both raise an error."""
    monkeypatch.setattr(tm.config, "tier", "numpy")
    space: dict[str, Any] = {"np": np, "scipy": scipy}
    exec(compiled(f"def f(y):\n    v = y[y > 0]\n    return {expression}\n", f"of v {expression}"), space)
    plain, captured = space["f"], tm.tensor(space["f"])
    for count in (3, 1, 0, 2):
        y = np.array([3.0, 1, 2][:count] + [-1.0] * (4 - count))
        try:
            expected = plain(y)
        except (ValueError, LookupError, TypeError, ArithmeticError):
            with pytest.raises((ValueError, LookupError, TypeError, ArithmeticError)):
                captured(y)
            continue
        found = captured(y)
        for ours, theirs in zip(*((v if isinstance(v, tuple) else (v,)) for v in (found, expected)), strict=True):
            if any(name in expression for name in LAST_DIGITS):
                np.testing.assert_allclose(ours, theirs, rtol=1e-15, strict=True)
            else:
                np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize("expression", REFUSED)
def test_what_needs_to_know_how_many_there_are_is_refused(expression: str):
    space: dict[str, Any] = {"np": np}
    exec(compiled(f"def f(y):\n    v = y[y > 0]\n    return {expression}\n", f"refused {expression}"), space)
    with pytest.raises(CaptureError, match=r"needs a value|whose number is not known"):
        tm.tensor(space["f"]).graph(np.ones(3))
