"""Objects of the user's with an ``__array__``: themselves in captured functions, arrays where NumPy meets them."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pytest

import tensormagic as tm


class Signal:
    def __init__(self, samples: Any, rate: float = 10) -> None:
        self.samples = np.asarray(samples)
        self.rate = rate

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.samples if dtype is None else self.samples.astype(dtype)

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.rate

    def scaled(self, k: Any) -> Signal:
        return Signal(self.samples * k, self.rate)


class Odd(Signal):
    """One that goes over other things than its samples."""

    shape = (9, 9)

    def __len__(self) -> int:
        return 100

    def __iter__(self) -> Any:
        return iter("ab")

    def __getitem__(self, k: Any) -> Any:
        return "item", k

    def __contains__(self, value: Any) -> bool:
        return value == "q"

    def __eq__(self, other: object) -> Any:
        return "equal"

    __hash__ = None  # type: ignore[assignment]

    def copy(self) -> str:
        return "copied"

    def tolist(self) -> list[str]:
        return ["none"]


class Made(Signal):
    """One whose array is made when it is asked for."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array([v * 2 for v in self.samples], dtype or float)


READ = {
    "attributes": lambda s: (np.mean(s) * s.rate, s.seconds, isinstance(s, Signal), s.samples[0]),
    "methods": lambda s: np.asarray(s.scaled(2)) + 1,
    "functions": lambda s: (np.sin(s), np.add(s, 1), np.add(1.0, s), np.stack([s, s]), np.array(s), np.max(s), np.dot(s, s)),
    "operands": lambda s: (np.ones(3) * s, np.ones(3) @ s, np.arange(3) + s, np.float64(2) * s),
    "in containers": lambda s: (np.sum([s, s]), {"s": s}["s"].rate),
    "its own": lambda s: (getattr(s, "shape", 0), hasattr(s, "tolist"), hasattr(s, "__len__"), s == 3),
}  # fmt: skip
ODD = {
    "length": len,
    "iteration": list,
    "items": lambda s: (s[0], s[1:]),
    "membership": lambda s: ("q" in s, 1.0 in s),
    "methods": lambda s: (s.copy(), s.tolist(), s.shape),
    "comparisons": lambda s: (s == 1, s == s),  # noqa: PLR0124 (what is tested)
}


@pytest.mark.parametrize("kind", [Signal, Odd, Made])
@pytest.mark.parametrize("name", READ)
def test_an_argument_is_itself_and_numpy_reads_it(name: str, kind: Any) -> None:
    captured, signal = tm.tensor(READ[name]), kind([1.0, 2.0, 4.0])
    for change in ({}, {"rate": 20}, {"samples": np.array([3.0, 1.0, 2.0])}, {}, {"rate": 2.5}):
        vars(signal).update(change)
        assert str(captured(signal)) == str(READ[name](signal))
    signal.samples[0] = 50
    assert str(captured(signal)) == str(READ[name](signal))


@pytest.mark.parametrize("name", ODD)
def test_its_own_methods_are_asked(name: str) -> None:
    captured, signal = tm.tensor(ODD[name]), Odd([1.0, 2.0])
    for _ in range(3):
        assert captured(signal) == ODD[name](signal)
        assert captured(x := Odd([3.0])) == ODD[name](x)


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")  # its array is lazy by then
def test_it_is_given_back_and_changed() -> None:
    def f(signals: list[Signal], k: Any) -> Any:
        signals[0].samples = signals[0].samples * k
        return signals[0], signals, np.sum(signals[0])

    captured, signal = tm.tensor(f), Signal([1.0, 2.0])
    for k in (2.0, 3.0, 0.5):
        expected = signal.samples * k
        given = [signal]
        found, whole, total = captured(given, k)
        assert found is signal
        assert whole is given
        assert float(total) == expected.sum()
        assert np.array_equal(signal.samples, expected)


def test_a_number_of_pythons_does_not_read_it() -> None:
    def f(signal: Any, k: Any) -> Any:
        return signal * k

    for k in (2.0, 3):
        with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \*: 'Signal'"):
            tm.tensor(f)(Signal([1.0]), k)


class Mode(enum.IntFlag):
    A = 1
    B = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 10


def of_members(mode: Mode, level: Level, x: Any) -> Any:
    return (
        (
            mode,
            level,
            mode | Mode.B,
            ~mode,
            mode & Mode.B,
            bool(mode & Mode.B),
            mode in {Mode.A, Mode.B},
            level is Level.HIGH,
        ),
        (x * level, x * mode, level + 1, mode + 1, np.arange(3) * mode, {mode: x}[mode], level.name, int(mode)),
    )


def test_members_of_flags_are_themselves() -> None:
    captured = tm.tensor(of_members)
    for mode in (Mode.A, Mode.B, Mode.A | Mode.B, Mode.A):
        for level in Level:
            for x in (1.5, np.ones(2), 2):
                found, expected = captured(mode, level, x), of_members(mode, level, x)
                assert repr(found) == repr(expected)
                assert [*map(type, found[0])] == [*map(type, expected[0])]
