"""What a compiled function needs, known before it runs: held against what is allocated, and refused where there is not as much."""

import linecache
import tracemalloc

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.running import buffers

RNG = np.random.default_rng(0)
V, X, W, S = np.ones(100_000), RNG.normal(size=(4000, 30)), RNG.normal(size=(30, 20)), RNG.normal(size=(300, 300))
OBJECTS = 16_384  # bytes of Python's own objects in a run: lists, tuples, heads of arrays


def loop(x):
    for _ in range(4):
        x = x * 0.9 + np.sin(x)
    return x


def loss(x, w):
    return np.mean(np.log(1 + np.exp(-((x @ w) ** 2))))


def chosen(x):
    return np.tanh(x) if x.sum() > 0 else x - 1


def called_in_branch(x):
    return np.cumsum(x @ x, 1) if x.sum() > -1e9 else x - 1


def history(x):
    h = np.zeros((20, len(x)))
    for k in range(20):
        x = np.cos(x)
        h[k] = x
    return h


def solved(a, b):
    for _ in range(3):
        b = np.tanh(a @ b)
    return b


def scattered(x):
    z = np.zeros(50_000)
    z[::2] += x[:25_000]
    return z * 2


def soft(x):
    e = np.exp(x - x.max(1)[:, None])
    return e / e.sum(1)[:, None]


EXACT = {
    "map": (lambda x: np.exp(x) - 1, "float64[n]", V, "8*n"),
    "two results": (lambda x: (np.cumsum(x), x.sum()), "float64[n]", V, "8*n+8"),
    "products": (lambda x, w: np.tanh(x @ w) @ w.T, "float64[n, m]; float64[m, k]", (X, W), "max(16*k*n, 8*k*n+8*m*n)"),
    "outer": (lambda x: x[:, None] * x, "float64[n]", V[:900], "8*n^2"),
    "rows": (soft, "float64[n, m]", X, "8*m*n"),
    "loop": (loop, "float64[n]", V, "8*n"),
    "gradients": (tm.grad(loss, (0, 1)), "float64[n, m]; float64[m, k]", (X, W), ""),
    "branch": (chosen, "float64[n]", V, ""),
    "call in a branch": (called_in_branch, "float64[n, n]", S, ""),
    "history": (history, "float64[n]", V[:5000], "168*n"),
    "gradient of a history": (tm.grad(lambda x: history(x).sum()), "float64[n]", V[:5000], ""),
    "gradient of a loop": (tm.grad(lambda x: loop(x).sum()), "float64[n]", V, ""),
    "products in a loop": (solved, "float64[n, n]; float64[n, k]", (S, S[:, :200]), ""),
    "joined": (lambda x: np.concatenate([x, x * 2]).reshape(2, -1), "float64[n]", V, "32*n"),
    "turned": (lambda x: np.exp(x.T), "float64[n, m]", X, "8*m*n"),
    "zeros": (lambda x: np.zeros(len(x) * 3), "float64[n]", V, "24*n"),
    "stores": (scattered, "float64[n]", V, ""),
    "small numbers": (lambda x: (x > 0.5).astype(np.int8), "float32[n]", V.astype(np.float32), "n"),
    "argument in another order": (np.exp, "float64[n, m]", X.T, "8*m*n"),
    "sorted": (lambda x: np.sort(x) + 1, "float64[n]", V, "16*n"),
}


pytestmark = pytest.mark.usefixtures("by_numba")


def made(fun, types):
    return tm.compile(fun, *(t.strip() for t in types.split(";")))


@pytest.fixture
def nothing_at_hand(monkeypatch):
    """No memory is kept for the next array: what is counted is there for the run's own arrays."""
    monkeypatch.setattr(buffers, "MOST_BYTES", 0)


def measured(f, args):
    """The most that is allocated at once: the least of several runs, since other threads allocate, too."""
    f(*args)
    found = []
    for _ in range(8):
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        result = f(*args)
        found.append(tracemalloc.get_traced_memory()[1] - before)
        tracemalloc.stop()
    return min(found), result


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.usefixtures("nothing_at_hand")
def test_the_peak_is_what_is_allocated(name):
    fun, types, args, text = EXACT[name]
    args = args if isinstance(args, tuple) else (args,)
    f = made(fun, types)
    memory = f.memory(*args)
    most, results = measured(f, args)
    assert int(memory.peak) <= most + 64 <= int(memory.peak) + OBJECTS
    assert not text or str(f.memory.peak) == text
    flat = results if isinstance(results, tuple) else (results,)
    assert int(memory.results) == sum(r.nbytes for r in flat if isinstance(r, np.ndarray))
    assert int(memory.inputs) == sum(a.nbytes for a in args)
    assert max(int(s.live) for s in memory.steps) == int(memory.peak)


