"""Functions of other libraries in a cell get arrays and numbers; where NumPy refuses a call, a cell says what NumPy says."""

from __future__ import annotations

import types

import numpy as np
import pytest

from tests.notebook.sameness import difference, form

START = """import numpy as np, math, random, statistics, collections
from decimal import Decimal
from fractions import Fraction
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq, curve_fit, minimize
v = np.linspace(0, 1, 20); k = np.arange(20); A = np.arange(6.0).reshape(2, 3); b = v > 0.5; c = np.ones(3) * 1j; big = 1e200
"""
CALLS = [
    "Decimal(v.sum()), Fraction(v[3] * 1)",
    "statistics.mean(v * 1)",
    "[random.seed(0), random.choice(v * 1)][1]",
    "np.einsum(k * 1.0, [0], k * 2.0, [0]), np.einsum(A * 1, [0, 1], [1, 0]), np.einsum(A * 1, [..., 0], c.imag * 1, [0])",
    "min(2, np.float64(3)), max(v[1] * 1, 2), max(k[3], 2.5), min(k[1], 0.5), max(1.5, 2), max([v[1], 2]), min(2, k[5])",
    "np.indices(j for j in (2, 3))",
    "v.sum.__name__, v.mean.__qualname__, v.reshape.__name__",
    "{k[1] * 1: 2}, set(k[:3] * 1), v[1] in {0.5}, collections.Counter(k % 3), hash(k[3] * 1)",
    "callable(v * 1), hasattr(v * 1, '__call__'), hasattr(v * 1, 'foo')",
    "(A * 2).strides, (A * 2).T.strides, A[:, ::2].strides, (A * 2).flags.c_contiguous, (A * 2).T.flags['F'], A.T.flags.owndata",
    "quad(np.sin, 0, v[2] * 1), quad(lambda t: t**2 * v[1], 0, 1), brentq(lambda x: x**2 - v[1], 0, 1)",
    "solve_ivp(lambda t, y: -y * v[3], (0, 1), [1.0, v[1] * 1]).y, curve_fit(lambda x, a, b: a * x + b, v, v * 3)[0]",
    "minimize(lambda x: ((x - v[:2]) ** 2).sum() + np.sum(np.zeros(2) + x), v[:2] * 0).x",
    "np.array2string(v * 2, precision=2), np.array_repr(v * 1), np.format_float_positional(v[1] * 2), np.info",
    "math.fsum(v * 1), np.testing.assert_allclose(v * 1, v), np.may_share_memory(v * 1, v)",
    "min(np.arange(5000.0) * 2), max(np.arange(5000.0) * 2)",
    "np.where(v > 0.5, 'hi', 'lo'), v[:2][np.array(['p', 'q']) == 'q'], np.array(['p', 'q'])[v[:2] > 0]",
    "np.datetime64('2020-01-01') + k[:3], np.unique(['b', 'a']), np.unique(A, axis=0), np.array([1, 'a'])",
    "np.vectorize(lambda x: 'hi' if x > 0.5 else 'lo')(v), np.apply_along_axis(lambda r: r[r > 1].sum(), 1, A)",
    "(A * 2).tobytes(), A.T.base is A.base, (A * 1).base, isinstance(np.random.default_rng(1), np.random.Generator)",
    "(lambda g: (type(g), next(g)))(x * 2 for x in v), type(np.vectorize(len)), type(np.linalg.eig(A[:, :2] * 1))",
    "np.random.default_rng(2).permutation(['a', 'b', 'c']), np.random.default_rng(2).choice(['a', 'b'], 5)",
    "np.r_[v * 1, 1, 2], np.c_[v * 1, v * 2], np.s_[1:3], np.ix_(k[:2] * 1, k[:3] * 1)",
]
WRONG = """big ** 2; np.random.default_rng(0).choice([], 3)
k ** -k; (2 ** -k, v[77]); np.power(k, -k); 3 ** (k - 5); (k[1:3] ** -k[1:3], v[77])
v + A; A @ A; v @ A; np.dot(A, A); np.matmul(A, v); np.sum(A, axis=2); A.sum(axis=5); np.concatenate([v, A])
np.stack([v, k[:3]]); np.vstack([A, A.T]); v.reshape(2, 3); A.reshape(-1, -1); A.reshape(4, -1); A.transpose(0)
A.transpose(0, 0); np.swapaxes(A, 0, 3); np.moveaxis(A, 0, 5); v[77]; A[0, 5]; v[[7, 88]]; A[[0, 1], [0, 1, 2]]; v[1.5]
v['a']; np.linalg.inv(A); np.linalg.inv(v); np.linalg.solve(A, v); np.linalg.solve(np.eye(3), v); np.linalg.norm(v, axis=3)
np.einsum('ij,jk->ik', A, A); np.einsum('ij->k', A); np.einsum('i', A); np.einsum('ij,jk', A); np.clip(v, k[:3], k)
np.take(A, 0, axis=3); np.repeat(v, -1); np.roll(A, 1, axis=4); np.broadcast_to(v, (3,)); np.broadcast_arrays(v, A); v & v
~v; c < None; c // 2; -b; b - b; np.sum(v, bad=1); v.bad; v.reshape(); v.astype(); v.dot(A); v.swapaxes(0, 1); len(v[1])
iter(v[1]); v + None; v + 'a'; v + {}; A[0] = k; v[1:3] = [1, 2, 3]; v += A; del v[2:5]; np.fft.fft(v, norm='bad')
np.searchsorted(v, v, side='bad'); np.quantile(v, 1.5); np.polyval(A, A.T); np.sin(v, out=k); np.add(v, v, out=A)
np.stack([v, v], axis=4); np.diag(np.ones((2, 3, 4))); np.outer(A); v.clip(1, 2, 3, 4); A.argsort(axis=2)
np.trapezoid(v, k[:4]); np.full((2, 3), v)"""


