"""Where arrays lie in memory, in cells and functions: strides, flags, windows, memory in common; and kinds that values say."""

from typing import Any

import numpy as np
import pytest
import scipy

import tensormagic as tm
from tensormagic.ir.errors import CaptureError, PlainRunWarning
from tests.notebook.conftest import Notebook

as_strided = np.lib.stride_tricks.as_strided
RNG = np.random.default_rng(68)


def matrices():
    """One matrix, in different places."""
    x = RNG.integers(0, 3, (3, 4)).astype(float)
    wide = np.zeros((6, 8))
    wide[::2, ::2] = x
    return {
        "C": x,
        "F": np.asfortranarray(x),
        "apart": wide[::2, ::2],
        "backwards": x[::-1].copy()[::-1],
        "rows again": np.broadcast_to(x[0], (3, 4)),
        "C again": x + 1,
    }


PROGRAMS = {
    "strides": lambda a: np.array([*a.strides, *a.T.strides, *a[:, 1:].strides, *a[::-1, ::2].strides]),
    "flags": lambda a: np.array([a.flags.c_contiguous, a.flags["F"], a.T.flags.c_contiguous, a[1:].flags.contiguous]),
    "decides": lambda a: a * 2.0 if a.flags.c_contiguous else a + 1.0,
    "as they lie": lambda a: a.ravel("A") * 1.0,
    "as_strided": lambda a: as_strided(a, (2, 3), (a.strides[1], a.strides[0])) * 1.0,
    "as_strided of parts": lambda a: as_strided(a[1], (3, 2), (a.strides[1], a.strides[1]), writeable=False).sum(
        axis=1
    ),
    "shared": lambda a: np.array([np.shares_memory(a[:, ::2], a[:, 1::2]), np.may_share_memory(a[:, ::2], a[:, 1::2])]),
    "lists": lambda a: np.array([sum(a[0].tolist()), a.tolist()[1][2], a[1, 1].tolist()]),
    "poly": lambda a: np.poly(a[:, :3]),
    "poly of complex roots": lambda a: np.poly(a[0] + 1j * (a[1] > 1) - 1j * (a[2] > 1)),
    "real_if_close": lambda a: np.real_if_close(a + 1e-14j * (a[0] > 1) + 1j * (a[0, 0] > 1)) * 2,
    "trim_zeros": lambda a: np.trim_zeros(a[0], "f") * 2,
    "trim_zeros of axes": lambda a: np.trim_zeros(np.pad(a * (a[0] > 1), 2)) * 2,
    "unpackbits": lambda a: np.unpackbits(a.astype(np.uint8), axis=1, count=5),
    "more bits": lambda a: np.unpackbits(a.astype(np.uint8), count=100, bitorder="little"),
    "fewer bits": lambda a: np.unpackbits(a.astype(np.uint8), axis=0, count=-2),
}
NEWER = {"trim_zeros of axes"}  # than NumPy 2.1


@pytest.mark.parametrize("name", PROGRAMS)
def test_functions(name):
    program = PROGRAMS[name]
    captured = tm.tensor(program)
    for _ in range(3):  # there and back
        for place, x in matrices().items():
            try:
                expected = program(x)
            except TypeError:
                if name in NEWER:
                    pytest.skip("this NumPy trims one axis alone")
                raise
            found = captured(x)
            assert found.dtype == expected.dtype, place
            assert np.allclose(found, expected, rtol=1e-12, atol=1e-12), place
            assert found.shape == expected.shape


@pytest.mark.parametrize("name", ["as_strided", "shared", "lists", "poly", "real_if_close", "unpackbits"])
def test_cells(notebook, name):
    notebook.shell.push({"program": PROGRAMS[name], "as_strided": as_strided, "np": np})
    for x in matrices().values():
        notebook.shell.push({"x": x, "one": 1.0})
        notebook.ok("%%tensor -q\nfound = program(x) * one")
        assert np.allclose(notebook["found"], PROGRAMS[name](x))


def test_stores_follow_the_place():
    def program(a):
        b = a.reshape(-1)  # a view of what lies in C order
        b[0] = 100.0
        return a * 1.0

    captured = tm.tensor(program)
    for own, other in zip(matrices().values(), matrices().values(), strict=True):
        if own.flags.writeable:
            own[...] = other
            assert np.array_equal(captured(own), program(other))
            assert np.array_equal(own, other)


def test_arrays_of_the_notebook_share_memory(notebook):
    notebook.ok("v = np.arange(8.0); w = v[2:]; u = v[::2]; odd = v[1::2]; alone = np.zeros(2)")
    notebook.ok(
        "%%tensor -q\nfound = [np.shares_memory(v, w), np.shares_memory(u, odd), np.may_share_memory(u, odd), "
        "np.shares_memory(v, alone), np.shares_memory(w[1:], v[:3]), np.may_share_memory(v, v * 1), np.shares_memory(v, 1.0)]"
    )
    assert notebook["found"] == [True, False, True, False, False, False, False]


def test_what_is_not_known_is_refused():
    x = np.arange(4.0)
    shared = tm.tensor(lambda a, b: a * np.shares_memory(a, b))
    with pytest.raises(CaptureError, match="whether arrays share memory"):
        shared.graph(x, x[1:])
    with pytest.warns(PlainRunWarning):
        assert shared(x, x[1:]).tolist() == x.tolist()
    with pytest.raises(CaptureError, match="memory outside of this array"):
        tm.tensor(lambda a: as_strided(a, (9,), (8,))).graph(x)


