"""Rebuilds containers without running the constructors of their classes, which have run already."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping
from typing import Any


class Gradient:
    """Values for the attributes of an object, under their names: usually gradients with respect to them.

    Examples
    --------
    >>> found = Gradient({"w": 2.0, "b": 1.0})
    >>> found.w, vars(found)
    (2.0, {'w': 2.0, 'b': 1.0})
    """

    def __init__(self, attributes: Mapping[str, Any]) -> None:
        self.__dict__.update(attributes)

    def __repr__(self) -> str:
        return f"Gradient({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"there is no gradient with respect to {name}; there is {', '.join(vars(self))}", name=name, obj=self
        )


def record(kind: type, fields: Mapping[str, Any]) -> Any:
    """Return an object of a dataclass with these fields, without running ``__init__`` and ``__post_init__``."""
    made = object.__new__(kind)
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made


def sequence(kind: type, items: Iterable[Any]) -> Any:
    """Return a list or tuple, or an instance of a subclass, with these items."""
    if kind is list or kind is tuple:
        return kind(items)
    if issubclass(kind, tuple):
        return tuple.__new__(kind, items)
    made: Any = list.__new__(kind)
    list.extend(made, items)
    return made


def mapping(kind: type, items: Iterable[tuple[Any, Any]]) -> Any:
    """Return a dictionary, or an instance of a subclass, with these items."""
    if kind is dict:
        return dict(items)
    base = _base(kind)
    made = base.__new__(kind)
    for key, value in items:
        base.__setitem__(made, key, value)
    return made


def _base(kind: type) -> Any:
    """Return the built-in dictionary class that a class derives from."""
    return OrderedDict if issubclass(kind, OrderedDict) else dict


def refill(container: Any, contents: Any) -> None:
    """Replace the contents of a list, deque, set or dictionary without calling methods of a user's class."""
    if isinstance(container, list):
        list.__setitem__(container, slice(None), contents)
        return
    if isinstance(container, dict):
        base = _base(type(container))
        if [*container] != [*contents]:
            base.clear(container)
        for key in [*contents]:
            base.__setitem__(container, key, contents[key])
        return
    if isinstance(container, set):
        set.clear(container)
        set.update(container, contents)
    else:
        deque.clear(container)
        deque.extend(container, contents)
