"""What NumPy and SciPy warn of besides floating-point errors: results that lose digits, and parts that are dropped."""

import re
import warnings

import numpy as np
import pytest
import scipy.linalg

import tensormagic as tm


@pytest.fixture
def told(notebook):
    """Runs a cell; gives line, category and message of each warning."""
    notebook.ok(
        "import scipy.linalg\nfrom scipy.linalg import hilbert, inv, solve\nx = np.linspace(0, 1, 12)\nz = np.array([1 + 2j, 3.0])"
    )
    notebook["H"], notebook["ones"] = scipy.linalg.hilbert(14), np.ones(14)

    def run(cell: str) -> list[tuple[int, str, str]]:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("default")
            notebook.ok(cell)
        return [(w.lineno, w.category.__name__, str(w.message)) for w in found]

    return run


SAID = {
    "polyfit": "c = np.polyfit(x, x**2, 15)",
    "fewer points than coefficients": "c = np.polyfit(x[:3], x[:3], 5)",
    "several right sides": "c = np.polyfit(x, np.stack([x, x**2], 1), 15)",
    "fitted and evaluated": "c = np.polyval(np.polyfit(x, np.sin(x), 14), 0.5)",
    "solve": "c = scipy.linalg.solve(H, ones)",
    "solve by its name": "c = solve(H, H @ ones) + 1",
    "inv": "c = scipy.linalg.inv(H)",
    "inv times": "c = inv(H) @ ones",
    "astype": "c = z.astype(float)",
    "asarray": "c = np.asarray(z * 1j, dtype=np.float64)",
    "number": "c = np.float64(z[0])",
    "array": "c = np.array(z, dtype=float)",
    "store": "c = np.zeros(2)\nc[:] = z",
}


@pytest.mark.parametrize("name", SAID)
def test_a_cell_warns_as_the_library_does_at_each_run(told, name):
    cell = f"{SAID[name]}\nprint(np.sum(c))"
    plain = [(line, category, message) for line, category, message in told(cell)]
    assert plain
    for _ in range(2):
        assert told(f"%%tensor\n{cell}") == [(line + 1, category, message) for line, category, message in plain]


QUIET = (
    "np.polyfit(x, x**2, 3)",
    "np.linalg.solve(H, ones)",
    "np.linalg.inv(H)",
    "scipy.linalg.solve(H + np.eye(14), ones)",
    "z.real.astype(float)",
    "z.astype(bool)",
    "z.astype(np.complex64)",
)


@pytest.mark.parametrize("cell", QUIET)
def test_no_cell_warns_where_the_library_does_not(told, cell):
    assert told(f"print(np.sum({cell}))") == []
    assert told(f"%%tensor\nprint(np.sum({cell}))") == []


def test_warnings_of_libraries_in_loops_and_branches(told):
    cell = "%%tensor\nfor n in (3, 15):\n    c = np.polyfit(x, x**2, n)\nprint(c[0])"
    assert [(line, name) for line, name, _ in told(cell)] == [(3, "RankWarning")]
    cell = "%%tensor\nif x[0] < 1:\n    c = scipy.linalg.solve(H, ones)\nelse:\n    c = ones\nprint(c[0])"
    assert [(line, name) for line, name, _ in told(cell)] == [(3, "LinAlgWarning")]


def test_the_values_and_derivatives_are_as_before(told, notebook):
    notebook.ok("%%tensor --grad x\nL = np.sum(np.polyfit(x, np.sin(x), 3))\nL")
    A = notebook["H"] + np.eye(14)
    f = tm.grad(lambda a: tm.tensor(lambda m: scipy.linalg.solve(m, np.ones(14)).sum())(a))
    inverse = np.linalg.inv(A)
    np.testing.assert_allclose(f(A), -np.outer(inverse.T @ np.ones(14), inverse @ np.ones(14)), rtol=1e-10)


def test_code_that_is_written_out_names_no_parameter_of_ours():
    """What the caller was is no argument of NumPy's function."""
    text = str(
        tm.compile(lambda a, b: scipy.linalg.solve(a, b) + scipy.linalg.inv(a) @ b, np.eye(3), np.ones(3)).source
    )
    assert not re.search("asked_by", text)
