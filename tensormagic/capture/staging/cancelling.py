"""What a rule for accuracy may be about, by the text of a function: differences that cancel, and roots of squares."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tensormagic.capture.staging.trees import children, walk

PYTHONS = ("range", "len", "abs", "min", "max", "int", "float", "bool", "enumerate", "zip", "round", "divmod")
"""Names of Python's functions that give what is made of their arguments."""


class Told(NamedTuple):
    """What is told of a function.

    Parameters
    ----------
    cancels
        Whether there is a difference that may cancel, or a root of a square.
    careful
        Whether there is one if functions of the user's that are called give quotients, or functions of angles.
    gives
        Whether it gives such a thing itself.
    """

    cancels: bool
    careful: bool
    gives: bool


def told(body: list[ast.stmt]) -> Told:
    """Whether a quotient, a root or a power may be subtracted, or a function of angles added to anything or subtracted.

    A name counts as what it has got; what iterations change is known to no rule. A sum counts where anything is negated. A root of
    a square is out of reach of overflow in captured code, too.
    """
    parts = [n for part in body for n in _values(part)]
    if not any(_is_quotient(n) or _is_of_angles(n) or _is_users(n) for n in parts):
        return Told(cancels=False, careful=False, gives=False)
    negates = any(isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.USub) for n in parts)
    kinds = (ast.Sub, ast.Add) if negates else (ast.Sub,)
    own = _Names(kinds, users=False)
    cancels = own.block(body)
    return Told(cancels, cancels or _Names(kinds, users=True).block(body), own.gives)


@dataclass
class _Names:
    """Which names have got what, while a block is gone through.

    Parameters
    ----------
    kinds
        The operators of differences.
    users
        Whether what the user's functions give counts as anything.
    near, alone
        Names that have got quotients and the like; functions of angles.
    """

    kinds: tuple[type[ast.operator], ...]
    users: bool
    near: set[str] = field(default_factory=set[str])
    alone: set[str] = field(default_factory=set[str])
    gives: bool = False

    def block(self, block: list[ast.stmt]) -> bool:
        """Whether there is such a difference in a block."""
        return any(map(self.statement, block))

    def statement(self, statement: ast.stmt) -> bool:
        """Whether there is one in a statement; then names have got what it gives them."""
        if isinstance(statement, ast.For | ast.While):
            return self._loop(statement)
        if isinstance(statement, ast.If):
            other = _Names(self.kinds, self.users, set(self.near), set(self.alone))
            found = self._differs(statement.test) or self.block(statement.body) or other.block(statement.orelse)
            self.near |= other.near
            self.alone |= other.alone
            self.gives |= other.gives
            return found
        if self._differs(statement):
            return True
        if isinstance(statement, ast.Return) and statement.value is not None:
            self.gives |= self._is_near(statement.value) or self._is_alone(statement.value)
        for names, tells in ((self.near, self._is_near), (self.alone, self._is_alone)):
            if isinstance(statement, ast.Assign | ast.AugAssign) and tells(statement):
                names |= set(_bound(statement))
            elif isinstance(statement, ast.Assign):
                names -= {t.id for t in statement.targets if isinstance(t, ast.Name)}
        return False

    def _loop(self, loop: ast.For | ast.While) -> bool:
        changed = {name for n in walk(loop) for name in _bound(n)}
        self._forget(changed)
        found = self._differs(loop.iter if isinstance(loop, ast.For) else loop.test) or self.block(loop.body)
        self._forget(changed)
        return found or self.block(loop.orelse)

    def _forget(self, names: set[str]) -> None:
        self.near -= names
        self.alone -= names

    def _differs(self, part: ast.AST) -> bool:
        """Whether there is one in an expression, or a root of a square, or either handed on to be one."""
        return any(self._is_handed(n) if isinstance(n, ast.Call) else self._is_difference(n) for n in _values(part))

    def _is_near(self, value: ast.AST) -> bool:
        return self._bears(value, self.near, _is_quotient)

    def _is_alone(self, value: ast.AST) -> bool:
        return self._bears(value, self.alone, _is_of_angles)

    def _bears(self, value: ast.AST, names: set[str], tells: Callable[[ast.AST], bool]) -> bool:
        return any(
            (isinstance(n, ast.Name) and n.id in names) or tells(n) or (self.users and _is_users(n))
            for n in _values(value, whole=False)
        )

    def _is_handed(self, call: ast.Call) -> bool:
        users = _is_users(call)
        if name_of(call.func) != "sqrt" and not users:
            return False
        return any(self._is_near(a) or (users and self._is_alone(a)) for a in call.args)

    def _is_difference(self, node: ast.AST) -> bool:
        if not isinstance(node, ast.BinOp | ast.AugAssign) or not isinstance(node.op, ast.Add | ast.Sub):
            return False
        sides = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
        if any(map(self._is_alone, sides)):
            return True
        return isinstance(node.op, self.kinds) and any(map(self._is_near, sides))


def _values(part: ast.AST, *, whole: bool = True) -> Iterator[ast.AST]:
    """The nodes of code but those of indices and of ranges; where it is not the ``whole``, without what is added up in folds."""
    pending = [part]
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, ast.Call) and name_of(node.func) in ({"range"} if whole else {"range", *_FOLDS}):
            continue
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult) and not whole:
            continue
        pending += [node.value] if isinstance(node, ast.Subscript) else children(node)


_FOLDS = {"dot", "matmul", "sum", "outer", "exp"}  # and `exp`, of complex numbers: no rule sees through it


def _is_quotient(node: ast.AST) -> bool:
    """Whether a value is a quotient, a root, a power or a square."""
    if isinstance(node, ast.Call):
        return name_of(node.func) in {"sqrt", "mean", "square"}
    if not isinstance(node, ast.BinOp | ast.AugAssign):
        return False
    if isinstance(node.op, ast.Div | ast.Pow):
        return True
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult) or type(node.left) is not type(node.right):
        return False
    return ast.dump(node.left) == ast.dump(node.right)


def _is_of_angles(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and name_of(node.func) in {"sin", "cos", "tanh"}


def _is_users(node: ast.AST) -> bool:
    """Whether a call may be of a function of the user's."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in PYTHONS


def is_complex(value: ast.AST) -> bool:
    """Whether a value is made of a complex number that is written there."""
    return any(isinstance(n, ast.Constant) and isinstance(n.value, complex) for n in walk(value))


def name_of(function: ast.expr) -> str:
    """The name that a function is called by, without its module."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _bound(node: ast.AST) -> Iterator[str]:
    """The names that a statement binds or stores into, see :func:`_roots`."""
    targets = (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, ast.AugAssign | ast.For)
        else []
    )
    for target in targets:
        yield from _roots(target)


def _roots(target: ast.expr) -> Iterator[str]:
    """The names that a target binds, and those of arrays that it stores into at a place that is known: what else they hold is not."""
    pending: list[ast.expr] = [target]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Subscript):
            pending += [] if any(isinstance(n, ast.Name) for n in walk(node.slice)) else [node.value]
        elif isinstance(node, ast.Tuple | ast.List):
            pending += node.elts
