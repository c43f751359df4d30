"""Steps of one plan that run at the same time: bits, the first error, interrupts, other callers."""

from __future__ import annotations

import queue
import random
import signal
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.planning import overlap
from tensormagic.backend.printing import parallel_steps
from tensormagic.backend.printing.parallel_steps import Beside, Together, at_once, order_for
from tensormagic.backend.running import tasks
from tensormagic.ir.size import evaluate

rng = np.random.default_rng(5)
COUNTS = (1, 2, 3, 16)
N = 24
EYE = np.eye(N)
PLACES = rng.integers(0, N, 40)


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    """Compiled code, which hands out every step that it can."""
    monkeypatch.setattr(tm.config, "tier", "numba")
    monkeypatch.setattr(tm.config, "threads", 3)
    monkeypatch.setattr(overlap, "_least", 1)
    monkeypatch.setattr(parallel_steps, "blas_threads", lambda: 1)


@pytest.fixture
def seen(monkeypatch):
    """What was handed out, and how often runs failed and were done again."""
    found = {"handed": 0, "again": 0, "helped": 0}
    begin, call, do = tasks.Team.begin, Together.__call__, tasks.Task.do

    def begun(self, function):
        found["handed"] += 1
        return begin(self, function)

    def called(self, *given):
        before = self.failures
        result = call(self, *given)
        found["again"] += self.failures - before
        return result

    def done(self, context=None):
        found["helped"] += context is not None
        do(self, context)

    monkeypatch.setattr(tasks.Team, "begin", begun)
    monkeypatch.setattr(Together, "__call__", called)
    monkeypatch.setattr(tasks.Task, "do", done)
    return found


def bits(found):
    found = found if isinstance(found, tuple) else (found,)
    return [(np.asarray(f).dtype.str, np.asarray(f).shape, np.asarray(f).tobytes()) for f in found]


def singular_values(a, b):
    return np.linalg.svd(a)[1].sum() + np.linalg.svd(b)[1].sum(), np.fft.fft2(a), np.sort(b, axis=0)


def network(w1, w2, w3, x, y):
    def loss(w1, w2, w3):
        h = np.tanh(x @ w1)
        return np.mean((np.tanh(h @ w2) @ w3 - y) ** 2)

    return tm.grad(loss, argnums=(0, 1, 2))(w1, w2, w3)


def process(a, b):
    def likelihood(scale):
        k = np.exp(-(a**2) * scale) @ np.exp(-(a**2) * scale).T + N * EYE
        return b[0] @ np.linalg.solve(k, b[0]) + 2 * np.log(np.diag(np.linalg.cholesky(k))).sum()

    return tm.value_and_grad(likelihood)(0.3)


def heads(x, w):
    parts = []
    for k in range(4):
        q, keys, v = x @ w[k], x @ w[k + 1], x @ w[k + 2]
        e = np.exp(q @ keys.T / N)
        parts.append((e / e.sum(axis=1, keepdims=True)) @ v)
    return np.concatenate(parts, axis=1)


def stored(a, b):
    c, d = a.copy(), b @ a
    first = c @ b
    c[1:] += b[:-1]
    second = c @ d
    c[:, 0] = first[:, 1]
    d[2:4] = 1.0
    return c, d, second, np.linalg.solve(c @ c.T + N * EYE, d)


def drawn(a, b):
    g = np.random.default_rng(7)
    x = np.linalg.svd(a + g.normal(size=(N, N)))[0]
    y = np.linalg.svd(b + g.normal(size=(N, N)))[0]
    return x, y, g.uniform(size=5)


def loops(a, b):
    x, y = a, b
    for k in range(a.shape[0]):
        x = np.tanh(x[:, k : k + 1] + x)
    for k in range(a.shape[0]):
        y = np.cos(y[k] * y)
    return x, y, np.cumsum(a, axis=0), np.cumsum(b, axis=1)


A, B = rng.normal(size=(2, N, N))
CASES = {
    "singular values": (singular_values, (A, B)),
    "network": (network, (A, B, A.T.copy(), rng.normal(size=(50, N)), rng.normal(size=(50, N)))),
    "process": (process, (A, B)),
    "heads": (heads, (A, rng.normal(size=(6, N, N)))),
    "stored": (stored, (A, B)),
    "drawn": (drawn, (A, B)),
    "loops": (loops, (A, B)),
}


