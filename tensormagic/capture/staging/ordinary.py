"""Functions that Python runs with what captured code would give: of numbers and arrays, without effects but stores into these.

No rule for accuracy changes what they give by more than rounding: what such rules are about is not among what they call, or is
looked at as it runs (:mod:`~tensormagic.capture.staging.conditioned`).
"""

from __future__ import annotations

import ast
import builtins
import itertools
import math
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from tensormagic.capture.staging import source
from tensormagic.capture.staging.cancelling import ONE, PYTHONS, Mode, Told, is_exponential, is_store, told
from tensormagic.capture.staging.conditioned import looking, looks
from tensormagic.capture.staging.overwritten import overwritten
from tensormagic.capture.staging.trees import children, cloned, placed_at, walk

WATCH, TICK = "__tensor_watch__", "__tensor_tick__"  # what loops ask whether there is time left

_PARTS = (
    ast.Assign, ast.AugAssign, ast.For, ast.While, ast.If, ast.Return, ast.Break, ast.Continue, ast.Pass, ast.BinOp,
    ast.Expr, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.Constant, ast.Name,
)  # fmt: skip
_ATTRIBUTES = {"shape", "size", "ndim", "T", "dtype"}
_METHODS = {
    "copy", "astype", "reshape", "ravel", "flatten", "transpose", "min", "max", "any", "all", "item", "dot", "sum", "mean",
}  # fmt: skip
_KEYWORDS = {"axis", "dtype", "keepdims", "copy", "k", "start"}
_BUILTIN = {getattr(builtins, name) for name in PYTHONS}
_MATH = {
    getattr(math, name)
    for name in ("floor", "ceil", "fabs", "gcd", "isqrt", "sqrt", "sin", "cos", "tanh", "exp", "log")
}
_NAMES = (
    "zeros", "ones", "empty", "full", "linspace", "eye", "identity", "zeros_like", "ones_like", "empty_like", "full_like", "arange",
    "array", "asarray", "copy", "where", "maximum", "minimum", "abs", "absolute", "add", "multiply", "negative", "dot", "matmul", "outer",
    "sum", "min", "max", "amin", "amax", "any", "all", "argmin", "argmax", "logical_and", "logical_or", "logical_not", "logical_xor",
    "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "roll", "concatenate", "stack", "vstack", "hstack",
    "transpose", "reshape", "expand_dims", "squeeze", "clip", "sign", "floor", "ceil", "rint", "nonzero", "flatnonzero", "count_nonzero",
    "isnan", "isfinite", "isinf", "sort", "argsort", "searchsorted", "cumsum", "tril", "triu", "bincount", "remainder", "mod",
    "floor_divide", "fmax", "fmin", "flip", "fliplr", "flipud", "ravel", "repeat", "tile", "take", "equal", "not_equal", "less",
    "less_equal", "greater", "greater_equal", "mean", "sqrt", "sin", "cos", "tanh", "exp", "log", "std", "var", "power", "arctan",
    "arctan2", "int8", "int16", "int32", "int64", "uint8",
    "uint16", "uint32", "uint64", "float32", "float64", "complex128", "bool_", "intp",
)  # fmt: skip
_NUMPY = {getattr(np, name) for name in _NAMES}
_NUMBERS = (int, float, complex, np.number, np.bool_)
_MODULES = {np: (_NUMPY, {"pi", "e", "inf", "nan", "newaxis"}), math: (_MATH, {"pi", "e", "inf", "nan", "tau"})}


class Written(NamedTuple):
    """What is known of a function by its text.

    Parameters
    ----------
    node
        The text.
    called
        What it calls by name, as ``f`` or ``np.where``, each with the largest number of arguments by position.
    asked
        What it asks modules for beside calls, as ``np.pi``.
    stores, loops
        Whether it may store into an array, and whether it has a loop.
    exponentials
        Whether it has exponentials.
    told
        What is told of its differences, by what is known of the functions around.
    """

    node: ast.FunctionDef
    called: tuple[tuple[str, int], ...]
    asked: tuple[str, ...]
    stores: bool
    loops: bool
    exponentials: bool
    told: dict[Mode, Told]


