"""Calls of NumPy's functions and methods, stores and reads, drawn from tables: a share of them; and those that such runs found."""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError, LayoutError
from tests.capture.harness import captured, check
from tests.programs.calls import call
from tests.programs.errors_of_programs import DifferenceError
from tests.programs.random_programs import compare_cell, compare_function


@pytest.mark.share(3)
@pytest.mark.parametrize("first", range(0, 1000, 100))
def test_a_share_of_drawn_calls(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tm.config, "math", "exact")
    monkeypatch.setattr(tm.config, "tier", "numpy")
    ended: Counter[str] = Counter()
    for seed in range(first, first + 100):
        try:
            how = (compare_function if seed % 2 else compare_cell)(call(seed), [], 1e-9)
        except DifferenceError as error:
            if not error.both:
                raise
            how = "error"  # both raise: what need not run may have several errors
        ended[how] += 1
    assert ended["same"] > 30, ended


NAMES = {
    "x": np.arange(12.0).reshape(3, 4),
    "y": np.array([0.5, -1, 2]),
    "k": np.array([0, 2, 1]),
    "i": np.array([[1, 5, 0], [2, 1, 3]]),
    "u": np.array([True, False, True]),
    "c": np.array([1j, 2], np.complex64),
    "f": np.array([1, 2.5], np.float32),
    "s": np.float64(2.0),
    "e": np.array(2.0),
}

SETS = """
np.union1d(c, 1j); np.union1d(f, 2.5); np.union1d(f, y); np.union1d(x, k); np.intersect1d(x, -1, assume_unique=True);
np.intersect1d(x % 3, [1, 2], assume_unique=True); np.intersect1d(y, k, assume_unique=True); np.setxor1d(k, x, assume_unique=True);
np.setxor1d(x % 3, k, assume_unique=True); np.isin(x, [1.0], kind="table"); np.isin(k, [1], kind="table");
np.isin(k, [1], kind="stable"); np.isin(2, x[:0]); np.append(2.5, f); np.append(f, 2.5); np.concatenate([f, 2.5], axis=None);
np.concatenate([f, y], axis=None); np.concatenate([k, True], axis=None); np.unique(y, axis=(0, 1)); np.unique(y, axis=0);
np.unique(y, axis=1)
"""

POLYNOMIALS = """
np.poly(e); np.poly(2.0); np.poly(s); np.poly(y); np.polyval(e, y); np.polyval(3, y); np.polyval(x, 2.0); np.polyval(x, y[:, None]);
np.polyval(y, x); np.polyval(y, s); np.polyval([], y); np.polyder(s); np.polyint(s); np.polyint(s, 0); np.polyder(e, 0);
np.polyadd(s, y); np.polysub(y, True); np.polymul(s, y); np.ediff1d(u); np.ediff1d(k); np.ediff1d(y, to_end=9);
np.correlate(y, 5.0); np.correlate(x, y); np.correlate(y, [1, 2]); np.convolve(5.0, y)
"""

BOUNDS = """
np.clip(y); np.clip(y, 0); np.clip(y, a_min=0); np.clip(y, a_max=0); np.clip(y, None); np.clip(y, 0, min=1); np.clip(y, 0, None, min=1);
y.clip(); y.clip(0); y.clip(max=1); y.clip(0, max=1); np.clip(y, min=0); np.clip(y, None, None); y.clip(0, 1, min=0); np.clip(u);
np.clip(u, False, True); np.quantile(2, 30); np.quantile(k[0], 30); np.quantile(k[0], 0.5); np.nanargmax(x, axis=(0, 1));
np.nanvar(s, axis=k[0]); np.nanmean(s, axis=0); np.nanstd(y[0], axis=-1); np.nanvar(2, axis=0); np.nan_to_num([y[0], 1], copy=False);
np.histogram_bin_edges(y, weights=2.0); np.corrcoef(x, dtype=int)
"""

SHAPES = """
np.eye(2, order="K"); np.eye(2, order="F"); np.ones(2, order="X"); np.full(2, 1, order="K"); np.zeros((3, 2), order=1);
np.zeros_like(x, order="K"); np.array(y, order=1); np.asarray(2.5, copy=False); np.expand_dims(s, ()); np.rollaxis([y, y], 1);
np.unstack((y, y)); np.astype([y[0], 1], int); np.tril_indices_from((y, y)); np.take_along_axis([y, y], [[0, 1]]);
np.take_along_axis(x, [[0, 1]], 1); np.block((x, x)); np.block([(x, x)]); np.block([x, x]); np.insert(u, [], x[:1, :1] > 0);
np.insert(y, 0, x[:1, :1]); np.insert(y, [0, 1], [[1, 2]]); np.indices(e); np.broadcast_to(y, (-1, 3)); np.lexsort(k);
np.ravel_multi_index((u, u), (2, 3)); np.compress([True], 3.0, axis=0); s.compress([True], axis=-1); s.dot(2); s.mT; s.T; e.T.T;
np.squeeze(e, -1); np.indices(k); np.zeros(k); np.split([y[0], 1], 2); np.array_split([y[0], 1], 2); np.copy(s, order=1);
np.linspace(0, y[0], 3, retstep=True); np.linspace(0, y, 3, retstep=True); np.linspace(0, y, 1, retstep=True);
np.trim_zeros([0, y[0], 1, 0]); np.trim_zeros((0, k[0], 0), "b"); np.trim_zeros([y[0] * 0, 0]); np.trim_zeros([y, y])
"""

