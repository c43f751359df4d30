"""``tm.live`` and ``--live``: which function is shown, over which ranges, and when the view follows or goes."""

from __future__ import annotations

import ast
import inspect
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from IPython.core.error import UsageError
from IPython.core.getipython import get_ipython
from ipywidgets import Widget

from tensormagic.capture.cell import Code
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.functions.calls.callables import of_callable
from tensormagic.functions.calls.function import Function
from tensormagic.functions.cells import of_cell
from tensormagic.functions.gradients.value_grad import input_of
from tensormagic.ir.errors import ArgumentError
from tensormagic.notebook.cells.outcome import Outcome
from tensormagic.notebook.display.shown import Report, Views
from tensormagic.notebook.display.value_texts import gradient_text
from tensormagic.notebook.errors.option_names import may_be, near
from tensormagic.notebook.live.ranges import Parameter, parameter, widened
from tensormagic.notebook.live.sweep import Numbers
from tensormagic.notebook.live.variables import AsComputed, function_of, notebook_variables, variables_of
from tensormagic.notebook.options import Options
from tensormagic.notebook.pictures.labels import clean
from tensormagic.notebook.widgets.live import LiveView

_LONGEST = 40  # of an expression that stands for its value's name


def live(shown: Any, /, **ranges: Any) -> LiveView:
    """Return a live view of a function, or of a lazy value as a function of its inputs; see ``tm.live``."""
    if not ranges:
        raise TypeError("tm.live takes at least one range, as in tm.live(f, a=(0, 10))")
    space = notebook_variables()
    axis = _axis_of(ranges)
    if isinstance(shown, Tensor):
        moved = {n: input_of(shown.node, n) for n in ranges}
        function = function_of(shown, "value", moved, space)
        starts = {n: wrap(leaf).numpy() for n, leaf in moved.items()}
        known = variables_of(shown.node, space)
        follows = [n for n, leaf in moved.items() if known.get(leaf) == n]
    else:
        function, starts = of_callable(_named(shown, list(ranges))), _starts(shown)
        _check(function, list(ranges))
        follows = list(ranges) if isinstance(shown, Function) and shown.fills else []
    sliders = {n: r for n, r in ranges.items() if isinstance(r, Widget)}
    parameters = [_parameter(n, r, starts.get(n)) for n, r in ranges.items()]
    name = function.name if function.name.isidentifier() else "value"  # a lambda has none
    view = LiveView(Numbers(function, parameters), name, space=space, follows=follows, axis=axis)
    for name, slider in sliders.items():
        view.link(name, slider)
    loaded: Any = getattr(get_ipython(), "_tensormagic", None)
    if loaded is not None:
        loaded.magics.views.add(view)
    return view


def _named(shown: Any, names: list[str]) -> Any:
    """Return the same; a function of NumPy that takes its arguments by position alone takes them by these names, in their order."""
    if not isinstance(shown, np.ufunc):
        return shown
    if len(names) != shown.nin:
        raise TypeError(f"{shown.__name__} takes {shown.nin} number{'s' * (shown.nin != 1)}: a range for each")

    def called(**named: Any) -> Any:
        return shown(*(named[name] for name in names))

    called.__name__ = called.__qualname__ = shown.__name__
    return called


def _axis_of(ranges: dict[str, Any]) -> tuple[str, Sequence[float]]:
    """Return the vector given as ``x=``, whose numbers are the horizontal axis and no parameter; empty if ``x=`` is a range."""
    given = ranges.get("x")
    if isinstance(given, Tensor | np.ndarray) and np.ndim(given) == 1:
        name = next((n for n, v in notebook_variables().items() if v is given and not n.startswith("_")), "x")
        del ranges["x"]
        if not ranges:
            raise TypeError("tm.live takes at least one range, as in tm.live(f, a=(0, 10))")
        return name, _numbers_of(name, given)
    return "", ()


def _numbers_of(name: str, given: Any) -> tuple[float, ...]:
    found = np.asarray(given)
    if found.ndim != 1 or found.dtype.kind not in "biuf" or not np.isfinite(found).all():
        raise ValueError(f"x takes a vector of numbers, and {name} is not one")
    return tuple(found.astype(float).tolist())


def _parameter(name: str, given: Any, start: Any) -> Parameter:
    if isinstance(given, Widget):
        ends: Any = tuple(getattr(given, part, None) for part in ("min", "max", "step"))
        start = getattr(given, "value", None)
        if (
            None in ends or not isinstance(start, int | float) or hasattr(given, "base")
        ):  # a base: its ends are exponents
            raise TypeError(f"{name} takes a slider of one number, and {type(given).__name__} is not one")
    elif isinstance(given, tuple | list):
        ends = tuple(given)
    else:
        raise TypeError(f"{name} takes (low, high), (low, high, step) or a slider, not {given!r}")
    return parameter(name, ends if isinstance(given, Widget) else widened(ends, start), start)


