"""What beginners get wrong, and what they are told: parts and names, joined arrays, functions by other names, values a loop records."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import ArgumentError, DifferentiationError, RuleError

START = "w, X, pair, name, q = np.ones(3), np.ones((5, 3)), (1.0, 2.0), 'abc', [1.0, 2.0, 3.0]"


def warned(notebook, cell):
    """The warnings of a cell, as they are written down."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        notebook(cell)
    return "\n".join(warnings.formatwarning(w.message, w.category, w.filename, w.lineno) for w in found)


@pytest.fixture
def begun(notebook):
    notebook.ok("import numpy as np\nimport pandas as pd\nimport tensormagic as tm")
    notebook.ok(START)
    return notebook


MISTAKES = [
    ("a, c = 1.0", "1.0 is one number, and there are 2 names: give one name, or write a = c = 1.0."),
    ("a, c = w.sum()", "is one number, and there are 2 names"),
    ("a, c = w", "w has 3 elements, and there are 2 names: write a, c, *rest = w, or give 3 names."),
    ("a, c, d, e = q", "q has 3 elements, and there are 4 names: give 3 names, or a longer value."),
    ("[a, c] = 1.0, 2.0, 3.0", "write a, c, *rest = "),
    ("pair[0] = 3.0", "A tuple cannot be changed: a list can, pair = list(pair)."),
    ("pair[1] += 3.0", "pair = list(pair)"),
    ("name[0] = 'x'", "A text cannot be changed"),
    ("np.concatenate(X, X)", "Give the arrays as one tuple: np.concatenate((X, X))."),
    ("np.stack(w, w)", "np.stack((w, w))"),
    ("np.vstack(w, w)", "np.vstack((w, w))"),
    ("np.hstack(w, w, w)", "np.hstack((w, w, w))"),
    ("np.column_stack(w, w)", "np.column_stack((w, w))"),
    ("np.where(X > 0, X)", "np.where(X > 0, X, 0)"),
    ("return X", "A cell is no function"),
    ("w.mean() + None", "None is written there"),
    ("None * w", "None is written there"),
    ("pd.DataFrame({'n': ['a', 'b']})['n'].mean()", "The column holds text"),
    ("sigmoid(X @ w)", "There is no function sigmoid: write 1 / (1 + np.exp(-x))"),
    ("relu(w)", "np.maximum(x, 0)"),
    ("softmax(w)", "scipy.special.softmax"),
    ("prnt(w)", "Did you mean 'print'?"),
    ("tm.jit(w)", "@tm.tensor compiles a function at its calls"),
    ("tm.no_grad()", "tm.stop_gradient"),
    ("tm.zeros(3)", "np.zeros"),
]


@pytest.mark.parametrize(("text", "said"), MISTAKES)
def test_the_way_out(begun, text, said):
    assert said in begun(f"%%tensor\n{text}").out


OTHERS = [
    "X + q",
    "a, c, d = w",
    "pair[0] + 1",
    "np.concatenate((w, w))",
    "np.where(X > 0, X, 0)",
    "a, *c = w",
    "np.where(X > 0)",
]


@pytest.mark.parametrize("text", OTHERS)
def test_right_cells_are_told_nothing(begun, text):
    assert "Hint" not in begun(f"%%tensor\n{text}").out


@pytest.mark.parametrize(
    "text",
    ["tm.grad(lambda w, X: w * X)(2.0)", "tm.vmap(lambda w, X: w + X)(np.ones(3), np.ones(4))", "[w.foo for w in q]"],
)
def test_names_that_a_line_binds_itself_are_not_the_notebooks(begun, text):
    """They had the types of variables of these names, which the line does not read."""
    out = begun(text).out
    assert "X: float64[5, 3]" not in out
    assert "w: float64[3]" not in out


# derivatives ----------------------------------------------------------------------------------------------------------

CELL = "%%tensor objective --grad w\nloss = np.sum((X @ w - 1) ** 2)\nloss"
UNPACKED = [
    ("step = tm.value_and_grad(objective, ('w', 'X'))\nv, a, c = step(w=w, X=X)", "write v, (a, c) = step(w=w, X=X)."),
    ("v, a, c, d = tm.value_and_grad(objective, ('w', 'X'))(w=w, X=X)", "write v, (a, c, d) = tm.value_and_grad("),
    ("step = tm.value_and_grad(objective, 'w')\na, = step(w=w, X=X)", "write value, gradient = step(w=w, X=X)."),
    ("v, g = tm.grad(objective, 'w')(w=w, X=X)", "v, g = tm.value_and_grad(objective, 'w')(w=w, X=X)."),
    ("slope = tm.grad(objective, 'w')\nv, g = slope(w=w, X=X)", "v, g = tm.value_and_grad(...)(w=w, X=X)."),
]