@pytest.mark.parametrize("kinds", [(float, float, complex), (float, complex, float), (complex, float, complex)])
def test_sylvester_is_solved_whatever_is_complex(kinds):
    """SciPy itself gives no solution where a real matrix with complex eigenvalues meets a complex right side."""
    iteration = np.array([[0.0, -2.0, 0.1], [2.0, 0.5, 0.3], [0.2, 0.0, 3.0]])
    a, b, q = (
        iteration.astype(kinds[0]),
        (iteration[:2, :2] + 1).astype(kinds[1]),
        np.arange(6.0).reshape(3, 2).astype(kinds[2]),
    )
    q = q * (1 - 2j) if kinds[2] is complex else q
    x = tm.tensor(scipy.linalg.solve_sylvester)(a, b, q)
    assert x.dtype == complex
    assert np.abs(a @ x + x @ b - q).max() < 1e-13
    assert np.allclose(x, scipy.linalg.solve_sylvester(a + 0j, b + 0j, q + 0j))


def test_the_array_interface_tells_memory_apart_in_cells(notebook):
    notebook.ok("x, M = np.arange(4.0), np.arange(6).reshape(2, 3)")
    cell = """
y = x * 2
z = y
def at(a): return a.__array_interface__["data"][0]
y += 1
found = [at(y) == at(z), at(y) == at(x), at(x[1:]) - at(x), at(M[1]) - at(M), at(x[:]) == at(x), at(x.copy()) == at(x)]
found += [(a.__array_interface__["shape"], a.__array_interface__["typestr"], a.__array_interface__["strides"]) for a in (x, y, M.T, y[::2])]
"""
    found = []
    for magic in ("", "%%tensor -q"):
        notebook.ok(magic + cell)
        found.append(notebook["found"])
    assert found[0] == found[1]


def test_the_base_of_a_notebooks_array_is_the_notebooks_array(notebook):
    notebook.ok("x = np.arange(12)\ny = x[::2]\nz = y[1:]\nw = np.array([1, 2], np.int32)\nv = w.view('<i2')")
    cell = """
found = [y.base is x, z.base is x, z.base is y, x.base is None, x[1:].base is x, y[1:].base is x, v.base is w, y.base.sum(), (y * 1).base]
found += [a.__array_interface__["data"][1] for a in (x, y, np.broadcast_to(x, (2, 12)))]
"""
    for magic in ("", "%%tensor -q"):
        notebook.ok(magic + cell)
        assert notebook["found"] == [True, True, False, True, True, True, True, 66, None, False, False, True]


def test_plain_code_asks_whether_lazy_arrays_share_memory(notebook: Notebook):
    begin = "x = np.arange(6.0) + 1; y = x[2:]; z = x * 2"
    asked = (
        "told = [np.shares_memory(*p) for p in pairs] + [np.may_share_memory(*p) for p in pairs]\n"
        "a = np.asarray(x)\ntold += [np.shares_memory(a, v) for v in (x, y, z, x.T)] + [y.base is x]\n"
        "b = np.frombuffer(x.data); b[0] = 99.0; told += [x[0], type(iter(x)).__name__]"
    )
    pairs = "pairs = [(x, y), (x, z), (x[:2], x[3:]), (x.T, x), (x[::2], x[1::2])]\n"
    space: dict[str, Any] = {"np": np}
    exec(f"{begin}\n{pairs}{asked}", space)
    notebook.ok("%%tensor\n" + begin)
    notebook.ok(pairs + asked)
    assert list(map(float, notebook["told"][:-1])) == list(map(float, space["told"][:-1]))
    assert notebook["told"][-1] == space["told"][-1]


WHOSE = "r = [c.base is a, c.base is None, a.base is None, c.flags.owndata, a.flags.owndata, c is a, a.shape]"
SHAPED = {
    "before": "a = np.arange(12.0)\na.shape = (3, 4)\nc = a[1:]",
    "behind": "a = np.arange(12.0)\nc = a[2:5]\na.shape = (3, 4)",
    "twice": "a = np.arange(12.0) * 2\na.shape = (3, 4)\na.shape = (2, 6)\nc = a.T",
    "of a view": "a = np.arange(12.0)\nc = a[2:8]\nc.shape = (2, 3)",
    "of both": "a = np.arange(12.0)\nc = a[2:8]\nc.shape = (2, 3)\na.shape = (4, 3)",
    "of a copy": "a = np.arange(12.0)\nc = a.copy()\nc.shape = (2, 6)",
    "stored into": "a = np.arange(12.0)\nc = a[:6]\na.shape = (3, 4)\nc[1] = -1.0\na[2] = 7.0",
    "the same shape": "a = np.ones((2, 3))\na.shape = (2, 3)\nc = a[0]",
}


@pytest.mark.filterwarnings("ignore:Setting the shape")
@pytest.mark.parametrize("cells", [1, 2])
@pytest.mark.parametrize("name", SHAPED)
def test_whose_memory_it_is_after_a_new_shape(notebook: Notebook, name: str, cells: int):
    parts = [f"{SHAPED[name]}\n{WHOSE}"] if cells == 1 else [SHAPED[name], WHOSE]
    found = []
    for magic in ("", "%%tensor --quiet\n"):
        for part in parts:
            notebook.ok(magic + part)
        found.append((notebook["r"], np.asarray(notebook["a"]).tolist(), np.asarray(notebook["c"]).tolist()))
    assert found[0] == found[1]
