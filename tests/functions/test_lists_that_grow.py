"""Lists of data-dependent length in captured functions: parts, comparisons, texts; and what is printed beside them, once, in order."""

from __future__ import annotations

import dataclasses
import linecache
from typing import Any, NamedTuple

import numpy as np
import pytest

import tensormagic as tm

# tests named elsewhere

GROW = {
    "comprehension": "L = [v * 2 for v in x if v > 1]",
    "floats": "L = [float(v) for v in x if v > 1]",
    "loop": "L = []\nfor v in x:\n    if v > 1:\n        L.append(v)",
    "rows": "L = [x[:2] * v for v in x if v > 1]",
    "branches": "L = []\nif x[1] > 1: L.append(x[1])\nif x[2] > 1: L.append(x[2])\nif x[3] > 1: L.append(x[3])",
    "empty": "L = [v for v in x if v > 1e9]",
}
USE = {
    "printed": "print(L); print('of', L, [L], {'L': L}, (L, 1), sep='|'); return len(L)",
    "parts": "return L[1:], L[:1], L[::-1], L[-1:], L[9:], L[::2]",
    "parts of parts": "M = L[1:]; print(M, len(M), M[1:]); return M, len(M[1:])",
    "no elements": "return L == [], L != [], [] == L, L[9:] == [], not L, len(L) == 0",
    "raised": "if x[0] < 9: raise ValueError(L)\nreturn x",
    "raised at once": "raise ValueError('found', L, len(L))",
    "raised at once in a text": "if len(x) == 5: raise ValueError(f'found {L} and {x[0]:.3f}')\nreturn x",
    "caught": "try:\n    raise ValueError(f'found {L}')\nexcept ValueError:\n    return len(x)",
    "raised in a text": "if x[0] < 9: raise ValueError(f'found {L}, {len(L)}')\nreturn x",
    "looped over": "s = 0.0\nfor v in L[1:]:\n    s = s + np.sum(v)\nreturn s",
}
PRINTS = {
    "branches": "L = []\nif x[1] > 1:\n    L.append(x[1]); print('a', L)\nif x[2] > 1:\n    L.append(x[2]); print('b', L)\n"
    "if x[3] > 1:\n    L.append(x[3]); print('c', L)\nprint('end')\nreturn L, L[1:]",
    "loop": "L = []\nfor v in x:\n    if v > 1:\n        L.append(v); print('a', v, L)\nreturn np.array(L)[1:]",
    "sizes": "n = 0\nif x[1] > 1:\n    n += 1; print('a', n)\ny = x[:n]\nif y.sum() > 1:\n    n += 1; print('b', y)\nreturn x[:n], y",
    "nested": "n = 0\nif x[1] > 1:\n    print('a')\n    if x[2] > 2:\n        n += 2; print('b', x[:n])\n"
    "    else:\n        n += 1; print('c')\n"
    "    print('d', n)\nif x[n] > 0:\n    print('e', x[:n])\nreturn x[:n]",
    "while": "L = [x[0]]\nwhile sum(L) < 20:\n    L.append(L[-1] + 2)\n    if len(L) > 2: print('many', len(L))\nprint(L)\nreturn L[1:]",
    "checks": "L = []\nif x[1] > 1:\n    L.append(x[1]); print('a')\nassert x[0] < 5, L\n"
    "if x[2] > 1:\n    L.append(x[2]); print('b')\nreturn L[1:]",
}


def function(text: str) -> Any:
    """The function ``f(x)`` with a body, of a text that has its source."""
    body = "def f(x):\n" + "".join(f"    {line}\n" for line in text.splitlines())
    name = f"<lists {hash(body)}>"
    linecache.cache[name] = len(body), None, body.splitlines(keepends=True), name
    space: dict[str, Any] = {"np": np}
    exec(compile(body, name, "exec"), space)
    return space["f"]


def told(body: Any, printed: pytest.CaptureFixture[str]) -> list[Any]:
    """What calls give, raise and print."""
    found: list[Any] = []
    for x in (np.arange(5.0), np.arange(5.0) + 1, np.arange(5.0)[::-1].copy(), np.arange(5.0)):
        try:
            result: Any = body(x)
        except Exception as error:  # noqa: BLE001 (whatever it is, it has to be Python's)
            result = (type(error), str(error))
        found += [repr(result), printed.readouterr().out]
    return found


@pytest.mark.parametrize("use", USE)
@pytest.mark.parametrize("grow", GROW)
def test_a_list_that_grows_is_a_list(grow: str, use: str, capsys: pytest.CaptureFixture[str]) -> None:
    plain = function(f"{GROW[grow]}\n{USE[use]}")
    expected = told(plain, capsys)
    assert told(tm.tensor(plain), capsys) == expected


