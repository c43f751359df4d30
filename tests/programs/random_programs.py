"""Random programs held against NumPy, as cells and as functions: names, arrays that were given, errors, and what is refused."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Generator, Iterable, Sequence
from typing import Any
from unittest import mock

import numpy as np

import tensormagic as tm
from tensormagic import session
from tensormagic.capture.staging import regions
from tensormagic.capture.staging.branches import choice
from tensormagic.capture.staging.loops import carries, grown_lists, recursive
from tensormagic.capture.staging.regions import of_type
from tests.capture.harness import assert_equal, cell, form
from tests.programs.errors_of_programs import DifferenceError, judged, missed, quiet
from tests.programs.growing import Grower, Program, compiled

_serial = itertools.count()
DTYPES = [
    *(
        np.float64,
        np.float64,
        np.float64,
        np.float64,
        np.float32,
        np.float32,
        np.int64,
        np.int64,
        np.bool_,
        np.complex128,
    ),
    *(np.int8, np.uint8, np.complex64),
]
LAYOUTS = ["x0", "x0", "np.asfortranarray(x0)", "x0[::-1]", "np.repeat(x0, 2, axis=1)[:, ::2]", "x0.T.copy().T"]
SIZES = [(3, 4), (3, 4), (2, 3), (4, 4), (4, 2), (1, 3), (3, 1), (2, 2)]


def _array(draw: random.Random, values: random.Random, shape: tuple[int, ...]) -> np.ndarray:
    dtype = np.dtype(draw.choice(DTYPES))
    count = int(np.prod(shape))
    found = np.array([values.choice([0, 1, 2, 3, -1, -2, 0.5, 1.5, 5, 4.25]) for _ in range(count)]).reshape(shape)
    return (found + (1j * np.flip(found) if dtype.kind == "c" else 0)).astype(dtype) if dtype.kind != "b" else found > 1


def arguments(seed: int, variant: int = 0, *, shared: bool = True) -> dict[str, Any]:
    """What a program begins with: arrays of none to three axes and numbers; another variant has other sizes and values."""
    draw, values = random.Random(seed), random.Random(seed * 7 + variant)
    sizes = draw.choice(SIZES)
    layout = draw.choice(LAYOUTS)
    rows, columns = sizes if variant == 0 else [(2, 5), (5, 3), (1, 1)][variant - 1]
    x0 = _array(draw, values, (rows, columns))
    x = eval(layout, {"x0": x0, "np": np})
    found = {
        "x": x,
        "y": _array(draw, values, (columns,)),
        "z": _array(draw, values, draw.choice([(2, rows, columns), (rows,), (2, 2, 2)])),
        "e": _array(draw, values, ()),
        "k": np.array([min(rows, columns) - 1, 0, min(1, rows - 1, columns - 1)]),
        "u": np.arange(rows) % 2 == variant % 2,
        "s": [1.5, -2.0, 0.5, 3.0][variant],
        "n": rows,
        "m": columns,
        "flag": bool((variant + seed) % 2),
    }
    other = draw.choice([None, None, x[1:], x.T, x[:, ::2], x[0], x[::-1, 1:]])
    if shared and other is not None:
        found["w"] = other
    return found


def program(seed: int, length: int = 5, *, function: bool) -> Program:
    """The random program of a seed."""
    grower = Grower(seed, lambda: arguments(seed, shared=not function), jumps=function)
    return grower.grow(grower.draw.randint(1, length))


# what is compared -----------------------------------------------------------------------------------------------------


def close(ours: Any, numpys: Any, where: str, rounding: float, *, promoted: bool = False, digits: int = 0) -> str:
    """Same form and values: bit for bit, or within ``rounding``.

    Gives ``"promoted"`` where one is the other, promoted by control flow; ``"digits"`` where they differ by the sign of a zero or by
    last digits, of which ``digits`` allows so many units; else ``"same"``.

    Of complex numbers the last digits may differ, and which parts are infinite or nan where they overflow: NumPy multiplies one of them
    otherwise than several, or in place otherwise than not.
    """
    if promoted and form(ours) != form(numpys) and _is_promoted(ours, numpys):
        wide = np.result_type(np.asarray(ours).dtype, *([] if np.asarray(ours).dtype.kind in "fc" else [numpys]))
        a, b = (np.asarray(v).astype(wide) for v in (ours, numpys))
        own = getattr(numpys, "dtype", np.dtype(np.float64))
        _near(a, b, where, max(rounding, 1e-6 if own in {np.dtype("f4"), np.dtype("c8")} else 1e-14))
        return "promoted"
    assert form(ours) == form(numpys), f"{where}: {ours!r} for {numpys!r}"
    a, b = np.asarray(ours), np.asarray(numpys)
    if rounding or b.dtype.kind == "c":
        _near(a, b, where, rounding or 1e-14)
    elif (
        digits
        and b.dtype.kind == "f"
        and np.allclose(a, b, rtol=digits * np.finfo(b.dtype).eps, atol=0, equal_nan=True)
    ):
        return "same" if np.array_equal(a.tobytes(), b.tobytes()) else "digits"
    else:
        assert_equal(ours, numpys, where)
    return "same"


def _each_close(ours: Any, numpys: Any, where: str, rounding: float, **allowed: Any) -> list[str]:
    """As :func:`close`, of each of the values in a tuple or a list; what is no number is the same."""
    if numpys is None or isinstance(numpys, np.dtype):
        assert ours == numpys, f"{where}: {ours!r} for {numpys!r}"
        return []
    if not isinstance(numpys, tuple | list):
        return [close(ours, numpys, where, rounding, **allowed)]
    assert isinstance(ours, tuple | list), f"{where}: {ours!r} for {numpys!r}"
    assert len(ours) == len(numpys), f"{where}: {ours!r} for {numpys!r}"
    pairs = enumerate(zip(ours, numpys, strict=True))
    return [how for k, (a, b) in pairs for how in _each_close(a, b, f"{where}[{k}]", rounding, **allowed)]


def _room(rounding: float, given: Iterable[Any]) -> float:
    """By how much values may differ: where single precision is given, by its last digits, whatever dtype they are stored in then."""
    single = any(getattr(v, "dtype", None) in {np.dtype("f4"), np.dtype("c8")} for v in given)
    return max(rounding, 1e-6) if single and rounding else rounding


def _near(a: np.ndarray, b: np.ndarray, where: str, rounding: float) -> None:
    """Same integers, and others within ``rounding``."""
    if a.dtype.kind in "biu":
        assert np.array_equal(a, b), f"{where}: {a} for {b}"
        return
    single = a.dtype.itemsize // (1 + (a.dtype.kind == "c")) < 8
    room = max(rounding, 1e-4 if rounding > 1e-12 else 1e-6) if single else rounding
    scale = np.abs(b[np.isfinite(b)]).max(initial=1.0)
    if a.dtype.kind == "c":
        assert np.array_equal(np.isfinite(a), np.isfinite(b)), f"{where}: {a} for {b}"
        a, b = a[np.isfinite(b)], b[np.isfinite(b)]
    assert np.allclose(a, b, rtol=room, atol=room * scale, equal_nan=True), f"{where}: {a} for {b}"


def _is_promoted(ours: Any, numpys: Any) -> bool:
    """Whether a value is of the kind that another one, or what it was computed from, was promoted to.

    A whole number that stands in the code takes the dtype of the one that it is beside, which may be less wide than Python's.
    """
    if not isinstance(ours, np.ndarray | np.generic | int | float | complex) or np.shape(ours) != np.shape(numpys):
        return False
    dtype = np.asarray(ours).dtype
    other = numpys if type(numpys) in {bool, int, float, complex} else np.asarray(numpys).dtype
    if dtype.kind in "iu" and np.asarray(numpys).dtype.kind in "iu":
        return True
    return np.result_type(dtype, other) == dtype or (dtype.kind in "fc" and np.can_cast(other, dtype, "same_kind"))


@contextlib.contextmanager
def promotions() -> Generator[list[Any]]:
    """What control flow makes of numbers of several kinds, while this holds."""
    found: list[Any] = []
    begins: Any = grown_lists.GrownList.zero.fget

    def noting(node: Any, t: Any) -> Any:
        own = node.type
        if not t.shape and t.form != "tape" and (own.dtype, own.form) != (t.dtype, t.form):
            found.append((own, t))
        return of_type(node, t)

    def zero(values: Any) -> Any:
        found.append("the sum of an empty list")
        return begins(values)

    with contextlib.ExitStack() as stack:
        for module in (carries, choice, grown_lists, recursive, regions):
            stack.enter_context(mock.patch.object(module, "of_type", noting))
        stack.enter_context(mock.patch.object(grown_lists.GrownList, "zero", property(zero)))
        yield found


def _in_digits(made: Program) -> int:
    """By how many last digits values may differ that NumPy computes otherwise by how an array lies in memory.

    Powers, magnitudes of complex numbers, sums of floats, and which one of two equal zeros is taken.

    A power of a power has the error of the first as many times as its exponent is large.
    """
    text = made.helpers + made.cell
    return (
        512
        if "**=" in text
        else 4
        if any(name in text for name in ("**", "clip", "median", "abs", "sum", "mean"))
        else 0
    )


def memory(array: np.ndarray) -> np.ndarray:
    """All that an array that was given is a part of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


