"""Functions that NumPy and SciPy call again and again run as plain Python, not captured: what they read is lent once.

The graph of such a call holds a few numbers and is of no use to the next one; to make, rewrite and run it takes a
hundred times what Python takes for the call. Functions are run so if they have no effect but what they print, store
into nothing but arrays and lists that they have made, and reach only arrays, numbers, texts, functions of NumPy's and
SciPy's that store nothing, and such functions of the user's.
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

from tensormagic.capture.foreign.lending import Loan
from tensormagic.capture.inputs import namespace
from tensormagic.capture.inputs.notebook_names import content
from tensormagic.capture.inputs.stand_ins import original_of
from tensormagic.capture.python import builtin_facts
from tensormagic.capture.python.bytecode import names_in
from tensormagic.capture.staging.analysis import numpy_functions
from tensormagic.capture.staging.analysis.ordinary import is_among_numpys
from tensormagic.capture.staging.syntax import source
from tensormagic.capture.staging.syntax.syntax_trees import walk
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.modules import is_users

_PARTS = (
    ast.Assign, ast.AugAssign, ast.For, ast.While, ast.If, ast.Return, ast.Raise,
    ast.Assert, ast.Break, ast.Continue, ast.Pass, ast.Expr, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call,
    ast.keyword, ast.Attribute, ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.Dict, ast.Constant, ast.Name, ast.JoinedStr,
    ast.FormattedValue, ast.Starred, ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp, ast.comprehension,
    ast.Try, ast.ExceptHandler,
)  # fmt: skip
_OF_ITS_OWN = (
    ast.Constant,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.JoinedStr,
)  # calls that give an object that nothing else refers to
_MANY = 99
_DISPLAYS = (
    ast.List,
    ast.ListComp,
    ast.Dict,
    ast.DictComp,
)  # displays that do so, too, but whose parts others may hold
_MAKERS = {
    "zeros", "ones", "empty", "full", "zeros_like", "ones_like", "empty_like", "full_like", "array", "copy", "arange", "linspace", "eye",
}  # fmt: skip
_METHODS = {
    "copy", "astype", "reshape", "ravel", "flatten", "transpose", "min", "max", "any", "all", "item", "dot", "sum", "mean", "std", "var",
    "argmin", "argmax", "get", "keys", "values", "items", "format", "upper", "lower", "strip", "split", "join", "replace", "startswith",
    "endswith", "find", "count", "index", "isdigit", "tolist", "round", "cumsum", "cumprod", "prod", "trace", "diagonal", "conj", "clip",
    "nonzero", "argsort", "squeeze",
}  # fmt: skip
_BUILTIN = builtin_facts.called(builtin_facts.READING) | {
    *(ArithmeticError, AssertionError, IndexError, KeyError, TypeError, ValueError, ZeroDivisionError),
}
_ATTRIBUTES = {"shape", "size", "ndim", "T", "dtype", "real", "imag"}
_ATOMS = (int, float, complex, str, bytes, type(None), np.number, np.bool_, np.dtype)


class _NotKnownError(Exception):
    """Raised if a function may do something that is not known to be safe."""


def as_written(function: Any, loan: Loan) -> FunctionType | None:
    """Return a function of the user's without staging, over values that are lent; None where it may do more than is known here.

    Parameters
    ----------
    function
        The function.
    loan
        Lends the arrays that it reads.
    """
    return LentReach(loan).written(function)


class LentReach:
    """Represents what a function reaches, lent.

    Parameters
    ----------
    loan
        Lends arrays.
    """

    def __init__(self, loan: Loan) -> None:
        self._loan = loan
        self._made: dict[FunctionType, FunctionType] = {}
        self.names: set[str] = set()  # the notebook's arrays that it reads
        self.lent: set[int] = set()  # the objects whose identities these are

    def written(self, function: Any) -> FunctionType | None:
        """Return a user's function without staging, over lent values; None if it may do more than is known here."""
        try:
            return self.function(function) if type(function) is FunctionType else None
        except (_NotKnownError, RecursionError):  # a list may hold itself
            return None

    def function(self, function: FunctionType) -> FunctionType:
        """Return a user's function without staging, over lent values.

        Raises
        ------
        _NotKnownError
            Where it may do more than is known here.
        """
        function = original_of(function)
        if function in self._made:
            return self._made[function]
        code = source.code_as_written(function)
        asked = _asked(code)
        if asked is None or function.__kwdefaults__ or len(code.co_freevars) != len(function.__closure__ or ()):
            raise _NotKnownError
        space: dict[str, Any] = {}
        cells = {name: CellType() for name in code.co_freevars}
        made = self._made[function] = source.rebound(function, code, space, cells)  # now: it may call itself
        for name in asked.keys() & set(names_in(code)):
            if name in function.__globals__:
                self.names.add(name)
                space[name] = self._value(function.__globals__[name], asked[name])
            else:
                self._value(getattr(builtins, name, LentReach), asked[name])
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            cells[name].cell_contents = self._value(content(cell), asked.get(name, ()))
        made.__defaults__ = tuple([self._value(v, ()) for v in function.__defaults__ or ()]) or None
        return made

    def _value(self, value: Any, asked: Iterable[tuple[str, int]]) -> Any:
        value = original_of(value)
        attributes = [(name, count) for name, count in asked if name]
        if isinstance(value, namespace.Module | ModuleType):
            module = value.__wrapped__ if isinstance(value, namespace.Module) else value
            if not all(_is_of_module(module, *a) for a in attributes):
                raise _NotKnownError
            return module
        if self._is_data(value) and all(name in _METHODS or name in _ATTRIBUTES for name, _ in attributes):
            self.lent.add(id(value))
            return self._loan.lent(value)
        if not attributes and type(value) is FunctionType and is_users(value.__code__.co_filename):
            return self.function(value)
        if not attributes and _is_known(value, asked):
            return value
        raise _NotKnownError

    def _is_data(self, value: Any) -> bool:
        if type(value) in {list, tuple}:
            return all(map(self._is_data, value))
        if type(value) is dict:
            return all(map(self._is_data, value.values()))
        return type(value) in {Tensor, np.ndarray} or isinstance(value, _ATOMS)


