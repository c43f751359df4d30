"""Arrays of the notebook that share memory, under several names: what is stored through one is seen through all."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic import session
from tensormagic.capture.values.operands import input_tensor
from tensormagic.functions.gradients.gradient_nodes import gradient_nodes
from tensormagic.ir.errors import CaptureError
from tests.capture.harness import assert_equal, cell, computed


def _base():
    return np.arange(24.0).reshape(4, 6)


LAYOUTS = {
    "part": lambda x: (x, x[1:]),
    "parts that overlap": lambda x: (x[:3], x[1:]),
    "parts that overlap in both axes": lambda x: (x[:3, 2:], x[1:, :5]),
    "columns": lambda x: (x, x[:, 2]),
    "steps": lambda x: (x[::2], x[:, 1::2]),
    "backwards": lambda x: (x, x[::-1, ::-1]),
    "transpose": lambda x: (x, x.T),
    "transpose of a part": lambda x: (x[1:, :3], x.T[:, 1:]),
    "reshape": lambda x: (x, x.reshape(3, 8)),
    "part of a reshape": lambda x: (x[1:, 1:4], x.reshape(-1)[5:13]),
    "diagonal": lambda x: (x, np.einsum("ii->i", x[:4, :4])),
    "the whole, twice": lambda x: (x, x[:]),
    "one element": lambda x: (x, x[1:2, 2:3]),
    "without axes": lambda x: (x, x[1, 2, ...]),
    "disjoint, intertwined": lambda x: (x[::2], x[1::2]),
    "disjoint columns": lambda x: (x[:, ::2], x[:, 1::2]),
    "read-only": lambda x: (x, np.broadcast_to(x[0], (3, 6))),
    "windows": lambda x: (x[0], np.lib.stride_tricks.sliding_window_view(x[0], 3)),
}
PROGRAMS = [
    "a[...] = 5\ny = b * 2",
    "a += 1\ny = b + a.sum()",
    "y = b + 1\na[:1] = 7\nz = b + a[0].sum()",
    "b[...] = -1\ny = a * 2",
    "b *= 2\na -= 3\ny = b.sum() + a.sum()",
    "v = a[:1]\nv += 100\ny = b + 0",
]


def run_both(make, source):
    ours, numpys = make(), make()
    space = dict(ours)
    try:
        exec(source, {"np": np}, numpys)
    except ValueError:
        with pytest.raises(ValueError, match="read-only"):
            cell(source, {**space, "np": np})
        return
    found = cell(source, {**space, "np": np})
    values = session.compute([b.node for b in found.stores])
    for buffer, value in zip(found.stores, values, strict=True):
        buffer.array[...] = value
    for name, value in numpys.items():
        mine = found.outputs.get(name, space.get(name))
        assert_equal(mine.numpy() if isinstance(mine, tm.Tensor) else mine, value, name)


@pytest.mark.parametrize("source", PROGRAMS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_stores_are_seen_through_the_other_name(layout, source):
    run_both(lambda: dict(zip("ab", LAYOUTS[layout](_base()), strict=True)), source)


@pytest.mark.parametrize("source", ["a[0] = 1\nc[0] += 5\ny = a + b[0] + c[0]", "b += 1\nc *= 2\na[0, 0] = b[0, 0]"])
def test_three_names(source):
    def make():
        x = _base()
        return {"a": x, "b": x[1:], "c": x[::2]}

    run_both(make, source)


def test_the_gradient_is_with_respect_to_the_value_at_entry():
    x = np.array([1.0, 2.0, 3.0])
    found = cell("a[:2] = a[:2] ** 2\ny = (a * 10).sum() + b.sum()", {"a": x, "b": x[1:]})
    wrt = [input_tensor(v, n).node for n, v in (("a", x), ("b", x[1:]))]
    assert found.outputs["y"].numpy() == (1 + 4 + 3) * 10 + 4 + 3
    by_a = session.compute(gradient_nodes(found.outputs["y"].node, wrt[:1]))[0]
    assert by_a.tolist() == [20.0, 2 * 2 * 11.0, 11.0], "elements that both names hold are those of the one stored into"


@pytest.mark.parametrize("source", ["a[a == a] = b.ravel()", "a.flat[...] = b.ravel()"])
def test_what_numpy_changes_while_it_is_read_is_refused_under_another_name(source):
    x = _base()
    with pytest.raises(CaptureError, match="storing a part of"):
        cell(source, {"a": x.T, "b": x})
    run_both(lambda: {"a": _base().T, "b": _base()}, source)
    run_both(lambda: dict(zip("ba", (y := _base(), y.T), strict=True)), source.replace("= b", "= b.copy()"))


def test_arrays_of_several_dtypes_in_one_memory_are_refused():
    x = np.arange(4.0)
    with pytest.raises(CaptureError, match="shares memory with b"):
        cell("a[0] = 1\ny = b + 1", {"a": x, "b": x.view(np.int64)})


@pytest.mark.parametrize("part", ["x[:, :k[0]].reshape(-1)", "x[:, k[1]:k[0]].ravel()"])
def test_a_store_through_another_name_of_what_was_reshaped(part: str):
    """Whether NumPy made a view of it is data-dependent: what is stored through any name may change it."""
    x = np.arange(6.0).reshape(2, 3)
    for store in ("w += 1", "x[0] = 3"):
        given = {"x": x, "w": x[1:], "k": np.array([1, 0])}
        before = cell(f"v = {part}\nu = v * 1\n{store}", given).outputs["u"]
        space = {**given, "x": x.copy()}
        exec(f"u = {part}", space)
        np.testing.assert_array_equal(computed(before), space["u"])
        found = cell(f"v = {part}\n{store}", given)
        with pytest.raises(CaptureError, match=r"may be a part of (x|another array), which has changed since"):
            computed(found.outputs["v"])
        with pytest.raises(CaptureError, match="shares memory with the array that it was made from"):
            cell(f"v = {part}\nv[:] = 1", given)
