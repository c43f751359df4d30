"""A share of random programs, each as NumPy runs it or refused by name; and small programs that such runs found."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic import session
from tensormagic.ir.errors import CaptureError, UndefinedError
from tests.backend.interpreted import interpreted
from tests.capture.harness import captured, cell, check
from tests.programs.drawn import PLACES, SIZES, Words, drawn
from tests.programs.errors_of_programs import DifferenceError
from tests.programs.random_programs import close, compare_cell, compare_function, memory, program

pytestmark = pytest.mark.usefixtures("by_numpy", "exact")


@pytest.mark.share(2)
@pytest.mark.parametrize("first", range(0, 60, 30))
@pytest.mark.parametrize(("kind", "least"), [("cell", 0.8), ("function", 0.45)])  # which is run at four sizes
def test_a_share_of_random_programs(kind: str, least: float, first: int) -> None:
    ended: Counter[str] = Counter()
    compare = compare_cell if kind == "cell" else compare_function
    for seed in range(first, first + 30):
        made = program(seed, function=kind == "function")
        ended[compare(made, [])] += 1
    assert ended["same"] > least * ended.total(), ended


@pytest.mark.parametrize("first", [0, 20])
def test_a_share_with_the_kernels_that_python_runs(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the planner arranges, each access to memory looked at."""
    monkeypatch.setattr(tm.config, "tier", "numba")
    ended: Counter[str] = Counter()
    with interpreted():
        for seed in range(first, first + 20):
            function = seed % 2 == 1
            compare = compare_function if function else compare_cell
            ended[compare(program(seed, function=function), [], 1e-9)] += 1
    assert ended["same"] > 0.5 * ended.total(), ended


LEFT_OVER = """
for i in range(2):
    for r in z:
        for q in z:
            q[...] = q + 1
r[0] = 5
"""


def test_a_loop_that_cannot_be_finished_leaves_nothing_behind():
    check(LEFT_OVER, z=np.zeros((2, 2)))
    check("for i in range(2):\n    for r in z:\n        z += 1\nr[0] = 5", z=np.zeros((2, 2)))


@pytest.mark.parametrize("limit", [1, 5])
def test_a_new_shape_in_one_branch(limit: int):
    check(f"z = x + 1\nif s > {limit}:\n    z.shape = -1\nz[0] = 3", x=np.zeros((2, 2)), s=1.5)


def test_a_new_shape_of_an_argument_is_refused():
    def flattened(x: Any) -> None:
        x.shape = -1

    with pytest.raises(CaptureError, match="a new shape of the argument x"):
        tm.tensor(flattened).graph(np.zeros((2, 2)))


@pytest.mark.parametrize("limit", [1, 5])
def test_a_store_into_all_of_what_may_be_unbound(limit: int):
    source = f"for i in range(2):\n    if s > {limit}:\n        break\nelse:\n    v = np.zeros(2)\nv[:] = 1"
    if limit == 5:
        check(source, s=1.5)
    else:
        assert isinstance(captured(source, {"s": 1.5}).error, UndefinedError)


@pytest.mark.parametrize("limit", [1.2, 1.8, 2.2])
@pytest.mark.parametrize(
    "stores", ["v += 1", "v[:1].sort()", "v[:1] = 1", "if s > 1.5:\n    v[0] = 1", "np.add(v, 1, out=v)"]
)
def test_a_store_into_what_may_be_unbound_asks_where_it_runs(stores: str, limit: float):
    for s in (1.4, 2.1):
        check(f"if s > {limit}:\n    v = np.arange(2.0)\n{stores}", s=s)


def test_complex_numbers_are_true_or_not():
    check("z[0] = 1j\nnp.fill_diagonal(z, 0j)\nz[1] = np.array([0j, 2j])", z=np.zeros((2, 2), bool))


def test_a_roll_by_a_part_of_a_place():
    check("a = np.roll(x, 1.5)\nb = np.roll(x, -0.5, axis=1)", x=np.arange(6.0).reshape(2, 3))