def _is_known(function: Any, asked: Iterable[tuple[str, int]]) -> bool:
    """Return whether calls of a function, each with so many arguments, are without effect: Python's own, ``math``'s or NumPy's."""
    if isinstance(function, BuiltinFunctionType | type) and (
        function in _BUILTIN or getattr(function, "__self__", None) is math
    ):
        return True
    counts = [count for _, count in asked]
    return bool(counts) and all(_has_no_effect(function, count) for count in counts)


def _is_of_module(module: ModuleType, attribute: str, count: int) -> bool:
    """Return whether a module's attribute, called with this many arguments, is pure; ``linalg.norm`` is an attribute of ``np``."""
    *inner, name = attribute.split(".")
    if module is math:
        return not inner
    for part in inner:
        module = getattr(module, part, math)
    value = getattr(module, name, None)
    if module is np and (isinstance(value, float | None) or value in _TYPES):
        return True
    if module in {np.linalg, np.fft} and name in numpy_functions.OF_MODULES[module.__name__.rpartition(".")[2]]:
        return True
    return _has_no_effect(value, count)


def _has_no_effect(function: Any, count: int) -> bool:
    if isinstance(function, np.ufunc):
        return count <= function.nin
    return is_among_numpys(function, count)


_TYPES = (np.float64, np.float32, np.int64, np.int32, np.complex128, np.bool_)


