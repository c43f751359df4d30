"""``%`` and ``!`` lines in a captured cell: run as in any cell, or refused by name. Knows IPython's notation only."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Container
from typing import Any

from IPython.core.error import UsageError

LATER = ("%tensor", "%rewrite")  # how IPython calls a cell's magic below the first line: a line's magic of that name

# magics that run code: it would see the notebook's variables, and not those of the cell
_RUN_CODE = {
    "time",
    "timeit",
    "prun",
    "run",
    "lprun",
    "mprun",
    "memit",
    "debug",
    "tensor",
    "reset",
    "store",
    "load",
    "edit",
    "pylab",
}
_TELL = {"who", "whos", "who_ls"}  # of the notebook's variables, which the cell's are only when it is done
_CALL = re.compile(r"get_ipython\(\)\.run_(line|cell)_magic\('(\w+)'")
_FIRST = re.compile(r"%%tensor\b")
_HELP = re.compile(r"(%%?)(tensor\w*|rewrite)\s(?:.*\s)?(-h|--help)\s*$")


def refused_later(name: str, _line: str) -> None:
    """Raise the error for ``%%tensor`` below other code, where IPython knows no such magic."""
    raise UsageError(f"%{name} must be the first line of its cell: split the cell above it")


def plain_python(text: str, shell: Any) -> str:
    """``text`` with its ``%``, ``!`` and ``?`` lines as the calls that IPython makes of them; others stay.

    Raises
    ------
    UsageError
        For a magic inside the cell that would run code over other variables than the cell's.
    """
    text = _one_line(_dedented(text), shell)
    try:
        ast.parse(text)
    except SyntaxError:
        pass
    else:
        return _checked(text)
    inner = next((line.split()[0] for line in text.splitlines() if line.lstrip().startswith("%%")), None)
    if inner is not None:
        raise UsageError(f"{inner} cannot be used inside a %%tensor cell: it must be the first line of its own cell")
    # a comment in front, or IPython would drop the empty lines that the cell begins with, and count lines from there
    made: str = shell.transform_cell("#\n" + text).partition("\n")[2]
    return _checked(made)


def _dedented(text: str) -> str:
    """Return a cell whose first line is indented, without that: IPython takes it away from every line that has it."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    space = first[: len(first) - len(first.lstrip())]
    return re.sub(rf"^{space}", "", text, flags=re.MULTILINE) if space else text


def _one_line(text: str, shell: Any) -> str:
    """Transform a one-line cell again: IPython runs ``ls`` or ``cd data`` as magics unless they are variables."""
    lines = text.strip().splitlines()
    if len(lines) != 1 or lines[0].startswith(("%", "!", "#")) or lines[0].endswith("?"):
        return text
    made = shell.prefilter(lines[0])
    return text if made == lines[0] else text.replace(lines[0], made)


def _checked(made: str) -> str:
    """Return a cell that calls no magic which runs code."""
    for found in _CALL.finditer(made):
        if found[2] in _RUN_CODE or (found[2] in _TELL and _binds(made)):
            raise UsageError(
                f"%{found[2]} cannot be used inside a %%tensor cell: it would use the notebook's variables, not those of "
                "the cell. Put it into its own cell; to time a cell, use %%tensor -t"
            )
    return made


def _binds(made: str) -> bool:
    """Return whether a cell binds a name."""
    with contextlib.suppress(SyntaxError):
        kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom
        return any(
            isinstance(n, kinds) or (isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load))
            for n in ast.walk(ast.parse(made))
        )
    return False


def comments_first(lines: list[str]) -> list[str]:
    """Return a cell with comments before its ``%%tensor`` line: that goes first, and every line of code stays where it was."""
    for k, line in enumerate(lines):
        if _FIRST.match(line):
            return [line if line.endswith("\n") else line + "\n", *lines[:k], *lines[k + 1 :]] if k else lines
        if line.strip() and not line.lstrip().startswith("#"):
            return lines
    return lines


def help_asked(variables: Container[str], lines: list[str]) -> list[str]:
    """Return a cell whose magic is asked for help, as command lines are: its table of options is shown, as by ``?``.

    ``%tensor -h`` with a variable ``h`` is arithmetic.
    """
    first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    found = _HELP.match(first)
    if found is None or (found[1] == "%" and found[3] == "-h" and "h" in variables):
        return lines
    return [f"{found[1]}{found[2]}?\n"]
