"""What the first hour gets wrong: a magic's line, names where text is meant, a gradient that is only looked at."""

from __future__ import annotations

import ast
import re
import warnings

import numpy as np
import pandas as pd
import pytest

import tensormagic as tm
from tensormagic.ir.errors import ArgumentError, DifferentiationError, StaleGradientWarning
from tensormagic.notebook.cells.showing_lines import computing

# which arguments are meant --------------------------------------------------------------------------------------------


def loss(w, b):
    return np.sum(w**2) * b


W, B = np.ones(3), 2.0
MAKERS = [tm.grad, tm.value_and_grad, tm.jacobian, tm.hessian, lambda f, a: tm.jacobian(f, a, sparse=True)]
VALUES = [(W, B), W, B, [W], None, {"w", "b"}, np.float64(1.0), (0, 2.5)]
NAMES = [
    ("w,b", 'Several names are a tuple: ("w", "b").'),
    ("w b", 'Several names are a tuple: ("w", "b").'),
    (("w", "bb"), "Did you mean 'b'?"),
    ("W", "it has w, b"),
    (("w", "nothing"), "it has w, b"),
]


@pytest.mark.parametrize("make", MAKERS, ids=range(len(MAKERS)))
@pytest.mark.parametrize("argnums", VALUES, ids=range(len(VALUES)))
def test_values_in_place_of_names_are_refused_where_they_are_written(make, argnums):
    with pytest.raises(DifferentiationError, match="not by their values") as told:
        make(loss, argnums)
    assert 'Write the names in quotes, several as a tuple: loss has "w", "b".' in str(told.value)


@pytest.mark.parametrize("make", MAKERS, ids=range(len(MAKERS)))
@pytest.mark.parametrize(("argnums", "said"), NAMES)
def test_names_that_there_are_not_are_refused_where_they_are_written(make, argnums, said):
    with pytest.raises(DifferentiationError, match="has no argument") as told:
        make(loss, argnums)
    assert said in str(told.value)


@pytest.mark.parametrize("argnums", [0, -1, (0, 1), "b", ("w", "b"), np.int64(1), np.array(1), [1, 0], True])
def test_positions_and_names_are_taken_as_before(argnums):
    numbers = list(argnums) if isinstance(argnums, tuple | list) else [argnums]
    expected = [2 * W * B if n in (0, "w") else np.sum(W**2) for n in numbers]
    found = tm.grad(loss, argnums)(W, B)
    parts = found if isinstance(found, tuple) else (found,)
    assert all(np.allclose(one, other) for one, other in zip(parts, expected, strict=True))


def test_a_lazy_value_is_no_name_in_a_cell(notebook):
    said = notebook("%%tensor\ntm.grad(lambda v: np.sum(v**2), w)(w)").out
    assert "not by their values" in said
    assert "Cell In[1], line 2" in said


def test_a_cell_names_its_inputs(notebook):
    notebook.ok("%%tensor objective\nnp.sum(X @ w) * b")
    assert "objective has no argument 'v'; it has X, w, b" in notebook('step = tm.value_and_grad(objective, "v")').out
    said = notebook("step = tm.value_and_grad(objective, (w, b))").out
    assert 'objective has "X", "w", "b"' in said
    assert "Cell In[3], line 1" in said


# a gradient that is only looked at -----------------------------------------------------------------------------------

LOOKS = [
    "print(w, grad_w)",
    "grad_w, w",
    "print(f'{grad_w} of {w}')",
    "print('gradient', grad_w.round(3), len(w))",
    "for k in range(2):\n    print(k, grad_w[0])",
    "if True:\n    print(list(grad_w))",
    "display(grad_w)",
    "[grad_w, {'w': w}]",
]
COMPUTES = [
    "v = w - 0.1 * grad_w",
    "print(w - 0.1 * grad_w)",
    "update(w, grad_w)",
    "steps.append(grad_w)",
    "kept = grad_w",
    "np.subtract(w, grad_w, out=w)",
    "for k in range(2):\n    print(k)\n    w = w - grad_w",
]


