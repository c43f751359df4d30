"""All errors that a user can meet, each derived from ``TensorError`` and from the error that NumPy would raise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class TensorError(Exception):
    """Any error of tensormagic.

    Parameters
    ----------
    message
        What is wrong, with the types of what is involved.
    hint
        What to do about it.
    """

    def __init__(self, message: str = "", hint: str = "") -> None:
        Exception.__init__(self, message)  # so that NumPy's base classes do not interpret the arguments
        self.message = message
        self.hint = hint

    told_as: type[TensorError] | None = None
    """The class whose name users see, if only the package distinguishes this class from it."""

    def __init_subclass__(cls, *, told_as: type[TensorError] | None = None) -> None:
        super().__init_subclass__()
        cls.told_as = told_as or cls.told_as
        if cls.told_as is not None:
            cls.__name__, cls.__qualname__, cls.__module__ = (
                cls.told_as.__name__,
                cls.told_as.__qualname__,
                cls.told_as.__module__,
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return self.told_as or type(self), self.args, self.__dict__

    pythons = False
    """Whether a failing call may be repeated by Python, which may return a result or raise an error of its own."""

    numpys = ""
    """The text of NumPy's error for the same fault, if it has one."""

    @property
    def numpys_class(self) -> type[Exception]:
        """The error class NumPy would raise: the first base class from outside this package."""
        own = __name__.partition(".")[0]
        return next(c for c in type(self).__mro__ if c.__module__.partition(".")[0] != own and issubclass(c, Exception))

    def __repr__(self) -> str:
        return f"{self.numpys_class.__name__}({self.numpys!r})" if self.numpys else super().__repr__()

    def __str__(self) -> str:
        if self.numpys:
            return self.numpys
        return f"{self.message}\nHint: {self.hint}" if self.hint else self.message


class ShapeError(TensorError, ValueError):
    """Shapes do not fit.

    Examples
    --------
    >>> import tensormagic as tm
    >>> tm.tensor([1.0, 2.0]) + [1.0, 2.0, 3.0]  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    ShapeError: ...
    """

    pythons = True


class AxisError(ShapeError, IndexError):
    """An axis that is not there."""


class DTypeError(TensorError, TypeError):
    """A dtype that an operation does not take.

    Examples
    --------
    >>> import tensormagic as tm
    >>> try:
    ...     tm.trace(lambda x: x + 1, "object[n]")
    ... except tm.DTypeError as error:
    ...     print(error.message)
    x is an object array (object); %%tensor takes numbers
    """

    pythons = True


class ForeignError(DTypeError):
    """A value that no graph holds: NumPy computes with it in cells, and elsewhere it is refused."""

    pythons = False


class BoundsError(TensorError, IndexError):
    """An index out of bounds, or of a kind that NumPy does not take."""

    pythons = True


class ArgumentError(TensorError, TypeError):
    """A function is called with arguments that it does not take."""


class CaptureError(TensorError, TypeError):
    """Code that cannot be captured.

    Examples
    --------
    >>> import tensormagic as tm
    >>> import scipy.signal
    >>> tm.trace(lambda x: scipy.signal.savgol_filter(x, 3, 1), "float64[n]")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    CaptureError: ...
    """

    pythons = True


REFUSALS = (CaptureError, ForeignError)
"""Errors that say that no graph can hold the code: the code itself would not raise them, or catch them."""


class ForeignStoreError(CaptureError):
    """A store into an array that is not captured."""


class ValueNeededError(CaptureError):
    """Code that needs a value, but the code is only being captured."""


class SharedError(CaptureError):
    """An array's memory is given as something else: stores into the one reach the other."""


class LayoutError(CaptureError):
    """Where elements lie in memory decides, and is not known: their values do not tell it."""


class GoneOnError(CaptureError):
    """A call is given, or computes, something that its graph cannot hold: Python runs on, where it has the code."""


class OtherDTypeError(GoneOnError):
    """An array whose dtype is data-dependent is of another one when the graph runs."""


class OtherNumberError(GoneOnError):
    """A number of Python's is complex, or of more than 64 bits, when the graph runs."""


class OtherWideError(OtherNumberError, OverflowError):
    """A float is converted to an integer of more than 64 bits when the graph runs."""


class SharedResultError(GoneOnError):
    """A result may be a part of another array that the caller has, and it is not known which part."""


class SharedArgumentsError(GoneOnError):
    """An argument that is stored into shares memory with something else that the call is given or reads."""


class LimitError(CaptureError):
    """Captured code builds more operations than a graph may have.

    Parameters
    ----------
    message, hint
        As for every error.
    why
        Why Python runs the iterations that build them.
    line
        The line of the first such loop; 0 where it is not known.
    empty
        Whether what takes long puts nothing into the graph.
    """

    def __init__(self, message: str = "", hint: str = "", why: str = "", line: int = 0, *, empty: bool = False) -> None:
        super().__init__(message, hint)
        self.why = why
        self.line = line
        self.empty = empty


