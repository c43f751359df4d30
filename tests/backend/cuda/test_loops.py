"""Loops on a device: iterations are launches, arrays stay where they are, and the host looks at no value that it need not know."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic import session
from tensormagic.backend.cuda import run as cuda
from tensormagic.backend.cuda.compiling.compiler import Codes
from tensormagic.backend.cuda.device import Device
from tensormagic.backend.cuda.loops import small_loops
from tensormagic.backend.cuda.loops.loop_plan import _planned_loop, planned_loop
from tensormagic.backend.cuda.loops.looped import Slot, _period, _trades
from tensormagic.ir.graph import Graph
from tensormagic.ops.regions.loops import LOOP, WHILE
from tests.backend.cuda.emulated import compiles
from tests.backend.cuda.fake import FakeDevice

_RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def no_loop_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Iterations are launches, however few numbers there are."""
    monkeypatch.setattr(small_loops, "LONGEST", -1.0)


X, Y, W = _RNG.normal(size=(6, 4)), _RNG.normal(size=6), _RNG.normal(size=4)
A = X.T @ X + 4 * np.eye(4)
LABELS = np.sign(Y) * 0.5


def logistic(w, x, y):
    return np.mean(np.log(1 + np.exp(-y * (x @ w))))


def trained(w, x, y):
    for _ in range(100):
        w = w - 0.5 * tm.grad(logistic)(w, x, y)
    return w


def trained_until(w, x, y):
    g = tm.grad(logistic)(w, x, y)
    while np.sqrt((g * g).sum()) > 0.15:
        w = w - 0.5 * g
        g = tm.grad(logistic)(w, x, y)
    return w


def steered(x):
    for _ in range(50):
        x = x * 0.5 if x.sum() > 3 else x + 1
    return x