@pytest.mark.parametrize("text", PRINTS.values(), ids=PRINTS)
def test_what_is_printed_before_a_branch_is_printed_once(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    plain = function(text)
    expected = told(plain, capsys)
    assert told(tm.tensor(plain), capsys) == expected


@pytest.mark.parametrize(
    "use",
    [
        "return L == [1.0]",
        "return L == L[1:]",
        "return str(L)",
        "return f'{L}'",
        "return '%s' % L",
        "return [L] == [[1.0]]",
    ],
)
def test_what_is_no_list_yet_refuses(use: str) -> None:
    with pytest.raises(tm.CaptureError):
        tm.tensor(function(f"{GROW['loop']}\n{use}")).graph(np.arange(4.0))


def test_gradients_go_through_parts_of_lists() -> None:
    plain = function("L = [v * v for v in x if v > 1]\nreturn sum(L[1:]) + np.sum(np.array(L[::2]))")
    np.testing.assert_array_equal(tm.grad(plain)(np.arange(5.0)), [0, 0, 4, 6, 16])


RAISED = [
    "raise ValueError(f'bad {x.sum()}')",
    "raise ValueError(x[0], x)",
    "raise KeyError('%.3f' % x[0])",
    "assert len(x) == 1, f'{x[1]:.2f}'",
]


@pytest.mark.parametrize("line", RAISED)
def test_an_error_that_shapes_decide_tells_of_data(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The text of the error was that of a pattern: ``bad {}``."""
    plain = function(f"print('first')\nif x.ndim == 1:\n    {line}\nreturn x")
    assert told(tm.tensor(plain), capsys) == told(plain, capsys)
    with pytest.raises((ValueError, KeyError, AssertionError, tm.CaptureError)) as met:
        tm.grad(plain)(np.arange(3.0))
    assert "{}" not in str(met.value)


def test_a_text_that_is_not_known_yet_is_that_of_each_call() -> None:
    text = "try:\n    raise ValueError(f'bad {x.sum()}')\nexcept ValueError as error:\n    return str(error)"
    captured = tm.tensor(function(text))
    assert [captured(np.arange(n)) for n in (3.0, 4.0, 3.0)] == ["bad 3.0", "bad 6.0", "bad 3.0"]


@pytest.mark.parametrize("kind", ["KeyError", "TypeError", "AttributeError", "IndexError"])
def test_a_call_that_raises_has_printed_once(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A KeyError of the user's own was taken for one of looking up the call, which then ran again."""
    plain = function(f"print('begins', x[0])\nif x[0] < 1:\n    raise {kind}('small')\nprint('ends')\nreturn x * 2")
    assert told(tm.tensor(plain), capsys) == told(plain, capsys)


@dataclasses.dataclass
class Run:
    values: list
    count: int = 0


@dataclasses.dataclass(frozen=True)
class Both:
    values: list
    more: dict


@dataclasses.dataclass
class Outer:
    inner: Run
    pair: tuple


class Pair(NamedTuple):
    values: list
    total: float


def in_a_record(x):
    run = Run([])
    for v in x:
        if v > 3:
            run.values.append(v * 2)
    return run


def counted_in_a_record(x):
    run, s = Run([]), 0.0
    while s < 10:
        s = s + x[1]
        run.values.append(s)
        run.count += 1
    return run


def in_a_named_tuple(x):
    values = []
    for v in x:
        if v > 3:
            values.append(v)  # noqa: PERF401 (it is what is tested)
    return Pair(values, x.sum())


def in_a_frozen_record(x):
    values, more = [], {"a": []}
    for v in x:
        if v > 3:
            values.append(v)
            more["a"].append(v * 2)
    return Both(values, more)


def within_records(x):
    outer = Outer(Run([]), ([], 2))
    for v in x:
        if v > 3:
            outer.inner.values.append(v)
            outer.pair[0].append(v)
    return outer


def in_records_of_a_list(x):
    return [Run([v for v in x if v > k]) for k in range(3)]


RECORDS = [
    in_a_record, counted_in_a_record, in_a_named_tuple, in_a_frozen_record, within_records, in_records_of_a_list,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
@pytest.mark.parametrize("length", [6, 200])
@pytest.mark.parametrize("program", RECORDS, ids=lambda p: p.__name__)
def test_lists_in_records_are_lists(program, length):
    x = np.arange(float(length))
    function = tm.tensor(program)
    for _ in range(3):
        assert repr(function(x)) == repr(program(x))
