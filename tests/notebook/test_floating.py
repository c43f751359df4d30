"""Floating-point errors: NumPy's warnings, once and at the user's line, and none in functions; ``np.errstate`` in cells."""

import warnings

import numpy as np
import pytest

import tensormagic as tm
from tensormagic import session
from tensormagic.ir.errors import TensorError


@pytest.fixture
def told(notebook):
    """Runs a cell; gives the warnings as line and message."""
    notebook["v"] = np.array([0.0, -1.0, 1000.0])

    def run(cell: str) -> list[tuple[str, int, str]]:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("default")
            notebook.ok(cell)
        return [(w.filename, w.lineno, str(w.message)) for w in found if w.category is RuntimeWarning]

    return run


def test_warnings_are_numpys_at_the_users_line(told, notebook):
    cell = "%%tensor --math exact\na = np.log(v[:1])\nb = np.sqrt(v)\n\nc = np.exp(v)\n(a.sum(), b.sum(), c.sum())"
    assert told(cell) == [
        ("In[1]", 2, "divide by zero encountered in log"),
        ("In[1]", 3, "invalid value encountered in sqrt"),
        ("In[1]", 5, "overflow encountered in exp"),
    ]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        np.log(notebook["v"][:1]), np.sqrt(notebook["v"]), np.exp(notebook["v"])
    assert [str(w.message) for w in found] == [message for _, _, message in told(cell.replace("v", "(v + 0)"))]


@pytest.fixture
def compiled(notebook, monkeypatch):
    assert notebook  # which begins in NumPy
    monkeypatch.setattr(tm.config, "tier", "numba")


@pytest.mark.usefixtures("compiled")
def test_compiled_code_warns_alike(told):
    cell = "%%tensor --math exact -q\na = 1 / v\nb = np.exp(v)\n\nc = np.log(v[0] * 2)\nd = np.sum(a + b) + c"
    assert told(cell) == [
        ("In[1]", 2, "divide by zero encountered in divide"),
        ("In[1]", 3, "overflow encountered in exp"),
        ("In[1]", 5, "divide by zero encountered in log"),
        ("In[1]", 6, "invalid value encountered in add"),
    ]
    assert told("%%tensor\nnp.sum(v * 3) + np.sum(np.exp(v / 1000))") == []
    assert told("%%tensor --math exact\nwith np.errstate(all='ignore'): e = np.sum(np.sqrt(v))\ne") == []


@pytest.mark.usefixtures("compiled")
def test_what_compiled_code_prints_is_printed_once(notebook, monkeypatch):
    monkeypatch.setattr(session.tiers, "SLOWER", dict.fromkeys((True, False), 0))
    notebook["v"], notebook["n"], notebook["tm"] = np.array([0.0, 2.0]), 2, tm
    with warnings.catch_warnings(action="ignore"):
        notebook.ok(
            "%%tensor\ndef f(v, n):\n    for k in range(n):\n        print('iteration', v[1] + k)\n    return np.sum(1 / v)\nv"
        )
        assert notebook.ok("g = tm.tensor(f)\ng(v, n)").out.count("iteration 3.0") == 1


def test_a_warning_is_told_once(told, notebook):
    assert len(told("%%tensor\nnp.sum(np.log(v[:1])) + np.sum(np.log(v[:1] * 2))")) == 1
    assert len(told("%%tensor f -q\nq = np.log(v * 0)")) == 0
    assert told("q.numpy(); f(); f()") == [("In[2]", 2, "divide by zero encountered in log")]
    assert told("%%tensor -t --check --show none\nnp.sum(np.log(v * 0 + 0))") == [
        ("In[4]", 2, "divide by zero encountered in log")
    ]


def test_a_rewrite_that_mends_it_says_nothing(told):
    assert told("%%tensor --grad v\nnp.sum(np.log(1 + np.exp(v)))") == []
    assert ("In[2]", 2, "divide by zero encountered in log1p") in told("%%tensor\nnp.sum(np.log(1 + v))")


def test_a_warning_in_a_loop_names_the_line_inside(told):
    found = told(
        "%%tensor --math exact\nx = np.abs(v[:1])\nfor k in range(3):\n    y = x + k - k\n    x = np.log(y)\nx.sum()"
    )
    assert {line for _, line, _ in found} == {5}


def test_ignoring_in_a_cell(told):
    assert told("%%tensor\nwith np.errstate(divide='ignore'):\n    a = np.log(v[:1])\na.sum()") == []
    found = told(
        "%%tensor\nwith np.errstate(divide='ignore'):\n    a = np.log(v[:1] * 3)\nb = np.sqrt(v * 2)\na.sum() + b.sum()"
    )
    assert [line for _, line, _ in found] == [4]
    assert told("with np.errstate(all='ignore'):\n    print(np.asarray(tm.tensor(v) / 0))") == []


