"""What the texts of functions tell of the rules for accuracy: where nothing is seen, captured code has the digits of Python's."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture.staging.analysis.lost_digits import Looks
from tensormagic.capture.staging.analysis.ordinary import ordinary
from tensormagic.capture.staging.analysis.overflows import may_run_over
from tensormagic.functions.calls import first_call
from tensormagic.session import programs
from tensormagic.transform.rewriting.themes.overflows_of_folds import BEYOND_FOLDS
from tensormagic.transform.rewriting.users.trial import changes_digits
from tests.functions.test_first_looks import LOSES, drawn, of

PARTS = (
    "x",
    "y",
    "x[i]",
    "y[i]",
    "x[1]",
    "x[i - 1]",
    "np.roll(x, 1)",
    "v[i]",
    "c",
    "c * x",
    "a",
    "x[::-1]",
    "v",
    "s",
    "n",
    "x * y",
)
LINES = (
    "a = a + {e}", "v = v + x", "x[1:-1] = x[1:-1] * {e}", "x[i] = x[i] + {e}", "x[0] = x[0] + x[1]", "y[:] = y - {e}", "y += {e}",
    "s += {e}", "s = s * {e}", "a = a + np.sum(step(x, c))", "x[-1] = 0", "fill(y, y + {e})", "v = v - {e}", "v[1:] = v[1:] + x[:-1]",
    "c = c * 0.5", "a, s = a * {e}, s + {e}", "x[1:-1] = x[1:-1] + c * (x[2:] - 2 * x[1:-1] + x[:-2])", "y = y / {e}",
)  # fmt: skip
BLOCKS = (
    "for i in range({r}):", "for i in range({r}):", "for i in range(1, len(x) - 1):", "for i in range(3, 0, -1):", "while n > 0:",
    "if c > 0.7:", "if n > 1:", "for j in range({r}):",
)  # fmt: skip


def looped(draw: random.Random) -> str:
    """A function with loops that hand something on, and with what may lose digits in them."""

    def part() -> str:
        return draw.choice(PARTS)

    def expression() -> str:
        if draw.random() < 0.5:
            left, right = draw.choice(LOSES)
            u, w = part(), part()
            text = f"{left} {right}"
            return "".join(u if t == "u" else w if t == "w" else t for t in _tokens(text))
        return draw.choice(
            ("{0} - {1}", "{0} * {1}", "{0} + {1} / 3.1", "np.sqrt({0} + 1)", "{0} / {1}", "np.exp({0})", "{0}")
        ).format(part(), part())

    def block(depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(draw.randint(1, 3)):
            if depth < 2 and draw.random() < 0.4:
                head = draw.choice(BLOCKS).format(r=draw.choice(("1", "2", "3", "n", "len(x) - 2", "0")))
                inside = [f"    {line}" for line in block(depth + 1)]
                ends = {"while n > 0:": ["    n -= 1"], "while s < 3.0:": ["    s = abs(s) + 1.0"]}
                lines += [head, *inside, *ends.get(head, [])]
            else:
                lines.append(draw.choice(LINES).format(e=expression()))
        return lines

    body = ["i, s, a = 1, 0.5, x * 2", "v = np.zeros_like(x)", *block(0), *block(0), "return x, y, a, s, v, c"]
    helpers = "def step(p, q):\n    return p * q - p / (q + 1)\ndef fill(p, q):\n    p[:] = q\n"
    return f"import numpy as np\n{helpers}def f(x, y, c, n):\n    " + "\n    ".join(body) + "\n"


MEANS = ("np.mean", "np.sum", "np.std", "np.var", "np.max", "np.min")
AXES = (
    "",
    ", axis=0",
    ", axis=0, keepdims=True",
    ", axis=1, keepdims=True",
    ", 0",
    ", axis=(0, 1)",
    ", axis=-1, keepdims=True",
)


def folded(draw: random.Random) -> str:
    """A function with sums and means of tables, and of sums and means, and with what may lose digits in them."""
    lines: list[str] = []
    there = ["w", "x", "w * x", "w[1:2]", "w[:, :2]", "w[n]", "y * w", "y", "w - x", "w.T", "x[None, :]"]

    def part() -> str:
        return draw.choice(there)

    for k in range(draw.randint(2, 6)):
        what, name = draw.random(), f"a{k}"
        if what < 0.45:
            of = part()
            inner = draw.choice(
                ("{0}", "{0}", "{0} * {0}", "{0}**2", "np.exp({0})", "{0} * {1}", "np.log({0})", "np.abs({0})")
            )
            value = f"{draw.choice(MEANS)}({inner.format(of, part())}{draw.choice(AXES)})"
            lines.append(f"{name} = {value}")
        else:
            left, right = draw.choice(LOSES)
            u, v = part(), part()
            text = (
                f"{left} {right}"
                if what < 0.8
                else draw.choice(("u - w", "u / w", "np.log(u) - w", "np.exp(u - w)", "u - w * w"))
            )
            text = text.replace("/ 5", "/ n")
            lines.append(
                f"{name} = " + "".join(f"({u})" if t == "u" else f"({v})" if t == "w" else t for t in _tokens(text))
            )
        there.append(name)
        there.append(name)
    results = ", ".join(dict.fromkeys(draw.choices([n for n in there if n.startswith("a")], k=2)))
    return "import numpy as np\ndef f(w, x, y, n):\n    " + "\n    ".join([*lines, f"return {results}"]) + "\n"


def _tokens(text: str) -> list[str]:
    found, word = list[str](), ""
    for letter in f"{text} ":
        if letter.isalnum() or letter in "._":
            word += letter
            continue
        found += [word, letter]
        word = ""
    return found


def told(text: str, arguments: tuple[Any, ...], folder: Any, monkeypatch: Any) -> tuple[bool, list[str]] | None:
    """Whether rules see nothing, by the text; and which have changed digits of captured code. None where neither runs it."""
    function = of(text, folder / "drawn.py")
    known = ordinary(function)
    if known is None or not known.looks:
        return None
    rules = first_call._Rules(known, arguments)
    fired: list[str] = []
    own = programs.rewrite

    def rewrite(*args: Any, **options: Any) -> Any:
        done = own(*args, **options)
        ours = [
            f.rule for f in done.fired if not (f.rule in BEYOND_FOLDS and may_run_over(known.reached))
        ]  # that is seen in a run
        fired.extend(r.name for r in ours if not r.neutral and changes_digits(r))
        return done

    monkeypatch.setattr(programs, "rewrite", rewrite)
    monkeypatch.setattr(first_call, "enabled", False)
    try:
        with np.errstate(all="ignore"):
            known.asking(itertools.repeat(True), blind(), rules.shorts)(*_copies(arguments))
            tm.tensor(function)(*_copies(arguments))
    except Exception:  # noqa: BLE001 (of shapes that do not fit)
        return None
    return rules.see_nothing() and not rules.squares, fired


def blind() -> dict[str, Any]:
    """What looks at a run, where nothing that it sees matters."""
    looks = Looks()
    looks.free = looks.blind = True
    return looks.names()


def _copies(arguments: tuple[Any, ...]) -> list[Any]:
    return [v.copy() if isinstance(v, np.ndarray) else v for v in arguments]


@pytest.mark.share(8)
@pytest.mark.parametrize("seed", range(320))
def test_where_rules_see_nothing_in_sums_and_means_none_changes_digits(seed, tmp_path, monkeypatch):
    draw = random.Random(seed)
    text = folded(draw)
    found = told(text, tables(draw, seed), tmp_path, monkeypatch)
    if found is not None and found[0]:
        assert not found[1], text


def tables(draw: random.Random, seed: int) -> tuple[Any, ...]:
    """Arguments of a folded function."""
    numbers = np.random.default_rng(seed)
    w, x = numbers.random((4, 4)), numbers.random(4)
    return w, x, numbers.random(draw.choice(((4, 1), (1, 4), (4, 4)))), draw.choice((1, 2))


@pytest.mark.share(8)
@pytest.mark.parametrize("seed", range(320))
@pytest.mark.parametrize("kind", [drawn, looped], ids=["straight", "loops"])
def test_where_rules_see_nothing_none_changes_digits(kind, seed, tmp_path, monkeypatch):
    draw = random.Random(seed)
    text = kind(draw)
    x = np.random.default_rng(seed).random(5)
    arguments = x, x * 1.001 if draw.random() < 0.5 else x + 1, draw.choice((1, 1.0, 0.5)), draw.choice((1, 1, 2, 3))
    found = told(text, arguments, tmp_path, monkeypatch)
    if found is not None and found[0]:
        assert not found[1], text


def test_loops_of_one_iteration_are_noted_however_they_run(tmp_path):
    loops = "    for k in range(1):\n        x = x + 1\n    for k in range(2):\n        x = x / 3.1 - 1\n"
    text = f"import numpy as np\ndef f(x):\n{loops}    return x\n"
    function = of(text, tmp_path / "given.py")
    known = ordinary(function)
    assert known is not None
    for look in ({}, blind()):
        shorts: dict[tuple[str, int], int] = {}
        known.asking(itertools.repeat(True), look, shorts)(np.ones(2))
        assert shorts == {(str(tmp_path / "given.py"), 3): 1}


def test_where_rules_see_nothing_python_runs_the_first_call(tmp_path):
    text = "import numpy as np\ndef f(x, n):\n    for k in range(n):\n        x[1:] = x[1:] / 3.1 - x[:-1] / 3.1\n    return x\n"
    function = of(text, tmp_path / "given.py")
    x = np.full(5, 1 / 3)
    expected = function(x.copy(), 3)
    np.testing.assert_array_equal(
        first_call.result_of(function, (x, 3)), expected
    )  # 0 but for the first one: all digits are lost
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("line", ["x = x + 2 ** -n", "x = x + 10**30 * n", "x = x / (n - n)", "x = x * abs(-n)"])
def test_numbers_that_python_computes(line, tmp_path):
    text = f"import numpy as np\ndef f(x, n):\n    {line}\n    return np.sqrt(x + 1) - np.sqrt(x)\n"
    known = ordinary(of(text, tmp_path / "given.py"))
    assert known is not None
    assert not first_call._Rules(known, (np.ones(3), 2)).see_nothing()


@pytest.mark.parametrize(
    ("body", "nothing"),
    [
        ("for k in range(n):\n        s = s / 3.1 - x[k] / 3.1", True),
        ("for k in range(n):\n        s = s / 3.1 - x[::-1] / 3.1", False),
        ("for k in range(n):\n        y[k] = x[k] / 3.1 - s / 3.1\n        s = y[k - 1]", False),
    ],
    ids=["a number stays one", "a number becomes an array", "of an array of its own"],
)
def test_numbers_in_loops(body, nothing, tmp_path):
    text = f"import numpy as np\ndef f(x, n):\n    s, y = 0.5, np.zeros_like(x)\n    {body}\n    return s, y\n"
    known = ordinary(of(text, tmp_path / "given.py"))
    assert known is not None
    assert first_call._Rules(known, (np.ones(4), 3)).see_nothing() == nothing


PART = "def part(x, n):\n    y = x\n    for k in range(n):\n        y = np.exp(x)\n    return y\n"
SEEN = {
    "one iteration, its number": "for k in range(1, 2):\n        y = np.exp(x) - k\n    return y",
    "one iteration, its number afterwards": "for k in range(1):\n        y = np.exp(x)\n    return y - k - 1",
    "none one time, and one another time": "a = part(x, 0)\n    return part(x, 1) - 1 + a",
    "an integer of NumPy's": "return np.exp(x) - m",
    "a size that is 1": "return np.exp(x) - len(y)",
    "a real part": "return np.log(1 + z.real)",
    "both parts": "return np.sqrt(z.real**2 + z.imag**2)",
    "an outer product": "return 1 / np.outer(x, x) - 1 / (x[:, None] * x)",
    "stored into a row": "b = np.zeros((3, 4))\n    b[0, :] = np.sqrt(x + 1)\n    return b[0] - np.sqrt(x)",
    "stored into all axes": "b = np.zeros((3, 4))\n    b[:, :] = np.sqrt(x + 1)\n    return b - np.sqrt(x)",
    "a sum of one element": "return np.sqrt(x + 1) - np.sqrt(np.sum(x[:, None], axis=1))",
    "a mean of one element": "return np.sqrt(x + 1) - np.sqrt(x[:, None].mean(axis=-1))",
    "a difference of means": "a = np.mean(w * w, axis=1)\n    return a - np.mean(w, axis=1) ** 2",
    "in a mean of sums": "return np.mean(np.log(np.sum(np.exp(w), axis=1)))",
    "cubes of variances": "return x**3 - np.var(w, axis=1, keepdims=True)**3",
    "a logarithm of a deviation": "return np.log(np.std(w, axis=1, keepdims=True))",
    "of what has been added up": "s = w.sum(axis=1)\n    return np.sum(np.sqrt(s + 1) - np.sqrt(s), axis=0)",
    "stored up to the end": "b = np.zeros(4)\n    b[:len(x)] = np.sqrt(x + 1)\n    return b - np.sqrt(x)",
}  # fmt: skip
ALIKE = (
    "x[i - 1], x[j]", "x[len(x) - 1], x[-1]", "x[x.shape[0] - 2], x[-2]", "x[1 + i], x[i + 1]", "x[0], x[k]",
    "x[n % 2], x[1]", "x.ravel(), x", "x[1:][0], x[1]", "x[1:][1:], x[2:]", "x[:-1][1:], x[1:][:-1]",
    "x[1:-1][-1], x[-2]", "x[::-1][::-1], x", "x[:, None], x.reshape(-1, 1)", "x[0:3], x[:3]", "x[2:len(x)], x[2:]",
    "np.flip(x), x[::-1]", "x[np.argmax(x)], x[x.argmax()]", "np.arange(5), np.arange(5)", "w.T.T, w",
    "w.T, np.transpose(w)", "w[1, :], w[1]", "w[1][2], w[1, 2]", "w[1:, 1:], w[1:][:, 1:]", "w[..., 1], w[:, 1]",
    "w[:, None], w[:, None, :]", "w.sum(), np.sum(np.sum(w, 0))", "len(x) * x, x.shape[0] * x", "w[:, :], w",
)  # fmt: skip


def sees(body: str, tmp_path: Any, monkeypatch: Any) -> tuple[bool, list[str]] | None:
    """What is told of a function of some lines, and what rules do to it."""
    x, y, w = np.linspace(0.1, 0.9, 4), np.ones(1), np.linspace(0.1, 0.9, 16).reshape(4, 4)
    small = "y, " if "len(y)" in body else ""
    text = f"import numpy as np\n{PART}def f(x, {small}w, z, n, m):\n    i, k = 2, 0\n    j = i - 1\n    {body}\n"
    arguments = x, *([y] if small else []), w, x + 1j * x[::-1], 3, np.int64(1)
    return told(text, arguments, tmp_path, monkeypatch)


@pytest.mark.parametrize("name", SEEN)
def test_what_is_seen(name, tmp_path, monkeypatch):
    found = sees(SEEN[name], tmp_path, monkeypatch)
    assert found is not None
    assert found[1]  # so there is something to see
    assert not found[0]


@pytest.mark.parametrize("head", ["with np.errstate(all='ignore'):", "for k in range(1):"])
def test_what_a_block_gives_is_seen(head, tmp_path, monkeypatch):
    found = sees(f"{head}\n        return np.exp(x) - 1", tmp_path, monkeypatch)
    assert found is not None
    assert not found[0]


@pytest.mark.parametrize("pair", ALIKE)
def test_one_part_that_is_written_in_two_ways(pair, tmp_path, monkeypatch):
    one, other = _halves(pair)
    for u, v in ((one, other), (other, one)):
        found = sees(f"return np.log({u} + np.sqrt({v} * {v} + 1)) - 1 / (3 + {u})", tmp_path, monkeypatch)
        assert found is not None
        assert not (found[0] and found[1])


def _halves(pair: str) -> tuple[str, str]:
    """The two parts of which one is written before and one after a comma that is in no bracket."""
    depth = 0
    for k, letter in enumerate(pair):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and not depth:
            return pair[:k], pair[k + 1 :].strip()
    raise AssertionError


@pytest.mark.parametrize(
    "body",
    [
        "x[i, 1:-1] = (x[i, 2:] - x[i, 1:-1]) / 3.1 + (x[i, 1:-1] - x[i, :-2]) / 3.1",
        "x[1:-1, 1:-1] = (x[1:-1, 2:] - 2 * x[1:-1, 1:-1] + x[1:-1, :-2]) / 3.1",
        "y[i, j] = x[i, j] / 3.1 - x[i, j - 1] / 3.1",
        "z = 4 * x[1:-1, 1:-1] - (x[2:, 1:-1] + x[:-2, 1:-1])\n        y[2:-1, 1:-1] = x[2:-1, 1:-1] - n * (z[1:] - z[:-1]) / 3.1",
    ],
)
def test_rules_see_nothing_in_stencils(body, tmp_path):
    text = f"import numpy as np\ndef f(x, y, n):\n    j = 2\n    for i in range(1, n):\n        {body}\n    return x\n"
    known = ordinary(of(text, tmp_path / "given.py"))
    assert known is not None
    assert first_call._Rules(known, (np.ones((5, 5)), np.ones((5, 5)), 4)).see_nothing()


@pytest.mark.parametrize("what", ["np.sqrt(a * a + 1)", "a / (a * a + c * c)"])
def test_where_squares_run_over_the_call_is_captured_though_differences_do_not_matter(what, tmp_path):
    text = f"import numpy as np\ndef f(x, c):\n    a = x - x.mean()\n    return {what}\n"
    function = of(text, tmp_path / "given.py")
    small = np.linspace(0.0, 1.0, 2**12) + 1e7  # the differences lose digits
    assert first_call.result_of(function, (small, 0.5)) is not first_call.NOT
    assert first_call.result_of(function, (small * 1e160, 0.5)) is first_call.NOT


OF_NUMBERS = {
    "a quotient": "return d * y / (h * h + k * k)",
    "a power": "return d * y / (2 * (h**2 + k**2))",
    "before a loop": "s = h * h + k * k\n    for i in range(n):\n        e[1:] = d[1:] * y[1:] / s\n    return e",
    "in a loop": "for i in range(n):\n        e = d * y / (h * h + k * k)\n    return e",
    "in a function": "for i in range(n):\n        e = d * y / over(h, k)\n    return e",
    "of what a function is given": "for i in range(n):\n        fill(e, d, y, h, k)\n    return e",
    "in a branch": "if n > 1:\n        e = d * y / (h * h + k * k)\n    return e",
}
FUNCTIONS = """import numpy as np
def over(h, k):
    return h * h + k * k
