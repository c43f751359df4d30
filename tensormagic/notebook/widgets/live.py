"""The live view as a widget: a trait for each parameter, the sweep in the page, exact values from Python."""

from __future__ import annotations

import base64
import math
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import anywidget
import numpy as np
import traitlets
from ipywidgets import Widget

from tensormagic.notebook import plots
from tensormagic.notebook.pictures.html import page
from tensormagic.notebook.pictures.palette import variables
from tensormagic.notebook.plots import Plot, number, plot
from tensormagic.notebook.sweep import Numbers, Parameter, Span

__all__ = ["SCRIPT", "STYLE", "LiveView"]

_Bundle = tuple[dict[str, Any], dict[str, Any]]
_here = Path(__file__).parent
_MODULES = ("page", "live_sweep", "live_plot", "live")  # joined in this order, as the graph's are
SCRIPT = "\n".join((_here / f"{name}.js").read_text(encoding="utf-8") for name in _MODULES)
STYLE = (
    variables(".tm-sweep") + plots.styled(".tm-sweep .tm-picture") + (_here / "live.css").read_text(encoding="utf-8")
)


class _Number(traitlets.CFloat[float, Any]):
    """A number that stays in its range."""

    def __init__(self, span: Span, start: float) -> None:
        self._span = span
        super().__init__(default_value=start)

    def validate(self, obj: Any, value: Any) -> float:
        return _inside(self, obj, self._span, super().validate(obj, value))


class _Whole(traitlets.CInt[int, Any]):
    """A whole number that stays in its range."""

    def __init__(self, span: Span, start: float) -> None:
        self._span = span
        super().__init__(default_value=int(start))

    def validate(self, obj: Any, value: Any) -> int:
        return int(_inside(self, obj, self._span, super().validate(obj, value)))


class _Vector(traitlets.List[float]):
    """A few numbers that stay in their ranges."""

    def __init__(self, spans: Sequence[Span], start: Sequence[float]) -> None:
        self._spans = spans
        super().__init__(trait=traitlets.CFloat(), default_value=list(start))

    def validate(self, obj: Any, value: Any) -> list[float]:
        numbers = cast("list[float]", super().validate(obj, list(value) if isinstance(value, np.ndarray) else value))
        if len(numbers) != len(self._spans):
            raise traitlets.TraitError(f"{self.name} has {len(self._spans)} numbers, and this has {len(numbers)}")
        return [_inside(self, obj, s, v) for s, v in zip(self._spans, numbers, strict=True)]


def _inside(trait: Any, obj: Any, span: Span, value: float) -> float:
    if math.isnan(value):
        trait.error(obj, value)
    return min(max(value, span.low), span.high)


def _trait(parameter: Parameter) -> Any:
    if parameter.is_vector:
        made: Any = _Vector(parameter.spans, parameter.start)
    else:
        made = (_Whole if parameter.whole else _Number)(parameter.spans[0], parameter.start[0])
    return made.tag(sync=True)


def _finite(value: float, widget: Any) -> float | None:
    return value if math.isfinite(value) else None  # JSON has no other numbers


def _number(value: float | None, widget: Any) -> float:
    return math.nan if value is None else value


