"""Functions of NumPy with options that are seldom written: dtypes on the way, whole quantiles, keywords, arrays without axes."""

from __future__ import annotations

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError
from tests.capture.harness import check

RNG = np.random.default_rng(1)
NAMES = {
    "x": RNG.normal(size=(3, 4)).astype("f4"),
    "y": np.array([0.5, -1, 2]),
    "i": RNG.integers(-5, 6, (3, 4)),
    "j": RNG.integers(0, 6, (3, 4)).astype("u1"),
    "k": np.array([0, 2, 1]),
    "u": np.array([True, False, True]),
    "z": np.array([np.nan, 1, -0.0, np.inf]),
    "b": np.array([1, 250, 3], np.uint8),
    "o": np.zeros(()),
    "o3": np.zeros(3),
    "o4": np.zeros(4),
    "i4": np.zeros(4, int),
    "f4": np.zeros(4, "f4"),
}

FOLDS = """
np.sum(x,axis=0,out=o4); np.prod(x,axis=0,out=o4); np.cumsum(x[0],out=o4); np.mean(x,axis=0,out=o4);
np.ptp(x,axis=0,out=o4); np.median(x,axis=0,out=o4); np.nansum(x,axis=0,out=o4); np.nanmean(x,axis=0,out=o4);
np.add.reduce(x,axis=0,out=o4); np.subtract.reduce(j,axis=0,out=i4); np.subtract.reduce(x,axis=0,out=o4);
np.add.accumulate(x[0],out=o4); np.sum(i,axis=0,out=f4); np.sum(x,axis=0,out=i4); np.maximum.reduce(x,axis=0,out=o4);
np.hypot.reduce(i[:,:1],axis=1); np.hypot.reduce(i); np.gcd.reduce(i[:1]); np.gcd.reduce(i); np.divide.reduce(j+1);
np.arctan2.reduce(j); np.subtract.reduce(j); np.power.reduce(j); np.logaddexp.reduce(j[:0]); np.hypot.reduce(x[:1]);
np.nansum(x,dtype=np.uint8); np.nansum(x,dtype=bool); np.nancumsum(y,dtype=np.uint8); np.nanprod(i,dtype=np.int8);
np.nancumprod(k,dtype=bool); np.nancumsum(x,axis=(0,)); np.nanmean(i,dtype=int); np.nanmean(y,dtype=int);
np.mean(y,dtype=np.uint8); np.mean(i,dtype=int); np.mean(i,axis=0,dtype=int); np.mean(i,dtype=bool);
np.mean(x>0,dtype=int); np.std(i,dtype=np.float32); np.var(x,dtype=float); np.cumsum(i,axis=(0,));
np.sum(i,axis=True); np.sum(i,axis=[0]); np.mean(i,axis=[0]); np.median(i,axis=[0]); np.sum(i,axis=k[1]-1);
np.sort(i,axis=k[0]); np.argsort(i,axis=k[0]); np.flip(i,axis=k[0]); np.average(i,axis=[0])
"""

QUANTILES = """
np.quantile(k,1); np.quantile(k,0,axis=0); np.quantile(u,0); np.quantile(z,1,axis=());
np.nanquantile(b,0,axis=(),keepdims=True); np.nanquantile(z,1); np.quantile(k,True); np.quantile(k,np.int64(1));
np.quantile(k,[0,1]); np.percentile(k,100); np.quantile(k,1,method='lower'); np.quantile(x,.3);
np.quantile(x,.3,axis=1); np.quantile(x,.7,axis=0); np.percentile(x,33,axis=0); np.nanpercentile(x,33,axis=0);
np.quantile(x,[.3,.8],axis=1); np.quantile(i[i>0],.3); np.quantile(i[i>0],.3,axis=-1); np.median(i[i>0]);
np.nanpercentile(i[i>0],50); np.nanpercentile(i[i>9],50); np.quantile(i[i>9],.5);
np.percentile(i[:,i[0]>0],30,axis=1); np.nanquantile(i[:0],.2); np.nanquantile(i[:0],.2,axis=0);
np.percentile(y[0],30,keepdims=True); np.median(y[0],keepdims=True); np.nanmedian(y[0],keepdims=True)
"""

