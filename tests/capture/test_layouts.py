"""Creation, grids, joining, splitting, diagonals and memory order in captured code against NumPy: values, stores, and errors."""

import warnings

import numpy as np
import pytest

from tests.capture.harness import check

RNG = np.random.default_rng(0)
NAMES = {
    "x": RNG.normal(size=6),
    "A": RNG.normal(size=(4, 3)),
    "i": np.array([1, 2, 0]),
    "n": np.array([1.0, np.nan, 3, 2]),
    "s": 0.3,
    "T": RNG.normal(size=(2, 3, 4)),
    "z": RNG.normal(size=4) + 1j,
    "f": RNG.normal(size=5).astype(np.float32),
    "m": RNG.normal(size=6) > 0,
    "k": np.array([3, 1, 2, 0, 5]),
}

SOURCES = """
np.linspace(0, s, 5)
np.linspace(x, 2, 4)
np.linspace(x, 2*x, 4, axis=-1, retstep=True)
np.linspace(0, s, 5, endpoint=False, dtype=int)
np.linspace(f, f+1, 4)
np.linspace(A, 2*A, 3, axis=1)
np.linspace(s, 2, 1)
np.logspace(s, 2, 4)
np.geomspace(s, 8, 4)
np.geomspace(-s, -8, 4)
np.meshgrid(x, A[0])
np.meshgrid(x, A[0], indexing='ij', sparse=True)
np.mgrid[0:3, 0:4]
np.mgrid[0:1:5j]
np.mgrid[0:1:5j, 0:2:3j] * s
np.mgrid[0:3:.5]
np.ogrid[0:3, 0:4]
np.mgrid[0:len(x), 0:4]
np.r_[x, 1, 2:5, 0:1:3j]
np.r_[1:4, i]
np.r_['0,2', x, x]
np.c_[x, x]
np.c_[A, A]
np.c_[1:4, i]
np.c_[np.array([[1,2,3]]), 0, 0, i[None]]
A[np.ix_([0, 2], [1, 0])]
np.indices((2, 3)) * s
np.array(x, ndmin=3)
np.fromfunction(lambda a, b: a * s + b, (2, 3))
np.insert(x, 2, 5.)
np.insert(x, [1, 3], [7., 8.])
np.insert(A, 1, x[:3], axis=0)
np.insert(A, [1], x[:4, None], axis=1)
np.insert(A, 1, x[:4], axis=1)
np.insert(A, -1, 9, axis=0)
np.insert(x, slice(2, 4), 0)
np.insert(x, i, [1, 2, 3])
np.insert(A, [0, 2, 2], 1)
np.insert(x, 2, [1., 2, 3])
np.delete(x, 2)
np.delete(x, [0, -1])
np.delete(A, 1, axis=0)
np.delete(A, slice(None, None, 2), axis=0)
np.delete(x, 17)
np.append(x, 3)
np.append(A, A, axis=0)
np.split(x, 3)
np.split(A, [1, 3])
np.array_split(x, 4)
np.hsplit(A, 3)
np.vsplit(A, 2)
np.dsplit(T, 2)
np.unstack(A)
np.hstack([x, x])
np.vstack([x, x])
np.dstack([A, A])
np.column_stack([x, x])
np.stack([A, A], axis=-1)
np.block([[A, A], [A, A * 2]])
np.block([x, 1])
np.flip(A)
np.flip(A, 1)
np.flipud(A)
np.fliplr(A)
np.rot90(A)
np.rot90(A, 2)
np.rot90(A, -1)
np.rot90(T, 3, axes=(1, 2))
np.roll(x, 2)
np.roll(A, 1, axis=0)
np.roll(A, (1, 2), axis=(0, 1))
np.roll(A, (1, 2), axis=0)
np.roll(A, 1, axis=(0, 1))
np.tile(x, 3)
np.tile(A, (2, 1, 2))
np.repeat(x, 2)
np.repeat(A, 3, axis=1)
np.repeat(A, [1, 2, 0, 3], axis=0)
np.repeat(A, 2)
np.resize(x, (3, 4))
np.diag(x)
np.diag(x, 2)
np.diag(x, -1)
np.diag(A)
np.diag(A, 1)
np.diag(A, -2)
np.diag(A, 7)
np.diagflat(A)
np.diagonal(T, axis1=1, axis2=2)
np.diagonal(T, 1, 0, 2)
np.trace(A)
np.trace(T, 1, 0, 2)
np.tril(A)
np.triu(A, -1)
np.tril(x)
np.tri(3, 4, 1) * s
A[np.tril_indices(3)]
A[np.triu_indices_from(A)]
A[:3][np.diag_indices(3)]
np.vander(x)
np.vander(x, 3, increasing=True)
np.vander(i)
np.reshape(A, (2, 6), order='F')
np.reshape(A, -1, order='F')
np.ravel(A, order='F')
A.ravel('F')
A.flatten('F')
A.T.ravel('K')
A.T.ravel('A')
A.reshape(6, 2, order='F')
A.copy(order='F').T
np.copy(A, order='F')
np.moveaxis(T, [0, 1], [-1, 0])
np.rollaxis(T, 2)
np.size(A, (0, 1))
np.take(x, i)
np.take_along_axis(A, np.argsort(A, axis=0), axis=0)
np.kron(A, x[:2])
np.cross(A, A[::-1])
np.vdot(z, z)
np.inner(A, A)
np.tensordot(A, A, axes=([0], [0]))
np.outer(x, x)
np.multiply.outer(x, A)
A.reshape((6, 2), order='F')
A.copy('K')
A.T.copy('A')
y = np.copy(A, order='F'); y[0] = 1; y
v = A.reshape(-1, order='F'); v[0] = 7; A
v = A.T.reshape(-1, order='F'); v[0] = 7; A
v = A.T.ravel('K'); v[0] = 7; A
"""


@pytest.mark.parametrize("source", SOURCES.strip().splitlines())
def test_as_numpy(source: str):
    with warnings.catch_warnings(action="ignore"):  # NumPy's own, of slices that are empty
        check(source, 1e-13, **NAMES)
