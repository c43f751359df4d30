"""Products of matrices in one another, as layers are, at a first call: what rules see in the text, and who runs it."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture.staging.analysis.ordinary import ordinary
from tensormagic.functions.calls import first_call
from tensormagic.transform.rewriting.themes.overflows import BEYOND
from tensormagic.transform.rewriting.themes.reductions import OF_ROWS
from tests.functions.test_first_looks import of
from tests.functions.test_what_rules_see import told

LOOKED_AT = {rule.name for rule in (*OF_ROWS, *BEYOND)}  # what these are about is looked at as Python runs
SOFTMAX = """import numpy as np
def softmax(x):
    largest = np.max(x, axis=-1, keepdims=True)
    powers = np.exp(x - largest)
    return powers / np.sum(powers, axis=-1, keepdims=True)
"""
LAYERS = {
    "one": "return softmax(x @ w + b)",
    "two": "x = np.maximum(x @ w + b, 0)\n    return softmax(x @ v + c)",
    "three": "x = np.maximum(x @ w + b, 0)\n    x = np.maximum(x @ v + c, 0)\n    return softmax(x @ u)",
    "others": "x = np.tanh(x @ w + b)\n    return softmax(np.tanh(x @ v) @ w)",
    "from below": "x = np.minimum(x @ w, 1)\n    return softmax(np.maximum(x @ v, 0))",
    "written out": "z = np.tanh(x @ w) @ v\n    p = np.exp(z - z.max(1, keepdims=True))\n    return p / p.sum(axis=1, keepdims=True)",
    "in a loop": "for k in range(3):\n        x = np.maximum(x @ w + b, 0)\n    return softmax(x @ v)",
}  # fmt: skip
STEPS = (
    "np.maximum({a} @ {b} + x, 0)", "np.tanh({a} @ {b})", "{a} @ {b} + x", "np.exp({a} @ {b})", "{a} - np.max({a}, axis=1, keepdims=True)",
    "{a} - {a}.mean(axis=1, keepdims=True)", "np.exp({a}) / np.sum(np.exp({a}), axis=1, keepdims=True)", "{a} @ {b} - {a} @ w",
    "np.sum({a}, axis=0) - {b}", "np.maximum({a}.sum(axis=1, keepdims=True), 0) * {b}", "np.exp({a} - np.max({a}, axis=1, keepdims=True))",
    "{a} / np.sum({a}, axis=1, keepdims=True)", "np.log(np.sum(np.exp({a}), axis=1, keepdims=True)) - {b}", "np.sum({a} * {b}, axis=1) - x",
    "np.mean(np.maximum({a}, 0) ** 2, axis=0) - np.mean(np.maximum({a}, 0), axis=0) ** 2", "{a} - np.tanh({b})",
    "np.sum({a} @ {b}, axis=1) - x",
    "np.maximum({a}, {b}) @ w - np.maximum({a}, {b}) @ v", "np.exp({a} @ {b}) - 1", "np.minimum({a} @ x, 1) - np.sum({a}, axis=1)",
)  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_python_runs_layers_whose_largest_element_is_subtracted(name, tmp_path, monkeypatch):
    function = of(f"{SOFTMAX}def f(x, w, v, u, b, c):\n    {LAYERS[name]}\n", tmp_path / "given.py")
    monkeypatch.setattr(first_call, "_AGAIN", -1.0)  # nothing is run again
    numbers = np.random.default_rng(0)
    given = tuple(numbers.normal(size=shape) for shape in ((3, 4), (4, 4), (4, 4), (4, 4), 4, 4))
    np.testing.assert_array_equal(first_call.result_of(function, given), function(*given))
    monkeypatch.setattr(first_call, "enabled", False)
    np.testing.assert_allclose(tm.tensor(function)(*given), function(*given), rtol=1e-12)


def test_rows_whose_exponentials_leave_their_range_are_captured(tmp_path):
    text = "import numpy as np\ndef f(x, w):\n    e = np.exp(x @ w)\n    return e / np.sum(e, axis=1, keepdims=True)\n"
    function = of(text, tmp_path / "given.py")
    x, w = np.ones((3, 4)), np.linspace(0.0, 1.0, 16).reshape(4, 4)
    assert first_call.result_of(function, (x, w)) is not first_call.NOT
    assert first_call.result_of(function, (x, w - 400.0)) is first_call.NOT
    assert first_call.result_of(function, (x, w + 400.0)) is first_call.NOT


def layered(draw: random.Random) -> str:
    """A function of layers, sums of them, and what may lose digits in them."""
    there, lines = ["w", "v", "w"], list[str]()
    for k in range(draw.randint(2, 5)):
        lines.append(f"a{k} = {draw.choice(STEPS).format(a=draw.choice(there), b=draw.choice(there))}")
        there += [f"a{k}"] * 2
    return "import numpy as np\ndef f(w, v, x):\n    " + "\n    ".join([*lines, f"return {there[-1]}"]) + "\n"


@pytest.mark.share(8)
@pytest.mark.parametrize("seed", range(320))
def test_where_rules_see_nothing_in_layers_none_changes_digits(seed, tmp_path, monkeypatch):
    text = layered(random.Random(seed))
    numbers = np.random.default_rng(seed)
    arguments: tuple[Any, ...] = numbers.random((4, 4)), numbers.random((4, 4)), numbers.random(4)
    found = told(text, arguments, tmp_path, monkeypatch)
    if found is None:
        return
    known = ordinary(of(text, tmp_path / "drawn.py"))
    assert known is not None
    if first_call._Rules(known, arguments).see_nothing():
        assert not set(found[1]) - LOOKED_AT, text
