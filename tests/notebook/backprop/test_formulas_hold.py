"""Formulas on the arrows: computed as Python, they give what flows back there."""

from __future__ import annotations

import numpy as np
import pytest

from tensormagic.notebook.backprop.sheet import Sheet
from tensormagic.notebook.backprop.subject import of_function

RANDOM = np.random.default_rng(0)
X, W, V = RANDOM.normal(size=(6, 3)), RANDOM.normal(size=(3, 4)), RANDOM.normal(size=6)


def softmax(X, W):
    logits = X @ W
    e = np.exp(logits)
    p = e / np.sum(e, axis=1, keepdims=True)
    return -np.mean(np.log(p[:, 0]))


def logistic(X, W, v):
    z = X @ W[:, 0] + v
    return np.mean(np.log(1 + np.exp(-z)))


def standard(X):
    n = (X - X.mean(axis=0)) / X.std(axis=0)
    return np.sum(np.tanh(n) ** 2)


def quotients(v):
    s = np.sqrt(1 + v**2)
    q = -s * (v / (s * s)) - 3 / v
    return np.sum(q**3) / np.sum(s)


def rectified(X, W):
    a = np.maximum(X @ W, 0)
    b = np.minimum(a, 0.5)
    return np.sum(b * a)


NAMES = ("sum", "mean", "std", "exp", "log", "sqrt", "tanh", "outer", "where", "maximum", "minimum")
NAMES = {name: getattr(np, name) for name in NAMES}


def formulas(function, args):
    """The formulas that stand on arrows, with the numbers that they are of and what flows back there."""
    sheet = Sheet(of_function(function, args))
    found = sheet.passes.run(list(args))
    known = {n.heading.partition(" = ")[0]: found.values[n.node] for n in sheet.nodes}
    for use, part in zip(sheet.uses, found.parts, strict=True):
        if use.in_words and part is not None:
            yield use.formula, known | {"adjoint": found.adjoints[sheet.nodes[use.target].node]}, np.asarray(part)


@pytest.mark.parametrize(
    ("function", "args", "least"),
    [(softmax, (X, W), 6), (logistic, (X, W, V), 5), (standard, (X,), 6), (quotients, (V,), 8)],
)
def test_a_formula_is_what_flows_back(function, args, least):
    checked = 0
    for formula, known, part in formulas(function, args):
        if "zeros" in formula or "·" in formula or "[" in formula:
            continue
        bare = formula.removesuffix(", repeated")
        made = eval(bare.replace("×", "*").replace("−", "-"), {}, NAMES | known)
        assert bare == formula or np.size(made) < part.size
        made = np.reshape(made, part.shape) if np.size(made) == part.size else np.broadcast_to(made, part.shape)
        np.testing.assert_allclose(made, part, rtol=1e-10, err_msg=formula)
        checked += 1
    assert checked >= least


def test_the_larger_of_two_is_told_in_words():
    texts = {formula: (known, part) for formula, known, part in formulas(rectified, (X, W))}
    known, part = texts["adjoint where X @ W > 0, half where equal"]
    np.testing.assert_allclose(np.where(known["X"] @ known["W"] > 0, known["adjoint"], 0), part)
    known, part = texts["adjoint where a < 0.5, half where equal"]
    np.testing.assert_allclose(np.where(known["a"] < 0.5, known["adjoint"], 0), part)
