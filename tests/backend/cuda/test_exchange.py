"""What comes from other libraries and goes to them on the device, and what is refused by each policy."""

import warnings

import numpy as np
import pytest

import tensormagic as tm
from tensormagic import session
from tensormagic.backend.cuda.device import Device
from tests.backend.cuda.emulated import compiles

X = np.arange(12.0).reshape(4, 3)
W = np.array([0.5, -1.0, 2.0])
LARGE = np.random.default_rng(0).normal(size=(9, 14))


class OnlyDLPack:
    """An array of a library that knows no other protocol."""

    def __init__(self, held):
        self.held = held

    def __dlpack__(self, **options):
        return self.held.__dlpack__()

    def __dlpack_device__(self):
        return self.held.__dlpack_device__()


def copies(device: Device) -> tuple[int, int]:
    return device.copied.to_device, device.copied.to_host


def test_dlpack_alone_is_enough(device: Device):
    if not device.name.startswith("a device without"):
        pytest.skip("CuPy takes none without its stream")
    theirs = OnlyDLPack(device.put(X))
    before = copies(device)
    ours = tm.to_gpu(theirs)
    with tm.config.using(device="gpu", transfers="refuse"):
        y = ours * 2
    session.have([y.node])
    assert copies(device) == before
    np.testing.assert_array_equal(tm.to_host(y), X * 2)


def test_dlpack_gives_the_memory_itself(device: Device):
    x = tm.to_gpu(X)
    with tm.config.using(device="gpu"):
        y = x + 1
    session.have([y.node])
    before = copies(device)
    assert y.__dlpack_device__()[0] == 2
    capsule = y.__dlpack__()
    if device.name.startswith("a device without"):
        assert capsule.__cuda_array_interface__["data"] == y.__cuda_array_interface__["data"]
    assert copies(device) == before
    del y, x
    if device.name.startswith("a device without"):
        np.testing.assert_array_equal(device.fetch(capsule), X + 1)


VIEWS = {
    "a part": lambda xp, x: x[1:, 2:],
    "off a boundary of 16 bytes": lambda xp, x: xp.reshape(x, (-1,))[1:],
    "every second": lambda xp, x: x[::2, 1::3],
    "backwards": lambda xp, x: x[::-1],
    "transposed": lambda xp, x: xp.transpose(x),
    "one column": lambda xp, x: x[:, 3],
}


@compiles
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "complex128"])
@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("name", VIEWS)
def test_views_of_other_libraries_are_read_as_they_lie(device: Device, name: str, copy: bool, dtype: str):
    held = (LARGE * (1 + 2j) if dtype == "complex128" else LARGE).astype(dtype)
    theirs, plain = VIEWS[name](device.library, device.put(held)), VIEWS[name](np, held)
    ours = tm.to_gpu(theirs, copy=copy)
    with tm.config.using(device="gpu", tier="numba"):
        y, total = ours * 2 + 1, (ours * 3).sum()
        session.have([y.node, total.node])
    np.testing.assert_array_equal(tm.to_host(y), plain * held.dtype.type(2) + held.dtype.type(1))
    np.testing.assert_allclose(
        tm.to_host(total), (plain * held.dtype.type(3)).sum(), rtol=2e-2 if dtype == "float16" else 1e-5
    )


def test_explicit_refuses_inputs_by_name_and_allows_numbers(device: Device, capsys: pytest.CaptureFixture[str]):
    a, b, c = tm.tensor(X), tm.tensor(W), tm.to_gpu(X)
    with tm.config.using(device="gpu", transfers="explicit"):
        y, total = a @ b, c.sum()
    with pytest.raises(tm.TransferError) as caught:
        y.numpy()
    assert all(part in str(caught.value) for part in ("a (float64[4, 3], 96 bytes)", "b (float64[3], 24 bytes)"))
    assert "c (" not in str(caught.value)
    with warnings.catch_warnings(action="error", category=tm.HiddenTransferWarning):
        assert float(total) == X.sum()
        print(total)
    assert "66" in capsys.readouterr().out
    a, b = tm.to_gpu(a), tm.to_gpu(b)
    with tm.config.using(device="gpu", transfers="explicit"):
        y = a @ b
    np.testing.assert_allclose(tm.to_host(y), X @ W)


NUMBERS = {
    "float": float,
    "int": int,
    "bool": bool,
    "print": print,
    "str": str,
    "item": lambda v: v.item(),
    "numpy": lambda v: v.numpy(),
    "format": lambda v: f"{v:.3f}",
    "if": lambda v: 1 if v > 0 else 2,
}
ARRAYS = {
    "asarray": np.asarray,
    "print": print,
    "str": str,
    "tolist": lambda v: v.tolist(),
    "numpy": lambda v: v.numpy(),
    "float of an element": lambda v: float(v[0]),
    "iteration": lambda v: [float(e) for e in v],
    "DLPack for the host": lambda v: v.__dlpack__(dl_device=(1, 0)),
}


@pytest.mark.parametrize(("kind", "name"), [*(("number", n) for n in NUMBERS), *(("array", n) for n in ARRAYS)])
def test_refuse_refuses_whatever_reads_a_value(device: Device, kind: str, name: str):
    x = tm.to_gpu(X)
    with tm.config.using(device="gpu", transfers="refuse"):
        found = x.sum() if kind == "number" else x.sum(1)
        session.have([found.node])  # as the end of a cell does
    before = copies(device)
    with pytest.raises(tm.TransferError):
        (NUMBERS if kind == "number" else ARRAYS)[name](found)
    assert copies(device) == before
    assert "on the device" in repr(found) or "not computed" in repr(found)
    np.testing.assert_array_equal(tm.to_host(found), X.sum() if kind == "number" else X.sum(1))
