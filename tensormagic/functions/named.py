"""What code may read, by its instructions: names of globals, of attributes and of modules, of it and of the functions in it."""

from __future__ import annotations

import dis
import re
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any

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
        Attributes that it binds.
    """

    reads: frozenset[str]
    parts: frozenset[str]
    modules: frozenset[str]
    stores: frozenset[str]


@lru_cache(maxsize=4096)
def named(code: CodeType) -> Named:
    """The names in code and in the functions inside it."""
    reads: set[str] = set()
    parts: set[str] = set()
    modules: set[str] = set()
    stores: set[str] = set()
    for step in dis.get_instructions(code):
        if step.opname in {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_GLOBALS"}:
            reads.add(step.argval)
        elif step.opname == "IMPORT_NAME":
            modules.add(step.argval)
        elif step.opname in _ATTRIBUTES:
            parts.add(step.argval if isinstance(step.argval, str) else str(step.argrepr))
            if step.opname == "STORE_ATTR":
                stores.add(step.argval)
    for constant in code.co_consts:
        parts |= _words(constant)
        if isinstance(constant, CodeType):
            inner = named(constant)
            reads |= inner.reads
            parts |= inner.parts
            modules |= inner.modules
            stores |= inner.stores
    return Named(frozenset(reads), frozenset(parts), frozenset(modules), frozenset(stores))


_ATTRIBUTES = {
    "LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR", "IMPORT_FROM", "LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD",
    "LOAD_ZERO_SUPER_ATTR", "LOAD_ZERO_SUPER_METHOD",
}  # fmt: skip


def _words(constant: Any) -> frozenset[str]:
    if isinstance(constant, str):
        return frozenset(_WORD.findall(constant)) if len(constant) < _LONGEST else frozenset()
    if isinstance(constant, tuple | frozenset):
        return frozenset().union(*map(_words, constant)) if constant else frozenset()
    return frozenset()
