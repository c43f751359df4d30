"""Facts about Python's built-in functions and classes, by name, each listed once, for all code that analyses the user's.

A name in code may mean something else: callers compare the object that it means with those that ``called`` returns.
"""

from __future__ import annotations

import builtins
import inspect
import sys
import traceback
from collections.abc import Iterable
from typing import Any

ORDINARY = frozenset({
    "range", "len", "abs", "min", "max", "int", "float", "bool", "enumerate", "zip", "round", "divmod",
})  # fmt: skip
"""Give what is made of their arguments, and the same where code is captured."""

OF_NUMBERS = frozenset({
    "range", "abs", "len", "int", "float", "bool", "round", "divmod", "min", "max", "sum", "complex", "pow", "chr", "ord", "str",
})  # fmt: skip
"""Give numbers, texts and ranges for such, and hold nothing."""

READING = ORDINARY | OF_NUMBERS | {"print", "sorted", "repr", "any", "all", "tuple", "list", "dict"}
"""Have no effect but what they print, and keep nothing of what they are given but its parts."""

REPEATABLE = READING | {
    "bin", "bytearray", "bytes", "callable", "classmethod", "filter", "format", "frozenset", "getattr", "hasattr", "hash", "hex",
    "id", "isinstance", "issubclass", "iter", "map", "next", "object", "oct", "property", "reversed", "set", "slice",
    "staticmethod", "super", "type", "NotImplemented", "Ellipsis", "__name__", "__debug__", "__build_class__",
}  # fmt: skip
"""Change nothing but what they are given, and print: where that is put back, a second call is not seen."""

CONSUMING = frozenset({"all", "any", "dict", "frozenset", "list", "max", "min", "set", "sorted", "sum", "tuple"})
"""Go over what they are given before they return."""

STEPS = frozenset({
    "len", "isinstance", "type", "range", "int", "bool", "str", "repr", "id", "hash", "round", "print", "format", "any", "all",
})  # fmt: skip
"""Do not move with the numbers that they are given, or not smoothly."""

ELSEWHERE = frozenset({"eval", "exec", "compile", "input", "open", "__import__", "breakpoint", "help", "exit", "quit"})
"""Read or change what is no argument of theirs: files, modules, the terminal, any variable."""

IN_NAMESPACES = frozenset({"globals", "vars", "eval", "exec"})
"""Lead to every variable there is."""

IN_FRAMES = frozenset({"super", "globals", "locals", "vars", "eval", "exec", "dir"})
"""Look at the frame that they are called in."""

OF_FRAMES = frozenset({
    vars(sys)["_getframe"], inspect.currentframe, inspect.stack,
    traceback.extract_stack, traceback.format_stack, traceback.print_stack, traceback.walk_stack,
})  # fmt: skip
"""Give the frames of who calls them: variables are read there, and from Python 3.13 on stored into."""


def called(names: Iterable[str]) -> frozenset[Any]:
    """Return the built-in functions and classes with these names."""
    return frozenset([getattr(builtins, name) for name in names])
