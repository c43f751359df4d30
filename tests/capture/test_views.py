"""Views that alias: what is stored through one is seen through all, as in NumPy; read-only ones; stores other than by index."""

import numpy as np
import pytest

import tensormagic as tm
from tests.capture.harness import check, plain, refused

X = np.arange(12.0).reshape(3, 4)
NAMES = {"x": X, "c": X + 1j * X[::-1], "q": np.arange(9.0).reshape(3, 3), "s": 2.5, "v": np.arange(3.0)}

VIEWS = {
    "slice": "a = x[1:]",
    "slice of a slice": "a = x[1:][:, ::2]\nb = a[0]",
    "negative step": "a = x[::-1, ::-2]",
    "row": "a = x[1]",
    "element by ellipsis": "a = x[0, 1, ...]",
    "newaxis": "a = x[None, :, None, 1]",
    "reshape": "a = x.reshape(4, 3)\nb = a[1]",
    "reshape of a slice": "a = x[:2].reshape(2, 2, 2)",
    "reshape that copies": "a = x[:, :2].reshape(-1)",
    "reshape of a transpose": "a = x.T.reshape(3, 4)",
    "ravel": "a = x.ravel()",
    "ravel that copies": "a = x[:, 1:].ravel()",
    "ravel of a column": "a = x[:, 1].ravel()",
    "flatten": "a = x.flatten()",
    "transpose": "a = x.T\nb = a[1:]",
    "swapaxes": "a = np.swapaxes(x[None], 0, 2)",
    "moveaxis": "a = np.moveaxis(x[None], 0, -1)",
    "rollaxis": "a = np.rollaxis(x, 1)",
    "real and imaginary part": "a = c.real\nb = c.imag\nd = c.T.real[0]",
    "real part of reals": "a = x.real",
    "squeeze": "a = np.squeeze(x[:, :1])",
    "expand_dims": "a = np.expand_dims(x, (0, 2))",
    "atleast": "a = np.atleast_3d(v)\nb = np.atleast_2d(v)",
    "flips": "a = np.flip(x)\nb = np.flipud(x)\nd = np.fliplr(x)",
    "rot90": "a = np.rot90(x)\nb = np.rot90(x, 2)",
    "split": "a, b = np.split(x, 2, axis=1)",
    "split at": "a, b, d = np.split(x, [1, 2])",
    "hsplit": "a, b = np.hsplit(x, 2)",
    "vsplit": "a, b, d = np.vsplit(x, 3)",
    "array_split": "a, b = np.array_split(x, 2)",
    "unstack": "a, b, d = np.unstack(x)",
    "unpacking": "a, b, d = x",
    "first and rest": "a, *b = x\nd = b[1]",
    "iteration": "a = [row for row in x][1]",
    "asarray": "a = np.asarray(x)",
    "asarray of another dtype": "a = np.asarray(x, np.float32)",
    "ascontiguousarray": "a = np.ascontiguousarray(x)",
    "ascontiguousarray of a transpose": "a = np.ascontiguousarray(x.T)",
    "array": "a = np.array(x)",
    "copy": "a = x.copy()\nb = np.copy(x)",
    "astype without copy": "a = x.astype(float, copy=False)",
    "indices copy": "a = x[[0, 1]]",
    "sum of rows": "a = x.sum(axis=0)",
    "positive": "a = +x",
    "another name": "a = x\nb = a[1:]",
    "chain": "a = x.T[1:].T.reshape(3, 3)[1:]",
    "in place": "a = x[1:]\na += 1\na[0] *= 2",
    "rebound": "a = x[1:]\na = a + 1",
}


@pytest.mark.parametrize("name", VIEWS)
def test_what_is_stored_through_one_is_seen_through_all(name: str):
    check(VIEWS[name], **NAMES)
    arrays = [n for n, v in plain(VIEWS[name], NAMES).names.items() if isinstance(v, np.ndarray) and v.flags.writeable]
    for stored in arrays:
        check(f"{VIEWS[name]}\n{stored}[...] = {stored} * 3 + 50", **NAMES)


