"""Loops over few numbers as one kernel, which one thread runs: nests, branches, loops on data, stores, folds, sequences."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.cuda import run as cuda
from tensormagic.backend.cuda.device import Device
from tensormagic.backend.cuda.kernels import one_thread
from tensormagic.backend.cuda.loops import small_loops
from tensormagic.backend.cuda.loops.small_loops import alone
from tests.backend.cuda import test_loops, test_nested
from tests.backend.cuda.emulated import compiles
from tests.backend.cuda.test_loops import compared, graph_of, launched, loops

pytestmark = compiles
_RNG = np.random.default_rng(8)
X = _RNG.normal(size=6)
SQUARE = _RNG.normal(size=(4, 4)) + 4 * np.eye(4)


def picked(x):
    """Places of extremes, and stores where data say."""
    x, order = x.copy(), np.zeros(len(x), np.int64)
    for i in range(len(x)):
        k = x.argmax()
        order[i] = k
        x[k] = -99
    return order, x


def sorted_by_trades(x):
    x = x.copy()
    for _ in range(len(x)):
        for j in range(len(x) - 1):
            if x[j] > x[j + 1]:
                t = x[j]
                x[j] = x[j + 1]
                x[j + 1] = t
    return x


def running(x):
    for _ in range(4):
        x = np.cumsum(x) * x.dtype.type(0.5)
    return x


def counted(k):
    out = np.zeros(8, np.int64)
    for i in range(len(k)):
        out[k[i]] += 1
    return out


def edits(a, b):
    """The distance of Levenshtein: each step needs three others."""
    d = np.zeros((len(a) + 1, len(b) + 1), np.int64)
    d[:, 0] = np.arange(len(a) + 1)
    d[0, :] = np.arange(len(b) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d[-1, -1]


def halved(n):
    """A loop on integers of data in a loop, with a branch."""
    out = np.zeros(len(n), np.int64)
    for i in range(len(n)):
        v, steps = n[i], 0
        while v != 1:
            v = v // 2 if v % 2 == 0 else 3 * v + 1
            steps += 1
        out[i] = steps
    return out


def stepped(y):
    t = 0.0
    while t < 1.0 and np.abs(y).max() < 100:
        y = y + 0.05 * np.array([y[1], -np.sin(y[0])])
        t += 0.05
    return y, t


def powers(a):
    found = np.eye(4)
    for _ in range(7):
        found = found @ a
        found = found / np.abs(found).max()
    return found


def until_negative(x):
    found = 0
    for i in range(len(x)):
        if x[i] < 0:
            break
        found = found + i
    return found


def eliminated(a, b):
    """Slices whose size the iteration decides are masks, or the library's."""
    a, b, n = a.copy(), b.copy(), len(b)
    for k in range(n):
        for i in range(k + 1, n):
            m = a[i, k] / a[k, k]
            a[i] = a[i] - m * a[k]
            b[i] = b[i] - m * b[k]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - (a[i] * x).sum()) / a[i, i]
    return x