class MissingAttributeError(CaptureError, AttributeError):
    """An attribute that NumPy's arrays have, and lazy ones have not."""


class DataShapeError(CaptureError, ShapeError):
    """Shapes that depend on data, and do not fit in a graph: in NumPy they may."""


class UndefinedError(TensorError, UnboundLocalError):
    """A name that is bound only in some cases, used in another one."""

    pythons = True


class GuardError(TensorError, RuntimeError):
    """An assumption made at capture does not hold when the graph runs.

    Examples
    --------
    >>> import tensormagic as tm
    >>> tm.compile(lambda x: x + 1, "float64[3]").run(tm.tensor([1.0, 2.0]).numpy())  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    GuardError: ...
    """


class WideError(CaptureError, OverflowError):
    """An integer of Python's that machine code has no room for."""


class KindError(GuardError):
    """A result that was taken for real, or for complex, when a function was captured is the other.

    Attributes
    ----------
    site
        Which of the function's results of that sort.
    printed
        What the function has printed until then.
    """

    site = -1
    printed = ""


class TransferError(TensorError, RuntimeError):
    """A copy between devices that the settings forbid."""


class DeviceError(TensorError, RuntimeError):
    """A device that is not available, or that fails."""


class MemoryShortError(TensorError, MemoryError):
    """A run needs more memory than is available: known before it begins, or found by a device while it runs.

    Examples
    --------
    >>> import tensormagic as tm
    >>> import numpy as np
    >>> with tm.config.using(memory=1_000_000):  # doctest: +IGNORE_EXCEPTION_DETAIL
    ...     tm.compile(lambda x: np.exp(x[:, None] + x), "float64[n]").run(np.ones(6_000))
    Traceback (most recent call last):
    MemoryShortError: ...
    """

    largest = ""

    def place(self, spans: Sequence[Any]) -> None:
        """Name the source lines of the largest array in the message; without ``spans`` the message stays as it was."""
        if not spans or not self.largest:
            return
        told = " or ".join([*dict.fromkeys(map(str, spans))][:_PLACES])
        self.message = self.message.replace(self.largest, largest := f"{self.largest.partition(' of ')[0]} of {told}")
        self.largest, self.args = largest, (self.message,)


_PLACES = 2
"""How many of several equally large arrays a message names."""


class HiddenTransferWarning(UserWarning):
    """An array is copied between the host and the device without an explicit request."""


class DifferentiationError(TensorError, ValueError):
    """A derivative that does not exist, or is not implemented.

    Examples
    --------
    >>> import tensormagic as tm
    >>> tm.grad(lambda n: n * 2)(3)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    DifferentiationError: ...
    """

    placed = False
    """Whether the message names a line."""


class DerivativeCheckError(TensorError, AssertionError):
    """A derivative that disagrees with finite differences of the values.

    Examples
    --------
    >>> import tensormagic as tm
    >>> import numpy as np
    >>> wrong = tm.custom_gradient(lambda x: (x**3, lambda adjoint: 2 * adjoint * x))
    >>> tm.check_grads(wrong, (2.0,))  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    DerivativeCheckError: ...
    """


class ParseError(TensorError, ValueError):
    """Text that is not a graph.

    Examples
    --------
    >>> import tensormagic as tm
    >>> tm.parse("no graph")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    ParseError: ...
    """


class FormatError(TensorError, ValueError):
    """A file that does not hold a compiled function, or has been altered.

    Examples
    --------
    >>> import tensormagic as tm
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp(), "f.tm")
    >>> file.write_bytes(b"nothing")
    7
    >>> tm.load(file)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    FormatError: ...
    """


class RuleError(TensorError, ValueError):
    """A rewrite rule that does not hold.

    Examples
    --------
    >>> import tensormagic as tm
    >>> import numpy as np
    >>> @tm.rule  # doctest: +IGNORE_EXCEPTION_DETAIL
    ... def half(x):
    ...     yield np.sqrt(x**2), x
    Traceback (most recent call last):
    RuleError: ...
    """


class StaleGradientWarning(UserWarning):
    """A gradient is used after its variable has changed."""


class RecaptureWarning(UserWarning):
    """A function is captured anew at each call, which takes noticeable time."""


class PlainRunWarning(UserWarning):
    """Code was run as ordinary Python: the graph of a cell grew too large, or no graph can hold what a function does.

    Examples
    --------
    >>> import warnings, tensormagic as tm
    >>> def length(t):
    ...     return len(str(t))
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     tm.tensor(length)(2.5), told[0].category.__name__
    (3, 'PlainRunWarning')
    """


class ConstantGradientWarning(UserWarning):
    """The result does not depend on a variable: its gradient is zero.

    Examples
    --------
    >>> import warnings, numpy as np, tensormagic as tm
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     tm.grad(np.floor)(1.5), told[0].category.__name__
    (0.0, 'ConstantGradientWarning')
    """
