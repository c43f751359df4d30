"""Data-dependent Python values: the parts they are built from, and how they are built once these are computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from tensormagic.capture.errors.refusal import refuse_python


class Deferred:
    """Represents a value that no graph holds, made of parts that graphs and containers hold."""

    __slots__ = ()
    said: str
    """Its name, for messages."""

    @property
    def parts(self) -> Sequence[Any]:
        """Return the parts that it is made of."""
        raise NotImplementedError

    @property
    def form(self) -> Any:
        """Return what values that differ only in their parts have in common."""
        raise NotImplementedError

    @property
    def again(self) -> Callable[[Sequence[Any]], Any]:
        """Return a function that builds such a value from other parts, or Python's value from computed ones. It holds none of the parts."""
        raise NotImplementedError


class Opaque(Deferred):
    """A deferred value on which Python's own operations are refused."""

    __slots__ = ()

    def _refused(self, what: str) -> NoReturn:
        refuse_python(
            f"{what} {self.said or 'a value'}, which depends on data,",
            "Decide by the numbers that it depends on; or do that outside the function.",
        )

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        self._refused("a change of")

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        self._refused("a store into")

    def __bool__(self) -> bool:  # noqa: PLE0304 (raises)
        self._refused("the truth of")

    def __hash__(self) -> int:  # noqa: PLE0309 (raises)
        self._refused("a key that is")

    def __str__(self) -> str:  # noqa: PLE0307 (raises)
        self._refused("the text of")

    __repr__ = __str__

    def __format__(self, form: str) -> str:
        self._refused("the text of")

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        self._refused("an array of")


def parts_of(value: Any) -> Sequence[Any]:
    """Return the parts of a deferred value; empty for any other."""
    return value.parts if isinstance(value, Deferred) else ()
