"""Stores: in place, through views and into inputs, each with NumPy's effects; and what is refused."""

import numpy as np
import pytest

from tests.capture.harness import captured, cell, check, refused

X = np.arange(12.0).reshape(3, 4)

PROGRAMS = {
    "element": "y = x.copy()\ny[0, 1] = 5",
    "row": "y = x.copy()\ny[1] = [1, 2, 3, 4]",
    "column": "y = x.copy()\ny[:, 2] = 7",
    "part": "y = x.copy()\ny[1:, ::2] = x[:2, 1::2]",
    "broadcast": "y = x.copy()\ny[:] = np.arange(4)",
    "leading axes of one": "y = x.copy()\ny[:] = x[None]",
    "negative step": "y = x.copy()\ny[::-1] = x",
    "ellipsis": "y = x.copy()\ny[..., 0] = 1",
    "cast to int": "y = x.astype(int)\ny[0] = 1.9",
    "cast to bool": "y = x > 3\ny[0] = 2.5",
    "cast to float32": "y = x.astype(np.float32)\ny += x",
    "in place": "y = x.copy()\nz = y\ny += 1\ny *= 2\ny -= x\ny /= 3",
    "in place on a part": "y = x.copy()\ny[0] += 1\ny[:, 1] *= 2\ny[1:, 1:] -= 5",
    "in place integers": "y = x.astype(int)\ny += 1\ny //= 2\ny %= 3\ny **= 2\ny <<= 1\ny |= 1\ny &= 7\ny ^= 2",
    "in place on a number": "a = x[0, 0]\nb = a\na += 1",
    "in place on a Python number": "a = s\na += 1",
    "view": "y = x.copy()\nv = y[1:]\nv[0] = 5",
    "view of a view": "y = x.copy()\nv = y[1:][:, ::2]\nv[0, 1] = 5\nv += 1",
    "view, then base": "y = x.copy()\nv = y[0]\ny[0] = 7\nw = v + 1",
    "transpose": "y = x.copy()\ny.T[0] = 9\ny.T[...] = np.arange(3)",
    "transpose of three axes": "y = x.reshape(3, 2, 2).copy()\ny.transpose(2, 0, 1)[1] = 5",
    "swapaxes": "y = x.copy()\nnp.swapaxes(y, 0, 1)[2] = 1",
    "reshape": "y = x.copy()\ny.reshape(-1)[5] = 3\ny.reshape(2, 6)[1] = 0",
    "ravel": "y = x.copy()\ny.ravel()[::5] = 1",
    "flatten is a copy": "y = x.copy()\ny.flatten()[0] = 100",
    "reshape of a transpose is a copy": "y = x.copy()\nr = y.T.reshape(-1)\nr[0] = 100\ny[0, 1] = 50",
    "ravel of a part is a copy": "y = x.copy()\nr = y[:, 1:3].ravel()\nr[0] = 100",
    "ravel of whole rows is a view": "y = x.copy()\nr = y[1:].ravel()\nr[0] = 100",
    "reshape that splits an axis of a part": "y = x.copy()\nr = y[:, ::2].reshape(3, 2, 1)\nr[0, 0] = 100",
    "reshape of a flip": "y = x.copy()\nr = y[::-1].reshape(-1)\nr[0] = 100",
    "flip": "y = x.copy()\nnp.flip(y, 0)[0] = 4",
    "expand_dims": "y = x.copy()\nnp.expand_dims(y, 0)[0, 0, 0] = 4",
    "newaxis": "y = x.copy()\ny[None, :, None][0, 0] = 4",
    "squeeze": "y = x[None].copy()\ny.squeeze()[0] = 4",
    "split": "y = x.copy()\na, b = np.split(y, 2, axis=1)\nb[:] = 0",
    "atleast_2d": "y = x[0].copy()\nnp.atleast_2d(y)[0, 1] = 8",
    "asarray is the same": "y = x.copy()\nnp.asarray(y)[0] = 1",
    "array is a copy": "y = x.copy()\nnp.array(y)[0] = 1",
    "astype is a copy": "y = x.copy()\ny.astype(float)[0] = 1",
    "astype without copy": "y = x.copy()\ny.astype(float, copy=False)[0] = 1",
    "real part": "c = x + 1j\nc.real[0] = 7\nc.imag[:, 0] = -1",
    "real part of reals": "y = x.copy()\ny.real[0] = 7",
    "reshapes of 0-d": "a = np.zeros(())\nb = a.reshape(-1)\nb[:] = 2\nc = np.zeros_like(x[0, 0])\nd = c.T.reshape(1, 1)\nd[0, 0] += 3",
    "0-d": "a = np.array(0.0)\nb = a\na += 3\na[...] = a * 2\na[()] = a + 1",
    "accumulator": "a = np.zeros(())\nfor k in range(3):\n    a += x[k, k]",
    "empty part": "y = x.copy()\ny[3:] = 1\ny[:0] += 5",
    "fill": "y = x.copy()\ny.fill(3)",
    "sort": "y = x[::-1].copy()\ny.sort(axis=0)\nz = y[0].copy()\nz.sort()",
    "chained": "y = x.copy()\na = y[0] = x[1] * 2",
    "swap": "y = x.copy()\ny[0], y[1] = y[1], y[0]",
    "swap of copies": "y = x.copy()\ny[0], y[1] = y[1].copy(), y[0].copy()",
    "overlapping": "y = np.arange(6.0)\ny[1:] = y[:-1]",
    "overlapping in place": "y = np.arange(6.0)\ny[1:] += y[:-1]\ny += y[::-1]",
    "out": "y = np.empty(x.shape)\nnp.add(x, 1, out=y)\nnp.exp(y, out=y)",
    "out of a part": "y = np.zeros((3, 4))\nnp.multiply(x[0], 2, out=y[1])",
    "out of a reduction": "y = np.zeros(4)\nnp.sum(x, axis=0, out=y)",
    "clip into": "y = x.copy()\nnp.clip(y, 1, 5, out=y)",
    "loop": "y = np.zeros(4)\nfor k in range(3):\n    y[k] = x[k].sum() + y[k - 1]",
    "stencil": "y = x[0].copy()\nfor _ in range(4):\n    y[1:-1] = 0.5 * (y[2:] + y[:-2])",
    "loop over rows": "y = x.copy()\nfor row in y:\n    row *= 2\n    row[0] = -1",
    "cumulative": "y = np.ones(5)\nfor k in range(1, 5):\n    y[k] = y[k - 1] * k",
    "triangle": "L = np.zeros((3, 3))\nfor i in range(3):\n    for j in range(i + 1):\n        L[i, j] = i + j",
    "input": "x[0] = 1",
    "input in place": "x += 1\nx *= 2",
    "input through a view": "v = x[1:]\nv[:, 0] = -1",
    "input through a function": "def change(a):\n    a[0] += 1\nchange(x)",
    "input, then rebound": "x[0] = 1\nx = x + 1",
    "rebound, then stored": "x = x + 1\nx[0] = 5",
    "two names of one input": "w = x\nw[0] = 3\ny = x + 1",
    "input and a copy": "y = x.copy()\ny[0] = 3",
    "input element by element": "for i in range(3):\n    x[i, i] = 0",
    "input by transposition": "x.T[1] = 2",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_store(name: str):
    check(PROGRAMS[name], x=X, s=1.5)


def test_stored_inputs_of_other_layouts():
    for x in (np.asfortranarray(X), X[::-1], X[:, ::2], X.T, np.arange(24.0).reshape(6, 4)[::2]):
        for source in (
            "x[0] = 1\ny = x.ravel()",
            "y = x.reshape(-1)\ny[0] = 100",
            "x.T[0] = 7",
            "y = x.ravel()\ny += 1",
        ):
            check(source, x=x)


ERRORS = {
    "int of float": "y = x.astype(int)\ny += 0.5",
    "int true division": "y = x.astype(int)\ny /= 2",
    "float of complex": "y = x.copy()\ny += 1j",
    "unsigned of signed": "y = x.astype(np.uint8)\ny += np.arange(4)",
    "stretched": "y = x[0].copy()\ny += x",
    "shape": "y = x.copy()\ny[0] = [1, 2, 3]",
    "too many axes": "y = x[0].copy()\ny[:] = x",
    "bounds": "y = x.copy()\ny[3] = 1",
    "read-only input": "r[0] = 1",
    "read-only broadcast": "y = np.broadcast_to(x[0], (3, 4))\ny[0] = 1",
    "read-only diagonal": "y = np.diagonal(x)\ny[0] = 1",
    "read-only imaginary part": "y = x.imag\ny[0] = 1",
    "out of another shape": "y = np.zeros(3)\nnp.add(x[0], 1, out=y)",
    "out of another kind": "y = np.zeros(4, int)\nnp.add(x[0], 0.5, out=y)",
    "element of a number": "a = x[0, 0]\na[0] = 1",
    "complex into real": "y = x.copy()\ny[0, 0] = 1j",
}


@pytest.mark.parametrize("name", ERRORS)
def test_error(name: str):
    locked = np.arange(3.0)
    locked.flags.writeable = False
    check(ERRORS[name], x=X, r=locked)


def test_casting_error_is_numpys():
    error = captured("y = x.astype(int)\ny += 0.5", {"x": X}).error
    with pytest.raises(TypeError) as numpys:
        np.add(X.astype(int), 0.5, out=X.astype(int))
    assert str(numpys.value) in str(error)


REFUSED = {
    "store into a reshape of what may be in another order": ("y = np.sort(x.T).reshape(-1)\ny[0] = 5", "shares memory"),
    "store into what was reshaped": ("t = np.sort(x.T)\ny = t.reshape(-1)\nt[0] = 5", "may be a part of another array"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str):
    source, message = REFUSED[name]
    refused(source, message, x=X)


@pytest.mark.parametrize("made", ["x.T + 1", "np.exp(x.T) * x.T", "x + 1", "x[:, ::-1] + x[:, ::-1]"])
def test_reshapes_of_computed_arrays(made: str):
    for after in ("t[0] = 5", "y[0] = 5", "t += 1\ny *= 2", "y = y.reshape(-1, 2)\ny[1] = 7"):
        check(f"t = {made}\ny = t.reshape(-1)\n{after}", x=X)
        check(f"t = {made}\ny = t.T.reshape(-1)\n{after}", x=X)


def test_the_same_array_under_two_names():
    x = np.arange(3.0)
    space = {"a": x, "b": x}
    found = cell("a[0] = 5\ny = b + 1", space)
    assert found.outputs["y"].tolist() == [6.0, 2.0, 3.0]
    assert x.tolist() == [0.0, 1.0, 2.0], "stores are handed back by who ran the cell"
    assert [b.array is x for b in found.stores] == [True]


def test_results_share_no_memory():
    x = np.arange(3.0)
    found = cell("y = x\nz = x[1:]\nw = x + 0", {"x": x})
    y, z, w = (found.outputs[n].numpy() for n in "yzw")
    assert not np.shares_memory(z, x)
    assert not np.shares_memory(w, x)
    assert not np.shares_memory(y, x)
    assert not any(v.flags.writeable for v in (y, z, w))


def test_a_failing_cell_changes_nothing():
    x = np.arange(3.0)
    space = {"x": x}
    with pytest.raises(IndexError, match="out of bounds"):
        cell("x[0] = 9\ny = x[7]", space)
    assert x.tolist() == [0.0, 1.0, 2.0]
    assert set(space) == {"x"}


@pytest.mark.parametrize(
    "value", ["y", "y[:1]", "z", "[1, 2, 3]", "[1]", "y[y > 0]", "[[1]]", "y[0]", "np.array(2.)", "True", "s"]
)
def test_an_array_is_filled_with_one_number(value: str):
    for array in ("y", "z", "y[1:]", "z[:0]"):
        check(f"{array}.fill({value})", y=np.ones(3), z=np.ones((2, 3)), s=1.5)
