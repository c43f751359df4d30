"""Attributes that are computed when they are first asked for, without the lock that Python 3.11's own take at each first asking."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

_T = TypeVar("_T")


class lazily(Generic[_T]):  # noqa: N801 (a decorator)
    """A property whose value is kept in the object's dictionary, where it is found from then on.

    Examples
    --------
    >>> class Square:
    ...     side = 3
    ...
    ...     @lazily
    ...     def area(self) -> int:
    ...         return self.side**2
    >>> Square().area
    9
    """

    def __init__(self, function: Callable[[Any], _T]) -> None:
        self.function = function
        self.name = function.__name__
        self.__doc__ = function.__doc__

    @overload
    def __get__(self, found: None, owner: Any = None) -> Self: ...

    @overload
    def __get__(self, found: object, owner: Any = None) -> _T: ...

    def __get__(self, found: Any, owner: Any = None) -> Any:
        if found is None:
            return self
        value = found.__dict__[self.name] = self.function(found)
        return value