def fill(e, d, y, h, k):
    e[1:] = d[1:] * y[1:] / (h * h + k * k)
"""


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_where_squares_are_of_pythons_numbers_these_alone_are_looked_at(name, tmp_path):
    text = f"{FUNCTIONS}def f(x, y, h, k, n):\n    d = x - x.mean()\n    e = 0 * x\n    {OF_NUMBERS[name]}\n"
    function = of(text, tmp_path / "given.py")
    x, y = np.linspace(0.0, 1.0, 2**12) + 1e7, np.linspace(1.0, 2.0, 2**12)  # the differences lose digits
    y[7] = 1e-295  # near the end of its range
    np.testing.assert_array_equal(first_call.result_of(function, (x, y, 0.5, 0.25, 2)), function(x, y, 0.5, 0.25, 2))
    assert first_call.result_of(function, (x, y, 1e180, 0.25, 2)) is first_call.NOT
    assert first_call.result_of(function, (x, y, 1e-180, 1e-190, 2)) is first_call.NOT


@pytest.mark.parametrize(
    "made",
    ["np.full(len(x), h)", "np.full_like(x, h)", "np.array(h) + 0 * x", "np.reshape(h, (1,))", "np.float64(h) + 0 * x"],
)
def test_numbers_that_are_put_into_arrays_are_looked_at_there(made, tmp_path):
    text = f"import numpy as np\ndef f(x, h, k):\n    d, a = x - x.mean(), {made}\n    return d / (a * a + k * k)\n"
    function = of(text, tmp_path / "given.py")
    x = np.linspace(0.0, 1.0, 2**12) + 1e7
    assert first_call.result_of(function, (x, 1e180, 0.25)) is first_call.NOT


NORMAL = """
def normal(a):
    m = np.mean(a, axis=0, keepdims=True)
    return (a - m) / np.sqrt(np.std(a, axis=0, keepdims=True) + 1e-5)
