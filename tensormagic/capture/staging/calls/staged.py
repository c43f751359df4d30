"""Calls in staged code: the user's functions are staged in turn, and functions with effects are not called on trial."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import lru_cache, partial
from numbers import Number
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, MethodType, ModuleType, WrapperDescriptorType
from typing import Any

import numpy as np

from tensormagic.capture import clocks, context, limits, names
from tensormagic.capture.errors import deprecated, floating
from tensormagic.capture.errors.refusal import refuse_python, values_are_there
from tensormagic.capture.foreign import side_effects
from tensormagic.capture.foreign.calls import Lending, call_library, is_foreign, is_foreign_class, on_values
from tensormagic.capture.foreign.native_functions import maker_of
from tensormagic.capture.hooks import hooks, run_time
from tensormagic.capture.inputs import namespace
from tensormagic.capture.inputs.door import is_itself, read_by
from tensormagic.capture.library import applying, mathematics
from tensormagic.capture.numbers.alternatives import Indexed, OneOf, applied, joined
from tensormagic.capture.python import builtin_facts
from tensormagic.capture.random.methods import Stateful
from tensormagic.capture.staging.branches.any_all import quantified
from tensormagic.capture.staging.branches.lifted_values import unstaged
from tensormagic.capture.staging.calls import foreign_functions, special_methods
from tensormagic.capture.staging.calls.calls_back import stores
from tensormagic.capture.staging.calls.handed_functions import (
    calling_staged,
    staged,
    takes_functions,
    with_staged_arguments,
)
from tensormagic.capture.staging.loops import iterators, ranges
from tensormagic.capture.staging.loops.comprehensions import Filtered
from tensormagic.capture.staging.loops.consumed_iterators import guarding_iterators, is_staged
from tensormagic.capture.staging.loops.grown_lists import GrownList
from tensormagic.capture.staging.loops.recursive import calling, code_that_calls_itself
from tensormagic.capture.staging.messages.printing import id_, in_order, keeps_messages, replacement, with_messages
from tensormagic.capture.staging.numbers import kinds, ordering, scalar_types
from tensormagic.capture.staging.numbers.class_calls import classed
from tensormagic.capture.staging.numbers.conversions import CONVERSIONS, own_method, waits
from tensormagic.capture.staging.numbers.extremes import extreme, sum_, whole
from tensormagic.capture.staging.syntax import source
from tensormagic.capture.staging.trials.attributes import is_users_class
from tensormagic.capture.staging.trials.needs_python import NeedsPython
from tensormagic.capture.staging.trials.trial import fail_trial, trial
from tensormagic.capture.values.operands import has_lazy, node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.modules import module_of


def called(function: Any) -> Any:
    """Return the function that staged code calls in place of ``function``."""
    capture = context.current()
    if capture is None:
        return function
    return (
        classed(function, _in_capture(function, capture), called)
        if capture.classes.of
        else _in_capture(function, capture)
    )


def _in_capture(function: Any, capture: context.Capture) -> Any:
    heap = capture.heap
    if (heap.once or (heap.trials and any(t.iterators for t in heap.trials))) and not is_staged(function):
        return guarding_iterators(function, _called(function))
    kind = type(function)
    if kind is MethodType:
        limits.called(capture)
    if kind is not BuiltinFunctionType and kind is not FunctionType:
        return _called(function)
    key = (
        function,
        capture.abstract,
        bool(capture.heap.trials),
    )  # what determines the replacement of a library's function
    found = _settled.get(key)
    if found is None:
        found = _called(function)
        if _is_settled(function) and _is_settled(found):
            _settled[key] = found
        elif kind is FunctionType:
            limits.called(capture)
    return found


_settled: dict[tuple[Any, bool, bool], Any] = {}


def _is_settled(function: Any) -> bool:
    """Return whether a function belongs to the library and holds no state."""
    if type(function) is BuiltinFunctionType:
        return isinstance(function.__self__, ModuleType | None)
    if type(function) is not FunctionType or not str(function.__globals__.get("__name__")).startswith(
        ("tensormagic.", "numpy.")
    ):
        return False
    return all(type(c.cell_contents) in {BuiltinFunctionType, str} for c in function.__closure__ or ())


def _called(function: Any) -> Any:
    if type(function) is Tensor:
        kind = kinds.stands_for(function.type)
        name = kind.__name__ if kind.__module__ == "builtins" else f"numpy.{kind.__name__}"
        raise TypeError(f"{name!r} object is not callable")
    if isinstance(function, OneOf):
        return lambda *args, **options: applied(function, lambda f: called(f)(*args, **options))
    if type(function) is partial:
        own = called(function.func)
        return function if own is function.func else partial(own, *function.args, **function.keywords)
    if isinstance(function, type) and is_users_class(function):
        special_methods.stage_class(function)
    found = calling_staged(_replacement(function))
    return with_staged_arguments(found, function, called) if takes_functions(function) else found


def _replacement(function: Any) -> Any:
    """Return our replacement for a function of a library, or the function itself."""
    if hooks.of_rules is not None and (own := hooks.of_rules(function)) is not None:
        return own
    return replacement_without_rules(function)


def replacement_without_rules(function: Any) -> Any:
    """Return our replacement for a function, ignoring the user's rules."""
    if (own := _replaced_effect(function)) is not None:
        return own
    if isinstance(function, np.vectorize):
        return applying.vectorized(function)
    if _is_librarys(function):
        return namespace.of_library(function)  # in code whose names were not replaced, too
    if isinstance(function, MethodType) and isinstance(function.__self__, Tensor) and (own := own_method(function)):
        return partial(own, function.__self__)
    if (own := _of_container(function)) is not None or (own := _of_array(function)) is not None:
        return own
    if waits() and (code := code_that_calls_itself(function)) is not None:
        return calling(staged(function), code)
    if (own := staged(function)) is not function:
        return own
    if maker := maker_of(function):
        return foreign_functions.with_arrays(function, maker)
    own = _own_or_on_values(function)
    if own is not function:
        return own
    return _as_python_calls(function)


