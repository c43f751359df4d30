"""Random programs held against NumPy, as cells and as functions: names, arrays that were given, errors, and what is refused."""

from __future__ import annotations

import contextlib
import itertools
import random
import re
import sys
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

import tensormagic as tm
from tensormagic import session
from tensormagic.ir.errors import BoundsError, CaptureError, ShapeError, TensorError
from tests.capture.harness import KINDS, assert_equal, cell, form
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


class DifferenceError(AssertionError):
    """A program that does not do what NumPy does."""


def program(seed: int, length: int = 5, *, function: bool) -> Program:
    """The random program of a seed."""
    grower = Grower(seed, lambda: arguments(seed, shared=not function), jumps=function)
    return grower.grow(grower.draw.randint(1, length))


def quiet(run: Any) -> Any:
    """Run without warnings of NumPy."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", np.exceptions.ComplexWarning)  # which is a refusal here
        return run()


# what is compared -----------------------------------------------------------------------------------------------------


def alike(ours: BaseException, numpys: BaseException) -> bool:
    """Whether one error is of the kind of another; a statement may have several, and each side sees another one first."""
    several = isinstance(ours, IndexError) or isinstance(numpys, IndexError) or "read-only" in str(numpys)
    return several or any(isinstance(ours, k) and isinstance(numpys, k) for k in KINDS)


def is_refusal(error: BaseException) -> bool:
    """Whether an error says that something cannot be captured."""
    marks = ("depend on data", "depends on data", "the loop in", "the two ways give", "Take its .real first")
    return isinstance(error, CaptureError) or (isinstance(error, TensorError) and any(m in str(error) for m in marks))


def told(error: BaseException) -> str:
    """The message of a refusal, without what is particular to one program."""
    text = str(error).partition("\n")[0]
    text = re.sub(r"\b(v\d+|[xyzwekusnm]|t\d+)\b", "·", text)
    return re.sub(r"In\[\d+\]|<[^>]*>|line \d+(:\d+)?|\[[^\]]*\]|\d+", "…", text)[:90]


def places(error: BaseException) -> bool:
    """Whether an error names a line of the program."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.startswith(("<random", "<test cell")):
            return True
        trace = trace.tb_next
    return (
        hasattr(error, "tensor_site")
        or str(error).startswith(("f stores", "sizes do not fit"))
        or "line " in str(error)
        or "In[" in str(error)
    )


def close(ours: Any, numpys: Any, where: str, rounding: float, *, merges: bool) -> None:
    """Same form and values: bit for bit, or within ``rounding``; where control flow merges numbers, they may be promoted."""
    if merges and _merged(ours, numpys):
        ours = np.asarray(ours)[()]
        numpys = ours.dtype.type(numpys)
    if not rounding:
        assert_equal(ours, numpys, where)
        return
    assert form(ours) == form(numpys), f"{where}: {ours!r} for {numpys!r}"
    a, b = np.asarray(ours), np.asarray(numpys)
    if a.dtype.kind in "biu":
        assert np.array_equal(a, b), f"{where}: {a} for {b}"
        return
    room = rounding if a.dtype.itemsize * (1 + (a.dtype.kind != "c")) > 8 else 1e-4
    scale = np.abs(b[np.isfinite(b)]).max(initial=1.0)
    assert np.allclose(a, b, rtol=room, atol=room * scale, equal_nan=True), f"{where}: {a} for {b}"


def _merged(ours: Any, numpys: Any) -> bool:
    """Whether a number is of the dtype that another one, which data might have chosen, has promoted it to."""
    numbers = np.generic | int | float | complex
    if not isinstance(ours, numbers) or not isinstance(numpys, numbers):
        return False
    dtype = np.asarray(ours).dtype
    return dtype in {np.dtype(k) for k in (int, float, complex)} and np.result_type(dtype, np.asarray(numpys)) == dtype


def _merges(made: Program) -> bool:
    """Whether there are branches or loops in a program, which data may end."""
    return any(word in made.cell + made.helpers for word in ("if ", "for ", "while "))


def line_of(error: BaseException) -> int | None:
    """The line of the program at which an error was raised."""
    trace, found = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.startswith(("<random program", "<test cell")):
            found = trace.tb_lineno
        trace = trace.tb_next
    return found


def _on_a_way(error: BaseException) -> bool:
    """Whether something does not fit in a branch or a turn that is traced, and that Python does not run, or not with these shapes."""
    trace, found = error.__traceback__, False
    while trace is not None:
        found |= trace.tb_frame.f_code.co_name in {"staged_branch", "staged_value", "staged_each", "staged_repeat"}
        trace = trace.tb_next
    return found and isinstance(error, ShapeError | BoundsError | NameError | ValueError)


