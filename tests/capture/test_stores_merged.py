"""Stores into arrays whose sharing of memory is data-dependent: exact, or refused, never another value."""

import copy
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture.stores import alias
from tensormagic.capture.stores.place import Buffer, ask_all
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.node import Node
from tensormagic.ops.leaf import constant
from tests.capture.harness import assert_equal, captured, cell, check

SAME = {
    "one array with two names on both ways": "if s > 0:\n    u = v = x + 1\nelse:\n    u = v = x * 2\nu[0] = 5\nw = v + 0",
    "one array twice in a tuple": "if s > 0:\n    p = (x + 1,) * 2\nelse:\n    p = (x + 2,) * 2\np[0][0] = 5\nw = p[1] + 0",
    "a part that an earlier iteration took": "v = y\nfor i in range(4):\n    x[0] += 1\n    if i == 1: v = x[0:]\n    y = v + 0",
    "the array itself, from an earlier iteration": "v = y\nfor i in range(4):\n    x[0] += 1\n    y = v + 0\n    if i == 1: v = x",
    "an array before the first iteration": "v = x\nfor i in range(4):\n    x[0] += 1\n    z = v + 0\n    v = z",
    "a view of a view in every iteration": "v = x\nfor i in range(4):\n    v = v[::-1]\n    x[0] += 1\nw = v + 0",
    "a way that stores, and one that binds": (
        "for i in range(3):\n    x = x + 1\n    if i % 2:\n        v = x.T\n    else:\n        x[0] = 4\nw = v + 1"
    ),
    "one of two parts, in a way that stores into both behind it": (
        "if s > 1:\n    v = x[0] if x[0, 0] > 5 else x[-1]\n    x[1:][...] = -3\nw = v + 1"
    ),
    "one of two, in an iteration that stores into both behind it": (
        "for i in range(2):\n    v = y[0] if x[0, 0] > 5 else x[0] + 0\n    y[...] = v[::-1]\nw = v + 1"
    ),
    "a way that stores after another name was bound": "if s > 9:\n    v = x.T\nelse:\n    x[0] = 4\n    v = x[:1]\nw = v + 1",
}
ARRAYS = {"x": np.arange(9.0).reshape(3, 3), "y": np.arange(9.0, 18).reshape(3, 3), "s": 1.5}


@pytest.mark.parametrize("source", SAME.values(), ids=list(SAME))
def test_as_in_numpy(source: str):
    check(source, **ARRAYS)


CHOSEN = "    if i % 2:\n        v = x.T\n    else:\n        v = x[:, ::-1]\n"
HELD = {
    "a view of one way and a view of the other": "if s > 0:\n    u = x + 1\n    v = u[0]\nelse:\n    u = x + 2\n    v = y[0]\n",
    "a view of what an iteration has made": f"for i in range(3):\n    x = x + 1\n{CHOSEN}u = x\n",
    "the same, over a loop that may have no iteration": f"v = y\nfor i in range(n):\n    x = x + 1\n{CHOSEN}u = x\n",
    "the same, over a loop that data end": f"for i in range(3):\n    x = x + 1\n    if s > 9:\n        break\n{CHOSEN}u = x\n",
    "what was there before a loop without iterations": "v = x\nfor i in range(n - 2):\n    v = x + 1\nu = x\n",
    "a view of a view of what a way has made": "u = x + 1\nv = u if s > 0 else u[::-1]\nif s > 1:\n    u = u.T\nelse:\n    u = u[1:2].T\n",
}


@pytest.mark.parametrize("store", ["u[0] = 50\nw = v + 1", "v[0] = 50\nw = u + 1"])
@pytest.mark.parametrize("source", HELD.values(), ids=list(HELD))
def test_never_another_value(source: str, store: str):
    error = captured(source + store, {**ARRAYS, "n": 2}).error
    if error is None:
        check(source + store, **ARRAYS, n=2)
    else:
        assert isinstance(error, CaptureError), error


def exact_or_refused(function: Any, *arguments: Any) -> None:
    """A function that gives and stores what Python does, or that is refused."""
    theirs, ours = copy.deepcopy(arguments), copy.deepcopy(arguments)
    expected = function(*theirs)
    try:
        tm.tensor(function).graph(*copy.deepcopy(arguments))
    except CaptureError:  # a call is Python's
        with pytest.warns(tm.PlainRunWarning):
            result = tm.tensor(function)(*ours)
    else:
        result = tm.tensor(function)(*ours)
    assert_equal(result, expected, "result")
    assert_equal(list(ours), list(theirs), "arguments")