UFUNCS = """
np.greater(y,1,dtype=bool); np.logical_and(y,1,dtype=bool); np.isnan(y,dtype=bool); np.logical_not(k,dtype=bool);
np.fabs(y,out=o3); np.fabs(k,dtype=np.float32); np.float_power(y,2,out=o3); np.float_power.outer(y,y);
np.modf(y,out=(o3,o3.copy())); np.bitwise_count(k,out=o3); np.fabs(y,out=o3,where=y>0); np.vecdot(i,i,axis=0);
np.vecdot(i,i); np.fabs([y[0],1]); np.float_power([y[0],1],2); np.modf([y[0],1.5])[0]; np.fabs(2.5);
np.equal(k,k,dtype=bool,out=o3)
"""

OTHERS = """
np.average(y,returned=True); np.average(y[0],returned=True); np.average(x,axis=0,returned=True);
np.asfortranarray(np.array(2),dtype=np.float32); np.ascontiguousarray(y[0],dtype=int); np.gradient(y,k+.5);
np.gradient(y,k[k>0]); np.gradient(x[0],y); np.real_if_close(y[0]); np.arange(2.5,stop=5); np.arange(1,stop=len(y));
np.arange(stop=3); np.arange(start=1,stop=4); np.arange(len(y),step=2); np.arange(1,9,2,float);
np.arange(0,len(y),1,np.float32); np.arange(step=2); np.arange(3,None); np.arange(len(y),None,2);
np.arange(1,len(y),dtype=float); np.tensordot(y,x); np.tensordot(x,x); np.broadcast_to(y,());
np.broadcast_to(y,(2,3)); np.inner(x,2.5); np.inner(y[0],2); np.inner(2,x); np.kron(x[0,0],2.5);
np.linspace(y,5,0,retstep=True); np.linspace(y[0],5,1,retstep=True); np.full_like(x,2,device=None);
y.var(dtype=np.float32); x.std(0,dtype=float); i.var(dtype=np.float32); np.nanstd(i,dtype=np.float32); x.item(7);
i.item(-1); x.item(1,2); x[0,0].item(-1); x.item(12); [np.put(q,0,2.5) for q in np.tile(True,2)];
np.diag_indices_from(x); np.round(u,1); np.round(u); np.choose(k[1],[1,2,3]); k[1].choose([4,5,6])
"""


def expressions(table: str) -> list[str]:
    """The expressions of a table."""
    return [e.strip() for e in table.replace("\n", " ").split(";") if e.strip()]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("table", [FOLDS, QUANTILES, UFUNCS, OTHERS], ids=["folds", "quantiles", "ufuncs", "others"])
def test_as_numpy(table: str):
    wrong: list[str] = []
    for expression in expressions(table):
        try:
            check(f"r = {expression}", **NAMES)
        except Exception as error:  # noqa: BLE001 (all of them are listed)
            wrong.append(f"{expression}: {str(error).splitlines()[0] if str(error) else error!r}")
    assert not wrong


@pytest.mark.parametrize(
    "expression", ["np.var(i,dtype=int)", "np.std(y,dtype=complex)", "np.nanstd(i,dtype=np.uint8)"]
)
def test_a_variance_in_another_kind_of_number_runs_on_values(expression: str):
    """A function has none, and refuses it."""
    check(f"r = {expression}", **NAMES)
    with pytest.raises(CaptureError):
        tm.tensor(lambda i, y: eval(expression, {"np": np, "i": i, "y": y})).graph(NAMES["i"], NAMES["y"])


def test_differences_of_truth_values():
    """NumPy makes numbers of integers before it subtracts, and not of truth values."""
    with pytest.raises(TypeError, match="numpy boolean subtract"):
        np.gradient(tm.tensor(np.array([True, False, True])))