def _starts(function: Any) -> dict[str, Any]:
    """Return where parameters start: at the defaults of a function, or at the notebook's variables that a cell would read."""
    shell = get_ipython()
    if isinstance(function, Function) and function.fills and shell is not None:
        found = {n: shell.user_ns[n] for n in function.parameters if n in shell.user_ns}
    else:
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):
            return {}
        found = {n: p.default for n, p in signature.parameters.items()}
    return {n: v for n, v in found.items() if _is_number(v)}


def _is_number(value: Any) -> bool:
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return number or (isinstance(value, np.ndarray) and value.dtype.kind in "iuf")


def _check(function: Function, names: Sequence[str]) -> None:
    """Refuse parameters that the function does not have."""
    for name in names:
        if function.parameters and name not in function.parameters:
            known = ", ".join(function.parameters)
            raise ArgumentError(
                f"{function.name} has no parameter {name}; there are {known}{near(name, function.parameters)}"
            )


# cells ----------------------------------------------------------------------------------------------------------------


def missing_names(code: Code, options: Options, space: Mapping[str, Any]) -> dict[str, Any]:
    """Return values for the parameters that the notebook does not have yet, so that the cell can run."""
    return {p.name: p.argument(p.start) for p in _of_options(code, options, space) if p.name not in space}


def view_of_cell(code: Code, options: Options, shell: Any) -> LiveView:
    """Return the view that ``--live`` asks for; variables that are no parameters are read from the notebook.

    Raises
    ------
    UsageError
        If the cell does not read a parameter, or the range does not fit its value.
    """
    space: dict[str, Any] = shell.user_ns
    parameters = _of_options(code, options, space)
    names = [p.name for p in parameters]
    read = AsComputed(space, code.parsed.reads)
    function = of_cell(code, _title(code), names, read, options.math, options.dtype)
    follows = [n for n in names if n not in code.parsed.binds]  # what the cell itself binds is its result
    try:
        if options.axis and options.axis not in space:
            raise ValueError(f"there is no variable {options.axis}{near(options.axis, space)}")  # noqa: TRY301 (told like the others)
        numbers = Numbers(function, parameters)
        along = options.axis or _axis(numbers.shape, [n for n in code.parsed.reads if n not in names], space)
        axis = (along, _numbers_of(along, space[along])) if along else ("", ())
        return LiveView(numbers, function.name, keep=_keeping(shell), space=space, follows=follows, axis=axis)
    except ValueError as error:
        raise UsageError(f"%%tensor --live: {error}") from None


def _axis(shape: tuple[int, ...], names: Iterable[str], space: Mapping[str, Any]) -> str:
    """Return the one array that a cell reads which goes upwards and has as many elements as its value: what a curve is drawn over."""
    found: list[str] = []
    for name in names:
        given = space.get(name)
        if len(shape) == 1 and isinstance(given, np.ndarray) and given.dtype.kind in "iuf" and given.shape == shape:
            found += [name] if shape[0] > 1 and bool(np.all(given[1:] > given[:-1])) else []
    return found[0] if len(found) == 1 else ""


def _keeping(shell: Any) -> Callable[[Mapping[str, Any]], None]:
    return lambda values: shell.push(dict(values))


def _of_options(code: Code, options: Options, space: Mapping[str, Any]) -> list[Parameter]:
    found: list[Parameter] = []
    for name, ends in options.live:
        if name not in code.parsed.reads:
            raise UsageError(
                f"%%tensor --live: the cell does not read {name}{near(name, code.parsed.reads) or may_be(code, space)}"
            )
        start = space.get(name)
        start = start.numpy() if isinstance(start, Tensor) else start
        if start is not None and not _is_number(start):
            raise UsageError(f"%%tensor --live moves numbers and small vectors, but {name} is {type(start).__name__}")
        try:
            found.append(parameter(name, widened(ends, start), start))
        except ValueError as error:
            raise UsageError(f"%%tensor --live: {error}") from None
    return found


def _title(code: Code) -> str:
    """Return the name of the cell's value, or its expression; empty if that is long, since the cell shows it."""
    if code.parsed.last_name and code.last is None:
        return code.parsed.last_name
    last = ast.parse(code.cell.source).body[-1]
    text = ast.unparse(last.value) if isinstance(last, ast.Expr) else "value"
    return clean(text) if len(text) <= _LONGEST else "value"


class LiveReport(Report):
    """What a cell with ``--live`` gave: it is shown as its live view, for as long as that is open."""

    def __init__(self, outcome: Outcome, views: Views, view: LiveView, *, rich: bool) -> None:
        super().__init__(outcome, views, graph=False, rich=rich)
        self._view = weakref.ref(view)  # IPython keeps every result; a view that is closed is to go
        self._in_page = rich
        found = [f"grad_{name} {gradient_text(gradient)}" for name, gradient in outcome.gradients.items()]
        if found:
            view.tell(f"in the notebook, which sliders do not change: {' · '.join(found)}")

    def __repr__(self) -> str:
        view = self._view()
        return super().__repr__() if view is None else view.text

    def bundle(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the display in every form."""
        view = self._view()
        return view.bundle() if view is not None and self._in_page else ({"text/plain": repr(self)}, {})
