"""What code does, read without :mod:`dis`, against what :mod:`dis` tells."""

import argparse
import ast
import dataclasses
import dis
import fractions
import inspect
import tempfile
import typing
from types import CodeType

import pytest

from tensormagic.capture.python.bytecode import operations, stores


def inside(code: CodeType) -> list[CodeType]:
    """Code, and all code in it."""
    return [code, *(c for part in code.co_consts if isinstance(part, CodeType) for c in inside(part))]


def told(code: CodeType) -> list[tuple[str, tuple[str, ...]]]:
    found = []
    for step in dis.get_instructions(code):
        if step.opname in {"EXTENDED_ARG", "PRECALL", "CACHE"}:
            continue
        names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        of_names = step.opcode in {*dis.hasname, *dis.haslocal, *dis.hasfree} or "_FAST_" in step.opname
        found.append((step.opname, tuple(map(str, names)) if of_names else ()))
    return found


@pytest.mark.parametrize(
    "module", [argparse, ast, dataclasses, fractions, inspect, tempfile, typing], ids=lambda m: m.__name__
)
def test_operations_are_those_of_dis(module):
    code = compile(inspect.getsource(module), module.__name__, "exec")
    compared = 0
    for one in inside(code):
        assert [*operations(one)] == told(one)
        compared += 1
    assert compared > 10


def test_names_beyond_the_255th_are_found():
    text = "def f():\n" + "\n".join(f"    x{k} = g{k}.a{k}" for k in range(300))
    (code,) = [c for c in inside(compile(text, "many", "exec")) if c.co_name == "f"]
    assert [*operations(code)] == told(code)
    assert ("STORE_FAST", ("x299",)) in [*operations(code)]


@pytest.mark.parametrize(
    ("text", "does"),
    [
        ("a[1] = 2", True),
        ("a[1:3] = 2", True),
        ("a += 1", True),
        ("a @= b", True),
        ("def f(a):\n    def g(): a[0] = 1\n    return g", True),
        ("a = a + 1", False),
        ("a = a[1]", False),
        ("a = a[1:3] @ b << 3", False),
    ],
)
def test_what_stores(text, does):
    assert stores(compile(text, "text", "exec")) is does
