"""Arrays that no graph holds (masked arrays, matrices, structures, objects, subclasses): in cells NumPy computes with them."""

import numpy as np
import pytest

from tensormagic.ir.errors import CaptureError
from tests.notebook.conftest import Notebook
from tests.notebook.sameness import difference, form, names_of

MASKED = "m = np.ma.masked_equal(np.array([1.0, -1.0, 3.0]), -1)\nx = np.array([1.0, 2.0, 4.0])\n"
NAMED = """class Named(np.ndarray):
    def __new__(cls, array, name='none'):
        made = np.asarray(array).view(cls)
        made.name = name
        return made
    def __array_finalize__(self, other):
        self.name = getattr(other, 'name', 'none')
"""
CELLS = {
    "a masked array": [
        MASKED,
        "%%tensor\na = m.sum() + x[0]\nb, c = m + x, x * m\nx += m\nm[0] = np.ma.masked\nprint(m, np.ma.mean(m), np.square(m))",
    ],
    "a mask over an array": [
        "x = np.array([1.0, -1.0, 3.0])",
        "%%tensor\nm = np.ma.masked_array(x, x < 0)\nm[0] = 7\ny = x * 2\nx[2] = 5\nprint(m)\nv = x[1:]",
        "x[2] = 6\nprint(m, v)",
    ],
    "memory that two arrays share": [
        f"{MASKED}m = np.ma.array(x, copy=False)",
        "%%tensor\nm[0] = 7\ny = x + 1\nx[1] = 8\nprint(m, y)",
    ],
    "a matrix": [
        "M, x = np.arange(4.0).reshape(2, 2).view(np.matrix), np.array([1.0, 2.0])",
        "%%tensor\nA, B, C = M * M, M * x[:, None], np.asarray(M) * x\nM += 1\nprint(M.T, M.I @ x)\nfor row in M:\n    print(row.shape)",
    ],
    "a matrix of the cell's own": [
        "%%tensor\nx = np.arange(4.0).reshape(2, 2)\nM = np.asmatrix(x)\nM[0, 0] = 9\ny = x * 2\nx[1] = 5\nprint(M)",
        "M[0, 1] = -1\nprint(x)",
    ],
    "structures": [
        "%%tensor\nA = np.zeros(3, [('a', int), ('b', float)])\nx = np.linspace(0, 1, 3)\nA['b'] = x\nA['b'] += x\nv = A['b']\nv[0] = 8",
        "%%tensor\nA['a'][1] = 4\nw = v * 2\nB = A[A['b'] > 1]\nr = A.view(np.recarray)\nr.b *= 2\nprint(r.b, A)",
    ],
    "objects": [
        "o, x = np.array([[1, 2], [3]], object), np.ones(2)",
        "%%tensor\nn = [len(v) for v in o] * x\no[0].append(5)",
    ],
    "a subclass": [NAMED, "%%tensor\nz = Named(np.arange(3.0), 'z')\ny = z * np.ones(3)\nprint(y.name, z.sum())"],
    "loops and branches": [
        MASKED,
        "%%tensor\nfor k in range(50):\n    x = x * 1.01\n    m[1] = k\n    m[k % 2] = np.ma.masked\nif x[0] > 5:\n    m[2] = np.ma.masked",
    ],
    "other numbers": [
        "b, q = np.arange(4, dtype='>i4'), np.arange(2, dtype=np.longdouble)",
        "%%tensor\nx = np.arange(4.0) * b\ny = q / 3 + x[:2]\nb[1] = x[3]",
    ],
    "a mask in an object": [
        f"{MASKED}class H:\n    pass\nh = H()\nh.m = m",
        "%%tensor\nh.m[0] = x[2]\nd = h.m.data\nd[2] = 11\nprint(h.m)",
    ],
}


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("name", CELLS)
def test_cells(notebook: Notebook, name: str):
    """Variables and what is printed are those of the same cells without the magic."""
    first = {*notebook.shell.user_ns, "np"}
    found = []
    for magic in ("%%tensor -q", "%%time"):
        for own in names_of(notebook.shell.user_ns, first):
            del notebook.shell.user_ns[own]
        notebook["np"] = np
        told = [notebook.ok(cell.replace("%%tensor", magic).replace("%%time\n", "")).out for cell in CELLS[name]]
        found.append((told, {n: form(v) for n, v in names_of(notebook.shell.user_ns, first).items()}))
    (told, ours), (expected, numpys) = found
    assert told == expected
    assert list(ours) == list(numpys)
    assert [d for n in ours for d in difference(numpys[n], ours[n], n)] == []


def test_a_cell_that_fails_leaves_them_as_they_were(notebook: Notebook):
    notebook["np"] = np
    notebook.ok(f"{MASKED}names = np.array(['a', 'b'])")
    ran = notebook(
        "%%tensor\nm[0] = np.ma.masked\nm[2] = 9\nnames[0] = 'z'\nk = np.ma.array(x, copy=False)\nk[0] = 5\n1 / 0"
    )
    assert isinstance(ran.error, ZeroDivisionError)
    assert notebook["m"].tolist() == [1, None, 3]
    assert notebook["x"].tolist() == [1, 2, 4]
    assert notebook["names"].tolist() == ["a", "b"]


def test_derivatives_tell_what_they_leave_out(notebook: Notebook):
    notebook["np"], notebook["w"] = np, np.array(2.0)
    notebook.ok(MASKED)
    notebook.ok("%%tensor --grad w -q\n(w**2 * m.filled(0)).sum()")
    assert float(notebook["grad_w"]) == 16
    with pytest.warns(UserWarning, match="leaves out"):
        notebook.ok("%%tensor --grad w -q\ny = w * m\n(y.filled(0) * x).sum() + w**2")
    assert isinstance(notebook("%%tensor --grad m -q\n(m**2).sum()").error, ValueError)


@pytest.mark.parametrize("store", ["v[0] = 5.0", "v += 1.0", "v[1:] = 0.0", "w[0] = 7.0", "m[0] = 2.0"])
def test_an_array_of_an_earlier_cell_whose_memory_another_object_has(store, notebook: Notebook):
    """What a cell has made is stored into by later cells, and the object sees that; a cell that fails has stored nothing."""
    cells = [
        "import numpy as np\nv = np.array([3.0, 1.0, 2.0])\nw = v[1:]",
        "m = np.ma.masked_array(v, mask=[False, True, False])",
    ]
    own: dict = {}
    for cell in cells:
        notebook.ok(f"%%tensor\n{cell}")
        exec(cell, own)
    failed = notebook(f"%%tensor\n{store}\n1 / 0")
    assert failed.error is not None
    for name in ("v", "w", "m"):
        np.testing.assert_array_equal(np.asarray(notebook[name]), np.asarray(own[name]))
    ran = notebook(f"%%tensor\n{store}")
    if ran.error is None:
        exec(store, own)
    else:
        assert isinstance(ran.error, CaptureError)
    for name in ("v", "w", "m"):
        np.testing.assert_array_equal(np.asarray(notebook[name]), np.asarray(own[name]))