def lines_run(run: Any) -> set[int]:
    """The lines of a program that Python runs."""
    found: set[int] = set()

    def note(frame: Any, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(("<random program", "<plain")):
            return None
        found.add(frame.f_lineno)
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        quiet(run)
    finally:
        sys.settrace(before)
    return found


def judged(ours: BaseException, numpys: BaseException | None, seen: list[str], again: Any) -> str:
    """What an error means: a refusal that names a line, NumPy's own error, or that of code which Python does not run."""
    if is_refusal(ours):
        if not places(ours):
            raise DifferenceError(f"refused without a line: {ours!r}") from ours
        seen.append(told(ours))
        return "refused"
    if numpys is not None and (alike(ours, numpys) or isinstance(numpys, Warning)):
        return "error"
    line = line_of(ours)
    if line is not None and (_on_a_way(ours) or line not in lines_run(lambda: _swallow(again))):
        seen.append("(an error in code that is traced, and not run in NumPy)")
        return "untaken"
    raise DifferenceError(f"{type(ours).__name__}: {ours} for {numpys!r}") from ours


def _missed(numpys: BaseException, outputs: Iterable[Any] = ()) -> str:
    """What it means that NumPy alone raises: a loss of imaginary parts is only a warning there, and lazy values raise when read."""
    late = isinstance(numpys, NameError) and any(isinstance(v, NameError) for v in outputs)
    if late or isinstance(numpys, Warning):
        return "error"
    if isinstance(numpys, IndexError) or "could not be broadcast" in str(numpys):
        return "unread"
    raise DifferenceError(f"NumPy raises {numpys!r}")


def _swallow(run: Any) -> None:
    with contextlib.suppress(Exception):  # what it raises is known
        run()


# cells ----------------------------------------------------------------------------------------------------------------


def compare_cell(made: Program, seen: list[str], rounding: float = 0.0) -> str:
    """Hold a program as a cell against NumPy. Gives ``"same"``, ``"error"`` or ``"refused"``."""
    spaces = [_space(made) for _ in range(2)]
    numpys, notebook = spaces
    error: BaseException | None = None
    try:
        quiet(lambda: exec(compile(made.cell, "<plain>", "exec"), numpys))
    except Exception as raised:  # noqa: BLE001 (errors are compared)
        error = raised
    try:
        found = quiet(lambda: cell(made.cell, notebook))
        values = quiet(lambda: session.compute([b.node for b in found.stores]))
        outputs = {n: _computed(v) for n, v in found.outputs.items()}
    except TimeoutError:
        raise
    except Exception as raised:  # noqa: BLE001 (errors are compared)
        return judged(raised, error, seen, lambda: exec(compile(made.cell, "<plain>", "exec"), _space(made)))
    if error is not None:
        return _missed(error, outputs.values())
    for buffer, value in zip(found.stores, values, strict=True):
        buffer.array[...] = value
    for name, value in numpys.items():
        if name not in {"np", "__builtins__", "row"} and not name.startswith(("_", "h_", "t", "r")):
            held = outputs.get(name, notebook.get(name)) if not _is_counter(name) else value
            if isinstance(value, np.ndarray | np.generic | int | float | complex):
                close(held, value, name, rounding, merges=_merges(made))
    unbound = [n for n, v in outputs.items() if n not in numpys and not isinstance(v, NameError | list)]
    if unbound:
        raise DifferenceError(f"bound, but not in NumPy: {unbound}")
    return "same"


def _is_counter(name: str) -> bool:
    return name in {"i", "j", "l"}


def _computed(value: Any) -> Any:
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
    ended = [_call(space["f"], tm.tensor(space["f"]), made, variant, seen, rounding) for variant in (0, 1, 2, 3)]
    return ended[0]


def _call(plain: Any, captured: Any, made: Program, variant: int, seen: list[str], rounding: float) -> str:
    theirs, ours = (arguments(made.seed, variant, shared=False) for _ in range(2))
    error: BaseException | None = None
    expected = result = None
    try:
        expected = quiet(lambda: plain(*theirs.values()))
    except Exception as raised:  # noqa: BLE001 (errors are compared)
        error = raised
    try:
        result = quiet(lambda: captured(*ours.values()))
    except TimeoutError:
        raise
    except Exception as raised:  # noqa: BLE001 (errors are compared)
        again = arguments(made.seed, variant, shared=False)
        return judged(raised, error, seen, lambda: plain(*again.values()))
    if error is not None:
        return _missed(error)
    merges = _merges(made)
    for k, (a, b) in enumerate(zip(result, expected, strict=True)):
        close(a, b, f"variant {variant}: result {k}", rounding, merges=merges)
    for name, value in theirs.items():
        close(ours[name], value, f"variant {variant}: argument {name}", rounding, merges=False)
    return "same"
