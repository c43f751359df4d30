"""Instructions of Python's bytecode: what they do, across versions that encode the same thing differently."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType


def within(code: CodeType) -> Iterator[CodeType]:
    """Yield code, and the code of the functions in it, however deep."""
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from within(part)


@lru_cache(maxsize=4096)
def names_in(code: CodeType) -> tuple[str, ...]:
    """Return the names of globals and attributes in code, and in the code inside it, in their order."""
    return tuple(dict.fromkeys(name for part in within(code) for name in part.co_names))


@lru_cache(maxsize=4096)
def named(code: CodeType, *wanted: str) -> frozenset[str]:
    """Return the names that these operations refer to, in code and in the code inside it."""
    numbers = [dis.opmap[o] for o in wanted if o in dis.opmap]
    found: set[str] = set()
    if not set(code.co_code[::2]).isdisjoint(numbers):  # a quick check
        found.update(name for operation, names in operations(code) if operation in wanted for name in names)
    return frozenset(found.union(*(named(part, *wanted) for part in code.co_consts if isinstance(part, CodeType))))


def operations(code: CodeType) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the operations of code in order, each with the names that it refers to; :mod:`dis` says more and takes longer."""
    if sys.version_info >= (3, 15):  # the encoding of names there is not known yet
        for step in dis.get_instructions(code):
            if step.opname not in _BESIDE:
                said = step.argval if isinstance(step.argval, tuple) else (step.argval,)
                yield step.opname, tuple(name for name in said if isinstance(name, str))
        return
    text, spaces, above = code.co_code, (code.co_names, _locals(code)), 0
    for operation, low in zip(text[::2], text[1::2], strict=True):
        known = _OPERATIONS[operation]
        if known is None:
            if operation == dis.EXTENDED_ARG:
                above = (above | low) << 8
            continue
        name, space, shift = known
        if space is None:
            yield name, ()
        elif shift == _TWO:
            both = above | low
            yield name, (spaces[space][both >> 4], spaces[space][both & 15])
        else:
            yield name, (spaces[space][(above | low) >> shift],)
        above = 0


def _locals(code: CodeType) -> tuple[str, ...]:
    """Return the names of local variables and cells, by their numbers."""
    own = code.co_varnames
    return (*own, *(name for name in code.co_cellvars if name not in own), *code.co_freevars)


_BESIDE = {"EXTENDED_ARG", "PRECALL", "CACHE"}  # parts of the operation after or before
_TWO = -1  # the names of two local variables, in four bits each


def _described(operation: int) -> tuple[str, int | None, int] | None:
    """Return the name of an operation, which table its number refers to, and the bits below the number; None if it is irrelevant."""
    name = dis.opname[operation]
    if name in _BESIDE or name.startswith("<"):
        return None
    if name.count("_FAST") == 2:
        return name, 1, _TWO
    if operation in dis.hasname:
        flags = {"LOAD_GLOBAL": 1, "LOAD_ATTR": int(sys.version_info >= (3, 12)), "LOAD_SUPER_ATTR": 2}
        return name, 0, flags.get(name, 0)
    return name, 1 if operation in dis.haslocal or operation in dis.hasfree else None, 0


_OPERATIONS = [_described(operation) for operation in range(256)]


def binds(step: dis.Instruction) -> tuple[str, ...]:
    """Return the names that an instruction binds; from Python 3.13 on one may bind two, or bind one and read another."""
    if not step.opname.startswith("STORE"):
        return ()
    if not isinstance(step.argval, tuple):
        return (str(step.argval),)
    stored = step.opname.count("STORE_")
    return tuple(map(str, step.argval[:stored]))


def reads(step: dis.Instruction) -> tuple[str, ...]:
    """Return the names that an instruction reads, attributes too."""
    if not step.opname.startswith("LOAD"):
        return ()
    return tuple(map(str, step.argval)) if isinstance(step.argval, tuple) else (str(step.argval),)


def enters(step: dis.Instruction) -> bool:
    """Return whether an instruction begins a ``with``."""
    return step.opname == "BEFORE_WITH" or (step.opname == "LOAD_SPECIAL" and step.argrepr == "__enter__")


STORES = frozenset(
    dis.opmap[o] for o in ("STORE_SUBSCR", "STORE_SLICE") if o in dis.opmap
)  # by an index; slices from 3.12 on
_IN_PLACE = frozenset(  # how the interpreter names ``+=`` and the like: one operation, with an argument that says which
    bytes((step.opcode, step.arg or 0))
    for step in dis.get_instructions(
        compile(
            "; ".join(f"a {sign}= b" for sign in ["+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>"]),
            "",
            "exec",
        )
    )
    if step.opname == "BINARY_OP"
)


@lru_cache(maxsize=4096)
def stores(code: CodeType) -> bool:
    """Return whether code, or code in it, stores by an index or by an operator such as ``+=``."""
    text = code.co_code
    if not STORES.isdisjoint(text[::2]) or any(text[k : k + 2] in _IN_PLACE for k in range(0, len(text), 2)):
        return True
    return any(stores(part) for part in code.co_consts if isinstance(part, CodeType))
