"""Parts of the notebook's arrays after a cell: they are NumPy's views, wherever the cell has put them, and derivatives go through them."""

import io
from contextlib import redirect_stdout

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture.stores.outside import Outside
from tensormagic.capture.stores.place import Place
from tensormagic.capture.values.value import Tensor
from tensormagic.functions.calls import specialised
from tensormagic.ir.errors import CaptureError, DifferentiationError
from tests.notebook.part_programs import program

START = """
import numpy as np
from collections import OrderedDict, deque, namedtuple
from functools import partial
x = np.arange(12.0)
M = np.arange(6.0).reshape(2, 3)
z = np.arange(3.0) + 1j
L, D, q = [], {}, deque()
Pair = namedtuple("Pair", "a b")
class Box:
    def keep(self, a): self.a, self.b = a[1:], a
class Slots:
    __slots__ = ("a",)
box, slots = Box(), Slots()
def tail(a): return a[1:]
"""
CHANGE = "x *= 10; M += 100; z[1] = 5 + 6j"
CELLS = {  # what a cell does, and what is looked at after the arrays were changed
    "v = x[1:]": "v",
    "v = M.T": "v",
    "v = x.reshape(3, 4)[:, ::2]": "v",
    "v = M.ravel()": "v",
    "v = x[::-3]": "v",
    "v = M[..., None, 1]": "v",
    "v = z.real; w = z.imag[::-1]": "(v, w)",
    "v = x.view(np.int64)": "v",
    "v = np.diagonal(M)": "v",
    "v = np.broadcast_to(x, (2, 12))": "v",
    "v = np.lib.stride_tricks.sliding_window_view(x, 3)": "v[1]",
    "v = np.lib.stride_tricks.as_strided(x[2:], (3, 2), (16, 8))": "v",
    "v = np.einsum('ii->i', M[:, :2])": "v",
    "v, w = np.split(x, 2)": "(v, w)",
    "v, *w = M.T": "(v, w)",
    "v = tail(x)": "v",
    "v = x[2:]\nw = v[::-1]\nv[0] = 7\nu = v * 2": "(v, w, u.tolist())",
    "v = x[:2] if x.sum() > 1 else x[2:]": "v",
    "if x.sum() < 1: v = x[:2]\nelse: v = M[1]": "v",
    "k = np.argmax(M[:, 0])\nv = M[k]": "v",
    "k = np.argmax(x > 2.5)\nv = x[k:]\nw = x[k - 1 : k + 2]": "(v, w)",
    "v = max(M, key=lambda r: r.sum())": "v",
    "while len(x) > 3: x = x[1:]": "x",
    "v = [r for r in M]": "v",
    "v = {'k': [x[1:], (M[0], 2)]}": "v",
    "v = Pair(x[1:], x)": "v",
    "L.append(x[1:]); L.extend(M); L.append(x)": "L",
    "D['a'] = x[2:]; D.setdefault('b', []).append(M[1])": "D",
    "q.append(x[1:])": "q",
    "box.keep(x)": "(box.a, box.b)",
    "slots.a = x[1:]": "slots.a.tolist()",
    "Box.c = x[1:]": "Box.c.tolist()",
    "v = Box(); v.keep(x)": "(v.a, v.b)",
    "def f(v=x[1:]): return v.sum()": "float(f())",
    "def make(v): return lambda: v.sum()\nf = make(x[1:])": "float(f())",
    "f = partial(np.sum, x[1:])": "float(f())",
    "g = (r for r in M)": "[r.tolist() for r in g]",
    "v = x[1:].copy()\nw = x[[1, 2]]\nu = x[2:] * 1\nt = x.flatten()\ns = x[3]": "[a.tolist() for a in (v, w, u, t, s)]",
}


def printed(space, code):
    out = io.StringIO()
    with redirect_stdout(out):
        exec(code, space)
    return out.getvalue()


@pytest.mark.parametrize("cell", CELLS)
def test_a_part_follows_its_array_as_in_numpy(notebook, cell):
    look = f"print({CELLS[cell]})"
    plain: dict[str, object] = {}
    wanted = printed(plain, f"{START}\n{cell}\n{CHANGE}\n{look}")
    notebook.ok(START)
    notebook.ok(f"%%tensor -q\n{cell}")
    notebook.ok(CHANGE)
    assert notebook.ok(look).out == wanted


