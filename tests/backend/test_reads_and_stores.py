"""Arrays that are read and stored into, in every order: what is read is what was there then, whichever loops the planner merges."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tests.backend.interpreted import interpreted

BEGINS = (
    "np.arange(9).reshape(3, 3)",
    "w + 1",
    "w.copy()",
    "np.zeros((3, 3))",
    "w * np.arange(3)",
    "np.ones((3, 3)).T * 2",
    "w.T.copy()",
)
READS = (
    "v[k] + 1", "v[k]", "np.cumsum(v, axis=0)", "v @ w", "v[::-1] * 2", "v.sum(axis=0)", "v.sum(axis=1)", "np.sort(v, axis=0)",
    "v.T + v[0, 0]", "np.cumsum(v[k], axis=1)", "v[1:]", "v.max() + v", "v[:, k[0]]", "v[k, k]", "v[k][:, 1:]", "v[1, 2]",
    "np.take_along_axis(v, pairs, 1)", "v[v > 2].sum()", "v[s > 0]", "v[k[0]]", "v[:, 1:] - v[:, :-1]", "v[::-1].T @ v", "v[one]",
    "v.argmax(axis=0)", "np.where(v > 2, v, 0)", "v * s[:, None]", "v[::2, ::-1]", "v[:2].mean()", "v[k[1]:]", "np.outer(v[0], v[1])",
)  # fmt: skip
STORES = (
    "v[k] = 7", "v[k] += 5", "v[k] = v[k] - 3", "v[1:] = v[:-1]", "v[:-1] = v[1:]", "v[:, 1:] = v[:, :-1]", "v[:, 0] = v[0]",
    "v[0] = v[:, 0]", "np.add.at(v, k, 2)", "v += v.T", "v[0] = s.sum() > 1", "v[k] *= v[0]", "v[::2] = v[1::2][0]",
    "v[k, k] = v[k, k] + 1", "v[v > 2] = 0", "v[1, 2] = v[2, 1]", "v[k[0]] = v[k[1]]", "v[one] += 1",
    "np.put_along_axis(v, pairs, 9, 1)", "v[:, ::-1][1] = s", "v[...] = v.T", "v.T[1] = s", "v[1:, 1:] += v[:-1, :-1]",
    "v[2] = v[k[0]] + v[2]", "v *= v[k]", "v[k[1]:] = 3", "v -= v.max(axis=0)", "v[:, k[0]] = v[k[1]]", "v[[0, 1]] = v[[1, 0]]",
    "v[v[:, 0] > 1] -= 1",
)  # fmt: skip
ORDERS = (
    "r = {read}\n    {store}",
    "{store}\n    r = {read}",
    "for j in range(2):\n        r = {read}\n        {store}",
    "r = {read}\n    for j in range(n):\n        {store}",
    "for j in range(n):\n        {store}\n    r = {read}",
    "r = {read}\n    if s[0] > 0:\n        {store}",
    "{store}\n    r = {read}\n    {other}",
    "r = {read}\n    {store}\n    q = {another}\n    {other}",
)


def program(number: int) -> tuple[str, Callable[..., Any]]:
    """A function that reads and stores into an array, and its text."""
    choose = random.Random(number)
    begin, read, store, other, another, order = (
        choose.choice(t) for t in (BEGINS, READS, STORES, STORES, READS, ORDERS)
    )
    body = order.format(read=read, store=store, other=other, another=another)
    text = f"def f(w, s, k, pairs, one, n):\n    v = {begin}\n    q = 0\n    first = v[k] * 2\n    {body}\n    return v, r, q, first\n"
    return text, made(text)


def made(text: str) -> Callable[..., Any]:
    """The function of a text, whose lines can be found."""
    name = f"<{hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space: dict[str, Any] = {"np": np}
    exec(compile(text, name, "exec"), space)
    return space["f"]


def given() -> tuple[Any, ...]:
    """Arguments for a program: places are named twice, by arrays of them."""
    pairs = np.array([[0, 2], [1, 1], [2, 0]])
    return np.arange(9.0).reshape(3, 3) / 2, np.array([1.0, -1, 2]), np.array([0, 2, 0]), pairs, np.int64(1), 2


def assert_alike(f: Callable[..., Any], *args: Any) -> None:
    """Hold a compiled function against Python."""
    for ours, numpys in zip(tm.tensor(f)(*args), f(*args), strict=True):
        assert np.array_equal(ours, numpys)
        assert np.asarray(ours).dtype == np.asarray(numpys).dtype


@pytest.mark.share(3)
@pytest.mark.parametrize("part", range(8))
def test_what_is_read_is_what_was_there_then(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tm.config, "tier", "numba")
    ran = 0
    with interpreted():
        for number in range(40 * part, 40 * part + 40):
            text, f = program(number)
            try:
                f(*given())
            except ValueError:  # this store does not fit this array
                continue
            ran += 1
            try:
                assert_alike(f, *given())
            except tm.CaptureError:  # a store into what may be a view
                continue
            except AssertionError as error:
                raise AssertionError(text) from error
    assert ran > 30


PLAIN = {
    "a gather before a store into a slice": "v = x + 1\n    first = v[k]\n    v[1:] = v[:-1]\n    return v, first",
    "a ramp that is stored into where it is read": "v = np.arange(len(x))\n    v[k] = v[k] - 3\n    return v, v[::-1]",
    "elements of a ramp, twice": "v = np.arange(6)\n    return v[k] * 2, np.cumsum(v[k]), v[k][::-1] + x[:3]",
}


@pytest.mark.parametrize("stop", [-2, -1, 0, 1, 2])
def test_an_array_of_a_size_that_is_computed_is_made_after_that(stop: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where all that goes into it first is one number, which may be computed beside the size."""
    monkeypatch.setattr(tm.config, "tier", "numba")
    joined = made("def f(w, k):\n    return (np.hstack([w, w[:k[-1]]]),)\n")
    assert_alike(joined, np.array([4.0]), np.array([0, stop]))


@pytest.mark.parametrize("body", PLAIN.values(), ids=PLAIN)
def test_machine_code_reads_what_was_there_then(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tm.config, "tier", "numba")
    assert_alike(made(f"def f(x, k):\n    {body}\n"), np.arange(6.0), np.array([0, 0, 3]))