def test_sizes_have_the_names_that_types_give_them():
    f = tm.compile(lambda x, w: x @ w, "float64[rows, 3]", "float64[3, 4]")
    assert str(f.memory.results) == "32*rows"
    assert str(f.memory.inputs) == "24*rows+96"
    assert int(f.memory(np.ones((5, 3)), np.ones((3, 4))).results) == 160
    assert "results  32*rows" in repr(f.memory)


def test_integers_among_the_arguments_are_named_and_known():
    def f(n):
        return np.zeros(n) + n

    memory = tm.compile(f, "int64[]").memory
    assert str(memory.results) == "8*n"
    assert int(memory(np.int64(7)).results) == 56


def test_small_sizes_are_those_of_what_runs_then():
    f = tm.compile(lambda x: np.exp(x) * 2, "float64[n]")
    assert [int(f.memory(np.ones(k)).peak) for k in (0, 1, 2)] == [0, 8, 16]


def test_what_data_decide_is_told_by_name_and_is_no_number():
    f = tm.compile(
        lambda x: x[x > 0.171875], "float64[n]"
    )  # a number that no other test compares with: equal nodes are one
    peak = f.memory(V).peak
    assert peak.number is None
    assert "sum(test_needs.py line" in str(peak)
    with pytest.raises(tm.GuardError, match=r"sum\(test_needs.py line \d+\) is not known"):
        int(peak)


def test_what_is_kept_between_runs():
    table = np.arange(1000.0)
    f = tm.compile(lambda x: x + np.array([1.0, 5.0, 2.0]) * x[:3].sum() + table[:3], "float64[3]")
    assert int(f.memory(V[:3]).kept) == 24 + 8000
    assert int(f.memory.inputs) == 24


def test_what_is_not_counted_is_told_by_line():
    f = tm.compile(lambda z: np.fft.fft(z), "complex128[n]")
    assert len(f.memory.unknown) == 1
    assert "fft" in f.memory.unknown[0]


@pytest.fixture
def bound():
    yield lambda count: setattr(tm.config, "memory", count)
    tm.config.memory = 0


def test_more_than_the_machine_has_is_refused_before_it_runs(bound):
    f = tm.compile(lambda x, y: x[:, None] * (y + 0.8125), "float64[n]", "float64[m]")
    x = np.ones(6000)
    assert f(x[:10], x[:10]).shape == (10, 10)
    bound(270 << 20)
    tracemalloc.start()
    with pytest.raises(
        MemoryError, match=r"needs 274.7 MiB .*float64\[n0, n1\] of test_needs.py line \d+; .* allows 270 MiB"
    ):
        f(x, x)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 10 << 20
    bound(0)
    assert f(x, x).shape == (6000, 6000)


TEXTS = {
    "outer products": "x[:, None] * y",
    "an exponential": "np.exp(x[:, None] + y)",
    "a choice": "np.where(x[:, None] > y, x[:, None], y)",
    "two arrays": "x[:, None] * y - np.sin(x[:, None] - y)",
    "a gradient": "tm.grad(lambda v: np.sum(np.exp(v[:, None] * y)))(x)[:, None] * y",
}


def of_file(name, lines, text):
    """A function with such a body in a file of its own, at line ``lines + 2``."""
    space = {"np": np, "tm": tm}
    source = "\n" * lines + f"def f(x, y):\n    return {text}\n"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), space)
    return space["f"]


@pytest.mark.parametrize("name", TEXTS)
def test_the_line_is_that_of_the_function_that_has_run(name, bound):
    """Equal functions are one program, whose nodes have the lines of both."""
    first, second = (
        tm.compile(of_file(f, n, TEXTS[name]), "float64[n]", "float64[m]") for f, n in (("a.py", 3), ("b.py", 8))
    )
    x = np.ones(6000)
    bound(270 << 20)
    for f, told in ((first, "of a.py line 5;"), (second, "of b.py line 10;"), (first, "of a.py line 5;")):
        with pytest.raises(tm.MemoryShortError, match=told):
            f(x, x)