STORES = {
    "v = x[1:]": "v[0] = 77",
    "v = M.T[::-1]": "v[0, 1] = 77",
    "v = [x[2:]]": "v[0][...] = 77",
    "v = x[:2] if x.sum() > 1 else x[2:]": "v += 77",
    "f = lambda v=x[1:]: v": "f()[0] = 77",
    "slots.a = x[1:]": "slots.a[2] = 77",
}


@pytest.mark.parametrize("magic", ["", "%%tensor -q\n"])
@pytest.mark.parametrize("cell", STORES)
def test_a_store_into_a_part_reaches_the_array(notebook, cell, magic):
    plain: dict[str, object] = {}
    wanted = printed(plain, f"{START}\n{cell}\n{STORES[cell]}\nprint(x, M)")
    notebook.ok(START)
    notebook.ok(f"%%tensor -q\n{cell}")
    notebook.ok(f"{magic}{STORES[cell]}")
    assert notebook.ok("print(x, M)").out == wanted


def test_a_lazy_part_is_what_a_running_cell_sees_of_its_array(notebook):
    notebook.ok("import numpy as np\nx = np.arange(6.0)")
    notebook.ok("%%tensor -q\nf = lambda v=x[1:]: v")
    notebook.ok("%%tensor -q\na = f().sum()\nx[1] = 10\nb = f().sum()\nf()[0] += 1\nc = x.sum()")
    assert [float(notebook[n]) for n in "abc"] == [15, 24, 25]
    assert notebook["x"].tolist() == [0, 11, 2, 3, 4, 5]


def test_parts_are_numpys_own_and_read_only_where_those_are(notebook):
    notebook.ok("import numpy as np\nx = np.arange(6.0)\ny = np.arange(3.0)\ny.flags.writeable = False")
    notebook.ok("%%tensor -q\nv = x[1:]\nw = y[1:]\nd = np.diagonal(x.reshape(2, 3))\ne = x[6:]")
    assert notebook["v"].base is notebook["x"]
    assert [notebook[n].flags.writeable for n in "vwde"] == [True, False, False, True]
    assert notebook["e"].shape == (0,)


def test_parts_that_a_loop_exchanges_are_the_parts(notebook):
    notebook.ok("import numpy as np\nM = np.arange(6.0).reshape(2, 3)")
    notebook.ok("%%tensor -q\na, b = M[0], M[1]\nk = 0\nwhile k < M[1, 0]:\n  a, b = b, a; k += 1\nv = a")
    notebook.ok("v[0] = 1\nM *= 2")
    assert notebook["M"].tolist() == [[0, 2, 4], [2, 8, 10]]
    assert notebook["v"].tolist() == [2, 8, 10]


def test_what_data_decide_is_a_value_until_the_array_changes(notebook):
    notebook.ok("import numpy as np\nM = np.arange(6.0).reshape(2, 3)")
    notebook.ok("%%tensor -q\nfor v in M: pass")
    assert np.asarray(notebook["v"]).tolist() == [3, 4, 5]
    assert isinstance(notebook("v[0] = 1").error, CaptureError)
    notebook.ok("M *= 2")
    error = notebook("print(v.sum())").error
    assert isinstance(error, CaptureError)
    assert "may be a part of M, which has changed since" in str(error)
    notebook.ok("%%tensor -q --grad M\nM.sum()")  # what is not asked for is in nobody's way


THETA = "theta = np.arange(8.0)\nW, b = theta[:6].reshape(2, 3), theta[6:]\np = {'W': W, 'b': b}"
LOSSES = {
    "((W @ np.ones(3) + b) ** 2).sum()": [18, 18, 18, 38, 38, 38, 18, 38],
    "((p['W'] @ np.ones(3) + p['b']) ** 2).sum()": [18, 18, 18, 38, 38, 38, 18, 38],
    "loss()": [18, 18, 18, 38, 38, 38, 18, 38],
    "(W.T[::-1, 0] ** 2).sum() + theta.sum()": [1, 3, 5, 1, 1, 1, 1, 1],
    "theta @ theta": [0, 2, 4, 6, 8, 10, 12, 14],
}


