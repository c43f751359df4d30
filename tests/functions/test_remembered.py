"""What first calls have found out about texts is kept: a text that is known is not looked through, and gives what it has given."""

from __future__ import annotations

import copy
import importlib.util
import itertools
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.compiling import cache
from tensormagic.backend.compiling.messages import Code
from tensormagic.capture.staging.analysis import ordinary as texts
from tensormagic.capture.staging.analysis.ordinary import ordinary
from tensormagic.functions.calls import first_call, remembered_calls
from tests.functions.test_first_looks import drawn, of

_NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def remembers(monkeypatch, tmp_path):
    """Records are kept, in a folder of the test's own; Python runs first calls."""
    monkeypatch.setattr(first_call, "enabled", True)
    monkeypatch.setattr(remembered_calls, "enabled", True)
    monkeypatch.setattr(remembered_calls, "_waiting", {})
    monkeypatch.setattr(tm.config, "cache_folder", tmp_path / "cache")


@pytest.fixture
def asked(monkeypatch):
    """The names of what was done to find out about texts."""
    found: list[str] = []

    def noted(own: Any, name: str) -> Any:
        return lambda *args: (found.append(name), own(*args))[1]

    for module, name in ((texts, "findings_in"), (texts, "_instrumented"), (first_call, "graphs_of")):
        monkeypatch.setattr(module, name, noted(getattr(module, name), name))
    return found


def loaded(folder: Path, text: str, name: str = "f", **space: Any) -> Any:
    """A function by its text, in a file of its own, as a new process has it."""
    path = folder / f"text{next(_NUMBERS)}.py"
    path.write_text("import numpy as np\n" + text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    vars(module).update(space)
    return getattr(module, name)


STENCIL = """
def f(x, dt, n):
    u = x.copy()
    for k in range(n):
        u[1:-1] = u[1:-1] + dt / (1 + u[1:-1] * u[1:-1]) - (u[2:] - u[:-2]) / (2 * dt)
    return u
"""
ROOTS = """
def f(x):
    return np.sqrt(x + 1) - np.sqrt(x)
"""
CALLS = """
def g(u, dt):
    u[1:-1] += (u[2:] - u[:-2]) / dt
    return u[0] / dt

def f(x, dt, n):
    s = 0.0
    for k in range(n):
        s = s - g(x, dt)
    return s
"""
EXPONENTIALS = """
def f(x):
    y = np.exp(x - np.max(x))
    return y / np.sum(y)
"""
BRANCHES = """
def f(x, a):
    for k in range(x.shape[0]):
        if x[k] > 1.0:
            x[k] = a / x[k] - x[k]
        else:
            x[k] -= a * a
    return x
"""
NOTHING = """
def f(x, n):
    for k in range(n):
        x = 0.5 * (x - 0.25 * x)
    return x
"""
X = np.linspace(0.5, 2.5, 24)
CASES = {
    "a stencil": (STENCIL, (X, 0.01, 3)),
    "roots": (ROOTS, (X,)),
    "functions that are called": (CALLS, (X, 0.5, 4)),
    "exponentials": (EXPONENTIALS, (X,)),
    "branches": (BRANCHES, (X, 2.0)),
    "nothing to look at": (NOTHING, (X, 3)),
    "numbers of 32 bits": (STENCIL, (X.astype(np.float32), np.float32(0.01), 3)),
    "a matrix": (BRANCHES.replace("x[k] > 1.0", "x[k, 0] > 1.0"), (X.reshape(6, 4), 2.0)),
}


def called(function: Any, args: tuple[Any, ...]) -> list[Any]:
    """What a first call gives and leaves."""
    given = copy.deepcopy(args)
    with np.errstate(all="ignore"):
        return [tm.tensor(function)(*given), *given]


def known(function: Any, args: tuple[Any, ...]) -> remembered_calls.Memory:
    """What is known of the texts of a call."""
    found = ordinary(function)
    assert found is not None
    memory = remembered_calls.memory_of(found, args)
    assert memory is not None
    return memory


def assert_same(one: list[Any], other: list[Any]) -> None:
    for a, b in zip(one, other, strict=True):
        assert type(a) is type(b)
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("text", "args"), CASES.values(), ids=CASES)
def test_a_known_text_is_not_looked_through_again(tmp_path, asked, text, args):
    before = called(loaded(tmp_path, text), args)
    remembered_calls.write()
    assert asked
    asked.clear()
    assert_same(called(loaded(tmp_path, text), args), before)  # of another file
    assert not asked


@pytest.mark.parametrize(
    "change",
    [
        {"text": STENCIL.replace("dt / (1", "dt / (2")},
        {"text": STENCIL.replace("- (u[2:]", "+ (u[2:]")},
        {"text": "\n" + STENCIL},
        {"args": (X, 0.01, 4)},
        {"args": (X.astype(np.float32), 0.01, 3)},
        {"args": (X.reshape(8, 3), 0.01, 3)},
        {"args": (X.reshape(24, 1), 0.01, 3)},
        {"args": (X, np.float64(0.01), 3)},
        {"level": "stable without algebra"},
    ],
    ids=str,
)
def test_what_decides_a_record_names_it(tmp_path, change):
    called(loaded(tmp_path, STENCIL), (X, 0.01, 3))
    remembered_calls.write()
    assert known(loaded(tmp_path, STENCIL), (X, 0.01, 3)).kept is not None
    with tm.config.using(math=change.get("level", "stable")):
        function = loaded(tmp_path, change.get("text", STENCIL))
        assert known(function, change.get("args", (X, 0.01, 3))).kept is None


