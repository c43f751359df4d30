"""NumPy's own errors: where a call of captured code is refused for its operands, NumPy is called the same way.

It is called on copies of the operands' values, where these can be computed, else on arrays of their shapes and
dtypes. If it raises, a notebook shows what our error says and advises; its text, and what `except` catches, are
NumPy's. If it does not raise, the call is simply not captured: in a cell it runs on values.
"""

from __future__ import annotations

import functools
import inspect
import operator
import warnings
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.foreign.calls import call_library
from tensormagic.capture.hooks import hooks
from tensormagic.capture.numbers.known_values import static_value
from tensormagic.capture.staging.trials.needs_python import NeedsPython
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.errors import CaptureError, DTypeError, ForeignError, TensorError
from tensormagic.ir.stored import HINT, NAME, SEEN, SINGLE, is_stored
from tensormagic.ir.type import hint

_NO_NUMBERS = str | bytes | dict | set | frozenset | None
_SOME = 3  # elements along an axis of unknown length
_MOST = 10**6  # elements of an operand that is made for the comparison, at most
_OF_CALLS = (ValueError, TypeError, IndexError)  # errors that NumPy raises for operands that do not fit
_FORMS = (type(None), bool, int, float, complex, str, bytes, slice, type(...), type, np.generic, np.dtype, np.ufunc)
_OWN_METHODS = "reshape ravel transpose swapaxes astype fill copy item tolist __round__".split()  # noqa: SIM905 (a table)
_TWO = "add sub mul truediv floordiv mod pow and or xor lshift rshift matmul".split()  # noqa: SIM905 (a table)
_REFLECTED = {f"__r{name}__" for name in _TWO}
_ALONE = "lt le gt ge eq ne neg pos abs invert getitem setitem".split()  # noqa: SIM905 (a table)
_STORES = {*(f"__i{name}__" for name in _TWO), "__setitem__", "resize", "setflags"}
_OPERATORS = [*(f"__{name}__" for name in (*_TWO, *(f"i{n}" for n in _TWO), *_ALONE)), *_REFLECTED]


_NONE = object()  # no error


class _NotComparableError(Exception):
    """Raised if NumPy cannot be called for comparison."""


def with_numpys_errors(
    own: Callable[..., Any], asked: Callable[..., Any], *, stores: bool = False, resolved: bool = False
) -> Callable[..., Any]:
    """Return ``own`` with the error texts of NumPy's function ``asked``; what is not captured runs on values.

    A function that ``stores`` runs on values only with operands that graphs cannot hold. The dtype of a ``resolved``
    one is surely NumPy's.
    """
    judged = not (stores or resolved)

    @functools.wraps(own)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return _of_bfloat16(own, asked, args, options) if SEEN and judged else own(*args, **options)
        except CaptureError as error:
            if stores or context.current() is None:
                raise
            return call_library(asked, args, options, error)
        except ForeignError as error:
            return call_library(asked, args, options, error)
        except _OF_CALLS as error:
            said, gives = as_numpy(error, asked, args, options)
            if gives and not stores and isinstance(error, TensorError):
                return call_library(asked, args, options, error)
            if said is error:
                raise
            raise said.with_traceback(error.__traceback__) from None

    return call


def _of_bfloat16(
    own: Callable[..., Any], asked: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Return the result of a function with bfloat16, in NumPy's dtypes, which depend on how the function is written there."""
    if not any(map(_is_narrow, (*args, *options.values()))):
        return own(*args, **options)
    found: Any = None
    refused: Exception | None = None
    try:
        found = own(*args, **options)
    except (DTypeError, ValueError) as error:
        refused = error
    theirs = _answer(asked, args, options, exact=False)[0]
    name = getattr(asked, "__name__", "the function")
    if isinstance(theirs, TypeError):
        raise ForeignError(f"{name} does not take {NAME}: {theirs}", HINT)
    if isinstance(theirs, np.linalg.LinAlgError):  # the result for stand-ins of the values
        raise ForeignError(f"the dtype of {name} of {NAME} is not known before it is run", HINT)
    if (
        theirs is None or theirs is _NONE or isinstance(theirs, Exception)
    ):  # its stored or given values keep their dtype
        if refused is not None:
            raise refused
        return found
    same = _in_dtypes_of(found, theirs) if refused is None else None
    return _in_wider(own, args, options, theirs, name) if same is None else same


def _in_wider(own: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any], theirs: Any, name: str) -> Any:
    """Return the result of a function with operands in the wider dtype in which NumPy computes."""
    for dtype in (SINGLE, np.dtype(np.float64)):
        wider = {key: _widened(v, dtype) for key, v in options.items()}
        same = _in_dtypes_of(own(*(_widened(v, dtype) for v in args), **wider), theirs)
        if same is not None:
            return same
    raise ForeignError(f"{name} of {NAME} has dtypes in NumPy that captured code does not compute", HINT)