def test_raising_in_a_cell(notebook):
    notebook["v"] = np.array([0.0, -1.0])
    ran = notebook("%%tensor\na = v + 1\nwith np.errstate(all='raise'):\n    b = a * 2\n    c = np.log(v)\nb.sum()")
    assert isinstance(ran.error, FloatingPointError)
    assert ran.out.splitlines()[:4] == [
        "Cell In[1], line 5",
        "    c = np.log(v)",
        "        ^^^^^^^^^",
        "FloatingPointError: divide by zero encountered in log",
    ]
    assert "a" not in notebook
    caught = (
        "%%tensor\nwith np.errstate(divide='raise'):\n    try:\n        a = np.log(v)\n"
        "    except FloatingPointError:\n        a = v * 0\na"
    )
    assert notebook.ok(caught).value.tolist() == [0, 0]


def test_a_value_that_was_built_before_raises_nothing(notebook, monkeypatch):
    """NumPy computed it in the first cell, and told it there."""
    monkeypatch.setattr(tm.config, "tier", "auto")
    notebook["v"] = np.array([0.0, 1.0])
    notebook.ok("%%tensor -q\na = v + 0\nc = np.log(a)")
    ran = notebook(
        "import warnings\nwith np.errstate(all='raise'), warnings.catch_warnings():\n    warnings.simplefilter('ignore')\n    print(c)"
    )
    assert ran.error is None
    assert ran.out == "[-inf   0.]\n"


BUILT_AGAIN = {
    "a = 1 / v\nwith np.errstate(divide='raise'):\n    b = 1 / v": "FloatingPointError",
    "a = 1 / v\nwith np.errstate(all='raise'):\n    b = a + 1": "",
    "a = 1 / v\ntry:\n    with np.errstate(divide='raise'):\n        b = 1 / v\nexcept FloatingPointError:\n    b = 'caught'": "",
    (
        "a = np.log(v)\nold = np.seterr(all='raise')\ntry:\n    b = np.log(v)\n"
        "except FloatingPointError:\n    b = 'caught'\nfinally:\n    np.seterr(**old)"
    ): "",
    "a = 1 / v\nb = []\nwith np.errstate(divide='call', call=lambda *told: b.append(told)):\n    c = 1 / v": "",
}


@pytest.mark.parametrize("code", BUILT_AGAIN)
@pytest.mark.parametrize("magic", ["", "%%tensor -q\n"])
def test_errors_are_met_where_code_builds_what_may_raise(notebook, code, magic):
    """Also where it has built the same before; and in plain code, of lazy values."""
    notebook["v"] = np.array([0.0, 1.0])
    if not magic:
        notebook.ok("%%tensor -q\nv = v + 0")
    with warnings.catch_warnings(action="ignore"):
        space = {"np": np, "v": np.array([0.0, 1.0])}
        if wanted := BUILT_AGAIN[code]:
            assert type(notebook(magic + code).error).__name__ == wanted
            return
        exec(code, space)
        notebook.ok(magic + code)
        shown = "repr(b if isinstance(b, str | list) else np.asarray(b))"
        assert notebook.ok(shown).value == eval(shown, space)


def test_raising_by_setting(notebook):
    notebook["v"] = np.array([0.0, 1.0])
    notebook.ok("kept = np.seterr(all='raise')")
    try:
        ran = notebook("%%tensor -q\na = v + 1\nb = 1 / v")
        assert isinstance(ran.error, FloatingPointError)
        assert ran.out.splitlines()[0] == "Cell In[2], line 3"
        assert float(notebook.ok("%%tensor\nnp.sum(v + 1)").value) == 3.0
    finally:
        notebook.ok("np.seterr(**kept)")


def test_functions_of_files_say_nothing():
    with warnings.catch_warnings(action="error"):
        assert not np.isfinite(tm.tensor(lambda x: np.log(x))(np.zeros(2))).any()
    assert issubclass(TensorError, Exception)


def test_raising_inside_functions_that_are_captured_by_themselves(monkeypatch):
    def risky(x):
        with np.errstate(divide="raise"):
            a = np.log(x)
        return a + np.sqrt(x)

    f, calm = tm.tensor(risky), tm.tensor(lambda x: np.log(x))
    for tier in ("numpy", "auto"):
        monkeypatch.setattr(tm.config, "tier", tier)
        assert f(np.ones(2)).tolist() == [1, 1]
        with pytest.raises(FloatingPointError, match="divide by zero encountered in log"):
            f(np.zeros(2))
        assert np.isnan(f(-np.ones(2))).all()  # what is invalid was not asked for
        with np.errstate(all="raise"), pytest.raises(FloatingPointError):
            calm(np.zeros(2))
        assert np.isinf(calm(np.zeros(2))).all()
    assert tm.grad(lambda x: f(x).sum())(np.ones(2)).tolist() == [1.5, 1.5]


def test_raising_inside_a_loop_of_a_function(notebook):
    notebook.ok(
        "@tm.tensor\ndef h(x):\n    with np.errstate(all='raise'):\n        for k in range(3):\n"
        "            x = x / (x - k)\n    return x"
    )
    ran = notebook("h(np.array([1.0, 5.0]))")
    assert isinstance(ran.error, FloatingPointError)
    assert ran.out.splitlines()[:2] == ["Cell In[1], line 5", "    x = x / (x - k)"]
    assert "asked for in Cell In[2], line 1" in ran.out