READ_ONLY = {
    "broadcast_to": "a = np.broadcast_to(x[0], (2, 4))",
    "part of broadcast_to": "a = np.broadcast_to(x[0], (2, 4))[0, 1:]",
    "diagonal": "a = np.diagonal(q)",
    "diagonal off the main one": "a = q.diagonal(1)",
    "diag": "a = np.diag(q)",
    "broadcast_arrays": "a, b = np.broadcast_arrays(np.broadcast_to(v[0], (3, 4)), x)",
    "diagonal of axes": "a = np.diagonal(c.reshape(3, 2, 2), 0, 2, 1)",
}


@pytest.mark.parametrize("name", READ_ONLY)
def test_read_only_views(name: str):
    check(f"{READ_ONLY[name]}\na[0] = 1", **NAMES)
    for stored in ("x", "q", "c"):
        check(f"{READ_ONLY[name]}\n{stored}[...] = {stored} * 3 + 50\nb = a + 1", **NAMES)


STORES = {
    "flat element": "x.flat[5] = 1",
    "flat negative": "x.flat[-1] = 1",
    "flat slice": "x.flat[1:8:2] = 7",
    "flat slice, values repeated": "x.flat[1:8] = [7, 8]",
    "flat slice, too many values": "x.flat[1:3] = [7, 8, 9]",
    "flat all": "x.flat = [1, 2, 3]",
    "flat all with an array": "x.flat = q",
    "flat indices": "x.flat[[0, 5, 7]] = [1, 2]",
    "flat mask": "x.flat[x.ravel() > 4] = [1, 2]",
    "flat mask that is known": "x.flat[np.arange(12) > 4] = 3",
    "flat of a transpose": "x.T.flat[1] = 100",
    "flat of a view": "a = x[1:, ::2]\na.flat[2] = -1\na.flat = [7, 8]",
    "flat in place": "x.flat[3] += 10\nx.flat[::2] *= 2",
    "flat read": "a = x.T.flat[3]\nb = x.T.flat[1:4]\nd = x.flat[[0, -1]]\nb[0] = 100",
    "flat iterated": "a = sum(e * 2 for e in x.flat)",
    "flat length and copy": "n = len(x.flat)\na = x.T.flat.copy()\na[0] = 100",
    "flat as array": "a = np.array(x.flat)",
    "flat of nothing": "x.flat[1:1] = 7\nx.flat[2:] = []",
    "shape": "y = x.copy()\na = y\ny.shape = (2, 6)\ny[0] = 1",
    "shape of a view": "a = x[:2]\na.shape = 8\na[3] = -1",
    "shape with one open": "a = x + 0\na.shape = (-1, 2)",
    "fill": "x[1].fill(3)",
    "fill a view": "x[:, ::2].fill(s)",
    "sort in place": "x[:, ::-1].sort()\nx.T[1:].sort(axis=0)",
    "fill_diagonal": "np.fill_diagonal(q, 5)",
    "fill_diagonal with values": "np.fill_diagonal(q, [1, 2, 3])",
    "fill_diagonal with fewer values": "np.fill_diagonal(q, [1, 2])",
    "fill_diagonal with more values": "np.fill_diagonal(q, np.arange(6))",
    "fill_diagonal of a wide array": "np.fill_diagonal(x, s)",
    "fill_diagonal of a tall array": "np.fill_diagonal(x.T, 7)",
    "fill_diagonal wrapped": "a = np.zeros((7, 3))\nnp.fill_diagonal(a, [1, 2, 3, 4], wrap=True)",
    "fill_diagonal of three axes": "a = np.zeros((3, 3, 3))\nnp.fill_diagonal(a, v)",
    "put": "np.put(x, [0, 5, -1], [1, 2, 3])",
    "put fewer values": "x.put([0, 5, 7], [1, 2])",
    "put a number": "np.put(x, 3, 7)",
    "put wrapped": "np.put(x, [13, -14], 7, mode='wrap')",
    "put clipped": "np.put(x, [13, -14], 7, mode='clip')",
    "put into a transpose": "np.put(x.T, [1, 2], [50, 60])",
    "put a matrix": "np.put(x, [[1, 2], [3, 4]], [[5, 6], [7, 8]])",
    "put casts": "a = np.zeros(3, int)\nnp.put(a, [0], 1.7)",
    "place": "np.place(x, x > 5, [1, 2])",
    "place a number": "np.place(x, x > 5, s)",
    "place a view": "np.place(x[:, 1:], x[:, 1:] > 5, v)",
    "putmask": "np.putmask(x, x > 5, [10, 20, 30, 40, 50])",
    "putmask of the same shape": "np.putmask(x, x > 5, x ** 2)",
    "copyto": "np.copyto(x, v[:, None])",
    "copyto where": "np.copyto(x, -1, where=x > 3)",
    "copyto where that broadcasts": "np.copyto(x, np.arange(4.0), where=[[True], [False], [True]])",
    "copyto unsafely": "a = np.zeros(3, int)\nnp.copyto(a, v * 1.5, casting='unsafe')",
    "copyto a number": "a = np.zeros(3, np.float32)\nnp.copyto(a, s)",
    "real and imaginary part": "c.real = 1\nc.imag = v[:, None]",
    "real part of reals": "x.real = 4",
    "loop over rows": "for row in x:\n    row[:] = row[0]",
    "loop over columns": "for k, column in enumerate(x.T):\n    column *= k",
    "swap of rows": "x[0], x[1] = x[1], x[0]",
    "swap of elements": "x[0, 0], x[1, 1] = x[1, 1], x[0, 0]",
    "swap of columns": "x[:, 0], x[:, 1] = x[:, 1], x[:, 0].copy()",
    "chained": "for i in range(3):\n    q[i + 1:3, i] = q[i, i + 1:3] = v[i]",
    "overlapping": "x[1:] = x[:-1]\nx[:, 1:] += x[:, :-1]",
    "flipped onto itself": "a = x[0]\na[:3] += s * np.flip(a[:3])",
    "durbin": "y = np.zeros(4)\nfor k in range(1, 4):\n    y[:k] += s * np.flip(y[:k])\n    y[k] = x[0, k]",
    "matrix product in place": "q @= q.T",
    "matrix product of a part in place": "x[:, :3] @= q",
    "every operator": (
        "x += 1\nx -= s\nx *= 2\nx /= 3\nx //= 2\nx **= 2\nx %= 5\n"
        "a = x.astype(int)\na &= 7\na |= 8\na ^= 3\na <<= 2\na >>= 1\na += True"
    ),
    "operators on an element": "x[0, 0] += 1\nx[0, 1] **= 2\nx[1, 1] //= s\nx[2, -1] %= 4",
    "an alias of an alias": "a = x\nb = a\nb -= 1\nd = a[0]\nd /= 2",
    "0-d": "a = np.array(1.0)\nb = a\nb += 1\nb[...] *= 5\na[()] -= 1",
    "0-d view": "a = x[1, 2, ...]\na += 5\nx[1, 2] *= 2",
    "empty": "a = np.empty((2, 3))\na[...] = 4\nb = np.empty(3, int)\nb[:] = 2.9",
    "ndarray": "a = np.ndarray((2, 3))\na[:] = 4\nb = np.ndarray(3, int)\nb.fill(1)",
    "ndarray of captured values": "a = np.ndarray(2)\na[0] = x.sum()\na[1] = s\nb = isinstance(s, np.ndarray), np.ndarray.__name__",
    "attribute": (
        "class Box:\n    pass\n_b = Box()\n_b.w = x\n_b.w += 1\n_b.w[0] = 5\n_b.u = np.zeros(2)\n_b.u[1] -= s\nu = _b.u"
    ),
    "list": "_l = [np.zeros(3), v]\n_l[0][1] = s\n_l[1] += 1\na = _l[0]",
    "dictionary": "_d = {'a': x[1:], 'b': v}\n_d['a'][0] = 5\n_d['b'] *= 2\n_d['b'][0] -= 1",
    "function": "def step(u):\n    u[1:-1] = (u[2:] + u[:-2]) / 2\n    u += 1\nstep(x)\nstep(q[:, 1:])",
    "function that returns a view": "def part(u):\n    return u[1:]\npart(x)[0] = 3\na = part(q)\na -= 4",
    "einsum view": "a = np.einsum('ii->i', q)\na[:] = 7\nb = np.einsum('ij->ji', x)\nb[0] = -1",
}


