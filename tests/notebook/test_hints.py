"""Mistakes that students make: each error has Python's or NumPy's own text, the user's types, and one instruction."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import tensormagic as tm
from tensormagic.ir.errors import ArgumentError

SPACE = {
    "M": np.eye(3),
    "table": pd.DataFrame({"s": ["x", "y"]}),
    "ids": np.array([1, 2, 3]),
    "labels": np.array(["a", "b", "c"]),
    "data": [1.0, 2.0, 3.0],
    "params": {"weights": np.ones(3), "bias": 0.5},
    "nothing": None,
    "name": "adam",
    "mask": np.array([True, False, True]),
    "math": math,
    "rows": np.array([0, 1, 2]),
    "classes": np.array([0, 3, 1]),
    "four": np.array([0, 1, 2, 0]),
    "without": lambda v: None,
}
# a line, the types that are told, and the hint
MISTAKES = [
    ("w @ X", "w: float64[3], X: float64[40, 3]", "X @ w fits: is that what you meant?"),
    ("X @ X", "X: float64[40, 3]", "X @ X.T fits: is that what you meant?"),
    (
        "M @ y",
        "M: float64[3, 3], y: float64[40]",
        "y has 40 elements, and to the right of M go 3, one for each of its columns.",
    ),
    (
        "X @ np.ones(7)",
        "X: float64[40, 3]",
        "np.ones(7) has 7 elements, and to the right of X go 3, one for each of its columns.",
    ),
    (
        "X @ np.ones((7, 2))",
        "X: float64[40, 3]",
        "np.ones((7, 2)) has 7 rows, and to the right of X go 3, one for each of its columns.",
    ),
    (
        "w @ np.ones(7)",
        "w: float64[3]",
        "np.ones(7) has 7 elements, and to the right of w go 3, as many as it has elements.",
    ),
    ("np.dot(X, np.zeros(5))", "X: float64[40, 3]", "np.zeros(5) has 5 elements, and to the right of X go 3"),
    (
        "X + np.ones(7)",
        "X: float64[40, 3]",
        "With X, of shape (40, 3), goes an array of shape (3,), (40, 1), (40, 3), or a single",
    ),
    ("w * np.ones(7)", "w: float64[3]", "With w, of shape (3,), goes an array of shape (3,), or a single number."),
    ("X[0] = np.ones(7)", "X: float64[40, 3]", "X[0] takes an array of shape (3,), or a single number."),
    (
        "X * y",
        "X: float64[40, 3], y: float64[40]",
        "y[:, None] has one row for each row of X: write that instead.",
    ),
    ("w[1:] = y", "w: float64[3], y: float64[40]", "w[1:] takes an array of shape (2,), or a single number."),
    ("a, c = w", "w: float64[3]", "w has 3 elements, and there are 2 names: write a, c, *rest = w, or give 3 names."),
    ("labels * 2.0", "labels: text[3]", "labels holds text. If these are numbers, convert them: labels.astype(float)."),
    (
        "w + name",
        "w: float64[3], name: text 'adam'",
        "name holds text. If these are numbers, convert them: float(name).",
    ),
    (
        "w + nothing",
        "w: float64[3], nothing: None",
        "nothing is None, and not a number or an array: a function without return gives None.",
    ),
    ("w > 'a'", "w: float64[3]", "'a' is text, and not a number."),
    ("data['a']", "data: list of 3", "Lists are indexed by whole numbers, from 0; names are keys of dictionaries."),
    ("params['weight']", "params: dict of 2", "Did you mean 'weights'? params has the keys 'weights', 'bias'."),
    ("w[5]", "w: float64[3]", "Indices go from 0 to 2, or from -3 to -1."),
    ("w[0.5]", "w: float64[3]", "Use whole numbers as indices: convert by int(...), or divide by //."),
    ("X[0, 0, 0]", "X: float64[40, 3]", "X has 2 axes, and takes at most 2 indices."),
    ("X[mask]", "X: float64[40, 3], mask: bool[3]", "A mask needs an element for each one that it chooses from."),
    ("X.sum(axis=2)", "X: float64[40, 3]", "X has 2 axes: 0 to 1, or -1 for the last."),
    ("np.sum(X, axs=0)", "X: float64[40, 3]", "Did you mean 'axis'?"),
    ("np.full((3,), fill=2)", "", "It takes shape, fill_value, "),
    ("sqrt(w)", "", "Did you mean np.sqrt?"),
    ("w * pi", "", "Did you mean np.pi?"),
    ("plt.plot(w)", "", "Write import matplotlib.pyplot as plt in a cell before this one."),
    ("w * random.random()", "", "Write import random in a cell before this one."),
    ("tokenizing + w", "", "No variable has a name like tokenizing. Has the cell that assigns it been run?"),
    ("np.pad(w)", "w: float64[3]", "It is called as np.pad(array, pad_width, mode='constant', **kwargs)"),
    ("X(3)", "X: float64[40, 3]", "X is not a function. To index it, write square brackets: X[...]."),
    (
        "w.append(3.0)",
        "w: float64[3]",
        "Arrays have no method append, but NumPy has a function: write np.append(w, ...).",
    ),
    ("for i in len(w): pass", "w: float64[3]", "To count, loop over range(...) of it."),
    ("w.astype('flaot32')", "w: float64[3]", "Did you mean 'float32'?"),
    ("ids /= 2", "ids: int64[3]", "Write ids = ids / 2, which makes a new array of the wider type."),
    (
        "ids & w",
        "ids: int64[3], w: float64[3]",
        "These operators are for booleans and integers: compare first, in brackets",
    ),
    ("w.reshape(2, 2)", "w: float64[3]", "The sizes must multiply to 3, but 2 x 2 is 4. One of them may be -1"),
    ("np.zeros(3, 3)", "", "Give all sizes as one tuple: np.zeros((3, 3))."),
    ("np.random.rand((3, 3))", "", "Write the sizes one by one: np.random.rand(2, 3)."),
    ("np.linspace(0, 1, 2.5)", "", "A whole number is needed: convert it by int(...), or divide by //."),
    (
        "np.concatenate([w, X])",
        "w: float64[3], X: float64[40, 3]",
        "Give the smaller one another axis: x[None] puts it first",
    ),
    ("np.stack([w, y])", "w: float64[3], y: float64[40]", "np.concatenate joins arrays of different lengths."),
    ("np.split(y, 7)", "y: float64[40]", "np.array_split makes parts of unequal lengths, too."),
    ("np.linalg.inv(X)", "X: float64[40, 3]", "np.linalg.lstsq and np.linalg.pinv take matrices that are not square."),
    (
        "np.linalg.cholesky(-M)",
        "M: float64[3, 3]",
        "Its eigenvalues must be positive: look at np.linalg.eigvalsh of it.",
    ),
    ("float(w)", "w: float64[3]", "Choose one element (w[0]), or reduce it (w.sum())."),
    ("w and y", "w: float64[3], y: float64[40]", "Element by element, write & for and, | for or, ~ for not"),
    ("max(X)", "X: float64[40, 3]", "Python's max compares whole rows: use np.max."),
    ("{w: 1}", "w: float64[3]", "Keys are numbers, texts or tuples: tuple(x.tolist()) can be one."),
    ("import no_such_package", "", "If it is not installed, run %pip install no_such_package in a cell of its own."),
    ("np.sigmoid(w)", "w: float64[3]", "NumPy has no sigmoid: write 1 / (1 + np.exp(-x)), or scipy.special.expit(x)."),
    ("np.relu(X)", "X: float64[40, 3]", "NumPy has no relu: write np.maximum(x, 0)."),
    ("np.softmax(X, axis=1)", "X: float64[40, 3]", "NumPy has no softmax: write scipy.special.softmax(x, axis=-1)."),
    ("np.inv(M)", "M: float64[3, 3]", "NumPy has no inv: write np.linalg.inv(A)."),
    ("np.smu(w)", "w: float64[3]", "Did you mean 'sum'?"),
    ("np.linalg.slove(M, w)", "M: float64[3, 3], w: float64[3]", "Did you mean 'solve'?"),
    ("data * 2.0", "data: list of 3", "data is a list: np.array(data) makes an array of it."),
    ("data.mean()", "data: list of 3", "data is a list: np.array(data) makes an array of it, which has mean."),
    ("without(w) + w", "w: float64[3]", "without(w) is None, and not a number or an array: a function without return"),
    ("ids ** -1", "ids: int64[3]", "Write the exponent as a float, -1.0, or convert: x.astype(float)."),
    ("table['s'] * 2.0", "table: DataFrame[2, 1]", "The column holds text. If these are numbers, convert them"),
    ("np.reshape(y, 2.0)", "y: float64[40]", "A whole number is needed: convert it by int(...), or divide by //."),
    ("X[w]", "X: float64[40, 3], w: float64[3]", "Convert them to whole numbers, x.astype(int), or choose by"),
    ("np.mean[X]", "X: float64[40, 3]", "np.mean is a function. To call it, write round brackets: np.mean(X)."),
    ("len[w]", "w: float64[3]", "len is a function. To call it, write round brackets: len(w)."),
    ("lambda = 0.1", "", "lambda is a word of Python's own, and cannot be a name: lambda_ can."),
    ("np.sum(w) + lambda * np.sum(w**2)", "", "lambda is a word of Python's own"),
    ("f(w, lambda=0.1)", "", "lambda is a word of Python's own"),
    ("in = 3", "", "in is a word of Python's own"),
    ("(lambda: w", "", ""),
    ("print('in = ', w w)", "", ""),
    ("w = = 3", "", ""),
    ("f = lambda *p, q=1: p p", "", ""),
    ("y[0, 1]", "y: float64[40]", "y has 1 axis, and takes at most 1 index."),
    ("X[0, 1, 2]", "X: float64[40, 3]", "X has 2 axes, and takes at most 2 indices."),
    ("X @ qqq", "X: float64[40, 3]", "No variable has a name like qqq."),
    (
        "M[rows, classes]",
        "M: float64[3, 3], rows: int64[3], classes: int64[3]",
        "Indices go from 0 to 2, or from -3 to -1.",
    ),
    (
        "M[np.arange(4), four]",
        "M: float64[3, 3], four: int64[4]",
        "Indices go from 0 to 2, or from -3 to -1.",
    ),
]


@pytest.mark.parametrize(("text", "types", "hint"), MISTAKES)
def test_mistakes(notebook, text, types, hint):
    """The class is the one that Python raises, or one below it."""
    for name, value in SPACE.items():
        notebook[name] = value
    ran = notebook(f"%%tensor\n{text}")
    plain = notebook(f"%%tensor --plain\n{text}")
    lines = ran.out.rstrip().splitlines()
    assert isinstance(ran.error, type(plain.error)) or isinstance(plain.error, np.linalg.LinAlgError | TypeError), (
        ran.out
    )
    assert lines[0].startswith("Cell In[1], line 2")
    assert len(lines) <= 12
    assert "Tensor'" not in ran.out
    assert not types or f"  {types}" in lines
    assert [line.partition("Hint: ")[2].startswith(hint) for line in lines if line.startswith("Hint: ")] == [
        True
    ] * bool(hint)


def test_a_function_of_math_names_numpys(notebook):
    notebook["math"] = math
    assert "Hint: math.exp takes one number; np.exp takes arrays." in notebook("%%tensor\nmath.exp(w)").out


@pytest.mark.parametrize("magic", ["", "%%tensor\n"], ids=["plain", "captured"])
@pytest.mark.parametrize(
    ("attribute", "told"),
    [
        ("backward()", 'Gradients are asked for by %%tensor --grad w, or of a value: v.grad("w").'),
        ("detach()", "v.numpy() is the value without its history; tm.stop_gradient(v) stays in the graph."),
        ("requires_grad", "Nothing has to be marked: %%tensor --grad v asks for the gradient."),
        ("at[0].set(1.0)", "Arrays are stored into as in NumPy: v[i] = value, v[i] += value."),
        ("size()", "v.size is no method: write it without brackets; the sizes of its axes are .shape."),
        ("view(3, 1)", "NumPy calls it x.reshape(...)."),
        ("exp()", "Arrays have no method exp, but NumPy has a function: write np.exp(v, ...)."),
        ("maen()", "Did you mean 'mean'?"),
    ],
)
def test_attributes_that_lazy_values_have_elsewhere(notebook, magic, attribute, told):
    notebook.ok("%%tensor\nv = w * 2.0")
    line = notebook(f"{magic}v.{attribute}").out.rstrip().splitlines()[-1]
    assert line.startswith(f"Hint: {told}")


@pytest.mark.parametrize(
    ("attribute", "told"),
    [
        ("grad", "An array knows no gradient: %%tensor --grad w makes grad_w, in the cell that computes with w."),
        ("numpy()", "w is an array of NumPy's already: use it as it is."),
        ("sum().item().x", ""),
        ("size()", "w.size is no method: write it without brackets; the sizes of its axes are .shape."),
        ("unsqueeze(0)", "Write w[None] for a new first axis, w[:, None] for a second one."),
    ],
)
def test_attributes_that_arrays_have_elsewhere(notebook, attribute, told):
    assert (f"Hint: {told}" in notebook(f"print(w.{attribute})").out) is bool(told)


def test_the_gradient_that_is_there_is_named(notebook):
    notebook.ok("%%tensor --grad w\nnp.sum(w**2)")
    assert "Hint: The gradient with respect to w is grad_w." in notebook("w.grad").out


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("tm.tensor([1.0], requires_grad=True)", "Nothing has to be marked: %%tensor --grad w asks for the gradient."),
        ("tm.vmap(np.sin, 1, 2, 3)", "It is called as tm.vmap(fun, in_axes=0, out_axes=0)"),
        ("tm.make_jaxpr(np.sin)", "tm.trace(f, x) is the graph of f: print it."),
        ("tm.grad(np.sum(w))", "Give the function, and behind it what it is called with: tm.grad(f)(x)."),
        ("tm.grad(np.sin, 3.0)", "To take it at a value, write this behind: tm.grad(f)(x)."),
        ("tm.grad(np.sin)(3)", "Write 3.0 for 3."),
        ("tm.compile(np.tanh, np.float32)", 'Write "float32" for a number of that dtype, "float32[n]" for an array'),
        ("tm.trace(lambda x: x)", "with values or types like those of the calls."),
        ("tm.tensor(w).sum().grad(w=w)", 'Name it in quotes: y.grad("w").'),
        ("(np.random.default_rng(0).normal() * tm.tensor(2)).grad('w')", "Assign it in an earlier cell"),
    ],
)
def test_calls_as_elsewhere(notebook, call, told):
    line = notebook(f"import tensormagic as tm\n{call}").out.rstrip().splitlines()[-1]
    assert line.startswith("Hint: ")
    assert told in line


@pytest.mark.parametrize("line", ["X[0] = 1.0", "X += 1.0", "X[:, 1] *= 2.0", "np.add(w, w, out=X)"])
def test_stores_into_read_only_arrays_offer_a_copy(notebook, line):
    notebook.ok("X = np.ones((3, 3))\nX.flags.writeable = False")
    told = notebook(f"%%tensor\n{line}").out.rstrip().splitlines()[-1]
    named = not line.startswith("np")
    assert told == (
        "Hint: X is read-only. Store into a copy: X = X.copy()."
        if named
        else "Hint: The array is read-only. Store into a copy."
    )


@pytest.mark.parametrize(
    ("line", "hint"),
    [("np.maen(w)", "Did you mean 'mean'?"), ("np.linalg.slove(w)", "Did you mean 'solve'?"), ("np.zzqqxx", "")],
)
@pytest.mark.parametrize("magic", ["", "%%tensor\n"], ids=["plain", "captured"])
def test_misspelt_names_of_modules(notebook, magic, line, hint):
    """In plain cells too, on each version of Python: before 3.12, errors of a module's own ``__getattr__`` do not hold the name."""
    out = notebook(f"{magic}{line}").out
    assert "has no attribute" in out
    assert [told for told in out.rstrip().splitlines() if told.startswith("Hint: ")] == [f"Hint: {hint}"] * bool(hint)