_OF_CLASSES = {MethodDescriptorType, WrapperDescriptorType}  # methods and operators, as classes of C have them


def _of_number(function: Any, *args: Any) -> Any:
    """Call a method of a class of numbers with the number as its first argument: ``float.hex(v)``."""
    if not args or type(args[0]) is not Tensor or not issubclass(kinds.stands_for(args[0].type), function.__objclass__):
        return function(*args)
    return called(getattr(args[0], function.__name__))(*args[1:])


def _replaced_effect(function: Any) -> Any:
    """Return our replacement for a function that prints, changes something outside, or makes a manager that may; else None."""
    if _is_abstract() and (own := replacement(function)) is not None:
        return own
    if function is print and trial() is None and not _is_abstract():
        return in_order
    if clocks.is_clock(function):
        return _clock(function)
    if clocks.is_date(function) and trial() is None and not _is_abstract():
        return partial(clocks.read_clock, function)
    if function is clocks.read_clock:  # which a function of a plain cell calls
        return _read
    if getattr(function, "__code__", None) is not _OF_MANAGERS:
        return None
    own = staged(function.__wrapped__)  # contextlib calls this generator, of the user's
    return None if own is function.__wrapped__ else contextmanager(own)


def _clock(function: Any) -> Any:
    """Return a clock that is read after all earlier values have been computed, which needs values."""
    if trial() is not None:
        raise fail_trial(
            f"{function.__name__}() reads a clock, and the loop or branch around it is one operation of the graph",
            "Read the clock before and after it.",
        )
    return (
        partial(_read_clock_once, _as_python_calls(function))
        if _is_abstract()
        else partial(clocks.read_clock, function)
    )


def _read_clock_once(clock: Any, *args: Any) -> Any:
    """Read a clock in code without values; raise NeedsPython at a second reading, which would measure time."""
    capture = context.current()
    if capture is not None:
        capture.outside.looks += 1
        if capture.outside.looks > 1:
            raise NeedsPython(
                "a second look at a clock in a captured function, where nothing is computed between the two",
                "Read the clock before and after the call.",
            )
    return clock(*args)


def _read(function: Any) -> Any:
    return called(function)()


@contextmanager
def _no_manager() -> Generator[None]:
    yield


_OF_MANAGERS = _no_manager.__code__  # the code of every function that `contextmanager` makes


def _as_python_calls(function: Any) -> Any:
    """Return a function that is called as Python calls it, or refused in code on trial."""
    found = function if trial() is None else _on_trial(function)
    if isinstance(function, np.ufunc) and context.current() is not None:
        return partial(_ufunc_on_arrays, found)
    found = found if source.was_staged(function) else unstaged(found)
    if not _is_abstract():
        return found
    if type(function) in _FUNCTIONS and function in builtin_facts.OF_FRAMES:
        return partial(_refuse_frames, function)
    if side_effects.makes(function):
        return side_effects.making(found)
    if side_effects.can_be_taken_back(function):
        return found
    heard = side_effects.noted(found)
    return with_messages(function, heard) if keeps_messages(function) else heard


