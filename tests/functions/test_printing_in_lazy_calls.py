"""Functions that print in loops, called with lazy arguments: one program that prints once, in order, and a graph that prints nothing."""

from __future__ import annotations

import numpy as np
import pytest

import tensormagic as tm

V = np.array([0.5, -1.0, 2.0, 0.25])


pytestmark = pytest.mark.usefixtures("by_numpy")


def each(v, c):
    for k in range(40):
        v = v - 0.1 * c * v
        if k % 10 == 0:
            print(k, (v * v).sum())
    return v


def until(v, c):
    n = 0
    while (v * v).sum() > 0.5:
        v = v * 0.75 * c
        n += 1
        print(f"{n}: {v[0]:.4f}")
    return v, n


def before_and_behind(v, c):
    print("begins", v.sum())
    total = 0.0
    for k in range(30):
        total = total + (v * c).sum() / (k + 1)
        if total > 3:
            print("over", k, total)
    print("ends", total)
    return total


def broken(v, c):
    for k in range(100):
        v = v * 0.9 * c
        print(k, end=" ")
        if abs(v).max() < 0.5:
            break
    print()
    return v


def in_one_another(v, c):
    for i in range(5):
        for j in range(8):
            v = v + 0.01 * c * i * j
            if j == 7:
                print("row", i, v[0])
    return {"v": v, "pair": (v.sum(), v.max())}


def told(k, v):
    print(k, v.mean())


def by_another(v, c):
    for k in range(40):
        v = np.tanh(v * c)
        if k % 20 == 0:
            told(k, v)
    return v


def helper(v, c):
    for k in range(25):
        v = v * c * 0.99
        if k % 5 == 0:
            print("helper", k, v[1])
    return v


def calls_another(v, c):
    return helper(v, c).sum() + 1


FUNCTIONS = [each, until, before_and_behind, broken, in_one_another, by_another, calls_another]


def _leaves(value):
    return [
        np.asarray(v)
        for v in (value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else [value])
        for v in (v if isinstance(v, tuple) else [v])
    ]


@pytest.mark.parametrize("lazily", ["both", "one", "a number"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_it_prints_and_gives_what_python_does(function, lazily, capsys):
    v, c = V, 0.9
    expected, text = function(v, c), capsys.readouterr().out
    v = V if lazily == "a number" else tm.tensor(V)
    c = 0.9 if lazily == "one" else tm.tensor(0.9)
    found = tm.tensor(function)(v, c)
    assert capsys.readouterr().out == text
    for one, other in zip(_leaves(found), _leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    assert capsys.readouterr().out == ""  # what is asked for is there


@pytest.mark.parametrize("function", [each, broken, by_another], ids=lambda f: f.__name__)
def test_its_loop_is_one_operation_of_a_graph_that_prints_nothing(function, capsys):
    v = tm.tensor(V)
    found = tm.tensor(function)(v, 0.9)
    capsys.readouterr()
    assert len(found.graph.nodes) < 30
    assert "tell" not in found.graph.ops
    assert "loop" in found.graph.ops or "while" in str(found.graph)
    again = (found * 2).sum()
    assert float(again) == pytest.approx(2 * float(np.sum(np.asarray(found))))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "function", [each, before_and_behind, broken, by_another, calls_another], ids=lambda f: f.__name__
)
def test_its_gradient_is_that_of_the_function(function, capsys):
    v, c = tm.tensor(V), tm.tensor(0.9)
    loss = (tm.tensor(function)(v, c) ** 2).sum()
    capsys.readouterr()
    for one, k in ((v, 0), (c, 1)):
        expected = tm.grad(lambda v, c: (tm.tensor(function)(v, c) ** 2).sum(), k)(V, 0.9)
        capsys.readouterr()
        np.testing.assert_allclose(np.asarray(loss.grad(one)), expected, rtol=1e-9)
        assert capsys.readouterr().out == ""


def fails(v, c):
    for k in range(50):
        v = v * 1.5 * c
        print("step", k)
        if v.sum() > 100:
            raise ValueError(f"too large: {v.sum():.2f}")
    return v


def test_an_error_comes_behind_what_was_printed_before_it(capsys):
    with pytest.raises(ValueError, match="too large") as expected:
        fails(V, 0.9)
    text = capsys.readouterr().out
    with pytest.raises(ValueError, match="too large") as met:
        np.asarray(tm.tensor(fails)(tm.tensor(V), 0.9))
    assert str(met.value) == str(expected.value)
    assert capsys.readouterr().out == text


def keeps(v, c, seen):
    for k in range(20):
        v = v * c
        seen.append(k)
        if k % 10 == 0:
            print(k, v[0])
    return v


def test_what_a_call_leaves_in_a_list_is_left_once(capsys):
    expected, found = list[int](), list[int]()
    keeps(V, 0.9, expected)
    text = capsys.readouterr().out
    np.asarray(tm.tensor(keeps)(tm.tensor(V), 0.9, found))
    assert [int(k) for k in found] == expected
    assert capsys.readouterr().out == text


def stores(v, c):
    for k in range(20):
        v[k % 4] = v[k % 4] * c
        if k % 10 == 0:
            print(k, v[0])
    return v.sum()


def test_what_a_call_stores_is_stored_once(capsys):
    own = V.copy()
    expected = stores(own, 0.9)
    text = capsys.readouterr().out
    v = tm.tensor(V.copy())
    assert float(tm.tensor(stores)(v, 0.9)) == pytest.approx(expected)
    np.testing.assert_allclose(np.asarray(v), own)
    assert capsys.readouterr().out == text


def test_what_it_reads_from_outside_may_change(capsys, monkeypatch):
    monkeypatch.setitem(globals(), "SCALE", np.array(2.0))
    f = tm.tensor(scaled)
    first = float(f(tm.tensor(V)).sum())
    monkeypatch.setitem(globals(), "SCALE", np.array(3.0))
    assert float(f(tm.tensor(V)).sum()) == pytest.approx(first * 1.5**3)
    assert capsys.readouterr().out.count("scaled") == 6


def scaled(v):
    for k in range(3):
        v = v * SCALE  # noqa: F821 (which tests bind)
        print("scaled", k)
    return v


def test_a_compiled_function_that_prints_takes_lazy_arguments(capsys):
    each(V, 0.9)
    lines = capsys.readouterr().out.count("\n")
    found = tm.compile(each, V, 0.9)(tm.tensor(V), 0.9)
    np.testing.assert_allclose(np.asarray(found), each(V, 0.9))
    assert capsys.readouterr().out.count("\n") == 2 * lines
