"""Loops, branches, calls and tapes as plain NumPy: gradients as text give what the graph gives, without the package."""

from __future__ import annotations

import numpy as np
import pytest

import tensormagic as tm
from tensormagic import session
from tensormagic.backend.numpy_tier.text import numpy_source
from tests.capture.harness import cell

X = np.array([1.0, 2.0, -0.5])
CASES = {
    "a loop that stores": (
        (
            "a, s = np.zeros(20), 0.0\na[0] = 1.2\nfor t in range(1, 20):\n    s = s - 0.05 * (k * np.sin(a[t - 1]) + c * s)\n"
            "    a[t] = a[t - 1] + 0.05 * s\nloss = np.sum(a**2)"
        ),
        {"k": 9.0, "c": 0.4},
    ),
    "a while loop": ("z = a\nwhile abs(z * z - a) > 1e-12:\n    z = (z + a / z) / 2\nloss = z", {"a": 2.0}),
    "a branch": ("if x.sum() > 0:\n    loss = np.sum(x**2)\nelse:\n    loss = np.sum(np.abs(x))", {"x": X}),
    "a break": (
        "s = 0.0\nfor k in range(50):\n    s = s + w * k\n    if s > 10:\n        break\nloss = s * w",
        {"w": 0.7},
    ),
    "a list": (
        "rows = []\nfor k in range(5):\n    rows.append(np.sin(w * k))\nloss = np.sum(np.stack(rows) ** 2)",
        {"w": X},
    ),
    "a stencil": (
        (
            "p = np.zeros((6, 6))\np[0] = hot\nfor _ in range(9):\n    p[1:-1, 1:-1] += 0.25 * (p[:-2, 1:-1] - 3 * p[1:-1, 1:-1])\n"
            "loss = p[3, 3] + p.sum()"
        ),
        {"hot": 100.0},
    ),
    "steps of descent": (
        "def cost(w): return np.mean(np.log(1 + np.exp(-w * x)))\nfor k in range(4):\n    w = w - lr * tm.grad(cost)(w)\nloss = cost(w)",
        {"lr": 0.5, "w": 0.1, "x": X},
    ),
    "indices": ("y = np.zeros(4)\ny[[2, 0, 3]] = x\nloss = np.sum(y**3) + np.take(x, [0, 0, 1]).sum() ** 2", {"x": X}),
    "helpers": ("loss = np.prod(x) + np.sum(np.convolve(x, x)) + np.sum(np.maximum.accumulate(x))", {"x": X}),
    "triangles": ("A = np.outer(x, x) + np.eye(3)\nloss = np.sum(np.linalg.cholesky(A)) + np.linalg.det(A)", {"x": X}),
}


@pytest.mark.parametrize("title", CASES)
def test_a_gradient_is_plain_numpy(title: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tm.config, "tier", "numpy")
    source, given = CASES[title]
    loss = cell(
        source, {**{n: v.copy() if isinstance(v, np.ndarray) else v for n, v in given.items()}, "np": np, "tm": tm}
    ).outputs["loss"]
    gradient = loss.grad(next(iter(given)))
    text = gradient.code("numpy")
    assert "tensormagic" not in text
    space: dict[str, object] = {}
    exec(text, space)
    closed = session.close_over([gradient.node], use_values=False)
    found = space["f"](*map(session.value_of, closed.leaves))
    np.testing.assert_allclose(found, gradient.numpy(), rtol=1e-12)
    assert np.any(gradient.numpy())


@pytest.mark.parametrize("given", [np.full(5, 2.0), "float64[n]"], ids=["fixed", "open"])
def test_sizes_that_the_text_was_not_made_for_are_refused(given) -> None:
    graph = tm.trace(lambda x: x.sum() if len(x) > 1 else x.prod(), given)
    space: dict[str, object] = {}
    exec(numpy_source(graph), space)
    assert space["f"](np.full(5, 2.0)) == 10.0
    if isinstance(given, str):
        assert space["f"](np.full(9, 2.0)) == 18.0
    else:
        with pytest.raises(ValueError, match="do not have"):
            space["f"](np.full(9, 2.0))
