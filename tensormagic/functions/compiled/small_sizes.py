"""Sizes of 0 and 1 of a compiled function: which choices of them have graphs of their own in files and in C libraries."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from tensormagic.functions.compiled.compiled_function import Compiled
from tensormagic.ir.graph import bare_symbol
from tensormagic.ir.size import Symbol

_MOST_SYMBOLS = 2  # up to so many symbols each combination of 0, 1 and more has a graph of its own; with more, each symbol by itself


def count_of(function: Compiled) -> int:
    """Return how many of the graph's parameters are arguments."""
    return len(function.graph.parameters) - len(function.traced.outside)


def symbols_of(function: Compiled) -> list[Symbol]:
    """Return the sizes of arguments, in order of appearance."""
    found = (bare_symbol(s) for p in function.graph.parameters[: count_of(function)] for s in p.type.shape)
    return list(dict.fromkeys(s for s in found if s is not None))


def small_sizes(function: Compiled) -> list[dict[Symbol, int]]:
    """Return the choices of sizes 0 and 1, those of more symbols first."""
    open_ = [s for s in symbols_of(function) if s.least > 0]
    if len(open_) > _MOST_SYMBOLS:
        return [{s: n} for s in open_ for n in range(s.least)]
    every = itertools.product(*([None, *range(s.least)] for s in open_))
    found = [{s: n for s, n in zip(open_, one, strict=True) if n is not None} for one in every]
    return sorted((f for f in found if f), key=len, reverse=True)


def sizes_text(chosen: Mapping[Symbol, int]) -> str:
    """Return a choice as :meth:`Compiled.with_sizes` takes it: ``"n0=1,n1=0"``."""
    return ",".join(sorted(f"{s}={n}" for s, n in chosen.items()))
