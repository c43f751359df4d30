"""Bad input: each a short message at the user's line that says what to do; variables unchanged, the next cell fine."""

from __future__ import annotations

import _thread
import gc
import sys
import threading
import time

import numpy as np
import pytest

from tensormagic import session
from tensormagic.backend.cuda import device as devices
from tensormagic.ir.errors import CaptureError, DifferentiationError, ShapeError

WITHOUT_A_CARD = pytest.mark.skipif(devices.is_there(), reason="this machine has a card")
BAD = {
    "a misspelt name": (
        "%%tensor\nz = X @ w\nloss = np.mean(zz)",
        NameError,
        [
            "Cell In[1], line 3",
            "    loss = np.mean(zz)",
            "                   ^^",
            "NameError: name 'zz' is not defined",
            "Hint: Did you mean 'z'?",
        ],
    ),
    "a misspelt name of the notebook": (
        "%%tensor\nz = weights @ X",
        NameError,
        ["line 2", "    z = weights @ X", "        ^^^^^^^", "Hint: Did you mean 'weight'?"],
    ),
    "a misspelt attribute": (
        "%%tensor\nz = np.maen(X @ w)",
        AttributeError,
        ["line 2", "AttributeError: module 'numpy' has no attribute 'maen'", "Hint: Did you mean 'mean'?"],
    ),
    "a misspelt method": ("%%tensor\n(X @ w).shap", AttributeError, ["Hint: Did you mean 'shape'"]),
    "shapes that do not fit": (
        "%%tensor\nz = X @ w\nq = z + np.ones(7)",
        ShapeError,
        [
            "Cell In[1], line 3",
            "    q = z + np.ones(7)",
            "        ^^^^^^^^^^^^^^",
            "ShapeError: operands could not be broadcast",
            "(40,) (7,)",
            "  z: float64[40]",
        ],
    ),
    "a product of shapes that do not fit": (
        "%%tensor\nz = X @ y",
        ShapeError,
        ["line 2", "        ^^^^^", "X: float64[40, 3], y: float64[40]"],
    ),
    "a string array": (
        "%%tensor\nz = names.sum(axis=1)",
        np.exceptions.AxisError,
        ["line 2", "    z = names.sum(axis=1)", "        ^^^^^^^^^^^^^^^^^"],
    ),
    "an object array": (
        "%%tensor\nz = 2 * things",
        TypeError,
        ["line 2", "        ^^^^^^^^^^", "unsupported operand type(s) for *: 'int' and 'NoneType'"],
    ),
    "an unsupported call": (
        "%%tensor --grad w\nz = X.resize(3)",
        CaptureError,
        ["line 2", "        ^^^^^^^^^^^", "x.resize is not captured", "Hint: "],
    ),
    "an error of syntax": (
        "%%tensor --grad w\nz = X @ w\nz = (z +\nz",
        SyntaxError,
        ["Cell In[1], line 3", "    z = (z +", "        ^", "SyntaxError"],
    ),
    "an indentation": ("%%tensor\nz = 1\n  y = 2", IndentationError, ["line 3", "IndentationError: unexpected indent"]),
    "a division": (
        "%%tensor\nz = X.sum()\nk = 1 / 0",
        ZeroDivisionError,
        ["line 3", "    k = 1 / 0", "        ^^^^^", "division by zero"],
    ),
    "a gradient of integers": (
        "%%tensor --grad n\nnp.sum(w) * n",
        DifferentiationError,
        ["n is int", "Hint: Write 3.0 for 3, or n = float(n)."],
    ),
    "a gradient of an array": (
        "%%tensor --grad w\nX @ w",
        DifferentiationError,
        ["a gradient is of one number", "Hint: Take its sum"],
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_cells(notebook, name):
    notebook["n"], notebook["weight"] = 3, 1.0
    notebook["names"], notebook["things"] = np.array(["a", "b"]), np.array([1, None])
    before = dict(notebook.shell.user_ns)
    text, kind, told = BAD[name]
    ran = notebook(text)
    assert type(ran.error) is kind
    lines = ran.out.rstrip().splitlines()
    assert len(lines) <= 12
    for part in told:
        assert any(line == part if part.endswith("^") and part.startswith("   ") else part in line for line in lines), (
            ran.out
        )
    assert "tensormagic/" not in ran.out
    after = notebook.shell.user_ns
    assert all(after[n] is v for n, v in before.items() if not n.startswith("_"))
    assert not {"z", "q", "k", "loss"} & set(after)
    assert float(notebook.ok("%%tensor\nnp.sum(w + 1)").value) == 3.0


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--gard w", "no option --gard (did you mean --grad?)"),
        ("--show grph", "not 'grph' (did you mean graph?)"),
        ("--show formula", "not 'formula'; formulas are shown by %tensor_formula"),
        ("--math exat", "did you mean exact?"),
        ("--dtype float16", "float32, float64, not 'float16'"),
        pytest.param("--device gpu", "--device gpu: this machine has no CUDA driver", marks=WITHOUT_A_CARD),
        pytest.param("--exclusive", "--device gpu: this machine has no CUDA driver", marks=WITHOUT_A_CARD),
        ("--async --check", "--async returns before there is a value and cannot be combined with --check"),
        ("--async --plain", "cannot be combined with --plain"),
        ("--transfers refuse", "--transfers needs --device gpu or auto"),
        ("--exclusive --device cpu", "--exclusive means --device gpu"),
        ("--live a=0:1", "the cell does not read a"),
        ("--grad ww", "no variable ww (did you mean w?)"),
        ("--of lss", "no variable lss (did you mean loss?)"),
        ("-o lss", "does not assign lss (did you mean loss?)"),
        ("-i q", "does not read q"),
        ("--grad", "--grad needs a value"),
        ("loss", "the cell assigns loss, so the cell cannot have that name, too; call it objective"),
        ("a b", "takes one NAME"),
        ("a -n b", "two names"),
        ("for", "is not a name for a variable"),
        ("--grad 'w", "No closing quotation"),
    ],
)
def test_bad_options(notebook, line, told):
    ran = notebook(f"%%tensor {line}\nz = X @ w\nloss = np.mean(z)\nloss")
    assert type(ran.error).__name__ == "UsageError"
    assert told in ran.out
    assert len(ran.out.splitlines()) <= 3
    assert "z" not in notebook