@lru_cache(maxsize=1024)
def _asked(code: CodeType) -> dict[str, tuple[tuple[str, int], ...]] | None:
    """Return the names in a function with the attributes taken from each; None if the function may have effects.

    Each attribute comes with the number of arguments in its call.
    """
    node = source.syntax_of(code)
    if not isinstance(node, ast.FunctionDef | ast.Lambda):
        return None
    parts = [n for part in (node.body if isinstance(node, ast.FunctionDef) else [node.body]) for n in walk(part)]
    own = {*code.co_varnames, *(n.arg for n in parts if isinstance(n, ast.arg)), *_bound(parts)}
    augmented = {n.target.id for n in parts if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)}
    stored = _stored_into(parts)
    got = [(t, n.value) for n in parts if isinstance(n, ast.Assign) for t in n.targets]
    got += [(n.target, n) for n in parts if isinstance(n, ast.For | ast.comprehension)]
    others = {name for target, value in got if not _is_new(target, value) for name in _names(target)}
    given = {*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]}
    if stored is None or not (augmented | stored).isdisjoint(others | given | (stored - own)):
        return None  # it may be an array that others hold, which is stored into
    known = all(isinstance(n, (*_PARTS, ast.arg, ast.arguments)) and not _has_effect(n) for n in parts)
    return _by_name(parts, own) if known else None


def _is_new(target: ast.AST, value: ast.AST) -> bool:
    """Return whether an assignment binds a name to a new object that nothing else refers to."""
    if not isinstance(target, ast.Name):
        return isinstance(target, ast.Subscript)  # it binds no name
    if isinstance(value, ast.Call):
        called = value.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        return name in _MAKERS and not any(k.arg == "copy" for k in value.keywords)
    return isinstance(value, _OF_ITS_OWN + _DISPLAYS)


def _bound(parts: list[ast.AST]) -> set[str]:
    """Return the names that are bound, also in comprehensions."""
    return {n.id for n in parts if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}


def _stored_into(parts: list[ast.AST]) -> set[str] | None:
    """Return the names that are stored into by an index; None for a store into something without a name."""
    bases = [n.value for n in parts if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)]
    return None if any(not isinstance(b, ast.Name) for b in bases) else {b.id for b in bases if isinstance(b, ast.Name)}


def _has_effect(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Del)
    return isinstance(node, ast.keyword) and node.arg in {None, "out", "file"}


def _names(target: ast.AST) -> set[str]:
    return {n.id for n in walk(target) if isinstance(n, ast.Name)}


def _by_name(parts: list[ast.AST], own: set[str]) -> dict[str, tuple[tuple[str, int], ...]] | None:
    found: dict[str, list[tuple[str, int]]] = {n.id: [] for n in parts if isinstance(n, ast.Name) and n.id not in own}
    counts = {n.func: _count(n) for n in parts if isinstance(n, ast.Call)}
    if any(not isinstance(f, ast.Attribute | ast.Name) or (isinstance(f, ast.Name) and f.id in own) for f in counts):
        return None
    inner = {n.value for n in parts if isinstance(n, ast.Attribute)}  # parts of longer names
    for node in parts:
        if isinstance(node, ast.Name) and node in counts:
            found[node.id].append(("", counts[node]))
        elif isinstance(node, ast.Attribute) and node not in inner:
            name, dotted = _dotted(node)
            if name in found:
                found[name].append((dotted, counts.get(node, 0)))
            elif node in counts and node.attr not in _METHODS:
                return None
    return {name: tuple(asked) for name, asked in found.items()}


def _count(call: ast.Call) -> int:
    """Return the number of arguments of a call; a large number where ``*args`` hides it."""
    return _MANY if any(isinstance(a, ast.Starred) for a in call.args) else len(call.args)


def _dotted(node: ast.Attribute) -> tuple[str, str]:
    """Return the name and the attributes of a dotted expression: ``np`` and ``linalg.norm``; an empty name where there is none."""
    dotted, value = node.attr, node.value
    while isinstance(value, ast.Attribute):
        dotted, value = f"{value.attr}.{dotted}", value.value
    return (value.id if isinstance(value, ast.Name) else ""), dotted
