"""Calls of functions that take only arrays and numbers: other libraries', Numba's and C's, unsupported ones of NumPy and SciPy.

In a cell they are lent the values, and what they do to these is done to the lazy arrays (``lending``); where there
are no values yet, in functions and in data-dependent code, they are refused by name, except those that are not
written in Python (``staging/calls/foreign_functions.py``). The user's own functions run as they are.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
import re
from collections.abc import Callable, Generator, Iterable
from functools import lru_cache
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import values_are_there
from tensormagic.capture.foreign.lending import Loan
from tensormagic.capture.hooks import hooks
from tensormagic.capture.inputs.door import is_table
from tensormagic.capture.inputs.foreign_arrays import memory_of
from tensormagic.capture.python import usercode
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.alive import once_for_each
from tensormagic.ir.errors import (
    CaptureError,
    ForeignError,
    ForeignStoreError,
    LayoutError,
    LimitError,
    SharedError,
    TensorError,
)
from tensormagic.ir.modules import is_users, module_of, package_of

_ANY_VALUES = set(  # libraries that use their arguments as they are
    "__main__ builtins tensormagic numpy scipy math operator _operator functools _functools itertools copy collections _collections "  # noqa: SIM905 (a table)
    "typing dataclasses abc enum contextlib types inspect weakref IPython ipykernel ipywidgets array_api_compat array_api_strict "
    "pytest _pytest unittest tests sys gc warnings _warnings logging traceback".split()
)


def is_foreign(function: Any) -> bool:
    """Return whether a function, a class or a method belongs to a library that knows nothing of lazy values."""
    if isinstance(function, functools.partial | np.ufunc):
        return False
    if type(function).__name__ == "fortran":  # it treats what is no array as its own, and stores into it
        return True
    function = function.__func__ if isinstance(function, MethodType) and _is_plain(function.__self__) else function
    if isinstance(function, FunctionType):
        return _is_foreign_module(function.__module__) and not _is_users(function.__code__.co_filename)
    owner = getattr(function, "__self__", None)
    if isinstance(owner, Tensor):
        return False
    kind = function if isinstance(function, type) else type(function if owner is None else owner)
    if package_of(kind) == _OWN:  # a derivative is named by the module of its function
        return False
    module = getattr(function, "__module__", None) if isinstance(owner, ModuleType | None) else module_of(kind)
    return isinstance(module, str) and _is_foreign_module(module) and not _has_users_code(kind)


def _is_plain(owner: Any) -> bool:
    return not isinstance(owner, Tensor)


def _is_users(filename: str) -> bool:
    return is_users(filename)


def _has_users_code(kind: type) -> bool:
    """Return whether a class has methods that the user wrote."""
    found = (f for c in kind.__mro__ for f in vars(c).values() if isinstance(f, FunctionType))
    first = next(found, None)
    return first is not None and _is_users(first.__code__.co_filename)


_OWN = __name__.partition(".")[0]


@lru_cache(maxsize=1024)
def _is_foreign_module(name: str | None) -> bool:
    return name is not None and name.partition(".")[0] not in _ANY_VALUES


@once_for_each
def is_foreign_class(kind: type) -> bool:
    """Return whether objects of a class belong to a library that knows nothing of lazy values."""
    return _is_foreign_module(module_of(kind)) and not _has_users_code(kind)


class Lending:
    """Represents an object of another library, which is indexed with computed values.

    Parameters
    ----------
    owner
        The object.
    """

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def __getitem__(self, index: Any) -> Any:
        return on_values(operator.getitem)(self.owner, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        on_values(operator.setitem)(self.owner, index, value)

    def __delitem__(self, index: Any) -> None:
        on_values(operator.delitem)(self.owner, index)


def on_values(function: Callable[..., Any], maker: str = "") -> Callable[..., Any]:
    """Return ``function`` as called on arrays and numbers; ``maker`` is the library that has compiled it."""
    name = _name_of(function)
    what = f"{name}, a function of {maker}," if maker else "a function that is not captured"
    by_class = str(getattr(function, "__module__", None)).startswith(
        "pandas"
    )  # pandas checks functions' results by class

    def call(*args: Any, **options: Any) -> Any:
        loan = Loan(what)
        if not by_class:
            return on_loan(function, args, options, loan)
        options = _with_variables(name, args, options)
        found = _calling_back(function, args, options, loan)
        if is_table(found) and loan.is_in(found):
            return _in_memory(function, tuple(map(called_back, args)), {n: called_back(a) for n, a in options.items()})
        return found

    return call


def _with_variables(name: str, args: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of pandas' ``query`` or ``eval`` with the variables that its text names.

    pandas looks for these in the frame of its caller.
    """
    text = args[0] if args and name in {"query", "eval"} else None
    if not isinstance(text, str) or "@" not in text or "local_dict" in options:
        return options
    there = usercode.user_names(usercode.user_frame())
    return {**options, "local_dict": {n: there[n] for n in re.findall(r"@(\w+)", text) if n in there}}


