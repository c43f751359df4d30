"""Third derivatives of drawn functions of one number, against mpmath: ``check_third_derivatives.py [SEED [COUNT]]``."""

from __future__ import annotations

import math
import random
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import tensormagic as tm

UNARY = ["sin", "cos", "exp", "log1p", "sqrt", "tanh", "arctan", "sinh", "log", "square", "expm1", "arcsinh", "cosh"]
MPMATH = {"arctan": "atan", "arcsinh": "asinh"}
DIGITS = 1e-8
LARGEST = 1e6
Function = Callable[[Any], Any]


def drawn(source: random.Random, depth: int) -> str:
    """An expression of ``x``, in NumPy's names."""
    if not depth:
        return source.choice(["x", "x", "x", f"{source.uniform(0.3, 2):.2f}"])
    if source.random() < 0.5:
        return f"np.{source.choice(UNARY)}({drawn(source, depth - 1)})"
    if source.random() < 0.2:
        return f"({drawn(source, depth - 1)}) ** {source.choice(['2', '3', '1.5', '-1'])}"
    return f"({drawn(source, depth - 1)} {source.choice('+-*/')} {drawn(source, depth - 1)})"


def high_precision() -> SimpleNamespace:
    """The functions of NumPy by mpmath."""
    names = {n: getattr(mpmath, MPMATH.get(n, n)) for n in UNARY if n != "square"}
    return SimpleNamespace(**names, square=lambda x: x * x)


def pushed(f: Function) -> Function:
    """The derivative by forward mode."""
    return lambda x: tm.jvp(f, (x,), (1.0,))[1]


def differing(function: Function, at: float, true: float, text: str) -> int:
    """Print by which orders of modes the derivative is not the true one; how many these are."""
    failed = 0
    for modes in ((tm.grad,) * 3, (pushed,) * 3, (tm.grad, pushed, tm.grad), (pushed, tm.grad, pushed)):
        found = function
        for mode in modes:
            found = mode(found)
        with np.errstate(all="ignore"):
            value = float(found(at))
        if not abs(value - true) <= DIGITS * max(1.0, abs(true)):
            failed += 1
            names = " ".join(m.__name__ for m in modes)
            sys.stdout.write(f"{text} at {at:.4f} by {names}: {value} for {true}\n")
    return failed


def third(text: str, at: float) -> float:
    """The third derivative by mpmath; nan where there is no usable one."""
    with mpmath.workdps(40):
        try:
            true = complex(mpmath.diff(eval(f"lambda x: {text}", {"np": high_precision()}), at, 3))  # noqa: S307
        except (ArithmeticError, ValueError):
            return math.nan
    return math.nan if true.imag or abs(true.real) > LARGEST else true.real


def main(seed: int, count: int) -> int:
    """Print what differs; how many do."""
    source, failed, seen = random.Random(seed), 0, 0  # noqa: S311
    while seen < count:
        text, at = drawn(source, 3), source.uniform(0.4, 1.6)
        true = third(text, at) if "x" in text.replace("exp", "") else math.nan
        if math.isnan(true):
            continue
        seen += 1
        plain = eval(f"lambda x: {text}", {"np": np})  # noqa: S307

        def repeated(x: Any, plain: Function = plain) -> Any:
            total = x * 0.0
            for _ in range(2):
                total = total + plain(x) / 2
            return total

        failed += differing(plain, at, true, text) + differing(repeated, at, true, f"in a loop, {text}")
    sys.stdout.write(f"{seen} functions, by themselves and in loops, 4 orders of modes: {failed} differ\n")
    return failed


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of gradients that are zero
    sys.exit(bool(main(*(int(a) for a in [*sys.argv[1:], "17", "60"][:2]))))
