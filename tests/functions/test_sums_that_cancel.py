"""Sums of products that cancel, over several statements and through the user's own functions: a first call has the digits of later ones."""

from __future__ import annotations

import ast
import random
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.functions.calls import first_call
from tests.functions.test_first_looks import of

HELPERS = """
def one(a):
    return 1 + a
def two(a):
    b = one(a)
    return b
def plus(a, b):
    return a + b
def minus(a, b):
    return a - b
def times(a, b):
    return a * b
def scaled(a, b):
    c = times(a, b)
    return c
def put(o, a):
    o[:] = a
"""
WHOLE = (
    "p * (1 + r) - p", "p + p * r - p", "(p + r) * 2 - 2 * p", "(1 + r) * (1 + r) - 1", "(p + r) * (p - r) - p * p",
    "p * (q + r) - p * q", "(1 + r) * (1 - r) - 1", "p * q + r - p * q", "2 * (p + r) - p - p", "(p + r) * q - q * p",
    "p * (1 + r) * q - p * q", "p - p * (1 - r)", "(p * q + r) * p - p * p * q", "1 - (1 - r) * (1 - r)", "p + r * p * q - p",
)  # fmt: skip


pytestmark = pytest.mark.usefixtures("first_calls")


def drawn(draw: random.Random) -> str:
    """A function whose sum cancels, some of whose parts are names of their own or results of functions."""
    lines: list[str] = []
    calls = {ast.Add: "plus", ast.Sub: "minus", ast.Mult: draw.choice(("times", "scaled"))}

    def text(node: ast.expr) -> str:
        if not isinstance(node, ast.BinOp):
            return ast.unparse(node)
        left, right = text(node.left), text(node.right)
        kind = type(node.op)
        if draw.random() < 0.35:
            is_next = kind is ast.Add and left == "1"
            made = f"{draw.choice(('one', 'two'))}({right})" if is_next else f"{calls[kind]}({left}, {right})"
        else:
            made = f"({left} {'+' if kind is ast.Add else '-' if kind is ast.Sub else '*'} {right})"
        way = draw.random()
        if way < 0.3:
            name = f"t{len(lines)}"
            lines.append(f"{name} = {made}")
            return name
        if way < 0.4:
            name = f"t{len(lines)}"
            lines.append(f"{name} = np.zeros(3); put({name}, {made})")
            return name
        if way < 0.5 and kind is not ast.Mult:
            name = f"t{len(lines)}"
            lines.append(f"{name} = {left} + np.zeros(3); {name} {'+' if kind is ast.Add else '-'}= {right}")
            return name
        return made

    whole = draw.choice(WHOLE).replace("p", draw.choice(("p", "p", "p[1]")))
    parsed = ast.parse(whole, mode="eval").body
    result = text(parsed)
    body = "\n    ".join([*lines, f"return {result}"])
    return f"import numpy as np\n{HELPERS}\ndef f(p, q, r):\n    {body}\n"


@pytest.mark.share(8)
@pytest.mark.parametrize("seed", range(400))
def test_sums_that_cancel(seed, tmp_path, monkeypatch):
    draw = random.Random(seed)
    text = drawn(draw)
    p = np.array([1.7, 1.1, 0.3])
    arguments: Any = np.stack([p + 1, p]) if "p[1]" in text else p, draw.choice((1.3, np.array([0.7, 1.9, 2.3]))), 1e-9
    found = tm.tensor(of(text, tmp_path / "given.py"))(*arguments)
    monkeypatch.setattr(first_call, "enabled", False)
    expected = tm.tensor(of(text, tmp_path / "again.py"))(*arguments)
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=0, err_msg=text)


NAMED = ("add", "multiply", "less", "square", "dot", "norm", "sum", "mean", "abs", "log1p")


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("body", ["a + b", "a * b", "1 + a"])
def test_functions_of_the_users_that_are_called_like_others(name, body, tmp_path, monkeypatch):
    text = f"import numpy as np\ndef {name}(a, b):\n    return {body}\ndef f(p, r):\n    t = p * {name}(r, p * r)\n    return p + t - p\n"
    arguments = np.array([1.7, 1.1]), 1e-9
    found = tm.tensor(of(text, tmp_path / "given.py"))(*arguments)
    monkeypatch.setattr(first_call, "enabled", False)
    expected = tm.tensor(of(text, tmp_path / "again.py"))(*arguments)
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=0)


NEGATED = {
    "times a negative number": ("def g(y): return y * -1.0", "p * p + g(p) * p * (1 - 2.0**-40)"),
    "negated": ("def g(y): return -y", "p * p + g(p) * p * (1 - 2.0**-40)"),
    "subtracted": ("def g(y): return 0 - y", "p * p * (1 - 2.0**-40) + g(p) * p"),
    "two calls deep": (
        "def h(y): return -y\ndef g(y): return h(y) * p0\np0 = 1.0",
        "p * p * (1 - 2.0**-40) + g(p) * p",
    ),
    "added elsewhere": ("def g(a, b): return a + b", "g(p * p, p * -(1 - 2.0**-40) * p)"),
}


@pytest.mark.parametrize("name", NEGATED)
def test_what_one_function_negates_and_another_adds(name, tmp_path, monkeypatch):
    helper, body = NEGATED[name]
    text = f"import numpy as np\n{helper}\ndef f(p):\n    return {body}\n"
    x = np.array([1.0, -2.0, 0.5, 3.0, 0.1, 7.0])
    found = tm.tensor(of(text, tmp_path / "given.py"))(x)
    monkeypatch.setattr(first_call, "enabled", False)
    expected = tm.tensor(of(text, tmp_path / "again.py"))(x)
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=0)
