"""Stores into the notebook's arrays: done once, when all of the cell has worked, on every way to the array."""

import numpy as np
import pytest

from tensormagic.ir.errors import CaptureError


def test_an_array_is_stored_into_once(notebook):
    x = notebook["x"] = np.arange(4.0)
    notebook.ok("%%tensor -q\nx += 1\nx[x > 2] *= 10\nx[[0, 0]] += 5")
    assert notebook["x"] is x
    assert x.tolist() == [6, 2, 30, 40]


def test_nothing_is_stored_where_the_cell_fails(notebook):
    x = notebook["x"] = np.arange(4.0)
    notebook["d"] = {"w": np.ones(2)}
    for cell in (
        "x[0] = 9\n1 / 0",
        "x[0] = 9\nd['w'][0] = 9\nx[(x * 100).astype(int)] = 1",
        "d['w'] -= x.sum()\nx[7] = 1",
    ):
        assert notebook(f"%%tensor\n{cell}").error is not None
        assert x.tolist() == [0, 1, 2, 3]
        assert notebook["d"]["w"].tolist() == [1, 1]
        assert type(notebook["d"]["w"]) is np.ndarray


def test_two_names_of_one_memory(notebook):
    notebook["a"] = np.arange(6.0)
    notebook.ok("b = a[1:]\nc = a.reshape(2, 3)")
    notebook.ok("%%tensor -q\nb[0] = 50\nc[1] *= 2\ny = a + 0")
    assert notebook["a"].tolist() == [0, 50, 2, 6, 8, 10]
    assert notebook["b"].tolist() == [50, 2, 6, 8, 10]
    assert np.asarray(notebook["y"]).tolist() == [0, 50, 2, 6, 8, 10]


def test_a_function_that_stores_into_a_global(notebook):
    notebook["H"] = np.zeros(3)
    notebook["v"] = np.arange(3.0)
    notebook.ok("def bump(by):\n    H[:] = H + by")
    H = notebook["H"]
    ran = notebook.ok("%%tensor\nbump(v)\nbump(1)\nH.sum()")
    assert float(ran.value) == 6
    assert notebook["H"] is H
    assert H.tolist() == [1, 2, 3]


def test_an_object_that_trains(notebook):
    notebook["g"] = np.ones(3)
    notebook.ok(
        "class Model:\n    def __init__(self): self.w = np.zeros(3)\n    def step(self, g): self.w -= 0.5 * g\nm = Model()"
    )
    w = notebook["m"].w
    notebook.ok("%%tensor -q\nfor _ in range(4):\n    m.step(g)")
    assert notebook["m"].w is w
    assert w.tolist() == [-2, -2, -2]


def test_a_function_of_a_cell_that_stores_into_its_argument(notebook):
    notebook["u"] = np.arange(5.0)
    notebook.ok("%%tensor -q\ndef smooth(a):\n    a[1:-1] = (a[2:] + a[:-2]) / 2\nsmooth(u)\nsmooth(u[1:])")
    plain = np.arange(5.0)
    notebook.shell.user_ns["smooth"](plain)
    notebook.shell.user_ns["smooth"](plain[1:])
    assert notebook["u"].tolist() == plain.tolist()


def test_a_gradient_through_stores(notebook):
    notebook["x"] = np.array([1.0, -2.0, 3.0])
    notebook.ok("%%tensor --grad x\ny = np.zeros(3)\ny[x > 0] = x[x > 0] ** 2\ny[[0, 2]] += x[0]\ny.sum()")
    assert np.asarray(notebook["grad_x"]).tolist() == [4, 0, 6]


def test_a_gradient_is_with_respect_to_the_value_at_entry(notebook):
    notebook["v"] = np.array([3.0, 5.0])
    notebook.ok("%%tensor --grad v\nw = v * 2\nv[0] = v[0] ** 2\ntotal = v.sum() + w.sum()")
    assert notebook["grad_v"].tolist() == [8, 3]
    assert notebook["v"].tolist() == [9, 5]


