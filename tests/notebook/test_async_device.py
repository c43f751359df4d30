"""``%%tensor --async --device gpu``: futures of what the device computes, over inputs as they were, with errors at their line."""

import threading
import warnings

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.functions.submitting import Submitted


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings(action="ignore", category=tm.HiddenTransferWarning):
        yield


def submitted(notebook, text: str) -> Submitted:
    return notebook.ok(f"%%tensor --async --device gpu\n{text}").result.result


def test_a_future_of_what_the_device_computes(notebook, device):
    future = submitted(notebook, "z = np.exp(X @ w) - y\nz.sum()")
    assert isinstance(future, Submitted)
    X, y, w = (notebook[n] for n in ("X", "y", "w"))
    expected = np.exp(X @ w) - y
    np.testing.assert_allclose(float(future.result()), expected.sum(), rtol=1e-12)
    assert device.copied.to_device == X.nbytes + y.nbytes + w.nbytes
    z = notebook["z"]
    with tm.config.using(device="gpu"):
        assert tm.session.device_array(z.node) is not None  # where it was computed
    np.testing.assert_allclose(tm.to_host(z), expected, rtol=1e-12)
    assert device.copied.to_device == X.nbytes + y.nbytes + w.nbytes
    assert device.copied.to_host == expected.nbytes


def test_later_cells_take_what_is_on_its_way(notebook, device):
    submitted(notebook, "z = np.tanh(X)")
    future = submitted(notebook, "total = (z * 2).sum()\ntotal")
    found = notebook.ok("%%tensor\ntotal + 1").result.result
    expected = (np.tanh(notebook["X"]) * 2).sum()
    np.testing.assert_allclose(float(future.result()), expected, rtol=1e-12)
    np.testing.assert_allclose(float(found), expected + 1, rtol=1e-12)
    assert device.copied.to_device == notebook["X"].nbytes


def test_inputs_are_as_they_were(notebook, device, monkeypatch):
    begins, run = threading.Event(), tm.residence.run

    def late(*args):
        assert begins.wait(20)
        return run(*args)

    monkeypatch.setattr(tm.residence, "run", late)
    before = notebook["X"].copy()
    future = submitted(notebook, "q = X * 3\nq.sum()")
    assert not future.done()
    notebook["X"][:] = 7.0
    begins.set()
    np.testing.assert_allclose(float(future.result()), 3 * before.sum(), rtol=1e-12)
    np.testing.assert_allclose(tm.to_host(notebook["q"]), 3 * before, rtol=1e-12)


def test_values_on_the_card_are_computed_with_there_without_an_option(notebook, device):
    notebook.ok("Xg, wg = tm.to_gpu((X, w))")
    sent = device.copied.to_device
    future = notebook.ok("%%tensor --async\nq = Xg @ wg\nq.sum()").result.result
    np.testing.assert_allclose(float(future.result()), (notebook["X"] @ notebook["w"]).sum(), rtol=1e-12)
    assert device.copied.to_device == sent


def test_an_error_is_at_the_value_with_the_line_of_its_cell(notebook, device):
    future = submitted(notebook, "k = np.arange(3) * 20\nt = X[k]\nt.sum()")
    with pytest.raises(IndexError, match="out of bounds"):
        future.result()
    ran = notebook("%%tensor --device gpu\nt * 2")
    assert isinstance(ran.error, IndexError)
    assert "t = X[k]" in ran.out
    good = submitted(notebook, "X.sum()")
    np.testing.assert_allclose(float(good.result()), notebook["X"].sum(), rtol=1e-12)


def test_copies_are_refused_before_anything_is_submitted(notebook, device):
    ran = notebook("%%tensor --async --exclusive\nq = X @ w")
    assert isinstance(ran.error, tm.TransferError)
    assert "X (float64[40, 3], 960 bytes)" in ran.out
    assert "w (float64[3], 24 bytes)" in ran.out
    assert device.copied.to_device == 0
    assert not tm.session.coming


def test_copies_are_told_when_the_cell_is_run(notebook, device):
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always", tm.HiddenTransferWarning)
        submitted(notebook, "p = X * 2\np.sum()").result()
    assert [
        "X (float64[40, 3], 960 bytes) is copied to the device, In[1] line 2" in str(r.message) for r in records
    ] == [True]