@pytest.mark.parametrize("call", CALLS)
def test_values_of_calls_are_those_of_python(notebook, call):
    notebook.ok(START)
    expected = form(notebook.ok(call).value)
    assert list(difference(expected, form(notebook.ok(f"%%tensor\n{call}").value))) == []


@pytest.mark.share(3)
@pytest.mark.parametrize("call", [c.strip() for row in WRONG.splitlines() for c in row.split(";")])
def test_errors_have_numpys_class_and_text(notebook, call):
    notebook.ok(START)
    expected = notebook(call).error
    error = notebook(f"%%tensor\n{call}").error
    assert expected is not None
    assert isinstance(
        error, next(kind for kind in type(expected).__mro__ if not kind.__name__.startswith(("UFunc", "_")))
    )
    assert str(error) == str(expected)


def test_what_a_foreign_function_stores_is_kept(notebook):
    notebook.ok("import random\nx = np.arange(5.0)")
    notebook.ok("%%tensor\ny = x * 2\nrandom.seed(1)\nrandom.shuffle(y)\nz = y + 1")
    notebook.ok("w2 = np.arange(5.0) * 2\nrandom.seed(1)\nrandom.shuffle(w2)")
    assert np.array_equal(notebook["y"].numpy(), notebook["w2"])
    assert np.array_equal(notebook["z"].numpy(), notebook["w2"] + 1)


def test_pandas_gets_arrays_and_its_own_tables(notebook):
    pytest.importorskip("pandas")
    notebook.ok("import pandas as pd\nv = np.linspace(0, 1, 6)\nk = np.arange(6)\ndf = pd.DataFrame({'a': k, 'b': v})")
    notebook.ok("s = pd.Series(v)\nmixed = df.assign(t=list('uvwxyz'))")
    for call in (
        "df.groupby(k % 3)['b'].sum()",
        "s.groupby(k % 2).mean()",
        "pd.Series(v * 1).groupby(k % 2).mean()",
        "df.set_index(k * 2)",
        "mixed[v > 0.3]",
        "mixed[mixed['b'] > 0.3]['a']",
        "mixed.loc[v > 0.3, 'b'] * 2",
        "(df['b'] * 2).describe()",
    ):
        expected = notebook.ok(call).value
        found = notebook.ok(f"%%tensor\nr = {call}\nr").value
        assert np.array_equal(np.asarray(found), np.asarray(expected)), call


def test_a_store_into_a_table_by_a_lazy_mask(notebook):
    pytest.importorskip("pandas")
    notebook.ok("import pandas as pd\nv = np.linspace(0, 1, 4)\nmixed = pd.DataFrame({'b': v, 't': list('uvwx')})")
    notebook.ok("%%tensor\nmixed.loc[v > 0.5, 'b'] = 7.0\ndel mixed['t']")
    assert notebook["mixed"]["b"].tolist() == [0.0, 1 / 3, 7.0, 7.0]
    assert list(notebook["mixed"]) == ["b"]


def test_what_a_draw_on_values_leaves_is_the_state_that_numpy_leaves(notebook):
    draws = "rng.random(), rng.permutation(['a', 'b', 'c']), rng.random()\nl = list('abc')\nrng.shuffle(l)\nlast = rng.random()"
    notebook.ok(f"rng = np.random.default_rng(3)\nfirst = {draws}")
    expected = form([notebook["first"], notebook["l"], notebook["last"]])
    notebook.ok("rng = np.random.default_rng(3)")
    notebook.ok(f"%%tensor\nfirst = {draws}")
    assert list(difference(expected, form([notebook["first"], notebook["l"], notebook["last"]]))) == []


