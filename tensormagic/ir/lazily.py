"""Attributes that are computed when they are first read, without the lock that Python 3.11's ``cached_property`` takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

_T = TypeVar("_T")


class lazily(Generic[_T]):  # noqa: N801 (a decorator)
    """A property whose value is stored in the object's dictionary when it is first read.

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
