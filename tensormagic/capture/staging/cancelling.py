"""What a rule for accuracy may be about, by the text of a function: differences that cancel, roots of squares, logarithms."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeGuard

from tensormagic.capture.staging.trees import children, walk

PYTHONS = ("range", "len", "abs", "min", "max", "int", "float", "bool", "enumerate", "zip", "round", "divmod")
"""Names of Python's functions that give what is made of their arguments."""
DIFFERENCE, DEEP, ROOT, LOGARITHM, EXPONENTIAL = "difference", "deep", "root", "logarithm", "exponential"
POWER, DENOMINATOR, QUOTIENT, DIVISOR = "power", "denominator", "quotient", "divisor"
_PASSES = 3  # through loops whose iterations Python may run, until names have got what they get
_POWER = 64  # the largest exponent of which a sum's digits may be taken


class Told(NamedTuple):
    """What is told of a function.

    Parameters
    ----------
    checks
        What is looked at when it runs, with the name of what looks (see :mod:`~tensormagic.capture.staging.conditioned`).
    hands, gives
        Whether it hands such a thing to a function of the user's, or gives one.
    holds
        Whether there is any in its text.
    """

    checks: dict[ast.AST, str]
    hands: bool
    gives: bool
    holds: bool


class Mode(NamedTuple):
    """What is known of functions that call each other.

    Parameters
    ----------
    givers
        The names of functions of the user's that give what counts as anything.
    wide
        Whether parameters count as anything.
    exponentials
        Whether any has exponentials.
    stores
        Whether any may store such a thing into what it is given, which counts as anything then.
    """

    givers: frozenset[str] = frozenset()
    wide: bool = False
    exponentials: bool = False
    stores: bool = False


ONE = Mode()  # function by itself
NONE = Told({}, hands=False, gives=False, holds=False)


def told(body: list[ast.stmt], parameters: tuple[str, ...], mode: Mode = ONE) -> Told:
    """Where a quotient, a root or a power may be subtracted, or a function of angles added to anything or subtracted, and the like.

    A name counts as what it has got. A loop may have one iteration, which is no loop in captured code; in one of more, what iterations
    hand on is known to no rule, but where they are over parts that Python has. A sum counts where anything is negated or subtracted.
    Where one side is no such thing, there is a rule if it has a name in common with the other one, or may be a constant. A root of a
    square is out of reach of overflow in captured code, too; logarithms and exponentials always count. Where there are any, so do
    denominators. What is known of other functions is ``mode``.
    """
    parts = [n for part in body for n in _values(part)]
    holds = any(_is_quotient(n) or _is_of_angles(n) for n in parts)
    if mode == ONE and not holds:
        return NONE
    negates = mode.wide or any(
        _is_logarithm(n) or isinstance(getattr(n, "op", None), ast.USub | ast.Sub) for n in parts
    )
    held = {n.value.id for n in parts if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name)}
    own = set(parameters) if mode.wide else set[str]()
    found = _Names((ast.Sub, ast.Add) if negates else (ast.Sub,), mode, held & set(parameters), own, set(own))
    found.atoms = {name: frozenset({name}) for name in parameters}
    if not mode.exponentials and any(map(is_exponential, parts)):
        found.mode = mode._replace(exponentials=True)
    found.block(body)
    return Told(found.checks, found.hands, found.gives, holds)


