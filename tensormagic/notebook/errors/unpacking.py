"""What to do where a value has more or fewer parts than there are names for it. It knows the line's syntax and the parts, if any."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

_BOTH = {
    "value_and_grad": "value_and_grad gives a value and its gradient: ",
    "grad": "grad gives the gradient alone; value_and_grad gives the value too: ",
}


def told(text: str, space: Mapping[str, Any]) -> str:
    """Return the way out where a value has too many or not enough parts.

    Parameters
    ----------
    text
        The user's line.
    space
        The variables.

    Examples
    --------
    >>> told("a, b = v", {"v": (1, 2, 3)})
    'v has 3 elements, and there are 2 names: write a, b, *rest = v, or give 3 names.'
    >>> told("a, b = v", {"v": [1]})
    'v has 1 element, and there are 2 names: give 1 name, or a longer value.'
    """
    targets, value = _parted(text)
    if targets is None or value is None:
        return ""
    if said := of_derivative(text, space):
        return said
    names = [ast.unparse(t) for t in targets.elts]
    written = ast.unparse(value)
    count = _length(value, space)
    if count is None or any(isinstance(t, ast.Starred) for t in targets.elts):
        return ""
    asked = _counted(len(names), "name")
    has = f"{written} has {_counted(count, 'element')}, and there {'are' if len(names) != 1 else 'is'} {asked}"
    if count > len(names):
        return f"{has}: write {', '.join(names)}, *rest = {written}, or give {count} names."
    return f"{has}: give {_counted(count, 'name')}, or a longer value."


def of_derivative(text: str, space: Mapping[str, Any]) -> str:
    """Return the way out where that is what ``tm.grad`` or ``tm.value_and_grad`` gives; nothing for other values.

    >>> of_derivative("v, a, b = tm.value_and_grad(f, (0, 1))(x, y)", {})
    'value_and_grad gives a value and its gradient: write v, (a, b) = tm.value_and_grad(f, (0, 1))(x, y).'
    """
    targets, value = _parted(text)
    made = _derivative(value, space) if targets is not None and value is not None else ""
    if not made or targets is None or value is None:
        return ""
    return _of_derivative(made, [ast.unparse(t) for t in targets.elts], ast.unparse(value))


def of_number(text: str) -> str:
    """Return the way out where several names stand for one number."""
    targets, value = _parted(text)
    if targets is None or value is None:
        return ""
    names = [ast.unparse(t) for t in targets.elts]
    written = ast.unparse(value)
    same = f"{' = '.join(names)} = {written}"
    return f"{written} is one number, and there are {len(names)} names: give one name, or write {same}."


def _parted(text: str) -> tuple[ast.Tuple | ast.List | None, ast.expr | None]:
    """Return the names on the left and the expression on the right; for a loop, only its names."""
    for tried in (text.strip(), f"{text.strip()} pass"):
        try:
            tree = ast.parse(tried)
        except (SyntaxError, ValueError):
            continue
        for part in ast.walk(tree):
            if isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Tuple | ast.List):
                return part.targets[0], part.value
    return None, None


def _derivative(value: ast.expr, space: Mapping[str, Any]) -> str:
    """Return ``value_and_grad`` or ``grad`` where their function is called on the right, else ""."""
    if not isinstance(value, ast.Call):
        return ""
    maker = value.func
    if isinstance(maker, ast.Name):
        made = getattr(space.get(maker.id), "name", "")
        return next((kind for kind in _BOTH if isinstance(made, str) and made.startswith(f"{kind}(")), "")
    if isinstance(maker, ast.Call) and isinstance(maker.func, ast.Name | ast.Attribute):
        called = ast.unparse(maker.func).rpartition(".")[2]
        return called if called in _BOTH else ""
    return ""


def _of_derivative(made: str, names: list[str], written: str) -> str:
    first, *rest = names
    if made == "grad":
        together = f"({', '.join(rest)})" if len(rest) > 1 else "".join(rest)
        call = (
            written.replace("grad(", "value_and_grad(", 1)
            if "grad(" in written
            else f"tm.value_and_grad(...)({written.partition('(')[2]}"
        )
        return f"{_BOTH[made]}{first}, {together} = {call}."
    if len(rest) > 1:
        return f"{_BOTH[made]}write {first}, ({', '.join(rest)}) = {written}."
    return f"{_BOTH[made]}write value, gradient = {written}."


def _length(value: ast.expr, space: Mapping[str, Any]) -> int | None:
    """Return how many parts a value has, where that is seen without computing it."""
    if isinstance(value, ast.Tuple | ast.List):
        return len(value.elts)
    held = space.get(value.id) if isinstance(value, ast.Name) else None
    shape = getattr(held, "shape", None)
    if isinstance(shape, tuple) and shape:
        first = getattr(shape[0], "hint", shape[0])
        return first if isinstance(first, int) else None
    return len(held) if isinstance(held, list | tuple | dict | str) else None


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