@pytest.mark.parametrize(("text", "said"), UNPACKED)
@pytest.mark.parametrize("magic", ["", "%%tensor\n"])
def test_what_derivatives_give(begun, text, said, magic):
    begun.ok(CELL)
    assert said in begun(f"{magic}{text}").out


@pytest.mark.parametrize("text", ["a, b = (1, 2, 3)", "a, b = [1]", "for a, b in [(1, 2, 3)]: pass"])
def test_other_values_of_plain_cells_have_pythons_error_alone(begun, text):
    assert "Hint" not in begun(text).out


REFUSED = [
    (lambda: tm.grad(lambda x: x**2)("a"), DifferentiationError, "x of <lambda> holds the text 'a'"),
    (lambda: tm.grad(lambda x: x**2)(None), DifferentiationError, "x of <lambda> holds None"),
    (lambda: tm.grad(lambda x: x, argnums=1)(2.0), DifferentiationError, "argnums counts from 0: 0 alone"),
    (lambda: tm.grad(lambda x, y: x * y, argnums=2)(2.0, 1.0), DifferentiationError, "argnums counts from 0: 0 to 1"),
    (lambda: tm.grad(lambda x: x, has_aux=True)(2.0), DifferentiationError, "returns one value, but with has_aux=True"),
    (lambda: tm.value_and_grad(lambda x: (x, x, x), has_aux=True)(2.0), DifferentiationError, "returns 3 values"),
    (lambda: tm.check_grads(lambda x: x**2, 2), DifferentiationError, "there is nothing to check"),
    (lambda: tm.check_grads(lambda x: x**2, (np.arange(3),)), DifferentiationError, "there is nothing to check"),
    (lambda: tm.rule("x + 0 -> x"), RuleError, "not the text 'x \\+ 0 -> x'"),
    (lambda: tm.compile(lambda x: x), ArgumentError, "needs an example of each argument"),
]


@pytest.mark.parametrize(("call", "error", "said"), REFUSED, ids=range(len(REFUSED)))
def test_refusals(call, error, said):
    with pytest.raises(error, match=said):
        call()


def test_pairs_beside_a_value():
    assert tm.grad(lambda x: [x**2, x], has_aux=True)(3.0) == (6.0, 3.0)
    assert tm.value_and_grad(lambda x: (x**2, -x), has_aux=True)(3.0) == ((9.0, -3.0), 6.0)


MET = [
    ("def f(v): return np.zeros(3, 4) + v\ntm.compile(f, w)", "np.zeros((3, 4))"),
    ("def f(v): return v + None\ntm.grad(f)(1.0)", "None is written there"),
    ("def f(d): return d['c'] ** 2\ntm.grad(f)({'a': 1.0})", "d has the keys 'a'"),
    ("def f(v): return np.meen(v)\ntm.vmap(f)(w)", "Did you mean 'mean'?"),
    ("def f(v):\n    a, c = v\n    return a\ntm.compile(f, w)", "v has 3 elements, and there are 2 names"),
]


@pytest.mark.parametrize(("text", "said"), MET)
def test_functions_that_are_captured_in_plain_cells(begun, text, said):
    assert said in begun(text).out


# values that a loop records -------------------------------------------------------------------------------------------

LOOP = """step = tm.value_and_grad(objective, 'w')
history, h = [], np.zeros(5)
for k in range(5):
    now, g = step(w=w, X=X)
    {}
    {}"""
RECORDS = [
    "history.append(loss)",
    "history.append(float(loss))",
    "h[k] = loss",
    "history += [loss]",
    "history.append((k, loss.item()))",
]
UPDATES = ["w -= 0.01 * g", "w = w - 0.01 * g"]


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("record", RECORDS)
def test_a_value_that_does_not_change_is_told(begun, record, update):
    begun.ok(CELL)
    said = warned(begun, LOOP.format(update, record))
    assert "loss is of the w that In[" in said
    assert "record now, which the loop computes" in said
    assert "StaleGradientWarning" not in warned(begun, LOOP.format(update, record))  # it is said once


