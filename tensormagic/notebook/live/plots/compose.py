"""Choose the parts of a function's picture, and the numbers that are sliders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tensormagic.notebook.live.plots.arrays import heat, history, line
from tensormagic.notebook.live.plots.contours import contour
from tensormagic.notebook.live.plots.curves import curve
from tensormagic.notebook.live.plots.frame import Panel
from tensormagic.notebook.live.plots.pads import bars, cells, columns
from tensormagic.notebook.live.ranges import Parameter, Span
from tensormagic.notebook.live.sweep import Star, Sweep


@dataclass(frozen=True)
class Arrangement:
    """How the parameters of a function are moved.

    Parameters
    ----------
    parameters
        In their order.
    shape
        The shape of what the function gives.
    axis
        The name and the numbers of what a vector is drawn over; its elements are counted where there are none.
    """

    parameters: tuple[Parameter, ...]
    shape: tuple[int, ...]
    axis: tuple[str, Sequence[float]] = ("", ())

    @property
    def spans(self) -> tuple[Span, ...]:
        """Return every number that is moved."""
        return tuple(s for p in self.parameters for s in p.spans)

    def _along(self) -> list[tuple[Parameter, tuple[int, ...]]]:
        found: list[tuple[Parameter, tuple[int, ...]]] = []
        begin = 0
        for parameter in self.parameters:
            found.append((parameter, tuple(range(begin, begin + len(parameter.spans)))))
            begin += len(parameter.spans)
        return found

    @property
    def plane(self) -> tuple[int, int] | None:
        """Return the two numbers whose plane is shown, if there are two, or those of the first vector of two, else None."""
        if self.shape:
            return None
        if len(self.spans) == 2:
            return 0, 1
        return next(((a[0], a[1]) for p, a in self._along() if p.shape and len(a) == 2), None)

    @property
    def pads(self) -> list[tuple[Parameter, tuple[int, ...]]]:
        """Return the vectors and matrices that are drawn and can be dragged."""
        return [(p, along) for p, along in self._along() if len(along) > 2]

    @property
    def sliders(self) -> list[int]:
        """Return the numbers that have a slider each."""
        drawn = {k for _, along in self.pads for k in along}
        return [k for k in range(len(self.spans)) if k not in drawn]


@dataclass
class Scales:
    """The largest numbers so far, which keep the scales of the plots fixed while a slider moves."""

    slopes: list[float] = field(default_factory=list[float])
    values: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def widen(self, slopes: Sequence[float], values: np.ndarray) -> None:
        """Make room for more slopes, one for each slider, and for more values."""
        self.slopes = [max(pair) for pair in zip(self.slopes, slopes, strict=True)] if self.slopes else list(slopes)
        found = np.array([*self.values, *values[np.isfinite(values)]])
        self.values = np.array([found.min(), found.max()]) if found.size else found


def panels(
    name: str, made: Arrangement, sweep: Sweep | Star, plane: Sweep | None, scales: Scales, slopes: np.ndarray | None
) -> tuple[Panel, ...]:
    """Return the parts of the picture, from the top.

    Parameters
    ----------
    name : str
        What the value is called.
    made : Arrangement
        What is moved.
    sweep : Sweep or Star
        The function.
    plane : Sweep, optional
        The function in the plane of two of its numbers, where that is shown and is not the sweep itself.
    scales : Scales
        How large slopes and values are drawn.
    slopes : ndarray, optional
        The slopes of an array's elements where the view starts.
    """
    spans = made.spans
    found = [*_first(name, made, sweep, plane, scales, slopes)]
    for parameter, along in made.pads:
        many = len(parameter.shape) == 2 and min(parameter.shape) > 1
        found.append((cells if many else columns)(name, parameter, along, spans, scales.slopes))
    rest = [k for k in made.sliders if k not in (made.plane or ())]
    if rest and scales.slopes and len(spans) > 2:
        found.append(bars(name, rest, spans, scales.slopes))
    return (*found, history())


def _first(
    name: str, made: Arrangement, sweep: Sweep | Star, plane: Sweep | None, scales: Scales, slopes: np.ndarray | None
) -> list[Panel]:
    """Return the part that shows the value."""
    spans = made.spans
    if len(made.shape) == 2:
        return [heat(name, spans, scales.values, (made.shape[0], made.shape[1]), slopes)]
    if made.shape:
        return [line(name, spans, scales.values, math.prod(made.shape), made.axis, slopes=slopes is not None)]
    if isinstance(sweep, Sweep) and len(spans) == 1:
        return [curve(name, spans[0], sweep)]
    shown = sweep if isinstance(sweep, Sweep) else plane
    if made.plane is None or shown is None:
        return []
    return [contour(name, made.plane, [spans[k] for k in made.plane], shown)]