@pytest.mark.parametrize("name", STORES)
def test_store(name: str):
    check(STORES[name], **NAMES)


ERRORS = {
    "flat out of bounds": "x.flat[12] = 1",
    "flat in two axes": "x.flat[0, 1] = 1",
    "put out of bounds": "np.put(x, [12], 1)",
    "put mode": "np.put(x, [1], 1, mode='wild')",
    "place nothing": "np.place(x, x > 5, [])",
    "place a mask of another size": "np.place(x, [True, False], 1)",
    "putmask of another size": "np.putmask(x, [True], 1)",
    "putmask of another kind": "a = np.zeros(3, int)\nnp.putmask(a, a == 0, v)",
    "place of another kind": "a = np.zeros(3, int)\nnp.place(a, a == 0, v)",
    "copyto of another kind": "a = np.zeros(3, int)\nnp.copyto(a, v * 1.5)",
    "copyto a float into integers": "a = np.zeros(3, int)\nnp.copyto(a, 0.5)",
    "copyto another shape": "np.copyto(x, v)",
    "copyto where of another kind": "np.copyto(x, 1, where=x)",
    "fill_diagonal of one axis": "np.fill_diagonal(v, 1)",
    "fill_diagonal of unequal axes": "np.fill_diagonal(x[None], 1)",
    "shape that copies": "a = x.T\na.shape = 12",
    "shape of another size": "a = x + 0\na.shape = 5",
    "imaginary part of reals": "x.imag = 1",
    "true division of integers": "a = v.astype(int)\na /= 2",
    "float into integers": "a = v.astype(int)\na[0:2] += 0.5",
    "power of integers": "a = v.astype(int)\na **= 0.5",
    "matrix product of another shape": "x @= x.T",
    "stretched by its operand": "v += x[:, :3]",
    "read-only": "r[0] = 1",
    "read-only in place": "r += 1",
    "read-only part": "a = r[1:]\na.fill(0)",
    "put into a read-only array": "np.put(r, 0, 1)",
    "bits of floats": "x &= 1",
}