# cells ----------------------------------------------------------------------------------------------------------------


def compare_cell(made: Program, seen: list[str], rounding: float = 0.0) -> str:
    """Hold a program as a cell against NumPy. Gives how it ended: ``"same"``, ``"promoted"``, ``"error"``, ``"refused"`` …"""
    numpys, notebook = (_space(made) for _ in range(2))
    rounding = _room(rounding, numpys.values())
    theirs, ours = ({n: v for n, v in space.items() if isinstance(v, np.ndarray)} for space in (numpys, notebook))
    error: BaseException | None = None
    try:
        quiet(lambda: exec(compile(made.cell, "<plain>", "exec"), numpys))
    except Exception as raised:  # noqa: BLE001 (errors are compared)
        error = raised
    with promotions() as several:
        try:
            found = quiet(lambda: cell(made.cell, notebook))
            values = quiet(lambda: session.compute([b.node for b in found.stores]))
            outputs = {n: _computed(v) for n, v in found.outputs.items()}
        except Exception as raised:  # noqa: BLE001 (errors are compared)
            run, again = compile(made.cell, "<plain>", "exec"), _space(made)
            return judged(raised, error, seen, lambda: exec(run, again), promoted=bool(several))
    if error is not None:
        return missed(error, outputs.values())
    for buffer, value in zip(found.stores, values, strict=True):
        buffer.array[...] = value
    allowed: Any = {"promoted": bool(several), "digits": _in_digits(made)}
    memories = ((memory(ours[n]), memory(array), f"the memory of {n}") for n, array in theirs.items())
    used = [close(*pair, rounding, digits=allowed["digits"]) for pair in memories]
    held = {n: outputs.get(n, notebook.get(n)) for n in numpys}
    wanted = {n: v for n, v in numpys.items() if _is_compared(n, v)}
    used += [how for n, v in wanted.items() for how in _each_close(held[n], v, n, rounding, **allowed)]
    unbound = [n for n, v in outputs.items() if n not in numpys and not isinstance(v, NameError | list)]
    if unbound:
        raise DifferenceError(f"bound, but not in NumPy: {unbound}")
    return _least_equal(used)


