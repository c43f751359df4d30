"""Values on the device: where they lie, what is computed where, and what is told or refused of copies."""

import warnings

import numpy as np
import pytest
import scipy

import tensormagic as tm
from tensormagic import session
from tensormagic.backend.cuda.device import Device
from tensormagic.capture.values.operands import node_of
from tensormagic.ir.node import topological
from tensormagic.ops.leaf import CONSTANT

X = np.arange(12.0).reshape(4, 3)
W = np.array([0.5, -1.0, 2.0])
SEEN = tm.HiddenTransferWarning


def copies(device: Device) -> tuple[int, int]:
    return device.copied.to_device, device.copied.to_host


def told(records) -> list[str]:
    return [str(r.message) for r in records if r.category is SEEN]


def test_a_value_stays_where_it_was_computed_and_is_copied_once(device: Device):
    x = tm.tensor(X)
    with tm.config.using(device="gpu"):
        y = np.tanh(x).sum(0)
    with pytest.warns(SEEN) as first:
        np.testing.assert_allclose(y.numpy(), np.tanh(X).sum(0), rtol=1e-14)
    assert copies(device) == (X.nbytes, W.nbytes)
    assert [t.split(" is copied ")[1][:13] for t in told(first)] == ["to the device", "to the host, "]
    assert "x = tm.to_gpu(x) copies it once" in told(first)[0]
    assert "tm.to_host(y) asks for it" in told(first)[1]
    assert y.numpy() is y.numpy()
    assert copies(device) == (X.nbytes, W.nbytes)


def test_each_variable_is_told_of_once_in_each_direction(device: Device):
    x = tm.tensor(X)
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        for k in range(3):
            with tm.config.using(device="gpu"):
                y = x * k + 1
            y.numpy()
    assert len(told(records)) == 2


def test_what_is_asked_for_is_not_told(device: Device):
    x, w = tm.to_gpu((X, W))
    found = tm.to_host(x @ w)
    np.testing.assert_allclose(found, X @ W, rtol=1e-14)
    assert copies(device) == (X.nbytes + W.nbytes, 4 * 8)
    assert type(tm.to_host(x.sum())) is np.float64
    assert tm.to_host({"a": [x], "b": 3})["b"] == 3


def test_what_is_computed_from_values_on_the_device_is_computed_there(device: Device):
    x, w = tm.to_gpu(X), tm.to_gpu(W)
    before = copies(device)
    for _ in range(3):
        w = w - 0.1 * tm.grad(lambda w, x: np.sum((x @ w) ** 2))(w, x)
    assert "on the device" in repr(w - 0) or "not computed" in repr(w - 0)
    tm.evaluate(w.sum())
    assert copies(device) == before
    plain = W
    for _ in range(3):
        plain = plain - 0.1 * (2 * X.T @ (X @ plain))
    np.testing.assert_allclose(tm.to_host(w), plain, rtol=1e-9)


def test_constants_of_other_shapes_are_copied_from_no_value_of_the_host(device: Device):
    """Equal constants are one node, of which other code may have asked for the value on the host."""
    x, w = tm.to_gpu(X), tm.to_gpu(W)
    total = tm.grad(lambda w, x: np.sum((x @ w) ** 2))(w, x).sum()
    moved = [n for n in topological([node_of(total)]) if n.op.kind == "move" and n.args[0].op is CONSTANT]
    assert moved
    session.have(moved)
    before = copies(device)
    tm.evaluate(total)
    assert copies(device) == before


def test_a_block_with_a_device_of_its_own_decides(device: Device):
    x = tm.to_gpu(X)
    with tm.config.using(device="cpu"):
        y = x * 2
    before = copies(device)
    np.testing.assert_array_equal(y.numpy(), X * 2)
    assert copies(device) == before  # to_gpu keeps what it was given


def test_the_device_is_part_of_what_decides_a_value(device: Device):
    x = tm.tensor(X)
    y = np.exp(x * 0.1).sum()
    here = y.numpy()
    with warnings.catch_warnings(action="ignore", category=SEEN):
        with tm.config.using(device="gpu"):
            there = y.numpy()
        assert copies(device)[0] == X.nbytes  # it was computed there, too
        np.testing.assert_allclose(here, there, rtol=1e-14)
        f = tm.tensor(lambda x: np.exp(x * 0.1).sum())
        for place in ("cpu", "gpu", "cpu"):
            reads = device.copied.reads
            with tm.config.using(device=place):
                np.testing.assert_allclose(f(X), here, rtol=1e-14)
            assert (device.copied.reads > reads) is (place == "gpu")


