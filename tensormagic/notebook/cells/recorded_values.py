"""Values of earlier cells that a loop records, although they do not change there: ``history.append(loss)``. It knows syntax alone."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from tensormagic.notebook.cells.fresh_steps import events

_AS_NUMBERS = {"float", "int", "round", "str", "repr", "copy"}
_METHODS = {"item", "numpy", "copy", "tolist", "round"}
_KEEP = {"append", "appendleft", "add", "insert"}


@dataclass(frozen=True)
class Recorded:
    """One such value: its name, the variables that change around it, the line, and how the loop calls the new value, if at all."""

    name: str
    changes: tuple[str, ...]
    line: int
    new: str = ""

    def told(self, cell: str) -> str:
        """Return the hint on a value recorded by a loop, which was computed in ``cell``."""
        listed = " and ".join(filter(None, [", ".join(self.changes[:-1]), self.changes[-1]]))
        way = (
            f"record {self.new}, which the loop computes"
            if self.new
            else "compute it in the loop, by a call of the cell's name"
        )
        return (
            f"{self.name} is of the {listed} that {cell or 'an earlier cell'} read: the loop changes {listed}, but not "
            f"{self.name}, and records the same value in every iteration; {way}"
        )


def recorded(text: str, made_of: Callable[[str], Collection[str]], space: Mapping[str, Any]) -> Recorded | None:
    r"""Return the first value that a loop of a cell records while it changes what the value was computed from.

    Parameters
    ----------
    text
        The cell.
    made_of
        The variables that a name's value was computed from, if it was in an earlier cell.
    space
        The variables of the notebook.

    Examples
    --------
    >>> text = "step = value_and_grad(f)\nfor k in range(9):\n    now, g = step(w=w)\n    w -= 0.1 * g\n    history.append(loss)"
    >>> found = recorded(text, lambda name: ["w", "X"] if name == "loss" else [], {})
    >>> found.name, found.changes, found.line, found.new
    ('loss', ('w',), 5, 'now')
    """
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None
    stored = {name for name, into in events(tree, 1) if into}
    for loop in (part for part in ast.walk(tree) if isinstance(part, ast.For | ast.While)):
        updated = _updated(loop)
        for name, line in _kept(loop) if updated else ():
            if name in stored:
                continue
            changes = tuple(n for n in updated if n in made_of(name))
            if changes:
                return Recorded(name, changes, line, _new_value(tree, loop, space))
    return None


def _updated(loop: ast.For | ast.While) -> list[str]:
    """Return the variables that a loop makes of themselves: ``w -= …``, ``w = w - …``."""
    found: dict[str, None] = {}
    for part in ast.walk(loop):
        if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
            found.setdefault(part.target.id)
        elif isinstance(part, ast.Assign):
            read = {n.id for n in ast.walk(part.value) if isinstance(n, ast.Name)}
            bound = {n.id for t in part.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
            found |= dict.fromkeys(sorted(read & bound))
    return list(found)


def _kept(loop: ast.For | ast.While) -> Iterator[tuple[str, int]]:
    """Yield the names that a loop records unchanged: ``history.append(loss)``, ``history[k] = float(loss)``."""
    for part in ast.walk(loop):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _KEEP:
            kept = part.args
        elif _stores_one(part):
            kept = [part.value]
        else:
            continue
        for value in kept:
            yield from ((name, part.lineno) for name in _bare(value))


def _stores_one(part: ast.AST) -> TypeGuard[ast.Assign | ast.AugAssign]:
    """Return whether a statement puts one thing into a list or an array: ``h[k] = loss``, ``h += [loss]``."""
    if isinstance(part, ast.AugAssign):
        return isinstance(part.value, ast.List)
    return isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Subscript)


def _bare(value: ast.expr) -> Iterator[str]:
    """Yield the names that an expression hands on unchanged, or as a number."""
    if isinstance(value, ast.Name):
        yield value.id
    elif isinstance(value, ast.Tuple | ast.List):
        for part in value.elts:
            yield from _bare(part)
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _METHODS:
        yield from _bare(value.func.value)
    elif isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] in _AS_NUMBERS and value.args:
        yield from _bare(value.args[0])


def _new_value(tree: ast.AST, loop: ast.For | ast.While, space: Mapping[str, Any]) -> str:
    """Return the name of the value that a loop computes anew besides its gradients."""
    makers = {
        target.id
        for part in ast.walk(tree)
        if isinstance(part, ast.Assign) and "value_and_grad(" in ast.unparse(part.value)
        for target in part.targets
        if isinstance(target, ast.Name)
    }
    for part in ast.walk(loop):
        target = part.targets[0] if isinstance(part, ast.Assign) and isinstance(part.value, ast.Call) else None
        if not isinstance(target, ast.Tuple) or len(target.elts) != 2 or not isinstance(target.elts[0], ast.Name):
            continue
        called = ast.unparse(part.value.func)  # type: ignore[attr-defined]
        made = getattr(space.get(called), "name", called)
        if called in makers or "value_and_grad(" in str(made):
            return target.elts[0].id
    return ""
