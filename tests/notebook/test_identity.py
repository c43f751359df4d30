"""In a cell, what has a name is a value of its own: no literal is it, and no other name's value that holds the same number."""

import random

import numpy as np
import pytest

CELLS = [
    ("x*x*x*np.float64(1.0)", {"x": 1.0}, {"x": 3}),
    ("x*x*x*np.float64(1.0)", {"x": np.float64(1)}, {"x": 3}),
    ("x*x*x*np.float32(1.0)", {"x": np.float32(1)}, {"x": 3}),
    ("c*c*2.0*np.array(2.0)", {"c": np.array(2.0)}, {"c": 16}),
    ("x*y*2.0", {"x": 2.0, "y": 2.0}, {"x": 4, "y": 4}),
    ("p[0]*p[1]*2.0", {"p": [2.0, 2.0]}, {"p": [4, 4]}),
    ("np.sum(q*np.array([1.0, 2.0]))", {"q": np.array([1.0, 2.0])}, {"q": [1, 2]}),
    ("np.sum(q*r)", {"q": np.array([1.0, 2.0]), "r": np.array([1.0, 2.0])}, {"q": [1, 2], "r": [1, 2]}),
    ("w = np.zeros(2)\nb = np.zeros(2)\nnp.sum((w - 1)*(b + 2))", {}, {"w": [2, 2], "b": [-1, -1]}),
    ("w = np.array([0.0, 0.0])\nb = np.array([0.0, 0.0])\nnp.sum((w - 1)*(b + 2))", {}, {"w": [2, 2], "b": [-1, -1]}),
    ("w = b = np.zeros(2)\nnp.sum((w - 1)*(b + 2))", {}, {"w": [1, 1], "b": [1, 1]}),
    ("w = 2.0\nb = 2.0\n(w - 1)*(b + 2)*2.0", {}, {"w": 8, "b": 2}),
    ("w = x*2\nb = x*2\n(w - 1)*(b + 2)*2.0", {"x": 1.0}, {"w": 8, "b": 2}),
    ("w = np.ones(2)\nb = w.copy()\nnp.sum((w - 1)*(b + 2))", {}, {"w": [3, 3], "b": [0, 0]}),
    ("w = q + 0.0\nw[0] = 1.0\nnp.sum(w*q)", {"q": np.array([1.0, 2.0])}, {"w": [1, 2]}),
]


@pytest.mark.parametrize(("text", "variables", "slopes"), CELLS, ids=[c[0].replace("\n", "; ") for c in CELLS])
def test_gradients_by_name(notebook, text, variables, slopes):
    for name, value in variables.items():
        notebook[name] = value
    notebook.ok(f"%%tensor -q --grad {','.join(slopes)}\n{text}")
    for name, slope in slopes.items():
        found = notebook[f"grad_{name}"]
        assert np.asarray(found).tolist() == slope, name


def test_arrays_that_earlier_cells_have_made(notebook):
    notebook.ok("%%tensor -q\nu = np.zeros(2)\nv = np.zeros(2)\nbefore = np.sum((u - 1)*(v + 2))")
    for text in ("np.sum((u - 1)*(v + 2))", "before*1.0"):
        notebook.ok(f"%%tensor -q --grad u,v\n{text}")
        assert notebook["grad_u"].tolist() == [2, 2]
        assert notebook["grad_v"].tolist() == [-1, -1]


def test_an_expression_that_two_names_have_is_told(notebook):
    notebook["q"] = np.array([1.0, 2.0])
    notebook.ok("%%tensor -q\nu = q*2\nv = q*2")
    with pytest.warns(UserWarning, match="u and another lazy value are the same expression"):
        notebook.ok("%%tensor -q --grad u\nnp.sum((u - 1)*(v + 2))")


@pytest.mark.parametrize(
    "failing",
    [
        "np.broadcast_to(q, (3, 7))",
        "q.reshape(2, 5)",
        "np.reshape(q, (4, -1))",
        "q[:, None, :]",
        "np.moveaxis(q, 3, 0)",
    ],
)
def test_what_an_error_still_holds_is_no_other_value(notebook, failing):
    """The traceback of a call that failed holds the view that could not be made; a gradient asks which values are there."""
    notebook["q"] = np.arange(9.0)
    notebook.ok("g = np.ones(7)\nf = tm.tensor(lambda q: " + failing.replace("(3, 7)", "(3, 9)") + ")")
    kept = [notebook("%%tensor\n" + failing).error, notebook("f(g)").error]
    kept += [notebook(f"tm.tensor(lambda q: {failing})(g)").error, notebook("f(q)").error]
    assert any(kept)
    notebook.ok("%%tensor\nu = q * 2")
    notebook.ok("%%tensor --grad u\nnp.sum(u ** 2)")
    assert notebook["grad_u"].tolist() == [4.0 * k for k in range(9)]


def test_a_cell_that_runs_again_has_its_program(notebook):
    from tensormagic import session

    text = "%%tensor -q --grad w\nw = np.zeros(3)\nnp.sum(np.exp(w)*x)"
    notebook["x"] = 2.0
    notebook.ok(text)
    before = dict(session.programs._executables)
    for _ in range(3):
        notebook.ok(text)
    assert session.programs._executables.keys() == before.keys()


VALUES = (float, np.float64, np.float32, lambda v: np.array(v), lambda v: np.array([v]))
LITERALS = ("{0!r}", "np.float64({0!r})", "np.float32({0!r})", "np.array({0!r})", "np.array([{0!r}])")