@pytest.mark.parametrize("name", ERRORS)
def test_error(name: str):
    locked = np.arange(3.0)
    locked.flags.writeable = False
    check(ERRORS[name], r=locked, **NAMES)


GRADIENTS = {
    "slices": lambda x: _after(x, lambda y: y.__setitem__((slice(1, None), slice(None, 2)), y[:2, 1:] ** 2)),
    "flat": lambda x: _after(x, lambda y: y.flat.__setitem__(slice(1, 5), x[0, :2])),
    "fill_diagonal": lambda x: _after(x, lambda y: np.fill_diagonal(y, x[0] * x[1])),
    "place": lambda x: _after(x, lambda y: np.place(y, x > 0.3, x[:, 1])),
    "putmask": lambda x: _after(x, lambda y: np.putmask(y, x > 0.3, x[:, 1])),
    "put": lambda x: _after(x, lambda y: np.put(y, [0, 4, 4], x[:, 1])),
    "copyto": lambda x: _after(x, lambda y: np.copyto(y, x[1] ** 2, where=x > 0.3)),
    "where": lambda x: _after(x, lambda y: np.multiply(y, x.T, out=y, where=x > 0.3)),
    "transpose": lambda x: _after(x, lambda y: y.T[1:].__imul__(x[:2])),
    "reshape": lambda x: _after(x, lambda y: y.reshape(-1)[2:].__isub__(x.ravel()[:7] ** 2)),
    "diagonal view": lambda x: _after(x, lambda y: np.einsum("ii->i", y).__imul__(x[0])),
    "read-only diagonal": lambda x: np.diagonal(x * x) * np.diag(x),
    "sort": lambda x: _after(x, lambda y: y.sort(axis=0)),
    "swap": lambda x: _after(x, _swap),
}


