"""Errors of code that no graph can hold, so that Python has to run it."""

from __future__ import annotations

from tensormagic.ir.errors import CaptureError, DTypeError, ForeignStoreError, ShapeError


class NeedsPython(CaptureError, told_as=CaptureError):  # noqa: N818 (says what to do about it)
    """Code that Python has to run: it wants a value, or has an effect, that no graph can hold."""


class BeginsWeakly(NeedsPython):
    """What a loop begins with is a number of Python's, in which its first iteration computes more precisely than the others."""


class ForeignArrayError(NeedsPython, ForeignStoreError):
    """An array of NumPy's own where one is needed that is captured: a function takes those that objects hold for inputs then."""


class UnlikeShapesError(NeedsPython, ShapeError, told_as=ShapeError):
    """Control flow gives one name values of several shapes."""


class UnlikeDTypesError(NeedsPython, DTypeError, told_as=DTypeError):
    """Control flow gives one name values of several dtypes."""


class Unknown(Exception):  # noqa: N818 (a way that is not looked at yet)
    """What a function that calls itself gives, where that is not known yet."""


class Grows(NeedsPython):
    """A list or a dictionary grows a data-dependent number of times."""


class GetsKeys(NeedsPython):
    """A dictionary or an object gets a key or an attribute that it did not have: after the first iteration it may have all."""


def grows(kind: str, error: type[NeedsPython] = Grows) -> NeedsPython:
    """The error for a container that holds a data-dependent number of values."""
    return error(
        f"a {kind} grows or shrinks a data-dependent number of times", "Use an array that is as large as needed."
    )