def test_an_error_in_a_function_of_another_cell_shows_both_lines(notebook):
    notebook.ok("def half(v):\n    return v[: v.shape[0] // 2] + v")
    ran = notebook("%%tensor\nz = X @ w\nhalf(z)")
    lines = ran.out.splitlines()
    assert lines[:3] == ["Cell In[2], line 3", "    half(z)", "    ^^^^^^^"]
    assert lines[3:6] == [
        "Cell In[1], line 2",
        "    return v[: v.shape[0] // 2] + v",
        "           ^^^^^^^^^^^^^^^^^^^^^^^^",
    ]
    assert lines[6].startswith("ShapeError")


def test_an_error_at_demand_names_both_lines(notebook):
    notebook["A"] = np.zeros((3, 3))
    notebook.ok("%%tensor\nz = X @ w\nu = np.linalg.solve(A, w)")
    ran = notebook("n = 1\nprint(u)")
    assert isinstance(ran.error, np.linalg.LinAlgError)
    assert ran.out.splitlines() == [
        "Cell In[1], line 3",
        "    u = np.linalg.solve(A, w)",
        "        ^^^^^^^^^^^^^^^^^^^^^",
        "LinAlgError: Singular matrix",
        "  A: float64[3, 3], w: float64[3]",
        "The value was asked for in Cell In[2], line 2: print(u)",
        "Hint: It has no inverse, since its rows depend on each other: np.linalg.lstsq and pinv take it.",
    ]


def test_an_error_of_ours_in_plain_code(notebook):
    ran = notebook("v = tm.tensor(np.ones(3))\nv + np.ones(4)")
    assert isinstance(ran.error, ShapeError)
    assert ran.out.splitlines()[:4] == [
        "Cell In[1], line 2",
        "    v + np.ones(4)",
        "    ^^^^^^^^^^^^^^",
        "ShapeError: operands could not be broadcast together with shapes (3,) (4,)",
    ]


def test_verbose_shows_the_whole_traceback(notebook):
    ran = notebook("%%tensor --verbose\nz = X @ y")
    assert isinstance(ran.error, ShapeError)
    assert "tensormagic/" in ran.out


def test_letters_beyond_ascii_and_long_lines(notebook):
    notebook["λ"] = 2.0
    ran = notebook('%%tensor\ns = "ñandú"; z = λ * X + np.ones(7)')
    lines = ran.out.splitlines()
    assert lines[2] == " " * (4 + 17) + "^" * len("λ * X + np.ones(7)")
    assert "λ: float, X: float64[40, 3]" in ran.out
    long = notebook(f"%%tensor\nq = [{', '.join(['X.sum()'] * 60)}, X @ y]")
    assert max(map(len, long.out.splitlines())) <= 130
    row, carets = long.out.splitlines()[1:3]
    assert row[carets.index("^") : carets.rindex("^") + 1] == "X @ y"