def _is_narrow(value: Any) -> bool:
    return isinstance(value, Tensor) and is_stored(value.dtype)


def _widened(value: Any, dtype: np.dtype[Any]) -> Any:
    return value.astype(dtype) if _is_narrow(value) else value


def _in_dtypes_of(found: Any, theirs: Any) -> Any:
    """Return the result in the dtypes of NumPy's; None if it lacks digits for these."""
    if isinstance(found, tuple) and isinstance(theirs, tuple):
        several = tuple(map(_in_dtypes_of, found, theirs))
        return None if any(v is None for v in several) else several
    dtype = getattr(theirs, "dtype", None)
    if not isinstance(found, Tensor) or dtype is None or found.dtype == dtype:
        return found
    return found.astype(dtype) if is_stored(dtype) and found.dtype == SINGLE else None


def give_methods_numpys_errors() -> None:
    """Make all methods, operators and indexing of lazy arrays raise NumPy's errors, and refuse unsupported ones by name."""
    for name, method in vars(np.ndarray).items():
        if callable(method) and not name.startswith("_") and not hasattr(Tensor, name):
            hooks.methods.setdefault(name, _refused(name))
    for name, own in hooks.methods.items():
        hooks.methods[name] = _named(with_numpys_errors(own, _asking(name), stores=name in _STORES), name)
    for name in _OWN_METHODS:
        setattr(Tensor, name, _named(with_numpys_errors(getattr(Tensor, name), _asking(name)), name))
    for name in _OPERATORS:
        function = getattr(operator, name.replace("__r", "__", 1) if name in _REFLECTED else name)
        asked = _swapped(function) if name in _REFLECTED else function
        setattr(Tensor, name, _operator(getattr(Tensor, name), asked, stores=name in _STORES))


def _refused(name: str) -> Callable[..., Any]:
    def method(array: Tensor, *args: Any, **options: Any) -> Any:
        if context.current() is None and name in _READING:
            return getattr(array.numpy(), name)(*args, **options)
        raise NeedsPython(f"x.{name} is not captured", f"Compute it first: x.numpy().{name}().")

    return method


_READING = {"tobytes", "tofile", "dump", "dumps", "getfield", "byteswap"}  # plain Python may check these on the value


def _operator(own: Callable[..., Any], asked: Callable[..., Any], *, stores: bool) -> Callable[..., Any]:
    """Return an operator that may leave a non-numeric operand to Python; NumPy or Python's number then determines the error."""
    guarded = with_numpys_errors(own, asked, stores=stores, resolved=True)

    @functools.wraps(own)
    def call(self: Tensor, *others: Any) -> Any:
        found = guarded(self, *others)
        if found is NotImplemented and _is_asked_about(self, others[0]):
            theirs = _answer(asked, (self, *others), {})[0]
            if isinstance(theirs, Exception):
                raise theirs
        return found

    return call


def _is_asked_about(value: Tensor, other: Any) -> bool:
    """Return whether an operand is a non-number, not of a user's class, and not a text that an integer repeats."""
    if value.type.form == "array" or not isinstance(other, _NO_NUMBERS):
        return isinstance(other, _NO_NUMBERS)
    repeats = isinstance(other, str | bytes) and value.dtype.kind in "biu"
    return type(other).__module__ == "builtins" and not repeats


def _asking(name: str) -> Callable[..., Any]:
    return _named(lambda array, *args, **options: getattr(array, name)(*args, **options), name)


