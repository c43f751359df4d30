"""Every rule at special values: pairs of them for every dtype, before and after, compared bit for bit or by kind."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tensormagic.backend.numpy_tier.reference import evaluate_graph
from tensormagic.ir.graph import Graph
from tensormagic.ir.rewriting.rules import Rule
from tests.transform.example import Example
from tests.transform.oracle import instances, same_bits, values_of

DTYPES = (np.float64, np.float32, np.float16, np.complex128, np.complex64, np.int64, np.int32, np.int8, np.uint8, bool)


def specials(dtype: object) -> np.ndarray:
    """Zeros, ones, infinities, nan, denormals and extremes."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        signed = [-1, -2, info.min + 1] if dtype.kind == "i" else []
        return np.array([0, 1, 2, 3, info.min, info.max, info.max // 2, info.max - 1, *signed], dtype)
    if dtype.kind == "c":
        parts = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5]
        return np.array([complex(a, b) for a in parts for b in parts], dtype)
    info = np.finfo(dtype)
    sizes = [0.0, 1.0, 0.5, 2.0, np.inf, info.max, info.max / 2, info.tiny, info.smallest_subnormal, info.eps]
    sizes += [1 + info.eps, 1 - info.epsneg, 1e-3, 3.3, 40.0, 89.0, 710.0, np.sqrt(info.max), np.sqrt(info.tiny)]
    with np.errstate(all="ignore"):
        return np.array([s * v for v in sizes for s in (1.0, -1.0)] + [np.nan], dtype)


def pairs(rule: Rule, most: int, seed: int = 0) -> Iterator[tuple[Graph, list[np.ndarray], np.ndarray, np.ndarray]]:
    """Inputs of a pattern's rule, and its values before and after."""
    r = np.random.default_rng(seed)
    for dtype in DTYPES:
        try:
            found = instances(rule, dtype)
        except (TypeError, OverflowError):
            continue
        for one in found:
            own = one.before.parameters
            if not own:
                continue
            axes = [specials(p.type.dtype) for p in own]
            shape = tuple(map(len, axes))
            size = math.prod(shape)
            chosen = r.choice(size, most, replace=False) if size > most else np.arange(size)
            columns = [axis[k] for axis, k in zip(axes, np.unravel_index(chosen, shape), strict=True)]
            yield one.before, columns, values_of(one.before, columns), values_of(one.after, columns)


def other_bits(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Where bits differ; a nan is like any other, since NumPy's loops do not keep what it carries."""
    if before.dtype.kind == "c":
        return ~(same_bits(before.real, after.real) & same_bits(before.imag, after.imag))
    return ~same_bits(before, after)


def lost(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Where a number became nan or infinite."""
    return np.isfinite(before) & ~np.isfinite(after)


def changed(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Where nan became a value, or an infinity nan or the other one."""
    swapped = np.isinf(before) & np.isinf(after) & (before != after)
    return (np.isnan(before) & ~np.isnan(after)) | (np.isinf(before) & np.isnan(after)) | swapped


def arrays(example: Example, dtype: object, seed: int, *, mild: bool = False) -> list[np.ndarray]:
    """Values for a procedure: random ones, some of them special; ``mild`` ones where sums in another order overflow otherwise."""
    r = np.random.default_rng(seed)
    pool = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan], dtype) if mild else specials(dtype)
    share = r.choice([0.05, 0.3, 0.7])
    return [
        np.where(r.random(v.shape) < share, r.choice(pool, v.shape), v).astype(dtype)
        for v in example.values(dtype, seed)
    ]


def outcome(graph: Graph, values: list[np.ndarray]) -> np.ndarray | str:
    """The value, or the name of the error."""
    try:
        with np.errstate(all="ignore"):
            return np.asarray(evaluate_graph(graph, values)[0])
    except (np.linalg.LinAlgError, ValueError, ArithmeticError) as error:
        return type(error).__name__