@pytest.fixture
def no_gc_callbacks():
    """No foreign code in the collector (hypothesis has some), where an interrupt would be swallowed."""
    kept = gc.callbacks[:]
    gc.callbacks.clear()
    yield
    gc.callbacks[:] = kept


@pytest.mark.usefixtures("no_gc_callbacks")
def test_an_interrupt_while_computing(notebook):
    notebook["A"] = np.random.default_rng(0).normal(size=(400, 400))
    text = "%%tensor\nB = A\nfor k in range(4000):\n    B = np.tanh(B @ A)\nA[0] = B.sum()\nB.sum()"
    notebook.ok("%%tensor\nnp.tanh(w @ w)")

    def stop():
        while not is_computing():
            time.sleep(0.01)
        time.sleep(0.1)
        _thread.interrupt_main()

    kept = notebook["A"].copy()
    worker = threading.Thread(target=stop)
    worker.start()
    ran = notebook(text)
    worker.join()
    assert isinstance(ran.error, KeyboardInterrupt)
    assert "no variable has changed" in ran.out
    assert ran.out.splitlines()[:2] == ["Cell In[2], line 3", "    for k in range(4000):"]
    assert len(ran.out.splitlines()) <= 12
    assert "B" not in notebook
    assert np.array_equal(notebook["A"], kept)
    assert float(notebook.ok("%%tensor\nnp.sum(w + 1)").value) == 3.0


@pytest.mark.usefixtures("no_gc_callbacks")
@pytest.mark.parametrize("cell", ["print(B.sum())", "np.asarray(f(A))"])
def test_an_interrupt_where_a_value_is_asked_for(notebook, cell):
    notebook["A"] = np.random.default_rng(0).normal(size=(400, 400))
    notebook.ok("%%tensor -q\nB = A\nfor k in range(4000):\n    B = np.tanh(B @ A)")
    notebook.ok("@tm.tensor\ndef f(a):\n    for k in range(4000):\n        a = np.tanh(a @ a)\n    return a")

    def stop():
        while not is_computing():
            time.sleep(0.01)
        time.sleep(0.1)
        _thread.interrupt_main()

    worker = threading.Thread(target=stop)
    worker.start()
    ran = notebook(f"done = 1\n{cell}")
    worker.join()
    assert isinstance(ran.error, KeyboardInterrupt)
    assert "for k in range(4000):" in ran.out
    assert f"The value was asked for in Cell In[3], line 2: {cell}" in ran.out
    assert "computed when it is asked for again" in ran.out
    assert len(ran.out.splitlines()) <= 12
    assert notebook["done"] == 1


def is_computing() -> bool:
    """Whether the main thread runs a graph."""
    frame = sys._current_frames()[threading.main_thread().ident]
    while frame is not None:
        if frame.f_code is session.Executable._slow.__code__:
            return True
        frame = frame.f_back
    return False


def test_a_traced_functions_error_shows_the_users_frames_alone(notebook):
    notebook.ok("def f(x):\n    raise ValueError('of mine')")
    for call in ("tm.trace(f, 'float64[n]')", "tm.tensor(f)(1.0)"):
        told = notebook(call).out
        assert "of mine" in told
        assert "tensormagic/" not in told


FAILS = "%%tensor objective --grad w\nloss = undefined_here + 1\nloss"
USES = ["loss * 2", "print(loss)", "def later():\n    return loss\nlater()", "grad_w + 1", "objective(w=w)"]


@pytest.mark.parametrize("magic", ["", "%%tensor\n", "%%time\n"], ids=["plain", "captured", "timed"])
@pytest.mark.parametrize("use", USES)
def test_a_name_that_a_failed_cell_would_have_set_says_so(notebook, magic, use):
    notebook(FAILS)
    name = next(n for n in ("loss", "grad_w", "objective") if n in use)
    said = f"Hint: Cell In[1] would have set {name}, but it ended in an error: fix that cell and run it first."
    assert notebook(magic + use).out.rstrip().splitlines()[-1] == said
    notebook.ok(f"{name} = 3.0")
    notebook.ok(f"del {name}")
    assert "would have set" not in notebook(magic + use).out


