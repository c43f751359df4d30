"""Calls that are known by their form: containers, numbers and names are told apart as finely as Python does, at each tier."""

from typing import Any, NamedTuple

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.config import config
from tensormagic.ir.errors import TensorError

FORMS = [
    lambda x, y: (([x, y], 2.0), {}),
    lambda x, y: (((x, y), 2.0), {}),
    lambda x, y: (([y, x], 2.0), {}),
    lambda x, y: (([x, y], 2), {}),
    lambda x, y: (([x, y], True), {}),
    lambda x, y: (([x, y], np.float64(2.0)), {}),
    lambda x, y: (([x, y], np.float32(2.0)), {}),
    lambda x, y: (([x, y], 2j), {}),
    lambda x, y: (([x, y],), {"n": 2.0}),
    lambda x, y: ((), {"n": 2.0, "p": [x, y]}),
    lambda x, y: (([x, y], 2.0), {"more": {"shift": y}}),
    lambda x, y: (([x, y], 2.0), {"more": {"other": y}}),
    lambda x, y: (([x, y], 2.0), {"more": {1: y}}),
    lambda x, y: (([x, y], 2.0), {"more": {True: y}}),
    lambda x, y: (([x, y[:1]], 2.0), {}),
    lambda x, y: (([x.astype(int), y], 2.0), {}),
    lambda x, y: (([x, 1.5], 2.0), {}),
    lambda x, y: (([x, 1], 2.0), {}),
    lambda x, y: (([[x], y], 2.0), {}),
    lambda x, y: ((Pair(x, y), 2.0), {}),
    lambda x, y: (([x, y, None], 2.0), {}),
]


class Pair(NamedTuple):
    one: Any
    two: Any


def told(p, n, more=None):
    """Something that depends on all that a form may differ in."""
    kinds = [type(p).__name__, type(n).__name__, *map(repr, more or ())]
    first = p[0][0] if isinstance(p[0], list) else p[0]
    value = np.exp(first * 0.1) * n + p[1] + len(p)
    for k, name in enumerate(more or ()):
        value = value + more[name] * (k + (2 if isinstance(name, str) else 3) + len(str(name)))
    return value, len("".join(kinds)), [value, {"p": p[1]}]


def same(one, two):
    """Whether two results are the same in every respect."""
    if isinstance(one, (list, tuple)):
        return type(one) is type(two) and len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(one[k], two[k]) for k in one)
    parts = (type(one), np.asarray(one).dtype, np.shape(one), np.asarray(one).tobytes())
    return parts == (type(two), np.asarray(two).dtype, np.shape(two), np.asarray(two).tobytes())


@pytest.mark.parametrize("order", [1, -1, 7])
def test_calls_of_many_forms_in_turn_are_what_python_gives(monkeypatch, order):
    monkeypatch.setattr(config, "tier", "numpy")
    monkeypatch.setattr(config, "math", "exact")
    function = tm.tensor(told)
    rng = np.random.default_rng(0)
    for k in range(3 * len(FORMS)):
        form = FORMS[k * order % len(FORMS)]
        args, options = form(rng.normal(size=4), rng.normal(size=4))
        assert same(function(*args, **options), told(*args, **options)), k
        assert same(function(*args, **options), told(*args, **options)), k


def test_machine_code_for_known_sizes_gives_what_it_gave(monkeypatch):
    monkeypatch.setattr(config, "tier", "numba")

    def loss(p, x):
        return np.sum(np.tanh(x @ p[0] + p[1]) ** 2)

    both = tm.value_and_grad(loss)
    rng = np.random.default_rng(1)
    p, x = [rng.normal(size=(3, 2)), rng.normal(size=2)], rng.normal(size=(5, 3))
    first = both(p, x)
    for _ in range(3):
        assert same(both(list(p), x), first)
    strided = [np.repeat(p[0], 2, 1)[:, ::2], p[1]]  # the same form, other memory
    assert same(both(strided, x), first)
    larger = np.vstack([x, x])
    assert both(p, larger)[0] == pytest.approx(2 * first[0], rel=1e-14)
    assert same(both(p, x), first)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        both([p[0] * 1e308, p[1]], x * 1e10)
    assert same(both(p, x), first)


def test_what_is_read_is_asked_at_calls_of_a_known_form(monkeypatch):
    monkeypatch.setattr(config, "tier", "numpy")
    space = {"np": np, "shift": 1.0, "scale": 2}
    exec("def f(p, n):\n    return [v * scale + shift * n for v in p]", space)
    function = tm.tensor(space["f"])
    for shift, scale in [(1.0, 2), (3.0, 2), (3.0, 5), (np.ones(2), 5), (1.0, 2)]:
        space["shift"], space["scale"] = shift, scale
        for n in (1.0, 2.0):
            p = [np.arange(2.0), np.ones(2)]
            assert same(function(p, n), space["f"](p, n))


def test_stores_into_arrays_of_a_list_are_made_at_each_call(monkeypatch):
    monkeypatch.setattr(config, "tier", "numpy")

    @tm.tensor
    def step(p, rate):
        p[0][:] = p[0] - rate
        return p[0].sum()

    array = np.zeros(3)
    for k in range(1, 4):
        assert step([array], 0.5) == -1.5 * k
    array.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        step([array], 0.5)


def test_a_function_whose_signature_changes_takes_arguments_by_name_anew(monkeypatch):
    monkeypatch.setattr(config, "tier", "numpy")

    def one(a, b):
        return a - 2 * b

    def other(b, a):
        return b * 10 + a

    function, x, y = tm.tensor(one), np.arange(3.0), np.ones(3)
    for _ in range(2):
        assert same(function(b=y, a=x), one(b=y, a=x))
    one.__code__ = other.__code__
    for _ in range(2):
        assert same(function(b=y, a=x), other(b=y, a=x))


def test_compiled_functions_know_calls_as_they_know_the_first(tier):
    """What has been called before changes nothing: neither a result nor what is refused."""
    x, y = np.arange(3.0), np.ones(3)
    forms = [args for args, options in (form(x, y) for form in FORMS) if len(args) == 2 and not options]
    forms += [([x[:2], y[:2]], 2.0), ([x, y], 3), ([x, y], 3.0), ([y[:2], x[:2]], 2.0), ([x, y, x], 2.0)]

    def function(p, n):
        return p[0] * n + p[1], n

    def outcome(call, args):
        try:
            return [np.asarray(v).tolist() for v in call(*args)]
        except (TypeError, ValueError, TensorError) as error:
            return type(error), str(error)

    for made_for in (([x, y], 2.0), ([x, y], 2), ((x, y), 2.0)):
        made = tm.compile(function, *made_for)
        fresh = []
        for args in forms:
            made._calls.clear()
            made._calls.last = type(made._calls).last
            fresh.append(outcome(made, args))
        assert any(isinstance(found, list) for found in fresh)
        for step in (1, 3, 5, 7):
            for k in range(0, step * len(forms), step):
                assert outcome(made, forms[k % len(forms)]) == fresh[k % len(forms)]
                assert outcome(made, forms[k % len(forms)]) == fresh[k % len(forms)]
