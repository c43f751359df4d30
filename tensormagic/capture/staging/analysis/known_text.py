"""Functions whose text has only known parts: arithmetic, items, loops, branches, calls of what may turn out to be known."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple

from tensormagic.capture.staging.analysis import numpy_functions
from tensormagic.capture.staging.analysis.cancelling import Findings, Mode, Traits
from tensormagic.capture.staging.analysis.overwritten import overwritten
from tensormagic.capture.staging.analysis.text_features import (
    UFUNCS,
    Text,
    is_exponential,
    is_into,
    is_logarithm,
    is_of_angles,
    is_product,
    is_quotient,
    is_store,
    is_sum,
    name_of,
)
from tensormagic.capture.staging.syntax import source
from tensormagic.capture.staging.syntax.syntax_trees import children, walk

_PARTS = {
    ast.Assign, ast.For, ast.While, ast.If, ast.Return, ast.Break, ast.Continue, ast.Pass, ast.Expr, ast.BoolOp,
    ast.Compare, ast.IfExp, ast.Slice, ast.Tuple, ast.List,
}  # fmt: skip
"""What is nothing but its parts; what else is known is looked at."""
_ATTRIBUTES = {"shape", "size", "ndim", "T", "dtype", "real", "imag"}
_SIZES = {"shape", "size", "ndim"}
_METHODS = {
    "copy", "astype", "reshape", "ravel", "flatten", "transpose", "min", "max", "any", "all", "item", "dot", "sum", "mean", "std", "var",
    "prod", "cumsum", "cumprod", "argmin", "argmax", "argsort", "nonzero", "repeat", "round", "trace", "diagonal", "conj", "conjugate",
    "squeeze", "swapaxes", "clip", "searchsorted", "take",
}  # fmt: skip
OPERATORS = {"add", "multiply"}
"""Functions of NumPy's that are operators to rules, where they are asked for as its attributes."""
_ANY = {"reshape", "transpose", "item"}  # methods that take any number of arguments
_PAIRS = {"swapaxes", "clip"}  # methods that take two


_TEXTS = str | bytes
_ERRSTATE = {"np.errstate", "numpy.errstate"}


class Written(NamedTuple):
    """Represents facts about a function from its text.

    Parameters
    ----------
    node
        The text.
    called
        What it calls by name, such as ``f`` or ``np.where``, each with the largest number of positional arguments.
    asked
        The attributes of modules that it reads other than to call them, such as ``np.pi``.
    stores, loops
        Whether it may store into an array, and whether it has a loop.
    ranges
        Whether loops iterate over all its ``range``, and over nothing else.
    products
        Whether it uses the matrix product operator.
    traits
        What occurs in it, for rules about accuracy.
    told
        What was found about its differences, by the facts about other functions.
    """

    node: ast.FunctionDef
    called: tuple[tuple[str, int], ...]
    asked: tuple[str, ...]
    stores: bool
    loops: bool
    ranges: bool
    products: bool
    traits: Traits
    told: dict[Mode, Findings]


@lru_cache(maxsize=1024)
def written(code: CodeType) -> Written | None:
    """Return the facts about a function from its text; None if anything in it is not understood here."""
    node = source.found(code)
    if not isinstance(node, ast.FunctionDef):
        return None
    args = node.args
    if args.vararg or args.kwarg or args.kwonlyargs or args.posonlyargs:
        return None
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    reading = _Reading()
    if not reading.reads(body) or not reading.names.issuperset(code.co_names):
        return None  # not known, or not its source
    if reading.shaped and overwritten(node, reading.shaped):
        return None  # it would have to be undone
    own = set(code.co_varnames)
    if any(name.partition(".")[0] in own for name in (*reading.called, *reading.asked)):
        return None
    holds = reading.holds or (reading.multiplies and reading.sums)
    alone = reading.holds or reading.negates
    kinds = holds, alone, reading.sums, reading.negates, reading.exponentials
    traits = Traits(*kinds, frozenset(reading.held), Text())
    called, asked = tuple(reading.called.items()), tuple(reading.asked)
    ranges = reading.loops == reading.ranges == reading.counted
    return Written(node, called, asked, reading.stores, reading.loops > 0, ranges, reading.products, traits, {})


