"""Objects and containers whose classes do something where one is made: captured code does it as often as Python does."""

# tests named elsewhere

import textwrap

import numpy as np
import pytest

import tensormagic as tm

CLASSES = {  # a class, one of it, another in a function, and a number of one
    "__post_init__": (
        """
        @dataclass
        class K:
            x: float
            w: np.ndarray = field(default_factory=lambda: np.ones(2))
            log: list = field(default_factory=list)

            def __post_init__(self):
                self.x = self.x * 2
                self.w = self.w + 1
                self.log = [*self.log, "made"]
        """,
        "K(1.0)",
        "K(q.x, q.w)",
        "q.x + q.w.sum() + len(q.log)",
    ),
    "frozen": (
        """
        @dataclass(frozen=True, slots=True)
        class K:
            a: np.ndarray

            def __post_init__(self):
                object.__setattr__(self, "a", self.a / self.a.sum() * 2)
        """,
        "K(np.array([1.0, 3.0]))",
        "K(q.a + 1)",
        "(q.a * q.a).sum()",
    ),
    "InitVar": (
        """
        @dataclass
        class K:
            a: float
            scale: InitVar[float] = 2.0

            def __post_init__(self, scale):
                self.a = self.a * scale
        """,
        "K(1.0, 5.0)",
        "K(q.a, 3.0)",
        "q.a * 2",
    ),
    "__setattr__": (
        """
        @dataclass
        class K:
            v: float

            def __setattr__(self, name, value):
                object.__setattr__(self, name, value * 2)
        """,
        "K(1.5)",
        "K(q.v)",
        "q.v + 1",
    ),
    "dict": (
        """
        class K(dict):
            def __init__(self, *given):
                super().__init__(*given)
                self["n"] = self.get("n", 0) + 1.0

            def update(self, *given):
                raise RuntimeError
        """,
        "K({'x': np.ones(2)})",
        "K({'x': q['x'] * 2})",
        "q['x'].sum() + q['n']",
    ),
    "list": (
        """
        class K(list):
            def __init__(self, given=()):
                super().__init__(given)
                self.append(0.5)

            def __setitem__(self, index, value):
                raise RuntimeError
        """,
        "K([1.0, 2.0])",
        "K(q)",
        "sum(q) + len(q)",
    ),
    "tuple": (
        """
        class K(tuple):
            def __new__(cls, given):
                return super().__new__(cls, [*given, 9.0])
        """,
        "K([1.0])",
        "K(q)",
        "sum(q)",
    ),
    "namedtuple": (
        """
        class K(namedtuple("K", "a b")):
            __slots__ = ()

            def __new__(cls, a, b=1.0):
                return super().__new__(cls, a * 2, b)
        """,
        "K(2.0)",
        "K(q.a)",
        "q.a + q.b",
    ),
    "Counter": ("K = Counter\n", "K(a=2, b=3)", "K(a=q['b'])", "q['a'] * 1.5 + sum(q.values())"),
    "OrderedDict": ("K = OrderedDict\n", "K(a=2.0, b=np.ones(1))", "K(b=q['b'], a=q['a'] * 2)", "q['a'] + q['b'][0]"),
}
USES = {
    "read": "return {number}",
    "given back": "return q",
    "another": "return {another}",
    "both": "return [q, {another}], {{'k': q}}",
    "branch": "if k > 0:\n    q = {another}\nreturn {number}",
    "iterations": "for i in range(2):\n    q = {another}\nreturn q, {number}",
    "helper": "def inner(q):\n    return {number}\nreturn inner(q) * k + inner({another})",
}
BEGIN = "from collections import Counter, OrderedDict, namedtuple\nfrom dataclasses import InitVar, dataclass, field\nimport numpy as np\n"


def told(value: object) -> object:
    """What a value is, with the classes of containers and objects in it."""
    if isinstance(value, np.ndarray):
        return "array", value.dtype.str, value.tolist()
    if isinstance(value, dict):
        return type(value).__name__, [(k, told(v)) for k, v in value.items()]
    if isinstance(value, list | tuple):
        return type(value).__name__, [told(v) for v in value]
    if hasattr(value, "__dataclass_fields__"):
        return type(value).__name__, [(n, told(getattr(value, n))) for n in value.__dataclass_fields__ if n != "scale"]
    return type(value).__name__, value


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")  # what is refused gives what Python does
def test_as_often_as_python_does(name: str, use: str) -> None:
    made, one, another, number = CLASSES[name]
    body = textwrap.indent(USES[use].format(another=another, number=number), "    ")
    text = f"{BEGIN}{textwrap.dedent(made)}\ndef f(q, k):\n{body}\n\nq = {one}"
    plain: dict[str, object] = {}
    captured: dict[str, object] = {}
    exec(text, plain)
    exec(text, captured)
    function = tm.tensor(captured["f"])
    try:
        for k in (1.0, -1.0, 1.0):
            assert told(function(captured["q"], k)) == told(plain["f"](plain["q"], k))  # type: ignore[operator]
            assert told(captured["q"]) == told(plain["q"])
        if use == "given back" and not isinstance(captured["q"], tuple):
            assert function(captured["q"], 1.0) is captured["q"]
    except tm.CaptureError:  # refused, by a sentence
        assert use in {"branch", "iterations"}


def test_a_counter_that_a_function_changes_is_not_added_to() -> None:
    space: dict[str, object] = {}
    exec(BEGIN + "def f(c):\n    c['z'] += 1\n    return c\nc = Counter('aab')", space)
    function, c = tm.tensor(space["f"]), space["c"]
    for count in (1, 2, 3):
        assert function(c) is c
        assert c == {"a": 2, "b": 1, "z": count}


@pytest.mark.parametrize("name", ["frozen", "InitVar", "list", "namedtuple", "dict"])
def test_derivatives_by_containers(name: str) -> None:
    made, one, _, number = CLASSES[name]
    space: dict[str, object] = {}
    exec(f"{BEGIN}{textwrap.dedent(made)}\ndef f(q):\n    return {number}\n\nq = {one}", space)
    value, slope = tm.value_and_grad(space["f"])(space["q"])
    assert value == space["f"](space["q"])  # type: ignore[operator]
    assert type(slope) is type(space["q"])