def _refuse_frames(function: Any, *_: Any, **__: Any) -> Any:
    refuse_python(
        f"{function.__name__}()", "It looks at the frames of the calls around it: ask it outside the function."
    )


_FUNCTIONS = {BuiltinFunctionType, FunctionType}
_CACHED = type(functools.cache(_replaced_effect))


def _ufunc_on_arrays(ufunc: Any, *args: Any, **options: Any) -> Any:
    """Call a ufunc on the user's objects that NumPy reads as arrays: what their ``__array__`` gives may be lazy."""
    given = [wrap(node_of(v)) if is_itself(v) and _is_abstract() else read_by(ufunc, v) for v in args]
    inputs: int = getattr(ufunc, "nin", len(given))
    if "out" in options or not inputs < len(given) <= ufunc.nargs:
        return floating.call_on_numbers(ufunc, *given, **options)
    deprecated.show_deprecations(ufunc, *args, **options)  # NumPy would warn the line of the call, which is here
    outs = (*given[inputs:], *[None] * (ufunc.nargs - len(given)))
    return floating.call_on_numbers(ufunc, *given[:inputs], out=outs, **options)


def _of_container(function: Any) -> Any:
    """Return our replacement for a method of a list, a text or a class of numbers; None for any other function."""
    kind: Any = type(function)
    if kind in _OF_CLASSES and issubclass(function.__objclass__, Number | np.generic):
        return partial(_of_number, function)
    owner = getattr(function, "__self__", None)
    if type(owner) is list and function == owner.sort and not values_are_there():
        return partial(ordering.sort, owner)
    return partial(joined, function) if type(owner) is str and function == owner.join and waits() else None


def _of_array(function: Any) -> Any:
    """Return our replacement for a method of a NumPy array that may be given lazy arguments; None for any other function."""
    array = getattr(function, "__self__", None)
    if type(array) is not np.ndarray or function.__name__ not in _TAKING_ARRAYS:
        return None

    def method(*args: Any, **options: Any) -> Any:
        lazy = any(map(has_lazy, (*args, *options.values())))
        return (
            getattr(wrap(node_of(array)), function.__name__)(*args, **options) if lazy else function(*args, **options)
        )

    return method


_TAKING_ARRAYS = {"choose", "clip", "compress", "dot", "repeat", "searchsorted", "take"}  # and return a new one


def _is_abstract() -> bool:
    """Return whether the code is captured without values."""
    capture = context.current()
    return capture is not None and capture.abstract


def indexed(value: Any) -> Any:
    """Return the object that an index reads from or stores into in place of ``value``: in a cell, a foreign object gets values."""
    kind = type(value)
    if kind in {dict, list, tuple} and waits():
        return Indexed(value)
    if kind in _INDEXED or not values_are_there() or not is_foreign_class(kind):
        return value
    return Lending(value)


_INDEXED = {list, dict, tuple, str, np.ndarray, Tensor}


def _own_or_on_values(function: Any) -> Any:
    """Return our replacement for a function, or in a cell, a foreign one that gets arrays; else the function itself."""
    own = _known_replacement(function)
    if own is not function or not values_are_there():
        return own
    if (
        isinstance(function, type)
        and issubclass(function, np.ndarray)
        and side_effects.is_quiet_module(module_of(function))
    ):
        return partial(_array_subclass, function)
    if isinstance(function, type) and module_of(function).startswith("scipy."):
        return partial(_with_generators, function)
    return on_values(function) if is_foreign(function) else own


def _with_generators(kind: type, *args: Any, **options: Any) -> Any:
    """Return an object of SciPy, which may keep the random generators that it is made with."""
    draws = any(isinstance(v, Stateful) for v in (*args, *options.values()))
    return (on_values(kind) if draws else kind)(*args, **options)


def _array_subclass(kind: type, *args: Any, **options: Any) -> Any:
    """Return an instance of a subclass of NumPy's array class."""
    if not any(map(has_lazy, (*args, *options.values()))):
        return kind(*args, **options)
    return call_library(kind, args, options, names.unknown(kind.__name__), parts=True)