def test_what_was_stored_and_where_is_told():
    source = "v = y\nfor i in range(2):\n    u = v\n    if s > i:\n        v = x[:1]\n    else:\n        w = x\nx[0] = 1\nz = u + 1"
    error = captured(source, {"s": 1.5, "x": np.zeros(2), "y": np.ones(1)}).error
    if error is None:
        check(source, s=1.5, x=np.zeros(2), y=np.ones(1))
    else:
        assert isinstance(error, CaptureError)
        assert "line 8" in str(error)


def refused(source: str, **names: Any) -> None:
    """Held against NumPy, or refused: never another value."""
    error = captured(source, names).error
    if error is None:
        check(source, **names)
    else:
        assert isinstance(error, CaptureError), error


@pytest.mark.parametrize("iterations", ["for j in range(2):", "for j in range(2):\n  for l in range(2):"])
def test_the_last_row_of_an_inner_loop_is_a_part_of_its_array(iterations: str):
    depth = "    " * iterations.count(":")
    refused(f"{iterations}\n{depth}for row in z: v = row.sum()\nrow[0] //= 2", z=np.arange(6.0).reshape(2, 3))


def test_an_array_of_one_branch_goes_from_iteration_to_iteration():
    swap = "def swap(p, q):\n    t = p.copy()\n    p[...] = q\n    return q, t\n"
    branch = "if s > 2:\n    pass\nelse:\n    v = x[::-1]\n"
    for loop in (
        "for j in range(2):\n    w, v = swap(v, x)",
        "for i in range(2):\n  for j in range(n):\n    w, v = swap(v, x)",
    ):
        refused(swap + branch + loop, x=np.arange(6.0).reshape(2, 3), s=1.5, n=2)


def test_an_argument_that_no_iteration_has_bound_anew_is_still_the_argument():
    def left(y: Any, s: float) -> None:
        for _ in range(3):
            if s > 0:
                break
            y = y + 1
        y[0] = 9

    def never(y: Any, s: float) -> None:
        while s > 3:
            y, s = y + 1, s - 1
        y[0] = 9

    for function in (left, never):
        captured = tm.tensor(function)
        assert captured.graph(np.arange(3.0), 1.5) is not None
        for s in (1.5, -1.5, 5.0):
            y, z = np.arange(3.0), np.arange(3.0)
            function(y, s)
            captured(z, s)
            np.testing.assert_array_equal(y, z)


@pytest.mark.parametrize("head", ["for i in range(2):", "for i in range(2):\n  for j in range(2):"])
@pytest.mark.parametrize("limit", ["i", "x[0, 0]"])
def test_a_size_of_one_iteration_does_not_leave_the_loop(head: str, limit: str):
    depth = "    " * head.count(":")
    refused(f"{head}\n{depth}x[0] = 0\n{depth}v = x[~(x > {limit})]\nw = v + 1", x=np.arange(8.0).reshape(4, 2))


def test_a_number_in_dot_has_a_dtype_of_its_own():
    check("a = np.dot(x, 1j)\nb = np.dot(2.0, x)\nc = np.dot(x, 2)", x=np.arange(3, dtype=np.float32))


def test_a_while_whose_first_iteration_python_runs_asks_its_test_again():
    check("t = 0\nwhile t < k.max():\n    t += 1\n    s = x + 1\nr = s + 0", x=np.ones(2), k=np.array([1, 0]), s=1.5)


def test_rows_with_gaps_are_copied_by_a_reshape():
    def squared(x: Any) -> Any:
        flat = np.reshape(x, (-1, 1))
        x *= x
        return flat

    captured_function = tm.tensor(squared)
    captured_function(np.ones((3, 4)))
    apart, plain = (np.arange(12.0).reshape(3, 4)[:, ::2] for _ in range(2))
    np.testing.assert_array_equal(captured_function(apart), squared(plain))
    np.testing.assert_array_equal(apart, plain)


