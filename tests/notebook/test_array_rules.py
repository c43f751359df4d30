"""Rules of a notebook over arrays: products, transposes, sums and inverses in patterns."""

import ctypes
import ctypes.util

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import ParseError, RuleError

pytestmark = pytest.mark.usefixtures("no_rules_left")


def fired(notebook, cell, options=""):
    """What the panel of rewrites says of a cell."""
    return notebook.ok(f"%%tensor --show rewrites {options}\n{cell}").data["text/plain"]


def test_the_product_of_a_matrix_with_its_transpose(notebook):
    notebook.ok("%%rewrite products\nA.T @ A -> gram(A)                if A.ndim == 2")
    assert "A.T @ A -> gram(A)" in fired(notebook, "total = np.sum((X.T @ X) ** 2)", "--grad X")
    X = notebook["X"]
    assert notebook["grad_X"].numpy() == pytest.approx(4 * X @ X.T @ X, rel=1e-12)
    assert "gram" not in fired(notebook, "np.sum(X.T @ (X + 1))")
    notebook["S"] = np.arange(24.0).reshape(2, 3, 4)
    assert "gram" not in fired(notebook, "np.sum(S.swapaxes(1, 2) @ S)")


HOLD = {
    "inv(A) @ b -> solve(A, b)": "np.linalg.inv(X[:3] + 2 * np.eye(3)) @ (w + 1)",
    "trace(A @ B) -> sum(A * B.T) if A.shape == B.T.shape": "np.trace(X @ np.linalg.pinv(X))",
    "sum(x + y) -> sum(x) + sum(y) if x.shape == y.shape": "np.sum(X[1:] + X[:-1])",
    "sum(c * x) -> c * sum(x) if c.ndim == 0": "np.sum(lr * X)",
    "det(A @ B) -> det(A) * det(B) if A.shape == B.shape": "np.linalg.det(Q @ (Q + 1))",
    "transpose(inv(A)) -> inv(A.T)": "np.linalg.inv(X[:3]).T",
    "sum(x, axis=0) -> ones(x.shape[0]) @ x if x.ndim == 2": "np.sum(X, axis=0)",
    "log(det(A)) -> slogdet(A)[1] if det(A) > 0": "np.log(np.linalg.det(X[:3].T @ X[:3]))",
    "A.T @ (A @ x) -> (A.T @ A) @ x": "X.T @ (X @ (w + 1))",
    "sqrt(sum(abs(x) ** 2)) -> norm(x) if x.ndim == 1": "np.sqrt(np.sum(np.abs(y) ** 2))",
}


@pytest.mark.parametrize("rule", HOLD)
def test_rules_that_hold_are_used_and_change_no_value(notebook, rule):
    notebook["lr"], notebook["Q"] = 0.5, np.arange(9.0).reshape(3, 3) ** 2
    expected = notebook.ok(HOLD[rule]).value
    notebook.ok(f"%%rewrite mine --math real\n{rule}")
    shown = notebook.ok(f"%%tensor --math real --show rewrites\n{HOLD[rule]}")
    assert "mine:2" in shown.data["text/plain"]
    assert np.asarray(shown.value) == pytest.approx(expected, rel=1e-10)


FALSE = {
    "A.T @ A -> A @ A.T": "the sides differ for A[2, 2]: at [",
    "sum(x + y) -> sum(x) + sum(y) if x.ndim == y.ndim": "the sides differ for x[",
    "trace(A @ B) -> sum(A * B.T)": "for which shapes, as in `if A.shape == B.T.shape`",
    "det(A @ B) -> det(A) + det(B)": "the sides differ",
    "x.sum() -> x.sum() + 1": "the sides differ",
    "logsumexp(x) -> log(sum(exp(x)))": "the sides differ",
    "sum(x) - sum(x) -> 0": "a nan goes",
    "inv(A) -> A if trace(A) > 1e9": "no arrays were found where trace(A) > 1000000000.0",
}


@pytest.mark.parametrize("rule", FALSE)
def test_rules_that_do_not_hold_are_refused(notebook, rule):
    ran = notebook(f"%%rewrite mine\nexp(x) * exp(y) -> exp(x + y)\n{rule}")
    assert isinstance(ran.error, RuleError), ran.out
    assert FALSE[rule] in ran.out
    assert ran.out.startswith("Cell In[1], line 3")
    assert "mine" not in tm.rules.own


def test_a_replacement_that_loses_digits_is_not_stable(notebook):
    rule = "sum((x - mean(x)) ** 2) -> sum(x ** 2) - x.size * mean(x) ** 2 if x.ndim == 1"
    ran = notebook(f"%%rewrite mine\n{rule}")
    assert isinstance(ran.error, RuleError)
    assert "less accurate" in ran.out or "differ" in ran.out
    shown = notebook.ok("%%rewrite mine --test\nsum(x * 2) -> sum(x) * 2\ntrace(A) -> sum(A)")
    lines = shown.data["text/plain"].splitlines()
    assert lines[2].endswith("holds")
    assert lines[3].startswith("* trace(A) -> sum(A)")
    assert "mine" not in tm.rules.own


