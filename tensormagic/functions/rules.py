"""``tm.rules`` and ``@tm.rule``: the rewrite rules that are in force, and how a user adds some."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tensormagic.capture.value import Tensor, wrap
from tensormagic.functions.function import forget_programs
from tensormagic.ir.errors import ParseError, RuleError
from tensormagic.ir.rules import LEVELS, Rule
from tensormagic.transform import rewriting
from tensormagic.transform.rewriting.user import Stated, rules_of_function


class Rules:
    """The rewrite rules, by the level of trust, and those that users have added.

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
        """Those, and the rules that are never less accurate: the default."""
        return self._allowed("stable")

    @property
    def real(self) -> tuple[Rule, ...]:
        """Those, and the rules that are true of real numbers."""
        return self._allowed("real")

    @property
    def own(self) -> dict[str, tuple[Rule, ...]]:
        """The rules that users have added, by the names that they were added under."""
        return dict(rewriting.installed)

    def add(self, name: str, stated: Iterable[Stated]) -> tuple[Rule, ...]:
        """Try rules on numbers, and put them in force, in place of those that had the same name.

        Raises
        ------
        RuleError
            For a rule that does not hold at its level: none is put in force.
        """
        given = list(stated)
        for rule in given:
            try:
                _hold(rule)
            except (ParseError, RuleError) as error:
                error.lineno = rule.line  # type: ignore[union-attr]
                raise
        rewriting.installed[name] = tuple(rule.rule for rule in given)
        forget_programs()
        return rewriting.installed[name]

    def remove(self, name: str) -> None:
        """Take rules that were added under ``name`` out of force.

        Raises
        ------
        KeyError
            Where there are none.
        """
        del rewriting.installed[name]
        forget_programs()

    def _allowed(self, level: str) -> tuple[Rule, ...]:
        return (*rewriting.own_rules(level), *rewriting.rules(level))


def _hold(stated: Stated) -> None:
    """Try a rule; raise where it does not hold."""
    level, fault = stated.rule.level, stated.trial().fault
    if fault:
        raise RuleError(f"{stated.rule.name} is no {level} rule: {fault}", _advice(level, fault))


def _advice(level: str, fault: str) -> str:
    if "accurate" in fault or "bits" in fault:
        return f"Say that it is true of real numbers only: level {LEVELS[LEVELS.index(level) + 1]!r}."
    return "Say after `if` for which numbers it holds."


rules = Rules()


def rule(function: Callable[..., Iterator[Any]] | None = None, *, level: str = "stable") -> Any:
    """Add rewrite rules, written as a generator over pattern variables in NumPy's notation.

    They are tried on numbers first: at level ``"real"`` both sides have to agree, at ``"stable"`` the replacement may
    besides be nowhere less accurate, at ``"exact"`` all bits have to be the same.

    Parameters
    ----------
    function
        Yields ``pattern, replacement`` and conditions on the variables, which are taken for granted and reported.
    level
        ``"exact"``, ``"stable"`` or ``"real"``: from which level of ``config.math`` on they are used.

    Returns
    -------
    tuple of Rule
        The rules, which are in force under the function's name until ``rules.remove(name)``.

    Raises
    ------
    RuleError
        For a rule that does not hold.

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
        raise ValueError(f"level is one of {', '.join(LEVELS)}; not {level!r}")
    if function is None:
        return lambda given: rule(given, level=level)
    if not inspect.isgeneratorfunction(function):
        raise RuleError(
            f"{getattr(function, '__name__', 'the rule')} yields nothing", "Write `yield pattern, replacement`."
        )
    stated = rules_of_function(function, level, enter=wrap, leave=lambda v: v.node if isinstance(v, Tensor) else v)
    return rules.add(function.__name__, stated)


__all__ = ["Rules", "rule", "rules"]