@pytest.mark.parametrize("limit", [1, 5])
def test_a_name_of_one_branch_on_the_compiled_tier(monkeypatch: pytest.MonkeyPatch, limit: int):
    monkeypatch.setattr(tm.config, "tier", "numba")

    def bound(x: Any, s: float) -> Any:
        if s < limit:
            v = x + 1
        return v * 2

    if limit == 5:
        np.testing.assert_array_equal(tm.tensor(bound)(np.arange(3.0), 1.5), [2.0, 4.0, 6.0])
    else:
        with pytest.raises(UndefinedError, match="v is not bound here"):
            tm.tensor(bound)(np.arange(3.0), 1.5)


@pytest.mark.parametrize(
    "source",
    [
        "if s > 5:\n    v = x + 1\nif s > 5:\n    w = v * 2\nelse:\n    w = x\nv = 0",
        "for i in range(2):\n    if s > 5: v = x + 1\n    if s > 5: w = v + 1\n    else: w = x\nv = 0",
        "for i in range(3):\n    if s > 0:\n        continue\n    v = x[1:]\n    v[0] = 7\nw = x + 1\nv = 0",
    ],
)
def test_a_name_that_is_not_bound_is_not_read_where_its_branch_does_not_run(source: str):
    check(source, s=1.5, x=np.ones(2))


def test_a_vector_times_a_stack_of_matrices():
    check(
        "a = np.dot(z, y)\nb = np.dot(z[None], y)\nc = np.dot(y, z)",
        z=np.arange(8.0).reshape(2, 2, 2),
        y=np.array([1.0, 3.0]),
    )


def test_numbers_are_not_weak_in_an_outer_operation():
    x = np.ones(2, np.float32)
    check("a = np.add.outer(x, 5.5)\nb = np.multiply.outer(2, x)\nc = np.add.outer(2, 3)", x=x)


def test_a_roll_of_nothing_and_by_numbers_of_any_kind():
    check(
        "a = np.roll(x[x > 9], 1)\nb = np.roll(x[x > 9], 1, axis=0)\nc = np.roll(x, y)\nd = np.roll(x, y[None])",
        x=np.arange(3.0),
        y=np.array(1.7),
    )
    check("a = np.roll(x, y, axis=(0, 1))\nb = np.roll(x, y, axis=1)", x=np.arange(6).reshape(2, 3), y=np.array([1, 2]))


def test_a_store_keeps_how_the_elements_lie():
    x = np.asfortranarray(np.arange(9.0).reshape(3, 3))
    for store in ("x.flat[0] = 3", "x[...] = y"):
        refused(f"{store}\nv = x + 0\nr = np.ascontiguousarray(v[0])\nv[0] = 9\nz = r + 1", x=x, y=np.ones((3, 3)))


def test_a_list_that_stays_empty_makes_no_array_of_another_kind():
    def stacked(k: Any, x: Any) -> Any:
        return np.array([x * i for i in range(k.max())])

    x = np.arange(3)
    for most in (2, 0):  # none by Python
        k = np.array([0, most])
        np.testing.assert_array_equal(tm.tensor(stacked)(k, x), stacked(k, x), strict=True)
    with pytest.raises(CaptureError, match="a list is empty"):
        tm.compile(stacked, np.array([0, 2]), x).run(np.array([0, 0]), x)


def test_a_reshape_of_as_many_rows_as_data_say_is_a_view():
    rows = "for i in range(k.max() - 1, -1, -1):\n    flag = np.reshape(z[:i + 1], (-1,))\n"
    check(rows + "z += 1\nv = flag + 1", z=np.arange(8.0).reshape(2, 2, 2), k=np.array([1, 0]))
    for part in ("z[:, :k[0]]", "z.T[:k[0]]", "z[::2, :k[0]]"):
        refused(f"v = {part}.reshape(-1)\nz += 1\nw = v + 1", z=np.arange(12.0).reshape(4, 3), k=np.array([2]))