@pytest.mark.parametrize("where", ["", "%%tensor -q\n"])
@pytest.mark.parametrize("loss", LOSSES)
def test_derivatives_go_through_parts_of_the_array(notebook, loss, where):
    notebook.ok("import numpy as np\ntheta = np.arange(8.0)")
    notebook.ok(f"{where}{THETA.partition(chr(10))[2]}")
    notebook.ok("def loss(): return ((W @ np.ones(3) + b) ** 2).sum()")
    notebook.ok(f"%%tensor -q --grad theta\ntotal = {loss}")
    assert np.asarray(notebook["grad_theta"]).tolist() == LOSSES[loss]
    assert notebook.ok("np.asarray(total.grad(theta)).tolist()").value == LOSSES[loss]


def test_derivatives_by_parts_count_what_the_whole_does(notebook):
    notebook.ok("import numpy as np\nx = np.arange(4.0)\nv = x[:2]\na, b = x[:3], x[1:]")
    notebook.ok("%%tensor -q --grad x,v\n(v ** 2).sum() + (x * 3).sum()")
    assert np.asarray(notebook["grad_x"]).tolist() == [3, 5, 3, 3]
    assert np.asarray(notebook["grad_v"]).tolist() == [3, 5]
    notebook.ok("%%tensor -q --grad a,b\n(a * b).sum()")
    assert np.asarray(notebook["grad_a"]).tolist() == [1, 2, 4]
    assert np.asarray(notebook["grad_b"]).tolist() == [2, 4, 2]


def test_a_part_that_was_read_before_the_array_changed_is_another_value(notebook):
    notebook.ok("import numpy as np\nx = np.arange(4.0)\nv = x[:2]")
    notebook.ok("%%tensor -q\nold = (v ** 2).sum()")
    notebook.ok("x[:] = [5, 6, 7, 8]")
    notebook.ok("%%tensor -q --grad x\nold + (x * 3).sum()")
    assert np.asarray(notebook["grad_x"]).tolist() == [3, 3, 3, 3]


def test_a_part_of_another_dtype_is_refused_in_derivatives(notebook):
    notebook.ok("import numpy as np\nz = np.arange(3.0) + 1j\nr = z.real")
    ran = notebook("%%tensor -q --grad r\n(r ** 2).sum() + np.abs(z).sum()")
    assert isinstance(ran.error, DifferentiationError)
    assert "z shares memory with r" in ran.out


@pytest.mark.parametrize("seed", range(16))
def test_drawn_programs_over_parts(notebook, seed):
    cells = program(seed)
    plain: dict[str, object] = {}
    with np.errstate(all="ignore"):
        wanted = [printed(plain, code) for _, code in cells]
    for (captured, code), text in zip(cells, wanted, strict=True):
        assert notebook.ok(f"%%tensor -q\n{code}" if captured else code).out == text


def test_a_cell_gives_the_notebooks_arrays_and_views_of_them(notebook):
    notebook["x"], notebook["M"] = np.arange(5.0), np.arange(6.0).reshape(2, 3)
    assert notebook.ok("%%tensor\nx").value is notebook["x"]
    ran = notebook.ok("%%tensor\nx[1:]")
    assert ran.value.base is notebook["x"]
    assert ran.data["text/plain"].startswith("[1., 2., 3., 4.] · float64[4]")
    notebook.ok("_[0] = 100")
    assert notebook["x"].tolist() == [0, 100, 2, 3, 4]
    notebook.ok("%%tensor\nM.T, (M[0], x), M.sum()")
    notebook.ok("_[0][0, 1] = 50\n_[1][1][2] = -1")
    assert notebook["M"].tolist() == [[0, 1, 2], [50, 4, 5]]
    assert notebook["x"].tolist() == [0, 100, -1, 3, 4]
    notebook.ok("%%tensor\nx[::2] * 1")
    notebook.ok("_[0] = 7")
    assert notebook["x"][0] == 0


def test_what_plain_python_has_stored_is_no_store_of_a_function_that_is_captured_later(monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numpy")
    array = np.arange(3.0)
    part = Tensor(Place(Outside(array, "M")))  # as a cell has them of the notebook's arrays
    assert part[1] == 1
    array[1] = 7.0
    found: list[int] = []
    own = specialised.left_behind
    monkeypatch.setattr(
        specialised, "left_behind", lambda mark, **known: found.append(len(left := own(mark, **known))) or left
    )
    np.testing.assert_array_equal(tm.tensor(lambda a: a[::-1] * 3.0)(np.arange(3.0)), [6, 3, 0])
    assert found == [0]
    assert part[1] == 7