@pytest.mark.parametrize("text", LOOKS)
def test_what_only_shows_is_left_out(text):
    left = ast.unparse(computing(ast.parse(text), {"grad_w"}))
    assert "grad_w" not in left


@pytest.mark.parametrize("text", COMPUTES)
def test_what_computes_stays(text):
    assert "grad_w" in ast.unparse(computing(ast.parse(text), {"grad_w"}))


def told_by(notebook, cell):
    """What a cell warns of old gradients, and in which line."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        notebook.ok(cell)
    return [(str(w.message), w.lineno) for w in told if w.category is StaleGradientWarning]


@pytest.mark.parametrize("look", LOOKS)
def test_looking_at_an_old_gradient_says_so_in_one_line(notebook, look):
    """It was told at length, with another loop; and the loop that computed with it afterwards was told nothing."""
    notebook.ok("%%tensor cost --show none --grad w\nnp.sum((X @ w - y) ** 2)")
    notebook.ok("w = w - 0.001 * grad_w")
    ((said, _),) = told_by(notebook, look)
    assert said == (
        "grad_w belongs to the w that In[1] read; w has changed since, but grad_w has not; In[1], run again, computes the new."
    )
    assert not told_by(notebook, look)
    ((said, line),) = told_by(notebook, "for k in range(3):\n    w = w - 0.001 * grad_w")
    assert "this cell has computed with an old gradient" in said
    assert 'step = tm.value_and_grad(cost, "w")' in said
    assert line == 2


def test_a_step_and_a_look_in_one_cell(notebook):
    notebook.ok("%%tensor cost --show none --grad w\nnp.sum((X @ w - y) ** 2)")
    ((said, line),) = told_by(notebook, "w = w - 0.001 * grad_w\nprint(w, grad_w)")
    assert line == 2
    assert "computed with an old gradient" not in said


def test_nothing_is_said_of_a_new_gradient(notebook):
    notebook.ok("%%tensor cost --show none --grad w\nnp.sum((X @ w - y) ** 2)")
    assert not told_by(notebook, "print(w, grad_w)")


# a value that is old in the cell that shows it -----------------------------------------------------------------------

CHANGES = ["w = w + 1", "w = 3.0 * w", "for k in range(2):\n    w = w - 0.1", "w = np.zeros(3)", "w, v = w * 2, 1"]


@pytest.mark.parametrize("change", CHANGES)
def test_a_cell_that_changes_a_variable_and_shows_what_was_computed_of_it(notebook, change):
    notebook.ok("w = np.ones(3)")
    notebook.ok("%%tensor --show none\nz = X @ w\nloss = np.sum(z)\nloss")
    line = notebook.ok(f"{change}\nloss").data["text/plain"].splitlines()[0]
    assert line.endswith("computed for w of In[1]; w has changed since")
    assert "w is now from In[3]" in notebook.ok("loss").data["text/plain"]


# lines of magics ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["# mine", "--grad w # mine", "name  # two words", "#mine too"])
def test_a_comment_behind_the_options(notebook, line):
    assert "a comment cannot stand behind the options" in notebook(f"%%tensor {line}\nnp.sum(w)").out


def test_a_name_for_of_that_there_is_not(notebook):
    """A function of IPython's was offered."""
    notebook.ok("def open_it(): pass")
    said = notebook("%%tensor --grad w --of nope\nq = np.sum(w)").out
    assert said.strip().endswith("there is no variable nope; the cell assigns q")
    assert "did you mean total?" in notebook("%%tensor --grad w --of totl\ntotal = np.sum(w)").out