def lives(g):
    for _ in range(5):
        n = sum(np.roll(np.roll(g, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
        g = ((n == 3) | ((g == 1) & (n == 2))).astype(g.dtype)
    return g


def until_all(x):
    k = 0
    while (x > 0).any() and not (x < -5).all():
        x = x - 0.7
        k += 1
    return x, k


def squeezed(x):
    """Values that pass from one loop over elements to another."""
    for _ in range(3):
        x = (x - x.min()) / (x.max() - x.min())
        x = np.sqrt(np.clip(x, x.dtype.type(0.1), x.dtype.type(0.8)))
    return x


def decayed(x):
    out = np.ones_like(x)
    for i in range(1, len(x)):
        out[i] = out[i - 1] * np.exp(-abs(x[i]))
    return out.sum()


OWN: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "picked": (picked, (X,)),
    "sorted by trades": (sorted_by_trades, (X,)),
    "sorted by trades, of integers": (sorted_by_trades, (_RNG.integers(0, 9, 7).astype("i4"),)),
    "sorted by trades, of none": (sorted_by_trades, (X[:0],)),
    "running": (running, (X,)),
    "running, in single precision": (running, (X.astype("f4"),)),
    "counted": (counted, (_RNG.integers(0, 8, 20),)),
    "edits": (edits, (_RNG.integers(0, 3, 5), _RNG.integers(0, 3, 7))),
    "halved": (halved, (np.array([6, 7, 27]),)),
    "stepped": (stepped, (np.array([1.0, 0.0]),)),
    "powers": (powers, (SQUARE,)),
    "until negative": (until_negative, (np.array([1.0, 2, 3, -1, 5]),)),
    "eliminated": (eliminated, (SQUARE, X[:4])),
    "lives": (lives, (_RNG.integers(0, 2, (6, 6)),)),
    "lives, of bytes": (lives, (_RNG.integers(0, 2, (5, 33)).astype("i1"),)),
    "until all": (until_all, (X,)),
    "squeezed": (squeezed, (X,)),
    "squeezed, in single precision": (squeezed, (X.astype("f4"),)),
    "decayed": (decayed, (X,)),
    "decayed, its gradient": (tm.grad(decayed), (X,)),
}
PROGRAMS = OWN | {name: found[:2] for known in (test_loops, test_nested) for name, found in known.PROGRAMS.items()}
APART = {"labelled batches", "epochs"}  # whose checks only launches have
NARROW = {np.dtype("f4"): 2e-6}


@pytest.fixture
def any_loop_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it costs, one thread runs it."""
    monkeypatch.setattr(small_loops.Alone, "pays", lambda *given: True)


@pytest.mark.share(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_one_thread_computes_what_numpy_computes(device: Device, any_loop_is_small: None, name: str):
    function, args = PROGRAMS[name]
    traced, graph = graph_of(function, args)
    whole = [node for node in graph.nodes if node.op.name in {"loop", "while"}]
    before = device.copied.to_host, device.copied.launches
    found = launched(device, graph, args)
    assert device.copied.to_host == before[0]
    if name not in APART:
        assert device.copied.reads <= len(whole)  # a flag for faults
        assert device.copied.replays == 0
        assert device.copied.launches - before[1] <= len(graph.nodes)
    if args[0].dtype in NARROW:
        expected = function(*(a.astype("f8") for a in args))
        np.testing.assert_allclose(device.fetch(found[0]), expected, rtol=NARROW[args[0].dtype], atol=1e-7)
    else:
        compared(device, found, traced, args)


def test_a_nest_is_one_launch(device: Device):
    """A loop in a loop in a loop, whose launches would be 200."""
    function, args = PROGRAMS["product"]
    traced, graph = graph_of(function, args)
    found = launched(device, graph, args)
    assert (device.copied.launches, device.copied.replays, device.copied.reads) == (1, 0, 0)
    compared(device, found, traced, args)


def _pays(function: Callable[..., Any], *args: Any) -> bool:
    _, graph = graph_of(function, args)
    (node,) = [n for n in graph.nodes if n.op.name in {"loop", "while"}]
    one = alone(node)
    assert one is not None
    shapes = {p: np.shape(a) for p, a in zip(graph.parameters, args, strict=True)}
    given = [shapes.get(node.args[k], ()) for k in one.given]
    return one.pays(100, one.graph.bind(given))


def test_sizes_decide():
    """One thread where launches take longer; many threads for the rest, and for what takes too long for one kernel."""

    def heated(u):
        for _ in range(100):
            u = u + 0.1 * (np.roll(u, 1) - u)
        return u

    assert _pays(heated, np.ones(6))
    assert not _pays(heated, np.ones(2000))
    (node,) = [n for n in graph_of(heated, (np.ones(6),))[1].nodes if n.op.name == "loop"]
    one = alone(node)
    assert one is not None
    symbols = one.graph.bind([(6,) for _ in one.given])
    assert one.pays(100_000, symbols)
    assert not one.pays(100_000_000, symbols)
    assert one.pays(None, symbols)


def test_what_is_wrong_is_numpys(device: Device, any_loop_is_small: None):
    def walked(x, at):
        for k in range(3):
            x = x + x[at[k]]
        return x

    _, graph = graph_of(walked, (X, np.array([0, 1, 9])))
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        launched(device, graph, (X, np.array([0, 1, 9])))
    (found,) = launched(device, graph, (X, np.array([0, -1, 2])))
    np.testing.assert_allclose(device.fetch(found), walked(X, np.array([0, -1, 2])), rtol=1e-14)


def test_one_that_does_not_end_is_given_up(device: Device, any_loop_is_small: None, monkeypatch: pytest.MonkeyPatch):
    """A kernel cannot be interrupted: after so many iterations, of any loop in it, the loop begins again as launches."""
    monkeypatch.setattr(one_thread, "MOST_ITERATIONS", 20)

    def halved_again(v):
        total = v * 0
        for _ in range(2):
            w = v * 1.0
            while w.sum() > 1e-9:
                w = w * 0.5
            total = total + w
        return total

    traced, graph = graph_of(halved_again, (X * X,))
    before = device.copied.launches
    found = launched(device, graph, (X * X,))
    compared(device, found, traced, (X * X,))
    assert device.copied.launches - before > 10


def test_it_is_compiled_beside_the_first_runs(device: Device, monkeypatch: pytest.MonkeyPatch):
    """The library runs the loop meanwhile."""
    monkeypatch.setattr(cuda, "COMPILING", 0.0)
    monkeypatch.setattr(cuda, "PLANNING", 0.0)

    def grown(v):
        for _ in range(41):
            v = v * 1.01 + 1
        return v

    traced, graph = graph_of(grown, (X,))
    values = [device.put(X)]
    compared(device, cuda.run(graph, values, device), traced, (X,))
    (node,) = loops(graph)
    one = alone(node)
    assert one is not None
    assert one.planned.codes.is_asked_for
    assert one.planned.codes.wait(60)
    before = device.copied.launches
    compared(device, cuda.run(graph, values, device), traced, (X,))
    assert device.copied.launches == before + 1