class Ordinary(NamedTuple):
    """A function that Python may run.

    Parameters
    ----------
    function
        The function.
    reached
        It, and the user's functions that it calls.
    stores
        Whether it may store into an array.
    hands
        Whether it calls itself or functions of the user's.
    asks
        Whether it may take long: it has loops, or calls itself.
    mode
        What its functions are to each other, of rules for accuracy.
    """

    function: FunctionType
    reached: dict[FunctionType, Written]
    stores: bool
    hands: bool
    asks: bool
    mode: Mode

    @property
    def stored(self) -> frozenset[str]:
        """The arguments that may be stored into."""
        own: Any = self.function  # no method: it is held as it is
        stored = {f: overwritten(found.node) for f, found in self.reached.items() if found.stores}
        if self.hands and any(stored.values()):
            return frozenset(own.__code__.co_varnames)  # what is handed on is not followed
        return stored.get(own, frozenset())

    @property
    def looks(self) -> bool:
        """Whether anything in it is looked at as it runs."""
        return any(_told(f, found, self.mode).checks for f, found in self.reached.items())

    def asking(self, clock: Iterator[bool]) -> Callable[..., Any]:
        """The function, whose loops and calls take one from a clock each time, and whose differences are looked at."""
        spaces: dict[int, dict[str, Any]] = {}
        made: dict[FunctionType, FunctionType] = {}
        look = looks() if self.looks else {}
        for function in self.reached:
            space = function.__globals__
            own = {**space, WATCH: partial(itertools.compress, selectors=clock), TICK: clock.__next__} | look
            own = spaces.setdefault(id(space), own)
            made[function] = FunctionType(
                _asking(function.__code__, self.asks, self.mode), own, function.__name__, function.__defaults__
            )
        for function, found in self.reached.items():
            for name, _ in found.called:
                called = function.__globals__.get(name)
                if isinstance(called, FunctionType) and called in made:
                    spaces[id(function.__globals__)][name] = made[called]
        own: Any = self.function  # no method: it is held as it is
        return made[own]


def ordinary(function: FunctionType) -> Ordinary | None:
    """The function for Python to run; None where that may give, or do, something else than captured code."""
    reached: dict[FunctionType, Written] = {}
    if not _reaches_only_known(function, reached):
        return None
    stores = any(found.stores for found in reached.values())
    if stores and any(isinstance(v, np.ndarray) for f in reached for v in _read(f)):
        return None  # it may be the one that is stored into
    meant = [f.__globals__.get(name) for f, found in reached.items() for name, _ in found.called]
    called = {f for f in meant if isinstance(f, FunctionType) and f in reached}
    asks = function in called or any(found.loops for found in reached.values())
    return Ordinary(function, reached, stores, bool(called), asks, _mode(reached, called) if called else ONE)


def _mode(reached: dict[FunctionType, Written], called: set[FunctionType]) -> Mode:
    """What is known of functions that call each other, of rules for accuracy."""
    exponentials = any(found.exponentials for found in reached.values())
    mode = Mode(exponentials=exponentials)
    storing = [f for f in called if reached[f].stores]
    while True:
        tells = {f: _told(f, found, mode) for f, found in reached.items()}
        giving = {f for f in called if tells[f].gives}
        names = {name for f, found in reached.items() for name, _ in found.called if f.__globals__.get(name) in giving}
        wide = any(t.hands for t in tells.values())
        stores = bool(storing and (wide or names)) or any(tells[f].holds for f in storing)
        wider = mode._replace(givers=mode.givers | names, wide=mode.wide or wide, stores=mode.stores or stores)
        if wider == mode:
            return mode
        mode = wider