@pytest.mark.parametrize("seed", range(25))
def test_drawn_cells_over_equal_numbers(notebook, seed):
    """A product of powers of names and literals: the slope is the exponent times the value over the number."""
    rng = random.Random(seed)
    number = rng.choice([1.0, 2.0, 0.5])
    powers = {name: rng.randint(1, 3) for name in "abc"}
    factors = [name for name, power in powers.items() for _ in range(power)]
    factors += [rng.choice(LITERALS).format(number) for _ in range(rng.randint(1, 4))]
    rng.shuffle(factors)
    lines = []
    for name in powers:
        if rng.random() < 0.3:
            lines.append(f"{name} = {rng.choice(LITERALS).format(number)}")
        else:
            notebook[name] = rng.choice(VALUES)(number)
    notebook.ok(f"%%tensor -q --grad a,b,c\n{chr(10).join(lines)}\nnp.sum({' * '.join(factors)})")
    for name, power in powers.items():
        wanted = power * number ** (len(factors) - 1)
        assert np.asarray(notebook[f"grad_{name}"]).ravel().tolist() == [wanted], (name, factors)


ALIASES = {  # what a cell does with the notebook's array ``a``, and what ``a`` is afterwards
    "c = a": "c",
    "c = L[0]": "c",
    "c = o.w": "c",
    "c = np.asarray(a)": "c",
    "def h(): return a\nc = h()": "c",
    "p['z'] = a": "p['z']",
    "c = [a, 1]": "c[0]",
    "c = (1, {'k': a})": "c[1]['k']",
    "c = a\nc[1] = 7.0": "c",
    "c = a\na -= 1.0": "c",
    "if a.sum() > 1: c = a\nelse: c = b": "c",
    "best, c = np.inf, None\nfor k in range(3):\n    if np.sum((a - k)**2) < best:\n        best, c = np.sum((a - k)**2), a": "c",
}


@pytest.mark.parametrize("cell", ALIASES)
def test_a_name_for_an_array_of_the_notebook_is_that_array(notebook, cell):
    notebook.ok("import numpy as np\nfrom types import SimpleNamespace\na = np.arange(3.0); b = np.ones(3)")
    notebook.ok("L, o, p = [a], SimpleNamespace(w=a), {}")
    notebook.ok(f"%%tensor -q\n{cell}")
    other = ALIASES[cell]
    assert notebook.ok(f"{other} is a").value
    notebook.ok(f"{other}[0] = 77.0")
    assert notebook["a"][0] == 77
    notebook.ok(f"%%tensor -q\n{other.partition('[')[0]}\na[0] = 78.0")
    assert notebook.ok(f"{other}[0]").value == 78


def test_what_is_no_array_of_the_notebook_stays_lazy(notebook):
    notebook.ok("import numpy as np\na = np.arange(3.0)")
    notebook.ok("%%tensor -q\nc = a[[1, 2]]\nd = a.copy()\ne = a + 0.0")
    notebook.ok("%%tensor -q --dtype float32\nf = a")
    assert all(type(notebook[name]).__name__ == "Tensor" for name in "cdef")
    assert notebook["f"].dtype == np.float32


ONE = [
    "p3 = {**params}",
    "p3 = params.copy()",
    "p3 = dict(params)",
    "p3 = {k: v for k, v in params.items()}",
]


@pytest.mark.parametrize("before", ["", "x += 1\n"])
@pytest.mark.parametrize("copied", ONE)
def test_an_array_in_a_copied_container_is_that_array(notebook, copied, before):
    notebook.ok(
        "import numpy as np\nparams = {'b': np.zeros(2), 'w': 1.5}\nx = np.arange(3.0)\nplace = id(params['b'])"
    )
    cell = f"{before}{copied}\np3['b'] is params['b'], params['b'] is p3['b'], id(params['b']) == id(p3['b']) == place"
    assert notebook.ok(cell).value == (True, True, True)
    assert notebook.ok(f"%%tensor\n{cell}").value == (True, True, True)


def test_an_array_keeps_its_identity_in_every_kind_of_cell(notebook):
    notebook.ok("import numpy as np\nx = np.arange(3.0)\nplace = id(x)")
    cell = "y = x\nx += 1\nv = np.asarray(x)\n[id(q) == place for q in (x, y, v, x[:], x.view(), x + 1)]"
    assert notebook.ok(f"%%tensor\n{cell}").value == notebook.ok(cell).value == [True, True, True, False, False, False]


def test_a_class_made_by_type_is_of_the_notebook(notebook):
    cell = "Made = type('Made', (), {'a': 3})\nMade.__module__, Made.a"
    assert notebook.ok(f"%%tensor\n{cell}").value == notebook.ok(cell).value


ALONE = {
    "a loop": "while x.sum() < 10:\n    x = x + 1\nx",
    "a branch": "if x.sum() > 1:\n    x = x * 2\nx",
    "a loop with a branch": "for i in range(3):\n    if x[i] > 0:\n        x = x + 1\ny = x\nx",
    "one of two views": "x = x[::-1] if x[0] > 0 else x[1:4]\nx",
    "a view": "x = x.reshape(5, 1)\nx",
    "a view of what is new": "x = (x + 1)[1:]\nx",
    "a tuple": "x = np.maximum(x, 0)\n(x, 3)",
    "a list": "x = x + 1\n[x, x]",
    "a function": "def step(v):\n    return v * 2 if v[0] > 0 else v\nx = step(x)\nx",
    "a store": "if x[1] > 0:\n    x[0] = 3.0\nx",
}


@pytest.mark.parametrize("text", ALONE.values(), ids=ALONE)
def test_what_a_cell_shows_is_no_other_value(notebook, text):
    """Of a variable that a loop or branch had bound, and the cell ended in, it was said that another value is the same expression."""
    notebook["x"] = np.linspace(0.0, 1.0, 5)
    notebook.ok(f"%%tensor\n{text}")
    assert "same expression" not in notebook.ok("%%tensor --grad x\nnp.sum(x)").out
