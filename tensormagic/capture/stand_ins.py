"""Objects that stand for Python's or NumPy's own while code is captured, and what is handed back to the notebook in their place."""

from __future__ import annotations

from typing import Any


class StandIn:
    """An object that has no meaning outside captured code."""

    __slots__ = ()

    @property
    def own_class(self) -> type:
        """The class of the object that it stands for."""
        raise NotImplementedError

    def real(self) -> Any:
        """The object that it stands for."""
        raise NotImplementedError


def handed_back(value: Any, seen: set[int] | None = None) -> Any:
    """What a cell hands back: the objects themselves for what stands for them, in lists and dictionaries too."""
    seen = set() if seen is None else seen
    if isinstance(value, StandIn):
        return value.real()
    if id(value) in seen or type(value) not in {list, dict, tuple}:
        return value
    seen.add(id(value))
    if isinstance(value, tuple):
        parts = tuple([handed_back(v, seen) for v in value])
        return value if all(a is b for a, b in zip(parts, value, strict=True)) else parts
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        new = handed_back(value[key], seen)
        if new is not value[key]:
            value[key] = new
    return value


__all__ = ["StandIn", "handed_back"]
