"""Errors of code that no graph can hold, so that Python has to run it."""

from __future__ import annotations

from tensormagic.ir.errors import CaptureError, DTypeError, ForeignStoreError, ShapeError


class NeedsPython(CaptureError, told_as=CaptureError):  # noqa: N818 (says what to do about it)
    """Raised where code wants a value, or has an effect, that no graph can hold: Python has to run it."""


class BeginsWeakly(NeedsPython):
    """Raised if a loop begins with a Python number, with which its first iteration computes more precisely than later ones."""


class ForeignArrayError(NeedsPython, ForeignStoreError):
    """Raised for a NumPy array where a captured one is needed; a function then takes the arrays that objects hold as inputs."""


class UnlikeShapesError(NeedsPython, ShapeError, told_as=ShapeError):
    """Raised if control flow gives one name values of several shapes."""


class UnlikeDTypesError(NeedsPython, DTypeError, told_as=DTypeError):
    """Raised if control flow gives one name values of several dtypes."""


class Unknown(Exception):  # noqa: N818 (a way that is not looked at yet)
    """Raised where the result of a function that calls itself is not known yet."""


class Grows(NeedsPython):
    """Raised if a list or a dictionary grows a data-dependent number of times."""


class GetsKeys(NeedsPython):
    """Raised if a dictionary or an object gets a new key or attribute: after the first iteration it may have all."""


def grows(kind: str, error: type[NeedsPython] = Grows) -> NeedsPython:
    """Return the error for a container that holds a data-dependent number of values."""
    return error(
        f"a {kind} grows or shrinks a data-dependent number of times", "Use an array that is as large as needed."
    )
