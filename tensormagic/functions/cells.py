"""Cells as functions: the NAME of a cell, called with its inputs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.cell import Code, execute, shared
from tensormagic.capture.inputs import namespace
from tensormagic.capture.inputs.door import is_table, whole
from tensormagic.capture.python.usercode import user_frame
from tensormagic.capture.tables.labelled import labelled
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.functions.calls.argument_stores import unchanged
from tensormagic.functions.calls.function import Function
from tensormagic.functions.reads import footprint
from tensormagic.functions.reads.reading import is_input, look
from tensormagic.ir.errors import ArgumentError
from tensormagic.ir.plain_texts import counted


def _in_dtype(table: Any, dtype: str) -> Any:
    """Return a Series or a DataFrame with its floats in another dtype."""
    if type(table).__name__ == "Series":
        return table.astype(dtype) if table.dtype in (np.float32, np.float64) else table
    return table.astype({k: dtype for k, kind in table.dtypes.items() if kind in (np.float32, np.float64)})


def cast(value: Any, dtype: str) -> Any:
    """Return a floating array, table or NumPy scalar in another dtype; everything else, Python's floats too, is returned as it is."""
    if dtype and is_table(value):
        return _in_dtype(value, dtype)
    floating = isinstance(value, np.ndarray | np.floating | Tensor) and value.dtype.kind == "f"
    return value.astype(dtype) if dtype and floating else value


def argument(value: Any, name: str) -> Any:
    """Return an argument as a cell sees it: lazy for arrays, floats, Series and DataFrames."""
    table = labelled(value, name)
    return table if table is not None else wrap(node_of(value)) if is_input(value) else value


def _tell_of_order(name: str, inputs: Sequence[str], args: Sequence[Any], notebook: Mapping[str, Any]) -> None:
    """Warn if a variable of the notebook is given for another input, as inputs are in the order in which the cell reads them."""
    for own, value in zip(inputs, args, strict=False):
        named = (
            [n for n in inputs if n in notebook and notebook[n] is value]
            if isinstance(value, np.ndarray | Tensor)
            else []
        )
        if not named or own in named:
            continue
        message = (
            f"{named[0]} is given for {own}: {name} takes {', '.join(inputs)} in this order. "
            f"Write the name in the call: {named[0]}={named[0]}."
        )
        frame = user_frame()
        if frame is None:
            warnings.warn(message, UserWarning, stacklevel=3)
        else:
            warnings.warn_explicit(message, UserWarning, frame.f_code.co_filename, frame.f_lineno)
        return


def of_cell(
    code: Code,
    name: str,
    inputs: Sequence[str],
    notebook: Mapping[str, Any],
    math: str = "",
    dtype: str = "",
    placed: tuple[str, str] = ("", ""),
) -> Function:
    """Return a cell as a function of its inputs; an input that is not given is read from the notebook at the call.

    ``dtype`` is what floating inputs are cast to, ``math`` the level of rewriting, ``placed`` the device and how
    copies are reported; empty for the inputs' own dtype, and the session's settings.
    """
    inputs = tuple(inputs)
    free = tuple(n for n in code.parsed.reads if n not in inputs and n in notebook)

    def complete(args: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if len(args) > len(inputs):
            raise ArgumentError(
                f"{name}() takes {counted(len(inputs), 'argument')} ({', '.join(inputs)}) but {len(args)} were given"
            )
        unknown = sorted(set(options) - set(inputs))
        if unknown:
            raise ArgumentError(
                f"{name}() got an unexpected argument {unknown[0]!r}; its inputs are {', '.join(inputs)}"
            )
        if 0 < len(args) < len(inputs) and context.current() is None:
            _tell_of_order(name, inputs, args, notebook)
        given = dict(zip(inputs, args, strict=False))
        twice = sorted(set(given) & set(options))
        if twice:
            raise ArgumentError(f"{name}() got two values for {twice[0]!r}")
        given |= options
        missing = [n for n in inputs if n not in given and n not in notebook]
        if missing:
            raise ArgumentError(
                f"{name}() needs {missing[0]!r}: it was not given and is not a variable of the notebook"
            )
        traced = context.current() is not None
        found = [given[n] if n in given else look((n, notebook)) if traced else notebook[n] for n in inputs]
        return tuple([cast(whole(value, n), dtype) for n, value in zip(inputs, found, strict=True)]), {}

    def body(*args: Any) -> Any:
        if len(args) != len(inputs):  # for direct callers of the body: `tm.compile`, `tm.trace`
            raise ArgumentError(
                f"{name}() takes {counted(len(inputs), 'argument')} ({', '.join(inputs)}) and {len(args)} were given: "
                "a function that is compiled or traced for types does not read missing arguments from the notebook"
            )
        held = {n: cast(namespace.value_of(look((n, notebook))), dtype) for n in free if n in notebook}
        values = {n: argument(v, n) for n, v in zip(inputs, args, strict=True)}
        capture = context.current()  # there is one whenever a captured function's body runs
        seen = {**notebook, **held, **values}
        own = shared(code, getattr(notebook, "holder", notebook), inputs)
        result, space = unchanged(list(values.values()), name, lambda: execute(code, seen, capture, own))  # type: ignore[arg-type]
        return space.get(code.parsed.last_name) if code.last is None else result

    codes = [c for c in (code.body, code.last) if c is not None]
    roots = (footprint.Code(codes, notebook, [n for n in code.parsed.reads if n not in inputs]),)
    made = Function(
        body,
        name,
        inputs,
        complete,
        tuple((n, notebook) for n in free),
        fills=True,
        roots=roots,
        math=math,
        placed=placed,
    )
    told = f"The cell {code.cell.label}; an argument that is not given is read from the notebook."
    made.__doc__ = f"{told}\n\n{code.cell.source.strip()}"
    return made
