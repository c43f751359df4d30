"""What occurs in a function's text: quotients, roots, logarithms, stores, and the names that statements assign."""

from __future__ import annotations

import ast
import math
from collections.abc import Hashable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple, TypeGuard

from tensormagic.capture.python.builtin_facts import ORDINARY
from tensormagic.capture.staging.analysis import numpy_functions
from tensormagic.capture.staging.syntax.syntax_trees import children, walk
from tensormagic.capture.stores.at import AT

BINARY = ast.BinOp | ast.AugAssign  # (making such a type takes longer than checking it)
SUMS = ast.Add | ast.Sub


def sides_of(node: ast.AST) -> tuple[ast.expr, ast.expr]:
    """Return the two sides of an operation."""
    both: Any = node  # an operation: its caller has checked
    return (both.left, both.right) if node.__class__ is ast.BinOp else (both.target, both.value)


def values_in(part: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of code except those of indices, of ranges and of sizes."""
    pending = [part]
    while pending:
        node = pending.pop()
        kind = node.__class__
        if kind is ast.Name or kind is ast.Constant:
            yield node
        elif kind is ast.Subscript:
            yield node
            pending.append(node.value)  # type: ignore[attr-defined]
        elif not is_of_sizes(node):
            yield node
            pending += children(node)


Leaf = tuple[str, Hashable]
"""A name, with how the part is written that is read of it, or with ``""``."""


@lru_cache(maxsize=4096)
def leaves_of(part: ast.AST) -> frozenset[Leaf]:
    """Return the names and items that an expression is computed from."""
    if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name):
        return frozenset({(part.value.id, _writing(part.slice))})
    if isinstance(part, ast.Name):
        return frozenset({(part.id, "")})
    return frozenset[Leaf]().union(*([] if is_of_sizes(part) else map(leaves_of, children(part))))


def _writing(part: Any) -> Hashable:
    """Return a key that is equal for expressions that are written alike."""
    kind = part.__class__
    if kind is ast.Name:
        return kind, part.id
    if kind is ast.Constant:
        return kind, repr(part.value)
    if isinstance(part, ast.AST):
        own: dict[str, Any] = part.__dict__
        return kind, *[_writing(own.get(name)) for name in part._fields if name != "ctx"]
    return (kind, *map(_writing, part)) if kind is list else part


@lru_cache(maxsize=4096)
def linear_in(node: ast.AST) -> dict[Leaf, float] | None:
    """Return the factor of each term of a linear sum, if all are written there; None for any other expression."""
    if isinstance(node, ast.Name | ast.Subscript):
        leaves = leaves_of(node)
        return dict.fromkeys(leaves, 1.0) if len(leaves) == 1 else None
    if isinstance(node, ast.Constant):
        return {}
    if isinstance(node, ast.UnaryOp):
        return _scaled(linear_in(node.operand), -1.0 if isinstance(node.op, ast.USub) else 1.0)
    if not isinstance(node, ast.BinOp):
        return None
    left, right = linear_in(node.left), linear_in(node.right)
    if isinstance(node.op, ast.Mult):
        number, other = (node.left, right) if isinstance(node.left, ast.Constant) else (node.right, left)
        value = number.value if isinstance(number, ast.Constant) else None
        return _scaled(other, float(value)) if isinstance(value, int | float) else None
    if left is None or right is None or not isinstance(node.op, SUMS):
        return None
    sign = 1.0 if isinstance(node.op, ast.Add) else -1.0
    return {leaf: left.get(leaf, 0.0) + sign * right.get(leaf, 0.0) for leaf in left | right}


def _scaled(factors: dict[Leaf, float] | None, by: float) -> dict[Leaf, float] | None:
    return None if factors is None else {leaf: by * factor for leaf, factor in factors.items()}


_SIZES = {"shape", "size", "ndim"}
_RANGES = {"range", "len"}


def is_of_sizes(node: ast.AST) -> bool:
    """Return whether a node is a size, or a range of such."""
    kind = node.__class__
    if kind is ast.Attribute:
        return node.attr in _SIZES  # type: ignore[attr-defined]
    return kind is ast.Call and name_of(node.func) in _RANGES  # type: ignore[attr-defined]


def is_fold(node: ast.AST) -> bool:
    """Return whether a value is a fold of others, or an exponential that may be complex: no rule sees through these."""
    if isinstance(node, ast.Call):
        return name_of(node.func) in _NOT_SEEN_THROUGH
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)


_NOT_SEEN_THROUGH = numpy_functions.FOLDS | numpy_functions.EXPONENTIALS


def is_quotient(node: ast.AST) -> bool:
    """Return whether a value is a quotient, a root, a power or a square."""
    kind: Any = node.__class__
    if isinstance(node, ast.Call):
        name = name_of(node.func)
        return name in numpy_functions.QUOTIENTS or (
            name == "multiply" and len(node.args) > 1 and _are_alike(*node.args[:2])
        )
    if kind is not ast.BinOp and kind is not ast.AugAssign:
        return False
    op = node.op.__class__  # type: ignore[attr-defined]
    if op is ast.Div:
        return not _is_power_of_two(sides_of(node)[1])
    return op is ast.Pow or (op is ast.Mult and kind is ast.BinOp and _are_alike(node.left, node.right))  # type: ignore[attr-defined]


def _is_power_of_two(node: ast.AST) -> bool:
    """Return whether an expression is a constant power of two: division by one does not round."""
    value = node.value if isinstance(node, ast.Constant) else None
    return isinstance(value, int | float) and value > 0 and math.frexp(value)[0] == 0.5


def _are_alike(one: Any, other: Any) -> bool:
    """Return whether two parts of texts are written alike."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_are_alike, one, other))
    if isinstance(one, ast.AST):
        return all(_are_alike(getattr(one, f, None), getattr(other, f, None)) for f in one._fields)
    return bool(one == other)


def is_of_angles(node: ast.AST) -> bool:
    """Return whether a value is one of the functions that rules know in sums."""
    return isinstance(node, ast.Call) and (name_of(node.func) in numpy_functions.IN_SUMS or is_logarithm(node))


def is_logarithm(node: ast.AST) -> bool:
    """Return whether a value is a logarithm, or an exponential of something apparently real: no rule sees through these."""
    if not isinstance(node, ast.Call):
        return False
    return name_of(node.func) in numpy_functions.LOGARITHMS or is_exponential(node)


def is_exponential(node: ast.AST) -> bool:
    """Return whether a value is an exponential of something apparently real."""
    return (
        isinstance(node, ast.Call)
        and name_of(node.func) in numpy_functions.EXPONENTIALS
        and not any(map(is_complex, node.args))
    )


def is_users(node: ast.AST) -> bool:
    """Return whether a call may be of a function of the user's."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in ORDINARY


def is_store(node: ast.AST) -> TypeGuard[ast.Call]:
    """Return whether a value is a call of a ufunc's ``at``, which stores."""
    return isinstance(node, ast.Call) and name_of(node.func) == "at" and len(node.args) == 3


def is_into(node: ast.AST) -> TypeGuard[ast.Call]:
    """Return whether a value is a call of a ufunc that stores into its last argument."""
    if not isinstance(node, ast.Call):
        return False
    name, count = _attribute(node.func), len(node.args)
    return (count == 3 and name in UFUNCS) or (count == 2 and name in numpy_functions.INTO_OF_ONE)


def is_sum(node: ast.AST) -> TypeGuard[ast.Call]:
    """Return whether a value is a call of the ufunc that adds."""
    return isinstance(node, ast.Call) and _attribute(node.func) == "add" and len(node.args) > 1


def is_product(node: ast.AST) -> bool:
    """Return whether a value is a product, of numbers or of arrays element by element."""
    if isinstance(node, ast.Call):
        return _attribute(node.func) == "multiply"
    return isinstance(node, BINARY) and isinstance(node.op, ast.Mult)


def _attribute(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else ""


UFUNCS = {name for name in AT if name != "subtract"}  # a difference is examined as such
"""Those of two arguments, by name, whose stores are known: at indices, some of them the same, and into a third argument."""


def is_complex(value: ast.AST) -> bool:
    """Return whether an expression contains a complex constant."""
    return any(isinstance(n, ast.Constant) and isinstance(n.value, complex) for n in walk(value))


def name_of(function: ast.expr) -> str:
    """Return the name that a function is called by, without its module."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def bound_by(node: ast.AST) -> Iterator[str]:
    """Yield the names that a statement binds or stores into, see :func:`roots_of`."""
    targets = (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, ast.AugAssign | ast.For)
        else []
    )
    for target in targets:
        yield from roots_of(target)


def stored_by(statement: ast.Assign | ast.AugAssign) -> Iterator[str]:
    """Yield the names of arrays that a statement stores into."""
    for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
        if isinstance(statement, ast.AugAssign):
            yield from (n.id for n in walk(target) if isinstance(n, ast.Name))
        yield from (n.value.id for n in walk(target) if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name))


def viewed_by(value: ast.AST) -> str:
    """Return the name of the array that a value may be a view of."""
    while not isinstance(value, ast.Name):
        if isinstance(value, ast.Subscript | ast.Attribute):
            value = value.value
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            value = value.args[0] if name_of(value.func.value) in {"np", "numpy"} and value.args else value.func.value
        else:
            return ""
    return value.id


def roots_of(target: ast.expr) -> Iterator[str]:
    """Yield the names that a target binds, and those of arrays in which it stores at a known place."""
    pending: list[ast.expr] = [target]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Subscript):
            pending += [] if any(isinstance(n, ast.Name) for n in walk(node.slice)) else [node.value]
        elif isinstance(node, ast.Tuple | ast.List):
            pending += node.elts


class Seen(NamedTuple):
    """Represents what an expression contains, whatever its names hold.

    Parameters
    ----------
    names
        The names in it.
    visible, handed
        The names that rules see; those passed to user functions whose results are known.
    near, alone
        Whether there is a quotient or the like, a trigonometric function.
    calls
        The names of called functions whose results rules see.
    sums
        The sums and differences in it.
    products
        The factors of products in it, if both have names.
    multiplies
        Whether there is a product in it.
    mean
        Whether it is just a mean or the like.
    """

    names: frozenset[str]
    visible: frozenset[str]
    near: bool = False
    alone: bool = False
    calls: frozenset[str] = frozenset()
    sums: tuple[ast.AST, ...] = ()
    products: tuple[tuple[Seen, Seen], ...] = ()
    multiplies: bool = False
    mean: bool = False
    handed: frozenset[str] = frozenset()


class Step(NamedTuple):
    """Represents what a statement assigns.

    Parameters
    ----------
    returned
        The content of the value it returns.
    given, value
        What is assigned to names, and what the expression contains.
    bound, stored, anew
        The names it binds or stores into at a known place, that it stores into anywhere, and that are replaced
        completely.
    viewed
        The array of which the bound one may be a view.
    """

    returned: Seen | None
    given: Seen | None
    value: Seen
    bound: frozenset[str]
    stored: frozenset[str]
    anew: frozenset[str]
    viewed: str


_NONE = frozenset[str]()
_NOTHING = Seen(_NONE, _NONE)
_NO_STEP = Step(None, None, _NOTHING, _NONE, _NONE, _NONE, "")
Noted = tuple[ast.AST, str, tuple[Seen, ...]]
"""A node that may have to be looked at, its kind (of operator, or the name of what is called), and what stands in its parts."""


class Text:
    """Analyses the text of a function; each part only once."""

    def __init__(self) -> None:
        self._seen: dict[ast.AST, Seen] = {}
        self._steps: dict[ast.AST, Step] = {}
        self._notable: dict[ast.AST, list[Noted]] = {}

    def notable(self, part: ast.AST) -> list[Noted]:
        """Return the calls, sums, quotients and powers in a statement or expression, inner ones first."""
        found = self._notable.get(part)
        if found is None:
            found = self._notable[part] = []
            operations: list[Any] = [n for n in values_in(part) if n.__class__ in _OPERATIONS]
            for node in operations[::-1]:
                if isinstance(node, ast.Call):
                    found.append((node, name_of(node.func), tuple([self.seen(a) for a in node.args])))
                elif node.op.__class__ in _NOTABLE:
                    left, right = sides_of(node)
                    found.append((node, node.op.__class__.__name__, (self.seen(left), self.seen(right))))
        return found

    def step(self, statement: ast.stmt) -> Step:
        """Return what a statement assigns to which names."""
        found = self._steps.get(statement)
        if found is None:
            found = self._steps[statement] = self._step(statement)
        return found

    def _step(self, statement: ast.stmt) -> Step:
        if isinstance(statement, ast.Expr) and is_store(statement.value):
            target, _, value = statement.value.args
            statement = ast.AugAssign(target, ast.Add(), value)  # type: ignore[arg-type]  (or a mistake, that Python tells)
        elif isinstance(statement, ast.Expr) and is_into(statement.value):
            statement = ast.Assign([ast.Subscript(statement.value.args[-1], ast.Slice(), ast.Store())], statement.value)
        if isinstance(statement, ast.Return) and statement.value is not None:
            return _NO_STEP._replace(returned=self.seen(statement.value))
        if not isinstance(statement, ast.Assign | ast.AugAssign):
            return _NO_STEP
        plain = isinstance(statement, ast.Assign)
        anew = frozenset({t.id for t in statement.targets if isinstance(t, ast.Name)}) if plain else _NONE
        return Step(
            None,
            self.seen(statement.value if plain else statement),
            self.seen(statement.value),
            frozenset(bound_by(statement)),
            frozenset(stored_by(statement)),
            anew,
            viewed_by(statement.value) if len(anew) == 1 else "",
        )

    def seen(self, node: ast.AST) -> Seen:
        """Return what occurs in an expression."""
        found = self._seen.get(node)
        if found is None:
            found = self._seen[node] = self._look(node)
        return found

    def _look(self, node: Any) -> Seen:
        kind = node.__class__
        if kind is ast.Name:
            name = frozenset({node.id})
            return Seen(name, name)
        if kind is ast.Constant:
            return _NOTHING
        if kind is ast.Subscript:
            return self.seen(node.value)
        if kind in _OPERATIONS:
            return self._look_at_operation(node)
        return _NOTHING if is_of_sizes(node) else _together([self.seen(part) for part in children(node)])

    def _look_at_operation(self, node: Any) -> Seen:
        if isinstance(node, ast.Call):
            name = name_of(node.func)
            if name in {"range", "len"}:
                return _NOTHING
            calls, sums = frozenset({name}), (node,) if is_sum(node) else ()
            alone = name in numpy_functions.IN_SUMS or is_logarithm(node)
        else:
            calls, alone = _NONE, False
            sums = (node,) if node.op.__class__ in _SUMS else ()
        parts = [self.seen(part) for part in children(node)]
        inside, near, multiplies = _together(parts), is_quotient(node), is_product(node)
        if is_users(node) and calls.isdisjoint(numpy_functions.NAMES):
            handed = inside.handed | inside.visible
            calls |= inside.calls
            multiplies = inside.multiplies
            return Seen(inside.names, _NONE, calls=calls, sums=inside.sums, multiplies=multiplies, handed=handed)
        if is_fold(node):
            return Seen(inside.names, _NONE, near, alone, calls, sums)
        if not (near or alone or sums or calls or multiplies):
            return inside
        return Seen(
            inside.names,
            inside.visible,
            near or inside.near,
            alone or inside.alone,
            calls | inside.calls,
            sums + inside.sums,
            inside.products + _products(node, parts),
            multiplies or inside.multiplies,
            _is_mean(node),
            inside.handed,
        )


def _is_mean(node: ast.AST) -> bool:
    """Return whether a value is a mean or the like, or a sum over a number."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return isinstance(node.left, ast.Call) and name_of(node.left.func) == "sum" and _is_number(node.right)
    return isinstance(node, ast.Call) and name_of(node.func) in numpy_functions.CENTRES


def _is_number(node: ast.AST) -> bool:
    """Return whether an expression is a constant number, or a size."""
    if isinstance(node, ast.Subscript):
        node = node.value
    return isinstance(node, ast.Constant) or is_of_sizes(node)


def _products(node: ast.AST, parts: list[Seen]) -> tuple[tuple[Seen, Seen], ...]:
    """Return what occurs in the factors of a product, where both have names."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return ()
    left, right = parts
    return ((left, right),) if left.visible | left.handed and right.visible | right.handed else ()


def _together(parts: list[Seen]) -> Seen:
    """Return what occurs in several parts of an expression together."""
    parts = [part for part in parts if part is not _NOTHING]
    if len(parts) < 2:
        return parts[0] if parts else _NOTHING
    return Seen(
        _NONE.union(*[part.names for part in parts]),
        _NONE.union(*[part.visible for part in parts]),
        any(part.near for part in parts),
        any(part.alone for part in parts),
        _NONE.union(*[part.calls for part in parts]),
        tuple([n for part in parts for n in part.sums]),
        tuple([p for part in parts for p in part.products]),
        any(part.multiplies for part in parts),
        handed=_NONE.union(*[part.handed for part in parts]),
    )


_OPERATIONS = {ast.Call, ast.BinOp, ast.AugAssign}
_SUMS = {ast.Add, ast.Sub}
_NOTABLE = {ast.Add, ast.Sub, ast.Div, ast.Pow}