def test_the_users_recorder_gets_the_warnings_of_its_block(notebook):
    notebook.ok("import warnings\nv = np.linspace(-1, 1, 4)")
    notebook.ok(
        "%%tensor -q\nwith warnings.catch_warnings(record=True) as told:\n    warnings.simplefilter('always')\n    z = np.log(v)\n"
        "texts = [str(w.message) for w in told]"
    )
    assert notebook["texts"] == ["invalid value encountered in log"]


def test_a_function_with_effects_is_called_for_each_element(notebook):
    notebook.ok("calls, v = [], np.linspace(0, 1, 4)\ndef f(x):\n    calls.append(1)\n    return x * 2")
    notebook.ok("%%tensor\nr = np.vectorize(f, otypes=[float])(v * 1)")
    assert len(notebook["calls"]) == 4
    assert np.array_equal(notebook["r"], np.linspace(0, 1, 4) * 2)


def test_what_is_handed_back_is_pythons_and_numpys_own(notebook):
    notebook.ok("%%tensor\nf = np.vectorize(lambda x: x + 1)\ng = (x * 2 for x in np.arange(3.0))\nheld = [f, g]")
    assert type(notebook["f"]) is np.vectorize
    assert isinstance(notebook["g"], types.GeneratorType)
    assert [type(v) for v in notebook["held"]] == [np.vectorize, types.GeneratorType]
    assert notebook.ok("float(next(g)), float(next(g))").value == (0.0, 2.0)


@pytest.mark.parametrize("draw", ["plot_surface", "plot_wireframe", "contour3D"])
def test_pictures_of_lazy_arrays(notebook, draw):
    pytest.importorskip("matplotlib").use("agg")
    notebook.ok("import matplotlib.pyplot as plt\nxs, ys = np.meshgrid(np.linspace(-1, 1, 5), np.linspace(-1, 1, 5))")
    notebook.ok(
        f"%%tensor\nzs = xs ** 2 + ys\nax = plt.figure().add_subplot(projection='3d')\nax.{draw}(xs * 1, ys * 1, zs)"
    )
    notebook.ok("plt.close('all')")


def test_the_display_names_what_ran_on_values(notebook):
    notebook.ok(START)
    assert "run by Python: quad" in notebook.ok("%%tensor --verbose\nr = quad(np.sin, 0, v[2] * 1)").out


def test_calls_that_a_library_makes_are_counted_one_by_one(notebook, monkeypatch):
    monkeypatch.setattr("tensormagic.capture.limits.LIMIT", 300)
    notebook.ok("import numpy as np\nfrom scipy.optimize import minimize\nx = np.zeros(4)")
    notebook.ok("def energy(p):\n    return ((p - c) ** 2).sum() + abs(p[0])")
    notebook.ok("%%tensor\nc = x + 1")
    notebook.ok("%%tensor\nr = minimize(energy, x, method='Powell').x")
    assert notebook["r"][1:] == pytest.approx([1.0, 1.0, 1.0])


def test_a_call_that_comes_to_the_limit_says_so(notebook, monkeypatch):
    monkeypatch.setattr("tensormagic.capture.limits.LIMIT", 300)
    notebook.ok("import numpy as np\nfrom scipy.optimize import minimize\nx = np.zeros(4)")
    notebook.ok("def energy(p):\n    for f in [np.sin, np.cos] * 200:\n        p = f(p + c)\n    return p.sum()")
    notebook.ok("%%tensor\nc = x * 2")
    error = notebook("%%tensor -o r\nr = minimize(energy, x, method='Powell').x").error
    assert "unrolls to more than 300 operations" in str(error)


@pytest.mark.parametrize(
    "call", ["lapack.dgelss(a, b)", "lapack.dgelss(a, b, overwrite_b=True)", "blas.daxpy(b, s, a=2.0)"]
)
def test_functions_of_fortran_store_where_they_would(notebook, call):
    """They take what is no array for a copy of their own."""
    notebook.ok("import numpy as np\nfrom scipy.linalg import blas, lapack")
    made = "a, b, s = np.vander(np.arange(1.0, 5), 3), np.arange(4.0) ** 2, np.ones(4)"
    space = {"np": np}
    exec(f"from scipy.linalg import blas, lapack\n{made}\nr = {call}", space)
    notebook.ok(f"%%tensor\n{made}")
    notebook.ok(f"%%tensor\nr = {call}")
    for name in ("a", "b", "s"):
        np.testing.assert_array_equal(np.asarray(notebook[name]), space[name])
