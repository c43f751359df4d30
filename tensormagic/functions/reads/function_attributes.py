"""Attributes that users set on captured functions: they are stored on the function that is captured.

A counter (``f.calls += 1``), a table (``f.seen = {}``) or a constant of a function is an attribute of the function in
Python. The code of the captured function reads it by the same name, and reads and stores of attributes of the user's
functions are followed: so it is stored there.
"""

from __future__ import annotations

import functools
from types import FunctionType
from typing import Any

from tensormagic.capture.staging.trials.attributes import is_users_class


class Attributed:
    """Delegates unknown attributes to the Python function that the object was made of."""

    def __setattr__(self, name: str, value: Any) -> None:
        users = users_of(self, name)
        if users is None:
            object.__setattr__(self, name, value)
        else:
            setattr(users, name, value)

    def __delattr__(self, name: str) -> None:
        users = users_of(self, name)
        if users is None:
            object.__delattr__(self, name)
        else:
            delattr(users, name)

    def __getattr__(self, name: str) -> Any:
        """Return the function's attribute; an AttributeError is the function's."""
        users = users_of(self, name)
        if users is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        return getattr(users, name)


def users_of(made: Any, name: str) -> Any:
    """Return the user's function or callable object, if ``name`` is an attribute that users may set, or None.

    None for our own fields, special names, or objects that were not made of the user's.
    """
    if name in _own(type(made)) or (name.startswith("__") and name.endswith("__")):
        return None
    found = made
    while isinstance(found, Attributed):
        held = vars(found)
        found = held.get("__wrapped__", held.get("plain"))
    return found if isinstance(found, FunctionType) or (found is not None and is_users_class(type(found))) else None


@functools.cache
def _own(kind: type) -> frozenset[str]:
    """Return the names that one of our classes gives its instances."""
    fields = {name for base in kind.__mro__ for name in vars(base).get("__annotations__", {})}
    return frozenset(fields.union(*(vars(base) for base in kind.__mro__)))