def heated(u):
    u = u.copy()
    for _ in range(20):
        u[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u


def invariant(w, x, y):
    for _ in range(60):
        w = w - 0.01 * (x.T @ (x @ w) - x.T @ y)
    return w


def normalised(a, v):
    for _ in range(10):
        u = a @ v
        v = u / np.sqrt((u * u).sum())
    return v, v @ (a @ v)


def inverted(a, b):
    x = a / (a * a).sum()
    while np.abs(a @ x - np.eye(4)).max() > 1e-8:
        x = x @ (2 * np.eye(4) - a @ x)
    return x @ b


def swapped(a, b):
    for _ in range(21):
        a, b = b, a * 0.5 + 1
    return a, b


def three(a, b, c):
    for k in range(30):
        a, b, c = b, c, a + k
    return a + 0 * b, b, c


def same(a, b):
    for _ in range(12):
        a, b = a + 1, a + 1
    return a, b


def slower(w, x, y):
    rate = 0.1
    for _ in range(12):
        w = w - rate * (x.T @ (x @ w - y)) / 6
        rate = rate * 0.9
    return w, rate


def best(x):
    top, at = 0.0, -1
    for k in range(6):
        if x[k] > top:
            top, at = x[k], k
    return top, at


def three_ways(y):
    k = 0
    while np.abs(y).max() > 0.1 and k < 40:
        if y.sum() > 0:
            y = y - 0.3 * np.abs(y).mean()
        elif y.sum() > -1:
            y = y * 0.7
        else:
            y = y * 0.8 + 0.01
        k += 1
    return y, k


def nested(x):
    out = np.zeros(6)
    for i in range(6):
        total = 0.0
        for j in range(4):
            total = total + x[i, j] * j
        out[i] = total
    return out


def recurrence(x):
    out = np.zeros(6)
    for i in range(1, 6):
        out[i] = out[i - 1] * 0.5 + x[i]
    return out


def newton(y):
    z, target, steps = 1.0, y.sum() ** 2, 0
    while abs(z * z - target) > 1e-9:
        z = z - (z * z - target) / (2 * z)
        steps = steps + 1
    return z, steps


def never(y):
    while y.sum() > 1e9:
        y = y + 1
    return y


def entropy(v, x, labels):
    z = x @ v
    return -(z - np.log(np.exp(z).sum(1, keepdims=True)))[np.arange(len(labels)), labels].mean()


def labelled(v, x, labels):
    for _ in range(12):
        v = v - 0.5 * tm.grad(entropy)(v, x, labels)
    return v


def labelled_batches(v, x, labels):
    for k in range(3):
        v = v - 0.5 * tm.grad(entropy)(v, x[2 * k : 2 * k + 2], labels[2 * k : 2 * k + 2])
    return v


def assigned(x):
    c = x[:2] * 1.0
    for _ in range(3):
        nearest = ((x[:, None] - c) ** 2).sum(-1).argmin(1)
        own = (nearest[:, None] == np.arange(2)) * 1.0
        c = own.T @ x / np.maximum(own.sum(0), 1)[:, None]
    return np.cumsum(c, axis=0)


def sequence(x):
    state = x[0] * 0
    for i in range(len(x)):
        state = np.tanh(state + x[i])
    return state.sum()


PROGRAMS: dict[
    str, tuple[Callable[..., Any], tuple[Any, ...], int]
] = {  # with how often the host may read a number or a flag
    "trained": (trained, (W, X, Y), 1),
    "trained until": (trained_until, (W, X, LABELS), 8),
    "steered": (steered, (Y,), 1),
    "heated": (heated, (Y,), 1),
    "invariant": (invariant, (W, X, Y), 1),
    "normalised": (normalised, (A, W), 1),
    "inverted": (inverted, (A, W), 30),
    "swapped": (swapped, (Y, Y + 3), 1),
    "three": (three, (Y, Y + 1, Y + 2), 1),
    "same": (same, (Y, Y + 1), 1),
    "slower": (slower, (W, X, Y), 1),
    "best": (best, (Y,), 1),
    "three ways": (three_ways, (Y,), 45),
    "nested": (nested, (X,), 7),
    "recurrence": (recurrence, (Y,), 1),
    "newton": (newton, (Y,), 8),
    "never": (never, (Y,), 2),
    "labelled": (labelled, (_RNG.normal(size=(4, 3)), X, np.arange(6) % 3), 2),
    "labelled batches": (labelled_batches, (_RNG.normal(size=(4, 3)), X, np.arange(6) % 3), 1),
    "assigned": (assigned, (X,), 2),
    "gradient of a sequence": (tm.grad(sequence), (X,), 2),
}


def graph_of(function, args):
    traced = tm.trace(function, *args)
    return traced, session.executable(traced).graph


def loops(graph: Graph):
    for node in graph.nodes:
        if node.op in {LOOP, WHILE}:
            yield node
        for value in node.params.values():
            if isinstance(value, Graph):
                yield from loops(value)


def launched(device: Device, graph: Graph, args) -> list[Any]:
    values = [device.put(a) for a in args]
    with tm.config.using(tier="numba"):
        return cuda.run(graph, values, device)


def compared(device: Device, found, traced, args) -> None:
    wanted = session.executable(traced).by_numpy(traced.bind([np.shape(a) for a in args]), *args)
    for one, other in zip(found, wanted, strict=True):
        here = device.fetch(one) if device.is_array(one) else one
        assert np.shape(here) == np.shape(other)
        assert np.asarray(here).dtype == np.asarray(other).dtype
        np.testing.assert_allclose(here, other, rtol=1e-9, atol=1e-12)


@compiles
@pytest.mark.share(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_loop_copies_no_array_and_reads_next_to_nothing(device: Device, name: str):
    function, args, reads = PROGRAMS[name]
    traced, graph = graph_of(function, args)
    before = device.copied.to_host, device.copied.reads
    found = launched(device, graph, args)
    assert device.copied.to_host == before[0]
    assert device.copied.reads - before[1] <= reads
    assert device.copied.launches + device.copied.replays > 0
    compared(device, found, traced, args)


@compiles
def test_a_training_loop_of_100_steps_is_recorded_and_replayed(device: Device):
    _, graph = graph_of(trained, (W, X, Y))
    values = [device.put(a) for a in (W, X, Y)]
    before = device.copied.to_device
    with warnings.catch_warnings(), tm.config.using(tier="numba"):
        warnings.simplefilter("ignore")
        (found,) = cuda.run(graph, values, device)
    assert device.copied.to_device == before
    assert device.copied.to_host == 0
    assert device.copied.replays == 4  # of 22 iterations, 3 kernels each; 12 iterations are launched one by one
    assert device.copied.launches == 37
    np.testing.assert_array_equal(device.fetch(values[0]), W)  # what it was given is as it was
    assert device.is_array(found)


@compiles
def test_without_recordings_it_is_launched(device: Device, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(type(device), "recorded", lambda self, function: None)
    for name in ("steered", "swapped", "trained until"):
        function, args, _ = PROGRAMS[name]
        traced, graph = graph_of(function, args)
        compared(device, launched(device, graph, args), traced, args)
    assert device.copied.replays == 0


@compiles
def test_a_fault_has_the_library_say_what_is_wrong(device: Device):
    def walked(x, k):
        for i in range(9):
            x = x + np.take(x, k + i)
        return x

    args = Y, np.arange(6) - 3
    _, graph = graph_of(walked, args)
    with pytest.raises(IndexError, match="out of bounds"):
        launched(device, graph, args)


@compiles
def test_a_loop_goes_on_by_its_kernels_when_they_are_ready(device: Device, monkeypatch: pytest.MonkeyPatch):
    """The library does the first iterations, with an index, with what the host counts, and with a test."""
    start = Codes.start
    monkeypatch.setattr(Codes, "start", lambda codes, cc: start(codes, cc) or codes.wait())
    monkeypatch.setattr(cuda, "COMPILING", 0.0)
    monkeypatch.setattr(cuda, "PLANNING", 0.0)
    monkeypatch.setattr(cuda, "WORTH_COMPILING", 0.0)
    for name in ("three", "recurrence", "newton"):
        function, args, _ = PROGRAMS[name]
        traced, graph = graph_of(function, args)
        _planned_loop.cache_clear()
        before = device.copied.launches
        found = cuda.run(graph, [device.put(a) for a in args], device)
        assert device.copied.launches > before
        compared(device, found, traced, args)


def test_what_the_host_has_to_know():
    """The index of a loop whose slices it decides; of a step that counts nothing but itself too, and of a sum over data nothing."""
    known = {}
    for name in ("trained", "recurrence", "newton", "three"):
        _, graph = graph_of(*PROGRAMS[name][:2])
        plans = [planned_loop(node) for node in loops(graph)]
        assert all(plan is not None for plan in plans)
        known[name] = [len(plan.hosted) for plan in plans if plan is not None]
    assert known == {"trained": [0], "recurrence": [1], "newton": [1], "three": [0]}


def test_arrays_are_traded():
    """What is left over goes where the next values came from, along chains and around cycles; drawn at random."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        count, more = (int(n) for n in rng.integers(1, 6, 2))
        carried, others = [Slot(k) for k in range(count)], [Slot(100 + k) for k in range(more)]
        pool = [*carried, *others]
        ends = [pool[k] for k in rng.permutation(len(pool))[:count]]
        wanted = [s.array for s in ends]
        moves = _trades(carried, ends)
        before = {s.array for s in pool}
        for _ in range(_period(moves)):
            arrays = [source.array for _, source in moves]
            for (target, _), array in zip(moves, arrays, strict=True):
                target.array = array
            if wanted is not None:
                assert [s.array for s in carried] == wanted
                wanted = None
            assert {s.array for s in pool} == before  # none is lost, none is there twice
        assert [s.array for s in pool] == [*range(count), *range(100, 100 + more)]


def test_nothing_but_launches_is_recorded():
    device = FakeDevice()
    array = device.put(Y)
    for forbidden in (lambda: device.put(Y), lambda: device.read(array), lambda: device.library.zeros(3)):
        with pytest.raises(AssertionError, match="while launches are recorded"):
            device.recorded(forbidden)


def walk(x, places):
    total = x * 0.0
    for k in range(8):
        total = total + np.tanh(x[places[k]] * x)
    return total


@compiles
def test_an_index_out_of_bounds_in_a_counted_loop_is_numpys(device: Device):
    """The library runs such a loop from its first iteration, whatever launches have done."""
    x, places = np.linspace(0.5, 2.0, 20), np.array([0, 1, 2, 50, 3, 4, 5, 6])
    _, graph = graph_of(walk, (x, places))
    with tm.config.using(tier="numba"), pytest.raises(IndexError, match="index 50 is out of bounds"):
        cuda.run(graph, [device.put(x), device.put(places)], device)
    places[3] = -1
    with tm.config.using(tier="numba"):
        (found,) = cuda.run(graph, [device.put(x), device.put(places)], device)
    np.testing.assert_allclose(device.fetch(found), walk(x, places), rtol=1e-14)