def test_refusals_list_everything_before_anything_runs(device: Device):
    a, b = tm.tensor(X), tm.tensor(W)
    with tm.config.using(device="gpu", transfers="refuse"):
        y = a @ b + scipy.special.spence(b).sum()
    with pytest.raises(tm.TransferError) as caught:
        y.numpy()
    text = str(caught.value)
    assert all(part in text for part in ("a (float64[4, 3], 96 bytes)", "b (float64[3], 24 bytes)", "spence"))
    assert "a = tm.to_gpu(a)" in text
    assert copies(device) == (0, 0)


def test_policies(device: Device):
    x = tm.to_gpu(X)
    with tm.config.using(device="gpu", transfers="explicit"):
        total, rows = x.sum(), x.sum(1)
    assert float(total) == X.sum()
    with pytest.raises(tm.TransferError, match="rows"):
        np.asarray(rows)
    np.testing.assert_array_equal(tm.to_host(rows), X.sum(1))
    with tm.config.using(device="gpu", transfers="refuse"):
        mean = x.mean()
    with pytest.raises(tm.TransferError, match="mean"):
        float(mean)
    assert tm.to_host(mean) == X.mean()


def test_functions_have_a_device_of_their_own(device: Device):
    f = tm.tensor(device="gpu")(lambda x, w: np.tanh(x @ w).sum())
    with pytest.warns(SEEN, match="[xw] .float64") as records:
        assert isinstance(f(X, W), float)
    assert len(told(records)) == 2
    np.testing.assert_allclose(tm.to_host(f(tm.to_gpu(X), tm.to_gpu(W))), np.tanh(X @ W).sum(), rtol=1e-14)
    compiled = tm.compile(lambda x: x.sum(0), "float64[n, 3]", device="gpu")
    with pytest.warns(SEEN):
        np.testing.assert_array_equal(compiled.run(X), X.sum(0))
    assert compiled.executable.tier == "gpu"


def test_errors_leave_the_session_usable(device: Device):
    x = tm.to_gpu(X)
    bad = np.take(x, tm.tensor(np.array([99])))
    with (
        warnings.catch_warnings(action="ignore", category=SEEN),
        pytest.raises(IndexError, match="99 is out of bounds"),
    ):
        bad.numpy()
    assert float((x * 2).sum()) == 2 * X.sum()


def test_numpys_floating_point_errors_are_numpys(device: Device):
    """The device raises none: where errors are asked for, NumPy runs."""
    x = tm.to_gpu(np.array([1.0, 0.0]))
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        (1 / x).sum().numpy()


def test_arrays_of_other_libraries_come_in_and_go_out_without_the_host(device: Device):
    theirs = device.put(X)
    before = copies(device)
    ours = tm.to_gpu(theirs)
    theirs[0] = 99.0  # a copy on the device keeps what was read
    with tm.config.using(device="gpu", transfers="refuse"):
        y = ours * 2
    assert copies(device) == before
    np.testing.assert_array_equal(tm.to_host(y), X * 2)
    shared = tm.to_gpu(theirs, copy=False)
    assert shared.__cuda_array_interface__["data"] == theirs.__cuda_array_interface__["data"]
    assert y.__cuda_array_interface__["shape"] == X.shape
    assert not hasattr(tm.tensor(X), "__cuda_array_interface__")
    grad = tm.grad(lambda x: (x**2).sum())(ours)
    np.testing.assert_array_equal(tm.to_host(grad), 2 * X)


@pytest.mark.gpu
@pytest.mark.parametrize("library", ["torch", "jax"])
def test_torch_and_jax(device: Device, library: str):
    if device.name.startswith("a device without"):
        pytest.skip("the other library needs the card")
    module = pytest.importorskip(library)
    theirs = module.ones((3, 2), device="cuda") if library == "torch" else module.numpy.ones((3, 2))
    ours = tm.to_gpu(theirs)
    before = copies(device)
    with tm.config.using(device="gpu"):
        y = ours * 3
    session.have([y.node])
    back = module.from_dlpack(y) if library == "torch" else module.dlpack.from_dlpack(y)
    assert copies(device) == before
    assert back.shape == (3, 2)
    assert float(back.sum()) == 18.0


def test_the_device_is_chosen_by_sizes_and_says_why(device: Device):
    few, many = tm.tensor(np.ones(4)), tm.tensor(np.ones(1 << 20))
    with warnings.catch_warnings(), tm.config.using(device="auto"):
        warnings.simplefilter("ignore", SEEN)
        small, large = (np.exp(few) * 2).sum(), many
        for _ in range(30):
            large = np.sin(large) * np.exp(large)
        assert float(small) == pytest.approx(8 * np.e)
        assert copies(device) == (0, 0)
        total = large.sum()
        total.item()
    assert device.copied.to_device == 8 << 20
    assert session.reasons[small.node].startswith("on the CPU: about ")
    assert session.reasons[total.node].startswith("on the device: about ")
