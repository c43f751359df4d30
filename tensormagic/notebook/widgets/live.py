"""The live view as a widget: a trait for each parameter, the sweep in the page, exact values from Python."""

from __future__ import annotations

import base64
import math
import threading
import zlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import traitlets

from tensormagic.notebook.live.plots.arrays import DOTS
from tensormagic.notebook.live.plots.compose import Arrangement, Scales, panels
from tensormagic.notebook.live.plots.draw import described, styled, svg
from tensormagic.notebook.live.plots.frame import Panel, Reading, indexed, listed, number
from tensormagic.notebook.live.ranges import Parameter
from tensormagic.notebook.live.sweep import Numbers, Star, Sweep, largest, mark
from tensormagic.notebook.pictures.html import page
from tensormagic.notebook.pictures.labels import clean
from tensormagic.notebook.pictures.palette import variables
from tensormagic.notebook.widgets.controls import MESSAGES, controls
from tensormagic.notebook.widgets.descending import Descending, packed
from tensormagic.notebook.widgets.live_traits import kind_of, value_trait, with_traits

_here = Path(__file__).parent
_MODULES = (
    "page",
    "live_sweep",
    "live_plot",
    "live_pads",
    "live_arrays",
    "live_descent",
    "live",
)  # joined in this order
SCRIPT = "\n".join((_here / f"{name}.js").read_text(encoding="utf-8") for name in _MODULES)
_OWN = (_here / "live.css").read_text(encoding="utf-8")
STYLE = variables(".tm-sweep") + styled(".tm-sweep .tm-picture") + controls(".tm-sweep") + _OWN
_SEEN = 500  # values that are kept
_LONGEST = 40  # letters of a name beside a slider
_PAUSE = 0.3  # seconds that one may wait where one stops