@pytest.mark.parametrize("name", CASES)
def test_any_number_of_threads_gives_the_same_bits(name, monkeypatch, seen):
    function, arguments = CASES[name]
    ours = tm.tensor(function)
    found = []
    for count in COUNTS:
        monkeypatch.setattr(tm.config, "threads", count)
        found += [bits(ours(*arguments)) for _ in range(4)]
        assert (seen["handed"] > 0) == (count > 1)
    assert all(f == found[0] for f in found)
    assert not seen["again"]


# programs that are drawn ----------------------------------------------------------------------------------------------


def _stored(a, b):
    c = a.copy()
    c[1:] += b[:-1]
    c[:, 0] = 0.5
    return c


def _looped(a, b):
    for k in range(3):
        a = np.sin(a) + b[:, k : k + 1]
    return a


def _scattered(a, b):
    c = np.zeros_like(a)
    np.add.at(c, PLACES % N, b[PLACES])
    return c + a


OPS = [
    lambda a, b: np.tanh(a @ b),
    lambda a, b: a.T @ b / N,
    lambda a, b: np.linalg.svd(a)[0] * b[0],
    lambda a, b: np.linalg.solve(a @ a.T + N * EYE, b),
    lambda a, b: np.linalg.cholesky(a @ a.T + N * EYE) - b,
    lambda a, b: np.linalg.eigvalsh(a + a.T) * b / N,
    lambda a, b: np.fft.fft2(a).real / N + b,
    lambda a, b: np.sort(a, axis=1) - b,
    lambda a, b: np.cumsum(a, axis=0) / N + b[::-1],
    lambda a, b: np.exp(-a * a) + b.T,
    lambda a, b: a - b.sum(axis=1, keepdims=True) / N,
    lambda a, b: a.reshape(-1)[::-1].reshape(N, N) + b.mean(),
    _stored,
    _looped,
    _scattered,
]


def program(seed):
    """A function of two matrices and a seed: a dozen steps over what was made before, of which some are wanted."""
    draw = random.Random(seed)
    steps = [(draw.randrange(len(OPS)), draw.randrange(k + 2), draw.randrange(k + 2)) for k in range(12)]
    draws = draw.random() < 0.3

    def f(a, b):
        made = [a, b]
        if draws:
            made[1] = b + np.random.default_rng(seed).normal(size=(N, N))
        for number, i, j in steps:
            made.append(OPS[number](made[i], made[j]))
        return tuple(made[-5:])

    return f


@pytest.mark.share(12)
@pytest.mark.parametrize("seed", range(60))
def test_programs_that_are_drawn(seed, monkeypatch, seen):
    """Threads that come late, now here and now there: what is computed in whichever order is the same."""
    ours, draw, do = tm.tensor(program(seed)), random.Random(seed), tasks.Task.do

    def late(self, context=None):
        if draw.random() < 0.5:
            time.sleep(draw.random() * 0.002)
        do(self, context)

    monkeypatch.setattr(tasks.Task, "do", late)
    monkeypatch.setattr(tm.config, "threads", 1)
    expected = bits(ours(A, B))
    for count in COUNTS[1:]:
        monkeypatch.setattr(tm.config, "threads", count)
        for _ in range(3):
            assert bits(ours(A, B)) == expected
    assert not seen["again"]


# errors ---------------------------------------------------------------------------------------------------------------


def failing(order):
    def first(a):
        return np.linalg.cholesky(a - 100 * EYE)

    def second(a):
        return np.linalg.inv(a * 0)

    def third(a):
        return EYE[(a[0] * 0).astype(int) + 99]

    parts = [{"cholesky": first, "inverse": second, "index": third}[name] for name in order]
    return lambda a, b: sum(np.linalg.svd(part(x) @ b)[1].sum() for part, x in zip(parts, (a, b, a), strict=True))


FAILING = ("cholesky", "inverse", "index")


@pytest.mark.parametrize("order", [FAILING, FAILING[1:] + FAILING[:1], FAILING[2:] + FAILING[:2]], ids=" ".join)
def test_the_error_is_that_of_one_thread(order, monkeypatch, seen):
    ours, said = tm.tensor(failing(order)), set()
    for count in COUNTS:
        monkeypatch.setattr(tm.config, "threads", count)
        for _ in range(3):
            with pytest.raises((np.linalg.LinAlgError, IndexError)) as caught:
                np.asarray(ours(A, B))
            said.add((caught.type, str(caught.value)))
    assert len(said) == 1
    assert seen["again"] > 0