def _reaches_only_known(function: FunctionType, reached: dict[FunctionType, Written]) -> bool:
    """Whether a function, and what it calls, has only what is known here; ``reached`` gets it, and the user's that it calls."""
    found = written(function.__code__)
    if found is None or function.__closure__:
        return False
    for value in _read(function, found):
        if value is not None and not isinstance(value, _NUMBERS) and type(value) is not np.ndarray:
            return False
    reached[function] = found
    names = [*found.called, *((name, 0) for name in found.asked)]
    return all(_is_known(name, *_meant(function, name), count, reached) for name, count in names)


def _read(function: FunctionType, found: Written | None = None) -> list[Any]:
    """What a function reads from outside beside what it calls, and its defaults."""
    found = found or written(function.__code__)
    called = {name.partition(".")[0] for name in (*(n for n, _ in found.called), *found.asked)} if found else set[str]()
    space = function.__globals__
    return [
        *(function.__defaults__ or ()),
        *(space[n] for n in function.__code__.co_names if n in space and n not in called),
    ]


def _meant(function: FunctionType, dotted: str) -> tuple[Any, str]:
    name, _, attribute = dotted.partition(".")
    return function.__globals__.get(name, getattr(builtins, name, None)), attribute


def _is_known(name: str, value: Any, attribute: str, count: int, reached: dict[FunctionType, Written]) -> bool:
    """Whether what is called with so many arguments, or asked of a module, is known, or a function of the user's of such."""
    if attribute:
        functions, constants = (
            (value is np and _MODULES[np]) or (value is math and _MODULES[math]) or (set[Any](), set[str]())
        )
        if attribute == "linalg.solve":
            return value is np
        return attribute in constants or _among(getattr(value, attribute, None), functions, count)
    if isinstance(value, FunctionType) and value not in _NUMPY:
        return value in reached or _reaches_only_known(value, reached)
    if getattr(value, "__name__", "") != name:  # what a name says of a function is looked at
        return False
    return _among(value, _BUILTIN) or _among(value, _NUMPY, count) or _among(value, _MATH)


def _among(value: Any, known: set[Any], count: int = 0) -> bool:
    """Whether a function is known, and none of so many arguments is an array that it stores its result into."""
    try:
        there = value in known
    except TypeError:  # not hashable
        return False
    most = value.nin if isinstance(value, np.ufunc) else 3 if getattr(value, "__name__", "") in _THREE else 2
    return there and (count <= most or known is not _NUMPY)


def is_among_numpys(function: Any, count: int) -> bool:
    """Whether a function is one of NumPy's that only read the arrays they are given, of so many arguments."""
    return _among(function, _NUMPY, count)


_THREE = {"where", "clip", "arange", "linspace", "full", "full_like", "roll"}  # take three that they only read


@lru_cache(maxsize=1024)
def written(code: CodeType) -> Written | None:
    """What is known of a function by its text; None where anything in it is not among what is known here."""
    node = source.syntax_of(code)
    if not isinstance(node, ast.FunctionDef):
        return None
    args = node.args
    if args.vararg or args.kwarg or args.kwonlyargs or args.posonlyargs:
        return None
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    called: dict[str, int] = {}
    asked: dict[str, None] = {}
    if not all(_known(part, called, asked) for part in body):
        return None
    parts = [n for part in body for n in walk(part)]
    own = set(code.co_varnames)
    if any(name.partition(".")[0] in own for name in (*called, *asked)):
        return None
    stores = any(map(_stores, parts))
    return Written(
        node,
        tuple(called.items()),
        tuple(asked),
        stores,
        any(isinstance(n, ast.For | ast.While) for n in parts),
        any(map(is_exponential, parts)),
        {},
    )


def _stores(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.AugAssign)
        or is_store(node)
        or (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store))
    )


