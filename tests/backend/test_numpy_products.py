"""Products of matrices in plain NumPy are written as people write them, and give what they gave."""

from __future__ import annotations

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.numpy_tier.text import numpy_source

A, B, V, W = (np.random.default_rng(k).normal(size=s) for k, s in enumerate([(3, 4), (4, 5), (4,), (3,)]))
T = np.random.default_rng(9).normal(size=(2, 3, 4))
PROGRAMS = {  # a program, its arguments, and what stands in its text
    "matrices": (lambda a, b: np.einsum("ij,jk->ik", a, b), (A, B), "v0 = a @ b"),
    "a vector": (lambda a, v: np.einsum("ij,j->i", a, v), (A, V), "@"),
    "a transposed one": (lambda a, w: np.einsum("ij,i->j", a, w), (A, W), "a.T @ w"),
    "two turned": (lambda a, c: np.einsum("ij,kj->ik", a, c), (A, A), ".T"),
    "an outer product": (lambda v, w: np.einsum("i,j->ij", v, w), (V, W), "np.outer("),
    "three letters": (lambda t, v: np.einsum("bij,j->bi", t, v), (T, V), "np.einsum("),
    "a gradient": (tm.grad(lambda a, b: np.sum(np.einsum("ij,jk->ik", a, b) ** 2)), (A, B), "@"),
    "a loop": (lambda a, v: _turned(a, v), (A.T @ A, V), "@"),
    "integers": (
        lambda a, b: np.einsum("ij,jk->ik", a, b),
        (np.arange(6).reshape(2, 3), np.ones((3, 2), int)),
        "np.einsum(",
    ),
    "complex": (lambda a, b: np.einsum("ij,jk->ik", a, b), (A * 1j, B + 0j), "@"),
    "single": (lambda a, b: np.einsum("ij,jk->ik", a, b), (A.astype("f4"), B.astype("f4")), "@"),
}


def _turned(a, v):
    for _ in range(3):
        v = np.einsum("ij,j->i", a, v) / 10
    return v


@pytest.mark.parametrize("name", PROGRAMS)
def test_products_are_written_as_people_write_them(name):
    program, args, said = PROGRAMS[name]
    text = numpy_source(tm.trace(program, *args))
    assert said in text
    space: dict = {}
    exec(text, space)
    (function,) = [
        v for k, v in space.items() if callable(v) and not k.startswith("_") and getattr(v, "__code__", None)
    ]
    found, wanted = function(*args), program(*args)
    np.testing.assert_allclose(found, np.asarray(wanted), rtol=1e-6)
    assert np.asarray(found).dtype == np.asarray(wanted).dtype
