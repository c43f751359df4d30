"""``tm.rules`` and ``@tm.rule``: the rewrite rules in force, and how users add some."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from ctypes import ArgumentError
from dataclasses import replace
from typing import Any

from tensormagic.capture.hooks import hooks
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.functions.rules.array_notation import (
    is_pointwise,
    source_of,
    statement_of_text,
    statements_of_function,
)
from tensormagic.functions.rules.array_rules import ArrayRule
from tensormagic.functions.rules.array_trial import StatedArrays
from tensormagic.functions.rules.opaque_rules import in_text, opened, put_in_force
from tensormagic.ir.errors import ParseError, RuleError, TensorError
from tensormagic.ir.rewriting.rules import CAPTURED, LEVELS, Rule
from tensormagic.transform import rewriting
from tensormagic.transform.rewriting.users.text import Stated, rules_of_function, stated_rule

AnyStated = Stated | StatedArrays


class Rules:
    """The rewrite rules, by level of trust, and those that users have added.

    Examples
    --------
    >>> rules = Rules()
    >>> len(rules.exact) < len(rules.stable) < len(rules.real)
    True
    """

    @property
    def exact(self) -> tuple[Rule, ...]:
        """The rules that keep every bit."""
        return self._allowed("exact")

    @property
    def stable(self) -> tuple[Rule, ...]:
        """The rules of ``exact``, and those that are never less accurate: the default."""
        return self._allowed("stable")

    @property
    def real(self) -> tuple[Rule, ...]:
        """The rules of ``stable``, and those that are true of real numbers."""
        return self._allowed("real")

    @property
    def own(self) -> dict[str, tuple[Rule, ...]]:
        """The rules that users have added, by the names that they were added under."""
        return dict(rewriting.installed)

    def add(self, name: str, stated: Iterable[AnyStated]) -> tuple[Rule, ...]:
        """Try rules on numbers, and put them in force, in place of those that had the same name.

        Parameters
        ----------
        name : str
            What they are taken back by: :meth:`remove`.
        stated : iterable
            Rules, as ``tm.rule`` and ``%%rewrite`` make them; users call these.

        Returns
        -------
        tuple of Rule
            What is in force now.

        Raises
        ------
        RuleError
            For a rule that does not hold at its level: none is put in force.

        Examples
        --------
        >>> import tensormagic as tm
        >>> tm.rules.add("none", [])
        ()
        >>> tm.rules.remove("none")
        """
        given = list(stated)
        for rule in given:
            try:
                _hold(rule)
            except (ParseError, RuleError) as error:
                error.lineno = rule.line  # type: ignore[union-attr]
                raise
        rewriting.installed[name] = tuple(rule.rule for rule in given)
        put_in_force(rule for rules in rewriting.installed.values() for rule in rules)
        return rewriting.installed[name]

    def remove(self, name: str) -> None:
        """Take rules that were added under ``name`` out of force.

        Parameters
        ----------
        name : str
            As it was given to ``%%rewrite``, or the name of the function under ``@tm.rule``.

        Raises
        ------
        KeyError
            Where there are none.

        Examples
        --------
        >>> import tensormagic as tm
        >>> tm.rules.add("none", [])
        ()
        >>> tm.rules.remove("none")
        """
        if name not in rewriting.installed:
            raise KeyError(f"no rules were added as {name!r}")
        del rewriting.installed[name]
        put_in_force(rule for rules in rewriting.installed.values() for rule in rules)

    def _allowed(self, level: str) -> tuple[Rule, ...]:
        return (*rewriting.own_rules(level), *rewriting.rules(level))


def _hold(stated: AnyStated) -> None:
    """Test a rule; raise RuleError if it does not hold."""
    level, fault = stated.rule.level, stated.trial().fault
    if fault:
        kind = "for which shapes, as in `if A.shape == B.T.shape`, or" if isinstance(stated, StatedArrays) else ""
        raise RuleError(f"{stated.rule.name} is not a {level} rule: {fault}", _advice(level, fault, kind))


def _advice(level: str, fault: str, kind: str) -> str:
    if "accurate" in fault or "bits" in fault:
        name = LEVELS[LEVELS.index(level) + 1]
        return f"Say that it is one of level {name!r}: `%%rewrite NAME --math {name}`, `@tm.rule(level={name!r})`."
    if "order of operands" in fault:
        return "Operands of + and * are found in every order; leave the rule out."
    return " ".join(f"State after `if` {kind} for which numbers it holds.".split())


rules = Rules()


def rule(function: Callable[..., Iterator[Any]] | None = None, *, level: str = "stable") -> Any:
    """Add rewrite rules, written as a generator over pattern variables in NumPy's notation.

    They are tried on numbers first: at level ``"real"`` both sides must agree, at ``"stable"`` the replacement must moreover
    never be less accurate, and at ``"exact"`` all bits must be the same.

    Parameters
    ----------
    function
        Yields ``pattern, replacement`` and conditions on the variables, which are assumed and reported.
    level
        ``"exact"``, ``"stable"`` or ``"real"``: from which level of ``config.math`` on they are used.

    Returns
    -------
    tuple of Rule
        The rules, in force under the function's name until ``rules.remove(name)``.

    Raises
    ------
    RuleError
        If a rule does not hold.

    Examples
    --------
    >>> import numpy as np
    >>> @rule(level="real")
    ... def hyperbolic(x):
    ...     yield np.cosh(x) + np.sinh(x), np.exp(x)
    >>> [str(r) for r in hyperbolic]
    ['cosh(x) + sinh(x) -> exp(x)']
    >>> rules.remove("hyperbolic")
    """
    if level not in LEVELS:
        raise ValueError(f"level must be one of {', '.join(LEVELS)}, not {level!r}")
    if function is None:
        return lambda given: rule(given, level=level)
    if isinstance(function, str):
        raise RuleError(
            f"a rule is a function that yields its two sides, and not the text {function!r}",
            "Write @tm.rule above def name(x): yield np.log(np.exp(x)), x",
        )
    if not inspect.isgeneratorfunction(function):
        raise RuleError(
            f"{getattr(function, '__name__', 'the rule')} yields nothing", "Write `yield pattern, replacement`."
        )
    try:
        return rules.add(function.__name__, _of_function(opened(function), level))
    except Exception as error:
        if not isinstance(error, TensorError):
            error.tensor_node = None  # type: ignore[attr-defined]  (of the generator's own code: shown at its line)
            hooks.failed(error)
        raise


def _of_function(function: Callable[..., Iterator[Any]], level: str) -> list[AnyStated]:
    """Return the rules of a generator: over numbers if its sides are pointwise, else over arrays."""
    found: dict[int, AnyStated] = {}
    failed: Exception | None = None
    try:
        for stated in rules_of_function(
            function, level, enter=wrap, leave=lambda v: v.node if isinstance(v, Tensor) else v
        ):
            if is_pointwise(stated.pattern) and is_pointwise(stated.replacement):
                placed = replace(stated.rule, source=source_of(function, stated.line))
                found[stated.line] = replace(stated, rule=placed)
    except Exception as error:  # noqa: BLE001 (of functions that know no variables, too: looked at below)
        failed = error
    others = [s for s in statements_of_function(function, level) if s.line not in found]
    if isinstance(failed, TypeError | ArgumentError) and not others:  # an error of Numba's, or of C code
        what = f"{type(failed).__name__}: {failed}"
        raise RuleError(
            f"{function.__name__} calls a function that does not accept the variables of a rule ({what})", CAPTURED
        ) from failed
    if failed is not None and not others:
        raise failed
    found |= {s.line: StatedArrays(ArrayRule.of(s)) for s in others}
    return [found[line] for line in sorted(found)]


def stated_rules(text: str, source: str, level: str, space: Mapping[str, Any] | None = None) -> list[AnyStated]:
    """Return the rules that a text states, one a line; empty lines and comments after ``#`` are ignored.

    Parameters
    ----------
    text
        ``pattern -> replacement``, then perhaps ``if`` and conditions.
    source, level
        What the text is called, and the level of its rules.
    space
        Variables of a notebook: functions among them can be called.

    Raises
    ------
    ParseError
        For a line that is no rule, with its number as ``lineno``.
    """
    found: list[AnyStated] = []
    for number, line in enumerate(text.splitlines(), 1):
        stated = line.partition("#")[0].strip()
        if stated:
            try:
                found.append(_of_line(stated, f"{source}:{number}", level, number, space or {}))
            except (ParseError, SyntaxError) as error:
                what = error.message if isinstance(error, TensorError) else f"this is not an expression: {error.msg}"
                hint = getattr(error, "hint", "") or "A rule is `pattern -> replacement`, then perhaps `if`."
                refused = ParseError(what, hint)
                refused.lineno = number  # type: ignore[attr-defined]
                raise refused from None
    return found


def _of_line(text: str, source: str, level: str, line: int, space: Mapping[str, Any]) -> AnyStated:
    """Return the rule of a line: over numbers if its sides are pointwise, else over arrays."""
    try:
        return stated_rule(text, source, level, line, in_text(text, space))
    except (ParseError, TypeError):
        return StatedArrays(ArrayRule.of(statement_of_text(text, source, level, line, space)))