def test_a_function_that_reads_what_a_iteration_has_changed():
    def stale(x: Any, y: Any, n: int) -> Any:
        v = y
        for i in range(n):
            x[0] += 1
            y = v + 0
            if y[0, 0] > i:
                v = x
        return v, y

    for n in range(4):
        exact_or_refused(stale, np.arange(9.0).reshape(3, 3), np.ones((3, 3)), n)


def test_what_is_lost_and_not_read_does_no_harm():
    def lost(x: Any, y: Any, s: float) -> Any:
        v = x if s > 0 else y
        w = v + 1
        if s < 3:
            x[0] = 7
        return w

    for s in (1.5, -1.5, 4.5):
        arrays = [np.arange(4.0), np.ones(4)], [np.arange(4.0), np.ones(4)]
        np.testing.assert_array_equal(tm.tensor(lost)(*arrays[0], s), lost(*arrays[1], s))
        np.testing.assert_array_equal(arrays[0], arrays[1])


def one_of_two(x: Any, y: Any, s: float) -> Any:
    v = x if s > 0 else y
    v[0] += 5
    x[1] *= 2
    return v + 1, v


def rows(x: Any, y: Any, s: float) -> Any:
    v = x[0] if s > 0 else x[-1]
    v[...] = y[0]
    x[:, 0] = 9
    w = v[1:] if s > 1 else v[:2] * 2
    w += 1
    return v, w


def in_iteration(x: Any, y: Any, s: float) -> Any:
    if s > 0:
        v = x
    elif s > -2:
        v = y
    else:
        v = x + y
    v[0] = v[1] * s
    x[1] += v[0]
    return v[::-1]


def clipped(x: Any, y: Any, s: float) -> Any:
    if x.max() > s:
        x = x / 2
    x[0] = y[0]
    return x


def beyond(x: Any, y: Any, s: float) -> Any:
    k = int(np.sign(s)) + 2 if s < 9 else 0
    k = np.sum(y[0, 0] > s) * 7
    v = x[k] if k < 3 else y[0]
    v[1] = 4
    return v


def in_a_loop(x: Any, y: Any, s: float) -> Any:
    v = x if s > 0 else y
    for i in range(3):
        x[i] += 1
        v[0] = v[0] * 2
    return v, v.sum()


def three_iterations(x: Any, y: Any, s: float) -> Any:
    for i in range(3):
        v = x if x[0, 0] > i else y
        v[i] = v[0] + s
    return x


CHOSEN_PLACES = [one_of_two, rows, in_iteration, clipped, beyond, in_a_loop, three_iterations]


@pytest.mark.parametrize("function", CHOSEN_PLACES)
def test_a_store_into_one_of_several_places(function: Any, tier: str):
    captured_function = tm.tensor(function)
    for s in (1.5, 0.5, -1.5, -3.0, 9.0):
        (x, y), (a, b) = ([np.arange(9.0).reshape(3, 3), np.full((3, 3), 4.0)] for _ in range(2))
        assert_equal(captured_function(x, y, s), function(a, b, s), f"result for {s}")
        assert_equal([x, y], [a, b], f"arguments for {s}")


def test_the_gradient_of_a_store_into_one_of_two():
    def total(x: Any, y: Any, s: float) -> Any:
        u, w = x * 2, y * 3
        v = u if s > 0 else w
        v[0] = v[1] * v[2]
        return (u * w).sum()

    x, y = np.arange(1.0, 4), np.arange(4.0, 7)
    for s in (1.5, -1.5):
        step = 1e-6
        moved = [total(x + step * e, y, s) - total(x - step * e, y, s) for e in np.eye(3)]
        np.testing.assert_allclose(tm.grad(total)(x, y, s), np.array(moved) / (2 * step), rtol=1e-6)


def test_arrays_that_change_places_are_stored_into():
    check("u, v = x + 1, y + 1\nfor i in range(3):\n    u, v = v, u\n    u[0] += 1", **ARRAYS)
    check("u, v = x + 1, y + 1\nif s > 0:\n    u, v = v, u\nu[0] = 3\nw = v + 1", **ARRAYS)


@pytest.mark.parametrize(
    "source",
    [
        "x[:0][[[0], [1]], k[k > 5]] = 4",
        "w = x[:0][[[0], [1]], k[k > 5]]",
        "w = x[[7, 8], np.zeros((0, 1), int)]",
        "w = x[7, np.zeros((0, 1), int)]",
        "x[7, np.zeros((0, 1), int)] = 4",
        "w = x[7, k > 9]",
        "x[[7, 8], [0, 1]] = 4",
        "x[[0], k[k > 5]] = 4",
    ],
)
def test_an_index_out_of_bounds_where_no_element_is_named(source: str):
    check(source, x=np.arange(9.0).reshape(3, 3), k=np.array([1, 2, 0]))


