"""Texts of members of enumerations and of numbers and texts with classes of their own: those of Python, wherever they are held."""

import enum
from types import SimpleNamespace
from typing import Any

import pytest

import tensormagic as tm

pytestmark = pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")


class Mode(enum.IntEnum):
    SLOW = 1
    FAST = 5


class Key(enum.StrEnum):
    A = "alpha"


class Right(enum.IntFlag):
    READ = 4
    WRITE = 2


class Colour(enum.Enum):
    RED = 1


class Told(enum.Enum):
    X = 1

    def __str__(self) -> str:
        return f"told {self.name.lower()}"


class Mixed(str, enum.Enum):  # noqa: UP042 (its text is another one)
    B = "beta"


class Name(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return f"Name {str(self)!r}"


class Degrees(float):
    def __str__(self) -> str:
        return f"{float(self):.1f} deg"

    def radians(self) -> float:
        return float(self) * 0.017


class Shown(int):
    @property
    def text(self) -> str:
        return f"<{int(self)}>"


VALUES = [
    Mode.FAST, Key.A, Right.READ | Right.WRITE, Right.READ, Colour.RED, Told.X, Mixed.B, Name("n"), Degrees(2.5), Shown(3),
]  # fmt: skip


def _formed(v: Any, x: float) -> str:
    return f"{v} {x}"


def _both(v: Any, x: float) -> str:
    return f"{v!s:>12}|{v!r}|{x:.1f}"


def _called(v: Any, x: float) -> Any:
    return str(v), repr(v), format(v), "%s %r" % (v, v), x  # noqa: UP031 (what is tested)


def _method(v: Any, x: float) -> str:
    return "{} {!r} {}".format(v, v, x)  # noqa: UP032 (what is tested)


def _printed(v: Any, x: float) -> None:
    print(v, x)
    print([v], {"k": v})


def _branch(v: Any, x: float) -> str:
    return f"{v} up" if x > 0 else f"{v} down"


def _loop(v: Any, x: float) -> str:
    text = ""
    for _ in range(3):
        text += f"{v};"
    return text + f"{x}"


@pytest.mark.parametrize("value", VALUES, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("function", [_formed, _both, _called, _method, _printed, _branch, _loop])
def test_texts_are_pythons(function: Any, value: Any, capsys: pytest.CaptureFixture[str]) -> None:
    captured = tm.tensor(function)
    held = tm.tensor(lambda o, x: function(o.v, x))
    item = tm.tensor(lambda d, x: function(d["k"], x))
    for x in (1.5, -2.0):
        wanted = function(value, x), capsys.readouterr().out
        for call in (
            lambda x: captured(value, x),
            lambda x: held(SimpleNamespace(v=value), x),
            lambda x: item({"k": value}, x),
        ):
            assert (call(x), capsys.readouterr().out) == wanted


def test_numbers_keep_the_methods_of_their_class() -> None:
    assert tm.tensor(lambda v, x: v.radians() * x)(Degrees(2.5), 2.0) == Degrees(2.5).radians() * 2.0
    assert type(tm.tensor(lambda v, x: v)(Degrees(2.5), 2.0)) is Degrees
    assert tm.tensor(lambda o, x: o.v.text)(SimpleNamespace(v=Shown(3)), 2.0) == "<3>"
    assert tm.tensor(lambda vs, x: [v.radians() + x for v in vs])([Degrees(1.0), Degrees(2.0)], 1.0) == [1.017, 1.034]
    with pytest.raises(tm.DTypeError, match="with operators and methods of its own"):
        tm.grad(lambda v: v * v)(Degrees(2.5))