@dataclass
class _Names:
    """Which names have got what, while a block is gone through.

    Parameters
    ----------
    kinds
        The operators of differences.
    mode
        What is known of the functions around.
    solid
        Parameters that are arrays, as it seems: no constants in captured code.
    near, alone
        Names that have got quotients and the like; functions of angles.
    less
        Names that have got differences that are looked at.
    atoms
        The parameters that names are made of.
    base
        The names of which names may be views.
    """

    kinds: tuple[type[ast.operator], ...]
    mode: Mode
    solid: set[str]
    near: set[str] = field(default_factory=set[str])
    alone: set[str] = field(default_factory=set[str])
    less: set[str] = field(default_factory=set[str])
    atoms: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    base: dict[str, str] = field(default_factory=dict[str, str])
    checks: dict[ast.AST, str] = field(default_factory=dict[ast.AST, str])
    notable: dict[ast.AST, list[ast.AST]] = field(default_factory=dict[ast.AST, list[ast.AST]])
    seen: dict[ast.AST, _Seen] = field(default_factory=dict[ast.AST, "_Seen"])
    gives: bool = False
    hands: bool = False

    def block(self, block: list[ast.stmt]) -> None:
        """Note what there is in a block."""
        for statement in block:
            self.statement(statement)

    def statement(self, statement: ast.stmt) -> None:
        """Note what there is in a statement; then names have got what it gives them."""
        if isinstance(statement, ast.For | ast.While):
            self._loop(statement)
            return
        if isinstance(statement, ast.If):
            self._note(statement.test)
            other = self._other()
            self.block(statement.body)
            other.block(statement.orelse)
            self._join(other)
            return
        self._note(statement)
        if isinstance(statement, ast.Return) and statement.value is not None:
            self.gives |= self._is_near(statement.value) or self._is_alone(statement.value)
        if isinstance(statement, ast.Expr) and is_store(statement.value):
            target, _, value = statement.value.args
            statement = ast.AugAssign(target, ast.Add(), value)  # type: ignore[arg-type]  (or a mistake, that Python tells)
        if isinstance(statement, ast.Assign | ast.AugAssign):
            self._get(statement)

    def _get(self, statement: ast.Assign | ast.AugAssign) -> None:
        """Names have got what a statement gives them, and so have those that may be views of the same array."""
        bound = set(_bound(statement))
        stored, anew, given = set(_stored(statement)), set[str](), statement
        if isinstance(statement, ast.Assign):
            anew, given = {t.id for t in statement.targets if isinstance(t, ast.Name)}, statement.value
        made = self._atoms(statement.value)
        for name in anew:
            self.base[name] = name
            self.atoms[name] = made
        if len(anew) == 1 and (base := _viewed(statement.value)):
            self.base[min(anew)] = self.base.get(base, base)
        bases = {self.base.get(name, name) for name in bound | stored}
        alike = {name for name, base in self.base.items() if base in bases} | bases if stored else set[str]()
        for name in (bound | stored | alike) - anew:
            self.atoms[name] = self.atoms.get(name, frozenset()) | made
        for names, tells in ((self.near, self._is_near), (self.alone, self._is_alone), (self.less, self._is_less)):
            if tells(given):
                names.update(bound, alike if stored & bound else ())
            else:
                names.difference_update(anew)

    def _loop(self, loop: ast.For | ast.While) -> None:
        self._note(loop.iter if isinstance(loop, ast.For) else loop.test)
        if isinstance(loop, ast.For):
            self.atoms |= dict.fromkeys(_roots(loop.target), self._atoms(loop.iter))
        before = self._other()
        rolled = isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) and name_of(loop.iter.func) == "range"
        self.block(loop.body)
        if isinstance(loop, ast.While):  # Python runs those whose conditions are no data
            rolled = bool(self._atoms(loop.test) & self.solid)
        for _ in range(1 if rolled else _PASSES):
            if rolled:  # what iterations hand on is made of what it is made of, and no more is known
                self.near, self.alone, self.less = set(before.near), set(before.alone), set(before.less)
            self._join(before)
            self.block(loop.body)
        self._join(before)
        self.block(loop.orelse)

    def _other(self) -> _Names:
        """The same, for another way through the code."""
        sets = {"near": set(self.near), "alone": set(self.alone), "less": set(self.less)}
        return replace(self, atoms=dict(self.atoms), base=dict(self.base), **sets)

    def _join(self, other: _Names) -> None:
        self.near |= other.near
        self.alone |= other.alone
        self.less |= other.less
        self.gives |= other.gives
        self.hands |= other.hands
        for name, made in other.atoms.items():
            self.atoms[name] = self.atoms.get(name, frozenset()) | made
        self.base = other.base | self.base

    def _note(self, part: ast.AST) -> None:
        """Note what is to be looked at in a statement or an expression; what is inside comes first."""
        nodes = self.notable.get(part)
        if nodes is None:
            kinds = ast.Call | ast.BinOp | ast.AugAssign
            nodes = self.notable[part] = [n for n in _values(part) if isinstance(n, kinds)][::-1]
        for node in nodes:
            if isinstance(node, ast.Call):
                self._note_call(node)
            elif self._is_difference(node):
                deep = any(map(self._is_less, _sides(node)))
                self.checks[node] = DEEP if deep else DIFFERENCE
            elif isinstance(getattr(node, "op", None), ast.Div) and any(map(self._is_near, _sides(node))):
                self.checks[node] = QUOTIENT if self._is_near(_sides(node)[0]) else DIVISOR
            elif isinstance(getattr(node, "op", None), ast.Div) and self.mode.exponentials:
                self.checks[node] = DENOMINATOR
            elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Pow):
                power = _sides(node)[1]
                power = power.operand if isinstance(power, ast.UnaryOp) else power
                if not (
                    isinstance(power, ast.Constant) and isinstance(power.value, int | float) and power.value <= _POWER
                ):
                    self.checks[node] = POWER

    def _note_call(self, call: ast.Call) -> None:
        name = name_of(call.func)
        if _is_logarithm(call):
            self.checks[call] = EXPONENTIAL if name == "exp" else LOGARITHM
        elif name == "power" and len(call.args) > 1:
            self.checks[call] = POWER
        elif name == "sqrt" and any(map(self._is_near, call.args)):
            self.checks[call] = ROOT
        elif _is_users(call):
            self.hands |= any(self._is_near(a) or self._is_alone(a) for a in call.args)
            if self.mode.stores:
                names = {name for a in call.args for name in self._seen(a).names}
                bases = {self.base.get(name, name) for name in names}
                names |= {name for name, base in self.base.items() if base in bases} | bases
                self.near |= names
                self.alone |= names
                for name in names:
                    self.atoms[name] = self.atoms.get(name, frozenset()) | self._atoms(call)

    def _is_near(self, value: ast.AST) -> bool:
        found = self._seen(value)
        return found.near or not self.near.isdisjoint(found.visible)

    def _is_alone(self, value: ast.AST) -> bool:
        found = self._seen(value)
        return found.alone or not self.alone.isdisjoint(found.visible)

    def _is_less(self, value: ast.AST) -> bool:
        found = self._seen(value)
        differs = any(self.checks.get(n) in {DIFFERENCE, DEEP} for n in found.sums)
        return differs or found.given or not self.less.isdisjoint(found.visible)

    def _seen(self, node: ast.AST) -> _Seen:
        """What stands in a value, whatever its names have got."""
        found = self.seen.get(node)
        if found is None:
            found = self.seen[node] = self._look(node)
        return found

    def _look(self, node: ast.AST) -> _Seen:
        if isinstance(node, ast.Name):
            name = frozenset({node.id})
            return _Seen(name, name)
        if isinstance(node, ast.Constant) or _is_of_sizes(node):
            return _NOTHING
        given = isinstance(node, ast.Call) and name_of(node.func) in self.mode.givers
        near, alone = given or _is_quotient(node), given or _is_of_angles(node)
        sums = (node,) if isinstance(getattr(node, "op", None), ast.Add | ast.Sub) else ()
        parts = [self._seen(part) for part in ([node.value] if isinstance(node, ast.Subscript) else children(node))]
        names = frozenset[str]().union(*[part.names for part in parts])
        if _is_fold(node):
            return _Seen(names, frozenset(), near, alone, given, sums)
        return _Seen(
            names,
            frozenset[str]().union(*[part.visible for part in parts]),
            near or any(part.near for part in parts),
            alone or any(part.alone for part in parts),
            given or any(part.given for part in parts),
            sums + tuple(n for part in parts for n in part.sums),
        )

    def _is_difference(self, node: ast.AST) -> bool:
        if not isinstance(node, ast.BinOp | ast.AugAssign) or not isinstance(node.op, ast.Add | ast.Sub):
            return False
        sides = _sides(node)
        alone = [self._is_alone(side) for side in sides]
        near = [self._is_near(side) or is_alone for side, is_alone in zip(sides, alone, strict=True)]
        if not any(near) or not (any(alone) or isinstance(node.op, self.kinds)):
            return False
        if all(near):
            return True
        one, other = sides if near[0] else sides[::-1]
        made = self._atoms(other)
        return not made & self.solid or bool(made & self._atoms(one))

    def _atoms(self, value: ast.AST) -> frozenset[str]:
        """The parameters that a value is made of."""
        names = self._seen(value).names
        return frozenset[str]().union(*[self.atoms[name] for name in names if name in self.atoms])


