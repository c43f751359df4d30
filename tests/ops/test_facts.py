"""What an op says of itself is so: every fact of a scalar function and of a fold, held on numbers.

Rules, kernels and reverse mode believe these facts without a look at the op: one that is wrong changes values of other programs.
"""

# tests named elsewhere

import itertools
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from tensormagic.backend.numpy_tier.text import numpy_source
from tensormagic.ir.errors import CaptureError, DTypeError
from tensormagic.ops.fold import fold
from tensormagic.ops.fold_kind import Fold, Row
from tensormagic.ops.leaf import constant
from tensormagic.ops.pointwise import ASTYPE, Pointwise
from tests.ops.harness import assert_bits, closed, place, registry, run_nodes

SCALAR = [op for op in registry.values() if isinstance(op, Pointwise) and op is not ASTYPE]
FOLDS = [op for op in registry.values() if isinstance(op, Fold)]
EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 3.7, -3.7, 1e-300, -1e-8, 30.0, -40.0, 700.0, -745.0, np.inf, -np.inf, np.nan)
STEP = 2.0**-20


def value(op, *operands):
    """What the op gives for arrays; of a fold, along the last axis."""
    with np.errstate(all="ignore"):
        return np.asarray(run_nodes("reference", built(op), operands)[0])


def built(op):
    """What makes its node; of a fold, along the last axis."""
    return (lambda x: fold(op, x, (x.type.ndim - 1,))) if isinstance(op, Fold) else op


def taken(op, dtypes):
    """Those of some dtypes that the op takes."""
    for dtype in dtypes:
        with suppress(DTypeError):
            value(op, *[np.ones((1, 1), dtype)] * arity(op))
            yield np.dtype(dtype)


def arity(op):
    return 1 if isinstance(op, Fold) else op.arity


def numbers(op, dtype, *, signed=True, edges=True):
    """Operands: edges in all pairs, and numbers of many sizes; integers are small, so that nothing wraps around."""
    rng = np.random.default_rng(4)
    if dtype.kind in "biu":
        low = -6 if signed and dtype.kind == "i" else 0
        return [rng.integers(low, 2 if dtype.kind == "b" else 7, (60, 3)).astype(dtype) for _ in range(arity(op))]
    drawn = [
        10.0 ** rng.uniform(-4, 2, (60, 3)) * (rng.choice([-1, 1], (60, 3)) if signed else 1) for _ in range(arity(op))
    ]
    if dtype.kind == "c":
        return [(d + 1j * rng.normal(size=d.shape)).astype(dtype) for d in drawn]
    if edges:
        chosen = [e for e in EDGES if signed or not np.signbit(e)]
        width = 3 if isinstance(op, Fold) else arity(op)
        table = np.array(list(itertools.product(chosen, repeat=width)))
        own = [table] if isinstance(op, Fold) else [np.repeat(column[:, None], 3, axis=1) for column in table.T]
        drawn = [np.concatenate(pair) for pair in zip(own, drawn, strict=True)]
    return [d.astype(dtype) for d in drawn]


def close(found, expected, tolerance=1e-9):
    """Whether numbers agree, and some are there to compare."""
    found, expected = (v.astype(float) if v.dtype.kind == "b" else v for v in (found, expected))
    known = np.isfinite(expected)
    assert known.any()
    off = np.abs(found[known] - expected[known])
    return bool((off <= tolerance * np.maximum(np.abs(expected[known]), 1)).all())


# the facts ------------------------------------------------------------------------------------------------------------


def commutative(op):
    for dtype in taken(op, "?bldfD"):
        x, y = numbers(op, dtype)
        one, other = value(op, x, y), value(op, y, x)
        assert_bits(one, other) if dtype.kind != "c" else close(one, other, 1e-14)  # whose parts may be fused


def linear(op):
    each = range(arity(op))
    together = {"together": [each], "each": [[k] for k in each], "first": [[0]], "rest": [each[1:]]}[op.linear]
    for dtype, moving in itertools.product(taken(op, "dD"), together):
        rng = np.random.default_rng(5)
        x = numbers(op, dtype, edges=False)
        y = [rng.normal(size=v.shape).astype(dtype) if k in moving else v for k, v in enumerate(x)]
        both = [a + b if k in moving else a for k, (a, b) in enumerate(zip(x, y, strict=True))]
        assert close(value(op, *both), value(op, *x) + value(op, *y))


def keeps_sign(op):
    for dtype in taken(op, "?bBldf"):
        result = value(op, *numbers(op, dtype, signed=False))
        assert not (np.signbit(result.astype(float)) & ~np.isnan(result.astype(float))).any()


def not_negative(op):
    for dtype in taken(op, "?bBldf"):
        result = value(op, *numbers(op, dtype)).astype(float)
        assert not (result < 0).any()
        assert op.keeps_sign or not (np.signbit(result) & ~np.isnan(result)).any(), "there is a -0.0"