STRANGE = {
    "smu(x) -> x": "there is no function smu; did you mean sum",
    "A @ B -> A @ C": "C is not in the pattern",
    "A @ -> A": "this is not an expression",
    "A @ A": "has no replacement",
    "inv(A) -> sum(A, axis=(0, 1, 2))": "the sides fit no numbers, vectors or matrices",
    "A @ B -> B if A.ndim == 2 or B.ndim == 2": "is not a condition",
    "inv(A) -> A if A > zz": "the condition 'A > zz' cannot be tried",
}


@pytest.mark.parametrize("rule", STRANGE)
def test_what_is_no_rule(notebook, rule):
    ran = notebook(f"%%rewrite\n\n{rule}")
    assert isinstance(ran.error, ParseError), ran.out
    assert STRANGE[rule] in ran.out
    assert ran.out.startswith("Cell In[1], line 3")


def test_functions_of_the_notebook(notebook):
    notebook.ok("def half(a):\n    return a / 2")
    notebook.ok("%%rewrite --math real\nsum(x * 0.5) -> half(sum(x))")
    assert "half(sum(x))" in fired(notebook, "np.sum(X * 0.5)", "--math real")


def test_one_program_for_all_sizes(notebook):
    notebook.ok("%%rewrite\nA.T @ A @ x -> A.T @ (A @ x) if x.ndim == 1")
    notebook.ok("%%tensor f -q\nr = X.T @ X @ w")
    f, X = notebook["f"], notebook["X"]
    for rows in (40, 7, 1, 3):
        assert f(X[:rows], np.ones(3)) == pytest.approx(X[:rows].T @ X[:rows] @ np.ones(3))


def test_a_replacement_may_not_ask_for_more_than_the_pattern(notebook):
    """A pseudoinverse is there for every shape, an inverse is not."""
    notebook["Q"] = notebook["X"][:3] + 2 * np.eye(3)
    notebook.ok("%%rewrite --math real\npinv(A) -> inv(A) if A.shape[0] == A.shape[1]")
    for name in ("X", "Q"):
        expected = np.linalg.pinv(notebook[name])
        assert notebook.ok(f"%%tensor --math real\nnp.linalg.pinv({name})").value.numpy() == pytest.approx(expected)


def test_generators_of_rules_over_arrays():
    @tm.rule(level="real")
    def products(A, B):
        yield np.trace(A @ B), np.sum(A * B.T), A.shape == B.T.shape
        yield np.exp(A) * np.exp(B), np.exp(A + B)

    assert [str(r) for r in products] == [
        "np.trace(A @ B) -> np.sum(A * B.T)",
        "np.exp(A) * np.exp(B) -> np.exp(A + B)",
    ]
    x = tm.tensor(np.arange(9.0).reshape(3, 3))
    graph = tm.trace(lambda a, b: np.trace(a @ b), "float64[3, 3]", "float64[3, 3]")
    assert "contract" not in str(tm.rewrite(graph, products))
    assert float(np.trace(x @ (x + 1))) == np.trace(np.asarray(x) @ (np.asarray(x) + 1))

    with pytest.raises(RuleError, match="the sides differ"):

        @tm.rule
        def wrong(A):
            yield A.T @ A, A @ A.T


@pytest.mark.parametrize(("fault", "message"), [("undefined(x)", "name 'undefined'"), ("np.cosinus(x)", "'cosinus'")])
def test_what_a_generator_raises_is_shown_at_its_line(notebook, fault, message):
    out = notebook(f"@tm.rule\ndef faulty(x):\n    yield np.sin(x) * 2, {fault}").out
    assert message in out
    assert "line 3" in out
    assert f"    yield np.sin(x) * 2, {fault}" in out
    assert "functions/rules/declared.py" not in out
    assert "user.py" not in out
    assert "faulty" not in tm.rules.own


def test_rules_with_functions_that_no_graph_can_look_into(notebook):
    numba = pytest.importorskip("numba")
    library = ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")
    library.erf.restype, library.erf.argtypes = ctypes.c_double, [ctypes.c_double]
    soft = numba.vectorize(["float64(float64)"])(lambda v: np.log1p(np.exp(v)))
    x = np.linspace(-1, 1, 5)
    notebook.shell.user_ns.update(soft=soft, library=library, x=x)
    shown = notebook.ok("%%rewrite mine --math real\nsoft(y) - y -> soft(-y)\nlibrary.erf(-y) -> -library.erf(y)")
    assert "\nsoft(y) - y -> soft(-y) " in shown.data["text/plain"]
    notebook.ok("%%tensor --math real\nz = soft(x) - x\nz")
    assert "<lambda>(y) - y -> <lambda>(-y)" in notebook["z"].explain()
    np.testing.assert_allclose(notebook["z"].numpy(), soft(x) - x, rtol=1e-14)
    assert "the sides differ at y = " in notebook("%%rewrite mine\nsoft(y) -> y * 2").out
    notebook.ok("%%rewrite mine\n# none")
    notebook.ok("%%tensor\nz = soft(x) - x\nz")
    np.testing.assert_array_equal(notebook["z"].numpy(), soft(x) - x)