def test_what_a_name_means_names_a_record(tmp_path):
    text = "from math import sin, cos\nc = 2.0\ndef g(x):\n    return x / c\ndef h(x):\n    return x * c\ndef f(x):\n    return c - g(x)\n"

    def key(**space: Any) -> str:
        return known(loaded(tmp_path, text, **space), (X,)).key

    assert key() == key()
    assert key(c=2.0) == key()
    assert key(c=3.0) != key()
    assert key(c=2) != key()
    other = loaded(tmp_path, text, "h")
    other.__name__ = "g"
    assert key(g=other) != key()


def test_loops_of_one_iteration_are_asked_about_anew(tmp_path, asked):
    lines = (
        "for k in range(m):",
        "    a, b = np.sqrt(x + 1), np.sqrt(x)",
        "    x = a * 1.0",
        "    x = x - b",
        "return x",
    )
    text = "def f(x, m):\n    " + "\n    ".join(lines)
    args = 1e12 + X, 1
    function = loaded(tmp_path, text)
    expected = called(function, args)
    remembered_calls.write()
    assert_same(called(loaded(tmp_path, text), args), expected)
    assert_same(called(loaded(tmp_path, text), (1e12 + X, np.int64(1)))[:1], expected[:1])


def test_what_loses_digits_is_captured_where_the_text_is_known(tmp_path):
    large = (1e15 * X,)
    exact = 1 / (np.sqrt(large[0] + 1) + np.sqrt(large[0]))
    for _ in range(2):
        np.testing.assert_allclose(called(loaded(tmp_path, ROOTS), large)[0], exact, rtol=1e-12)
        np.testing.assert_allclose(called(loaded(tmp_path, ROOTS), (X,))[0], np.sqrt(X + 1) - np.sqrt(X), rtol=1e-12)
        remembered_calls.write()


def test_rules_are_asked_when_the_process_ends_where_the_call_has_not(tmp_path, asked):
    lines = "z = x / y", "for k in range(3):", "    z[1:] = 0.5 * z[1:] + x[1:] / y[1:] - z[:-1] * y[1:]", "return z"
    text = "def f(x, y):\n    " + "\n    ".join(lines)
    args = 3 * X, X
    called(loaded(tmp_path, text), args)
    assert "graphs_of" not in asked
    remembered_calls.write()
    assert "graphs_of" in asked
    asked.clear()
    assert known(loaded(tmp_path, text), args).verdicts


@pytest.mark.parametrize("damage", [b"", b"no record", b"\x00" * 40])
def test_a_damaged_record_is_none(tmp_path, damage):
    expected = called(loaded(tmp_path, STENCIL), (X, 0.01, 3))
    memory = known(loaded(tmp_path, STENCIL), (X, 0.01, 3))
    cache.write(memory.key, Code("first call", damage, 0.0))
    remembered_calls._records.cache_clear()  # as in a new process
    assert known(loaded(tmp_path, STENCIL), (X, 0.01, 3)).kept is None
    assert_same(called(loaded(tmp_path, STENCIL), (X, 0.01, 3)), expected)


def test_copies_are_of_the_file_that_is_there(tmp_path):
    text = "def f(x, y):\n    for k in range(3):\n        x[1:] -= np.sum(y) / x[:-1]\n    return x\n"
    called(loaded(tmp_path, text), (X, 2 * X))
    remembered_calls.write()
    function = loaded(tmp_path, text)
    kept = known(function, (X, 2 * X)).kept
    assert kept is not None
    assert kept.copies
    for code in kept.copies.values():
        assert code.co_filename == function.__code__.co_filename
        assert {c[0] for c in code.co_consts if isinstance(c, tuple) and len(c) == 3} <= {code.co_filename}


@pytest.mark.parametrize("records", [0, 1])
def test_no_record_is_named_or_read_before_there_is_one(tmp_path, monkeypatch, records):
    """Nor in a call that notes one: names are made of whole texts, and files are opened."""
    if records:
        called(loaded(tmp_path, ROOTS), (X,))
        remembered_calls.write()
    named: list[str] = []
    read: list[str] = []
    own = remembered_calls.source.text_of
    monkeypatch.setattr(remembered_calls.source, "text_of", lambda code: (named.append(code.co_name), own(code))[1])
    monkeypatch.setattr(remembered_calls.cache, "read", read.append)
    called(loaded(tmp_path, STENCIL), (X, 0.01, 3))
    assert len(named) == records
    assert not read
    assert remembered_calls._waiting


@pytest.mark.share(4)
@pytest.mark.parametrize("seed", range(160))
def test_what_loses_digits_is_captured_as_before(seed, tmp_path, monkeypatch):
    draw = random.Random(seed)
    text = drawn(draw)
    numbers = np.random.default_rng(seed)
    x = numbers.random(5) * draw.choice((1, 1, 1e-8, 1e8, 1e4, 30, 1e160))
    y = x * (1 + draw.choice((1e-3, 1e-6, 1e-9)) * numbers.random(5)) if draw.random() < 0.5 else numbers.random(5)
    args = (x, y, draw.choice((1, 1.0, 0.5)), draw.choice((1, 1, 2, 3)))
    found: list[Any] = []
    for name in ("one.py", "other.py"):
        found.append(called(of(text, tmp_path / name), args)[0])
        remembered_calls.write()
    monkeypatch.setattr(first_call, "enabled", False)
    expected = called(of(text, tmp_path / "captured.py"), args)[0]
    for one in found:
        assert type(one) is type(expected)
        np.testing.assert_allclose(one, expected, rtol=1e-9, atol=1e-300)
