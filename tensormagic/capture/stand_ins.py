"""Objects that stand for Python's or NumPy's own while code is captured, and what is handed back to the notebook in their place."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from tensormagic.capture.staging.attributes import containers_of


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


def _real(value: Any) -> Any:
    return value.real() if isinstance(value, StandIn) else value


def _nothing(_value: Any) -> bool:
    return False


def handed_back(
    value: Any,
    real: Callable[[Any], Any] = _real,
    seen: set[int] | None = None,
    own: Callable[[Any], bool] = _nothing,
) -> Any:
    """What a cell hands back: the objects themselves for what stands for them, in lists and dictionaries too.

    Parameters
    ----------
    value
        What a name is bound to.
    real
        The object for what stands for it; anything else is given as it is.
    seen
        Containers that are being looked at.
    own
        Whether an object's attributes are looked at, too.
    """
    seen = set() if seen is None else seen
    new = real(value)
    if new is not value or id(value) in seen or not (isinstance(value, list | dict | tuple | deque) or own(value)):
        return new
    seen.add(id(value))
    if isinstance(value, tuple):
        return _tuple(value, [handed_back(v, real, seen, own) for v in value])
    inside: list[Any] = [value] if isinstance(value, list | dict | deque) else list(containers_of(value))
    for items in inside:
        for key in range(len(items)) if isinstance(items, list | deque) else list(items):
            new = handed_back(items[key], real, seen, own)
            if new is not items[key]:
                items[key] = new
    return value


def _tuple(value: tuple[Any, ...], parts: list[Any]) -> Any:
    """The tuple, or one of its kind with other items."""
    if all(a is b for a, b in zip(parts, value, strict=True)):
        return value
    if hasattr(value, "_make"):  # with names
        return value._make(parts)  # type: ignore[attr-defined]
    return tuple(parts) if type(value) is tuple else value


__all__ = ["StandIn", "handed_back"]