def test_a_shape_that_does_not_fit_comes_before_imaginary_parts():
    check("x[0][...] = z[None]", x=np.zeros((2, 3)), z=np.zeros((2, 3), complex))
    check("x[[0, 1]] = z[:, :2]", x=np.zeros((2, 3)), z=np.zeros((2, 3), complex))
    check("x.flat[0] = 1j", x=np.zeros(3))


@pytest.mark.parametrize(
    "source", ["u.flat[1] = -2.0", "u.flat[1] = 300", "u.flat[1] = k.tolist()[0]", "u.flat[:1] = 300"]
)
def test_what_a_single_element_of_flat_does_not_hold_is_a_value_error(source: str):
    check(source, u=np.zeros(3, np.uint8), k=np.array([300, 1]))


def test_one_element_is_stored_as_a_truth_value():
    check("b[1] = x[:1]\nb[2] = x[2:]", b=np.zeros(3, bool), x=np.arange(3.0))
    check("b[1] = x", b=np.zeros(3, bool), x=np.arange(3.0))
    check("x[1] = x[:1]", x=np.arange(3.0))
    error = captured("b[1] = x[x > 1]", {"b": np.zeros(3, bool), "x": np.arange(3.0)}).error
    assert isinstance(error, CaptureError)


def test_nothing_is_stored_along_a_diagonal_or_in_a_row():
    check("np.fill_diagonal(x, y)\nx.flat[:] = y", x=np.arange(9.0).reshape(3, 3), y=np.zeros(0))


def test_a_number_puts_into_a_copy_of_itself():
    check("for q in x: np.put(q, 0, 3)\nw = x[1] + 0", x=np.arange(3.0))


@pytest.mark.parametrize("first", [0.5, 1.5])
def test_a_store_on_one_way_into_what_the_other_way_shares(first: float):
    def program(x: Any, z: Any, k: Any) -> Any:
        if z[0] <= 1:
            x[...] = 5.5
        else:
            held = []
            for _ in range(k.max()):
                held.append(x)  # noqa: PERF401 (a list that a loop fills)
        return x.sum()

    given = [np.array([[3, 4, 5]], np.int8), np.array([first]), np.array([0, 1, 2])]
    expected = copy.deepcopy(given)
    assert tm.tensor(program)(*given) == program(*expected)
    assert_equal(given[0], expected[0], "x")


@pytest.mark.parametrize("code", ["r = v is z", "r = v is not z", "r = a is v is z", "r = z is v"])
def test_whether_two_names_are_one_array_as_data_decide_is_refused(code: str):
    with pytest.raises(CaptureError, match="`is` between arrays that may be one"):
        cell(f"a = v = z if z.sum() > 0.5 else z + 1\n{code}", {"np": np, "z": np.ones((2, 3))})


def test_whether_two_names_are_one_array():
    check(
        "a = z if z.sum() > 0.5 else z\nb = z * 2 if z.sum() > 0.5 else z + 1\nc = None\nL = [z, a, b]\n"
        "r = 1 * (a is z) + 2 * (b is not z) + 4 * (c is None) + 8 * any(q is b for q in L) + 16 * (a is z is L[1])",
        z=np.ones((2, 3)),
    )


def put_on(x: Any, y: Any, k: Any) -> Any:
    v, w = x, y
    for i in range(len(k)):
        if k[i] > 0:
            v, w = w, v[::-1]
        if k[i] > 1:
            w = x
    v[0] = 9
    w[1] += 4
    return v, w


@pytest.mark.parametrize("k", [(0, 0, 0), (1, 0, 2), (2, 2, 1), (1, 1, 1), (0, 2, 1)])
def test_stores_go_on_through_all_that_an_array_may_be(k: tuple[int, ...], tier: str):
    exact_or_refused(put_on, np.arange(3.0), np.arange(3.0) * 2, np.array(k))


