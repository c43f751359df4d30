"""What functions read beside their arguments: names of notebooks and closures, looked up when code is captured.

During a trace, a name that holds an array or a float stands for an input of the trace, and every name that was read
is noted: the trace is valid as long as the values of these names are unchanged.
"""

from __future__ import annotations

import builtins
import dis
import functools
import inspect
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.inputs import door, namespace, notebook_names
from tensormagic.capture.python import bytecode, usercode
from tensormagic.capture.python.builtin_facts import IN_NAMESPACES
from tensormagic.capture.random import generators
from tensormagic.capture.records import Beside
from tensormagic.capture.staging.calls.staged import called
from tensormagic.capture.staging.syntax.missing_source import as_caught
from tensormagic.capture.staging.syntax.received_code import locate
from tensormagic.capture.staging.syntax.source import rebound, staged_code
from tensormagic.capture.staging.trials.attributes import Attributes, differs, is_users_class
from tensormagic.capture.staging.trials.needs_python import NeedsPython
from tensormagic.capture.stores.outside import connected
from tensormagic.capture.values.abstract import found_input
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import wrap
from tensormagic.functions.reads.name_reads import CellSpace, Read, place_of
from tensormagic.functions.reads.names_in_code import named
from tensormagic.ir.errors import ArgumentError, TensorError

Body = Callable[..., Any]  # takes and returns lazy arrays


def is_input(value: Any) -> bool:
    """Return whether a value becomes an input of a trace."""
    return isinstance(value, np.ndarray | float | complex | np.floating | np.complexfloating)


def look(read: Read, *, lasting: bool = True) -> Any:
    """Return the value that captured code sees under a name: lazy arrays for arrays and floats.

    ``lasting``: the name exists before and after the trace, rather than being made by the traced code.
    """
    name, space = read
    value = space[name]
    capture = context.current()
    if capture is not None and lasting:
        capture.names.noted[place_of(read)] = read
        if is_input(value) and (capture.abstract or place_of(read) in capture.names.lifted):
            return _lifted(read, value, capture)
        if not capture.abstract and type(value) is np.ndarray:
            return connected(value, name, capture)
    if capture is not None and generators.is_generator(value):
        return generators.stand_in(value, name, place=place_of(read) if lasting else None)
    return wrap(node_of(door.variable(value, name))) if is_input(value) else value


def _lifted(read: Read, value: Any, capture: Any) -> Any:
    """Return the input of the trace for the value of a name."""
    place = place_of(read)
    if place not in capture.names.lifted:
        capture.names.lifted[place] = found_input(value, read[0], capture)
    return capture.names.lifted[place]


def is_moving(value: Any) -> bool:
    """Return whether a value differs from call to call of a trace: an input, or the state of a random generator."""
    return is_input(value) or generators.is_generator(value)


def reads_of(function: types.FunctionType) -> tuple[Read, ...]:
    """Return the globals and closure cells that a function reads itself; reads of helpers are noted when they are called."""
    if is_librarys(function):
        return ()
    space = function.__globals__
    names = sorted(n for n in named(function.__code__).reads if n in space or not hasattr(builtins, n))
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return (*((n, space) for n in names), *((n, CellSpace(n, cell)) for n, cell in cells))


def parameters_of(function: types.FunctionType) -> tuple[str, ...]:
    """Return the names of the arguments."""
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def is_librarys(function: types.FunctionType) -> bool:
    """Return whether a function is NumPy's or SciPy's."""
    return (function.__module__ or "").partition(".")[0] in {"numpy", "scipy"}


def called_body(function: Callable[..., Any]) -> Body:
    """Return the body for ``function`` in captured code: our version of a library's or Python's function, a staged method."""

    def body(*args: Any, **options: Any) -> Any:
        return called(function)(*args, **options)

    return body