DIFFERENCES = [
    *(f"np.sum(np.{f}(s * u) - np.{f}(2 * u))" for f in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "arctan")),
    *("np.mean((np.sin(s * u) - np.sin(2 * u)) ** 2)", "np.sum(np.log1p(s * u) - np.log1p(u))"),
    *("np.sum(np.hypot(s * u, u) - np.abs(u))", "np.sum(1 / (1 + s * u) - 1 / (1 + u))"),
    *("np.sum(np.log(np.cosh(s * u)))", "np.sum((1 - np.cos(s * u)) * np.sin(u))", "np.sum(np.sqrt(1 + s * u) - 1)"),
]


@pytest.mark.parametrize("text", DIFFERENCES)
@pytest.mark.parametrize("magic", ["%%tensor", "%%tensor --grad s", "%%tensor --live s=0:5 --grad s"])
def test_what_rules_compute_beside_a_choice_says_nothing(told, notebook, text, magic):
    """NumPy warns of nothing in these, also at elements where forms of differences divide 0 by 0."""
    notebook["u"], notebook["s"] = np.array([0.0, 1e-300, 0.25, 1.0, 3.0]), 1.0
    with warnings.catch_warnings(action="error"):
        exec(text, {"np": np, **notebook.shell.user_ns})
    assert told(f"{magic}\n{text}") == []


def test_what_is_not_finite_in_the_end_is_told(told, notebook):
    notebook["u"] = np.array([0.0, 1.0, np.inf])
    assert {line for _, line, _ in told("%%tensor\nnp.sum(np.sin(u) - np.sin(2 * u))")} == {2}


def quotients(x):
    return (1 // x).sum()


def remainders(x):
    return (x % 0).sum() + np.fmod(x, 0)[0]


def of_selected(x):
    return (10 // x[x != 0]).sum()


def in_loop(x):
    for k in range(3):
        x = x + 1 // (x - k)
    return x


def of_integers(x):
    return 7 // x.astype(int)


@pytest.mark.parametrize("f", [quotients, remainders, of_selected, in_loop, of_integers], ids=lambda f: f.__name__)
def test_numpy_amid_compiled_code_says_nothing(f):
    x = np.array([1.0, 0.0, 2.0, 3.0])
    with np.errstate(all="ignore"):
        expected = f(x)
    with tm.config.using(tier="numba"), warnings.catch_warnings(action="error"):
        found = tm.compile(f, x)
        assert np.array_equal(found(x), expected, equal_nan=True)
        assert np.array_equal(found(x), expected, equal_nan=True)


@pytest.mark.usefixtures("compiled")
def test_cells_have_the_warnings_of_their_lines_alone(told):
    assert told("%%tensor\na = 1 // v\na.sum()") == [("In[1]", 2, "divide by zero encountered in floor_divide")]
    assert told("%%tensor\na = (1 // v[v != 0]).sum()\na") == []


STORES = [
    ("y[v != 0] = 1 / v[v != 0]", None),
    ("y[v > 0] = np.log(v[v > 0])", None),
    ("y[v > 0] = np.sqrt(v[v > 0] - 1) + v[v > 0] ** -0.5", None),
    ("k = v != 0\nfor i in range(3): y[k] = (i + 1) / y[k]", None),
    ("y[v >= 0] /= v[v >= 0]", "invalid value encountered in divide"),
    ("y[v != 0] = np.exp(v[v != 0])", "overflow encountered in exp"),
    ("y[v > 1] = np.log(0 * v[v > 1])", "divide by zero encountered in log"),
]


@pytest.mark.parametrize("tier", ["numpy", "numba"])
@pytest.mark.parametrize(("text", "message"), STORES)
def test_elements_that_a_mask_leaves_out_say_nothing(told, notebook, monkeypatch, text, message, tier):
    monkeypatch.setattr(tm.config, "tier", tier)
    cell = f"%%tensor --math exact\ny = v.copy()\n{text}\nz = y.sum()\nz"
    assert [m for _, _, m in told(cell)] == ([] if message is None else [message])
    own = {"np": np, "v": notebook["v"]}
    with np.errstate(all="ignore"):
        exec(f"y = v.copy()\n{text}", own)
    assert np.array_equal(notebook["y"].numpy(), own["y"], equal_nan=True)


@pytest.mark.parametrize(("text", "message"), STORES)
def test_elements_that_a_mask_leaves_out_raise_nothing(notebook, text, message):
    notebook["v"] = np.array([0.0, -1.0, 1000.0])
    inner = text.replace("\n", "\n    ")
    ran = notebook(
        f"%%tensor\nwith np.errstate(divide='raise', over='raise', invalid='raise'):\n    y = v.copy()\n    {inner}\n    z = y.sum()\nz"
    )
    assert (ran.error is None) == (message is None)
    assert message is None or message in str(ran.error)
