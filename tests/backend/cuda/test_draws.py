"""Uniform numbers drawn on the device: NumPy's, bit for bit, and the state that they leave behind."""

import warnings

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.cuda import draws, transfers
from tensormagic.backend.cuda import run as cuda
from tensormagic.backend.cuda.device import Device
from tensormagic.ir.errors import HiddenTransferWarning
from tests.backend.cuda.emulated import compiles
from tests.backend.cuda.test_run import graph_of

X = np.linspace(0.5, 2.0, 7)


@pytest.fixture
def used(device: Device, monkeypatch: pytest.MonkeyPatch) -> Device:
    monkeypatch.setattr(draws, "FEWEST", 1)
    return device


def run(device, function, tier="numba"):
    _, graph = graph_of(function, (X,))
    with tm.config.using(tier=tier):
        found = cuda.run(graph, [device.put(X)], device)
    return [device.fetch(f) if device.is_array(f) else f for f in found]


@compiles
@pytest.mark.parametrize("count", [1, 2, 255, 256, 257, 4096, 5000])
def test_draws_are_numpys(used: Device, count: int):
    def several(x):
        rng = np.random.default_rng(7)
        a = rng.random(count)
        b = rng.uniform(-2.5, 3.25, size=(count, 2))
        return a, b * 1, rng.normal(size=3) + x[:3], rng.random((2, count))

    before = used.copied.launches
    for own, numpys in zip(run(used, several), several(X), strict=True):
        np.testing.assert_array_equal(own, numpys)
    assert used.copied.launches - before >= 3


@compiles
def test_each_thread_goes_on(used: Device, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(draws, "MOST_BLOCKS", 2)
    (own,) = run(used, lambda x: np.random.default_rng(11).random(3000) + 0 * x[0])
    np.testing.assert_array_equal(own, np.random.default_rng(11).random(3000))


@compiles
def test_a_dropout_in_a_loop_copies_nothing(used: Device):
    def dropped(x):
        rng = np.random.default_rng(0)
        for _ in range(4):
            x = np.where(rng.random(7) < 0.3, 0.0, x * 1.5)
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("error", HiddenTransferWarning)
        _, graph = graph_of(dropped, (X,))
        assert not cuda.offenders(graph)
        given = [used.put(X)]
        before = used.copied.to_device
        with tm.config.using(tier="numba"):
            (own,) = cuda.run(graph, given, used)
    np.testing.assert_array_equal(used.fetch(own), dropped(X))
    assert used.copied.to_device == before


@compiles
@pytest.mark.parametrize("kind", [np.random.SFC64, np.random.Philox, np.random.MT19937, np.random.PCG64DXSM])
def test_other_generators_are_the_hosts_and_that_is_told(used: Device, kind):
    with pytest.warns(HiddenTransferWarning, match="random .np.random draws it on the host."):
        (own,) = run(used, lambda x: np.random.Generator(kind(5)).random(40) + 0 * x[0])
    np.testing.assert_array_equal(own, np.random.Generator(kind(5)).random(40))


def test_few_numbers_and_the_library_alone_are_drawn_on_the_host(used: Device, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(draws, "FEWEST", 1 << 14)
    with pytest.warns(HiddenTransferWarning):
        run(used, lambda x: np.random.default_rng(1).random(9) + x[0])
    transfers.forget()
    monkeypatch.setattr(draws, "FEWEST", 1)
    with pytest.warns(HiddenTransferWarning):
        (own,) = run(used, lambda x: np.random.default_rng(1).random(9) + 0 * x[0], tier="numpy")
    np.testing.assert_array_equal(own, np.random.default_rng(1).random(9))
