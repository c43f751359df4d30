"""A text that a loop adds to, with numbers that depend on data, is given up early, and Python's; one of a few texts is captured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture.staging.loops import fixpoint


def rows(x: Any) -> Any:
    out = ""
    for k, v in enumerate(x):
        out += f"{k}: {v:.2f}\n"
    return out


def either(x: Any) -> Any:
    out = "start"
    for v in x:
        out = out + f" {v:.1f}" if v > 1 else out + "-"
    return out, x.sum()


def halvings(x: Any) -> Any:
    out, v = "", x.sum()
    while v > 1:
        v = v / 2
        out = out + str(v) + ","
    return out


def before(x: Any) -> Any:
    out = ""
    for v in x:
        out = f"{v}{out}"
    return out


def in_a_table(x: Any) -> Any:
    found: dict[str, Any] = {"text": "", "n": 0}
    for v in x:
        found["text"] += f"{v} "
        found["n"] += 1
    return found


def last(x: Any) -> Any:
    text = "none"
    for v in x:
        if v > 2:
            text = f"large {v}"
        elif v > 1:
            text = f"middle {v}"
    return text


def states(x: Any) -> Any:
    state = "red"
    for v in x:
        if v > 0:
            state = "green" if state == "red" else "yellow" if state == "green" else "red"
    return state


GROWING = rows, either, halvings, before, in_a_table


@pytest.mark.parametrize("f", GROWING, ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
def test_a_text_that_grows_is_pythons(f: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[int] = []
    count = fixpoint.texts_among
    monkeypatch.setattr(fixpoint, "texts_among", lambda value: passes.append(count(value)) or passes[-1])
    x = np.array([1.0, 3.0, 2.5])
    made = tm.tensor(f)
    with tm.config.using(tier="numpy"):
        assert made(x) == f(x)
        assert 2 <= len(passes) <= 6  # of twelve each time that the loop is traced
        for given in (x, x[:1], x[:0], x * 2):
            assert made(given) == f(given)


@pytest.mark.parametrize("f", GROWING, ids=lambda f: f.__name__)
def test_what_needs_a_graph_refuses_it(f: Any) -> None:
    with pytest.raises(tm.TensorError):
        tm.compile(f, np.array([1.0, 3.0, 2.5]))


@pytest.mark.parametrize("f", [last, states], ids=lambda f: f.__name__)
def test_one_of_a_few_texts_is_captured(f: Any, recwarn: pytest.WarningsRecorder) -> None:
    made = tm.tensor(f)
    with tm.config.using(tier="numpy"):
        for given in ([1.0, 3.0, 2.5], [1.5], [0.5, -1.0], [3.0, 1.5, 1.0, 4.0]):
            assert made(np.array(given)) == f(np.array(given))
    assert not recwarn.list