def _swapped(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda left, right: function(right, left)


def _named(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a method with the name of NumPy's."""
    method.__name__, method.__qualname__ = name, f"ndarray.{name}"
    return method


def as_numpy(
    error: Exception, asked: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[Exception, bool]:
    """Return NumPy's error for a call that failed here, or ours if NumPy raises none or cannot be called.

    Also whether NumPy was called on the actual values and raises none. In a ``try`` it is NumPy's own error object.
    """
    theirs, known = _answer(asked, args, options)
    if theirs is not None and not isinstance(theirs, Exception):
        return error, known
    if theirs is None or not (known or isinstance(error, _builtin(type(theirs)))):
        return error, False
    if not isinstance(error, TensorError):
        return theirs, False
    if not isinstance(error, CaptureError) and _is_handled():
        return theirs.with_traceback(None), False
    if not isinstance(error, type(theirs)):
        found = _joined(type(error), type(theirs))
        made = found.__new__(found)
        made.__dict__.update(error.__dict__)
        made.args = error.args
        for name in (n for c in type(theirs).__mro__ for n in vars(c).get("__slots__", ())):  # ``axis``, for one
            setattr(made, name, getattr(theirs, name))
        error = made
    error.numpys, error.args = str(theirs), theirs.args
    return error, False


def _is_handled() -> bool:
    """Return whether the user's own code, in a ``try``, has called what raises; our own code handles our own errors."""
    capture, frame = context.current(), inspect.currentframe()
    if capture is None or not capture.attempts.depth:
        return False
    calls = 0
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith("tensormagic."):
        calls += frame.f_code is _CALL
        frame = frame.f_back
    return calls <= 1


_CALL = with_numpys_errors(len, len).__code__


def _builtin(kind: type[Exception]) -> type[Exception]:
    return next(base for base in kind.__mro__ if base.__module__ == "builtins")


@functools.cache
def _joined(own: type[TensorError], theirs: type[Exception]) -> type[TensorError]:
    """Return a class of errors that is both ours and NumPy's."""
    base = own if issubclass(own, _builtin(theirs)) else TensorError
    name = own.__name__ if base is own else theirs.__name__
    space = {"__module__": own.__module__, "__init__": TensorError.__init__}
    try:
        return cast("type[TensorError]", type(name, (base, theirs), space))
    except TypeError:  # there can be no such class
        return own


def _answer(
    asked: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any], *, exact: bool = True
) -> tuple[Any, bool]:
    """Return NumPy's error or result, or None if it cannot be called; and whether it was called on the actual values."""
    capture = context.current()
    exact = exact and (capture is None or not (capture.abstract or capture.heap.trials))
    try:
        given = [_operand(a, exact) for a in args]
        named = {name: _operand(a, exact) for name, a in options.items()}
    except Exception:  # noqa: BLE001 (whatever it is, ours is told)
        return None, exact
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            found = asked(*given, **named)
        except _OF_CALLS as error:
            return error, exact
        except Exception:  # noqa: BLE001 (no word about operands)
            return None, exact
    return (_NONE if found is None else found), exact


def _operand(value: Any, exact: bool) -> Any:
    if isinstance(value, Tensor):
        return _of_values(value) if exact else _of_type(value)
    if type(value) in {list, tuple}:
        return type(value)(_operand(v, exact) for v in value)
    if isinstance(value, dict):
        return {k: _operand(v, exact) for k, v in value.items()}
    if type(value) in {set, frozenset}:
        return type(value)(_operand(v, exact) for v in value)
    if type(value) is np.ndarray:
        return value.copy() if value.size <= _MOST else np.zeros(value.shape, value.dtype)
    numpys = callable(value) and (getattr(value, "__module__", None) or "").startswith("numpy")
    if isinstance(value, Iterator) or not (numpys or isinstance(value, _FORMS)):
        raise _NotComparableError
    return value


def _of_values(value: Tensor) -> Any:
    if value.type.form == "array" and np.prod([hint(s) or 0 for s in value.type.shape], dtype=float) > _MOST:
        return _of_type(value)
    found = hooks.compute([value.node])[0]
    return np.array(found) if isinstance(found, np.ndarray) else found


def _of_type(value: Tensor) -> Any:
    known = static_value(value.node) if not value.type.shape else None
    if known is not None:
        return known
    shape = [hint(s) for s in value.type.shape]
    if None in shape and not _is_narrow(value):
        raise _NotComparableError
    made = np.zeros([_SOME if s is None else s for s in shape], value.dtype)
    if _is_narrow(value):  # numbers that differ, so that nothing is singular or empty
        made[...] = np.cos(np.arange(1, made.size + 1)).reshape(made.shape)
    if value.type.form == "array":
        return made
    return made[()].item() if value.type.form == "python" else made[()]
