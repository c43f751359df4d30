"""What loops carry: numbers instead of stores that are read again, no stores that nobody reads, and two chains of numbers in one loop."""

import numpy as np
import pytest

import tensormagic as tm
from tests.transform.loops import PLAIN, VECTORS, normal, ops, own, same

LONG = np.random.default_rng(8).normal(size=2000)


def loops(f, given=(PLAIN,), level="exact"):
    """How many loops there are."""
    return ops(f, given, level).count("loop")


def bodies(f, given=(PLAIN,), level="exact"):
    """The bodies of loops."""
    return [n["body"] for n in normal(f, given, level).nodes if n.op.name == "loop"]


# what the last iteration has stored -----------------------------------------------------------------------------------


def decay(x):
    y = np.zeros_like(x)
    for k in range(1, len(x)):
        y[k] = 0.9 * y[k - 1] + x[k]
    return y


def decay_backwards(x):
    y = x.copy()
    for k in range(len(x) - 2, -1, -1):
        y[k] = x[k] - 0.5 * y[k + 1]
    return y


def read_twice(x):
    y = x.copy()
    for k in range(1, len(x)):
        y[k] = np.sin(y[k - 1]) * y[k - 1] + y[k]
    return y


def read_just_now(x):
    y, z = x.copy(), np.zeros_like(x)
    for k in range(1, len(x)):
        y[k] = 0.5 * y[k - 1] + x[k]
        z[k] = y[k] * 2
    return y, z


def along_a_column(x):
    a = np.stack([x, x + 1], 1)
    for k in range(1, len(x)):
        a[k, 1] = a[k - 1, 1] * 0.5 + a[k, 0]
    return a


def with_a_branch(x):
    y = x.copy()
    for k in range(1, len(x)):
        y[k] = y[k - 1] if x[k] < 0 else x[k]
    return y


HANDED = [decay, decay_backwards, read_twice, read_just_now, along_a_column, with_a_branch]


def reads_what_it_stores(body):
    """Whether an iteration reads an array that it carries."""
    return any(
        n.op.name == "slice" and n.args[0] in body.parameters[1:] and n.args[0] in stored(body) for n in body.nodes
    )


def stored(body):
    """The carries into which an iteration stores."""
    return [r.args[0] for r in body.results if r.op.name == "set"]


@pytest.mark.parametrize("f", [decay, decay_backwards, with_a_branch])
def test_what_was_stored_last_is_carried_as_a_number(f):
    (body,) = bodies(f)
    assert not reads_what_it_stores(body)


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("f", HANDED)
def test_bits_are_those_of_the_loop_that_reads_what_it_stores(f, name):
    same(f, [VECTORS[name]])


@pytest.mark.parametrize("f", HANDED)
def test_compiled_values_are_those_of_the_loop_that_reads_what_it_stores(f):
    same(f, [LONG], "stable", compiled=True)


def last_one(x):
    y = np.zeros_like(x)
    for k in range(1, len(x)):
        y[k] = np.sin(y[k - 1]) + x[k]
    return y[-1]


def test_of_the_last_place_one_number_is_carried():
    (body,) = bodies(last_one)
    assert len(body.results) == 1
    assert not body.results[0].type.shape
    for x in VECTORS.values():
        if x.size > 1:
            same(last_one, [x])


def two_before(x):
    y = x.copy()
    for k in range(2, len(x)):
        y[k] = y[k - 1] + y[k - 2]
    return y


def wraps(x):
    y = x.copy()
    for k in range(len(x)):
        y[k] = y[k - 1] * 0.5 + x[k]
    return y


def rows_before(x):
    a = np.stack([x, x + 1], 1)
    for k in range(1, len(x)):
        a[k] = a[k - 1] * 0.5 + a[k]
    return a


def through_a_view(x):
    y = x.copy()
    z = y[1:]
    for k in range(1, len(x)):
        y[k] = y[k - 1] * 0.5 + x[k]
    return y + z.sum()


@pytest.mark.parametrize("f", [two_before, wraps, rows_before, through_a_view])
def test_other_reads_and_views_keep_their_values(f):
    for x in (PLAIN, VECTORS["specials"], VECTORS["two"]):
        same(f, [x])


@pytest.mark.parametrize("f", [decay, decay_backwards, read_just_now, along_a_column])
def test_gradients_through_numbers_that_are_handed_on(f):
    w = np.linspace(1, 2, PLAIN.size)

    def loss(x):
        found = f(x)
        found = found[1] if isinstance(found, tuple) else found
        return np.sum(found.T * w)

    found, step = tm.grad(loss)(PLAIN), 1e-6
    for k in range(PLAIN.size):
        change = step * (np.arange(PLAIN.size) == k)
        slope = (own(loss, [PLAIN + change]) - own(loss, [PLAIN - change])) / (2 * step)
        assert found[k] == pytest.approx(slope, rel=1e-5)