def test_a_store_through_many_choices_goes_into_each_once(monkeypatch: pytest.MonkeyPatch):
    choose, counts = alias._choose, []
    for iterations in (4, 8):
        made = []
        monkeypatch.setattr(alias, "_choose", lambda *a, made=made: made.append(1) or choose(*a))
        code = "v = x\n" + "if k[0] > 1:\n    v, x = x, y[::-1]\n" * iterations + "v[0] = 9\na = v + x"
        check(code, x=np.arange(3.0), y=np.arange(3.0) * 2, k=np.array([2]))
        counts.append(len(made))
    assert counts[0] > 4
    assert counts[1] < 5 * counts[0]


def test_one_plain_array_with_two_names_in_a_branch_is_refused_and_run_by_python_in_a_cell():
    code = "for r in w:\n    for i in range(2):\n        a = np.stack([7.0, 7.0])\n        b = a = a + 0\n    a[k[0]] = 5\nb[1] = 1\n"
    space = {"np": np, "w": np.ones((2, 2)), "k": np.zeros(1, int)}
    found = cell(code, space).outputs
    assert np.array_equal(found["a"], [5, 1])
    assert np.array_equal(found["b"], [5, 1])

    def chosen(c, k):
        if c > 0:
            a = b = np.stack([7.0, 7.0])
        else:
            a = b = np.stack([1.0, 1.0])
        a[k] = 1
        return a, b

    with pytest.raises(CaptureError, match="are the same array, which is not captured"):
        tm.tensor(chosen).graph(1.0, 0)


def test_a_store_by_a_mask_of_a_part_of_the_array_itself_is_refused():
    def turned(y):
        y[y > 0] = y[::-1]
        return y

    def of_a_copy(y):
        y[y > 0] = y[::-1].copy()
        return y

    with pytest.raises(CaptureError, match="storing a part of"):
        tm.tensor(turned).graph(np.array([1.0, 2.0]))
    assert np.array_equal(tm.tensor(of_a_copy)(np.array([1.0, 2.0])), [2.0, 1.0])


def test_a_view_of_an_array_of_numpys_own_that_a_loop_binds():
    source = "flag = np.expand_dims(0, 0)\nfor i in {}:\n    e = np.atleast_2d(flag)\ne[0] += 1"
    for iterations in ("range(3)", "range(k[0])"):
        check(source.format(iterations), k=np.array([2]))


@pytest.mark.parametrize("store", ["v[0] = 9", "x[0] = 9", "y[0] = 9"])
def test_a_store_into_one_of_many_places_takes_a_time_in_proportion(store: str, monkeypatch: pytest.MonkeyPatch):
    calls: list[int] = []
    made = alias._choose
    monkeypatch.setattr(alias, "_choose", lambda *given: (calls.append(1), made(*given))[1])

    def counted(iterations: int) -> int:
        calls.clear()
        source = "v = x" + "\nif k[0] > {0}:\n    v, x = x, y[::-1]" * iterations + f"\n{store}\na = v + x"
        check(source.replace("{0}", "1"), x=np.arange(3.0), y=np.arange(3.0) * 2, k=np.array([2]))
        return len(calls)

    few, many = counted(4), counted(8)
    assert 0 < few < many <= 8 * few  # less than a third power: it has doubled with each branch


def test_a_value_that_cannot_be_made_is_asked_for_again():
    buffer = Buffer(constant(1.0))
    given = iter([CaptureError("not now"), constant(2.0)])

    def make(_was: Node) -> Node:
        found = next(given)
        if isinstance(found, Exception):
            raise found
        return found

    buffer.set_lazy(make)
    with pytest.raises(CaptureError, match="not now"):
        ask_all()
    assert buffer.node is constant(2.0)


def test_one_of_two_parts_whose_sizes_are_computed_is_read_late():
    source = "if 0 < y[0] < 4:\n    v = z[k[-1]::-2]\nelse:\n    v = z[k[-1]::-2]\nz[1:][::2] = 2\nw = v + 0"
    check(source, y=np.array([1.0, 2]), z=np.arange(5.0), k=np.array([1, 2]))


def test_a_store_into_no_elements_of_what_data_size_is_refused():
    """NumPy takes any shape for none."""

    def f(x: Any, k: Any) -> Any:
        y = x[0] * 1
        y[[]] = x[1:, : k[0]]
        return y

    def g(x: Any, k: Any) -> Any:
        y = x[0] * 1
        y[k[k > 5]] = x[1:, k[k > 5]]
        return y

    for function in (f, g):
        with pytest.raises(CaptureError, match="could not be broadcast"):
            tm.tensor(function).graph(np.ones((3, 1)), np.array([0]))


def test_a_scalar_is_not_filled():
    check("v = x[0, 0]\nv.fill(5.5)\nw = v + 1", **ARRAYS)
