"""Strides and flags of computed arrays in cells: NumPy's, in whatever order their operands lie; Python says them where no graph does."""

import random

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError, PlainRunWarning

SETUP = """
y = np.arange(24.0).reshape(2, 3, 4) + 1
q = np.asfortranarray(np.arange(12.0).reshape(3, 4))
p = np.arange(12.0).reshape(3, 4)
r = np.arange(12.0).reshape(4, 3)[:, ::-1]
s = 2.5
"""
ARRAYS = (
    "q", "p", "r.T", "q.T.T", "p[:, ::-1]", "r.T[::-1]", "y[0]", "y.transpose(2, 1, 0)[:, :, 0].T", "p.copy()", "q.copy()", "np.copy(q)",
    "np.zeros((3, 4))", "np.ones((3, 4), order='F')", "p[:, :]", "np.arange(12.0).reshape(3, 4)",
)  # fmt: skip
EXPRESSIONS = (
    "{a} * 2", "{a} + {b}", "np.exp({a} * 0.1)", "{a} + s", "-{a}", "({a} > 3)", "{a}.astype(np.float32)", "{a} * {b}[0]",
    "{a} + {b}[:, :1]", "np.where({a} > 2, {a}, {b})", "np.maximum({a}, {b})", "{a}.T.T", "({a} + 0).T.copy().T", "np.sqrt({a} * {a})",
    "{a} / ({b} + 1)", "{a}.copy()", "np.copy({a})", "np.abs({a})", "{a}.reshape(3, 4)", "{a}**2", "np.clip({a}, 0, 3)",
    "np.zeros_like({a})", "np.ones_like({a}) * 2", "np.array({a})", "np.asarray({a}) + 1", "np.add({a}, {b})", "{a}[:, ::-1] * 2",
    "({a} * 2)[::-1]", "np.ascontiguousarray({a})", "np.asfortranarray({a})",
)  # fmt: skip


def drawn(draw: random.Random) -> str:
    """A cell that asks where a computed array lies."""
    lines: list[str] = []
    names = list(ARRAYS)
    for k in range(draw.randint(1, 5)):
        lines.append(f"v{k} = {draw.choice(EXPRESSIONS).format(a=draw.choice(names), b=draw.choice(names))}")
        if draw.random() < 0.2:
            lines.append(f"v{k}[0] = 1")
        names.append(f"v{k}")
    name = f"v{draw.randrange(k + 1)}"
    return "\n".join([*lines, f"t = {name}.strides, {name}.flags.c_contiguous, {name}.flags.f_contiguous"])


@pytest.mark.share(8)
@pytest.mark.filterwarnings("ignore:.*memory layout:tensormagic.PlainRunWarning")
@pytest.mark.parametrize("seed", range(320))
def test_orders(seed, notebook):
    cell = drawn(random.Random(seed))
    notebook["np"] = np
    notebook(SETUP)
    plain = notebook(cell).error
    expected = notebook.shell.user_ns.pop("t", None)
    notebook(SETUP)
    with tm.config.using(tier="numpy" if seed % 2 else "numba"):
        error = notebook(f"%%tensor -q\n{cell}").error
    if error is None:
        assert notebook["t"] == expected, cell
    else:
        assert isinstance(error, CaptureError) or isinstance(plain, ValueError), cell


@pytest.mark.parametrize(
    "expression",
    [
        "q * 2",
        "np.exp(q) + q",
        "(q * 2).T",
        "q.T * 2",
        "np.where(q > 2, q, 0)",
        "q + p[0]",
        "-r.T",
        "(q > 3)",
        "q.astype(np.float32)",
    ],
)
@pytest.mark.parametrize("tier", ["numpy", "numba"])
def test_computed_arrays_keep_the_order_of_their_operands(expression, tier, notebook):
    notebook["np"] = np
    notebook(SETUP)
    notebook.ok(f"t = ({expression}).strides")
    expected = notebook["t"]
    with tm.config.using(tier=tier):
        notebook.ok(f"%%tensor -q\na = {expression}\nt = a.strides\na[0] = 1\nu = a.strides, a.ravel(order='K')")
    assert notebook["t"] == notebook["u"][0] == expected
    notebook.ok(f"a = {expression}\na[0] = 1\nv = a.ravel(order='K')")
    np.testing.assert_array_equal(notebook["u"][1], notebook["v"])


LAID_OUT = "a = np.exp(q)\nfor i in range(2):\n    a = a * 2\nt = a.strides"


def test_how_machine_code_lays_out_an_array_python_says(notebook):
    notebook["np"] = np
    notebook(SETUP)
    notebook.ok(LAID_OUT)
    expected = notebook["t"]
    with pytest.warns(PlainRunWarning, match="memory layout"):
        notebook.ok(f"%%tensor -q\n{LAID_OUT}")
    assert notebook["t"] == expected
    error = notebook(f"%%tensor -q --grad q\n{LAID_OUT}\na.sum()").error
    assert isinstance(error, CaptureError)
    assert "memory layout" in str(error)


AFTER = (
    "q.T.copy()", "p.T.copy()", "np.ascontiguousarray(p.T)", "np.ascontiguousarray((p * 2).T)", "(q * 2).copy()", "np.array([p.T, p.T])",
    "np.array([[k * p.sum() for k in range(3)] for _ in range(2)])", "np.array([q, p])", "np.stack([p[0] ** k for k in range(15)], 1)",
    "np.stack([p[:, 0] + k for k in range(15)], axis=-1)", "np.tile(p[0], (3, 1))", "np.stack([p, p])", "np.stack([p, p], 1)",
    "np.meshgrid(p[0], p[0])[0] + 0", "np.broadcast_to(p[0], (3, 4)) * 1.0", "np.vstack([p[0], p[0]])",
)  # fmt: skip


@pytest.mark.parametrize("tier", ["numpy", "numba"])
@pytest.mark.parametrize("expression", AFTER)
def test_arrays_after_a_cell_lie_as_the_cell_asks(expression, tier, notebook):
    notebook["np"] = np
    notebook(f"{SETUP}\nt = {expression}")
    expected = notebook["t"]
    with tm.config.using(tier=tier):
        notebook(f"%%tensor -q\nt = {expression}")
        first, second, read = np.asarray(notebook["t"]), np.asarray(notebook["t"]), notebook["t"].numpy()
    for got in (first, second, read):
        assert (got.strides, got.tolist()) == (expected.strides, expected.tolist())
    assert np.shares_memory(first, second)


@pytest.mark.parametrize("expression", [e for e in AFTER if "q" not in e])
def test_what_functions_give_lies_in_numpys_order_where_that_is_c_order(expression):
    names: dict[str, object] = {"np": np}
    exec(f"def f(p):\n    return {expression}", names)
    p = np.arange(12.0).reshape(3, 4)
    expected = names["f"](p)
    function = tm.tensor(names["f"])
    assert [function(p).strides for _ in range(3)] == [expected.strides] * 3