@pytest.mark.parametrize(
    "record",
    [
        "history.append(now)",
        "loss = now\n    history.append(loss)",
        "history.append(loss - now)",
        "print(k)",
        "history.append(k)",
    ],
)
def test_others_are_not(begun, record):
    begun.ok(CELL)
    assert "StaleGradientWarning" not in warned(begun, LOOP.format("w -= 0.01 * g", record))


def test_a_loop_that_changes_nothing_of_it_is_told_nothing(begun):
    begun.ok(CELL)
    assert "Stale" not in warned(begun, "total = 0.0\nh = []\nfor k in range(3):\n    total += 1.0\n    h.append(loss)")


@pytest.mark.parametrize("record", ["history.append(float(loss))", "history.append(loss)", "print(loss)"])
def test_the_offered_cell_computes_the_value_anew(begun, record):
    """``value, grad_w = step(w=w)`` left the ``loss`` that the loop goes on to record as it was."""
    begun.ok(CELL)
    said = warned(begun, f"history = []\nfor k in range(3):\n    w = w - 0.01 * grad_w\n    {record}")
    assert "loss, grad_w = step(w=w)" in said


def test_without_the_value_it_has_a_name_of_its_own(begun):
    begun.ok(CELL)
    assert "value, grad_w = step(w=w)" in warned(begun, "for k in range(3):\n    w = w - 0.01 * grad_w")


# warnings and counts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["np.log(-1.0)", "np.sqrt(-1.0) + 1", "np.divide(1.0, 0.0)", "np.exp(1e4)", "np.float64(1.0) / 0"]
)
def test_numbers_that_are_there_warn_of_the_users_line(begun, text):
    err = warned(begun, f"%%tensor\n\n{text}")
    assert "line 3: RuntimeWarning (no error):" in err
    assert "calls.py" not in err


@pytest.mark.parametrize(
    "text",
    ["u = big - big\nu", "u = big * 0\nu", "for k in range(3):\n    u = big - big\nu", "u = big * big - big\nu"],
)
def test_pythons_floats_do_not_warn(begun, text):
    begun.ok("big = float('inf')")
    assert "RuntimeWarning" not in warned(begun, f"%%tensor\n{text}")


def test_numpys_do(begun):
    begun.ok("big = np.float64('inf')")
    assert "invalid value encountered in subtract" in warned(begun, "%%tensor\nbig - big")


def test_errors_that_are_asked_for_are_raised(begun):
    assert "FloatingPointError" in begun("%%tensor\nwith np.errstate(all='raise'):\n    v = np.log(-1.0)\nv").out
    assert "Warning" not in warned(begun, "%%tensor\nwith np.errstate(all='ignore'):\n    v = np.log(-1.0)\nv")


@pytest.mark.parametrize(
    "text", ["np.mean(df * df)", "z = a\nwhile abs(z * z - a) > 1e-12:\n    z = (z + a / z) / 2\nz"]
)
def test_more_ops_than_were_written_are_explained(begun, text):
    begun.ok("df, a = pd.DataFrame({'u': [1.0, 2.0], 'v': [3.0, 4.0]}), 2.0")
    assert "there are more ops after rewriting" in begun.ok(f"%%tensor --show graph\n{text}").data["text/plain"]


def test_fewer_are_not(begun):
    assert "more ops" not in begun.ok("%%tensor --show graph\nnp.log(1 + np.exp(w)).sum()").data["text/plain"]


@pytest.mark.parametrize("text", ["np.log(np.sum(np.exp(big)))", "np.log(1 + np.exp(big)).sum()"])
def test_results_that_run_over_in_numpy_alone(begun, text):
    """They had a *largest relative difference of inf*, and an error *< inf*."""
    begun.ok("big = np.full(20, 800.0)")
    with warnings.catch_warnings(action="ignore"):
        shown = begun.ok(f"%%tensor -t\n{text}")
    told = "\n".join(data.get("text/plain", "") for data in shown.displays)
    assert "the results differ: one is infinite or nan where the other is a number" in told
    assert "< inf" not in told


def test_results_of_loops_and_branches_in_backpropagation():
    def f(x):
        s = 0.0
        for i in range(3):
            s = s + np.sin(x) * i
        return s * 2 if s > 1 else s

    view = tm.backprop(f, 3.0)
    texts = " ".join(view.adjoints)
    view.close()
    assert "result 1 of the loop" in texts
    assert "branch()" not in texts
