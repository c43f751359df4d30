"""``%%rewrite``: rules in NumPy's notation, tried on numbers, and then used in every cell."""

from __future__ import annotations

from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, magics_class, no_var_expand

from tensormagic.functions.rules.declared import AnyStated, rules, stated_rules
from tensormagic.ir.errors import ParseError, RuleError
from tensormagic.notebook.display.forms import Panel, table
from tensormagic.notebook.display.shown import Page
from tensormagic.notebook.errors import report
from tensormagic.notebook.errors.report import Place
from tensormagic.notebook.options import CHOICES, arguments, describe
from tensormagic.notebook.pictures.labels import changes

_EXAMPLE = """
%%rewrite mine --math stable
log(1 + exp(x)) -> logaddexp(0, x)
sqrt(x**2) -> x      if x >= 0
A.T @ A -> gram(A)   if A.ndim == 2
"""


@magics_class
class TensorRewriting(Magics):
    """The magic for rules of a notebook's own; those that it has put in force go when the extension is unloaded."""

    shell: Any  # an InteractiveShell; the base class allows None, too

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self._names: set[str] = set()

    @no_var_expand
    @cell_magic
    @describe(
        ("NAME", None, "a name for these rules; they replace earlier rules of that name (default: rules)"),
        (
            "--math",
            "LEVEL",
            "exact, stable (default) or real: how strictly the rules are tested, and at which levels they are used",
        ),
        ("--test", None, "only test the rules, and show the result"),
        usage="%%rewrite [NAME] [--math LEVEL] [--test]",
        example=_EXAMPLE,
    )
    def rewrite(self, line: str, cell: str) -> Any:
        """Add rewrite rules, one a line: `pattern -> replacement`, then perhaps `if` and conditions.

        Each is tried on numbers before it is used: both sides have to agree, and at the level stable the replacement may
        nowhere be less accurate. Patterns hold pointwise operations, or any functions of NumPy, SciPy and the notebook over
        numbers, vectors and matrices. A cell that holds a comment alone takes the rules of that name out of force.
        """
        given = arguments(self.rewrite, line, "%%")
        level, name = given.math or "stable", given.NAME or "rules"
        if level not in CHOICES["--math"]:
            raise UsageError(f"%%rewrite --math must be one of {', '.join(CHOICES['--math'])}, not {level!r}")
        try:
            stated = stated_rules("\n" + cell, name, level, self.shell.user_ns)
            if given.test:
                return _page(_trials(stated))
            if stated:
                rules.add(name, stated)
                self._names.add(name)
            elif name in rules.own:
                rules.remove(name)
        except (ParseError, RuleError) as error:
            self._dress(error, cell)
            raise
        called = f" as {name}" if given.NAME else ""
        title = f"rules in use from now on{called}" if stated else f"no rules in use{called}"
        return _page(
            table(
                title,
                ("rule", "what may change", "assumes")
                if any(r.assumed for r in stated)
                else ("rule", "what may change"),
                _rows(stated, cell),
            )
        )

    def close(self) -> None:
        """Take what the notebook has added out of force."""
        for name in self._names & set(rules.own):
            rules.remove(name)
        self._names.clear()

    def _dress(self, error: ParseError | RuleError, cell: str) -> None:
        """Show an error at the line of its rule."""
        number = getattr(error, "lineno", 0)
        text = ("\n" + cell).splitlines()[number - 1] if number else ""
        stated = text.partition("#")[0].rstrip()
        count = self.shell.displayhook.exec_result.execution_count if self.shell.displayhook.exec_result else ""
        place = Place(
            f"Cell In[{count or self.shell.execution_count}]", number, text, len(text) - len(text.lstrip()), len(stated)
        )
        report.dress(error, lambda: report.render(error, [place]))


def _rows(stated: list[AnyStated], cell: str) -> list[list[str]]:
    """Return each rule as it was written, its conditions with it."""
    written = ("\n" + cell).splitlines()
    assumes = any(rule.assumed for rule in stated)
    return [
        [_written(written[rule.line - 1]), changes(rule.rule.level), *([" and ".join(rule.assumed)] if assumes else [])]
        for rule in stated
    ]


def _written(line: str) -> str:
    """Return the rule on a line, without its comment and the spaces that only readers of the cell need."""
    return " ".join(line.partition("#")[0].split())


def _trials(stated: list[AnyStated]) -> Panel:
    rows: list[list[str]] = []
    marks: list[bool] = []
    for rule in stated:
        try:
            found = rule.trial()
        except ParseError as error:
            error.lineno = rule.line  # type: ignore[attr-defined]
            raise
        rows.append(
            [
                rule.rule.name,
                changes(rule.rule.level),
                str(found.points),
                f"{found.apart:.1e}" if found.apart else "0",
                found.fault or "holds",
            ]
        )
        marks.append(bool(found.fault))
    return table(
        "rules, tested but not used",
        ("rule", "what may change", "points tried", "largest difference", "verdict"),
        rows,
        marks,
    )


def _page(panel: Panel) -> Page:
    page, text = panel
    return Page(lambda: ({"text/plain": text, "text/html": page}, {}))
