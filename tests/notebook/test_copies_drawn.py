"""Pictures of what a GPU computes: each copy is a vertex with its bytes, and together they are what was copied."""

import warnings

import numpy as np
import pytest
import scipy.special

import tensormagic as tm
from tensormagic import session
from tensormagic.backend.cuda.device import Device
from tensormagic.notebook.pictures.adaptor import portrait
from tensormagic.notebook.pictures.scene import View

X = np.arange(12.0).reshape(4, 3)
W = np.array([0.5, -1.0, 2.0], np.float32)


def copied(view: View, way: str) -> int:
    """The bytes that a picture says are copied."""
    return sum(
        int(v.label.removesuffix(" B")) for v in view.vertices if v.kind == "sent" and v.type == f"copied to {way}"
    )


@tm.tensor
def drawn(x, w):
    return x + np.random.default_rng(3).normal(size=(4, 3)) * w


PROGRAMS = {
    "inputs": lambda x, w: (x @ w + np.tanh(x).sum(1), [X, W]),
    "one input, read often": lambda x, _: (x.T @ x + x.sum(), [X]),
    "a step of the host": lambda x, w: (scipy.special.spence(np.abs(x) * w + 1) * 2 + np.sin(x), [X, W]),
    "two steps of the host": lambda x, _: (
        scipy.special.spence(x + 1) + scipy.special.spence(scipy.special.spence(x + 1)), [X],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_drawn_is_what_is_copied(device: Device, name: str):
    with warnings.catch_warnings(), tm.config.using(device="gpu", tier="numpy"):
        warnings.simplefilter("ignore", tm.HiddenTransferWarning)
        value, _ = PROGRAMS[name](tm.tensor(X), tm.tensor(W))
        shown = portrait({"value": value.node}, {}, "", device="gpu")
        before = device.copied.to_device, device.copied.to_host
        session.have([value.node])
    views = shown.scene("").views
    assert {v.name for v in views} == {"captured", "rewritten", "kernels"}
    for view in views:
        assert copied(view, "the GPU") == device.copied.to_device - before[0], view.name
        assert copied(view, "the host") == device.copied.to_host - before[1], view.name
        ends = {e.source for e in view.edges} | {e.target for e in view.edges}
        assert all(v.id in ends for v in view.vertices)
        assert sum(v.is_op for v in view.vertices) == sum(v.is_op and v.kind != "sent" for v in view.vertices)


def repeated(x):
    for _ in range(3):
        x = scipy.special.spence(x * 0.5 + 1)
    return x


def in_a_branch(x):
    for _ in range(2):
        if np.sum(x) > -1e9:  # noqa: SIM108 (a branch)
            x = scipy.special.spence(np.abs(x) + 1)
        else:
            x = x + 1
    return x


@pytest.mark.parametrize(("function", "times"), [(repeated, 3), (in_a_branch, 2)])
def test_what_is_copied_in_loops_and_branches_is_drawn_there(device: Device, function, times: int):
    """With the bytes of one iteration; the loop itself says how many there are."""
    with warnings.catch_warnings(), tm.config.using(device="gpu", tier="numpy"):
        warnings.simplefilter("ignore", tm.HiddenTransferWarning)
        value = tm.tensor(function)(tm.to_gpu(X))
        shown = portrait({"value": value.node}, {}, "", device="gpu")
        before = device.copied.to_device, device.copied.to_host
        session.have([value.node])
    for view in shown.scene("").views:
        sent = [v for v in view.everything() if v.kind == "sent"]
        assert sent
        assert not [v for v in view.vertices if v.kind == "sent"]
        for way, bytes_ in (
            ("the GPU", device.copied.to_device - before[0]),
            ("the host", device.copied.to_host - before[1]),
        ):
            drawn_bytes = sum(int(v.label.removesuffix(" B")) for v in sent if v.type == f"copied to {way}")
            assert drawn_bytes * times == bytes_


def test_what_lies_there_is_not_copied(device: Device):
    x = tm.to_gpu(X)
    value = x * 2 + tm.tensor(W)
    (view, *_) = portrait({"value": value.node}, {}, "").scene("").views  # it is computed there, whatever the cell says
    assert copied(view, "the GPU") == W.nbytes
    on_host = tm.tensor(X) * 2
    (view, *_) = portrait({"value": on_host.node}, {}, "").scene("").views
    assert not [v for v in view.vertices if v.kind == "sent"]


def test_drawn_numbers_and_gradients(device: Device):
    graph = tm.trace(drawn, "float64[4, 3]", "float32[3]")
    from tensormagic.notebook.pictures.copies import Copies

    ids = {n: f"v{k}" for k, n in enumerate(graph.nodes)}
    found = [c.way for c in Copies((), ids, int)._copies(graph)]
    assert found == ["copied to the GPU"] * 3  # two arguments, and the numbers that the host draws
    with warnings.catch_warnings(), tm.config.using(device="gpu", tier="numpy"):
        warnings.simplefilter("ignore", tm.HiddenTransferWarning)
        x, w = tm.tensor(X), tm.tensor(np.ones(3))
        loss = (np.tanh(x @ w) ** 2).sum()
        slope = tm.grad(lambda w: (np.tanh(x @ w) ** 2).sum())(w)
        shown = portrait({"loss": loss.node}, {"grad_w": slope.node}, "", device="gpu")
    views = {v.name: v for v in shown.scene("").views}
    assert copied(views["gradient"], "the GPU") == X.nbytes + 24


def test_a_cell_shows_its_copies(notebook, device: Device):
    with warnings.catch_warnings(action="ignore", category=tm.HiddenTransferWarning):
        ran = notebook.ok("%%tensor --device gpu --show graph\nz = X @ w\nz.sum()")
    assert "copied to the GPU" in str(ran.data)
    assert "960 B" in str(ran.data)
