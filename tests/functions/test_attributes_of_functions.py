"""Attributes that users give to captured functions are those of the function that was captured."""

from __future__ import annotations

import copy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensormagic as tm

# what each program is called with, and what is done between two calls
PROGRAMS: dict[str, tuple[str, list[str]]] = {
    "counter": (
        "@T\ndef f(x):\n    f.calls += 1\n    return x * f.calls\nf.calls = 0",
        ["f(2.0)", "f(2.0)", "f.calls", "setattr(f, 'calls', 10)", "f(2.0)", "f(np.ones(2))", "f.calls"],
    ),
    "made at the first call": (
        "@T\ndef f(x):\n    f.n = getattr(f, 'n', 0) + 1\n    return x + f.n",
        ["f(1.0)", "f(1.0)", "f.n", "delattr(f, 'n')", "f(1.0)", "hasattr(f, 'n')"],
    ),
    "constant": (
        "@T\ndef f(x):\n    return x * f.scale if x > 0 else x - f.scale\nf.scale = 2.0",
        [
            "f(3.0)",
            "f(3.0)",
            "setattr(f, 'scale', 5)",
            "f(3.0)",
            "f(-3.0)",
            "setattr(f, 'scale', np.arange(2))",
            "f(3.0)",
        ],
    ),
    "array that is stored into": (
        "@T\ndef f(x):\n    for k in range(3):\n        f.w[k] += x\n    return f.w.sum()\nf.w = np.zeros(3)",
        ["f(1.0)", "f(1.0)", "f.w", "setattr(f, 'w', np.ones(4))", "f(0.5)", "f.w"],
    ),
    "table": (
        "@T\ndef f(n):\n    if n in f.seen:\n        return f.seen[n]\n    f.seen[n] = n * 1.5\n    return f.seen[n]\nf.seen = {}",
        ["f(2)", "f(2)", "f.seen", "f.seen.update({2: -1})", "f(2)", "setattr(f, 'seen', {})", "f(2)", "f.seen"],
    ),
    "list": (
        "@T\ndef f(x):\n    f.log.append(x)\n    return sum(f.log)\nf.log = []",
        ["f(1.0)", "f(2.5)", "f.log", "f.log.clear()", "f(2.5)", "len(f.log)"],
    ),
    "of another captured function": (
        "@T\ndef g(x):\n    return x * g.k\ng.k = 2.0\n@T\ndef f(x):\n    return g(x) + g.k",
        ["f(1.0)", "f(1.0)", "setattr(g, 'k', 7.0)", "f(1.0)", "g(1.0)"],
    ),
    "given before it was captured": (
        "def g(x):\n    return x * g.k\ng.k = 3\nf = T(g)",
        ["f.k", "f(2.0)", "setattr(f, 'k', 4)", "f(2.0)", "g.k", "setattr(g, 'k', 5)", "f(2.0)"],
    ),
    "method": (
        "class A:\n    @T\n    def f(self, x):\n        return x * A.f.k\nA.f.k = 2\na = A()",
        ["a.f(1.5)", "a.f(1.5)", "setattr(A.f, 'k', 4)", "a.f(1.5)"],
    ),
    "of an object that is called": (
        (
            "class Counted:\n    def __init__(self, g):\n        self.g, self.n = g, 0\n    def __call__(self, x):\n"
            "        self.n += 1\n        return self.g(x) * self.n\nf = T(Counted(lambda x: x + 0.5))"
        ),
        ["f(1.0)", "f(1.0)", "f.n", "setattr(f, 'n', 10)", "f(1.0)", "f.n", "f.zz"],
    ),
    "missing": ("@T\ndef f(x):\n    return x * f.k", ["f(1.0)", "f.k", "delattr(f, 'k')"]),
}


def outcome(text: str, space: dict[str, Any]) -> Any:
    try:
        found = eval(text, space)
    except Exception as error:  # noqa: BLE001 (errors are what is compared)
        return type(error), str(error)
    return copy.deepcopy(found)


@pytest.mark.parametrize("tier", ["auto", "numpy"])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
def test_attributes_are_pythons(name: str, tier: str, tmp_path: Path) -> None:
    program, calls = PROGRAMS[name]
    path = tmp_path / "program.py"
    path.write_text(program)
    both: list[Any] = []
    for made in (lambda f: f, tm.tensor):
        space: dict[str, Any] = {"np": np, "T": made}
        exec(compile(program, path, "exec"), space)
        with tm.config.using(tier=tier):
            both.append([outcome(call, space) for call in calls])
    for ours, pythons in zip(*reversed(both), strict=True):
        assert type(ours) is type(pythons)
        np.testing.assert_equal(ours, pythons)


def test_an_attribute_has_a_gradient_and_is_read_again() -> None:
    @tm.tensor
    def f(x: Any) -> Any:
        return (x**2 * made.w).sum()

    made: Any = f
    made.w = np.array([1.0, 2.0])
    slope = tm.grad(f)
    assert slope(3.0) == 18.0
    made.w = np.array([1.0, 2.0, 3.0])
    assert slope(3.0) == 36.0


def test_a_function_of_another_level_has_those_of_its_function() -> None:
    def f(x: Any) -> Any:
        return x * f.k  # type: ignore[attr-defined]

    exact: Any = tm.tensor(f, math="exact")
    exact.k = 2.0
    assert vars(f)["k"] == 2.0
    assert exact(3.0) == 6.0
    exact.k = 4.0
    assert exact(3.0) == 12.0


def test_what_has_no_function_of_pythons_keeps_its_attributes() -> None:
    made: Any = tm.tensor(partial(np.multiply, 2.0))
    made.note = "twice"
    assert made.note == "twice"
    assert made(3.0) == 6.0
    del made.note
    with pytest.raises(AttributeError, match="has no attribute 'note'"):
        _ = made.note
