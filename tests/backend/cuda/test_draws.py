"""Uniform numbers drawn on the device: NumPy's, bit for bit, and the state that they leave behind."""

# tests named elsewhere

import warnings

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.cuda import run as cuda
from tensormagic.backend.cuda import transfers
from tensormagic.backend.cuda.device import Device
from tensormagic.backend.cuda.kernels import draws, generators
from tensormagic.ir.errors import HiddenTransferWarning
from tensormagic.ops.draws.state import KINDS
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
@pytest.mark.parametrize("kind", generators.GENERATORS)
@pytest.mark.parametrize("count", [1, 2, 3, 255, 256, 257, 4096, 5000])
def test_draws_are_numpys(used: Device, count: int, kind: str):
    """And so is the state that each leaves: what the host draws behind it, words and halves of words, is NumPy's too."""

    def several(x):
        rng = np.random.Generator(getattr(np.random, kind)(7))
        a = rng.random(count)
        b = rng.uniform(-2.5, 3.25, size=(count, 2))
        half = rng.integers(0, 100, 3, dtype=np.int32)
        return a, b * 1, half, rng.normal(size=3) + x[:3], rng.random((2, count)), rng.normal(size=2)

    before = used.copied.launches
    for own, numpys in zip(run(used, several), several(X), strict=True):
        np.testing.assert_array_equal(own, numpys)
    assert used.copied.launches - before >= 3


@compiles
@pytest.mark.parametrize("kind", generators.GENERATORS)
def test_each_thread_goes_on(used: Device, monkeypatch: pytest.MonkeyPatch, kind: str):
    monkeypatch.setattr(generators, "MOST_BLOCKS", 2)
    bits = getattr(np.random, kind)
    (own,) = run(used, lambda x: np.random.Generator(bits(11)).random(5000) + 0 * x[0])
    np.testing.assert_array_equal(own, np.random.Generator(bits(11)).random(5000))


@compiles
@pytest.mark.parametrize("before", range(6))
def test_philox_begins_anywhere_in_a_block(used: Device, before: int):
    """And its counter, of four words, carries over."""

    def drawn(x):
        rng = np.random.Generator(np.random.Philox(counter=6 * 2**192 - 9, key=2**127 + 3))
        first = rng.random(before) if before else x
        return first, *(rng.random(n) for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 40)), rng.integers(0, 2**60, 2)

    for own, numpys in zip(run(used, drawn), drawn(X), strict=True):
        np.testing.assert_array_equal(own, numpys)


@compiles
def test_a_dropout_in_a_loop_copies_nothing(used: Device):
    def dropped(x):
        rng = np.random.default_rng(0)
        for _ in range(4):
            x = np.where(rng.random(7) < 0.3, 0.0, x * 1.5)
        return x

    with warnings.catch_warnings(action="error", category=HiddenTransferWarning):
        _, graph = graph_of(dropped, (X,))
        assert not cuda.offenders(graph)
        given = [used.put(X)]
        before = used.copied.to_device
        with tm.config.using(tier="numba"):
            (own,) = cuda.run(graph, given, used)
    np.testing.assert_array_equal(used.fetch(own), dropped(X))
    assert used.copied.to_device == before


@compiles
@pytest.mark.parametrize("kind", [np.random.SFC64, np.random.MT19937])
def test_other_generators_are_the_hosts_and_that_is_told(used: Device, kind):
    with pytest.warns(HiddenTransferWarning, match="random .np.random draws it on the host."):
        (own,) = run(used, lambda x: np.random.Generator(kind(5)).random(40) + 0 * x[0])
    np.testing.assert_array_equal(own, np.random.Generator(kind(5)).random(40))


def test_few_numbers_and_the_library_alone_are_drawn_on_the_host(used: Device, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(draws, "FEWEST", 1 << 14)
    _, graph = graph_of(lambda x: np.random.default_rng(1).random(9) + x[0], (X,))
    assert [str(one) for one in cuda.offenders(graph)]  # known before anything runs
    with pytest.warns(HiddenTransferWarning):  # as many as there are elements: known when it runs
        run(used, lambda x: np.random.default_rng(1).random(x.shape[0]) + x)
    transfers.forget()
    monkeypatch.setattr(draws, "FEWEST", 1)
    with pytest.warns(HiddenTransferWarning):
        (own,) = run(used, lambda x: np.random.default_rng(1).random(9) + 0 * x[0], tier="numpy")
    np.testing.assert_array_equal(own, np.random.default_rng(1).random(9))


METHODS = {
    "normal": lambda rng: rng.normal(1.5, 2.0, (5, 7)),
    "standard_normal": lambda rng: rng.standard_normal(300),
    "integers": lambda rng: rng.integers(0, 1000, 40),
    "exponential": lambda rng: rng.exponential(2.0, 33),
    "gamma": lambda rng: rng.gamma(0.7, 2.0, 33),
    "poisson": lambda rng: rng.poisson(3.5, 33),
    "binomial": lambda rng: rng.binomial(20, 0.3, 33),
    "permutation": lambda rng: rng.permutation(31),
    "single precision": lambda rng: rng.random(33, dtype=np.float32),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", METHODS)
def test_what_the_host_draws_is_numpys_and_a_copy_with_its_bytes(device: Device, name: str, kind: str):
    """Of each generator, whichever draw comes before and after."""
    draw = METHODS[name]

    def several(x):
        rng = np.random.Generator(getattr(np.random, kind)(3))
        first = draw(rng)
        return first * 1, draw(rng) * 2, rng.random(3) + x[0]

    _, graph = graph_of(several, (X,))
    told = [str(hidden) for hidden in cuda.offenders(graph)]
    drawn = several(X)
    assert any(f"{drawn[0].nbytes:,} bytes" in text and "np.random draws on the host" in text for text in told), told
    given, before = [device.put(X)], device.copied.to_device
    with warnings.catch_warnings(), tm.config.using(tier="numpy"):
        warnings.simplefilter("ignore", HiddenTransferWarning)
        found = cuda.run(graph, given, device)
    assert device.copied.to_device - before == 2 * drawn[0].nbytes + drawn[2].nbytes
    for own, numpys in zip(found, drawn, strict=True):
        np.testing.assert_array_equal(device.fetch(own), numpys)