ENDS = [
    ("loss = np.sum(w)\nprint(loss)", "end it with loss, or write --of loss"),
    ("z = X @ w\nloss = np.sum(z)\nprint(loss)", "end it with loss, or write --of loss"),
    ("for k in range(2):\n    total = np.sum(w) * k\nprint('done')", "end it with total, or write --of total"),
    ("if b > 9:\n    s = np.sum(w)\nelse:\n    s = np.sum(w**2)\nprint(s)", "end it with s, or write --of s"),
    ("def f(v):\n    return np.sum(v)\nr = f(w)\nprint(r)", "end it with r, or write --of r"),
    ("print(X @ w)", "end it with an expression, or name a value with --of"),
    ("before = np.sum(w)\nprint(before)", "end it with before, or write --of before"),
    ("print(before)", "end it with before, or write --of before"),
]


@pytest.mark.parametrize(("text", "said"), ENDS)
def test_a_cell_that_ends_in_print_has_no_gradient(notebook, text, said):
    """Of the names that it binds or reads one is proposed, and none of what stands in the notebook beside them."""
    notebook.ok("%%tensor --show none --grad b\nbefore = b**2\nbefore")
    assert f"the cell has no value; {said}" in notebook(f"%%tensor --grad w\n{text}").out


@pytest.mark.parametrize("magic", ["%%tensor --grad w", "%%rewrite mine"])
def test_a_magic_below_other_code(notebook, magic):
    said = notebook(f"loss = 3\n{magic}\nloss").out
    assert said.strip() == f"UsageError: {magic.split()[0]} must be the first line of its cell: split the cell above it"


@pytest.mark.parametrize("option", ["--grad w,w", "--grad w,b,w -o total,total"])
def test_a_name_that_is_asked_for_twice_is_one(notebook, option):
    """It was refused: no derivative with respect to w, there are derivatives with respect to w."""
    notebook.ok(f"%%tensor --show none {option}\ntotal = np.sum(w**2) * b\ntotal")
    assert np.allclose(notebook["grad_w"], 2 * notebook["w"] * notebook["b"])


@pytest.mark.parametrize("text", ["tm.grad(np.tanh)(w)", "%%tensor --grad w\nnp.tanh(w)"])
def test_slopes_of_each_element(notebook, text):
    assert "; tm.vmap(tm.grad(f)) takes the slope at each element." in notebook(text).out


def test_a_gradient_by_a_variables_name_is_by_what_it_holds(notebook):
    """It was by the array of that name that an earlier cell had read, 1000 steps before."""
    notebook.ok("%%tensor --show none\nw = w * 3")
    notebook.ok("%%tensor --show none --grad w\nloss = np.sum(w**2)\nloss")
    assert np.array_equal(notebook.ok('loss.grad("w").numpy()').value, 2 * np.asarray(notebook["w"]))
    assert np.array_equal(notebook["grad_w"], 2 * np.asarray(notebook["w"]))


# a cell called by position --------------------------------------------------------------------------------------------

BY_POSITION = [
    ("objective(w)", "w is given for X: objective takes X, w, y in this order."),
    ("objective(w, y)", "w is given for X"),
    ("objective(X, y)", "y is given for w"),
    ("step(w)", "w is given for X"),
    ("for k in range(2):\n    step(y)", "y is given for X"),
]


@pytest.mark.parametrize(("text", "said"), BY_POSITION)
def test_a_variable_that_is_given_for_another_one(notebook, text, said):
    """The value was that of another computation, without a word: `step(w)` took w for X."""
    notebook["X"], notebook["w"], notebook["y"] = np.eye(3), np.ones(3), np.arange(3.0)
    notebook.ok("%%tensor objective --show none\nnp.sum((X @ w - y) ** 2)")
    notebook.ok('step = tm.value_and_grad(objective, "w")')
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        notebook(text)
    assert str(told[0].message).startswith(said)
    assert "Write the name in the call" in str(told[0].message)


