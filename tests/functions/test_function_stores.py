"""Functions that store into their arguments, and into arrays that they read: as the plain function would, once all of it worked."""

from contextlib import nullcontext

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError, PlainRunWarning

H = np.zeros(3)


def step(u):
    u[1:-1] = 0.5 * (u[2:] + u[:-2])


def bump():
    H[:] = H + np.arange(3.0)


def add_into(u, v):
    u += v
    return u


def fails(u, k):
    u[0] = 9
    return u[k]


def through_a_reshape(u):
    u.reshape(-1)[:3] = 5
    return u.sum()


def test_an_argument_is_stored_into_in_place():
    u, plain = np.arange(6.0) ** 2, np.arange(6.0) ** 2
    captured = tm.tensor(step)
    for _ in range(3):
        assert captured(u) is None
        step(plain)
    assert u.tolist() == plain.tolist()


def test_the_returned_argument_is_the_callers_array():
    u = np.arange(3.0)
    captured = tm.tensor(add_into)
    assert captured(u, np.ones(3)) is u
    assert captured(u, 2.0) is u
    assert u.tolist() == [3.0, 4.0, 5.0]


def test_a_view_of_the_callers_is_stored_through():
    x = np.zeros((3, 4))
    tm.tensor(add_into)(x[1:, ::2], np.ones(2))
    assert x.sum() == 4
    assert x[1].tolist() == [1, 0, 1, 0]


def test_a_call_that_fails_has_stored_what_python_has_until_then():
    u, expected, captured = np.arange(3.0), np.arange(3.0), tm.tensor(fails)
    for place in (7, 1, 7):  # captured where it fails, and where it does not
        for function, x in ((fails, expected), (captured, u)):
            with pytest.raises(IndexError) if place == 7 else nullcontext():
                function(x, np.array([place]))
        assert u.tolist() == expected.tolist()
        u[:] = expected[:] = np.arange(3.0)


def test_a_global_array_is_stored_into():
    H[:] = 1
    captured = tm.tensor(bump)
    captured()
    captured()
    assert H.tolist() == [1.0, 3.0, 5.0]


def test_a_read_only_argument():
    u = np.arange(3.0)
    captured = tm.tensor(add_into)
    captured(u.copy(), 1.0)
    u.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        captured(u, 1.0)
    assert u.tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("tier", ["auto", "numpy"])
def test_calls_whose_arguments_share_memory_are_pythons(tier, monkeypatch):
    monkeypatch.setattr(tm.config, "tier", tier)
    x, y = np.arange(4.0), np.arange(4.0)
    captured = tm.tensor(add_into)
    for one in (lambda x: (x, np.ones(4)), lambda x: (x, x), lambda x: (x[1:], x[:-1]), lambda x: (x[:2], x[2:])):
        for _ in range(2):
            add_into(*one(y))
            captured(*one(x))
            assert x.tolist() == y.tolist()


class Readings:
    def __array__(self, dtype=None, copy=None):
        return np.arange(3.0)


def test_what_is_no_array_is_not_stored_into():
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+=: 'Readings' and 'float'"):
        tm.tensor(add_into)(Readings(), 1.0)
    held = Readings()
    assert tm.tensor(add_into)(held, np.ones(3)).tolist() == add_into(held, np.ones(3)).tolist() == [1.0, 2.0, 3.0]


def test_stores_through_a_reshape_go_where_an_argument_lies():
    captured = tm.tensor(through_a_reshape)
    x = np.zeros((2, 3))
    assert captured(x) == 15
    assert x.tolist() == [[5, 5, 5], [0, 0, 0]]
    turned, plain = np.zeros((3, 2)).T, np.zeros((3, 2)).T
    assert captured(turned) == through_a_reshape(plain)
    assert np.array_equal(turned, plain)


def test_lazy_arguments_are_stored_into():
    u = tm.tensor(np.arange(6.0))
    tm.tensor(step)(u)
    plain = np.arange(6.0)
    step(plain)
    assert u.numpy().tolist() == plain.tolist()


def loss(u, w):
    u[1:] *= w
    u[0] = u[1] ** 2
    return (u * np.arange(1.0, 4.0)).sum()


def test_gradients_are_with_respect_to_the_value_at_entry():
    u, w = np.array([0.5, 1.5, -2.0]), 3.0

    def plain(u, w):
        return loss(np.array(u), w)

    h = 1e-6
    by_u = [(plain(u + h * e, w) - plain(u - h * e, w)) / (2 * h) for e in np.eye(3)]
    by_w = (plain(u, w + h) - plain(u, w - h)) / (2 * h)
    found = tm.grad(loss, (0, 1))(u.copy(), w)
    np.testing.assert_allclose(found[0], by_u, rtol=1e-6)
    np.testing.assert_allclose(found[1], by_w, rtol=1e-6)


def test_a_gradient_stores_as_the_function_does():
    u, plain = np.array([0.5, 1.5, -2.0]), np.array([0.5, 1.5, -2.0])
    value, _ = tm.value_and_grad(loss, 1)(u, 3.0)
    assert value == loss(plain, 3.0)
    assert u.tolist() == plain.tolist()
    tm.grad(loss)(u, 2.0)
    loss(plain, 2.0)
    assert u.tolist() == plain.tolist()


def test_second_derivatives():
    u = np.array([0.5, 1.5, -2.0])
    hessian = tm.hessian(loss)(u.copy(), 3.0)
    assert hessian[1].tolist() == [0.0, 2 * 9.0, 0.0]


class Holder:
    def __init__(self, x):
        self.x = x


def by_argument(held, x):
    x[0] += 1
    return held.x.sum(), x.sum()


def by_attribute(held, x):
    held.x[0] += 1
    return held.x.sum(), x.sum()


def by_both(held, x):
    x[0] += 1
    held.x[1] += 2
    return held.x.sum(), x.sum()


def from_a_list(held, x):
    x[0] += 1
    return [held][0].x[1:].sum(), x.sum()


@pytest.mark.parametrize("function", [by_argument, by_attribute, by_both, from_a_list])
@pytest.mark.parametrize("first", [True, False])
def test_an_argument_that_an_object_holds_is_one_array(function, first):
    captured, kept = tm.tensor(function), np.zeros(3)
    held = Holder(kept)
    alike = [kept, kept, kept[:2], kept[::-1], np.zeros(3), kept]
    for x in alike if first else [np.zeros(3), *alike]:
        before = kept.copy(), x.copy()
        try:
            found = [float(v) for v in captured(held, x)]
        except CaptureError:
            assert np.array_equal(kept, before[0])  # refused, and nothing changed
            continue
        after = kept.copy(), x.copy()
        if np.may_share_memory(x, kept):
            kept[:] = before[0]
        else:
            kept[:], x[:] = before
        assert found == [float(v) for v in function(held, x)]
        assert np.array_equal(after[0], kept)
        assert np.array_equal(after[1], x)


@pytest.mark.parametrize("before", [(), ("q",), ({"a": np.ones(2), "b": 2.0},), ("q", [np.ones(3), 1.0], None)])
def test_a_message_calls_arguments_by_their_names(before):
    """They were counted among the arrays: ``f("q", x, y)`` was told to store into q."""

    def store(x, y):
        x[0] = y[1]
        return x.sum()

    functions = {
        0: lambda x, y: store(x, y),
        1: lambda first, x, y: store(x, y),
        3: lambda first, second, third, x, y: store(x, y),
    }
    captured = tm.tensor(functions[len(before)])
    memory = np.ones(4)
    with pytest.warns(PlainRunWarning, match="stores into its argument x, which shares memory with y"):
        captured(*before, memory[:3], memory[1:])
