"""The names that code may read, by its instructions: globals, attributes and modules, also of the functions in it."""

from __future__ import annotations

import dis
import re
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any

from tensormagic.capture.python.bytecode import operations

_WORD = re.compile(r"[A-Za-z_]\w*")
_LONGEST = 200  # characters of a text that may name attributes


@dataclass(frozen=True)
class Named:
    """The names in code.

    Parameters
    ----------
    reads
        Globals, and the builtins among them.
    parts
        Attributes, and words of texts, which ``getattr`` and formats may take for attributes.
    modules
        What it imports.
    stores
        Attributes that it binds or deletes.
    asked
        Of ``parts`` those that may be asked of NumPy's module of random numbers, called ``random``: not of a local variable that
        holds what a call has given, and not of a global or an attribute with another name.
    bare
        Names of globals and attributes whose values are not only asked for an attribute at once.
    """

    reads: frozenset[str]
    parts: frozenset[str]
    modules: frozenset[str]
    stores: frozenset[str]
    asked: frozenset[str] = frozenset()
    bare: frozenset[str] = frozenset()


@lru_cache(maxsize=4096)
def named(code: CodeType) -> Named:
    """Return the names in code and in the functions inside it."""
    reads: set[str] = set()
    parts: set[str] = set()
    modules: set[str] = set()
    stores: set[str] = set()
    steps = [*operations(code)]
    for operation, names in steps:
        if operation in _READING:
            reads.update(names)
        elif operation == "IMPORT_NAME":
            modules.update(names)
        elif operation in _ATTRIBUTES:
            parts.update(names)
            if operation in {"STORE_ATTR", "DELETE_ATTR"}:
                stores.update(names)
    parts |= _by_operators(code.co_code)
    asked, bare = _asked(code, steps)
    for constant in code.co_consts:
        parts |= _words(constant)
        asked |= _words(constant)
        if isinstance(constant, CodeType):
            inner = named(constant)
            reads |= inner.reads
            parts |= inner.parts
            modules |= inner.modules
            stores |= inner.stores
            asked |= inner.asked
            bare |= inner.bare
    return Named(*map(frozenset, (reads, parts, modules, stores, asked, bare)))


def _asked(code: CodeType, steps: list[tuple[str, tuple[str, ...]]]) -> tuple[set[str], set[str]]:
    """Return attributes that may be taken from a module called ``random``, and names whose values are used other than for an attribute."""
    fast = [_fast(*step) if "_FAST" in step[0] else _NEITHER for step in steps]
    given = [
        (name, k > 0 and steps[k - 1][0].startswith("CALL")) for k, (stored, _) in enumerate(fast) for name in stored
    ]
    results = {name for name, _ in given} - {name for name, of_call in given if not of_call}
    results -= set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    asked: set[str] = set()
    bare: set[str] = set()
    for k, (operation, names) in enumerate(steps):
        if operation not in _NAMED and operation not in _ATTRIBUTES:
            continue
        asks = operation in _ATTRIBUTES
        if k and asks and set(fast[k - 1][1][-1:]) & results:
            continue
        if asks and not (k and steps[k - 1][0] in _NAMED and steps[k - 1][1] != ("random",)):
            asked.update(names)
        followed = k + 1 < len(steps) and steps[k + 1][0] in {"LOAD_ATTR", "LOAD_METHOD"}
        if operation in _NAMED and not followed:
            bare.update(names)
    return asked, bare


def _fast(operation: str, names: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Return the local variables that an operation stores, and those that it loads."""
    pairs = list(zip(re.findall(r"STORE_FAST|LOAD_FAST", operation), names, strict=False))
    return [n for kind, n in pairs if kind == "STORE_FAST"], [n for kind, n in pairs if kind == "LOAD_FAST"]


_NEITHER = list[str](), list[str]()
_READING = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_GLOBALS"}
_METHODS = {  # only Python's version tells comparisons of one kind from others
    "__format__": {dis.opmap[o] for o in ("FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC") if o in dis.opmap},
    "__eq__": {dis.opmap["COMPARE_OP"], dis.opmap["CONTAINS_OP"]},
}
_REMAINDERS = frozenset(
    bytes((step.opcode, step.arg or 0))
    for step in dis.get_instructions(compile("a % b; a %= b", "", "exec"))
    if step.opname == "BINARY_OP"
)
_NAMED = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR", "LOAD_METHOD"}
_ATTRIBUTES = {
    "LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR", "IMPORT_FROM", "LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD",
    "LOAD_ZERO_SUPER_ATTR", "LOAD_ZERO_SUPER_METHOD",
}  # fmt: skip


def _by_operators(text: bytes) -> set[str]:
    """Return the methods that operators and formats call, if these may be C code reading names that no code mentions."""
    found = {name for name, numbers in _METHODS.items() if not numbers.isdisjoint(text[::2])}
    return found | ({"__mod__"} if any(text[k : k + 2] in _REMAINDERS for k in range(0, len(text), 2)) else set[str]())


def _words(constant: Any) -> frozenset[str]:
    if isinstance(constant, str):
        return frozenset(_WORD.findall(constant)) if len(constant) < _LONGEST else frozenset()
    if isinstance(constant, tuple | frozenset):
        return frozenset().union(*map(_words, constant)) if constant else frozenset()
    return frozenset()
