"""Functions that are called once for all elements or examples do nothing that Python would do for each: they are run so, or refused."""

import io
import random
import warnings
from collections import namedtuple
from functools import lru_cache

import numpy as np
import pytest

import tensormagic as tm

X = np.arange(1, 5.0)
Pair = namedtuple("Pair", "a b")  # noqa: PYI024 (its class has no text of the user's)


class Counter:
    """Counts its calls."""

    def __init__(self):
        self.n = 0
        self.seen = []

    def __call__(self, t):
        self.n += 1
        return t * self.n

    def kept(self, t):
        self.seen = [*self.seen, 1]
        return t * len(self.seen)


def counting():
    log = []
    return lambda t: (log.append(1), t * len(log))[1]


def by_item():
    held = {"last": 0.5}

    def f(t):
        held["last"] = held["last"] * 2
        return t * held["last"]

    return f


def by_default():
    def f(t, held=[0]):  # noqa: B006
        held[0] += 1
        return t + held[0]

    return f


def by_iterator():
    values = iter(range(1000))
    return lambda t: t * next(values)


def by_generator():
    values = (k * 2 for k in range(1000))
    return lambda t: t + next(values)


def by_array():
    total = np.zeros(1)

    def f(t):
        total[0] += 1.0
        return t * total[0]

    return f


def by_text():
    text = io.StringIO()

    def f(t):
        text.write("a")
        return t * len(text.getvalue())

    return f


def by_draws():
    return lambda t: t * random.random()


def by_choices():
    own = random.Random(3)
    return lambda t: t if own.random() < 0.5 else -t


EFFECTS = [
    Counter, lambda: Counter().kept, counting, by_item, by_default, by_array, by_text, by_draws, by_choices,
]  # fmt: skip
ITERATORS = [by_iterator, by_generator]


@pytest.mark.parametrize("make", EFFECTS)
@pytest.mark.parametrize("over", ["vectorize", "along"])
def test_numpys_functions_call_for_each_element(make, over):
    def program(f):
        def run(x):
            return (
                np.vectorize(f)(x) if over == "vectorize" else np.apply_along_axis(lambda r: f(r.sum()), 1, x[:, None])
            )

        return run

    random.seed(1)
    plain = program(make())
    expected = [plain(X + k) for k in range(4)]
    random.seed(1)
    captured = tm.tensor(program(make()))
    with warnings.catch_warnings(action="ignore", category=tm.PlainRunWarning):
        for k in range(4):
            np.testing.assert_array_equal(captured(X + k), expected[k])


@pytest.mark.parametrize("make", ITERATORS)
def test_iterators_that_were_there_are_left_alone(make):
    f = make()
    expected = make()(1.0)
    with pytest.raises(tm.CaptureError, match=r"np\.vectorize calls"):
        tm.tensor(lambda x: np.vectorize(f)(x))(X)
    assert f(1.0) == expected


@pytest.mark.parametrize("make", [*EFFECTS, *ITERATORS])
def test_what_examples_share_is_not_changed_by_one_for_all(make):
    f = make()
    state = random.getstate()
    batched = tm.vmap(f)
    with pytest.raises(tm.CaptureError, match=r"changes something that all examples share|stores into total"):
        batched(X)
    assert random.getstate() == state
    if not isinstance(f, Counter):
        return
    assert f.n == 0
    with pytest.raises(tm.CaptureError):
        tm.grad(lambda x: tm.vmap(f)(x).sum())(X)
    with pytest.raises(tm.CaptureError):
        tm.compile(lambda x: np.vectorize(f)(x), X)
    assert f.n == 0


def test_what_a_second_call_does_not_find_is_put_back():
    left = [3.0]
    with pytest.raises(tm.CaptureError, match="changes something that all examples share"):
        tm.vmap(lambda t: t * left.pop())(X)
    assert left == [3.0]
    with pytest.raises(tm.CaptureError, match="changes something that all examples share"):
        tm.vmap(lambda t: t * by_key.pop("k"))(X)
    assert by_key == {"k": 2.0}


by_key = {"k": 2.0}


def test_the_program_says_that_python_runs_it():
    f = tm.tensor(_program)
    with pytest.warns(tm.PlainRunWarning, match=r"np\.vectorize calls"):
        found = [f(X, Counter()) for _ in range(3)]
    for one in found:
        np.testing.assert_array_equal(one, [2.0, 6.0, 12.0, 20.0])
    with pytest.raises(tm.CaptureError, match="side effects"):
        tm.grad(lambda x: _program(x, Counter()).sum())(X)


def _program(x, f):
    return np.vectorize(f)(x)


def test_what_does_the_same_for_each_is_done():
    class Model:
        def __init__(self):
            self.w, self.cache, self.mode = np.array([1.0, 2.0]), {}, "new"

        def __call__(self, x):
            self.mode = "used"
            if "norm" not in self.cache:
                self.cache["norm"] = 5.0
            return x * self.cache["norm"] + self.w.sum()

    model = Model()
    np.testing.assert_array_equal(tm.vmap(model)(X), X * 5 + 3)
    assert model.mode == "used"
    assert model.cache == {"norm": 5.0}
    seen = []

    @lru_cache
    def doubled(n):
        seen.append(n)
        return n * 2

    np.testing.assert_array_equal(tm.vmap(lambda x: x + doubled(3))(X), X + 6)
    assert seen == [3]
    shared = np.zeros(2)

    def stores(x):
        shared[:] = 7.0
        return x + shared[1]

    np.testing.assert_array_equal(tm.vmap(stores)(X), X + 7)
    assert shared.tolist() == [7.0, 7.0]


def test_what_a_call_makes_itself_is_its_own():
    def f(x):
        values, total, found = iter([1.0, 2.0, 3.0]), [], {}
        own = Counter()
        for v in (x, x + 1):
            total.append(v * next(values))
            found[len(total)] = own(v)
        return Pair(sum(total), found[2])

    found = tm.vmap(f)(X)
    np.testing.assert_array_equal(found.a, X + (X + 1) * 2)
    np.testing.assert_array_equal(found.b, (X + 1) * 2)
    np.testing.assert_array_equal(tm.tensor(lambda x: np.vectorize(lambda t: f(t).a)(x))(X), X + (X + 1) * 2)
    np.testing.assert_allclose(tm.grad(lambda x: np.vectorize(lambda t: f(t).a)(x).sum())(X), np.full(4, 3.0))


def test_numpys_generators_draw_for_each_example():
    rng = np.random.default_rng(0)
    found = tm.vmap(lambda x: x + rng.normal())(np.zeros(4))
    np.testing.assert_array_equal(found, np.random.default_rng(0).normal(size=4))