def test_a_copy_that_a_cell_handed_back_is_stored_into_alone(notebook):
    notebook["x"] = np.arange(3.0)
    notebook.ok("%%tensor -q\ny = x[1:]\nz = x.copy()\nz[0] = 5")
    notebook.ok("%%tensor -q\ny += 1")
    assert notebook["x"].tolist() == [0, 2, 3]
    notebook.ok("%%tensor -q\nz += 1")
    assert np.asarray(notebook["z"]).tolist() == [6, 2, 3]


def test_lazy_values_of_an_earlier_cell_are_stored_into(notebook):
    notebook["x"] = np.arange(3.0)
    notebook.ok("%%tensor -q\nz = x * 2\nv = z[1:]")
    notebook.ok("%%tensor -q\nv[0] = 100\nz[0] += 1")
    assert np.asarray(notebook["z"]).tolist() == [1, 100, 4]
    assert np.asarray(notebook["v"]).tolist() == [100, 4]


@pytest.mark.parametrize("options", ["", "--dtype float32"])
def test_an_array_in_a_container_and_by_name(notebook, options):
    notebook["x"] = np.arange(3.0)
    notebook.ok("d = {'x': x}")
    ran = notebook(f"%%tensor -q {options}\nx[0] = 5\nd['x'][1] = 6")
    if ran.error is None:
        assert notebook["x"].tolist() == [5, 6, 2]
    else:
        assert isinstance(ran.error, CaptureError)
        assert notebook["x"].tolist() == [0, 1, 2]
    assert notebook["d"]["x"] is notebook["x"]


def test_gradients_of_lazy_values_of_earlier_cells_that_are_stored_into(notebook):
    notebook["x"] = np.array([1.0, 2.0, 3.0, 4.0])
    notebook.ok("%%tensor -q\nz = x + 1")
    notebook.ok("%%tensor -q --grad z\nz[1] = 3.0\nz[2:] *= 2\ntotal = np.sum(z ** 2)")
    assert notebook["grad_z"].tolist() == [4, 0, 32, 40]
    assert notebook["z"].tolist() == [2, 3, 8, 10]
    notebook.ok("%%tensor -q --grad x\nz[0] = x[0] * x[1]\ntotal = np.sum(z)")
    assert notebook["grad_x"].tolist() == [2, 1, 2, 2]
    notebook.ok("%%tensor -q --grad z\nv = z[1:]\nv[0] = 5\ntotal = np.sum(z * z)")
    assert notebook["grad_z"].tolist() == [4, 0, 16, 20]


@pytest.mark.parametrize(
    ("cell", "gradient"),
    [("u[2] *= 3", [2, 36, 6, 8]), ("v[2] *= 3\nu[0] += v[0]", [3, 4, 54, 8]), ("total = 0", [2, 4, 6, 8])],
)
def test_gradients_of_arrays_that_share_memory_that_is_stored_into(notebook, cell, gradient):
    notebook["u"] = np.arange(5.0)
    notebook["v"] = notebook["u"][1:]
    notebook.ok(f"%%tensor -q --grad v\n{cell}\ntotal = np.sum(v ** 2) + u[0]")
    assert np.asarray(notebook["grad_v"]).tolist() == gradient


@pytest.mark.filterwarnings("ignore:.*was run as ordinary Python")
@pytest.mark.parametrize("value", ["G.ravel()[:4]", "G[0]", "G.T.ravel()[:4]"])
def test_a_store_into_flat_of_a_part_of_itself(notebook, value):
    """NumPy changes such a part while it reads it."""
    expected = np.arange(12.0).reshape(3, 4)
    expected.flat[1:5] = eval(value, {"G": expected})
    ran = notebook(f"%%tensor -q\nG = np.arange(12.0).reshape(3, 4)\nG.flat[1:5] = {value}")
    if ran.error is None:
        assert notebook["G"].tolist() == expected.tolist()
    else:
        assert isinstance(ran.error, CaptureError)
        assert "x.flat" in ran.out
    copied = np.arange(12.0).reshape(3, 4)
    copied.flat[1:5] = copied.flat[:4]
    notebook.ok("%%tensor -q\nG = np.arange(12.0).reshape(3, 4)\nG.flat[1:5] = G.flat[:4]")
    assert notebook["G"].tolist() == copied.tolist()
