"""Instructions of Python's interpreter: what they do, where its versions write the same thing in several ways."""

from __future__ import annotations

import dis


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


def is_in_place(step: dis.Instruction) -> bool:
    """Whether an instruction is an operator such as ``+=``."""
    return step.opname == "BINARY_OP" and step.argrepr.endswith("=")
