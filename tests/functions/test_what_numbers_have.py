"""Attributes that arrays have and numbers of Python's have not; classes of errors that code asks for while it handles them."""

from __future__ import annotations

import contextlib
import sys
import traceback
from typing import Any, Self

import numpy as np
import pytest

import tensormagic as tm

_OF_MEMORY = {"ctypes", "data", "device", "getfield", "flags", "base", "strides", "mT"}
NAMES = [n for n in dir(np.ndarray) if not n.startswith("_") and n not in _OF_MEMORY]
VALUES = [1.5, 3, True, 2j, np.float64(2.5), np.int64(3), np.arange(3.0), np.arange(2)]


def has(x: Any, name: str) -> str:
    try:
        getattr(x, name)
    except AttributeError as error:
        return str(error)
    return "there"


def read(x: Any) -> Any:
    found = []
    for value in (x, x + x, x * 2, -x):
        try:
            found.append(value.shape)
        except AttributeError as error:
            found.append(str(error))
        try:
            found.append(value.sum() * 2)
        except AttributeError:
            found.append(value * 2)
        found.append(value.dtype.kind if hasattr(value, "dtype") else "none")
    return found


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_number_of_pythons_has_what_it_has(value: Any) -> None:
    captured = tm.tensor(has)
    unlike = {n: (captured(value, n), has(value, n)) for n in NAMES if captured(value, n) != has(value, n)}
    assert not unlike
    if not isinstance(value, bool):
        reads = tm.tensor(read)
        for _ in range(2):
            assert str(reads(value)) == str(read(value))


@pytest.mark.parametrize("data", [(1.0, 2.0), (3.0, 2.0), (-1.0, 0.0)])
def test_where_data_say_whose_number_it_is_the_graph_raises(data: tuple[float, ...]) -> None:
    def largest(x: Any) -> Any:
        best = 2.5
        if x[0] > best:  # noqa: PLR1730 (what is tested)
            best = x[0]
        return best.sum() + 1

    captured, x = tm.tensor(largest), np.array(data)
    for _ in range(2):
        if data[0] > 2.5:
            assert captured(x) == largest(x)
            continue
        with pytest.raises(AttributeError, match="'float' object has no attribute 'sum'"):
            captured(x)


class Keeping:
    def __enter__(self) -> Self:
        self.seen: list[Any] = []
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:  # noqa: PYI036 (it has one)
        self.seen.append((kind.__name__, kind.__mro__, type(error) is kind, str(error)))
        return True


def by_info(call: Any, x: Any) -> Any:
    try:
        call(x)
    except Exception:  # noqa: BLE001 (what is tested)
        kind, error, _ = sys.exc_info()
        return kind, type(error), str(error), traceback.format_exc().splitlines()[-1]


def by_manager(call: Any, x: Any) -> Any:
    with Keeping() as keeping:
        call(x)
    return keeping.seen


def by_generator(call: Any, x: Any) -> Any:
    seen: list[Any] = []

    @contextlib.contextmanager
    def noting() -> Any:
        try:
            yield
        except Exception as error:  # noqa: BLE001 (what is tested)
            seen.append((type(error).__name__, repr(error), {type(error): 1}, traceback.format_exception_only(error)))

    with noting():
        call(x)
    return seen


def by_cause(call: Any, x: Any) -> Any:
    try:
        try:
            call(x)
        except Exception as error:
            raise RuntimeError("again") from error
    except RuntimeError as error:
        return type(error.__cause__), repr(error.__cause__), type(error.__context__).__mro__


CALLS = {
    "product": lambda x: x @ np.ones(7),
    "sum": lambda x: x + np.ones(7),
    "shape": lambda x: x.reshape(7),
    "index": lambda x: x[7],
    "key": lambda x: x["a"],
    "axis": lambda x: x.sum(axis=4),
    "joined": lambda x: np.concatenate([x, np.ones((2, 2))]),
    "inverse": lambda x: np.linalg.inv(x),
    "dtype": lambda x: np.bitwise_and(x, 1.0),
    "alone": lambda x: x.item(),
    "called": lambda x: x(),
    "empty": lambda x: x[:0].max(),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("way", [by_info, by_manager, by_generator, by_cause], ids=lambda w: w.__name__)
def test_errors_are_of_numpys_classes_to_who_handles_them(way: Any, name: str) -> None:
    captured = tm.tensor(lambda x: way(CALLS[name], x))
    for _ in range(2):
        assert captured(np.arange(3.0)) == way(CALLS[name], np.arange(3.0))