def _known(part: ast.AST, called: dict[str, int], asked: dict[str, None]) -> bool:
    """Whether code has only what is known here; ``called`` and ``asked`` get what it calls by name, and what it asks modules for."""
    pending = [part]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Call):
            if any(k.arg not in _KEYWORDS for k in node.keywords):
                return False
            pending += [*node.args, *(k.value for k in node.keywords)]
            if not _called(node, called, pending):
                return False
            continue
        if isinstance(node, ast.Attribute):
            if not isinstance(node.ctx, ast.Load):
                return False
            if node.attr not in _ATTRIBUTES:
                if not isinstance(node.value, ast.Name):
                    return False
                asked[f"{node.value.id}.{node.attr}"] = None
                continue
        elif not isinstance(node, _PARTS) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)):
            return False
        pending += children(node)
    return True


def _called(call: ast.Call, called: dict[str, int], pending: list[ast.AST]) -> bool:
    """Note what a call calls: a name, a module's function or a method of an array; False for anything else."""
    function, count = call.func, len(call.args)
    if any(isinstance(a, ast.Starred) for a in call.args):
        return False
    if isinstance(function, ast.Attribute) and function.attr == "outer" and isinstance(function.value, ast.Attribute):
        function = function.value  # of a ufunc
    if isinstance(function, ast.Name):
        called[function.id] = max(count, called.get(function.id, 0))
        return True
    if not isinstance(function, ast.Attribute):
        return False
    base, name = function.value, function.attr
    if is_store(call) and isinstance(base, ast.Attribute) and isinstance(base.value, ast.Name):
        called.setdefault(f"{base.value.id}.{base.attr}", 2)
        return base.attr in _AT
    if name == "solve" and count == 2 and ast.unparse(base) in {"np.linalg", "numpy.linalg"}:
        called.setdefault(f"{ast.unparse(base)}.{name}", count)
        return True
    if isinstance(base, ast.Name) and base.id in {"np", "numpy", "math"}:
        called[f"{base.id}.{name}"] = max(count, called.get(f"{base.id}.{name}", 0))
        return True
    pending.append(base)
    return name in _METHODS and (count <= 1 or name in _ANY)


_AT = {"add", "multiply", "maximum", "minimum"}  # whose stores at indices, some of them the same, are known
_ANY = {"reshape", "transpose", "item"}  # methods that take any number of arguments


# loops that ask -------------------------------------------------------------------------------------------------------


def _told(function: FunctionType | CodeType, found: Written, mode: Mode) -> Told:
    """What is told of a function among others."""
    known = found.told.get(mode)
    if known is None:
        code = function.__code__ if isinstance(function, FunctionType) else function
        known = found.told[mode] = told(found.node.body, code.co_varnames[: code.co_argcount], mode)
    return known


@lru_cache(maxsize=256)
def _asking(code: CodeType, asks: bool, mode: Mode) -> CodeType:
    """The code of a function whose loops, and whose beginning, ask whether there is time left, and whose differences are looked at."""
    found = written(code)
    assert found is not None  # noqa: S101 (its caller has asked)
    node = cloned(found.node)
    checks = _told(code, found, mode).checks
    if checks:
        own = {a: b for a, b in zip(walk(found.node), walk(node), strict=True) if a in checks}
        looking(node, {own[a]: name for a, name in checks.items()})
    if not asks:
        return source.compiled_anew(node, code)
    for part in [n for n in walk(node) if isinstance(n, ast.For | ast.While)]:
        if isinstance(part, ast.For):
            part.iter = placed_at(ast.Call(ast.Name(WATCH, ast.Load()), [part.iter], []), part.iter)
        else:
            part.test = placed_at(ast.BoolOp(ast.And(), [_ask(), part.test]), part.test)
    node.body = [placed_at(ast.Expr(_ask()), node.body[0]), *node.body]
    return source.compiled_anew(node, code)


def _ask() -> ast.expr:
    return ast.Call(ast.Name(TICK, ast.Load()), [], [])