def _least_equal(ended: Sequence[str]) -> str:
    """How several comparisons ended, in one word."""
    return next((how for how in ("digits", "promoted") if how in ended), ended[0] if ended else "same")


def _is_compared(name: str, value: Any) -> bool:
    """Whether a cell hands a name back, and it holds numbers."""
    inside = name.startswith(("_", "h_", "t", "r")) or name in {"np", "i", "j", "l"}
    return not inside and isinstance(value, np.ndarray | np.generic | int | float | complex | tuple | list)


def _computed(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_computed(v) for v in value]
    if isinstance(value, tm.Tensor):
        try:
            return quiet(value.numpy)
        except NameError as error:  # bound in another branch
            return error
    return value


def _space(made: Program) -> dict[str, Any]:
    space = {**arguments(made.seed), "np": np}
    exec(compiled(made.helpers, f"helpers {next(_serial)}"), space)
    return space


# functions ------------------------------------------------------------------------------------------------------------


def compare_function(made: Program, seen: list[str], rounding: float = 0.0) -> str:
    """Hold a program as a function against NumPy, on arrays of several sizes. Gives how the first of them ended."""
    names = tuple(arguments(made.seed, shared=False))
    source = made.helpers + "\n\n" + made.function(names)
    space: dict[str, Any] = {"np": np}
    exec(compiled(source, f"program {next(_serial)}"), space)
    with promotions() as several:
        f = tm.tensor(space["f"])
        ended = [_call(space["f"], f, made, variant, seen, rounding, several) for variant in (0, 1, 2, 3)]
    return _least_equal(ended)


def _call(
    plain: Any, captured: Any, made: Program, variant: int, seen: list[str], rounding: float, several: list[Any]
) -> str:
    theirs, ours = (arguments(made.seed, variant, shared=False) for _ in range(2))
    rounding = _room(rounding, theirs.values())
    error: BaseException | None = None
    expected: Any = None
    result: Any = None
    try:
        expected = quiet(lambda: plain(*theirs.values()))
    except Exception as raised:  # noqa: BLE001 (errors are compared)
        error = raised
    try:
        result = quiet(lambda: captured(*ours.values()))
    except Exception as raised:  # noqa: BLE001 (errors are compared)
        again = arguments(made.seed, variant, shared=False)
        return judged(raised, error, seen, lambda: plain(*again.values()), promoted=bool(several))
    if error is not None:
        return missed(error)
    pairs = enumerate(zip(result, expected, strict=True))
    digits = _in_digits(made)
    used = [
        how
        for k, (a, b) in pairs
        for how in _each_close(a, b, f"variant {variant}: result {k}", rounding, promoted=bool(several), digits=digits)
    ]
    for name, value in theirs.items():
        if isinstance(value, np.ndarray):
            where = f"variant {variant}: the memory of {name}"
            used.append(close(memory(ours[name]), memory(value), where, rounding, digits=digits))
    return _least_equal(used)
