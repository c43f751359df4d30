"""The first call where a rule for accuracy may be about what Python computes: what loses digits is captured."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture.staging.analysis import lost_digits
from tensormagic.capture.staging.analysis.ordinary import ordinary
from tensormagic.functions.calls import first_call
from tensormagic.functions.calls.function import Function

LOSES = (
    ("np.exp(u)", "- n"), ("1", "- np.cos(u)"), ("np.sqrt(u + 1)", "- np.sqrt(u)"), ("np.sqrt(u)", "- np.sqrt(w)"),
    ("1 / (u + 1)", "- 1 / u"), ("-1 / u", "+ 1 / w"), ("u**2", "- w**2"), ("np.mean(u**2)", "- np.mean(u)**2"),
    ("np.sin(u)", "- u"), ("np.arctan(u)", "- np.arctan(w)"), ("np.tanh(u)", "- 1"), ("u / (u + 1)", "- n"),
    ("np.log(u)", "- np.log(w)"), ("np.exp(u)", "- np.exp(w)"), ("np.exp(u) - 2", "+ np.exp(-u)"),
    ("u", "+ -np.sqrt(u**2 + 1)"), ("u / 3.1", "- 1"), ("u**3", "- w**3"), ("np.log", "(1 + u)"), ("np.log", "(u / w)"),
    ("np.log", "(np.exp(u) + np.exp(w))"), ("np.sqrt", "(u**2 + w**2)"), ("np.exp(u)", "/ np.sum(np.exp(u))"),
    ("1", "/ (1 + np.exp(-u))"), ("(1 + u)", "** 1e8"), ("np.log(u + np.sqrt(u**2 + 1))", "* 1"),
    ("np.std(u)", "- np.std(w)"), ("np.cos(u)", "- np.cos(w)"),
    ("np.add", "(np.sqrt(u + 1), -np.sqrt(u))"), ("np.multiply(u, u)", "- np.multiply(w, w)"),
    ("2 * u**2", "/ w**2"), ("u", "/ (u * u + 1)"), ("np.log", "(np.exp(u) * w)"), ("np.log", "(u + np.sqrt(u**2 + 1))"),
    ("w * (1 + u)", "- w"), ("(u + w) * (u - w)", "- u * u"), ("np.cosh(u)", "- 1"), ("np.sinh(u)", "- np.sinh(w)"),
    ("np.log2", "(1 + u)"), ("np.log10", "(1 - u)"), ("np.square(u)", "- np.square(w)"), ("np.tan(u)", "- np.sin(u)"),
    ("np.cbrt(u)", "- np.cbrt(w)"), ("np.exp2(u)", "- np.exp2(w)"), ("u", "- np.mean(w)"), ("np.sum(u) / 5", "- w"),
    ("np.mean(u * w)", "- np.mean(u) * np.mean(w)"), ("np.sqrt(u)", "- np.sqrt(np.mean(w))"),
)  # fmt: skip
WAYS = (
    "{t} = {e}",
    "{t} = np.zeros_like(x)\n{t}[:] = {e}",
    "{t} = np.zeros_like(x)\n{t} += {e}",
    "for k in range(n):\n    {t} = {e}",
    "if n > 0:\n    {t} = {e}\nelse:\n    {t} = x",
    "{t}w = np.zeros((2, len(x)))\n{t}v = {t}w[1]\n{t}v[:] = {e}\n{t} = {t}w[1]",
    "{t} = same({e})",
    "{t} = x\nj = n\nwhile j > 0:\n    {t} = {e}\n    j -= 1",
    "{t}, {t}o = {e}, x",
    "{t}a = {e}\n{t} = of({t}a, x)",
    "{t} = np.zeros_like(x)\nfill({t}, {e})",
    "{t} = np.zeros_like(x)\nnp.add({t}, {e}, {t})",
    "{t} = np.zeros_like(x)\nnp.add.at({t}, np.arange(5), {e})",
)


pytestmark = pytest.mark.usefixtures("first_calls")


def of(source: str, path: Any) -> Any:
    """The function of a text, in a file of its own."""
    path.write_text(source)
    space: dict[str, Any] = {}
    exec(compile(source, str(path), "exec"), space)
    return space["f"]


def drawn(draw: random.Random) -> str:
    """A function that may lose digits, whose parts go some way through the code."""
    left, right = draw.choice(LOSES)
    lines: list[str] = []

    def through(value: str, name: str) -> str:
        lines.extend(draw.choice(WAYS).format(t=name, e=value).split("\n"))
        return name

    for name, values in (("u", ("x", "x * 2", "y", "x[:]")), ("w", ("y", "x / 2", "c * x"))):
        through(draw.choice(values), name)
    if right[0] in "-+" and draw.random() < 0.8:
        left, right = through(left, "a"), f"{right[0]} {through(right[1:].strip(), 'b')}"
    lines += draw.choice((["r = {}", "return r"], ["r = x * 0", "r += {}", "return r"], ["return {}"]))
    body = "\n    ".join(lines).replace("{}", f"{left} {right}")
    helpers = "def same(p):\n    return p\ndef of(p, q):\n    return p\ndef fill(p, q):\n    p[:] = q\n"
    return f"import numpy as np\n{helpers}def f(x, y, c, n):\n    {body}\n"


@pytest.mark.share(4)
@pytest.mark.parametrize("seed", range(160))
def test_what_loses_digits_is_captured(seed, tmp_path, monkeypatch):
    draw = random.Random(seed)
    function = of(drawn(draw), tmp_path / "drawn.py")
    known = ordinary(function)
    assert known is not None
    numbers = np.random.default_rng(seed)
    x = numbers.random(5) * draw.choice((1, 1, 1e-8, 1e8, 1e4, 30, 1e160))
    y = x * (1 + draw.choice((1e-3, 1e-6, 1e-9)) * numbers.random(5)) if draw.random() < 0.5 else numbers.random(5)
    arguments = (x, y, draw.choice((1, 1.0, 0.5)), draw.choice((1, 1, 2, 3)))
    with np.errstate(all="ignore"):
        found = tm.tensor(function)(*arguments)
        monkeypatch.setattr(first_call, "enabled", False)
        expected = tm.tensor(function)(*arguments)
    assert type(found) is type(expected)
    assert np.asarray(found).dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-300)


LOOKED_AT = {
    "logarithm": ("return np.log(1 + x)", [1.0, 2.0], [1e-9, 1.0]),
    "sigmoid": ("return 1 / (1 + np.exp(-x))", [1.0, 2.0], [-1000.0, 1.0]),
    "softmax": ("e = np.exp(x)\n    return e / np.sum(e)", [1.0, 2.0], [-1000.0, -1001.0]),
    "quotients": ("return 1 / (x + 1) - 1 / x", [1.0, 2.0], [1.0, 1e9]),
    "by items": ("a = np.zeros(2)\n    a[0], a[1] = 1 / (x[0] + 1), 1 / x[0]\n    return a[0] - a[1]", [1.0, 2.0], [1e9, 2.0]),
    "roots": ("y = np.sqrt(x + 1)\n    y -= np.sqrt(x)\n    return y", [1.0, 2.0], [1e14, 1.0]),
    "length": ("y = x + 1\n    return np.sqrt(x * x + y * y)", [1.0, 2.0], [1e160, 1.0]),
    "roots by a call": ("return np.add(np.sqrt(x + 1), -np.sqrt(x))", [1.0, 2.0], [1e14, 1.0]),
    "a negative": ("return np.sqrt(x + 1) + np.negative(np.sqrt(x))", [1.0, 2.0], [1e14, 1.0]),
    "into an array": ("y = np.sqrt(x + 1)\n    np.add(y, -np.sqrt(x), y)\n    return y", [1.0, 2.0], [1e14, 1.0]),
    "through an array": ("y = x * 0\n    np.add(x, 1, y)\n    return np.sqrt(y) - np.sqrt(x)", [1.0, 2.0], [1e14, 1.0]),
    "products by a call": ("y = x + 1\n    return np.multiply(y, y) - np.multiply(x, x)", [1.0, 2.0], [1e14, 1.0]),
    "a product less a factor": ("y = 1 + x[1]\n    return x[0] * y - x[0]", [1.0, 2.0], [1.0, 1e-18]),
    "compounded": ("return np.square(1 + x) - 1.0", [1.0, 2.0], [1e-18, 1.0]),
    "variance": ("return np.mean(x**2) - np.mean(x)**2", [1.0, 2.0], [1e9, 1e9 + 1]),
    "cosine": ("return 1 - np.cos(x)", [1.0, 2.0], [1e-8, 1.0]),
    "a quotient less a number": ("return 1 / (x + 1) - 1", [1.0, 2.0], [1e-18, 1.0]),
    "a power": ("return (1 + x)**1e9", [1e-30, 1e-29], [1e-9, 1e-9]),
    "in a loop": ("for k in range(1):\n        a = np.sqrt(x + 1)\n        b = np.sqrt(x)\n    return a - b", [1.0, 2.0], [1.0, 1e14]),
}  # fmt: skip


MEANS = {
    "by a name": "m = np.mean(x)\n    return x - m",
    "a median": "return np.median(x) - x",
    "a sum over a count": "m = x.sum() / len(x)\n    return x - m",
    "along an axis": "y = x.reshape(2, -1)\n    return y - y.mean(axis=1, keepdims=True)",
}


@pytest.mark.parametrize("name", MEANS)
def test_what_is_centred_is_not_looked_at(name, tmp_path, monkeypatch):
    function = of(f"import numpy as np\ndef f(x):\n    {MEANS[name]}\n", tmp_path / "given.py")
    found = ordinary(function)
    assert found is not None
    assert not found.looks
    x = np.linspace(1e9, 1e9 + 1, 8)
    monkeypatch.setattr(first_call, "enabled", False)
    np.testing.assert_allclose(tm.tensor(function)(x), function(x), rtol=1e-12, atol=1e-6)


@pytest.mark.parametrize("name", LOOKED_AT)
def test_what_is_looked_at(name, tmp_path, monkeypatch, recwarn):
    body, fine, lost = LOOKED_AT[name]
    function = of(f"import numpy as np\ndef f(x):\n    {body}\n", tmp_path / "given.py")
    traced: list[str] = []
    own = Function._specialise
    monkeypatch.setattr(Function, "_specialise", lambda self, *a: (traced.append(self.name), own(self, *a))[1])
    for given, captured in ((fine, name == "a power"), (lost, True)):
        traced.clear()
        x = np.array(given)
        found = tm.tensor(function)(x)
        assert bool(traced) == captured
        if not captured:
            np.testing.assert_array_equal(found, function(x))
    assert not [str(w.message) for w in recwarn]  # what is computed anew has said nothing


def test_stores_are_taken_back_where_digits_are_lost(tmp_path):
    body = "x[0] = 7\n    y = np.sqrt(x + 1) - np.sqrt(x)\n    x[1] = 9\n    return y"
    function = of(f"import numpy as np\ndef f(x):\n    {body}\n", tmp_path / "given.py")
    x = np.full(3, 1e14)
    assert first_call.result_of(function, (x,)) is first_call.NOT
    np.testing.assert_array_equal(x, np.full(3, 1e14))
    found = tm.tensor(function)(x)
    np.testing.assert_array_equal(x, [7, 9, 1e14])
    np.testing.assert_allclose(found[1:], 0.5 / np.sqrt(1e14), rtol=1e-12)


UNIMPORTANT = {
    "until nothing changes": (
        "d = 1.0\n    t = x[0]\n    while abs(d) > 1e-12:\n        d = (t * t - 2) / (2 * t)\n        t = t - d\n    return t"
    ),
    "a small part": "return x + 1e-3 * (np.sqrt(x + 1e12) - np.sqrt(x + 1e12 - 1))",
    "what is stored": "for k in range(3):\n        y = (x[k] / 3 + 1e9) - (x[k] / 3 + 1e9)\n        x[k] = x[k] + 1e-9 * y\n    return x",
    "zeros of squares": "a = np.arange(5) * x[0]\n    return np.sqrt(a**2) + a**2 / x[0]**2 - 9",
}
IMPORTANT = {
    "a sign": "return np.where(np.sqrt(x + 1) - np.sqrt(x) > 0, 1.0, 2.0)",
    "the other sign": "return np.where(np.sqrt(x) - np.sqrt(x + 1) < 0, 1.0, 2.0)",
    "of a number": "d = np.sqrt(x[0] + 1) - np.sqrt(x[0])\n    return 1.0 if d > 0 else 2.0",
    "a count": "k = 0\n    for i in range(len(x)):\n        if np.sqrt(x[i] + 1) - np.sqrt(x[i]) > 0:\n            k += 1\n    return k",
    "zeros that were small": "a = x * 1e-220\n    b = a + 0.5 * a\n    return np.sqrt(a * a + b * b)",
    "what is stored": "y = np.sqrt(x + 1) - np.sqrt(x)\n    x[:] = y\n    return 1",
}  # fmt: skip


@pytest.mark.parametrize("name", UNIMPORTANT)
def test_lost_digits_that_change_nothing(name, tmp_path, monkeypatch):
    function = of(f"import numpy as np\ndef f(x):\n    {UNIMPORTANT[name]}\n", tmp_path / "given.py")
    asked: list[bool] = []
    own = first_call._stands
    monkeypatch.setattr(first_call, "_stands", lambda *a: (asked.append(own(*a)), asked[-1])[1])
    x, given = np.array([1.5, 2, 3]), np.array([1.5, 2, 3])
    found = first_call.result_of(function, (given,))
    np.testing.assert_array_equal(found, function(x))  # to the last bit
    np.testing.assert_array_equal(given, x)
    assert asked == ([] if name == "zeros of squares" else [True])


@pytest.mark.parametrize("name", IMPORTANT)
def test_lost_digits_that_change_something(name, tmp_path):
    function = of(f"import numpy as np\ndef f(x):\n    {IMPORTANT[name]}\n", tmp_path / "given.py")
    x = np.array([1e18, 2e18, 1e18])
    assert first_call.result_of(function, (x,)) is first_call.NOT
    np.testing.assert_array_equal(x, [1e18, 2e18, 1e18])


@pytest.mark.parametrize("sides", ["a.T - a", "a - a.T", "a[::-1] - a", "a - a.reshape(3, 1)"])
def test_what_is_taken_from_itself_has_lost_nothing(sides, tmp_path, monkeypatch):
    body = f"a = np.sqrt(x)[:, None]\n    d = {sides}\n    return 1 / (1 + d * d)"
    function = of(f"import numpy as np\ndef f(x):\n    {body}\n", tmp_path / "given.py")
    monkeypatch.setattr(first_call, "_stands", None)  # so nothing is run again
    x = np.array([1.5, 2, 3])
    np.testing.assert_array_equal(first_call.result_of(function, (x,)), function(x))
    if ".T" in sides:
        assert first_call.result_of(function, (np.array([1.5, 2, 2]),)) is first_call.NOT  # two numbers that are equal


def test_of_what_takes_long_nothing_is_run_again(tmp_path, monkeypatch):
    function = of(f"import numpy as np\ndef f(x):\n    {UNIMPORTANT['a small part']}\n", tmp_path / "given.py")
    assert first_call.result_of(function, (X,)) is not first_call.NOT
    monkeypatch.setattr(first_call, "_AGAIN", -1.0)
    monkeypatch.setattr(first_call, "_ASKED", -1.0)
    assert first_call.result_of(function, (X,)) is first_call.NOT
    monkeypatch.undo()
    monkeypatch.setattr(first_call, "enabled", True)
    monkeypatch.setattr(lost_digits, "_SMALL", 2)
    assert first_call.result_of(function, (X,)) is first_call.NOT


@pytest.mark.parametrize(
    "name", [n for n in LOOKED_AT if n not in {"variance", "by items", "softmax", "a product less a factor"}]
)
def test_large_arrays_are_looked_at_in_parts(name, tmp_path, monkeypatch):
    monkeypatch.setattr(lost_digits, "_BLOCK", 8)
    body, fine, lost = LOOKED_AT[name]
    function = of(f"import numpy as np\ndef f(x):\n    {body}\n", tmp_path / "given.py")
    for way in (slice(None), slice(None, None, 2), slice(None, None, -1)):
        x = np.repeat(np.array(fine), 40)[way]
        assert (first_call.result_of(function, (x,)) is first_call.NOT) == (name == "a power")
        x[len(x) // 2] = max(lost) if max(lost) > 1e6 else min(lost)
        assert first_call.result_of(function, (x,)) is first_call.NOT


X = np.array([1.5, 2, 3])
