"""Random programs of branches, loops and jumps: staged code does what Python does, on plain numbers and on lazy ones."""

import itertools
import linecache
import types

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import tensormagic as tm
from tensormagic.capture.context import Capture, capturing
from tensormagic.capture.staging.syntax.source import staged

_serial = itertools.count()
NAMES = "abc"
TESTS = ["{} > 1", "{} < 2 and {} > -3", "not {} > 0", "0 < {} < 4", "{} > 3 or {} < -2"]


@st.composite
def block(draw, depth: int, loop: bool, budget: int = 3) -> list[str]:
    return [line for _ in range(draw(st.integers(1, budget))) for line in draw(statement(depth=depth, loop=loop))]


@st.composite
def condition(draw) -> str:
    text = draw(st.sampled_from(TESTS))
    return text.format(*(draw(st.sampled_from(NAMES)) for _ in range(text.count("{}"))))


@st.composite
def statement(draw, depth: int, loop: bool) -> list[str]:
    kinds = ["assign", "assign", "augment", "choose"] + (["if", "if", "for", "while"] if depth else [])
    kinds += ["break", "continue"] if loop else []
    kind = draw(st.sampled_from([*kinds, "return"] if depth < 2 else kinds))
    one, other = draw(st.sampled_from(NAMES)), draw(st.sampled_from(NAMES))
    if kind == "assign":
        return [f"{one} = {other} * 0.5 + {draw(st.integers(-2, 2))}"]
    if kind == "augment":
        return [f"{one} += {other} - 1"]
    if kind == "choose":
        return [f"{one} = {other} if {draw(condition())} else {one} + 1"]
    if kind in {"break", "continue"}:
        return [f"if {draw(condition())}:", f"    {kind}"] if draw(st.booleans()) else [kind]
    if kind == "return":
        return [f"if {draw(condition())}:", f"    return {one} + {other}"]
    return draw(compound(kind=kind, depth=depth, loop=loop))


def indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


@st.composite
def compound(draw, kind: str, depth: int, loop: bool) -> list[str]:
    if kind == "if":
        lines = [f"if {draw(condition())}:", *indented(draw(block(depth - 1, loop)))]
        if draw(st.booleans()):
            lines += ["else:", *indented(draw(block(depth - 1, loop)))]
        return lines
    counter = f"k{next(_serial) % 1000}"
    if kind == "for":
        head, first = f"for {counter} in range({draw(st.integers(0, 4))}):", [f"a = a + {counter}"]
        lines = [head, *indented([*first, *draw(block(depth - 1, loop=True))])]
    else:  # it ends, whatever its body does
        lines = [f"{counter} = 0.0", f"while {counter} < 4 and {draw(condition())}:"]
        lines += indented([f"{counter} = {counter} + 1", *draw(block(depth - 1, loop=True))])
    if draw(st.booleans()):
        lines += ["else:", *indented(draw(block(depth - 1, loop)))]
    return lines


@st.composite
def program(draw) -> str:
    lines = draw(block(2, loop=False, budget=4))
    return "\n".join(["def f(a, b, c):", *indented([*lines, "return a + 2 * b + 3 * c"]), ""])


def function(source: str) -> types.FunctionType:
    """The function of a source that can be looked up."""
    filename = f"<random program {next(_serial)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    space = {}
    exec(compile(source, filename, "exec"), space)
    return space["f"]


VALUES = st.tuples(*[st.integers(-6, 6).map(lambda n: n / 2)] * 3)


@settings(
    max_examples=100, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate]
)
@given(program(), st.lists(VALUES, min_size=1, max_size=3))
def test_on_plain_numbers(source, values):
    f = function(source)
    g = staged(f)
    assert g is not f
    with capturing(Capture("a test")):
        for v in values:
            assert g(*v) == f(*v), source


@settings(
    max_examples=50, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate]
)
@given(program(), st.lists(VALUES, min_size=2, max_size=3))
def test_on_lazy_numbers(source, values):
    f = function(source)
    captured = tm.tensor(f)
    for v in values:
        np.testing.assert_allclose(captured(*v), f(*v), rtol=1e-12, err_msg=source)