def test_after_an_error_all_is_well(seen):
    ours = tm.tensor(lambda a, b: (np.linalg.cholesky(a), np.linalg.cholesky(b), a @ b))
    good = A @ A.T + N * EYE
    expected = bits(ours(good, good + EYE))
    for bad in ((A, good), (good, A)):
        with pytest.raises(np.linalg.LinAlgError):
            ours(*bad)
        assert bits(ours(good, good + EYE)) == expected
    assert not tasks._running


def test_what_prints_has_its_order(capsys, seen):
    def f(a, b):
        print("before", a[0, 0])
        x = np.linalg.svd(a)[1]
        print("between")
        return x.sum() + np.linalg.svd(b)[1].sum()

    tm.tensor(f)(A, B)
    assert capsys.readouterr().out.split("\n")[-3:] == [f"before {A[0, 0]}", "between", ""]
    assert not seen["handed"]


# threads --------------------------------------------------------------------------------------------------------------


def test_one_thread_hands_out_nothing(monkeypatch, seen):
    monkeypatch.setattr(tm.config, "threads", 1)
    tm.tensor(singular_values)(A, B)
    assert not seen["handed"]


def test_small_work_is_not_handed_out(monkeypatch, seen):
    monkeypatch.setattr(overlap, "_least", 500_000_000)
    tm.tensor(singular_values)(A, B)
    assert not seen["handed"]


def test_blas_with_threads_of_its_own_is_not_called_twice_at_once(monkeypatch, seen):
    monkeypatch.setattr(parallel_steps, "blas_threads", lambda: 4)
    tm.tensor(lambda a, b: (np.linalg.svd(a)[1], np.linalg.svd(b)[1], a @ b))(A, B)
    assert not seen["handed"]
    tm.tensor(lambda a, b: (np.linalg.svd(a)[1], np.fft.fft2(b)))(A, B)
    assert seen["handed"]


def test_other_threads_take_part(seen):
    ours, a = tm.tensor(singular_values), rng.normal(size=(200, 200))
    assert any((ours(a, a + 1), seen["helped"])[1] for _ in range(500))


def test_calls_from_several_threads_at_once(monkeypatch):
    ours = tm.tensor(singular_values)
    inputs = [rng.normal(size=(2, N + 3 * k, N + 3 * k)) for k in range(6)]
    monkeypatch.setattr(tm.config, "threads", 1)
    expected = [bits(ours(*x)) for x in inputs]
    monkeypatch.setattr(tm.config, "threads", 3)
    wrong = []

    def work(number):
        wrong.extend(number for _ in range(15) if bits(ours(*inputs[number])) != expected[number])

    workers = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not wrong
    assert not tasks._running


def test_submitted_calls_hand_out_too(seen):
    later = [tm.submit(singular_values, A + k, B) for k in range(4)]
    found = [bits(f.result(60)) for f in later]
    assert found == [bits(tm.tensor(singular_values)(A + k, B)) for k in range(4)]
    assert seen["handed"]


def test_no_more_threads_than_asked_for(monkeypatch):
    monkeypatch.setattr(tm.config, "threads", 2)
    at_work, most, lock, do = set(), 0, threading.Lock(), tasks.Task.do

    def counted(self, context=None):
        call = self.call

        def at(*args):  # counted before who waits for it goes on
            nonlocal most
            with lock:
                at_work.add(threading.get_ident())
                most = max(most, len(at_work))
            time.sleep(0.002)
            try:
                return call(*args)
            finally:
                with lock:
                    at_work.discard(threading.get_ident())

        self.call = at
        do(self, context)

    monkeypatch.setattr(tasks.Task, "do", counted)
    ours = tm.tensor(heads)
    for _ in range(5):
        ours(*CASES["heads"][1])
    assert most <= 2


