"""What is refused in a ``try`` is refused, though the code catches every error: else its `except` would run where Python's does not."""

from __future__ import annotations

import contextlib
import decimal
import json
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError

LAZY = {
    "texts in order": lambda x: sorted([x.sum(), x.mean()], key=str),
    "compared texts": lambda x: str(x.sum()) < "a",
    "largest text": lambda x: max([f"{v:.1f}" for v in x]),
    "a decimal": lambda x: decimal.Decimal(x[0]),
    "json": lambda x: json.dumps(x[0].item()),
    "an uncaptured function": np.spacing,
    "a key": lambda x: {x.sum(): 1},
    "a method of texts": lambda x: str(x.sum()).split(),
}


def bare(call: Any, x: Any) -> Any:
    try:
        return call(x)
    except:  # noqa: E722 (what is tested)
        return "caught"


def by_class(call: Any, x: Any) -> Any:
    try:
        return call(x)
    except (TypeError, AttributeError, ValueError):
        return "caught"


def suppressed(call: Any, x: Any) -> Any:
    with contextlib.suppress(Exception):
        return call(x)
    return "caught"


def around(call: Any, x: Any) -> Any:
    for _ in range(2):
        try:
            return bare(call, x)
        except Exception:  # noqa: BLE001 (what is tested)
            continue
    return "caught"


@pytest.mark.parametrize("way", [bare, by_class, suppressed, around], ids=lambda w: w.__name__)
@pytest.mark.parametrize("name", LAZY)
def test_a_refusal_is_not_caught(way: Any, name: str) -> None:
    """A call is Python's."""

    def f(x: Any) -> Any:
        return way(LAZY[name], x)

    captured = tm.tensor(f)
    for k in range(2):
        with pytest.raises(CaptureError):
            captured.graph(np.arange(3.0))
        with contextlib.nullcontext() if k else pytest.warns(tm.PlainRunWarning):
            found = captured(np.arange(3.0))
        assert type(found) is type(f(np.arange(3.0)))
        assert str(found) == str(f(np.arange(3.0)))


def test_errors_of_the_users_are_caught() -> None:
    def f(x: Any) -> Any:
        found = []
        for call in (
            lambda: x.nothing,
            lambda: setattr(x, "nothing", 1),
            lambda: x(),
            lambda: x + "a",
            lambda: x["a"],
            lambda: x[7],
        ):
            try:
                call()
            except (AttributeError, TypeError, IndexError) as error:
                found.append(type(error))
        return found

    assert tm.tensor(f)(np.arange(3.0)) == f(np.arange(3.0))