@pytest.mark.parametrize(
    "text", ["objective(w=w)", "objective(X, w)", "step(X)", "objective(2 * X)", "objective(w=y, y=w)"]
)
def test_a_variable_in_its_own_place(notebook, text):
    notebook["X"], notebook["w"], notebook["y"] = np.eye(3), np.ones(3), np.arange(3.0)
    notebook.ok("%%tensor objective --show none\nnp.sum((X @ w - y) ** 2)")
    notebook.ok('step = tm.value_and_grad(objective, "w")')
    with warnings.catch_warnings(action="error"):
        notebook.ok(text)


# the code of a line ---------------------------------------------------------------------------------------------------

OWN = [
    ("i = X * 2\ni.sum()", "i"),
    ("n2 = X + 1\nn2.sum()", "n2"),
    ("start = X.sum(axis=1)\nstop = start * 2\nstop.sum()", "start and stop"),
    ("first = X @ w\nfirst.sum()", "first"),
    ("for k in range(2):\n    last = X * k\nlast.sum()", "last"),
]


@pytest.mark.parametrize(("text", "names"), OWN)
def test_the_code_of_a_line_says_which_names_are_not_the_cells(notebook, monkeypatch, text, names):
    monkeypatch.setattr(tm.config, "tier", "numba")
    page = notebook.ok(f"%%tensor -a --show annotate\n{text}").data["text/html"]
    told = re.findall(r"its names are the compiler's([^<]*)</p>", page)
    assert told
    found = {word for one in told for word in re.findall(r"\w+", one)} - {"too", "and"}
    assert found <= set(names.split(" and "))


@pytest.mark.parametrize("name", ["n2", "n3", "rows_1", "share_2", "x_4"])
def test_an_array_called_as_something_else_of_the_kernel_keeps_the_compilers_name(notebook, monkeypatch, name):
    """`n2 = array(...)` and `n2 = table[2]` stood in one text."""
    monkeypatch.setattr(tm.config, "tier", "numba")
    notebook[name] = np.ones((7, 5))
    text = notebook.ok(f"%%tensor --show code\nnp.sum(np.exp({name}), axis=1)").data["text/plain"]
    bound = re.findall(rf"^ *{name} = (.*)$", text, re.MULTILINE)
    assert len({found.partition("(")[0] == "array" for found in bound}) < 2


def test_names_of_any_length_are_looked_for_in_no_time(notebook):
    long = "long" * 25_000
    page = notebook.ok(f"%%tensor -a --show annotate\n{long} = X * 2.0\n{long}.sum()").data["text/html"]
    assert "lines of the cell" in page


# keys, attributes, types ----------------------------------------------------------------------------------------------

KEYS = [
    ("np.mean(df['agee'])", "Did you mean 'age'? df has the columns 'age', 'income'."),
    ("np.mean(df['height'])", "df has the columns 'age', 'income'."),
    ("for k in range(2):\n    s = df['incom'] * k", "Did you mean 'income'?"),
    ("np.sum(params['weigths'])", "params has the keys 'weights', 'bias'."),
    ("np.sum(empty['a'])", "empty has no columns."),
]


@pytest.mark.parametrize(("text", "said"), KEYS)
def test_columns_are_told_as_keys_are(notebook, text, said):
    notebook["df"], notebook["empty"] = pd.DataFrame({"age": [1.0, 2.0], "income": [3.0, 4.0]}), pd.DataFrame()
    notebook["params"] = {"weights": np.ones(3), "bias": 2.0}
    assert said in notebook(f"%%tensor\n{text}").out


@pytest.mark.parametrize("text", ["lazy.grad", "print(lazy.grad)", "%%tensor\nprint(w.grad)", "%%tensor\nlazy.grad"])
def test_the_method_says_how_it_is_called(notebook, text):
    """It was shown as ``<bound method tensor_grad of array([…])>``."""
    notebook.ok("%%tensor --show none\nlazy = w * 2")
    ran = notebook.ok(text)
    said = ran.out + "".join(shown["text/plain"] for shown in ran.displays)
    assert "<a method: y.grad(w) is the gradient of y with respect to w;" in said
    assert "an object" not in said
    assert "array" not in said


