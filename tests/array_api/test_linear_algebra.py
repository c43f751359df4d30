"""Products in the main namespace, the extension for linear algebra, and the one for Fourier transforms."""

import itertools

import numpy as np
import pytest

import tensormagic.numpy as xp
from tests.array_api.oracle import DTYPES, FLOATING, agree, data

SQUARE = [(3, 3), (2, 3, 3), (0, 3, 3), (0, 0)]
ULPS = 64  # of the largest element: the order of sums in BLAS depends on the layout


def definite(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    a = data(shape, dtype)
    return (a @ np.conj(np.swapaxes(a, -1, -2)) + 3 * np.eye(shape[-1])).astype(dtype)


def test_products():
    shapes = [
        ((2, 3), (3,)),
        ((3,), (3,)),
        ((3,), (3, 2)),
        ((2, 2, 3), (3, 2)),
        ((2, 0), (0, 3)),
        ((), (3,)),
        ((2, 3), (2, 3)),
    ]
    for dtype, (left, right) in itertools.product(DTYPES, shapes):
        x, y = data(left, dtype), data(right, dtype, 1)
        for name in ("matmul", "linalg.matmul", "vecdot", "linalg.vecdot"):
            agree(name, x, y, tolerance=ULPS)
        agree("tensordot", x, y, axes=0, tolerance=ULPS)
        agree("tensordot", x, y, axes=1, tolerance=ULPS)
        agree("linalg.tensordot", x, y, axes=((-1,), (0,)), tolerance=ULPS)


def test_vecdot_along_an_axis_keeps_the_order_of_the_others():
    for dtype in DTYPES:
        agree("vecdot", data((3, 2, 4), dtype), data((3, 2, 4), dtype, 1), axis=0, tolerance=ULPS)
        agree("vecdot", data((2, 3, 4), dtype), data((3, 4), dtype, 1), axis=-2, tolerance=ULPS)


def test_transposes():
    for dtype, shape in itertools.product(DTYPES, [(2, 3), (2, 0, 3), (3,), ()]):
        agree("matrix_transpose", data(shape, dtype))
        agree("linalg.matrix_transpose", data(shape, dtype))


@pytest.mark.parametrize("name", ["det", "inv", "slogdet", "svdvals", "matrix_rank", "pinv", "qr", "svd"])
def test_functions_of_a_matrix(name: str):
    for dtype, shape in itertools.product(FLOATING, SQUARE):
        agree(f"linalg.{name}", data(shape, dtype, 5), tolerance=ULPS)


@pytest.mark.parametrize("name", ["cholesky", "eigh", "eigvalsh"])
def test_functions_of_a_definite_matrix(name: str):
    for dtype, shape in itertools.product(FLOATING, SQUARE):
        agree(f"linalg.{name}", definite(shape, dtype), tolerance=ULPS)


def test_options():
    for dtype in FLOATING:
        a, wide, tall = definite((3, 3), dtype), data((2, 3), dtype), data((2, 4, 3), dtype)
        agree("linalg.cholesky", a, upper=True, tolerance=ULPS)
        for x in (wide, tall):
            agree("linalg.qr", x, mode="complete", tolerance=ULPS)
            agree("linalg.svd", x, full_matrices=False, tolerance=ULPS)
            agree("linalg.svd", x, tolerance=ULPS)
            agree("linalg.pinv", x, tolerance=ULPS)
            agree("linalg.pinv", x, rtol=1e-2, tolerance=ULPS)
            agree("linalg.matrix_rank", x, rtol=0.5)
        for power in (-2, 0, 1, 5):
            agree("linalg.matrix_power", a, power, tolerance=ULPS)
        agree("linalg.solve", a, data((3,), dtype), tolerance=ULPS)
        agree("linalg.solve", a, data((3, 2), dtype), tolerance=ULPS)


@pytest.mark.parametrize("order", ["fro", "nuc", 1, 2, -1, -2, np.inf, -np.inf])
def test_matrix_norms(order: str | float):
    for dtype, shape in itertools.product(FLOATING, SQUARE):
        agree("linalg.matrix_norm", data(shape, dtype), ord=order, tolerance=ULPS)
        agree("linalg.matrix_norm", data(shape, dtype), ord=order, keepdims=True, tolerance=ULPS)


@pytest.mark.parametrize("order", [2, 1, 0, -1, 3, 2.5, np.inf, -np.inf])
def test_vector_norms(order: float):
    for dtype, shape in itertools.product(FLOATING, [(3,), (2, 3), (0,), (2, 0, 3), ()]):
        for options in ({}, {"axis": -1}, {"axis": (0, 1), "keepdims": True}):
            agree("linalg.vector_norm", data(shape, dtype), ord=order, **options, tolerance=ULPS)
    agree("linalg.vector_norm", np.array([np.inf, np.inf]), ord=order)
    agree("linalg.vector_norm", np.array([0.0, 1.0]), ord=order)


def test_diagonals_traces_and_products_of_vectors():
    for dtype in DTYPES:
        for shape, offset in itertools.product([(2, 3), (3, 3), (2, 3, 4), (2, 0, 3), (3,)], [0, 1, -1]):
            agree("linalg.diagonal", data(shape, dtype), offset=offset)
            agree("linalg.trace", data(shape, dtype), offset=offset)
        agree("linalg.trace", data((3, 3), dtype), dtype=np.dtype("complex128"))
        v, x = data((3,), dtype), data((2, 3), dtype)
        agree("linalg.cross", v, v[::-1])
        agree("linalg.cross", x, v)
        agree("linalg.cross", x.T, x[::-1].T, axis=0)
        agree("linalg.cross", x[:, :2], x[:, :2])
        agree("linalg.outer", v, v)
        agree("linalg.outer", x, v)


def test_fields():
    a = xp.asarray([[2.0, 1.0], [1.0, 3.0]])
    assert xp.linalg.eigh(a)._fields == ("eigenvalues", "eigenvectors")
    assert xp.linalg.qr(a)._fields == ("Q", "R")
    assert xp.linalg.slogdet(a)._fields == ("sign", "logabsdet")
    assert xp.linalg.svd(a)._fields == ("U", "S", "Vh")
    with pytest.raises(ValueError, match="mode"):
        xp.linalg.qr(a, mode="raw")


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_transforms_along_an_axis(name: str):
    for dtype in FLOATING:
        if dtype.kind == "f" or name not in {"rfft", "ihfft"}:
            for shape, n, axis, norm in itertools.product(
                [(4,), (2, 3)], [None, 2, 5], [-1, 0], ["backward", "ortho", "forward"]
            ):
                agree(f"fft.{name}", data(shape, dtype), n=n, axis=axis, norm=norm, tolerance=ULPS)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_transforms_along_several_axes(name: str):
    given = [{}, {"axes": (0, 1)}, {"s": (3, 4), "axes": (-2, -1)}, {"axes": (1,), "norm": "ortho"}]
    for dtype in FLOATING:
        if dtype.kind == "f" or name != "rfftn":
            for shape, options in itertools.product([(2, 3), (2, 3, 4)], given):
                agree(f"fft.{name}", data(shape, dtype), **options, tolerance=ULPS)


def test_sizes_without_axes_are_of_the_last_axes():
    x = data((2, 3, 4), "float64")
    agree("fft.fftn", x, s=(4, 5), tolerance=ULPS, numpy=lambda v, s: np.fft.fftn(v, s=s, axes=(-2, -1)))


def test_frequencies_and_shifts():
    for n in (1, 4, 5):
        agree("fft.fftfreq", n)
        agree("fft.rfftfreq", n, d=0.5)
        assert xp.fft.fftfreq(n, dtype=xp.float32).dtype == xp.float32
    with pytest.raises(TypeError, match="frequencies"):
        xp.fft.rfftfreq(4, dtype=xp.complex64)
    for dtype, axes in itertools.product(FLOATING, [None, 0, (0, 1)]):
        agree("fft.fftshift", data((3, 4), dtype), axes=axes)
        agree("fft.ifftshift", data((3, 4), dtype), axes=axes)
