"""Contractions against ``np.einsum`` and ``np.matmul``: random subscripts, repeated and lost letters, errors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensormagic.ir.errors import ShapeError
from tensormagic.ops.contract import einsum, matmul
from tests.ops.harness import assert_same, outcome, run_nodes
from tests.ops.test_derivatives import check

EXTENTS = dict(zip("abcde", (2, 3, 1, 4, 2), strict=True))


@st.composite
def subscripts(draw):
    """One to four operands of up to three letters, which may repeat; a result of some of them, in any order."""
    inputs = draw(st.lists(st.text("abcde", max_size=3), min_size=1, max_size=4))
    letters = sorted(set("".join(inputs)))
    kept = draw(st.lists(st.sampled_from(letters), unique=True)) if letters else []
    return inputs, "".join(kept)


def operands(inputs, dtype, seed=0):
    rng = np.random.default_rng(seed)
    return [(rng.integers(-4, 5, tuple(EXTENTS[c] for c in letters))).astype(dtype)[()] for letters in inputs]


@given(subscripts(), st.sampled_from("bild"))
def test_einsum_of_small_integers_is_exact(spec, dtype):
    inputs, out = spec
    text = ",".join(inputs) + "->" + out
    values = [np.asarray(v) for v in operands(inputs, dtype)]
    expected = np.asarray(np.einsum(text, *values))
    (found,) = run_nodes("reference", lambda *nodes: einsum(text, *nodes), values)
    assert np.asarray(found).dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@given(subscripts())
def test_einsum_differentiates(spec):
    inputs, out = spec
    check("reference", lambda *nodes: einsum(",".join(inputs) + "->" + out, *nodes), operands(inputs, "d"), twice=False)


@given(st.lists(st.integers(0, 3), max_size=4), st.lists(st.integers(0, 3), max_size=4))
def test_matmul_fits_where_numpys_does(left, right):
    values = [np.ones(left, np.int64), np.ones(right, np.int64)]
    assert_same("reference", matmul, np.matmul, values)


@pytest.mark.parametrize(
    ("text", "shapes", "message"),
    [
        ("ij,jk->ik", [(2, 3)], "names 2 operands, but 1 were given"),
        ("ij->ij", [(2,)], "name 2 axes"),
        ("i,i->", [(2,), (3,)], "2 is not 3"),
        ("i->j", [(2,)], "no operand has"),
    ],
)
def test_subscripts_that_do_not_fit(text, shapes, message):
    with pytest.raises(ShapeError, match=message):
        run_nodes("reference", lambda *nodes: einsum(text, *nodes), [np.ones(s) for s in shapes])


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ((2, 3), (4, 5), r"\(2, 3\) and \(4, 5\) do not fit: 3 columns on the left, 4 rows on the right"),
        ((3,), (4, 5), r"\(3,\) and \(4, 5\) do not fit: 3 elements on the left, 4 rows on the right"),
        ((2, 3), (4,), "3 columns on the left, 4 elements on the right"),
        ((3,), (4,), "3 elements on the left, 4 elements on the right"),
        ((6, 2, 3), (4, 5), "3 columns on the left, 4 rows on the right"),
        ((3,), (6, 4, 5), "3 elements on the left, 4 rows on the right"),
    ],
)
def test_matmul_names_the_shapes(left, right, message):
    operands_ = [np.ones(left), np.ones(right)]
    with pytest.raises(ShapeError, match=message):
        run_nodes("reference", matmul, operands_)
    assert outcome(lambda: np.matmul(*operands_)) is ValueError
