"""What depends on data and is no number, where a call leaves it: texts, None, functions, members of enumerations; drawn, against Python."""

from __future__ import annotations

import random

import pytest

from tests.functions import object_programs as programs

VALUES = {
    "text": "'large' if x > 1 else 'small'",
    "text or None": "'large' if x > 1 else None",
    "text with a number": "f'{x:.2f}'",
    "text of a number": "str(x)",
    "text or text with a number": "'none' if x > 1 else f'{x * 2:.1f}'",
    "member": "Colour.RED if x > 1 else Colour.BLUE",
    "tuple": "(x, 'a') if x > 1 else ('b', x * 2, 3)",
    "tuple with a text": "(1, 'large' if x > 1 else 'small', x)",
    "tuple in a tuple": "((('large' if x > 1 else 'small'),), x)",
    "list with a text": "['large' if x > 1 else 'small', x]",
    "dictionary with a text": "{'k': 'large' if x > 1 else 'small', 'v': x}",
    "object with a text": "P('large' if x > 1 else 'small')",
    "joined": "('large' if x > 1 else 'small') + ('r' if x > 2 else '')",
    "number or text": "x if x > 1 else 'small'",
}
HOLDERS = {
    "attribute": ("o = P(0)", "o", "o.v = VALUE"),
    "slot": ("o = S(); o.v = 0", "o", "o.v = VALUE"),
    "attribute of an attribute": ("o = P(P(0))", "o", "o.v.v = VALUE"),
    "attribute by name": ("o = P(0)", "o", "setattr(o, 'w', VALUE)"),
    "attribute in its dictionary": ("o = P(0)", "o", "o.__dict__['w'] = VALUE"),
    "item": ("o = {}", "o", "o['k'] = VALUE"),
    "item by update": ("o = {'k': 1}", "o", "o.update(k=VALUE, z=2)"),
    "item of an item": ("o = {'k': {}}", "o", "o['k'].setdefault('z', VALUE)"),
    "end of a list": ("o = []", "o", "o.append(VALUE)"),
    "place of a list": ("o = [1, 2]", "o", "o[1] = VALUE"),
    "deque": ("o = deque(maxlen=2)", "o", "o.append(VALUE)"),
    "object in a list": ("o = []", "o", "o.append(P(VALUE))"),
    "global dictionary": ("G = {}; o = 0", "o", "G['k'] = VALUE"),
    "global object": ("G = P(0); o = 0", "o", "G.v = VALUE"),
    "list of a default": ("L = []; o = 0", "o, out=L", "out.append(VALUE)"),
}
HEAD = """
import enum
from collections import deque
class Colour(enum.Enum):
    RED = 1
    BLUE = 2
class P:
    def __init__(self, v): self.v = v
class S:
    __slots__ = ('v',)
"""
CALLS = "\n".join(f"attempt(f, o, {x})" for x in ("0.5", "0.5", "2.5", "1.5", "3", "0.5"))


def drawn(rng: random.Random) -> tuple[str, str]:
    """A program, and what is said of it."""
    value, holder = rng.choice(list(VALUES)), rng.choice(list(HOLDERS))
    made, given, store = HOLDERS[holder]
    lines = [store.replace("VALUE", VALUES[value])]
    where = rng.choice(("alone", "in a branch", "in a loop"))
    if where == "in a branch":
        lines = ["if x < 2:", *(f"    {line}" for line in lines)]
    elif where == "in a loop":
        lines = ["for k in range(2):", *(f"    {line}" for line in lines), "    x = x + 1"]
    body = "".join(f"    {line}\n" for line in [*lines, "return x * 2"])
    head = f"{HEAD}{made}\n@T\ndef f({given.replace('o', 'o, x', 1)}):\n"
    return f"{value}, {holder}, {where}", f"{head}{body}{CALLS}\n"


@pytest.mark.parametrize("seed", range(6))
def test_what_a_call_leaves_is_what_python_leaves(seed):
    rng = random.Random(seed)
    found = {told: programs.fault(text) for told, text in (drawn(rng) for _ in range(20))}
    assert not {told: fault for told, fault in found.items() if fault and not fault.startswith("refused")}
    assert sum(map(bool, found.values())) <= 2  # refused by name


OVER = {
    "the list": "for v in out:",
    "its places too": "for k, v in enumerate(out):",
    "beside a range": "for k, v in zip(range(9), out):",
    "an iterator of it": "it = iter(out)\n    for v in it:",
    "what is taken of an iterator": "it = iter(out)\n    while (v := next(it, None)) is not None:",
}
GROWN = (
    "out.append(v - 1)",
    "out.extend([v - 1])",
    "out += [v - 1]",
    "out[len(out):] = [v - 1]",
    "out.insert(len(out), v - 1)",
)


@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize("grown", GROWN)
def test_a_list_grows_while_a_loop_goes_over_it(over, grown):
    for start in ("[x, x + 1]", "list(xs)", "[v for v in xs]"):
        body = f"    out = {start}\n    total = 0\n    {OVER[over]}\n        total += v\n        if v > 2 and len(out) < 9: {grown}\n"
        text = f"xs = [5.0, 3.0]\n@T\ndef f(x, xs):\n{body}    return out, total\n"
        text += "".join(f"attempt(f, {x}, [{x}, 3.0])\n" for x in (5.0, 5.0, 1.0, 2.5, 4))
        fault = programs.fault(text)
        assert not fault or fault.startswith("refused"), text