def test_the_method_without_an_argument(notebook):
    notebook.ok("%%tensor --show none\nlazy = np.sum(w * 2)")
    assert 'Hint: Name it, as in y.grad("w").' in notebook("lazy.grad()").out


@pytest.mark.parametrize("text", ["w.requires_grad = True", "w.requires_grad_()", "np.sum(w).backward()", "w.detach()"])
def test_what_other_libraries_write_of_arrays(notebook, text):
    said = notebook(f"%%tensor\n{text}").out
    assert "Hint: " in said
    assert "tm.stop_gradient" in said or "%%tensor --grad" in said


@pytest.mark.parametrize("function", [loss, lambda x: x, lambda x, y=1.0: x * y, lambda *, x: x])
def test_compile_without_types(function):
    with pytest.raises(ArgumentError, match="needs an example of each argument"):
        tm.compile(function)


def test_a_function_that_needs_no_argument_is_compiled():
    assert tm.compile(lambda: np.arange(3.0).sum()).run() == 3.0
    assert tm.compile(lambda x=2.0: x * 2).run() == 4.0


# a word where rules changed digits -----------------------------------------------------------------------------------

LATER = ["q + 1", "2 * q", "q * X", "[q, q]", "(q, 1.0)"]


@pytest.mark.parametrize("later", LATER)
def test_the_word_says_in_which_cell(notebook, later):
    """It stood alone: *rewritten*, without where."""
    notebook.ok("%%tensor --show none\nq = (X.T @ X).sum()")
    assert "rewritten in In[1]" in notebook.ok(f"%%tensor\n{later}").data["text/plain"]


def test_the_word_says_the_newest_of_equal_cells(notebook):
    """One that had ended in an error was named, too."""
    notebook("%%tensor\np = 1 / (1 + np.exp(-X))\nnothing")
    notebook.ok("%%tensor --show none\np = 1 / (1 + np.exp(-X))")
    notebook.ok("%%tensor --show none\np = 1 / (1 + np.exp(-X))")
    assert "more accurate in In[3]\n" in notebook.ok("%%tensor\np.sum()").data["text/plain"]


def test_a_cell_without_a_value(notebook):
    notebook.ok("%%tensor --show none\nq = X.T @ X")
    assert "rewritten in In[1]" in notebook.ok("%%tensor\nr = q + 1\nprint('done')").data["text/plain"]


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (["%%tensor\nv = [1, 2]\nv + 1"], "Hint: v is a list: np.array(v) makes an array of it."),
        (["%%tensor\nw.plot()"], "Hint: plt.plot(w) draws it."),
        (["%%tensor --device cuda\nw"], "not 'cuda' (did you mean gpu?)"),
        (["%%tensor grad w\nnp.sum(w)"], "is one too many in 'grad w' (did you mean --grad?)"),
        (["%%tensor --live q=0:1\nnp.sum(w)"], "the cell does not read q; the cell reads w"),
        (
            ["%%tensor\ndef none(x):\n    np.sum(x)\nlow = none(w)", "%%tensor --grad w\nlow = none(w)\nlow"],
            "low is None, and has no gradient: a function without return gives None",
        ),
        (["%%tensor lonely\nnp.sum(w)", "lonely(w, w)"], "lonely() takes 1 argument (w) but 2 were given"),
        (
            ["%%tensor\nq = np.ones(3)\nq[7]", "%%tensor\nwhile q[0] > 0:\n    q = q - 1", "q"],
            "Cell In[1] would have set q",
        ),
        (
            ["%%tensor --grad p\np = {'w': np.ones(3)}\nnp.sum(p['w'])"],
            "Hint: If it holds floats, assign p in a cell before this one.",
        ),
    ],
)
def test_what_is_told_to_those_who_begin(notebook, cells, told):
    assert told in [notebook(cell) for cell in cells][-1].out