def _name_of(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def on_loan(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any], loan: Loan) -> Any:
    """Return the result of a function that is called with what ``loan`` lends for its arguments."""
    given, named = [loan.lent(a) for a in args], {n: loan.lent(a) for n, a in options.items()}
    capture = context.current()
    if capture is not None and loan.lends:
        capture.outside.on_values.append(_name_of(function))
    before = loan.holders()
    with hooks.on_values():
        found = function(*given, **named)
    return loan.returned(found, before)


def _calling_back(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any], loan: Loan) -> Any:
    """Return the result of a function that calls back functions of the user's; pure ones are plain Python while it runs."""
    call = hooks.calls_back(loan)
    quick = call.written((*args, *options.values()))

    def handed(value: Any) -> Any:
        written = quick.get(id(value))
        back = called_back(value)
        return back if written is None else _with_parameters(written, call.chosen(written, back))

    with call:
        return on_loan(function, tuple(map(handed, args)), {n: handed(a) for n, a in options.items()}, loan)


def call_library(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    options: dict[str, Any],
    error: TensorError,
    *,
    parts: bool = False,
) -> Any:
    """Return the result of an unsupported function of NumPy or SciPy: in a cell it runs on values, elsewhere ``error`` is raised.

    Also if it returns a part of an array's memory, unless ``parts`` says that it always does. A function that returns
    the memory in another form gets the memory itself.
    """
    if not values_are_there() or isinstance(error, LayoutError | LimitError):
        raise _error_for_python(error)
    loan = Loan("a function that is not captured", parts=parts)
    try:
        found = _calling_back(function, args, options, loan)
    except SharedError:
        found = _in_memory(function, tuple(map(called_back, args)), {n: called_back(a) for n, a in options.items()})
    except LimitError:
        raise
    except CaptureError:
        raise error from None
    if isinstance(error, ForeignStoreError):
        _lose(loan.tensors)
    return found


def _in_memory(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Return the result of a function that returns the arrays' own memory in another form."""
    capture = context.current()
    lent = None if capture is None else functools.partial(memory_of, capture=capture)
    return on_loan(function, args, options, Loan("a function that is not captured", memory=lent))


def _error_for_python(error: TensorError) -> TensorError:
    """Return the error for what Python must run; in a part of a cell on trial, unsupported operands are no mistake."""
    capture = context.current()
    tried = capture is not None and capture.heap.trials and not capture.abstract
    return CaptureError(error.message, error.hint) if tried and isinstance(error, ForeignError) else error


def _lose(given: Iterable[Tensor]) -> None:
    """Note that numbers of lazy values were stored into an array that is not captured: no derivative flows through it."""
    capture, frame = context.current(), usercode.user_frame()
    if capture is None or frame is None:
        return
    for value in given:
        if value.type.inexact:
            capture.outside.lost.setdefault(value.node, usercode.span(frame))


def called_back(function: Any) -> Any:
    """Return a user's function that a library calls, wrapped to return arrays and numbers; each call has its own operations."""
    if not isinstance(function, FunctionType | MethodType):
        return function

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        with _by_itself(context.current()), hooks.called_back():
            return Loan("a function that is called back").lent(function(*args, **options))

    return _with_parameters(function, call)


def _with_parameters(function: Any, call: Any) -> Any:
    """Return ``call`` with the named parameters of a function: Fortran code counts them."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    if isinstance(function, MethodType) or code.co_kwonlyargcount or code.co_flags & _VARIABLE or "call_" in names:
        return call
    made: Any = functools.wraps(function)(_caller(names)(call))
    made.__defaults__ = function.__defaults__
    return made


@lru_cache(maxsize=256)
def _caller(names: tuple[str, ...]) -> Callable[[Any], Any]:
    given = ", ".join(names)
    return eval(f"lambda call_: lambda {given}: call_({given})")  # noqa: S307 (names of parameters)


_VARIABLE = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


@contextlib.contextmanager
def _by_itself(capture: Any) -> Generator[None]:
    """Count the operations of a call, whose result is computed, separately, and keep none of them."""
    count, made = (0, 0) if capture is None else (capture.effort.nodes, len(capture.order.made))
    if capture is not None:
        capture.effort.nodes = 0
    try:
        yield
    finally:
        if capture is not None:
            capture.effort.nodes = count
            del capture.order.made[made:]
            capture.order.ahead = min(capture.order.ahead, made)
