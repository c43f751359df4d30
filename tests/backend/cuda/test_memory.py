"""Memory and launches that fail: an error at the user's line with its bytes, nothing left behind, and a session that works on."""

import gc
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic import residence
from tensormagic.backend.cuda import device as devices
from tensormagic.backend.cuda import memory, transfers
from tensormagic.backend.cuda import run as cuda
from tensormagic.backend.cuda.planned import planned
from tensormagic.ir.errors import MemoryShortError
from tests.backend.cuda.emulated import compiles
from tests.backend.cuda.fake import FakeDevice
from tests.backend.cuda.test_run import graph_of

X = np.linspace(0.5, 2.0, 1000)


@pytest.fixture
def small() -> Generator[FakeDevice]:
    """A device of 64,000 bytes: eight arrays of a thousand numbers."""
    made = FakeDevice(limit=64_000)
    devices.use(made)
    try:
        yield made
    finally:
        devices.use(None)


def many(x):
    parts = [np.sin(x * k) for k in range(1, 12)]
    return np.stack(parts).sum(0)


def few(x):
    return np.sin(x) + 1


def used(device: FakeDevice) -> int:
    """The bytes that are taken by what anybody still holds."""
    gc.collect()
    return device.used


def works(device: FakeDevice) -> None:
    """The device still computes."""
    _, graph = graph_of(few, (X,))
    (found,) = cuda.run(graph, [device.put(X)], device)
    np.testing.assert_allclose(device.fetch(found), np.sin(X) + 1)


def line_of(error: MemoryShortError) -> Any:
    return error.tensor_node  # type: ignore[attr-defined]


def test_what_a_run_needs_is_known_before_it_begins(small: FakeDevice, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(memory, "GATE", 0)
    _, graph = graph_of(many, (X,))
    given = [small.put(X)]
    before = small.copied.launches
    with pytest.raises(
        MemoryShortError, match=r"needs .* KiB of memory at once, the largest array .* the GPU has left"
    ):
        cuda.run(graph, given, small)
    assert small.copied.launches == before
    assert used(small) == X.nbytes
    del given
    works(small)


def test_it_is_asked_from_so_many_bytes_on(small: FakeDevice):
    memory.afford(small, memory.GATE - 1, None)
    with pytest.raises(MemoryShortError):
        memory.afford(small, memory.GATE, None)
    assert memory.GATE == 256 << 20


def test_what_does_not_suffice_is_an_error_at_a_line_with_its_bytes(small: FakeDevice):
    _, graph = graph_of(many, (X,))
    given = [small.put(X)]
    with pytest.raises(
        MemoryShortError, match=r"8,000 bytes are asked for, \d[\d,]* of 64,000 bytes are free"
    ) as caught:
        cuda.run(graph, given, small)
    assert line_of(caught.value) is not None
    assert "test_memory.py" in caught.value.message
    assert used(small) == X.nbytes  # while the error lives: what its frames held has been given back
    del given
    works(small)


def both(x, y):
    return np.sin(x) + y


def test_inputs_that_do_not_fit_are_an_error_with_their_name_and_line_and_are_given_back(small: FakeDevice):
    fits, large = np.ones(5000), np.ones(9000)
    transfers.forget()  # copies of an `x` that another test has been told of
    wanted = r"for y \(float64\[5000\], 40,000 bytes\), .*test_memory.py line \d+: 40,000 bytes are asked for"
    with pytest.warns(tm.HiddenTransferWarning), pytest.raises(MemoryShortError, match=wanted) as caught:
        tm.tensor(both, device="gpu")(fits, fits.copy())
    assert line_of(caught.value) is not None
    assert used(small) == 0  # while the error lives: of the input that there was room for, too
    transfers.forget()
    wanted = r"for x \(float64\[9000\], 72,000 bytes\), .*test_memory.py line .*: 72,000 bytes are asked for"
    with pytest.warns(tm.HiddenTransferWarning, match="72,000 bytes"), pytest.raises(MemoryShortError, match=wanted):
        tm.tensor(few, device="gpu")(large)
    assert used(small) == 0
    works(small)


@pytest.mark.parametrize("function", [few, lambda x: (x * x).sum(), lambda x: np.exp(x) / np.exp(x).sum()])
def test_the_plan_says_how_much_is_taken_at_once(function: Callable[..., Any]):
    traced, graph = graph_of(function, (X,))
    found = planned(graph)
    assert found is not None
    count, _ = found.peak(traced.bind([X.shape]))
    assert 8 <= count <= 3 * X.nbytes


def test_kernels_have_no_temporaries():
    traced, graph = graph_of(few, (X,))
    found = planned(graph)
    assert found is not None
    assert found.peak(traced.bind([X.shape]))[0] == X.nbytes
    assert memory.least(graph, [X])[0] > 2 * X.nbytes


def descent(x, k):
    for _ in range(6):
        x = x - 0.1 * np.tanh(x) * k
    return x


@compiles
@pytest.mark.parametrize("first", [1, 3])
@pytest.mark.parametrize("function", [few, descent], ids=["graph", "loop"])
def test_a_launch_that_fails_leaves_it_to_the_library(function: Callable[..., Any], first: int):
    device = FakeDevice()
    args = (X[:40],) if function is few else (X[:40], 2.0)
    _, graph = graph_of(function, args)
    given = [device.put(a) if isinstance(a, np.ndarray) else a for a in args]
    with tm.config.using(tier="numba"):
        device.broken = lambda number: number >= first
        (found,) = cuda.run(graph, given, device)
        np.testing.assert_allclose(device.fetch(found), function(*args), rtol=1e-14)
        tried = device.copied.launches
        assert tried >= 1
        device.broken = lambda _: False
        (again,) = cuda.run(graph, given, device)
    np.testing.assert_allclose(device.fetch(again), function(*args), rtol=1e-14)
    np.testing.assert_array_equal(device.fetch(given[0]), args[0])
    assert device.copied.launches > tried  # it is tried again at the next call


def test_copies_that_are_on_the_host_too_make_room(small: FakeDevice):
    with tm.config.using(device="gpu", transfers="warn"):
        kept = residence.Resident(host=np.ones(3000))
        kept.device()
        assert used(small) == 24_000
        assert residence.make_room() == 24_000
    assert used(small) == 0
    np.testing.assert_array_equal(small.fetch(kept.device()), np.ones(3000))