def test_the_line_of_lazy_values_is_their_own(bound):
    tm.config.tier = "numpy"
    x = np.ones(6000)
    first, second = (
        of_file(f, n, "np.cos(x[:, None]) * y + 0.5")(tm.tensor(x), x) for f, n in (("c.py", 2), ("d.py", 6))
    )
    bound(270 << 20)
    for value, told in ((second, "of d.py line 8;"), (first, "of c.py line 4;")):
        with pytest.raises(tm.MemoryShortError, match=told):
            np.asarray(value)


def test_memory_at_hand_counts_as_left(monkeypatch):
    """Where there is too little, what is kept for the next arrays is given back before a run is refused."""
    asked = []

    def left():
        asked.append(sum(b.nbytes for blocks in buffers.pool._blocks.values() for b in blocks))
        return (300 << 20) - asked[-1]

    monkeypatch.setattr("tensormagic.backend.running.memory_limit.available", left)
    f = tm.compile(lambda x, y: x[:, None] * (y - 0.6875), "float64[n]", "float64[m]")
    buffers.pool.clear()
    buffers.pool.take((8 << 20,), np.dtype("f8"))
    x = np.ones(6000)
    assert f(x, x).shape == (6000, 6000)
    assert asked[0] >= 64 << 20
    assert asked[-1] == 0


def test_a_run_that_no_machine_has_room_for():
    f = tm.compile(lambda x, y: (x[:, None] * y).cumsum(1), "float64[n]", "float64[m]")
    with pytest.raises(tm.MemoryShortError, match="this machine has left"):
        f(np.ones(3_000_000), np.ones(3_000_000))


def test_results_in_arrays_that_are_given_need_no_room(bound):
    f = tm.compile(lambda x, y: x[:, None] * y, "float64[n]", "float64[m]")
    x, out = np.ones(6000), np.empty((6000, 6000))
    bound(100 << 20)
    assert f.run(x, x, out=out) is out
    assert out.sum() == 36e6


def test_lazy_values_that_numpy_computes_are_refused_too(bound):
    tm.config.tier = "numpy"
    x = tm.tensor(np.ones(6000))
    bound(400 << 20)
    assert (x[:, None] * x).sum().item() == 36e6
    with pytest.raises(tm.MemoryShortError, match=r"needs 549\.3 MiB"):
        np.asarray(np.exp(x[:, None] * x[::-1]) + 1)


def test_work_by_hand_in_numbers_and_formulas():
    f = tm.compile(lambda a, x: np.maximum(a @ x, 0), "float64[n, m]", "float64[m]")
    assert (str(f.cost.operations), str(f.cost.moved)) == ("2*m*n+n", "8*m*n+8*m+8*n")
    found = f.cost(X, W[:, 0].copy())
    assert (int(found.operations), int(found.moved)) == (2 * 4000 * 30 + 4000, 8 * (4000 * 30 + 30 + 4000))
    assert found.intensity == int(found.flops) / int(found.moved)
    assert found.known


@pytest.mark.parametrize("name", EXACT)
def test_formulas_of_work_are_its_numbers(name):
    fun, types, args, _ = EXACT[name]
    args = args if isinstance(args, tuple) else (args,)
    f = made(fun, types)
    formulas, numbers = f.cost, f.cost(*args)
    _, _, sizes = f._known(args)
    assert len(formulas.steps) == len(numbers.steps) == len(f.executable.plan.steps)
    for formula, number in zip(formulas.steps, numbers.steps, strict=True):
        for kind in ("operations", "flops", "moved"):
            if formula.known:
                assert getattr(formula, kind).amount.number(sizes.number) == int(getattr(number, kind))
    assert sum(int(s.moved) for s in numbers.steps) == int(numbers.moved)


def test_work_that_data_decide_says_so():
    def halved(x):
        while x.sum() > 1:
            x = x / 2
        return x

    work = tm.compile(halved, "float64[n]").cost(V)
    assert not work.known
    assert "and what is data-dependent" in repr(work)


def test_work_of_loops_is_as_often_as_they_iterate():
    f = tm.compile(loop, "float64[n]")
    g = tm.compile(lambda x: x * 0.9 + np.sin(x), "float64[n]")
    assert int(f.cost(V).operations) == 4 * int(g.cost(V).operations)
    assert str(f.cost.operations) == "12*n"
