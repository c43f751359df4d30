"""The containers that code may change: lists, dictionaries, and the attributes of the user's classes."""

from __future__ import annotations

import sys
from array import array
from collections import deque
from collections.abc import Iterator, Mapping, MutableMapping
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from tensormagic.capture.foreign import rebuilt_containers
from tensormagic.ir.modules import is_users, module_of

_users: WeakKeyDictionary[type, bool] = WeakKeyDictionary()
_slotted: WeakKeyDictionary[type, bool] = WeakKeyDictionary()  # whether a class has slots, which it cannot get later


class Attributes(MutableMapping[str, Any]):
    """Represents the attributes of a class itself as a mapping, except those that Python adds.

    Parameters
    ----------
    owner
        The class.
    """

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def __getitem__(self, name: str) -> Any:
        return vars(self.owner)[name]

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self.owner, name, value)

    def __delitem__(self, name: str) -> None:
        delattr(self.owner, name)

    def __iter__(self) -> Iterator[str]:
        return (name for name in list(vars(self.owner)) if not name.startswith("__"))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def refill(self, before: Mapping[str, Any]) -> None:
        """Restore the former content."""
        for name in [n for n in self if n not in before]:
            del self[name]
        for name, value in before.items():
            if self.get(name, self) is not value:
                self[name] = value


class Slotted(Attributes):
    """Represents the attributes of an object whose classes have ``__slots__``."""

    def __getitem__(self, name: str) -> Any:
        try:
            return object.__getattribute__(self.owner, name)
        except AttributeError:
            raise KeyError(name) from None

    def __setitem__(self, name: str, value: Any) -> None:
        object.__setattr__(self.owner, name, value)

    def __delitem__(self, name: str) -> None:
        object.__delattr__(self.owner, name)

    def __iter__(self) -> Iterator[str]:
        names = (
            n for kind in type(self.owner).__mro__ for n, v in vars(kind).items() if isinstance(v, MemberDescriptorType)
        )
        return (n for n in names if n in self)

    def __contains__(self, name: object) -> bool:
        return self.get(name, self) is not self  # type: ignore[call-overload]


def containers_of(value: Any) -> Iterator[MutableMapping[str, Any]]:
    """Yield the containers of the attributes of a user's object, apart from its classes."""
    inside = getattr(value, "__dict__", None)
    if isinstance(inside, dict):
        yield inside
    kind = type(value)
    if kind not in _slotted:
        users = (vars(base).values() for base in kind.__mro__ if is_users_class(base))
        _slotted[kind] = any(isinstance(v, MemberDescriptorType) for own in users for v in own)
    if _slotted[kind]:
        yield Slotted(value)


def is_users_class(kind: type) -> bool:
    """Return whether a class is written in a notebook, or in a file of the user's."""
    if kind not in _users:
        _users[kind] = _is_users(kind)
    return _users[kind]


def _is_users(kind: type) -> bool:
    if module_of(kind) == "__main__" or _is_of_no_module(kind):
        return True
    if any(isinstance(v, FunctionType) and is_users(v.__code__.co_filename) for v in vars(kind).values()):
        return True
    file = getattr(sys.modules.get(module_of(kind)), "__file__", None)
    return module_of(kind) != "builtins" and file is not None and is_users(file)


def _is_of_no_module(kind: type) -> bool:
    """Return whether a class was made by a ``class`` statement in code that runs without a module, as by ``exec``."""
    return module_of(kind) == "builtins" and isinstance(vars(kind).get("__weakref__"), GetSetDescriptorType)


def is_users_module(value: Any) -> bool:
    """Return whether a value is a module of the user's: from a file of theirs, or made by hand."""
    if not isinstance(value, ModuleType):
        return False
    file = getattr(value, "__file__", None)
    return value.__spec__ is None if file is None else is_users(file)


def differs(container: Any, before: Any) -> bool:
    """Return whether a container holds other objects than it did, or in another order."""
    if isinstance(container, MutableMapping):
        return list(container) != list(before) or any(container[k] is not v for k, v in before.items())
    if isinstance(container, list | deque):
        return len(container) != len(before) or any(a is not b for a, b in zip(container, before, strict=True))
    return container != before


def is_longer(container: list[Any], before: list[Any]) -> bool:
    """Return whether a list has kept its items and gained more at the end."""
    more = len(container) > len(before)
    return more and all(a is b for a, b in zip(container, before, strict=False))


def refill(container: Any, before: Any) -> None:
    """Restore the contents of a container."""
    if isinstance(container, Attributes):
        container.refill(before)
        return
    if isinstance(container, array | bytearray):
        container[:] = before
        return
    rebuilt_containers.refill(container, before)