class LiveView(Descending):
    """A function of a few numbers: sliders, value and gradient at the point where they stand.

    Each parameter is a trait of its own, in its range, so that other widgets can be linked to it; ``value`` is one, too.

    Parameters
    ----------
    numbers : Numbers
        What is shown.
    name : str
        What its value is called.
    keep : callable, optional
        Called with the parameters when the button "keep a", with the names of the parameters, is pressed; without it there is none.
    space : mapping, optional
        Variables of the notebook.
    follows : sequence of str
        Parameters for which the view moves to where the variable of that name is, when that gets another value.
    axis : tuple
        The name and the numbers of what a vector is drawn over.
    **traits
        Traits of every widget, such as ``layout``.
    """

    _esm = SCRIPT
    _css = STYLE + MESSAGES

    value = value_trait()
    _scene = traitlets.Dict().tag(sync=True)  # what is moved
    _picture = traitlets.Dict().tag(sync=True)  # how it is drawn
    _sweep = traitlets.Unicode().tag(sync=True)  # numbers as base64 of float64: nan and inf stay what they are
    _exact = traitlets.Unicode().tag(sync=True)  # the point, then value and slopes there
    _note = traitlets.Unicode().tag(sync=True)
    _kept = traitlets.Int(default_value=0).tag(sync=True)  # what the page asks for: each is counted
    _settled = traitlets.Int(default_value=0).tag(sync=True)
    _element = traitlets.Int(default_value=0).tag(sync=True)

    moved: Mapping[str, Parameter] = MappingProxyType({})  # the parameters by name, where their traits look them up
    _unlink: tuple[Callable[[], None], ...] = ()
    _closed: tuple[str, bytes] | None = None
    _told = ""

    def __new__(cls, numbers: Numbers, *_: Any, **__: Any) -> Self:
        """Return a view of a class that has the parameters as traits."""
        return super().__new__(with_traits(cls, tuple((p.name, kind_of(p)) for p in numbers.parameters)))

    def __init__(
        self,
        numbers: Numbers,
        name: str,
        *,
        keep: Callable[[Mapping[str, Any]], None] | None = None,
        space: Mapping[str, Any] | None = None,
        follows: Sequence[str] = (),
        axis: tuple[str, Sequence[float]] = ("", ()),
        **traits: Any,
    ) -> None:
        self._axis = axis
        self._numbers, self._name, self._keep = numbers, name, keep
        self._space, self._follows = space or {}, follows
        self.moved = {p.name: p for p in numbers.parameters}
        self._lock = threading.RLock()  # the page's messages come on a thread of their own
        self._slopes: np.ndarray | None = None
        self._at: tuple[float, ...] | None = None
        self._seen: deque[tuple[tuple[float, ...], float]] = deque(maxlen=_SEEN)
        self._steps = np.zeros((0, 0))
        self._scales = Scales()
        self._version = 0
        self._inputs, self._own = numbers.inputs(), self._marks()
        begin = self._swept(numbers.start)
        begin |= {p.name: p.argument(p.start) for p in numbers.parameters}
        size = math.prod(numbers.shape)
        begin["_element"] = (
            size // 2 if len(numbers.shape) == 1 and size > DOTS else 0
        )  # the first of a curve is often 0
        super().__init__(_scene=self._moving(), **begin, **traits)
        self._moved()
        self.observe(self._moved, names=[p.name for p in numbers.parameters])
        self.observe(self._keeping, names=["_kept"])
        self.observe(self._settling, names=["_settled"])
        self.observe(self._descending, names=["_asked"])
        self.observe(self._choosing, names=["_element"])

    # the state --------------------------------------------------------------------------------------------------------

    @property
    def point(self) -> tuple[float, ...]:
        """Return where the sliders stand, one number for each."""
        return tuple(float(v) for p in self._numbers.parameters for v in np.ravel(getattr(self, p.name)))

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the parameters, as the function is called with them."""
        return {p.name: p.argument(np.ravel(getattr(self, p.name)).tolist()) for p in self._numbers.parameters}

    @property
    def gradient(self) -> dict[str, Any] | None:
        """Return the slope in each parameter at this point, or None where there is no derivative.

        Of an array there are the slopes of all elements, in its shape followed by the parameter's.

        Examples
        --------
        >>> import tensormagic as tm
        >>> view = tm.live(lambda a: a**2, a=(0.0, 4.0))
        >>> view.a, view.value, view.gradient
        (2.0, 4.0, {'a': 4.0})
        >>> view.close()
        """
        if self._slopes is None:
            return None
        found, begin = {}, 0
        for p in self._numbers.parameters:
            rows = np.moveaxis(self._slopes[begin : begin + len(p.spans)], 0, -1)
            rows = rows.reshape((*self._numbers.shape, *p.shape))
            found[p.name] = rows if rows.ndim else float(rows)
            begin += len(p.spans)
        return found

    @property
    def history(self) -> dict[str, np.ndarray]:
        """Return the values that were seen, the last 500 of them, and the parameters there: arrays of the same length.

        Examples
        --------
        >>> import tensormagic as tm
        >>> view = tm.live(lambda a: a**2, a=(0.0, 4.0))
        >>> view.a = 3.0
        >>> view.history
        {'a': array([2., 3.]), 'value': array([4., 9.])}
        >>> view.close()
        """
        points = np.array([p for p, _ in self._seen]).reshape(len(self._seen), len(self._numbers.spans))
        return {**self._numbers.by_name(points), "value": np.array([v for _, v in self._seen])}

    def _moving(self) -> dict[str, Any]:
        """Return the message on the numbers that are moved."""
        parts = ("name", "index", "label", "low", "high", "steps", "step")
        made = Arrangement(self._numbers.parameters, self._numbers.shape)
        keep = ", ".join(clean(p.name, _LONGEST) for p in self._numbers.parameters) if self._keep is not None else ""
        return {
            "name": self._name,
            "indexed": indexed(self._name),
            "spans": [
                {part: getattr(s, part) for part in parts} | {"label": clean(s.label, _LONGEST)}
                for s in self._numbers.spans
            ],
            "sliders": made.sliders,
            "keep": keep,
        }

    def _swept(self, point: Sequence[float], seconds: float = 2.0) -> dict[str, Any]:
        """Return the page's data on the function, computed in about ``seconds`` at most."""
        numbers = self._numbers
        made = Arrangement(numbers.parameters, numbers.shape, self._axis)
        sweep = numbers.sweep(point, seconds)
        apart = made.plane is not None and isinstance(sweep, Star)
        plane = numbers.slice(made.plane, point) if made.plane is not None and apart else None
        slopes = self._first_slopes(point)
        steepest = sweep.steepest() or ([] if slopes is None else [largest(s) for s in slopes])
        self._scales.widen(steepest, sweep.values)
        self._panels: tuple[Panel, ...] = panels(self._name, made, sweep, plane, self._scales, slopes)
        self._shown: Sweep | Star | None = sweep
        self._rate = numbers.rate(sweep)
        picture = {
            "kind": sweep.kind,
            "counts": [len(a) for a in sweep.axes],
            "shape": list(numbers.shape),
            "slopes": numbers.has_slopes,
            "why": "" if numbers.has_slopes else f"no slopes: {numbers.why}",
            "rate": self._rate,
            "version": self._version,
            "panels": [p.message() for p in self._panels],
        }
        return {"_picture": picture, "_sweep": base64.b64encode(sweep.packed()).decode()}

    def _first_slopes(self, point: Sequence[float]) -> np.ndarray | None:
        """Return slopes of an array's elements, which determine how large they are drawn."""
        if not self._numbers.shape or not self._numbers.has_slopes:
            return None
        return self._numbers.at(point)[1]

    def _moved(self, _: Any = None) -> None:
        """Send the exact value at the point of the sliders."""
        with self._lock:
            point = self.point
            if point == self._at or (self.comm is None and self._at is not None):
                return
            try:
                value, slopes = self._numbers.at(point)
                problem = ""
            except Exception as error:  # noqa: BLE001 (what the user's function raises is shown, and sliders go on)
                shape = self._numbers.shape
                value = np.full(shape, math.nan)
                slopes = np.full((len(point), *shape), math.nan) if self._numbers.has_slopes else None
                problem = f"{type(error).__name__}: {error}"
            self._at, self._slopes = point, slopes
            value.flags.writeable = False
            self._see(point, float(value.ravel()[self._element]))
            with self.hold_sync():
                self._exact = packed(np.array(point), value, *([] if slopes is None else [slopes]))
                self._problem = problem
                self.value = value if value.ndim else float(value)

    def _see(self, point: tuple[float, ...], value: float) -> None:
        if not self._seen or self._seen[-1][0] != point:
            self._seen.append((point, value))

    def follow(self) -> None:
        """Compute anew where the notebook has changed what the function reads; move where it has changed a parameter."""
        with self._lock:
            now, own = self._numbers.inputs(), self._marks()
            if self.comm is None or (now == self._inputs and own == self._own):
                return
            with self.hold_sync():
                if own != self._own:
                    changed = [n for n in own if own[n] != self._own[n]]
                    self._own = own
                    self._note = " · ".join(filter(None, map(self._followed, changed)))
                if now != self._inputs:
                    self._inputs, self._at = now, None
                    self._renew()

    def _renew(self) -> None:
        """Start again with a changed function."""
        try:
            self._numbers.begin(self.point)
            self._version += 1
            self._scales = Scales()
            self._seen.clear()
            self._steps = np.zeros((0, 0))
            self._element = min(self._element, math.prod(self._numbers.shape) - 1)
            for name, state in self._swept(self.point).items():
                setattr(self, name, state)
        except Exception as error:  # noqa: BLE001 (a variable may be gone, or of another shape: the view says so)
            self._problem = f"{type(error).__name__}: {error}"
        else:
            self._moved()

    def _marks(self) -> dict[str, Any]:
        """Return keys that tell whether the notebook's variables with names of parameters have changed."""
        return {name: mark(self._space[name]) if name in self._space else None for name in self._follows}

    def _followed(self, name: str) -> str:
        """Move a parameter to where the notebook has it; what to say where that is not possible."""
        if name not in self._space:
            return ""
        given = self._space[name]
        try:
            setattr(self, name, np.asarray(given, dtype=float) if np.ndim(given) else given)
        except Exception:  # noqa: BLE001 (the variable is something else now: the slider stays)
            return f"{name} of the notebook has changed: this view moves its old value"
        there = np.array_equal(np.asarray(getattr(self, name), dtype=float), np.asarray(given, dtype=float))
        return "" if there else f"{name} of the notebook is outside the range here"

    # what the page asks for -------------------------------------------------------------------------------------------

    def _keeping(self, _: Any) -> None:
        if self._keep is not None:
            self._keep(self.parameters)
            self._own = self._marks()
            self._note = ""

    def _settling(self, _: Any = None) -> None:
        """Nothing has moved for a while: lines in each direction are those through this point."""
        with self._lock:
            if self.comm is None or not isinstance(self._shown, Star) or self._shown.centre == self.point:
                return
            try:
                state = self._swept(self.point, _PAUSE)
            except Exception:  # noqa: BLE001 (there is no value here, which the view says: the old lines stay)
                return
            with self.hold_sync():
                for name, held in state.items():
                    setattr(self, name, held)

    def _choosing(self, _: Any) -> None:
        with self._lock:
            self._element = min(max(self._element, 0), math.prod(self._numbers.shape) - 1)
            self._seen.clear()
            self._at = None
            self._moved()

    def choose(self, *index: int) -> None:
        """Look at another element of an array: its value, its slopes and its history are told.

        Parameters
        ----------
        *index : int
            One for each axis, from 0.

        Raises
        ------
        ValueError
            If there is no such element.

        Examples
        --------
        >>> import numpy as np, tensormagic as tm
        >>> view = tm.live(lambda a: a * np.arange(3.0), a=(0.0, 4.0))
        >>> view.choose(2)
        >>> view.text
        'value = [0, 2, 4] at a = 2 · value[2] = 4 · slope in a = 2'
        >>> view.close()
        """
        self._element = int(np.ravel_multi_index(index, self._numbers.shape)) if self._numbers.shape else 0

    def link(self, name: str, other: Any) -> None:
        """Keep a parameter and the value of another widget the same, until the view is closed.

        Parameters
        ----------
        name : str
            The parameter.
        other : ipywidgets.Widget
            Anything with a trait ``value``.

        Examples
        --------
        >>> import ipywidgets, tensormagic as tm
        >>> view, box = tm.live(lambda a: a**2, a=(0.0, 4.0)), ipywidgets.FloatText(3.0)
        >>> view.link("a", box)
        >>> view.value
        9.0
        >>> view.close(), box.close()
        (None, None)
        """
        self._unlink = (*self._unlink, traitlets.link((other, "value"), (self, name)).unlink)

    def close(self) -> None:
        """Take the widget off the page and free it, with the layout that ipywidgets made for it."""
        for undo in self._unlink:
            undo()
        self._unlink = ()
        if self._closed is None:
            # the notebook keeps what its cells have shown: this is all that is kept of a view
            self._closed = self.text, zlib.compress(self.svg().encode())
        super().close()
        self.unobserve_all()
        self._numbers.forget()
        self._sweep, self._path, self._shown, self._panels, self._picture, self._scene = "", "", None, (), {}, {}

    # pictures ---------------------------------------------------------------------------------------------------------

    @property
    def element(self) -> str:
        """Return the name of the value, with the index of the element in focus if it is an array."""
        if not self._numbers.shape:
            return self._name
        index = np.unravel_index(self._element, self._numbers.shape)
        return f"{indexed(self._name)}[{', '.join(str(int(k)) for k in index)}]"

    def tell(self, words: str) -> None:
        """Show a lasting note beside the picture."""
        self._told = words
        self._scene = {**self._scene, "told": words}

    @property
    def text(self) -> str:
        """Return the value and the gradient at this point, in one line; below it what the cell has found where it ran."""
        if self._closed is not None:
            return self._closed[0]
        value = np.asarray(self.value)
        at = ", ".join(f"{n} = {listed(v)}" for n, v in self._by_slider(self.point))
        words = [f"{self._name} = {listed(value)} at {at}"]
        words += [f"{self.element} = {number(float(value.ravel()[self._element]))}"] if value.ndim else []
        if self._slopes is not None:
            chosen = self._slopes.reshape(len(self.point), -1)[:, self._element].tolist()
            words += [f"slope{'s' * (np.ndim(v) > 0)} in {n} = {listed(v)}" for n, v in self._by_slider(chosen)]
        line = " · ".join([*words, *filter(None, [self._problem])])
        return f"{line}\n{self._told}" if self._told else line

    def _by_slider(self, numbers: Sequence[float]) -> list[tuple[str, np.ndarray]]:
        """Return numbers with their labels: a slider, or an array without one."""
        found: list[tuple[str, np.ndarray]] = []
        begin = 0
        for p in self._numbers.parameters:
            own = numbers[begin : begin + len(p.spans)]
            begin += len(p.spans)
            if len(own) > 2:
                found.append((p.name, np.reshape(own, p.shape)))
            else:
                found += [(s.label, np.array(v)) for s, v in zip(p.spans, own, strict=True)]
        return found

    def svg(self) -> str:
        """Return the picture at this point, as an SVG that stands alone."""
        if self._closed is not None:
            return zlib.decompress(self._closed[1]).decode()
        self._settling()
        value = np.asarray(self.value)
        seen = tuple(v for _, v in self._seen)
        reading = Reading(self.point, value, self._slopes, self._element, seen, self._steps)
        parts = self._panels if len(seen) > 1 else self._panels[:-1]  # of one value there is no history
        title, _, rest = self.text.partition("\n")
        return svg(parts, title, f"{described(parts, self._name)} {rest}".strip(), reading)

    def page(self) -> str:
        """Return the text of that page."""
        picture = self.svg()
        names = [*(p.name for p in self._numbers.parameters), "_scene", "_picture", "_sweep", "_exact", "_problem"]
        state = {n: getattr(self, n) for n in (*names, "_note", "_element")}
        state["_scene"] = {**self._scene, "keep": ""}
        return page(self._name, STYLE, SCRIPT, {**state, "_alone": True, "_path": ""}, picture)
