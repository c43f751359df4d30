"""An optional value: None for some data. It holds the value otherwise, and a flag in the graph that says which.

``is None`` and truth read the flag, a function returns None where it says so, and any other use needs the value:
where that is None, the use is an error when the graph runs. Code that runs only where the flag is true, as after ``if
best is not None``, has the value itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import is_called_by_the_user, refuse, refuse_python
from tensormagic.capture.hooks import run_time
from tensormagic.capture.numbers.deferred import Deferred, Opaque
from tensormagic.capture.stores.place import Buffer, Place
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.node import Node
from tensormagic.ops.effects.checks import require
from tensormagic.ops.form import FORM, to_form
from tensormagic.ops.leaf import constant_value
from tensormagic.ops.pointwise import ASTYPE
from tensormagic.ops.scalars import scalar

WITHIN = "where it depends on data whether a value is None, "


class Perhaps(Deferred):
    """Base of values that are None for some data."""

    __slots__ = ()
    flag: Tensor
    """Whether it is there, and not None."""
    inner: Any
    """What it is then."""

    @property
    def parts(self) -> tuple[Any, Any]:
        """Return the flag for whether it is not None, and the value it then has."""
        return self.flag, self.inner

    @property
    def form(self) -> Any:
        """Return the form, which all such values share."""
        return "perhaps"

    @property
    def again(self) -> Callable[[Sequence[Any]], Any]:
        """Return a function that makes such a value from other parts."""
        said = self.said
        return lambda parts: perhaps(parts[0], parts[1], said)

    @property
    def is_there(self) -> bool | None:
        """Return whether it is not None on the current branch; None if that is data-dependent."""
        return _supposed(self.flag.node)

    @property
    def now(self) -> Any:
        """Return its value on the current branch: the value or None if that is known; else itself."""
        there = self.is_there
        return self if there is None else self.inner if there else None


class PerhapsNumber(Perhaps, Tensor):
    """A number or an array that is None for some data."""

    __slots__ = ("flag", "inner", "said")

    def __init__(self, flag: Tensor, inner: Tensor, said: str) -> None:
        self.flag, self.inner, self.said = flag, inner, said
        if inner.type.form == "array":
            place = inner.place.view(self._checked, self._store, lambda layout: layout)
        else:
            place = Place(Buffer(self._checked(inner.node), name=said))
        super().__init__(place)

    def _checked(self, node: Node) -> Node:
        said = self.said or "a value"
        return require(node, self.flag.node, f"{said} is None here, for these data, where a number is needed", "none")

    def _store(self, _old: Node, _new: Node) -> NoReturn:
        refuse(
            f"a store into {self.said or 'an array'}, which is None for some data,", "Store into a copy, and bind that."
        )

    @property
    def node(self) -> Node:
        """Return the node of the value; the graph raises an error if it is None."""
        there = self.is_there
        if there is False:
            raise TypeError(f"{self.said or 'a value'} is None here, where a number is needed")
        return self.inner.node if there else Tensor.node.fget(self)  # type: ignore[attr-defined]

    @property
    def __class__(self) -> type[Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        if not is_called_by_the_user():
            return type(self)
        if (now := self.now) is self:
            refuse(f"the class of {self.said or 'a value'}, which is None for some data,", "Ask `is None` first.")
        return now.__class__

    def __eq__(self, other: object) -> Any:
        return _compared(self, other, equal=True)

    def __ne__(self, other: object) -> Any:
        return _compared(self, other, equal=False)

    __hash__ = Tensor.__hash__


class PerhapsOther(Perhaps, Opaque):
    """A tuple, a list or a record that is None for some data."""

    __slots__ = ("flag", "inner", "said")

    def __init__(self, flag: Tensor, inner: Any, said: str) -> None:
        for name, value in (("flag", flag), ("inner", inner), ("said", said)):
            object.__setattr__(self, name, value)

    def _needed(self) -> Any:
        """Return the value; the graph raises an error if it is None."""
        if self.is_there is None:
            demand(self.flag, f"{self.said or 'a value'} is None here, for these data, where its parts are needed")
        elif self.is_there is False:
            raise TypeError("'NoneType' object has no parts")
        return self.inner

    def __iter__(self) -> Iterator[Any]:
        return iter(self._needed())

    def __len__(self) -> int:
        return len(self._needed())

    def __getitem__(self, key: Any) -> Any:
        return self._needed()[key]

    def __contains__(self, value: Any) -> bool:
        return value in self._needed()

    def __eq__(self, other: object) -> Any:
        return _compared(self, other, equal=True)

    def __ne__(self, other: object) -> Any:
        return _compared(self, other, equal=False)

    __hash__ = Opaque.__hash__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or (isinstance(self.inner, list | dict) and name not in _READS):
            raise AttributeError(name)
        return getattr(self._needed(), name)


_READS = {"index", "count", "copy", "keys", "values", "items", "get"}


def perhaps(flag: Any, inner: Any, said: str = "") -> Any:
    """Return ``inner`` or None, by ``flag``; immediately if that is known or computed."""
    if not isinstance(flag, Tensor):
        if np.ndim(flag):
            raise CaptureError(f"{WITHIN}it may be None for some elements of a batch alone", "Return a number instead.")
        return inner if flag else None
    if flag.ndim:
        raise CaptureError(f"{WITHIN}it may be None for some elements of a batch alone", "Return a number instead.")
    there = constant_value(flag.node)
    if there is not None:
        return inner if there else None
    return (PerhapsNumber if isinstance(inner, Tensor) else PerhapsOther)(flag, inner, said)


def sized(value: Any) -> Any:
    """Return a value for `len`; if it is None, Python's error is raised when the graph runs."""
    if not isinstance(value, PerhapsNumber):
        return value
    if value.is_there is None:
        demand(value.flag, "object of type 'NoneType' has no len()")
    return None if value.is_there is False else value.inner


