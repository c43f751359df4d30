"""The frame of the table of NumPy's and SciPy's functions: what a case is, and how it is run and differentiated.

The table itself stands in ``cases_*.py``, as tuples ``CASES`` that :func:`all_cases` joins; ``test_cases.py`` holds each case against
NumPy, and ``docs/generate_coverage.py`` writes the page of what is covered.
"""

import ast
import importlib
import linecache
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """One way to call a function.

    Parameters
    ----------
    function
        The function that is covered, as it is typed: ``np.sum``.
    source
        Python over the inputs; its last line is an expression.
    inputs
        The arrays and numbers that ``source`` reads, by name. Those of dtype float64 or complex128, and floats, are what is
        differentiated by.
    constant
        Why there is no derivative to be held; empty where there is one.
    close
        How near the value has to be to NumPy's, relative to the largest element: 0 is bit for bit. Above 0 where NumPy sums in
        another order than the composition does.
    modules
        Modules that ``source`` reads beside ``np``.
    refused
        A part of the message, where captured code refuses the call; then nothing else is held.
    numpy_only
        Why the compiled tier is not tried.
    """

    function: str
    source: str
    inputs: Mapping[str, Any] = field(repr=False)
    constant: str = ""
    close: float = 0.0
    modules: Mapping[str, ModuleType] = field(default_factory=dict, repr=False)
    refused: str = ""
    numpy_only: str = ""

    @property
    def id(self) -> str:
        """The case's name among the tests."""
        return self.source.replace("\n", "; ")

    @property
    def differentiable(self) -> bool:
        """Whether a derivative is held against finite differences."""
        return not self.constant and not self.refused

    def __call__(self) -> Callable[..., Any]:
        """``source`` as a function of the inputs, in their order."""
        tree = ast.parse(self.source)
        lines = self.source.splitlines()
        last = tree.body[-1]
        if not isinstance(last, ast.Expr):
            raise TypeError(self.source)
        lines[last.lineno - 1] = "return " + lines[last.lineno - 1]
        text = f"def case({', '.join(self.inputs)}):\n" + "".join(f"    {line}\n" for line in lines)
        file = f"<case {self.id}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        space: dict[str, Any] = {"np": np, **self.modules}
        exec(compile(text, file, "exec"), space)
        return space["case"]

    def values(self) -> list[Any]:
        """Copies of the inputs."""
        return [v.copy() if isinstance(v, np.ndarray) else v for v in self.inputs.values()]

    def varied(self) -> tuple[int, ...]:
        """The positions of the inputs that are differentiated by."""
        return tuple(
            k
            for k, v in enumerate(self.inputs.values())
            if isinstance(v, float) or getattr(v, "dtype", None) in {np.dtype(np.float64), np.dtype(np.complex128)}
        )


def over(pool: Mapping[str, Any], **modules: ModuleType) -> Callable[..., Case]:
    """A maker of cases whose inputs are the names of ``pool`` that their sources read: ``case(function, source, …)``."""

    def case(function: str, source: str, constant: str = "", **options: Any) -> Case:
        read = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
        inputs = {name: value for name, value in pool.items() if name in read}
        used = {name: module for name, module in modules.items() if name in read}
        return Case(function, source, inputs, constant, modules=used, **options)

    return case


def all_cases() -> list[Case]:
    """Every case of the tables beside this file."""
    names = sorted(p.stem for p in Path(__file__).parent.glob("cases_*.py"))
    return [case for name in names for case in importlib.import_module(f"tests.namespace.{name}").CASES]


def leaves(value: Any) -> Iterator[Any]:
    """The arrays and numbers in nested tuples and lists."""
    if isinstance(value, tuple | list):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def weighted(value: Any) -> Any:
    """One real number of the floating results: each element by a weight of its own, the imaginary parts too."""
    total = 0.0
    for number, leaf in enumerate(leaves(value)):
        kind = getattr(leaf, "dtype", np.dtype(float if isinstance(leaf, float) else object)).kind
        if kind not in "fc":
            continue
        place = np.cumsum(np.ones_like(np.real(leaf), dtype=float).ravel()).reshape(np.shape(leaf))  # of any size
        weights = 1 + np.cos(place + (number - 1))
        total = total + (np.real(leaf) * weights).sum()
        if kind == "c":
            total = total + (np.imag(leaf) * weights[::-1] if np.ndim(leaf) else np.imag(leaf) * weights).sum()
    return total


def differences(function: Callable[..., Any], values: list[Any], position: int, step: float = 1e-5) -> Any:
    """The gradient of a real function of NumPy arrays by central differences; for complex inputs d/dRe - i d/dIm, as ``tm.grad``."""
    start = np.asarray(values[position])
    gradient = np.zeros(start.shape, start.dtype)
    units = (1.0, 1j) if start.dtype.kind == "c" else (1.0,)
    for index in np.ndindex(start.shape):
        for unit in units:
            ends = []
            for sign in (1, -1):
                moved = start.copy()
                moved[index] += sign * step * unit
                ends.append(float(function(*values[:position], moved[()], *values[position + 1 :])))
            gradient[index] += (ends[0] - ends[1]) / (2 * step) * np.conj(unit)
    return gradient