def test_other_values_of_plain_cells_have_pythons_errors_alone(notebook):
    assert "Hint" not in notebook("w.nothing()").out
    assert "Hint" not in notebook("'text'.detach()").out


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("pd.Series([1, 2, 3])[v > 1]", "v is lazy. If pandas needs the numbers themselves, write v.numpy()."),
        ("pd.Series([1, 2, 3]).iloc[s]", "s is lazy. If pandas needs the numbers themselves, write s.item()."),
        ("decimal.Decimal(s)", "s is lazy. If this function needs the numbers themselves, write s.item()."),
        ("hashlib.sha1(v)", "v is lazy. If this function needs the numbers themselves, write v.numpy()."),
        ("def f(q):\n    return pd.Series([1, 2, 3])[q]\nf(v > 1)", "q is lazy. If pandas needs the numbers "),
    ],
)
def test_libraries_that_refuse_lazy_values(notebook, code, told):
    notebook.ok("import decimal, hashlib, pandas as pd")
    notebook.ok("%%tensor\nv = w * 2.0\ns = v.sum()")
    assert notebook(code).out.rstrip().splitlines()[-1].startswith(f"Hint: {told}")


@pytest.mark.parametrize("code", ["{}[s]", "s + int('a')", "s.missing_thing", "[s][4]", "json.loads(3)", "k[s]"])
def test_other_errors_beside_lazy_values_are_pythons_alone(notebook, code):
    notebook.ok("import json\nk = {}")
    notebook.ok("%%tensor\ns = w.sum()")
    assert "lazy" not in notebook(code).out