def asked(value: Any, what: str) -> Any:
    """Return a value for ``what``, for which NumPy accepts None; raise if it is None for some data only."""
    if not isinstance(value, Perhaps):
        return value
    if value.is_there is None:
        refuse_python(f"{what} of what is None for some data,", "Ask `is None` first.")
    return value.now


def demand(flag: Tensor, message: str) -> None:
    """Let the graph raise an error if a value that is needed now is None."""
    if not run_time.defer(flag.node, TypeError(message)):
        refuse("a value that is None for some data, in a `try`,", "Ask `is None` first.")


# what is known of flags -----------------------------------------------------------------------------------------------


def _supposed(flag: Node) -> bool | None:
    capture = context.current()
    for predicate, holds in () if capture is None else capture.inputs.supposed:
        found = implied(predicate, holds, flag)
        if found is not None:
            return found
    return None


def implied(predicate: Node, holds: bool, flag: Node) -> bool | None:
    """Return what a condition that holds (or not) implies for a flag; None if nothing."""
    if predicate is flag:
        return holds
    if predicate.op in {FORM, ASTYPE}:
        return implied(predicate.args[0], holds, flag)
    if flag.op is FORM:
        return implied(predicate, holds, flag.args[0])
    if predicate.op is scalar.logical_not:
        return implied(predicate.args[0], not holds, flag)
    if predicate.op is (scalar.logical_and if holds else scalar.logical_or):
        return next((f for a in predicate.args if (f := implied(a, holds, flag)) is not None), None)
    return None


def supposing(run: Callable[[], Any], predicate: Node, *, holds: bool) -> Callable[[], Any]:
    """Return ``run`` in a context in which a condition is known to hold, or not to."""

    def supposed() -> Any:
        capture = context.current()
        if capture is None:
            return run()
        capture.inputs.supposed.append((predicate, holds))
        try:
            return run()
        finally:
            capture.inputs.supposed.pop()

    supposed.__dict__.update(getattr(run, "__dict__", {}))
    return supposed


def narrowed(value: Any, predicate: Node, *, holds: bool) -> Any:
    """Return a value where a condition is known to hold, or not to."""
    if not isinstance(value, Perhaps):
        return value
    there = implied(predicate, holds, value.flag.node)
    return value if there is None else value.inner if there else None


def now(value: Any) -> Any:
    """Return a value for `is`, resolved on the current branch if possible."""
    found = value.now if isinstance(value, Perhaps) else value
    if isinstance(found, Perhaps):
        refuse("`is` with what is None for some data", "Ask `is None` first.")
    return found


# what code asks -------------------------------------------------------------------------------------------------------


def is_none(value: Perhaps) -> Any:
    """Return ``value is None``."""
    there = value.is_there
    return wrap(to_form(scalar.logical_not(value.flag.node), "python")) if there is None else not there


def truth_of(value: Perhaps, truth: Callable[[Any], bool | Node]) -> bool | Node:
    """Return the truth of a value, where None is false."""
    now = value.now
    if now is not value:
        return truth(now)
    try:
        found = truth(value.inner)
    except ValueError as error:  # an array's of several elements
        if not run_time.defer(to_form(scalar.logical_not(value.flag.node), "python"), error):
            raise
        return False
    if isinstance(found, bool):
        return value.flag.node if found else False
    return to_form(scalar.logical_and(value.flag.node, found), "python")


def as_of(value: Perhaps, ask: Callable[[Any], Any]) -> Any:
    """Return the answer to a yes-or-no question, such as ``isinstance``, about the value."""
    now = value.now
    if now is not value:
        return ask(now)
    found, none = ask(value.inner), ask(None)
    if found is none:
        return found
    if not isinstance(found, bool):  # the class of the number depends on data, too
        return run_time.choose(value.flag.node, (lambda: found, lambda: none))
    return value.flag if found else is_none(value)


def _compared(value: Perhaps, other: Any, *, equal: bool) -> Any:
    """Return ``value == other``, or ``value != other`` without ``equal``."""
    now, other = value.now, other.now if isinstance(other, Perhaps) else other
    if now is not value:
        return now == other if equal else now != other
    if other is None:
        found = is_none(value)
        return found if equal else value.flag

    def there() -> Any:
        return value.inner == other if equal else value.inner != other

    def none() -> Any:
        if not isinstance(other, Perhaps):
            return not equal
        return is_none(other) if equal else other.flag

    return run_time.choose(value.flag.node, (there, none))