TRANSFORMS = """
np.fft.fftn(s); np.fft.fftn(2.5); np.fft.rfftn(2.5); np.fft.fft2(2.5); np.fft.fftshift(s); np.fft.ifftn(k[0], axes=None);
np.fft.fftn(y, axes=()); np.fft.rfftfreq(k[0]); np.fft.fftfreq(k[1]); np.fft.rfftfreq(0); np.linalg.tensorsolve(s, e);
np.linalg.tensorinv(e); np.linalg.pinv(x[:0], hermitian=True); np.linalg.pinv(i[:0]); np.linalg.qr(x, mode="r");
np.float_power.accumulate(y); np.float_power.reduce(x);
np.float_power.reduce(x > 0, axis=1); np.float_power.reduce(y, keepdims=True); np.bitwise_count(u); np.bitwise_count(u[0]);
np.bitwise_count(k); np.bitwise_count(y); np.cumulative_sum(s, axis=()); np.cumulative_sum(y, axis=()); np.choose(i, [y[0], 2, 3])
"""


@pytest.mark.parametrize(
    "expression", [e.strip() for text in (SETS, POLYNOMIALS, BOUNDS, SHAPES, TRANSFORMS) for e in text.split(";")]
)
def test_a_call(expression: str) -> None:
    if captured(f"r = {expression}", NAMES).error.__class__ is CaptureError:
        assert expression.startswith("np.polyval(x")  # rows of coefficients
    else:
        check(f"r = {expression}", 1e-12, **NAMES)


STORES = """
y[0] = None; y[1:] = None; u[0] = None; c[0] = None; k[0] = None; y[:2] = [None, 1]; x[...] = None; y.flat[0] = None;
y.flat[0] = y; y.flat[0] = y[:1]; y.flat[0] = [3]; y.flat[0] = np.array(3); y.flat[0:2] = [4];
y.flat[1] = e; y.flat[k[1]] = x[0]; y.flat[np.array(0)] = []; u.fill(y[:1]); u.fill([]); u.fill((0,)); u.fill(y); c.fill(y[:1]);
np.copyto(2, y); np.copyto(s, s); np.copyto(y, y)
"""


@pytest.mark.parametrize("store", [s.strip() for s in STORES.split(";")])
def test_a_store(store: str) -> None:
    check(store, **NAMES)


def test_an_attribute_that_is_not_captured_is_refused_by_name():
    """A cell has values: there every one of them gives what NumPy's gives."""
    for name in ("byteswap", "tobytes", "data"):
        with pytest.raises(CaptureError, match=rf"\.{name}\b"):
            tm.tensor(lambda x, name=name: np.asarray(getattr(x, name)())).graph(NAMES["x"])
    with pytest.raises(CaptureError, match=r"\.base depends on the memory layout"):
        tm.tensor(lambda x: x if x.base is None else x * 2).graph(NAMES["x"])
    assert isinstance(captured("r = x.undefined", NAMES).error, AttributeError)
    check("r = x.byteswap(), getattr(x, 'tobytes', None)(), x.base is None, x[1:].base is x, bytes(x.data)", **NAMES)
    check("r = getattr(x, 'undefined', 3)\nq = getattr(k[0], 'sum', None) is None\nw = hasattr(x, 'strides')", **NAMES)


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
@pytest.mark.parametrize("order", ["A", "K"])
def test_the_order_in_memory_of_an_argument(order: str):
    """A function is captured for how its arguments lie, where that matters: none is read in another order."""
    f = tm.tensor(lambda x: x.T.ravel(order))
    x = np.arange(6).reshape(2, 3)
    assert np.array_equal(f(x), x.T.ravel(order))
    for other in (np.asfortranarray(x), x[::-1], x[:, ::2]):
        found = read_or_refused(f, other)
        assert found is None or np.array_equal(found, other.T.ravel(order))


def read_or_refused(f: Any, x: Any) -> Any:
    """What a function gives; None where it says that it does not know how an array lies."""
    with contextlib.suppress(LayoutError):
        return f(x)


def test_a_function_gives_a_dtype_back():
    assert tm.tensor(lambda x: (x.dtype, x * 2))(NAMES["k"])[0] == NAMES["k"].dtype


def test_what_failed_does_not_get_in_the_way(monkeypatch: pytest.MonkeyPatch):
    """A view that could not be made is still there, in the traceback of its error, when something large is computed."""
    monkeypatch.setattr(tm.config, "tier", "numpy")
    error = captured("v = k.transpose(-1, 0)", NAMES).error
    assert isinstance(error, ValueError)
    long = "v = y" + "\nv = np.sin(v) + y" * 80
    check(long, y=NAMES["y"])
    assert error.__traceback__ is not None


def test_of_no_integers_there_is_no_quantile_of_one_dtype():
    f = tm.tensor(lambda k: np.nanpercentile(k[k > 1], 0, method="higher"))
    assert f(NAMES["k"]) == 2
    with np.errstate(invalid="ignore"), pytest.warns(RuntimeWarning, match="Mean of empty slice"):  # by Python
        assert np.isnan(f(np.array([0, 1])))
    with pytest.raises(CaptureError, match="here none"):
        tm.compile(lambda k: np.nanpercentile(k[k > 1], 0, method="higher"), NAMES["k"]).run(np.array([0, 1]))


@pytest.mark.parametrize("order", ["C", "F", "K"])
def test_an_array_in_an_order_is_itself_where_it_lies_so(order: str):
    for x in (NAMES["x"], np.asfortranarray(NAMES["x"]), NAMES["x"][:, ::2]):
        check(
            f"v = np.asarray(x, order='{order}')\nv[0] = 7\nw = np.asanyarray(x.T, order='{order}')\nw += 1",
            x=x.copy("K"),
        )