def _on_trial(function: Any) -> Any:
    """Return the replacement for a function in code on trial: one that raises if the effect cannot be undone afterwards."""
    if isinstance(getattr(function, "__self__", None), np.ufunc) and function.__name__ == "at":
        return partial(_stored_at, function)
    kept = getattr(function, "__wrapped__", None) if isinstance(function, _CACHED) else None
    if isinstance(kept, FunctionType) and stores(kept.__code__):
        raise fail_trial(
            f"{kept.__name__}() keeps its results and stores into something, in a loop or branch that is one operation of the graph",
            "Call it outside the loop or the branch.",
        )
    if side_effects.is_quiet(function):
        return function
    name = getattr(function, "__name__", type(function).__name__)
    raise fail_trial(
        f"{name}() has a side effect or needs values, in a loop or branch that is one operation of the graph",
        "Call it outside the loop or the branch, or after the cell.",
    )


def _stored_at(at: Callable[..., None], array: Any, *rest: Any) -> None:
    """Call ``ufunc.at``, but refuse a read-only array: a store into it could not be undone."""
    if isinstance(array, np.ndarray) and not array.flags.writeable:
        raise fail_trial("ufunc.at stores into a read-only array: what depends on data around it", "Store into a copy.")
    at(array, *rest)


def _is_librarys(function: Any) -> bool:
    """Return whether a function is NumPy's or SciPy's, but no ufunc, since lazy arrays handle these themselves."""
    module = getattr(function, "__module__", None) or ""
    return (module == "numpy" or module.startswith(("numpy.", "scipy."))) and not isinstance(function, np.ufunc | type)


def _known_replacement(function: Any) -> Any:
    """Return our replacement for a function of Python, NumPy or SciPy that does not know lazy values; else the function itself."""
    try:
        return (_known if _is_memoizable(function) else _known.__wrapped__)(function)
    except TypeError:  # not hashable: an object of the user's
        return function


def _is_memoizable(function: Any) -> bool:
    """Return whether a function may be memoized: a bound method or a user's function would keep arrays alive."""
    if type(function) is FunctionType:
        return _is_librarys(function)
    return isinstance(function, BuiltinFunctionType) and isinstance(function.__self__, ModuleType | None)


@lru_cache(maxsize=4096)
def _known(function: Any) -> Any:
    if isinstance(function, BuiltinFunctionType | type) and function in _OWN:
        return _OWN[function]
    if isinstance(function, BuiltinFunctionType) and function.__module__ == "math":
        return mathematics.captured(function)
    module = (getattr(function, "__module__", None) or "").partition(".")[0]
    if isinstance(function, type):
        return names.find(function) or function
    if isinstance(function, np.ufunc) or module not in {"numpy", "scipy"}:
        return function
    return namespace.captured(function)


def _filtered(function: Any, values: Any) -> Any:
    """Return what ``filter`` gives, whose selection may be data-dependent."""
    if values_are_there():
        return filter(function, values)
    return Filtered(values, called(function) if function is not None else lambda v: v)


def _listed(*args: Any) -> Any:
    """Return what ``list`` gives: a list of data-dependent length for such a generator expression or ``filter``."""
    found = whole(args[0]) if len(args) == 1 and not values_are_there() else None
    return (
        found if isinstance(found, GrownList) and found is not args[0] else list(*(args if found is None else (found,)))
    )


def _of_memory(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``memoryview`` or ``bytearray`` as captured code calls it: of a lazy array, it takes the value."""
    return lambda value=b"", *rest: plain(value.__array__() if isinstance(value, Tensor) else value, *rest)


_OWN: dict[Any, Callable[..., Any]] = {
    isinstance: kinds.is_instance,
    type: kinds.type_of,
    id: id_,
    operator.is_: lambda a, b: run_time.module.identical(a, b),
    operator.is_not: lambda a, b: run_time.module.negated(run_time.module.identical(a, b)),
    hasattr: kinds.has_attribute,
    getattr: kinds.attribute,
    **CONVERSIONS,
    **scalar_types.TYPES,
    filter: _filtered,
    list: _listed,
    memoryview: _of_memory(memoryview),
    bytearray: _of_memory(bytearray),
    range: ranges.range_,
    enumerate: iterators.enumerate_,
    zip: iterators.zip_,
    reversed: iterators.reversed_,
    itertools.product: iterators.product_,
    len: ranges.len_,
    sum: sum_,
    sorted: ordering.sorted_,
    min: extreme("min", smaller=True),
    max: extreme("max", smaller=False),
    all: quantified("all", whole),
    any: quantified("any", whole),
}
