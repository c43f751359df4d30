"""Instructions of Python's interpreter: what they do, where its versions write the same thing in several ways."""

from __future__ import annotations

import dis
from functools import lru_cache
from types import CodeType


@lru_cache(maxsize=4096)
def named(code: CodeType, *operations: str) -> frozenset[str]:
    """The names that these operations of code are about, and of the code inside it."""
    numbers = [dis.opmap[o] for o in operations if o in dis.opmap]
    found: set[str] = set()
    if not set(code.co_code[::2]).isdisjoint(numbers):  # which is quickly seen
        found |= {step.argval for step in dis.get_instructions(code) if step.opname in operations}
    return frozenset(found.union(*(named(part, *operations) for part in code.co_consts if isinstance(part, CodeType))))


def binds(step: dis.Instruction) -> tuple[str, ...]:
    """The names that an instruction binds; from Python 3.13 on one may bind two, or bind one and read another."""
    if not step.opname.startswith("STORE"):
        return ()
    if not isinstance(step.argval, tuple):
        return (str(step.argval),)
    stored = step.opname.count("STORE_")
    return tuple(map(str, step.argval[:stored]))


def reads(step: dis.Instruction) -> tuple[str, ...]:
    """The names that an instruction reads, attributes too."""
    if not step.opname.startswith("LOAD"):
        return ()
    return tuple(map(str, step.argval)) if isinstance(step.argval, tuple) else (str(step.argval),)


def enters(step: dis.Instruction) -> bool:
    """Whether an instruction begins a ``with``."""
    return step.opname == "BEFORE_WITH" or (step.opname == "LOAD_SPECIAL" and step.argrepr == "__enter__")


STORES = frozenset(
    dis.opmap[o] for o in ("STORE_SUBSCR", "STORE_SLICE") if o in dis.opmap
)  # by an index; slices from 3.12 on


def is_in_place(step: dis.Instruction) -> bool:
    """Whether an instruction is an operator such as ``+=``."""
    return step.opname == "BINARY_OP" and step.argrepr.endswith("=")