@pytest.mark.parametrize(
    "fails", ["%%tensor\nfirst = second + 1\nsecond = first", "first = second + 1\nsecond = first"]
)
def test_a_cell_that_runs_again_is_not_told_to_run_first(notebook, fails):
    for _ in range(2):
        ran = notebook(fails)
        assert isinstance(ran.error, NameError)
        assert "would have set" not in ran.out
    assert "In[2] would have set second" in notebook("second").out


@pytest.mark.parametrize("other", ["undefined_here", "def f():\n    loss\n    loss = 1\nf()", "{}['loss']"])
def test_other_errors_of_plain_cells_are_as_python_shows_them(notebook, other):
    notebook(FAILS)
    assert "Hint" not in notebook(other).out


@pytest.mark.parametrize(
    ("cell", "said", "line"),
    [
        ("tm.grad(lambda v: v.no_such(2))(w)", "has no attribute 'no_such'", "in <lambda>(v)"),
        ("tm.vmap(lambda a, b: a)(X)", "missing 1 required positional argument", "tm.vmap(lambda a, b: a)(X)"),
        ("tm.tensor(w).no_such", "has no attribute 'no_such'", "tm.tensor(w).no_such"),
        (
            "def f(v):\n    if v.sum() < 9:\n        v.no_such\n    return v\ntm.tensor(f)(w)",
            "no attribute",
            "v.no_such",
        ),
        (
            "class M:\n    def go(self, v):\n        return self.s(v)\n    def s(self, v):\n        return v + no\ntm.grad(M().go)(w)",
            "name 'no' is not defined",
            "return v + no",
        ),
    ],
)
def test_errors_in_plain_cells_show_no_frames_of_ours(notebook, cell, said, line):
    ran = notebook(cell)
    assert ran.error is not None
    assert said in ran.out
    assert line in ran.out
    assert "tensormagic/" not in ran.out
    assert "__tensor" not in ran.out
    notebook.ok("%config TensorMagics.verbose = True")
    try:
        assert "tensormagic/" in notebook("tm.tensor(w).no_such").out
    finally:
        notebook.ok("%config TensorMagics.verbose = False")


def test_an_error_that_is_the_cause_of_another_shows_none_either(notebook):
    ran = notebook("try:\n    tm.tensor(w).no_such\nexcept AttributeError as error:\n    raise KeyError(3) from error")
    assert "direct cause" in ran.out
    assert "has no attribute 'no_such'" in ran.out
    assert "tensormagic/" not in ran.out
    trace = ran.error.__cause__.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    assert "tensormagic" in trace.tb_frame.f_code.co_filename  # which a debugger sees


@pytest.mark.parametrize("shown", ["s", "s.sum()", "display(s)", "s + 1"])
def test_an_error_of_a_display_is_at_the_line_that_was_captured(notebook, shown):
    notebook.ok("%%tensor -q\ns = np.linalg.cholesky(-np.eye(2) * (1 + b))")
    lines = notebook(shown).out.splitlines()
    assert [line.strip() for line in lines if "site-packages" in line or "-->" in line] == []
    place, source, carets, said, types, hint = lines[:6]
    assert types == "  b: float 0.0"
    assert place.endswith("Cell In[1], line 2")
    assert source.strip() == "s = np.linalg.cholesky(-np.eye(2) * (1 + b))"
    assert set(carets.strip()) == {"^"}
    assert said == "LinAlgError: Matrix is not positive definite"
    assert hint.startswith("Hint: Its eigenvalues must be positive")


@pytest.mark.parametrize(
    "shown", ["box.shown(s)", "box.shown(s.sum())", "t = box.shown(s + 1)", "display(box.Shown(s))"]
)
def test_a_package_that_pip_has_put_elsewhere_is_not_the_users(notebook, tmp_path, monkeypatch, shown):
    """In a folder that it was told of: the error is at the line of the cell."""
    (tmp_path / "box-1.0.dist-info").mkdir()
    (tmp_path / "box.py").write_text(
        "def shown(v):\n    return float(v.sum())\nclass Shown:\n    def __init__(self, v): self.v = v\n"
        "    def __repr__(self): return str(shown(self.v))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "box", raising=False)
    notebook.ok("import box")
    notebook.ok("%%tensor -q\ns = np.linalg.cholesky(-np.eye(2) * (1 + b))")
    out = notebook(shown).out
    assert "s = np.linalg.cholesky(-np.eye(2) * (1 + b))" in out
    assert "Hint: Its eigenvalues must be positive" in out
    assert str(tmp_path) not in out
