"""Programs run twice: captured and computed on the NumPy tier, and by plain NumPy, which is the oracle."""

import ast
import copy
import itertools
import math
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

import tensormagic as tm
from tensormagic import session
from tensormagic.capture.cell import Captured, compile_cell, run_cell
from tensormagic.ir.errors import CaptureError
from tensormagic.notebook.cells.run import really_bound

_serial = itertools.count()
KINDS = (OverflowError, ZeroDivisionError, IndexError, ValueError, TypeError, AttributeError, NameError)


@dataclass
class Outcome:
    """What a program gave: its names, its last value, the arrays it was given, or an error."""

    names: dict[str, Any]
    result: Any
    inputs: dict[str, Any]
    error: BaseException | None = None


def given(names: dict[str, Any]) -> dict[str, Any]:
    """Names for one run: arrays are copied in their layout."""
    return {**{n: laid_out(v) for n, v in names.items()}, "np": np, "math": math}


def laid_out(value: Any) -> Any:
    """A copy of an array that lies in memory as it does; anything else, but modules and functions, by deepcopy."""
    if isinstance(value, ModuleType | FunctionType | type):
        return value
    if type(value) is not np.ndarray or value.size == 0:
        return copy.deepcopy(value)
    base = value
    while isinstance(base.base, np.ndarray):
        base = base.base
    memory = np.lib.stride_tricks.as_strided(base, base.shape, base.strides).copy(order="K")
    offset = value.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    result = (
        np.ndarray(value.shape, value.dtype, memory, offset, value.strides)
        if memory.strides == base.strides
        else copy.deepcopy(value)
    )
    result.flags.writeable = value.flags.writeable
    return result


def plain(source: str, names: dict[str, Any]) -> Outcome:
    """The program as Python runs it."""
    space = given(names)
    tree = ast.parse(source)
    result = None
    before = dict(space)
    try:
        with np.errstate(all="ignore"):
            last = tree.body.pop().value if isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, "<plain>", "exec"), space)
            if last is not None:
                result = eval(compile(ast.Expression(last), "<plain>", "eval"), space)
    except Exception as error:  # noqa: BLE001 (errors are what is compared)
        return Outcome({}, None, {}, error)
    return Outcome(space, result, {n: v for n, v in before.items() if n in names})


def cell(source: str, names: dict[str, Any], run: int | None = None) -> Captured:
    """The program as a cell captures it."""
    number = next(_serial) if run is None else run
    return run_cell(compile_cell(source, f"In[{number}]", number, f"<test cell {number}>"), names)


def captured(source: str, names: dict[str, Any]) -> Outcome:
    """The program as a cell, with everything that it gave computed and its stores handed back."""
    space = given(names)
    try:
        with np.errstate(all="ignore"):
            found = cell(source, space)
        outputs = {n: computed(v) for n, v in really_bound(found.outputs).items()}
        result = computed(found.result) if found.shown else None
        values = session.compute([b.node for b in found.stores])
        for buffer, value in zip(found.stores, values, strict=True):
            buffer.array[...] = value
    except Exception as error:  # noqa: BLE001 (errors are what is compared)
        return Outcome({}, None, {}, error)
    return Outcome(outputs, result, {n: space[n] for n in names})


def computed(value: Any) -> Any:
    """Lazy values as they are in NumPy; containers of these too."""
    if isinstance(value, tm.Tensor):
        return value.numpy()
    if isinstance(value, list):
        return [computed(v) for v in value]
    if isinstance(value, tuple):
        return tuple(computed(v) for v in value)
    if isinstance(value, dict):
        return {k: computed(v) for k, v in value.items()}
    return value


def assert_equal(ours: Any, numpys: Any, where: str, close: float = 0.0) -> None:
    """Same form, dtype, shape and values (bit for bit, unless ``close`` says how near)."""
    if isinstance(numpys, tuple | list):
        assert isinstance(ours, tuple | list), where
        assert len(ours) == len(numpys), where
        for k, (a, b) in enumerate(zip(ours, numpys, strict=True)):
            assert_equal(a, b, f"{where}[{k}]", close)
        return
    if isinstance(numpys, dict):
        assert list(ours) == list(numpys), where
        for k, value in numpys.items():
            assert_equal(ours[k], value, f"{where}[{k!r}]", close)
        return
    if not isinstance(numpys, np.ndarray | np.generic | bool | int | float | complex):
        return
    assert form(ours) == form(numpys), f"{where}: {ours!r} for {numpys!r}"
    a, b = np.asarray(ours), np.asarray(numpys)
    if close:
        assert np.allclose(a, b, rtol=close, atol=close, equal_nan=True), f"{where}: {a} for {b}"
    else:
        equal = (a == b) | ((a != a) & (b != b))  # noqa: PLR0124 (nan)
        assert equal.all(), f"{where}: {a} for {b}"
        if a.dtype.kind == "f":
            assert np.array_equal(np.signbit(a[~np.isnan(a)]), np.signbit(b[~np.isnan(b)])), f"{where}: {a} for {b}"


def form(value: Any) -> Any:
    """What is compared beside values: kind of object, dtype, shape."""
    kind = (
        "array"
        if isinstance(value, np.ndarray)
        else "scalar"
        if isinstance(value, np.generic)
        else type(value).__name__
    )
    return kind, getattr(value, "dtype", None), np.shape(value)


def kind_of(error: BaseException) -> type[BaseException]:
    return next((k for k in KINDS if isinstance(error, k)), type(error))


def check(source: str, close: float = 0.0, **names: Any) -> None:
    """Hold a captured program against plain NumPy: names, last value, stores into inputs, errors."""
    expected, ours = plain(source, names), captured(source, names)
    if expected.error is not None:
        assert ours.error is not None, f"NumPy raises {expected.error!r}"
        assert isinstance(ours.error, kind_of(expected.error)), f"{ours.error!r} for {expected.error!r}"
        assert not isinstance(ours.error, CaptureError), ours.error
        return
    if ours.error is not None:
        raise ours.error
    assert_equal(ours.result, expected.result, "result", close)
    for name, value in ours.names.items():
        if name in expected.names:
            assert_equal(value, expected.names[name], name, close)
    for name, value in ours.inputs.items():
        assert_equal(value, expected.inputs[name], f"input {name}", close)


def refused(source: str, message: str, **names: Any) -> None:
    """A program that is refused by name."""
    error = captured(source, names).error
    assert isinstance(error, CaptureError), error
    assert message in str(error), error


def as_python(ours: Any, plain: Any, *arguments: Any) -> None:
    """A captured function gives what Python gives where its graph refuses the data: values, or an error of the same class."""
    try:
        expected = plain(*copy.deepcopy(arguments))
    except Exception as error:  # noqa: BLE001 (whatever Python raises)
        try:
            ours(*copy.deepcopy(arguments))
        except type(error) as own:
            assert kind_of(own) is type(error)  # noqa: PT017 (the class is compared)
        else:
            raise AssertionError(f"no {type(error).__name__}") from error
    else:
        found = ours(*copy.deepcopy(arguments))
        for one, other in zip(*(v if isinstance(v, tuple) else (v,) for v in (found, expected)), strict=True):
            np.testing.assert_array_equal(one, other)
