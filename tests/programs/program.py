"""What a program of the collection is: a function, its arguments for a size, and the sizes that it is tried and timed at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Program:
    """A function with arguments made for it.

    Parameters
    ----------
    function
        Plain NumPy; it may store into its arguments.
    arguments
        Makes the arguments from a size and a generator.
    small, large
        The size for tests, and that for timing.
    derivative
        The positions of the arguments in whose directions the result is smooth; none where it is not.
    """

    function: Callable[..., Any]
    arguments: Callable[[int, np.random.Generator], tuple[Any, ...]]
    small: int
    large: int
    derivative: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.__name__

    def make(self, size: int, seed: int = 0) -> tuple[Any, ...]:
        """Arguments for a size."""
        return self.arguments(size, np.random.default_rng(seed))


PROGRAMS: dict[str, Program] = {}


def program(
    function: Callable[..., Any],
    arguments: Callable[[int, np.random.Generator], tuple[Any, ...]],
    small: int,
    large: int,
    derivative: tuple[int, ...] = (),
) -> None:
    """Enter a program into the collection."""
    PROGRAMS[function.__name__] = Program(function, arguments, small, large, derivative)


def definite(rng: np.random.Generator, n: int) -> np.ndarray[Any, Any]:
    """A symmetric positive definite matrix."""
    a = rng.standard_normal((n, n))
    return a @ a.T + n * np.eye(n)
