"""Functions that NumPy calls for each element and that are not captured, as Python runs them: what they read is lent to them once.

The graph of such a call holds one number and is of no use to the next one; to make, rewrite and run it takes a hundred times what Python
takes for the call. Functions are run so that have no effect but what they print, and reach only arrays, numbers, texts, functions of
NumPy's that store nothing, and such functions of the user's.
"""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Iterable
from functools import lru_cache
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from tensormagic.capture import namespace, pythons
from tensormagic.capture.home import content
from tensormagic.capture.lending import Loan
from tensormagic.capture.staging import source
from tensormagic.capture.staging.ordinary import is_among_numpys
from tensormagic.capture.staging.trees import walk
from tensormagic.capture.value import Tensor
from tensormagic.ir.modules import is_users

_PARTS = (
    ast.Assign, ast.AugAssign, ast.For, ast.While, ast.If, ast.Return, ast.Raise,
    ast.Assert, ast.Break, ast.Continue, ast.Pass, ast.Expr, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call,
    ast.keyword, ast.Attribute, ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.Dict, ast.Constant, ast.Name, ast.JoinedStr,
    ast.FormattedValue,
)  # fmt: skip
_OF_ITS_OWN = (
    ast.Constant,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.JoinedStr,
)  # what gives an object that nobody else has
_METHODS = {
    "copy", "astype", "reshape", "ravel", "flatten", "transpose", "min", "max", "any", "all", "item", "dot", "sum", "mean", "std", "var",
    "argmin", "argmax", "get", "keys", "values", "items", "format", "upper", "lower", "strip", "split", "join", "replace", "startswith",
    "endswith", "find", "count", "index", "isdigit", "tolist",
}  # fmt: skip
_BUILTIN = pythons.called(pythons.READING) | {
    *(ArithmeticError, AssertionError, IndexError, KeyError, TypeError, ValueError, ZeroDivisionError),
}
_ATTRIBUTES = {"shape", "size", "ndim", "T", "dtype", "real", "imag"}
_ATOMS = (int, float, complex, str, bytes, type(None), np.number, np.bool_, np.dtype)


class _NotKnownError(Exception):
    """A function may do something else than what is known here."""


def as_written(function: Any, loan: Loan) -> FunctionType | None:
    """A function of the user's without staging, over values that are lent; None where it may do more than is known here.

    Parameters
    ----------
    function
        The function.
    loan
        Lends the arrays that it reads.
    """
    try:
        return _Lent(loan).function(function) if type(function) is FunctionType else None
    except (_NotKnownError, RecursionError):  # a list may hold itself
        return None


class _Lent:
    """What a function reaches.

    Parameters
    ----------
    loan
        Lends arrays.
    """

    def __init__(self, loan: Loan) -> None:
        self._loan = loan
        self._made: dict[FunctionType, FunctionType] = {}

    def function(self, function: FunctionType) -> FunctionType:
        """A function over what is lent."""
        function = namespace.original_of(function)
        if function in self._made:
            return self._made[function]
        code = source.code_as_written(function)
        asked = _asked(code)
        if asked is None or function.__kwdefaults__ or len(code.co_freevars) != len(function.__closure__ or ()):
            raise _NotKnownError
        space: dict[str, Any] = {}
        cells = {name: CellType() for name in code.co_freevars}
        made = self._made[function] = source.rebound(function, code, space, cells)  # now: it may call itself
        for name in asked.keys() & set(code.co_names):
            if name in function.__globals__:
                space[name] = self._value(function.__globals__[name], asked[name])
            else:
                self._value(getattr(builtins, name, _Lent), asked[name])
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            cells[name].cell_contents = self._value(content(cell), asked.get(name, ()))
        made.__defaults__ = tuple([self._value(v, ()) for v in function.__defaults__ or ()]) or None
        return made

    def _value(self, value: Any, attributes: Iterable[tuple[str, int]]) -> Any:
        value = namespace.original_of(value)
        if isinstance(value, namespace.Module | ModuleType):
            module = value.__wrapped__ if isinstance(value, namespace.Module) else value
            if not all(_is_of_module(module, *a) for a in attributes):
                raise _NotKnownError
            return module
        if self._is_data(value) and all(name in _METHODS or name in _ATTRIBUTES for name, _ in attributes):
            return self._loan.lent(value)
        if type(value) is FunctionType and is_users(value.__code__.co_filename) and not attributes:
            return self.function(value)
        if isinstance(value, BuiltinFunctionType | type) and value in _BUILTIN and not attributes:
            return value
        raise _NotKnownError

    def _is_data(self, value: Any) -> bool:
        if type(value) in {list, tuple}:
            return all(map(self._is_data, value))
        if type(value) is dict:
            return all(map(self._is_data, value.values()))
        return type(value) in {Tensor, np.ndarray} or isinstance(value, _ATOMS)


def _is_of_module(module: ModuleType, attribute: str, count: int) -> bool:
    """Whether what is asked of a module, and called with so many arguments, has no effect."""
    value = getattr(module, attribute, None)
    if module is math:
        return True
    return module is np and (isinstance(value, float | None) or is_among_numpys(value, count))


@lru_cache(maxsize=1024)
def _asked(code: CodeType) -> dict[str, tuple[tuple[str, int], ...]] | None:
    """The names in a function, each with what is asked of it if it is a module; None where the function may have an effect.

    Beside an attribute stands the number of arguments that it is called with.
    """
    node = source.syntax_of(code)
    if not isinstance(node, ast.FunctionDef | ast.Lambda):
        return None
    parts = [n for part in (node.body if isinstance(node, ast.FunctionDef) else [node.body]) for n in walk(part)]
    augmented = {n.target.id for n in parts if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)}
    got = [(t, n.value) for n in parts if isinstance(n, ast.Assign) for t in n.targets]
    got += [(n.target, n) for n in parts if isinstance(n, ast.For)]
    others = {name for target, value in got if not isinstance(value, _OF_ITS_OWN) for name in _names(target)}
    if not augmented.isdisjoint(others | set(code.co_varnames[: code.co_argcount])):
        return None  # it may be an array, which is stored into
    known = all(isinstance(n, _PARTS) and not _has_effect(n) for n in parts)
    return _by_name(parts, set(code.co_varnames)) if known else None


def _has_effect(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute | ast.Subscript):
        return not isinstance(node.ctx, ast.Load)
    return isinstance(node, ast.keyword) and node.arg in {None, "out", "file"}


def _names(target: ast.AST) -> set[str]:
    return {n.id for n in walk(target) if isinstance(n, ast.Name)}


def _by_name(parts: list[ast.AST], own: set[str]) -> dict[str, tuple[tuple[str, int], ...]] | None:
    found: dict[str, list[tuple[str, int]]] = {n.id: [] for n in parts if isinstance(n, ast.Name) and n.id not in own}
    counts = {n.func: len(n.args) for n in parts if isinstance(n, ast.Call)}
    if any(not isinstance(f, ast.Attribute | ast.Name) or (isinstance(f, ast.Name) and f.id in own) for f in counts):
        return None
    for node in parts:
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id in found:
                found[node.value.id].append((node.attr, counts.get(node, 0)))
            elif node in counts and node.attr not in _METHODS:
                return None
    return {name: tuple(asked) for name, asked in found.items()}