@pytest.mark.parametrize("dtype", [bool, np.uint8, int, np.float32, np.complex64])
@pytest.mark.parametrize("exponent", ["2", "-1", "0.5", "2.0", "1"])
def test_a_power_in_place_goes_numpys_short_way(dtype: type, exponent: str):
    y = np.array([4, 5, -1, -2]).astype(dtype)
    check(f"y **= {exponent}", y=y)
    check(f"y[None, ::2] **= {exponent}", y=y)


FORMS = (
    "squeeze({0}); reshape({0}, ()); reshape({0}, (1,)); moveaxis({0}, [], []); inner({0}, {0}); kron({0}, 2); float_power({0}, 2); "
    "astype(np.asarray({0}), np.float32); transpose({0}); ravel({0}); copy({0}); real({0}); dot({0}, {0}); outer({0}, {0})"
)


@pytest.mark.parametrize("text", FORMS.split("; "))
def test_functions_of_numbers_give_arrays_or_numbers_as_numpys_do(text: str):
    for number in ("s", "y[0]"):
        check(f"v = np.{text.format(number)}", s=1.5, y=np.array([1.5, 2.0]))


@pytest.mark.parametrize("kind", [np.float32, complex, int])
@pytest.mark.parametrize("shape", [(1,), (2,), (1, 1), (2, 2), (2, 2, 2), (0,)])
def test_a_number_times_an_array_is_added_to_zeros(shape: tuple[int, ...], kind: type):
    check("a = np.dot(-3, x)\nb = np.dot(x, -2.0)\nc = np.dot(-3, x[x == 0])", x=np.zeros(shape, kind))


def test_one_of_several_lists_elements_is_stored_into_no_more_behind_a_branch():
    def largest(y: Any, k: Any, s: float) -> Any:
        v = y * 1
        if s > 1:
            v = max(y[::-1] for _ in range(k[0]))
        v += s
        return y

    with pytest.raises(CaptureError, match="shares memory with"):
        tm.tensor(largest).graph(np.arange(3.0), np.array([1, 7]), 1.5)


def test_a_loop_of_which_only_a_part_is_needed_keeps_what_says_its_sizes():
    source = "t = 0\nwhile t < 4 and z.sum() < 1:\n    t += 1\n    np.cumsum(x, axis=0, out=x)\n    w[:, 5::-1] = s"
    x = np.arange(3.0)[None]
    found = cell(source, {"x": x, "w": x[:, ::2], "z": np.zeros(1), "s": 1.5, "np": np})
    session.compute([b.node for b in found.stores])
    assert found.outputs["t"].numpy() == 4


def test_an_array_without_axes_becomes_a_number_in_a_loop():
    check("for i in range(3):\n    e = e + i\nfor i in range(3):\n    u += i", e=np.array(1.5), u=np.array(1.5))


def test_a_new_shape_of_what_may_not_lie_in_order():
    def flat(x: Any) -> Any:
        part = x[:2]
        part.shape = -1
        return part + 1

    f = tm.tensor(flat)
    np.testing.assert_array_equal(f(np.ones((3, 4))), np.full(8, 2.0))
    other = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    with pytest.raises(AttributeError) as numpys:
        flat(other)
    with pytest.raises(AttributeError) as ours:
        f(other)
    assert str(ours.value) == str(numpys.value)


def test_an_early_return_is_of_the_kind_of_the_last_one():
    left = [made for made in (program(seed, function=True) for seed in range(1, 120, 2)) if "return " in made.cell]
    assert left
    assert not any("way out" in made.cell for made in left)


@pytest.mark.parametrize(("ours", "numpys"), [(np.float32(1.5), 1.5), (2.0, 2), (np.zeros(2), np.zeros(2, int))])
def test_a_promotion_is_taken_for_equal_only_where_there_was_one(ours: Any, numpys: Any):
    assert close(ours, numpys, "", 0.0, promoted=True) == "promoted"
    with pytest.raises(AssertionError):
        close(ours, numpys, "", 0.0)
    with pytest.raises(AssertionError):
        close(ours + 1, numpys, "", 0.0, promoted=True)