def test_cotangents_that_nobody_reads_again_are_not_stored():
    def gradient(x, w):
        def loss(x):
            out, s = np.zeros_like(x), 0.0
            for k in range(len(x)):
                s = 0.9 * s + x[k]
                out[k] = s
            return np.sum(out * w)

        return tm.grad(loss)(x)

    graph = normal(gradient, [PLAIN, PLAIN + 1])
    for node in graph.nodes:
        if node.op.name == "loop":
            assert sum(r.op.name in {"set", "add_at"} for r in node["body"].results) <= 1


# two loops ------------------------------------------------------------------------------------------------------------


def two_decays(x):
    a, b, s, t = np.zeros_like(x), np.zeros_like(x), 0.0, 0.0
    for k in range(len(x)):
        s = 0.5 * s + x[k]
        a[k] = s
    for k in range(len(x)):
        t = 0.25 * t - x[k]
        b[k] = t
    return a, b


def two_numbers(x):
    s, t = 0.0, 1.0
    for v in x:
        s = np.tanh(s + v)
    for v in x:
        t = np.sin(t * v)
    return s - t


def three_loops(x):
    s, t, u = 0.0, 0.5, 1.0
    for v in x:
        s = 0.5 * s + v
    for v in x:
        t = np.sin(t + v)
    for v in x:
        u = u * 0.5 - v
    return s, t, u


def over_two_arrays(x):
    y, s, t = x[::-1] * 2, 0.0, 0.0
    for k in range(len(x)):
        s = 0.5 * s + x[k]
    for k in range(len(x)):
        t = 0.5 * t + y[k]
    return s * t


def forwards_and_backwards(x):
    a, b, s, t = np.zeros_like(x), np.zeros_like(x), 0.0, 0.0
    for k in range(len(x)):
        s = 0.5 * s + x[k]
        a[k] = s
    for k in range(len(x) - 1, -1, -1):
        t = 0.5 * t + x[k]
        b[k] = t
    return a * b


def into_one_array(x):
    y = np.zeros((len(x), 2))
    s = t = 1.0
    for k in range(len(x)):
        s = np.cos(s * x[k])
        y[k, 0] = s
    for k in range(len(x)):
        t = np.sin(t * x[k])
        y[k, 1] = t
    return y


JOINED = [two_decays, two_numbers, three_loops, over_two_arrays, forwards_and_backwards]


@pytest.mark.parametrize("f", JOINED)
def test_two_chains_of_numbers_are_in_one_loop(f):
    assert loops(f) == loops(f, level="stable") == 1
    assert loops(f, level="exact without loops") > 1


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("f", [*JOINED, into_one_array])
def test_bits_are_those_of_two_loops(f, name):
    same(f, [VECTORS[name]])


@pytest.mark.parametrize("f", [*JOINED, into_one_array])
def test_compiled_values_are_those_of_two_loops(f):
    same(f, [LONG], "stable", compiled=True)


def one_after_the_other(x):
    a, b, s, t = np.zeros_like(x), np.zeros_like(x), 0.0, 0.0
    for k in range(len(x)):
        s = np.tanh(s + x[k])
        a[k] = s
    for k in range(len(x)):
        t = np.sin(t + a[k])
        b[k] = t
    return b


def starts_with_the_first(x):
    s = 0.0
    for v in x:
        s = np.tanh(s + v)
    t = s
    for v in x:
        t = np.sin(t + v)
    return t


def other_ranges(x):
    s = t = 0.0
    for k in range(len(x)):
        s = np.tanh(s + x[k])
    for k in range(1, len(x)):
        t = np.sin(t + x[k])
    return s - t


def of_arrays(x):
    g, h = x, x + 1
    for _ in range(60):
        g = np.tanh(g * x)
    for _ in range(60):
        h = np.sin(h * x)
    return g + h


def second_raises(x):
    s, t = 0.0, 1.0
    for v in x:
        s = np.tanh(s + v)
        if s > 5:
            raise ValueError("first")
    for v in x:
        t = t * v
        if t > 10:
            raise ValueError("second")
    return s + t


@pytest.mark.parametrize("f", [one_after_the_other, starts_with_the_first, other_ranges, of_arrays, second_raises])
def test_loops_that_need_each_other_or_may_fail_or_go_over_arrays_stay_two(f):
    assert loops(f) == 2
    same(f, [PLAIN])


def test_the_error_of_the_second_loop_stays():
    with pytest.raises(ValueError, match="second"):
        tm.tensor(second_raises)(np.full(5, 3.0))


@pytest.mark.parametrize("f", [two_numbers, over_two_arrays])
def test_gradients_of_two_loops_that_are_one(f):
    found, step = tm.grad(f)(PLAIN), 1e-6
    for k in range(PLAIN.size):
        change = step * (np.arange(PLAIN.size) == k)
        slope = (own(f, [PLAIN + change]) - own(f, [PLAIN - change])) / (2 * step)
        assert found[k] == pytest.approx(slope, rel=1e-5, abs=1e-8)