class LiveView(anywidget.AnyWidget):
    """A function of a few numbers: sliders, value and gradient at the point where they stand.

    Each parameter is a trait of its own, in its range, so that other widgets can be linked to it; ``value`` is one, too.

    Parameters
    ----------
    numbers : Numbers
        What is shown.
    name : str
        What its value is called.
    keep : callable, optional
        Called with the parameters when the button "keep" is pressed; without it there is none.
    **traits
        Traits of every widget, such as ``layout``.
    """

    _esm = SCRIPT
    _css = STYLE

    value = traitlets.Float(default_value=math.nan).tag(sync=True, to_json=_finite, from_json=_number)
    _scene = traitlets.Dict().tag(sync=True)
    _sweep = traitlets.Unicode().tag(sync=True)  # numbers as base64 of float64: nan and inf stay what they are
    _exact = traitlets.Unicode().tag(sync=True)  # the point, then value and gradient there
    _problem = traitlets.Unicode().tag(sync=True)
    _kept = traitlets.Int(default_value=0).tag(sync=True)

    _made_layout: Widget | None = None
    _unlink: tuple[Callable[[], None], ...] = ()

    def __init__(
        self, numbers: Numbers, name: str, *, keep: Callable[[Mapping[str, Any]], None] | None = None, **traits: Any
    ) -> None:
        for parameter in numbers.parameters:
            if hasattr(type(self), parameter.name):
                raise ValueError(f"every widget has a trait or a method {parameter.name}: call the parameter otherwise")
        self._numbers = numbers
        self._name = name
        self._keep = keep
        self._lock = threading.RLock()  # the page's messages come on a thread of their own
        self._gradient: tuple[float, ...] | None = None
        self._at: tuple[float, ...] | None = None
        self.add_traits(**{p.name: _trait(p) for p in numbers.parameters})
        self._inputs = numbers.inputs()
        begin = self._swept()
        super().__init__(**begin, **traits)
        self._made_layout = None if "layout" in traits else cast("Widget", self.layout)
        self._moved()
        self.observe(self._moved, names=[p.name for p in numbers.parameters])
        self.observe(self._keeping, names=["_kept"])

    # the state --------------------------------------------------------------------------------------------------------

    @property
    def point(self) -> tuple[float, ...]:
        """Where the sliders stand, one number for each."""
        return tuple(float(v) for p in self._numbers.parameters for v in np.ravel(getattr(self, p.name)))

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters, as the function is called with them."""
        return {p.name: p.argument(np.ravel(getattr(self, p.name)).tolist()) for p in self._numbers.parameters}

    @property
    def gradient(self) -> dict[str, Any] | None:
        """The slope in each parameter at this point; None where there is no derivative."""
        if self._gradient is None:
            return None
        rest = iter(self._gradient)
        found = {p.name: [next(rest) for _ in p.spans] for p in self._numbers.parameters}
        return {p.name: np.array(found[p.name]) if p.is_vector else found[p.name][0] for p in self._numbers.parameters}

    def _swept(self) -> dict[str, Any]:
        """What the page is told of the function as it is now."""
        numbers = self._numbers
        sweep = numbers.sweep()
        self._plot: Plot = plot(self._name, numbers.spans, sweep)
        spans = [
            {
                "name": s.name,
                "index": s.index,
                "label": s.label,
                "low": s.low,
                "high": s.high,
                "steps": s.steps,
                "step": s.step,
            }
            for s in numbers.spans
        ]
        scene = {
            "name": self._name,
            "spans": spans,
            "counts": [len(a) for a in sweep.axes],
            "slopes": sweep.slopes is not None,
            "why": "" if numbers.has_slopes else f"no slopes: {numbers.why}",
            "keep": ", ".join(p.name for p in numbers.parameters) if self._keep is not None else "",
            "plot": self._plot.message(),
        }
        return {"_scene": scene, "_sweep": base64.b64encode(sweep.packed()).decode()}

    def _moved(self, _: Any = None) -> None:
        """The exact value at the point where the sliders stand."""
        with self._lock:
            point = self.point
            if point == self._at:
                return
            try:
                value, gradient = self._numbers.at(point)
                problem = ""
            except Exception as error:  # noqa: BLE001 (what the user's function raises is shown, and sliders go on)
                value, gradient = math.nan, (math.nan,) * len(point) if self._numbers.has_slopes else None
                problem = f"{type(error).__name__}: {error}"
            self._at, self._gradient = point, gradient
            packed = [*point, value, *(gradient or ())]
            with self.hold_sync():
                self._exact = base64.b64encode(struct.pack(f"<{len(packed)}d", *packed)).decode()
                self._problem = problem
                self.value = value

    def follow(self) -> None:
        """Compute anew where what the function reads beside its parameters has changed since."""
        with self._lock:
            now = self._numbers.inputs()
            if now == self._inputs or self.comm is None:
                return
            self._inputs, self._at = now, None
            with self.hold_sync():
                try:
                    for name, state in self._swept().items():
                        setattr(self, name, state)
                except Exception as error:  # noqa: BLE001 (a variable may be gone, or of another shape: the view says so)
                    self._problem = f"{type(error).__name__}: {error}"
                else:
                    self._moved()

    def _keeping(self, _: Any) -> None:
        if self._keep is not None:
            self._keep(self.parameters)

    def link(self, name: str, other: Any) -> None:
        """Keep a parameter and the value of another widget the same, until the view is closed."""
        self._unlink = (*self._unlink, traitlets.link((other, "value"), (self, name)).unlink)

    def close(self) -> None:
        """Take the widget off the page and free it, with the layout that ipywidgets made for it."""
        for undo in self._unlink:
            undo()
        self._unlink = ()
        super().close()
        made, self._made_layout = self._made_layout, None
        if made is not None:
            made.close()

    # pictures ---------------------------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """The value and the gradient at this point, in one line."""
        at = ", ".join(f"{s.label} = {number(v)}" for s, v in zip(self._numbers.spans, self.point, strict=True))
        slopes = [
            f"slope in {s.label} {number(g)}" for s, g in zip(self._numbers.spans, self._gradient or (), strict=False)
        ]
        return " · ".join([f"{self._name} = {number(self.value)} at {at}", *slopes, *filter(None, [self._problem])])

    def svg(self) -> str:
        """The picture at this point, as an SVG that stands alone."""
        return plots.svg(self._plot, self.text, self.point, self.value, self._gradient)

    def to_html(self, path: str | Path) -> None:
        """Write a page with the view, which needs neither a kernel nor a network: the sweep drives it."""
        Path(path).write_text(self.page(), encoding="utf-8")

    def page(self) -> str:
        """The text of that page."""
        names = [*(p.name for p in self._numbers.parameters), "_scene", "_sweep", "_exact", "_problem"]
        state = {n: getattr(self, n) for n in names}
        state["_scene"] = {**self._scene, "keep": ""}
        return page(self._name, STYLE, SCRIPT, state, self.svg())

    def bundle(self) -> _Bundle:
        """The display in every form; without the widget itself once that is closed."""
        live, metadata = cast("_Bundle", super()._repr_mimebundle_() or ({}, {})) if self.comm is not None else ({}, {})
        return {**live, "text/plain": self.text, "image/svg+xml": self.svg()}, metadata

    def _repr_mimebundle_(self, **_: Any) -> _Bundle:
        return self.bundle()