def picks(op):
    for dtype in taken(op, "?bldf"):
        operands = numbers(op, dtype)
        result = value(op, *operands)
        own = [np.broadcast_to(v, result.shape) for v in operands] if not isinstance(op, Fold) else operands[0].T
        same = [(r == np.abs(v)) | (np.isnan(r) & np.isnan(v)) for v in own for r in [np.abs(result)]]
        assert np.any(same, axis=0).all()


def factors(op):
    """Off by no more than a factor that stands there twice."""
    for dtype in taken(op, "d"):
        operands = numbers(op, dtype, edges=False)
        result = value(op, *operands)
        for signs in itertools.product((-1, 1), repeat=arity(op)):
            moved = value(op, *(v * (1 + s * STEP) for v, s in zip(operands, signs, strict=True)))
            off = np.abs(moved - result)[np.isfinite(result)]
            assert (off <= 2.001 * STEP * np.abs(result[np.isfinite(result)])).all()


def signs(op):
    for dtype in taken(op, "ldD"):
        operands = numbers(op, dtype)
        with np.errstate(all="ignore"):
            terms = [s * v for s, v in zip(op.signs, operands, strict=True)]
            assert_bits(value(op, *operands), terms[0] if len(terms) == 1 else np.add(*terms))


def infix(op):
    for dtype in taken(op, "?ldD"):
        x, y = numbers(op, dtype, signed=False)
        with np.errstate(all="ignore"):
            assert_bits(value(op, x, y), eval(f"x {op.infix} y", {"x": x, "y": y}))


def sizes(op):
    for x, y in itertools.product(range(7), range(1, 7)):
        found = op.sizes(x, y)
        assert found is None or found == op.numpy(x, y)


def between(op):
    for given in itertools.product((np.int64(k) for k in range(-3, 5)), repeat=arity(op)):
        node = op(*map(constant, given))
        low, high = op.bounds(node)
        with suppress(ValueError):
            found = op.evaluate(node, given, int)
            assert low is None or low <= found
            assert high is None or found <= high


def joins(op):
    for dtype in taken(op, "?bBldD"):
        (x,) = numbers(op, dtype, edges=False)
        parts = value(op, x[:, :2]), value(op, x[:, 2:])
        assert close(value(registry[op.joins], *parts), value(op, x))


def start(op):
    """An element that changes nothing: with ``where=`` it stands for what is left out."""
    for dtype in taken(op, "?bBldD"):
        (x,) = numbers(op, dtype, edges=False)
        longer = np.concatenate([x, np.full((len(x), 1), op.start(dtype), dtype)], axis=1)
        assert close(value(op, longer), value(op, x))


FACTS = [commutative, linear, keeps_sign, not_negative, picks, factors, signs, infix, sizes, between, joins, start]
SAID = [
    (op, fact)
    for op in (*SCALAR, *FOLDS)
    for fact in FACTS
    if getattr(op, fact.__name__, None) not in (None, False, "", ())
    and not (isinstance(op, Row) and fact in {joins, start})
]


@pytest.mark.parametrize(("op", "fact"), SAID, ids=lambda v: getattr(v, "name", getattr(v, "__name__", v)))
def test_what_an_op_says_of_itself_is_so(op, fact):
    try:
        fact(op)
    except Exception as error:  # noqa: BLE001 (what is wrong may be of any class)
        pytest.fail(f"{op.name} says {fact.__name__}={getattr(op, fact.__name__)!r}, which numbers contradict: {error}")


def raised(op, operands):
    """What the op raises for some values; None where it gives a result."""
    try:
        value(op, *operands)
    except Exception as error:  # noqa: BLE001 (whatever it is)
        return error
    return None


@pytest.mark.parametrize("op", [op for op in SCALAR if op.arity < 4], ids=lambda op: op.name)
def test_what_may_raise_says_so(op):
    for dtype in taken(op, "?bBldf"):
        operands = numbers(op, dtype)
        error = raised(op, operands)
        assert error is None or op.may_raise(op(*map(place, operands))), f"{op.name} raises {error!r}: say raises=True"


@pytest.mark.parametrize("op", [*SCALAR, *FOLDS], ids=lambda op: op.name)
def test_its_text_in_numpy_gives_its_values(op):
    dtype = next(taken(op, "dl"))
    operands = numbers(op, dtype, edges=False)
    if isinstance(op, Pointwise):
        operands[: len(op.fixed)] = [np.full((60, 3), f[-1]) for f in op.fixed]
    nodes = [place(v) for v in operands]
    try:
        text = numpy_source(closed([built(op)(*nodes)], nodes))
    except CaptureError as error:
        pytest.fail(f"{error}: write its numpy as a function of NumPy's alone, or say in_numpy")
    names: dict[str, Any] = {}
    exec(text, names)
    with np.errstate(all="ignore"):
        found = np.asarray(names["f"](*operands))
    assert close(found, value(op, *operands)), f"the text in NumPy gives other values than {op.name}:\n{text}"