def _sides(node: ast.AST) -> tuple[ast.expr, ast.expr]:
    assert isinstance(node, ast.BinOp | ast.AugAssign)  # noqa: S101 (its caller has asked)
    return (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)


def _values(part: ast.AST) -> Iterator[ast.AST]:
    """The nodes of code but those of indices, of ranges and of sizes."""
    pending = [part]
    while pending:
        node = pending.pop()
        if not _is_of_sizes(node):
            yield node
            pending += [node.value] if isinstance(node, ast.Subscript) else children(node)


def _is_of_sizes(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in {"shape", "size", "ndim"}
    return isinstance(node, ast.Call) and name_of(node.func) in {"range", "len"}


def _is_fold(node: ast.AST) -> bool:
    """Whether a value is added up of others, or is an exponential of complex numbers: no rule sees through it; a real one counts itself."""
    if isinstance(node, ast.Call):
        return name_of(node.func) in {"dot", "matmul", "sum", "outer", "exp"}
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)


class _Seen(NamedTuple):
    """What stands in a value.

    Parameters
    ----------
    names
        The names in it.
    visible
        Those that rules see.
    near, alone, given
        Whether there is a quotient or the like, a function of angles, or what a function of the user's gives.
    sums
        The sums and differences in it.
    """

    names: frozenset[str]
    visible: frozenset[str]
    near: bool = False
    alone: bool = False
    given: bool = False
    sums: tuple[ast.AST, ...] = ()