"""


@pytest.mark.parametrize(
    "body",
    [
        "return normal(w)",
        "return normal(np.maximum(normal(w), 0))",
        "return normal(np.sum(w[:, :, None] * x, axis=1))",
        "a = normal(np.sum(w[:, :, None] * x, axis=1))\n    return normal(np.sum(np.maximum(a, 0)[:, 1:, None] * x, axis=1))",
        "for i in range(3):\n        w[:, i] = np.sum(w * b, axis=1)\n    return normal(w)",
        "m = w.mean(axis=1)\n    return (w - m[:, None]) / np.std(w, axis=1)[:, None]",
    ],
    ids=["once", "twice", "of sums", "of sums of such", "of what a loop stores", "with axes added"],
)
def test_rules_see_nothing_in_what_is_normalised(body, tmp_path, monkeypatch):
    text = f"import numpy as np\n{NORMAL}def f(w, x, b):\n    {body}\n"
    w = np.linspace(0.1, 0.9, 16).reshape(4, 4)
    assert told(text, (w, np.ones(4), np.linspace(0.1, 0.9, 4)[:, None]), tmp_path, monkeypatch) == (True, [])


@pytest.mark.parametrize(
    "body", ["return w - b[0]", "return w * len(b.T) - w", "return w @ b - w", "b[:] = w[:, :1]\n    return b"]
)
def test_axes_of_one_element_are_seen_as_such_or_not_told(body, tmp_path):
    text = f"import numpy as np\ndef f(w, b):\n    c = np.log(w) - w\n    {body}, c\n"
    known = ordinary(of(text, tmp_path / "given.py"))
    assert known is not None
    told = first_call._Rules(known, (np.ones((4, 4)), np.ones((4, 1)))).see_nothing()
    assert told == ("b[:]" in body)


def test_what_is_folded_of_one_element_is_noted_however_it_is_written(tmp_path):
    body = "x = x[:1]\n    return np.sum(x), x.mean(axis=0), np.exp(x).max() - 1, np.sum(y), np.amin(x)"
    text = f"import numpy as np\ndef f(x, y):\n    {body}\n"
    function = of(text, tmp_path / "given.py")
    known = ordinary(function)
    assert known is not None
    x, y = np.linspace(0.1, 0.9, 4), np.ones(2)
    for look in ({}, blind()):
        shorts: dict[tuple[Any, ...], int] = {}
        found = known.asking(itertools.repeat(True), look, shorts)(x, y)
        assert found == pytest.approx(function(x, y))
        assert {place[2] for place in shorts} == {11, 22, 38, 70}


def test_integers_of_many_digits_are_no_error_of_the_first_call(tmp_path):
    text = "import numpy as np\ndef f(x, n):\n    return np.sqrt(x + 1) - np.sqrt(x) * n\n"
    known = ordinary(of(text, tmp_path / "given.py"))
    assert known is not None
    assert not first_call._Rules(known, (np.ones(3), 10**30)).see_nothing()
