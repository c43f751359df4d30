"""Writes docs/coverage.md by running the table of cases in tests/namespace: all, which takes some minutes, or those of some functions.

``python docs/generate_coverage.py np.sinc scipy.linalg.toeplitz`` writes the rows of these two, and keeps the others.

A test holds that the page names every function with its number of cases; what the columns say is as of the run.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
FILE = Path(__file__).with_name("coverage.md")
sys.path.insert(0, str(ROOT))  # the table stands among the tests, which are no package

from tensormagic import config, session  # noqa: E402 (after the path)
from tests.namespace import test_cases as run  # noqa: E402 (after the path)
from tests.namespace.cases import Case, all_cases, leaves  # noqa: E402 (after the path)

HEAD = """# Coverage of NumPy and SciPy

Made by `python docs/generate_coverage.py` from the table of cases in `tests/namespace`: {cases} cases of {functions} functions.

- *Cases*: how many calls, with different options, are held against NumPy for value, dtype and shape.
- *Value*: how many of them agree.
- *Gradient*: how many agree with finite differences, in forward and in reverse mode; or why there is nothing to differentiate.
- *Numba*: yes, where compiled kernels compute all of it; else the steps that stay calls of NumPy in the compiled program.
- *Refused*: the calls that are refused by name, with an error that says what to write instead.

| function | cases | value | gradient | Numba | refused |
|---|---|---|---|---|---|
"""


def holds(check: Callable[[Case], None], case: Case) -> bool:
    """Whether a check of a case passes."""
    try:
        check(case)
    except Exception:  # noqa: BLE001 (whatever goes wrong is a case that is not covered)
        return False
    return True


def steps(case: Case) -> set[str]:
    """The ops that the compiled program leaves to NumPy."""
    from tests.capture.harness import cell, given

    imports = "".join(f"import {m.__name__} as {n}\n" for n, m in case.modules.items())
    with np.errstate(all="ignore"):
        found = cell(imports + case.source, given(dict(case.inputs)))
    nodes = [v.node for v in leaves(found.result) if hasattr(v, "node")]
    plan = session.executable(session.close_over(nodes).graph).plan if nodes else None
    return {n.op.name for n in plan.library_steps} if plan else set()


def left_to_numpy(cases: list[Case]) -> str:
    """What the column on Numba says."""
    names: set[str] = set()
    for case in cases:
        try:
            names |= steps(case)
        except Exception as error:  # noqa: BLE001 (a case that is not captured at all)
            return f"({type(error).__name__})"
    return ", ".join(f"`{n}`" for n in sorted(names)) or "yes"


def row(function: str, cases: list[Case]) -> str:
    """One function's line."""
    plain = [c for c in cases if not c.refused]
    smooth = [c for c in plain if c.differentiable]
    value = sum(holds(run.test_value_in_a_cell, c) and holds(run.test_value_in_a_function, c) for c in plain)
    gradient = sum(holds(run.test_derivative, c) for c in smooth)
    reasons = ", ".join(dict.fromkeys(c.constant for c in plain if c.constant))
    slopes = f"{gradient} of {len(smooth)}" if smooth else reasons
    refused = "; ".join(f"`{c.source}`".replace("|", "\\|") for c in cases if c.refused)
    return f"| `{function}` | {len(plain)} | {value} | {slopes} | {left_to_numpy(plain)} | {refused} |"


def grouped() -> dict[str, list[Case]]:
    """The cases of each function, in the order of their names."""
    found: dict[str, list[Case]] = {}
    for case in sorted(all_cases(), key=lambda c: c.function):
        found.setdefault(case.function, []).append(case)
    return found


def page(write: Callable[[str, list[Case]], str] = row) -> str:
    """The page."""
    functions = grouped()
    total = sum(map(len, functions.values()))
    lines = [write(function, cases) for function, cases in functions.items()]
    return HEAD.format(cases=total, functions=len(functions)) + "\n".join(lines) + "\n"


def counts(text: str) -> dict[str, Any]:
    """The functions that a page names, each with its number of cases."""
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| `")]
    return {cells[1].strip(" `"): int(cells[2]) for cells in rows}


def rows(text: str) -> dict[str, str]:
    """The lines of a page, by the function that each is of."""
    return {line.split("|")[1].strip(" `"): line for line in text.splitlines() if line.startswith("| `")}


def written(functions: Sequence[str]) -> str:
    """The page, with new rows of some functions, or of all."""
    old = rows(FILE.read_text(encoding="utf-8")) if functions else {}
    return page(lambda name, cases: old[name] if name in old and name not in functions else row(name, cases))


if __name__ == "__main__":
    config.math, config.tier = "exact", "numpy"
    warnings.simplefilter("ignore")  # of gradients that are zero: the tests of the cases say where they are
    FILE.write_text(written(sys.argv[1:]), encoding="utf-8")