def test_indices_of_several_axes_are_told_by_the_users_axis(notebook):
    for name, value in SPACE.items():
        notebook[name] = value
    for text in ("M[rows, classes]", "M[rows, classes + 0]"):
        assert "Error: index 3 is out of bounds for axis 1 with size 3" in notebook(f"%%tensor\n{text}").out


def test_gradients_of_what_is_not_there_or_no_number_name_what_is(notebook):
    notebook["name"] = "adam"
    assert "there is no variable q; the cell reads X, w" in str(notebook("%%tensor --grad q\n(X @ w).sum()").error)
    assert "  name: text 'adam', X: float64[40, 3]" in notebook("%%tensor --grad name\nX.sum()").out


@pytest.mark.parametrize("made", [tm.grad, tm.vmap, tm.tensor, tm.value_and_grad])
def test_a_forgotten_argument_is_told_by_how_the_function_is_called(made):
    def area(width, height):
        return width * height

    with pytest.raises(ArgumentError, match=r"area\(\) missing 1 required positional argument: 'height'") as raised:
        made(area)(np.ones(2) if made is tm.vmap else 2.0)
    assert raised.value.hint == "area takes (width, height)."

    def wrong(width):
        raise TypeError("the user's own")

    with pytest.raises(TypeError, match="the user's own") as raised:
        made(wrong)(np.ones(2) if made is tm.vmap else 2.0)
    assert not isinstance(raised.value, ArgumentError)