def _after(x, change):
    y = x.copy()
    change(y)
    return y


def _swap(y):
    y[0], y[1] = y[1].copy(), y[0] * 2


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient(name: str):
    function = GRADIENTS[name]

    def loss(x):
        return np.sum(np.sin(function(x)) * np.arange(1.0, 1 + np.size(function(x))).reshape(np.shape(function(x))))

    x = np.array([[0.5, -0.25, 1.5], [0.125, 0.75, -1.0], [2.0, 0.375, -0.625]])
    found = tm.grad(loss)(x)
    for place in np.ndindex(3, 3):
        steps = []
        for h in (1e-3, 5e-4):
            plus, minus = x.copy(), x.copy()
            plus[place] += h
            minus[place] -= h
            steps.append((loss(plus) - loss(minus)) / (2 * h))
        np.testing.assert_allclose(found[place], (4 * steps[1] - steps[0]) / 3, rtol=1e-6, atol=1e-8)


REFUSED = {
    "resize": ("x.resize(2, 2)", "resize"),
    "shape of an input": ("x.shape = 12", "a new shape of the notebook's x"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str):
    source, message = REFUSED[name]
    refused(source, message, **NAMES)


def first_columns(x, y):
    v = x[:, : len(y)].reshape(-1)
    v[...] = 7.0
    return v.sum()


def rows_of_a_part(x, y):
    v = x[len(y) :, 1:].ravel()
    v[...] = 7.0
    return v.sum()


def three_of_one_row(x, y):
    v = x[: len(y), :3].reshape((-1,))
    v[...] = 7.0
    return v.sum()


@pytest.mark.parametrize("function", [first_columns, rows_of_a_part, three_of_one_row])
@pytest.mark.parametrize("back", [1, -1])
def test_sizes_decide_whether_a_reshape_is_a_view(function, back):
    captured = tm.tensor(function)
    for rows, columns, n in [(4, 5, 3), (4, 3, 3), (4, 5, 3), (4, 5, 5), (4, 3, 2), (3, 5, 2), (5, 3, 2)][::back]:
        x, y = np.ones((rows, columns)), np.zeros(n)
        theirs = x.copy()
        assert captured(x, y) == function(theirs, y)
        assert np.array_equal(x, theirs)


def pairs(x):
    v = x.reshape(-1, 2)
    s = v.ravel()
    s[0] = 7.0
    return v.sum()


def pairs_of_columns(x):
    v = x.T.reshape(2, -1)
    v[...] = 7.0
    return v.sum()


def every_other_column(x):
    v = x[:, ::2].reshape(-1)
    v[...] = 7.0
    return v.sum()


def pairs_of_every_other_row(x):
    v = x[::2].reshape(-1, 2)
    v[...] = 7.0
    return v.sum()


def row_by_row(x):
    v = np.broadcast_to(x[:1], x.shape).ravel()
    x[0] = 7.0
    return v.sum()


@pytest.mark.parametrize(
    "function", [pairs, pairs_of_columns, every_other_column, pairs_of_every_other_row, row_by_row]
)
@pytest.mark.parametrize("back", [1, -1])
def test_sizes_decide_where_the_elements_of_a_reshape_lie(function, back):
    captured = tm.tensor(function)
    for shape in [(3, 4), (4, 4), (3, 2), (2, 2), (6, 2), (4, 6), (3, 6), (1, 4)][::back]:
        x = np.ones(shape)
        theirs = x.copy()
        assert captured(x) == function(theirs)
        assert np.array_equal(x, theirs)


def test_one_program_flattens_transposed_arrays_of_any_sizes():
    def flat(x):
        v = x.T.reshape(-1)
        v[...] = 7.0
        return v.sum()

    graph = tm.tensor(flat).graph(np.ones((3, 4)))
    assert not any(relation == "==" for _, relation, _ in graph.guards)


@pytest.mark.parametrize("of", ["x", "x[:1]", "x[:, :1]", "x[:1, :1]", "x.T", "x[0]", "x[::-1]"])
@pytest.mark.parametrize("part", ["real", "imag"])
def test_parts_of_complex_numbers_lie_apart(of: str, part: str):
    """NumPy's ``ravel`` copies them, where ``reshape`` gives a view."""
    x = (np.arange(6.0) + 1j).reshape(2, 3)
    for line in (
        "e.ravel()",
        "e.reshape(-1)",
        "e.T.ravel()",
        "e[::2].ravel()",
        "np.ascontiguousarray(e)",
    ):
        check(f"e = {of}.{part}\ns = {line}\ne[...] = 9\nt = s + 1\ns[...] = 4", x=x)
        check(f"e = {of}.{part}\nif x[0, 0].real > -9:\n    s = {line}\n    e[...] = 9", x=x)


def test_parts_of_complex_numbers_in_the_order_of_memory():
    x = (np.arange(6.0) + 1j).reshape(2, 3)
    for of in ("x", "x.T", "x[:, 1:]", "x[:1]"):
        check(f"s = {of}.imag.ravel('K')\nt = {of}.real.ravel('A')\nx[...] = 3", x=x)
    refused("s = x[::-1].real.ravel('K')", "whose layout is not known", x=x)


def test_a_new_shape_of_a_part_of_arrays_of_several_sizes():
    def program(x):
        flat = x.real.reshape(-1)
        flat[0] = 7
        return flat + 1, x * 1

    captured = tm.tensor(program)
    for shape in ((2, 3), (3, 2), (4, 5)):
        x = np.ones(shape) * (1 + 2j)
        for ours, theirs in zip(captured(x.copy()), program(x.copy()), strict=True):
            np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize(
    "index",
    [
        "e",
        "np.array(0)",
        "e, 1:",
        "1:, e",
        "..., e",
        "e, ...",
        "None, e",
        "0, e",
        "e[()]",
        "e*1",
        "e:",
        "np.asarray(k[0])",
    ],
)
def test_what_an_array_without_axes_chooses_is_a_copy(index: str):
    """NumPy takes it for an array of indices; a number of its own chooses a view."""
    x, e, k = np.arange(24.0).reshape(2, 3, 4), np.array(1), np.array([0, 1])
    for store in ("r += 1", "x[...] = 3", "r = r.copy(); r += 1"):
        check(f"r = x[{index}]\n{store}", x=x, e=e, k=k)
    check(f"x[{index}] += 9", x=x, e=e, k=k)


@pytest.mark.parametrize("array", ["x[0, 0][None]", "x[0, 0].reshape(-1)", "x[0, 1].ravel()", "np.float64(3)[None]"])
@pytest.mark.parametrize("store", ["v += 1", "v[0] = i", "np.cumsum(v, axis=0, out=v)", "v[:] = v * 2"])
def test_an_array_of_one_number_in_a_loop(array: str, store: str):
    check(f"v = {array}\nfor i in range(k[0]):\n    {store}", x=np.arange(6.0).reshape(2, 3), k=np.array([3]))


def test_numbers_have_no_flat_to_store_into():
    check("v = x[0, 0]\nv.flat = 3", x=np.ones((2, 2)))
