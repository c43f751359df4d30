"""One of several texts, functions or unlike values, data-dependent; and texts with numbers in them."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.functions.calls import first_call

X = np.array([3.0, 1.0, 4.0, 1.0, 5.0])
FUNCTIONS: list[Callable[[float], Any]] = []


class Kind(enum.Enum):
    HIGH = 1
    LOW = 2


def case(f: Callable[[float], Any]) -> Callable[[float], Any]:
    FUNCTIONS.append(f)
    return f


@case
def text_of_two(x: float) -> Any:
    return "high" if x > 0 else "low"


@case
def text_of_three(x: float) -> Any:
    if x > 1:
        s = "high"
    elif x > -1:
        s = "middle"
    else:
        s = "low"
    return (
        s,
        s.upper() + "!",
        len(s),
        s[0],
        s[::-1],
        "i" in s,
        s in ("high", "low"),
        s == "low",
        s != "low",
        s > "l",
        s * 2,
    )


@case
def weight_by_a_text(x: float) -> Any:
    kind: str = "high" if x > 0 else "low"
    return {"high": 2.0, "low": 0.5}[kind] * x if len(kind) > 2 else 0.0


@case
def text_that_may_be_none(x: float) -> Any:
    s = None
    if x > 0:
        s = "high"
    return s, s is None, s is not None, bool(s), s or "nothing", isinstance(s, str)


@case
def empty_text(x: float) -> Any:
    s = ""
    if x > 0:
        s = "high"
    return (1 if s else 0), not s, s or "none"


@case
def method_of_a_text_that_may_be_none(x: float) -> Any:
    s = "high" if x > 0 else None
    return s.upper()  # type: ignore[union-attr]  (an error, as in Python)


@case
def number_or_text(x: float) -> Any:
    return x**0.5 if x > 0 else "no root"


@case
def tuples_of_two_lengths(x: float) -> Any:
    return (x, "high") if x > 1 else (x, x * 2, None) if x > -1 else [x]


@case
def dictionaries_of_two_forms(x: float) -> Any:
    return {"root": x**0.5} if x > 0 else {}


@case
def functions(x: float) -> Any:
    def double(v: float) -> float:
        return v * 2

    def half(v: float) -> float:
        return v / 2

    f = double if x > 0 else half
    g = np.sin if x > 0 else np.cos
    return f(x) + 1, g(x)


@case
def function_with_an_effect(x: float) -> Any:
    done = []

    def high(v: float) -> float:
        print("high", v)
        return v

    def low(v: float) -> float:
        print("low", v)
        return -v

    done.append((high if x > 0 else low)(x))
    return done


@case
def enumerations(x: float) -> Any:
    kind = Kind.HIGH if x > 0 else Kind.LOW
    return 1 if kind == Kind.HIGH else 2


@case
def state_of_a_loop(x: float) -> Any:
    state, n = "idle", 0
    for v in (x, x + 1, x - 3, x * 2, x - 1):
        if state == "idle" and v > 1:
            state, n = "running", n + 1
        elif state == "running" and v < 0:
            state = "stopped"
    return state, n


@case
def state_of_a_while(x: float) -> Any:
    k, status = 0, "searching"
    while status == "searching":
        x, k = x * 1.5, k + 1
        if x > 20:
            status = "large"
        elif k >= 6:
            status = "gave up"
    return status, k


@case
def name_of_the_largest(x: float) -> Any:
    names, scores = ["ann", "bob", "cid"], np.array([x, 1.0, -x])
    return names[int(np.argmax(scores))], names[np.argmin(scores) - 3]


@case
def index_out_of_range(x: float) -> Any:
    return ["a", "b"][int(x)]


@case
def matched(x: float) -> Any:
    match "high" if x > 0 else "low":
        case "high":
            return x
        case _:
            return -2 * x


@case
def formatted(x: float) -> Any:
    percent = "%.1f|%5d" % (x, 3)  # noqa: UP031 (as people write it)
    return f"{x:.2f} and {x + 1!r}", percent, "{:+.3e}".format(x), str(x)  # noqa: UP032 (as above)


@case
def texts_joined(x: float) -> Any:
    return ", ".join(f"{v:.1f}" for v in (x, x * 2)) + ("." if x > 0 else "!")


@case
def texts_by_branches(x: float) -> Any:
    if x > 0:
        return f"high {x}"
    return f"low {-x:.1f} {x}"


@case
def text_of_a_text(x: float) -> Any:
    s = "high" if x > 0 else "low"
    print(s, f"{s}: {x}")
    return f"{x} is {s}", "is %s" % s  # noqa: UP031 (as people write it)


@case
def raised(x: float) -> Any:
    s = "high" if x > 0 else "low"
    if s == "low":
        raise ValueError(f"{x} is {s}")
    return s


def text_of_an_error(error: Exception) -> str:
    """What it says, without the hint."""
    return str(error).partition("\n")[0]


def outcome(f: Any, x: float, told: Any) -> Any:
    """What a call gives, in Python's own notation, and what it prints; of an error the class and the text."""
    try:
        found = f(x)
    except ValueError as error:
        found = "ValueError", text_of_an_error(error)
    except IndexError as error:
        found = "IndexError", text_of_an_error(error)
    except AttributeError as error:
        found = "AttributeError", text_of_an_error(error)
    return repr(found), told.readouterr().out


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_one_of_several(f: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_call, "enabled", False)
    g = tm.tensor(f)
    for x in (2.0, -0.5, -2.0):
        assert outcome(g, x, capsys) == outcome(f, x, capsys)


def test_a_text_is_of_the_array_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_call, "enabled", False)

    def f(x: Any) -> Any:
        y = x.copy()
        s = f"{y}"
        y[0] = 7.0
        return s, f"{[y[0], x[1]]}"

    assert tm.tensor(f)(X) == f(X)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: len(f"{x}"),
        lambda x: f"{x}" == "2.0",
        lambda x: {("a" if x > 0 else "b"): x},
        lambda x: sorted("ab" if x > 0 else "cd"),
        lambda x: ("a" if x > 0 else "b") is Kind.__name__,
        lambda x: int(f"{x:.0f}"),
        lambda x: type("a" if x > 0 else 1.0),
        lambda x: f"{x:{'.1f' if x > 0 else '.2f'}}",
        lambda x: np.array(["a" if x > 0 else "b"]),
    ],
)
def test_what_needs_the_text_itself_is_refused(f: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_call, "enabled", False)
    with pytest.raises(tm.CaptureError):
        tm.tensor(f).graph(2.0)


def test_gradients_go_through_the_branch_of_a_text() -> None:
    def f(x: Any) -> Any:
        kind = "large" if x[0] > 2 else "small"
        return {"large": 2.0, "small": 3.0}[kind] * np.sum(x**2)

    np.testing.assert_allclose(tm.grad(f)(X), 4 * X)
    np.testing.assert_allclose(tm.grad(f)(X - 2), 6 * (X - 2))


def test_where_a_number_is_needed_a_text_is_refused() -> None:
    with pytest.raises(tm.CaptureError, match="where numbers are needed"):
        tm.grad(lambda x: x * 2 if x > 0 else "none")(1.0)
