"""How each op that is not pointwise is tried: operands, what builds its node, and what NumPy (or SciPy) says.

Every op of the registry is here or in the rules by kind (pointwise ops, leaves): ``test_registry.py`` holds that.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.ops.harness import sample

ALL = "?bhilBHILfdFD"


@dataclass(frozen=True)
class Case:
    """One op on operands of some shapes.

    ``shapes`` holds, for each operand, the shape of a random array of the dtype under test, or a fixed array.
    ``prepare`` makes the operands fit what the op asks for (in NumPy); ``smooth`` is what stands before the op in tests
    of derivatives, in nodes, where the op reads only a part of its operand, and ``settle`` what stands behind it, where
    results are fixed only up to a phase. The tag ``rounds`` is for what is computed in another order than the oracle.
    """

    op: str
    build: Callable[..., Any]
    oracle: Callable[..., Any]
    shapes: tuple[Any, ...]
    label: str = ""
    prepare: Callable[..., tuple[Any, ...]] = lambda *values: values
    smooth: Callable[..., tuple[Any, ...]] = lambda *nodes: nodes
    settle: Callable[[Any], Any] = lambda result: result
    derivative: bool = True
    dtypes: str = ALL
    tags: frozenset[str] = field(default_factory=frozenset)

    def __str__(self) -> str:
        shapes = "x".join(str(np.shape(s) if isinstance(s, np.ndarray) else s) for s in self.shapes)
        return f"{self.op}-{self.label or shapes}".replace(" ", "")

    def operands(self, rng: np.random.Generator, dtype: Any) -> list[Any]:
        drawn = [s if isinstance(s, np.ndarray) else sample(rng, dtype, s) for s in self.shapes]
        return list(self.prepare(*drawn))


CASES: list[Case] = []


def case(op: str, build: Callable[..., Any], oracle: Callable[..., Any], *shapes: Any, **fields: Any) -> None:
    CASES.append(Case(op, build, oracle, shapes, **fields))


import tests.ops.cases_bits  # noqa: E402 (the same)
import tests.ops.cases_folds  # noqa: E402 (they add to CASES)
import tests.ops.cases_fourier  # noqa: E402 (the same)
import tests.ops.cases_linear  # noqa: E402 (the same)
import tests.ops.cases_matrices  # noqa: E402 (the same)
import tests.ops.cases_moves  # noqa: E402 (the same)
import tests.ops.cases_places  # noqa: E402 (the same)
import tests.ops.cases_selection  # noqa: E402 (the same)
import tests.ops.cases_sequences  # noqa: E402 (the same)
import tests.ops.cases_tapes  # noqa: E402 (the same)

tests.ops.cases_folds.add_others()
