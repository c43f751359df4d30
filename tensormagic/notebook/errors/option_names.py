"""Refuse names in options that do not exist, or mean something else, before a cell runs."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

from IPython.core.error import UsageError

from tensormagic.alike import alike
from tensormagic.capture.cell import Code
from tensormagic.notebook.cells.lost_names import lost
from tensormagic.notebook.errors.report import described
from tensormagic.notebook.options import Options
from tensormagic.notebook.parted import root_of

_MOST = 6  # names that are listed


def checked(code: Code, options: Options, notebook: Mapping[str, Any]) -> None:
    """Refuse names in options that do not exist, before anything runs."""
    binds = code.parsed.binds
    _checked_name(code, options, notebook)
    for name in options.inputs or ():
        if name not in code.parsed.reads:
            raise UsageError(
                f"%%tensor --input: the cell does not read {name}{near(name, code.parsed.reads) or may_be(code, notebook)}"
            )
        if name not in notebook:
            raise UsageError(f"%%tensor --input: the notebook has no variable {name}{near(name, notebook)}")
    for name in options.outputs or ():
        if name not in binds and name not in notebook:
            raise UsageError(f"%%tensor --output: the cell does not assign {name}{near(name, binds)}")
    for name in map(root_of, options.grad):
        if name not in notebook and name not in binds:
            said = near(name, [*binds, *_data(notebook)]) or may_be(code, notebook)
            raise UsageError(f"%%tensor --grad: there is no variable {name}{said}")
    if options.of and options.of not in binds and options.of not in notebook:
        said = near(options.of, [*binds, *_data(notebook)]) or (f"; the cell assigns {_some(binds)}" if binds else "")
        raise UsageError(f"%%tensor --of: there is no variable {options.of}{said}")


def _checked_name(code: Code, options: Options, notebook: Mapping[str, Any]) -> None:
    """Refuse a name for the cell that the cell itself, or the notebook, uses for something else."""
    if options.name and options.name in code.parsed.binds:
        raise UsageError(
            f"%%tensor {options.name}: the cell assigns {options.name}, so the cell cannot have that name, too; "
            f"call it {'objective' if options.name != 'objective' else 'cost'}, for example"
        )
    asked = f"; for several gradients write --grad {','.join(options.grad)},{options.name}" if options.grad else ""
    if options.name and options.name in code.parsed.reads:
        raise UsageError(
            f"%%tensor {options.name}: the cell reads {options.name}, and a function of that name would replace it{asked}"
        )
    if options.name in notebook and not callable(notebook[options.name]):
        raise UsageError(
            f"%%tensor {options.name}: {options.name} is a variable of the notebook, and a function of that name would replace it{asked}"
        )


def may_be(code: Code, notebook: Mapping[str, Any]) -> str:
    """Return the variables that gradients may be asked for: those holding data among those that the cell reads."""
    found = [name for name in sorted(code.parsed.reads) if described(notebook.get(name, len))]
    return f"; the cell reads {_some(found)}" if found else ""


def _data(notebook: Mapping[str, Any]) -> list[str]:
    """Return the variables that may hold data: no functions, classes or modules."""
    none = type | ModuleType
    return [name for name, value in notebook.items() if not isinstance(value, none) and not inspect.isroutine(value)]


def _some(names: Iterable[str]) -> str:
    found = sorted(names)
    return f"{', '.join(found[:_MOST])}{', …' if len(found) > _MOST else ''}"


def near(word: str, words: Iterable[str]) -> str:
    """`` (did you mean …?)``, where a name is near; or which cell should have set it."""
    if said := lost.hint(word):
        return f". {said}"
    found = alike(word, (w for w in words if not w.startswith("_")), 2)
    return f" (did you mean {' or '.join(found)}?)" if found else ""