_NOTHING = _Seen(frozenset(), frozenset())


def _is_quotient(node: ast.AST) -> bool:
    """Whether a value is a quotient, a root, a power or a square."""
    if isinstance(node, ast.Call):
        return name_of(node.func) in {"sqrt", "mean", "std", "var", "power"}
    if not isinstance(node, ast.BinOp | ast.AugAssign):
        return False
    if isinstance(node.op, ast.Div | ast.Pow):
        return True
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult) or type(node.left) is not type(node.right):
        return False
    return _are_alike(node.left, node.right)


def _are_alike(one: ast.AST, other: ast.AST) -> bool:
    """Whether two values are written alike."""
    if type(one) is not type(other):
        return False
    if isinstance(one, ast.Name) and isinstance(other, ast.Name):
        return one.id == other.id
    return ast.dump(one) == ast.dump(other)


def _is_of_angles(node: ast.AST) -> bool:
    """Whether a value is one of the functions that rules know in sums."""
    return isinstance(node, ast.Call) and (name_of(node.func) in _IN_SUMS or _is_logarithm(node))


_IN_SUMS = {"sin", "cos", "tanh", "arctan", "arctan2"}


def _is_logarithm(node: ast.AST) -> bool:
    """Whether a value is a logarithm, or an exponential of what is not seen to be complex: no rule is about such."""
    if not isinstance(node, ast.Call):
        return False
    return name_of(node.func) == "log" or is_exponential(node)


def is_exponential(node: ast.AST) -> bool:
    """Whether a value is an exponential, of what is not seen to be complex."""
    return isinstance(node, ast.Call) and name_of(node.func) == "exp" and not any(map(is_complex, node.args))


def _is_users(node: ast.AST) -> bool:
    """Whether a call may be of a function of the user's."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in PYTHONS


def is_store(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether a value is a call of a ufunc's ``at``, which stores."""
    return isinstance(node, ast.Call) and name_of(node.func) == "at" and len(node.args) == 3


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


def _stored(statement: ast.Assign | ast.AugAssign) -> Iterator[str]:
    """The names of arrays that a statement stores into, at whatever place."""
    for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
        if isinstance(statement, ast.AugAssign):
            yield from (n.id for n in walk(target) if isinstance(n, ast.Name))
        yield from (n.value.id for n in walk(target) if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name))


def _viewed(value: ast.AST) -> str:
    """The name of the array that a value may be a view of."""
    while not isinstance(value, ast.Name):
        if isinstance(value, ast.Subscript | ast.Attribute):
            value = value.value
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            value = value.args[0] if name_of(value.func.value) in {"np", "numpy"} and value.args else value.func.value
        else:
            return ""
    return value.id


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