class _Reading:
    """Represents one traversal of a text, and what was found."""

    def __init__(self) -> None:
        self.called: dict[str, int] = {}
        self.asked: dict[str, None] = {}
        self.names: set[str] = set()
        self.held: set[str] = set()
        self.shaped: list[str] = []  # names of arrays whose shape is assigned
        self.alone: set[ast.AST] = set()  # expressions that are statements
        self.stores = self.holds = self.negates = self.exponentials = self.multiplies = self.sums = self.products = (
            False
        )
        self.loops = self.ranges = self.counted = 0  # loops, calls of `range`, and loops over one

    def reads(self, body: list[ast.stmt]) -> bool:
        """Return whether everything is understood. Indices, ranges and sizes are read second, as rules do not concern them."""
        inside: list[ast.AST] = []
        return self._read_all([*body], inside, counts=True) and self._read_all(inside, inside, counts=False)

    def _read_all(self, pending: list[ast.AST], inside: list[ast.AST], *, counts: bool) -> bool:
        while pending:
            node = pending.pop()
            kind = node.__class__
            if kind is ast.Name:
                self.names.add(node.id)  # type: ignore[attr-defined]
            elif kind in _PARTS:
                if kind is ast.For or kind is ast.While:
                    over = getattr(node, "iter", None)
                    self.loops += 1
                    self.counted += isinstance(over, ast.Call) and name_of(over.func) == "range"
                parts = children(node)
                pending += parts
                if kind is ast.Expr:
                    self.alone.update(parts)
            elif not self._record_node(node, pending, inside, counts=counts):
                return False
        return True

    def _record_node(self, node: ast.AST, pending: list[ast.AST], inside: list[ast.AST], *, counts: bool) -> bool:
        """Record a node that is not just a name with parts; False if it is not understood."""
        meets = _MEETS.get(node.__class__)
        return meets is not None and meets(self, node, pending, inside, counts)

    def item(self, node: ast.Subscript, pending: list[ast.AST], inside: list[ast.AST], counts: bool) -> bool:
        """Record an item that is read or stored; return whether it is understood."""
        self.stores = self.stores or node.ctx.__class__ is ast.Store
        if counts and isinstance(node.value, ast.Name):
            self.held.add(node.value.id)
        pending.append(node.value)
        inside.append(node.slice)
        return True

    def operation(
        self, node: ast.BinOp | ast.AugAssign | ast.UnaryOp, pending: list[ast.AST], _: list[ast.AST], counts: bool
    ) -> bool:
        """Record an operator; return whether it is understood."""
        self.stores = self.stores or node.__class__ is ast.AugAssign
        op = node.op.__class__
        self.products = self.products or op is ast.MatMult
        if counts:
            self.negates = self.negates or op is ast.Sub or op is ast.USub
            self.holds = self.holds or is_quotient(node)
            self.multiplies = self.multiplies or op is ast.Mult
            self.sums = self.sums or op is ast.Add or op is ast.Sub
        pending += children(node)
        return True

    def call(self, node: ast.Call, pending: list[ast.AST], inside: list[ast.AST], counts: bool) -> bool:
        """Record a call; return whether it is understood."""
        return self._calls(node, pending, inside, counts=counts)

    def attribute(self, node: ast.Attribute, pending: list[ast.AST], inside: list[ast.AST], _: bool) -> bool:
        """Record an attribute of an array or a module; return whether it is understood."""
        return self._asks(node, inside if node.attr in _SIZES else pending)

    def failure(self, node: ast.Raise | ast.Assert, pending: list[ast.AST], inside: list[ast.AST], _: bool) -> bool:
        """Record an ``assert`` or a ``raise``; return whether it is understood."""
        return self._fails(node, pending, inside)

    def block(self, node: ast.With, pending: list[ast.AST], _: list[ast.AST], __: bool) -> bool:
        """Record a ``with`` block; return whether it only changes NumPy's warnings."""
        pending += node.body
        return all(self._only_warns(item) for item in node.items)

    def constant(self, node: ast.Constant, *_: Any) -> bool:
        """Return whether a constant is a number."""
        return not isinstance(node.value, _TEXTS)

    def _fails(self, node: ast.Raise | ast.Assert, pending: list[ast.AST], inside: list[ast.AST]) -> bool:
        """Record an ``assert`` or a ``raise`` of Python's error with a text; return False for anything else."""
        if isinstance(node, ast.Assert):
            pending.append(node.test)
            return node.msg is None or _is_text(node.msg, inside)
        error, args = (node.exc.func, node.exc.args) if isinstance(node.exc, ast.Call) else (node.exc, [])
        if not isinstance(error, ast.Name) or node.cause or not all(_is_text(a, inside) for a in args):
            return False
        self._note(error.id, 0, error.id)
        return True

    def _only_warns(self, item: ast.withitem) -> bool:
        """Return whether a ``with`` block only changes NumPy's warnings."""
        call = item.context_expr
        if item.optional_vars or not isinstance(call, ast.Call) or call.args:
            return False
        called = ast.unparse(call.func)
        if called not in _ERRSTATE:
            return False
        self._note(called, 0, *called.split("."))
        return all(isinstance(k.value, ast.Constant) and k.value.value in {"ignore", "warn"} for k in call.keywords)

    def _asks(self, node: ast.Attribute, pending: list[ast.AST]) -> bool:
        """Record an attribute of an array or a module; False for anything else."""
        if not isinstance(node.ctx, ast.Load):
            return self._shapes(node)
        self.names.add(node.attr)
        if node.attr not in _ATTRIBUTES:
            if not isinstance(node.value, ast.Name):
                return False
            self.asked[f"{node.value.id}.{node.attr}"] = None
        pending.append(node.value)
        return True

    def _shapes(self, node: ast.Attribute) -> bool:
        """Record the name of an array whose shape is assigned; False for anything else."""
        if node.attr != "shape" or not isinstance(node.value, ast.Name):
            return False
        self.names.update(("shape", node.value.id))
        self.shaped.append(node.value.id)
        self.stores = True
        return True

    def _calls(self, call: ast.Call, pending: list[ast.AST], inside: list[ast.AST], *, counts: bool) -> bool:
        """Record the function that is called: a name, a module's function or a method of an array; return False for anything else."""
        name, into = name_of(call.func), is_into(call)
        if into and call not in self.alone:
            return False
        if any(k.arg not in numpy_functions.KEYWORDS or name in OPERATORS for k in call.keywords):
            return False
        sizes = name in {"range", "len"}
        if counts and not sizes:
            self._count(call, name)
        self.ranges += name == "range"
        self.exponentials = self.exponentials or is_exponential(call)
        self.stores = self.stores or into or is_store(call)
        of = inside if sizes else pending
        given = [*call.args, *[k.value for k in call.keywords]]
        by_attribute = isinstance(call.func, ast.Attribute)  # texts may be options of NumPy's functions
        of += [v for v in given if not (by_attribute and isinstance(v, ast.Constant) and isinstance(v.value, str))]
        return self._is_called(call, of)

    def _count(self, call: ast.Call, name: str) -> None:
        """Record what a call is for rules for accuracy."""
        logarithm = is_logarithm(call)
        self.negates = self.negates or logarithm or name == "negative"
        self.holds = self.holds or logarithm or is_of_angles(call) or is_quotient(call)
        self.multiplies = self.multiplies or is_product(call)
        self.sums = self.sums or is_sum(call)

    def _is_called(self, call: ast.Call, pending: list[ast.AST]) -> bool:
        function, count = call.func, len(call.args) - is_into(call)
        if any(isinstance(a, ast.Starred) for a in call.args):
            return False
        if (
            isinstance(function, ast.Attribute)
            and function.attr == "outer"
            and isinstance(function.value, ast.Attribute)
        ):
            self.names.add(function.attr)
            function = function.value  # of a ufunc
        if isinstance(function, ast.Name):
            self._note(function.id, count, function.id)
            return True
        if not isinstance(function, ast.Attribute):
            return False
        base, name = function.value, function.attr
        self.names.add(name)
        if is_store(call) and isinstance(base, ast.Attribute) and isinstance(base.value, ast.Name):
            self._note(f"{base.value.id}.{base.attr}", 2, base.value.id, base.attr)
            return base.attr in UFUNCS
        if isinstance(base, ast.Attribute) and numpy_functions.is_in_module(f"{base.attr}.{name}"):
            self._note(f"{ast.unparse(base)}.{name}", count, *ast.unparse(base).split("."))
            return True
        if isinstance(base, ast.Name) and base.id in {"np", "numpy", "math"}:
            self._note(f"{base.id}.{name}", count, base.id)
            return True
        pending.append(base)
        return name in _METHODS and (count <= 1 or name in _ANY or (count == 2 and name in _PAIRS))

    def _note(self, called: str, count: int, *names: str) -> None:
        self.called[called] = max(count, self.called.get(called, 0))
        self.names.update(names)


_MEETS: dict[type[ast.AST], Callable[..., bool]] = {
    ast.Subscript: _Reading.item,
    ast.BinOp: _Reading.operation,
    ast.AugAssign: _Reading.operation,
    ast.UnaryOp: _Reading.operation,
    ast.Call: _Reading.call,
    ast.Attribute: _Reading.attribute,
    ast.Raise: _Reading.failure,
    ast.Assert: _Reading.failure,
    ast.With: _Reading.block,
    ast.Constant: _Reading.constant,
}
"""What notes a node, by its class."""


def _is_text(node: ast.expr, inside: list[ast.AST]) -> bool:
    """Return whether a node is the text of an error; add the values in it to those still to be read."""
    if isinstance(node, ast.JoinedStr):
        values = [v for v in node.values if isinstance(v, ast.FormattedValue)]
        inside += [v.value for v in values]
        return not any(
            v.format_spec and any(isinstance(n, ast.FormattedValue) for n in walk(v.format_spec)) for v in values
        )
    return isinstance(node, ast.Constant)