def test_an_interrupt_ends_the_run_at_once(monkeypatch):
    begun, go_on, ended, do = threading.Event(), threading.Event(), threading.Event(), tasks.Task.do

    def held(self, context=None):
        if context is not None:
            begun.set()
            go_on.wait(20)
        do(self, context)

    ours = tm.tensor(singular_values)
    expected = bits(ours(A, B))
    monkeypatch.setattr(tasks.Task, "do", held)

    def interrupt():
        begun.wait(20)
        time.sleep(0.2)
        while not ended.is_set():
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            ended.wait(5)

    def until_interrupted():
        try:
            while True:
                ours(A, B)
        finally:
            ended.set()

    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # which shells ignore in what runs in the background
    threading.Thread(target=interrupt).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            until_interrupted()
    finally:
        signal.signal(signal.SIGINT, before)
        go_on.set()
    monkeypatch.setattr(tasks.Task, "do", do)
    assert not tasks._running
    assert all(bits(ours(A, B)) == expected for _ in range(5))
    until = time.monotonic() + 60
    while tasks._helped and time.monotonic() < until:  # what had begun ends
        time.sleep(0.01)
    assert not tasks._helped


def test_an_interrupt_at_any_moment_leaves_threads_that_help(monkeypatch):
    """Python looks for signals when a call begins and when one of C has ended: each of these, in what hands out, is met once."""
    monkeypatch.setattr(tm.config, "threads", 2)  # with one thread that does not come, nobody helps
    monkeypatch.setattr(tasks, "_helpers", [])
    monkeypatch.setattr(tasks, "_asked", queue.SimpleQueue())
    monkeypatch.setattr(tasks, "_helped", [])

    def handed_out(team):
        on = []
        made = [team.begin(lambda: (time.sleep(0.005), on.append(threading.current_thread()))) for _ in range(3)]
        for task in reversed(made):
            team.wait(task)
        return set(on) - {threading.current_thread()}

    def interrupted_at(moment):
        left = moment

        def look(frame, event, _what):
            nonlocal left
            if event in ("call", "c_return") and "tensormagic" in frame.f_code.co_filename + repr(frame.f_back):
                left -= 1
                if left < 0:
                    sys.setprofile(None)
                    raise KeyboardInterrupt

        sys.setprofile(look)
        try:
            tasks.with_team(handed_out)
        except KeyboardInterrupt:
            return True
        finally:
            sys.setprofile(None)
        return False

    moment = 0
    while interrupted_at(moment):
        moment += 1
        assert not tasks._running
        assert any(tasks.with_team(handed_out) for _ in range(20)), moment
    assert moment > 20


def test_a_run_that_can_be_stopped_waits_for_what_has_begun():
    ended, begun = [], threading.Event()

    def slow(number):
        begun.set()
        time.sleep(0.2)
        ended.append(number)

    def failing_run(*, waits):
        with tasks.Team(waits=waits) as team:
            team.begin(lambda: slow(1))
            assert begun.wait(20)
            team.begin(lambda: None)
            raise ZeroDivisionError

    for waits in (True, False):
        ended.clear()
        begun.clear()
        with pytest.raises(ZeroDivisionError):
            failing_run(waits=waits)
        assert ended == [1] * waits


def test_it_is_known_what_runs_at_the_same_time(monkeypatch):
    made = tm.compile(
        lambda a, b: np.linalg.svd(a)[1].sum() + np.linalg.svd(b)[1].sum(), "float64[n,n]", "float64[m,m]"
    )
    plan, sizes = made.executable.plan, made.executable.graph.bind([(N, N), (2 * N, 2 * N)])
    number = partial(evaluate, value_of=sizes.__getitem__)
    monkeypatch.setattr(overlap, "_least", 10_000)
    assert [[s.op.name for s in group] for group in at_once(plan.driver.overlap, number)] == [["svd", "svd"]]
    monkeypatch.setattr(tm.config, "threads", 1)
    assert not at_once(plan.driver.overlap, number)
    assert "beside(sizes" in plan.driver.source
    assert "task" in plan.drive(partial(Beside, order=order_for(plan.driver.overlap, number, blas=False))).source


def test_what_cannot_overlap_has_no_line_for_it():
    for f in (lambda a, b: np.tanh(a @ b), lambda a, b: np.exp(a) + b, lambda a, b: np.sort(np.linalg.svd(a)[1])):
        assert "beside(" not in tm.compile(f, A, B).executable.plan.driver.source
