"""What a hostile user tried: stores through aliases, other ways to an array, functions that a cell defines, names that are lost."""

import numpy as np
import pytest

from tensormagic.ir.errors import DifferentiationError


def test_what_a_cell_handed_back_is_stored_into_as_in_numpy(notebook):
    notebook["x"] = np.arange(3.0)
    notebook.ok("%%tensor -q\ny = x[1:]")
    notebook["x"][:] = 7
    notebook.ok("%%tensor -q\ny[0] = 9.0")
    assert notebook["x"].tolist() == [7, 9, 7]
    notebook.ok("%%tensor -q\nz = y * 1\nz[0] = 8.0")
    assert notebook["z"].tolist() == [8, 7]
    assert notebook["x"].tolist() == [7, 9, 7]


@pytest.mark.parametrize(
    ("cell", "total"),
    [("H += 1\nr = total()\nr", 3), ("H[0] = 7.0\nr = box['h'] * 1\nr", 7), ("H[0] = 7.0\nr = row[0] * 1\nr", 7)],
)
def test_a_store_is_seen_on_every_way_to_the_array(notebook, cell, total):
    notebook["H"] = np.zeros(3)
    notebook.ok("def total():\n    return H.sum()")
    notebook.shell.push({"box": {"h": notebook["H"]}, "row": [notebook["H"]]})
    ran = notebook.ok(f"%%tensor\n{cell}")
    assert np.asarray(ran.value).sum() == total
    assert notebook["H"].sum() == total
    assert type(notebook["H"]) is np.ndarray
    assert notebook["box"]["h"] is notebook["H"]
    assert notebook["row"][0] is notebook["H"]


def test_a_function_of_a_cell_reads_the_notebook(notebook):
    notebook.shell.push({"s": 2.0, "v": np.ones(3)})
    notebook.ok("%%tensor -q\ndef scaled(a): return a * s")
    notebook.shell.push({"s": 20.0})
    assert np.asarray(notebook.shell.user_ns["scaled"](notebook["v"])).tolist() == [20, 20, 20]
    assert float(notebook.ok("%%tensor\nscaled(v).sum()").value) == 60.0


def test_a_counter_that_is_assigned_too_is_handed_back(notebook):
    notebook.ok("%%tensor -q\nfor k in range(3):\n    z = X * k\nk = k * 10")
    assert notebook["k"] == 20


def test_gradients_by_name_and_by_array(notebook):
    notebook["p"] = np.arange(3.0)
    notebook.ok("%%tensor -q\nc = np.sum(p ** 2)")
    value = notebook["c"]
    assert value.grad("p").tolist() == [0, 2, 4]
    assert value.grad(notebook["p"]).tolist() == [0, 2, 4]
    for wrong in ("q", np.arange(3.0)):
        with pytest.raises(DifferentiationError, match="not an input of this value"):
            value.grad(wrong)


def test_ints_and_bools_are_arguments_of_a_named_cell(notebook):
    notebook.shell.push({"v": np.arange(3.0), "power": 2, "flipped": False})
    notebook.ok("%%tensor -q named\nr = v ** power\nr = -r if flipped else r\nr")
    named = notebook.shell.user_ns["named"]
    assert named.parameters == ("v", "power", "flipped")
    assert named(power=3, flipped=True).tolist() == [0, -1, -8]
    assert named(np.ones(2), 5).tolist() == [1, 1]
    notebook.shell.push({"power": 4})
    assert named().tolist() == [0, 1, 16]