def test_what_is_stored_into_more_than_the_array_that_was_given_is_seen():
    base = np.zeros(4)
    assert memory(base[::2]) is base
    close(memory(base[::2]), np.zeros(4), "", 0.0)
    base[1] = 5
    with pytest.raises(AssertionError):
        close(memory(base[::2]), np.zeros(4), "", 0.0)


@pytest.mark.parametrize("limit", [1, 5])
def test_an_array_that_is_not_captured_is_not_copied_by_a_branch(limit: int):
    def changed(x: Any, s: float) -> Any:
        made = np.tile(1.0, 2)
        own = np.tile(2.0, 2) if s > limit else x * 2
        v = made if s > limit else made[::-1]
        v[0] = 7
        return made, own

    with pytest.raises(CaptureError, match="one of them is not captured"):
        tm.tensor(changed).graph(np.arange(2.0), 1.5)

    source = "made = np.tile(1.0, 2)\nif s > {0}:\n    v = made\nelse:\n    v = made[::-1]\nv[0] = x[1]\nmade[1] = 3"
    check(source.format(limit), s=1.5, x=np.arange(2.0))


def test_a_take_of_nothing_looks_at_no_index():
    check("a = np.take(x, [0, -1], axis=-1)\nb = np.take(x[:, 1:], [5], axis=1)", x=np.zeros((2, 0, 0)))
    check("a = np.take(x, [0, -1], axis=-1)", x=np.zeros((2, 3, 0)))
    check("a = np.take(x[:0], [7], axis=1)\nb = np.take(x[0, 0], [0, -1], axis=-1)", x=np.zeros((2, 3)))


@pytest.mark.parametrize("places", ["[0, -1]", "[]", "[5]", "p"])
def test_a_take_of_as_many_rows_as_data_say(places: str):
    """Of no rows NumPy looks at no index, also along an axis of no elements."""
    for k in ([1, 2, 0], [0, 0, 0], [0, 0, 2], [1, 0, 2], [0, -1, 1]):
        given = {"z": np.arange(12).reshape(3, 4), "k": np.array(k), "p": np.array([0, 1])}
        check(f"q = z[k[k > 0], :k[-1]]\nf = np.take(q, {places}, axis=1)", **given)


@pytest.mark.share(3)
@pytest.mark.parametrize("words", [SIZES, PLACES], ids=["sizes", "places"])
@pytest.mark.parametrize("seed", range(0, 150, 50))
def test_programs_drawn_from_tables(words: Words, seed: int):
    ended: Counter[str] = Counter()
    for k in range(seed, seed + 50):
        try:
            how = (compare_function if k % 2 else compare_cell)(drawn(k, words), [])
        except DifferenceError as error:
            if not error.both:
                raise
            how = "error"  # both raise: what need not run may have several errors
        ended[how] += 1
    assert ended["same"] > 10


def test_sizes_are_compared_when_both_are_there():
    """Of two data-dependent sizes, the one that is computed last here, after a store, need not be the last of the code."""
    source = "if s > 5:\n    pass\nelse:\n    x[0, -2:] = n\n    w[k[0]:2] %= x[x > m]"
    x = np.array([[3, 9.0, 5, -2], [7, 3, 1, 2]])
    check(source, x=x, w=np.arange(4.0), k=np.array([0]), s=1.5, n=4, m=6)


@pytest.mark.parametrize("seed", [37023249, 37026168, 37012187, 37010404])
def test_programs_that_ended_otherwise(seed: int):
    """Layouts that go in a circle; a number with an axis, carried; ``flat`` of a number; a store through another name of a reshape."""
    function = seed in {37023249, 37012187}
    assert (compare_function if function else compare_cell)(program(seed, function=function), [])


def test_what_python_runs_is_found_before_an_index_that_follows_from_it(monkeypatch: pytest.MonkeyPatch):
    """A list that is empty for some data, and a loop over the length that its elements would have had, in machine code."""
    monkeypatch.setattr(tm.config, "tier", "numba")
    with interpreted():
        assert compare_function(program(5831937, function=True), [], 1e-9) == "same"
