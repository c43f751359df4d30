"""Control flow in functions: how cases are entered, and held against Python and finite differences."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tensormagic as tm

RNG = np.random.default_rng(7)
V = np.array([1.3, -2.1, 3.2, 4.4])
M = RNG.normal(size=(3, 4))


@dataclass(frozen=True)
class Case:
    """A function, arguments to try it with, and the regions that its graph has (None for any)."""

    function: Callable[..., Any]
    arguments: list[tuple[Any, ...]]
    regions: dict[str, int] | None = field(default_factory=dict)
    smooth: bool = True


class Cases(dict[str, Case]):
    """The cases of one file."""

    def enter(
        self, *arguments: Any, smooth: bool = True, any_regions: bool = False, **regions: int
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Enter a function with arguments to try it with, and how many regions of which kind its graph has."""

        def enter(function: Callable[..., Any]) -> Callable[..., Any]:
            given = [a if isinstance(a, tuple) else (a,) for a in arguments]
            expected = None if any_regions else {k.rstrip("_"): n for k, n in regions.items()}
            self[function.__name__] = Case(function, given, expected, smooth)
            return function

        return enter

    @property
    def smooth(self) -> list[str]:
        """The names of those that have derivatives."""
        return [n for n, c in self.items() if c.smooth]


def regions(graph: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    for node in graph.nodes:
        if node.op.kind == "region":
            found[node.op.name] = found.get(node.op.name, 0) + 1
    return found


def check_value(tried: Case) -> None:
    """A function captured gives what Python gives, in as many regions."""
    captured = tm.tensor(tried.function)
    for arguments in tried.arguments:
        assert_same(captured(*copy.deepcopy(arguments)), tried.function(*copy.deepcopy(arguments)))
        if tried.regions is not None:
            assert regions(captured.graph(*arguments)) == tried.regions


def assert_same(ours: Any, pythons: Any) -> None:
    """The same containers, dtypes, shapes and values."""
    if isinstance(pythons, list | tuple):
        assert type(ours) is type(pythons)
        assert len(ours) == len(pythons)
        for a, b in zip(ours, pythons, strict=True):
            assert_same(a, b)
        return
    assert np.asarray(ours).dtype == np.asarray(pythons).dtype
    np.testing.assert_allclose(ours, pythons, rtol=1e-12)


def slopes(function: Callable[..., Any], x: Any) -> Any:
    """Derivatives by differences of fourth order."""
    x, h = np.asarray(x, float), 1e-4
    found = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[at] = h

        def value(k: int, step: Any = step) -> float:
            moved = x + k * step
            return float(function(moved if moved.ndim else float(moved)))

        found[at] = (8 * (value(1) - value(-1)) - (value(2) - value(-2))) / (12 * h)
    return found


def _total(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return sum(map(_total, value))
    return np.sum(value * value) if np.ndim(value) else value


def check_gradient(tried: Case) -> None:
    """Derivatives with respect to the first argument are those of finite differences."""
    for first, *rest in tried.arguments:

        def along(x: Any, rest: Any = tuple(rest)) -> Any:
            return _total(tried.function(x, *rest))

        np.testing.assert_allclose(tm.grad(along)(first), slopes(along, first), rtol=1e-6, atol=1e-8)
