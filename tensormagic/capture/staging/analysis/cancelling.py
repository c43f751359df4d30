"""Finds, in the text of a function, what a rule for accuracy may apply to: differences that cancel, roots of squares, logarithms."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from types import CodeType
from typing import Any, NamedTuple

from tensormagic.capture.staging.analysis.text_features import (
    BINARY,
    Seen,
    Step,
    Text,
    is_exponential,
    is_logarithm,
    is_sum,
    is_users,
    leaves_of,
    linear_in,
    name_of,
    roots_of,
    sides_of,
)

DIFFERENCE, DEEP, ROOT, LOGARITHM, EXPONENTIAL = "difference", "deep", "root", "logarithm", "exponential"
POWER, DENOMINATOR, QUOTIENT, DIVISOR = "power", "denominator", "quotient", "divisor"
_PASSES = 3  # passes through loops whose iterations Python may run, until the kinds of names settle
_LOOPS = ast.For | ast.While
_POWER = 64  # the largest exponent for which the digits of a sum may matter


_DIFFERENCES = {DIFFERENCE, DEEP}
_NONE = frozenset[str]()


class PassedValues(NamedTuple):
    """Whether a function returns values of one sort, and the names of user functions that it passes such values to."""

    gives: bool = False
    hands: frozenset[str] = _NONE


class Findings(NamedTuple):
    """Represents what was found in a function.

    Parameters
    ----------
    checks
        The nodes to examine when it runs, with the kind of examination
        (see :mod:`~tensormagic.capture.staging.analysis.lost_digits`).
    holds
        Whether its text contains any such node.
    steep
        How it returns and passes on quotients, trigonometric functions and the like.
    sums
        How it returns and passes on sums and products.
    """

    checks: dict[ast.AST, str]
    holds: bool
    steep: PassedValues
    sums: PassedValues


class Flow(NamedTuple):
    """The names of user functions that return values of one sort, and the code of functions that are passed such values."""

    givers: frozenset[str] = _NONE
    given: frozenset[CodeType] = frozenset()


class Mode(NamedTuple):
    """Represents facts about functions that call each other.

    Parameters
    ----------
    steep
        Those that return, or are passed, values of interest.
    sums
        Those that return, or are passed, sums or products.
    exponentials
        Whether any has exponentials.
    stores
        Whether any may store such a value into an argument, which then counts as one.
    others
        Whether there are other functions.
    negates
        Whether anything is negated or subtracted in any, or there is a logarithm or exponential.
    """

    steep: Flow = Flow()
    sums: Flow = Flow()
    exponentials: bool = False
    stores: bool = False
    others: bool = False
    negates: bool = False

    def about(self, code: CodeType, calls: frozenset[str]) -> Mode:
        """Return the facts that concern one function, which calls certain user functions by name."""
        given = self.steep.given & {code} or (_ELSEWHERE if self.steep.given else self.steep.given)
        return self._replace(
            steep=Flow(self.steep.givers & calls, given),
            sums=Flow(self.sums.givers & calls, self.sums.given & {code}),
            stores=self.stores and bool(calls),
        )


_ELSEWHERE = frozenset({Mode.about.__code__})  # another function
ONE = Mode()  # function by itself
NONE = Findings({}, holds=False, steep=PassedValues(), sums=PassedValues())


class Traits(NamedTuple):
    """Represents what occurs in the text of a function, apart from indices, ranges and sizes.

    Parameters
    ----------
    holds
        Whether there is a quotient, root, power, square or trigonometric function, or products and sums of sums.
    alone
        Whether any of that matters in a single function, where sums of products do so only with a negation or
        subtraction.
    sums
        Whether anything is added or subtracted.
    negates
        Whether anything is negated or subtracted, or there is a logarithm or exponential.
    exponentials
        Whether there are exponentials.
    held
        The names that are indexed.
    text
        The text, for looking things up.
    """

    holds: bool
    alone: bool
    sums: bool
    negates: bool
    exponentials: bool
    held: frozenset[str]
    text: Text


def findings_in(body: list[ast.stmt], code: CodeType, traits: Traits, mode: Mode = ONE) -> Findings:
    """Return where a quotient, root or power may be subtracted, a trigonometric function added or subtracted, and the like.

    A name counts as its value. A loop may have a single iteration, which is no loop in captured code; in one of more,
    carried values are unknown to rules, except for loops over items that Python has. A sum counts if anything is
    negated or subtracted. If only one side is such a value, there is a rule if it shares a name with the other side, or
    that may be constant. A root of a square cannot overflow in captured code, either; logarithms and exponentials
    always count, and with them denominators. ``mode`` has the facts about other functions.
    """
    if mode == ONE and not traits.holds:
        return NONE
    parameters = code.co_varnames[: code.co_argcount]
    own = set(parameters) if code in mode.steep.given else set[str]()
    summed = frozenset(parameters if code in mode.sums.given else ())
    kinds = frozenset({"Sub", "Add"} if mode.steep.given or mode.negates or traits.negates else {"Sub"})
    found = _Names(traits.text, kinds, mode, set(traits.held & set(parameters)), own, set(own))
    found.summed, found.multiplied, found.given = set(summed), set(summed), summed
    found.atoms = {name: frozenset({name}) for name in parameters}
    if traits.exponentials:
        found.mode = mode._replace(exponentials=True)
    found.block(body)
    steep, sums = PassedValues(found.gives, frozenset(found.hands)), PassedValues(found.adds, frozenset(found.spreads))
    return Findings(found.checks, traits.holds, steep, sums)


@dataclass
class _Names:
    """Records the kinds of values that names have, while a block is traversed.

    Parameters
    ----------
    text
        The text.
    kinds
        The operators of differences.
    mode
        The facts about surrounding functions.
    solid
        Parameters that appear to be arrays: no constants in captured code.
    near, alone
        Names of quotients and the like; of trigonometric functions.
    less, summed, means
        Names of differences of interest; of sums and differences; of means and the like.
    multiplied
        Names of products.
    given
        Parameters that may be sums or products.
    atoms
        The parameters that names depend on.
    base
        The names of which names may be views.
    loops
        The kinds before and after loops.
    """

    text: Text
    kinds: frozenset[str]
    mode: Mode
    solid: set[str]
    near: set[str] = field(default_factory=set[str])
    alone: set[str] = field(default_factory=set[str])
    less: set[str] = field(default_factory=set[str])
    summed: set[str] = field(default_factory=set[str])
    means: set[str] = field(default_factory=set[str])
    multiplied: set[str] = field(default_factory=set[str])
    given: frozenset[str] = _NONE
    atoms: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    base: dict[str, str] = field(default_factory=dict[str, str])
    checks: dict[ast.AST, str] = field(default_factory=dict[ast.AST, str])
    gives: bool = False
    hands: set[str] = field(default_factory=set[str])
    adds: bool = False
    spreads: set[str] = field(default_factory=set[str])
    loops: dict[ast.AST, tuple[Any, Any]] = field(default_factory=dict[ast.AST, tuple[Any, Any]])

    def block(self, block: list[ast.stmt]) -> None:
        """Record what occurs in a block."""
        for statement in block:
            self.statement(statement)

    def statement(self, statement: ast.stmt) -> None:
        """Record what is in a statement, then update the names it assigns."""
        if isinstance(statement, _LOOPS):
            self._loop(statement)
            return
        if isinstance(statement, ast.If):
            self._note(statement.test)
            other = self._other()
            self.block(statement.body)
            other.block(statement.orelse)
            self._join(other)
            return
        if isinstance(statement, ast.With):
            self.block(statement.body)
            return
        if isinstance(statement, ast.Raise):
            return  # the call is captured then
        self._note(statement)
        step = self.text.step(statement)
        if step.returned is not None:
            self.gives |= self._is_near(step.returned) or self._is_alone(step.returned)
            self.adds |= self._is_summed(step.returned) or self._is_multiplied(step.returned)
        if step.given is not None:
            self._get(step, step.given)

    def _get(self, step: Step, given: Seen) -> None:
        """Give names the kinds of values that a statement assigns, and likewise the names that may be views of the same array."""
        bound, stored, anew = step.bound, step.stored, step.anew
        made = self._atoms(step.value)
        for name in anew:
            self.base[name] = name
            self.atoms[name] = made
        if step.viewed:
            self.base[min(anew)] = self.base.get(step.viewed, step.viewed)
        alike = set[str]()
        if stored:
            bases = {self.base.get(name, name) for name in bound | stored}
            alike = {name for name, base in self.base.items() if base in bases} | bases
        for name in (bound | stored | alike) - anew:
            self.atoms[name] = self.atoms.get(name, _NONE) | made
        for names, tells in (
            (self.near, self._is_near),
            (self.alone, self._is_alone),
            (self.less, self._is_less),
            (self.summed, self._is_summed),
            (self.multiplied, self._is_multiplied),
        ):
            if tells(given):
                names.update(bound, alike if stored & bound else ())
            else:
                names.difference_update(anew)
        is_mean = self._is_mean(given)
        self.means -= bound | stored | alike
        if is_mean and bound == anew:
            self.means |= anew

    def _loop(self, loop: ast.For | ast.While) -> None:
        """Read a loop; an inner loop is not read again if names have the same kinds as the last time."""
        begins = self._state()
        known = self.loops.get(loop)
        if known is None or known[0] != begins:
            self._goes_round(loop)
            self.loops[loop] = begins, self._state()
            return
        sets, atoms, base, _, (gives, adds), *_ = known[1]
        for name, has in sets.items():
            setattr(self, name, set(has))
        self.atoms, self.base = dict(atoms), dict(base)
        self.gives, self.adds = self.gives or gives, self.adds or adds

    def _goes_round(self, loop: ast.For | ast.While) -> None:
        self._note(loop.iter if isinstance(loop, ast.For) else loop.test)
        if isinstance(loop, ast.For):
            self.atoms |= dict.fromkeys(roots_of(loop.target), self._atoms(self.text.seen(loop.iter)))
            self.means.difference_update(roots_of(loop.target))
        before = self._other()
        rolled = isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) and name_of(loop.iter.func) == "range"
        self.block(loop.body)
        if isinstance(loop, ast.While):  # Python runs those whose conditions are not data-dependent
            rolled = bool(self._atoms(self.text.seen(loop.test)) & self.solid)
        last: Any = None
        for _ in range(1 if rolled else _PASSES):
            if rolled:  # what a loop carries depends on what it is computed from, and no more is known
                for name, had in before.sets().items():
                    setattr(self, name, had)
            self._join(before)
            if not rolled and last == (last := self._state()):
                break  # as found by the pass before
            self.block(loop.body)
        self._join(before)
        self.block(loop.orelse)

    def _state(self) -> tuple[Any, ...]:
        """Return the state that the result of a pass depends on."""
        names = dict(self.atoms), dict(self.base), dict(self.checks)
        return self.sets(), *names, (self.gives, self.adds), set(self.hands), set(self.spreads)

    def sets(self) -> dict[str, set[str]]:
        """Return the sets of names of each kind, as copies."""
        return {name: set(getattr(self, name)) for name in ("near", "alone", "less", "summed", "multiplied", "means")}

    def _other(self) -> _Names:
        """Return a copy for another path through the code."""
        return replace(self, atoms=dict(self.atoms), base=dict(self.base), **self.sets())

    def _join(self, other: _Names) -> None:
        self.near |= other.near
        self.alone |= other.alone
        self.less |= other.less
        self.summed |= other.summed
        self.multiplied |= other.multiplied
        self.means &= other.means
        self.gives |= other.gives
        self.adds |= other.adds
        self.hands |= other.hands
        self.spreads |= other.spreads
        for name, made in other.atoms.items():
            own = self.atoms.get(name)
            if own is not made:
                self.atoms[name] = made if own is None else own | made
        self.base = other.base | self.base

    def _note(self, part: ast.AST) -> None:
        """Record the parts of interest in a statement or expression, inner ones first."""
        for node, kind, sides in self.text.notable(part):
            if isinstance(node, ast.Call):
                self._note_call(node, kind, sides)
            elif kind in {"Add", "Sub"}:
                self._note_difference(node, kind, sides)
            elif kind == "Pow":
                if not _is_small(sides_of(node)[1]):
                    self.checks[node] = POWER
            elif any(map(self._is_near, sides)):
                self.checks[node] = QUOTIENT if self._is_near(sides[0]) else DIVISOR
            elif self.mode.exponentials:
                self.checks[node] = DENOMINATOR

    def _note_difference(self, node: ast.AST, kind: str, sides: tuple[Seen, ...]) -> None:
        if self._is_difference(kind, sides) or self._may_cancel(node, kind, sides):
            self.checks[node] = DEEP if any(map(self._is_less, sides)) else DIFFERENCE

    def _note_call(self, call: ast.Call, name: str, args: tuple[Seen, ...]) -> None:
        if is_logarithm(call):
            self.checks[call] = EXPONENTIAL if is_exponential(call) else LOGARITHM
        elif name == "power" and len(call.args) > 1:
            self.checks[call] = POWER
        elif name == "sqrt":
            if any(map(self._is_near, args)):
                self.checks[call] = ROOT
        elif is_sum(call):
            self._note_difference(call, "Add", args[:2])
        elif is_users(call):
            self._note_handed(call, name, args)

    def _note_handed(self, call: ast.Call, name: str, args: tuple[Seen, ...]) -> None:
        """Record what a user's function is passed, and what it may store into its arguments."""
        given = (*args, *[self.text.seen(k.value) for k in call.keywords])
        if any(self._is_near(a) or self._is_alone(a) for a in given):
            self.hands.add(name)
        if any(self._is_summed(a) or self._is_multiplied(a) for a in given):
            self.spreads.add(name)
        if self.mode.stores:
            names = {n for a in args for n in a.names}
            bases = {self.base.get(n, n) for n in names}
            names |= {n for n, base in self.base.items() if base in bases} | bases
            self.near |= names
            self.alone |= names
            self.means -= names
            made = self._atoms(self.text.seen(call))
            self.atoms |= {name: self.atoms.get(name, _NONE) | made for name in names}

    def _is_near(self, value: Seen) -> bool:
        if value.near or not (self.near.isdisjoint(value.visible) and self.mode.steep.givers.isdisjoint(value.calls)):
            return True
        return any(any(map(self._is_summed, factors)) for factors in value.products)

    def _is_summed(self, value: Seen) -> bool:
        if value.sums or not self.summed.isdisjoint(value.visible | value.handed):
            return True
        return not self.mode.sums.givers.isdisjoint(value.calls)

    def _is_multiplied(self, value: Seen) -> bool:
        if value.multiplies or not self.multiplied.isdisjoint(value.visible | value.handed):
            return True
        return not self.mode.sums.givers.isdisjoint(value.calls)

    def _is_mean(self, value: Seen) -> bool:
        plain = not (value.near or value.sums or value.calls or value.products)
        return value.mean or (plain and len(value.names) == 1 and value.names <= self.means)

    def _is_alone(self, value: Seen) -> bool:
        return value.alone or not (
            self.alone.isdisjoint(value.visible) and self.mode.steep.givers.isdisjoint(value.calls)
        )

    def _is_less(self, value: Seen) -> bool:
        if any(self.checks.get(n) in _DIFFERENCES for n in value.sums):
            return True
        return not (
            self.less.isdisjoint(value.visible | value.handed) and self.mode.steep.givers.isdisjoint(value.calls)
        )

    def _is_difference(self, kind: str, sides: tuple[Seen, ...]) -> bool:
        one, other = sides
        alone, beside = self._is_alone(one), self._is_alone(other)
        if not (alone or beside or kind in self.kinds):
            return False
        left, right = alone or self._is_near(one), beside or self._is_near(other)
        if left == right:
            return left
        if self._is_mean(one if left else other):
            return False
        one, other = (one, other) if left else (other, one)
        made = self._atoms(other)
        return not made & self.solid or bool(made & self._atoms(one))

    def _may_cancel(self, node: ast.AST, kind: str, sides: tuple[Seen, ...]) -> bool:
        """Return whether both sides of a sum or difference may have a common term, where there are sums and products."""
        whole = sides_of(node) if isinstance(node, BINARY) else tuple(node.args[:2])  # type: ignore[attr-defined]
        if kind not in self.kinds or not (any(map(self._is_summed, sides)) and any(map(self._is_multiplied, sides))):
            return False
        made = self._atoms(sides[0]), self._atoms(sides[1])
        if self.given & (made[0] | made[1]):
            return True  # it may be the same as another one
        one, other = map(leaves_of, whole)
        named = {name for name, part in one | other if not part}
        if made[0] & made[1] and named & (self.summed | self.multiplied):
            return True
        if not any(a[0] == b[0] and ("" in {a[1], b[1]} or a[1] == b[1]) for a in one for b in other):
            return False
        factors = linear_in(node)
        return factors is None or 0.0 in factors.values()

    def _atoms(self, value: Seen) -> frozenset[str]:
        """Return the parameters that a value depends on."""
        atoms = self.atoms
        return _NONE.union(*[atoms[name] for name in value.names if name in atoms])


def _is_small(power: ast.expr) -> bool:
    """Return whether an exponent is a number of at most ``_POWER``."""
    power = power.operand if isinstance(power, ast.UnaryOp) else power
    return isinstance(power, ast.Constant) and isinstance(power.value, int | float) and power.value <= _POWER
