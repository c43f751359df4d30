"""Loops as people write them, and what is asked of them whatever takes their place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tensormagic as tm
from tensormagic.backend.numpy_tier.reference import evaluate_graph
from tensormagic.config import config
from tensormagic.ir.graph import Graph
from tensormagic.transform.rewriting import rewrite
from tests.transform.catalogue import every

SPECIALS = np.array([-0.0, 1.5, np.inf, 0.0, -2.0, np.nan, 3.0, -np.inf, 1e308, 1e308, -0.0, 5e-324])
PLAIN = np.random.default_rng(3).normal(size=11)
VECTORS = {
    "specials": SPECIALS,
    "backwards": SPECIALS[::-1].copy(),
    "zeros": np.full(6, -0.0),
    "two": PLAIN[:2],
    "one": PLAIN[:1],
    "none": PLAIN[:0],
    "single": PLAIN.astype(np.float32),
    "stepped": PLAIN[::2],
}


def normal(f: Callable[..., Any], given: Sequence[Any], level: str = "stable") -> Graph:
    """What a function becomes."""
    return rewrite(tm.trace(f, *given), level).graph


def ops(f: Callable[..., Any], given: Sequence[Any], level: str = "stable") -> list[str]:
    """The ops of it, those of graphs inside as well."""
    return every(normal(f, given, level).results)


def own(f: Callable[..., Any], given: Sequence[Any]) -> Any:
    """What Python and NumPy give; arguments that are changed are copies."""
    with np.errstate(all="ignore"):
        return f(*(np.array(g) if isinstance(g, np.ndarray) else g for g in given))


def same(f: Callable[..., Any], given: Sequence[Any], level: str = "exact", compiled: bool = False) -> None:
    """Check values, dtypes and bits against Python; at other levels than exact, zeros may have another sign, and digits may differ."""
    expected = own(f, given)
    given = [np.array(g) if isinstance(g, np.ndarray) else g for g in given]
    if compiled:
        with config.using(tier="numba", math=level):
            found = tm.compile(f, *given)(*given)
    else:
        with np.errstate(all="ignore"):
            found = evaluate_graph(normal(f, given, level), given)
        found = found if isinstance(expected, tuple) else found[0]
    single = any(getattr(g, "dtype", None) == np.float32 for g in given)
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    for ours, theirs in pairs:
        ours, theirs = np.asarray(ours), np.asarray(theirs)  # noqa: PLW2901 (as arrays)
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        if level == "exact":
            np.testing.assert_array_equal(ours, theirs)
            numbers = theirs == theirs  # noqa: PLR0124 (no nan)
            np.testing.assert_array_equal(np.signbit(ours)[numbers], np.signbit(theirs)[numbers])
        else:
            np.testing.assert_allclose(ours, theirs, rtol=1e-6 if single else 1e-12)