def captured_body(function: types.FunctionType, *, lasting: bool) -> Body:
    """Return ``function``, as it is when it is called, over the names that captured code sees; a library's own code is not captured."""
    if is_librarys(function):
        return called_body(function)
    locate(function)

    def body(*args: Any, **options: Any) -> Any:
        reads = [read for read in reads_of(function) if read[0] in read[1]]
        found = [space[name] for name, space in reads]
        seen = {read[0]: look(read, lasting=lasting) for read in reads}
        made = _rebind(function, seen, lasting)
        before = {name: _held(made, name) for name in _names_of(function.__code__, made)}
        classes = [Attributes(v) for v in seen.values() if isinstance(v, type) and is_users_class(v)]
        attributes = [dict(c) for c in classes]
        result = _checked_call(function, made, args, options)
        changed = [
            n for n in sorted({*before, *_names_of(function.__code__, made)}) if _held(made, n) is not before.get(n)
        ]
        # changed through a module's attribute, which the code does not show
        changed += [n for (n, space), value in zip(reads, found, strict=True) if space.get(n) is not value]
        for own, held in zip(classes, attributes, strict=True):
            if differs(own, held):
                own.refill(held)
                changed.append(f"attributes of {own.owner.__name__}")
        if changed:
            place = _binding_of(function.__code__, changed)
            raise NeedsPython(
                f"{function.__name__} binds {', '.join(changed)} outside of itself, which captured functions do not support{place}",
                "Return the new value, and assign it where the function is called.",
            )
        return result

    return body


def _checked_call(function: types.FunctionType, made: Body, args: Any, options: Any) -> Any:
    """Return the result of a function; an error about its arguments shows how it is called."""
    try:
        return made(*args, **options)
    except TypeError as error:
        trace = error.__traceback__
        if (
            isinstance(error, TensorError) or trace is None or trace.tb_next is not None
        ):  # the error was raised by the function's own code
            raise
        name = f"the function {function.__name__}" if function.__name__ == "<lambda>" else function.__name__
        told = ArgumentError(str(error), f"{name} takes {inspect.signature(function)}.")
        told.numpys = str(error)
        raise told from None


def _names_of(code: types.CodeType, function: types.FunctionType) -> set[str]:
    """Return the outside names of a function that its ``code`` may bind; all, if the code has their dictionary.

    ``code`` is as the user wrote it: staged code is nested, and comparing two equal ones takes too long.
    """
    every = not IN_NAMESPACES.isdisjoint(bytecode.named(code, "LOAD_GLOBAL", "LOAD_NAME"))
    return {*notebook_names.bound(code), *code.co_freevars, *(function.__globals__ if every else ())}


def _binding_of(code: types.CodeType, names: list[str]) -> str:
    """Return where a function's own code first binds one of the names, as text."""
    for found in dis.get_instructions(code):
        if found.opname in _BINDING and found.argval in names:
            return f" ({usercode.span_at(code, found.offset, code.co_firstlineno)})"
    return f" ({usercode.span_at(code, 0, code.co_firstlineno)})"


_BINDING = {"STORE_GLOBAL", "STORE_DEREF", "DELETE_GLOBAL", "DELETE_DEREF"}


def _held(function: types.FunctionType, name: str) -> Any:
    """Return the value of a global or closure cell of a function, or None if there is none."""
    free = function.__code__.co_freevars
    if name not in free:
        return function.__globals__.get(name)
    try:
        return (function.__closure__ or ())[free.index(name)].cell_contents
    except ValueError:  # the cell is still empty
        return None


def _rebind(function: types.FunctionType, seen: Mapping[str, Any], lasting: bool) -> types.FunctionType:
    as_caught(function)
    space = dict(function.__globals__)
    space.update({name: _captured(value, function, lasting) for name, value in seen.items()})
    cells = {n: types.CellType(space[n]) for n in function.__code__.co_freevars if n in seen}
    return rebound(function, staged_code(function.__code__) or function.__code__, space, cells)


def _captured(value: Any, function: types.FunctionType, lasting: bool) -> Any:
    """Return the value of a name in captured code; a neighbouring function is itself, and captured when it is called.

    Code without source calls what it finds: that is then the captured body.
    """
    capture = context.current()
    if capture is None or not isinstance(value, types.FunctionType) or value.__globals__ is not function.__globals__:
        return namespace.value_of(value, staged=staged_code(function.__code__) is not None)
    beside = capture.running.beside.setdefault(value, Beside(captured_body(value, lasting=lasting), lasting))
    return value if staged_code(function.__code__) is not None else functools.wraps(value)(beside.body)
