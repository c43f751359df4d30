"""A graph that a rule has to change, and values to hold it against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tensormagic.ir.node import Node
from tensormagic.ir.type import array, symbol
from tensormagic.ops.leaf import parameter

N, M = symbol("n0"), symbol("n1")


@dataclass(frozen=True)
class Example:
    """``build`` takes parameters of the shapes (n0 is 4, n1 is 5) and gives the node that the rule has to change."""

    rule: str
    shapes: tuple[tuple, ...]
    build: Callable[..., Node]
    scale: float = 1.0
    level: str = "stable"

    def parameters(self, dtype: object) -> list[Node]:
        return [parameter(k, array(dtype, *shape)) for k, shape in enumerate(self.shapes)]

    def values(self, dtype: object, seed: int) -> list[np.ndarray]:
        r = np.random.default_rng(seed)
        known = {N: 4, M: 5, N + M: 9, N * 3: 12, 2 * M: 10}
        shapes = [tuple(known.get(s, s) for s in shape) for shape in self.shapes]
        return [(r.normal(size=shape) * self.scale).astype(dtype) for shape in shapes]
