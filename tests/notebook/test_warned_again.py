"""A cell whose values are kept from an earlier run, or from another cell, warns of floating-point errors as it would in Python."""

import warnings

import numpy as np
import pytest


@pytest.fixture
def told(notebook):
    """Runs a cell; gives the lines and messages of its warnings."""
    notebook["v"] = np.array([0.0, 1.0])
    notebook["w"] = np.array([-1.0, 800.0])

    def run(cell: str) -> list[tuple[int, str]]:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("default")
            notebook.ok(cell)
        return [(w.lineno, str(w.message)) for w in found if w.category is RuntimeWarning]

    return run


AGAIN = {
    "array": ("a = np.log(v)\na", [(2, "divide by zero encountered in log")]),
    "printed": ("a = 1 / v\nprint(a)", [(2, "divide by zero encountered in divide")]),
    "number": ("t = 1 / v[0]\nt", [(2, "divide by zero encountered in divide")]),
    "two lines": (
        "a = np.sqrt(w)\nb = np.exp(w)\n(a, b)",
        [(2, "invalid value encountered in sqrt"), (3, "overflow encountered in exp")],
    ),
    "loop": ("s = 0.0\nfor e in v:\n    s = s + np.log(e)\ns", [(4, "divide by zero encountered in log")]),
    "while": (
        "s = 0.0\nk = 0\nwhile k < 4 or s < 3:\n    s = s + np.sqrt(v[1] - k)\n    k += 1\ns",
        [(5, "invalid value encountered in sqrt")],
    ),
    "branch": ("if v[0] < 1:\n    r = np.log(v)\nelse:\n    r = v * 1\nr", [(3, "divide by zero encountered in log")]),
    "helper": ("def f(x):\n    return np.log(x) + 1\nf(v) * 2", [(3, "divide by zero encountered in log")]),
    "store": ("y = v.copy()\ny[0] = np.log(v[0])\ny", [(3, "divide by zero encountered in log")]),
    "comprehension": ("[float(np.log(e)) for e in v]", [(2, "divide by zero encountered in log")]),
}


@pytest.mark.parametrize("name", AGAIN)
def test_each_run_of_a_cell_warns(told, name):
    cell, expected = AGAIN[name]
    for _ in range(3):
        assert told(f"%%tensor\n{cell}") == expected


def test_what_has_a_value_already_is_warned_of_where_it_is_written_again(told):
    assert told("%%tensor\nz = np.log(v)\nz") == [(2, "divide by zero encountered in log")]
    assert told("%%tensor\n\nb = np.log(v) + 3\nb") == [(3, "divide by zero encountered in log")]
    assert told("%%tensor\n(np.log(v) + 3) * np.cos(v)") == [(2, "divide by zero encountered in log")]
    assert told("%%tensor\n(np.log(v) + 3) * np.cos(v)") == [(2, "divide by zero encountered in log")]


def test_who_reads_a_value_alone_is_not_warned(told):
    assert told("%%tensor\nz = np.log(v)\nz") == [(2, "divide by zero encountered in log")]
    assert told("%%tensor\nz") == []
    assert told("%%tensor\nz + 1") == []
    assert told("print(z)") == []
    assert told("%%tensor\nnp.log(v + 1)") == []


def test_errstate_holds_for_values_that_are_there(told, notebook):
    assert told("%%tensor\nz = np.log(v)\nz") == [(2, "divide by zero encountered in log")]
    assert told("%%tensor\nwith np.errstate(divide='ignore'):\n    z = np.log(v)\nz") == []
    assert told("%%tensor\nz = np.log(v)\nz") == [(2, "divide by zero encountered in log")]
    with np.errstate(divide="ignore"):
        assert told("%%tensor\nz = np.log(v)\nz") == []


def test_warnings_that_are_errors_are_errors_for_values_that_are_there(told, notebook):
    assert told("%%tensor\nz = np.log(v)\nz") == [(2, "divide by zero encountered in log")]
    with warnings.catch_warnings(action="error"):
        for _ in range(2):
            error = notebook("%%tensor\nq = np.log(v)\nprint(q)").error
            assert isinstance(error, RuntimeWarning)
    assert told("%%tensor\nq = np.log(v)\nprint(q)") == [(2, "divide by zero encountered in log")]


def test_other_lines_with_the_same_text_are_not_meant(told):
    told("%%tensor\ns = 0.0\nfor e in v:\n    s = s + np.log(e)\ns")
    assert told("%%tensor\ns = 0.0\nfor e in v + 1:\n    s = s + np.log(e)\ns") == []
    assert told("%%tensor\ns = 0.0\nfor e in v:\n\n    s = s + np.log(e)\ns") in (
        [(5, "divide by zero encountered in log")],
        [],  # kept, and the line is another one: none is told rather than a wrong one
    )
