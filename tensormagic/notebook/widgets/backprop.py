"""Backpropagation as a widget: the picture, steps through both passes, sliders on the inputs, and the numbers of each place."""

from __future__ import annotations

import base64
import math
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import traitlets

from tensormagic.notebook.backprop import picture
from tensormagic.notebook.backprop.sheet import Sheet
from tensormagic.notebook.pictures.html import page
from tensormagic.notebook.pictures.palette import variables
from tensormagic.notebook.widgets.controls import MESSAGES, controls, edges
from tensormagic.notebook.widgets.standing import Standing

Renewing = Callable[[], tuple[Sheet | None, set[str]]]
_here = Path(__file__).parent
_MODULES = ("page", "backprop_numbers", "backprop_details", "backprop")  # joined in this order
SCRIPT = "\n".join((_here / f"{name}.js").read_text(encoding="utf-8") for name in _MODULES)
_SCOPE = ".tm-backprop"
STYLE = (
    variables(_SCOPE)
    + picture.style(_SCOPE)
    + controls(_SCOPE)
    + edges(_SCOPE)
    + (_here / "backprop.css").read_text(encoding="utf-8")
)


class BackpropView(Standing):
    """Both passes of a number, to step through; sliders move its inputs, and values and adjoints follow.

    Parameters
    ----------
    sheet : Sheet
        What is shown.
    renew : callable, optional
        Gives another sheet, and the names of what has changed, where what is shown reads something that has; else None.
    **traits
        Traits of every widget, such as ``layout``.

    Attributes
    ----------
    step : int
        How many steps of the passes are shown: 0 shows the inputs alone, `steps` everything.
    point : list of float
        Where the sliders stand.
    selected : int
        The node whose numbers are shown in full; -1 for the one that the step is about.
    """

    _esm = SCRIPT
    _css = STYLE + MESSAGES

    step = traitlets.Int().tag(sync=True)
    point = traitlets.List(trait=traitlets.CFloat()).tag(sync=True)
    selected = traitlets.Int(default_value=-1).tag(sync=True)
    _scene = traitlets.Dict().tag(sync=True)
    _exact = traitlets.Unicode().tag(sync=True)  # numbers as base64 of float64: the point, then the frame there
    _star = traitlets.Dict().tag(sync=True)  # frames along each slider, through one point
    _note = traitlets.Unicode().tag(sync=True)
    _problem = traitlets.Unicode().tag(sync=True)
    _rest = traitlets.Int(default_value=0).tag(sync=True)  # counts the times that the sliders have come to rest

    def __init__(self, sheet: Sheet, renew: Renewing | None = None, **traits: Any) -> None:
        self._sheet, self._renew = sheet, renew
        self._picture = picture.drawn(sheet)
        self._lock = threading.RLock()  # the page's messages come on a thread of their own
        self._seconds = 0.0
        super().__init__(step=0, **self._whole(sheet.start), **traits)
        self.observe(self._moved, names=["point"])
        self.observe(self._rested, names=["_rest"])

    # the state --------------------------------------------------------------------------------------------------------

    @property
    def steps(self) -> int:
        """Return how many steps both passes have."""
        return len(self._sheet.steps)

    @traitlets.validate("step")
    def _in_steps(self, proposal: Any) -> int:
        return min(max(proposal["value"], 0), len(self._sheet.steps))

    @traitlets.validate("selected")
    def _in_nodes(self, proposal: Any) -> int:
        return proposal["value"] if -1 <= proposal["value"] < len(self._sheet.nodes) else -1

    @traitlets.validate("point")
    def _in_ranges(self, proposal: Any) -> list[float]:
        numbers = proposal["value"]
        spans = [s for p in self._sheet.parameters for s in p.spans]
        if len(numbers) != len(spans) or any(map(math.isnan, numbers)):
            raise traitlets.TraitError(f"point takes one number for each of the {len(spans)} sliders, not {numbers!r}")
        return [min(max(v, s.low), s.high) for v, s in zip(numbers, spans, strict=True)]

    @property
    def values(self) -> dict[str, Any]:
        """Return the value of each node at this point, by its heading; of equal headings, later ones are counted.

        Examples
        --------
        >>> import tensormagic as tm
        >>> view = tm.backprop(lambda x: x * x, 3.0)
        >>> {name: float(value) for name, value in view.values.items()}
        {'x': 3.0, 'value = x × x': 9.0}
        >>> view.close()
        """
        return self._by_heading("value")

    @property
    def adjoints(self) -> dict[str, Any]:
        """Return the adjoint of each node at this point, by its heading.

        Examples
        --------
        >>> import tensormagic as tm
        >>> view = tm.backprop(lambda x: x * x, 3.0)
        >>> {name: float(adjoint) for name, adjoint in view.adjoints.items()}
        {'x': 6.0, 'value = x × x': 1.0}
        >>> view.close()
        """
        return self._by_heading("adjoint")

    def _by_heading(self, what: str) -> dict[str, Any]:
        found = self._sheet.passes.run(self._sheet.values_at(self.point))
        table = found.values if what == "value" else found.adjoints
        met: Counter[str] = Counter()
        named: dict[str, Any] = {}
        for shown in [n for n in self._sheet.nodes if n.node in table]:
            met[shown.heading] += 1
            again = f" ({met[shown.heading]})" if met[shown.heading] > 1 else ""
            named[f"{shown.heading}{again}"] = table[shown.node]
        return named

    def _at(self, point: Sequence[float]) -> dict[str, str]:
        """Return the exact numbers at a point, as the page gets them."""
        begin = time.perf_counter()
        try:
            frame, note = self._sheet.at(point)
        except Exception as error:  # noqa: BLE001 (what the user's code raises there is told, and the sliders go on)
            return {"_problem": f"{type(error).__name__}: {error}"}
        self._seconds = time.perf_counter() - begin
        return {"_exact": _packed([*point, *frame]), "_note": note, "_problem": ""}

    def _whole(self, point: Sequence[float]) -> dict[str, Any]:
        """Return the whole state of the page but for the step."""
        scene = {**self._sheet.message(), "svg": picture.in_page(self._sheet, self._picture), "live": True}
        return {"point": list(point), "_scene": scene, "_exact": "", **self._at(point), "_star": self._rays(point)}

    def follow(self) -> None:
        """Show another sheet if a variable that it reads has changed; sliders of unchanged variables stay where they are."""
        with self._lock:
            if self._renew is None or self.comm is None:
                return
            try:
                sheet, changed = self._renew()
            except Exception as error:  # noqa: BLE001 (a variable may be gone, or of another kind: the view says so)
                self._problem = f"{type(error).__name__}: {error}"
                return
            if sheet is not None:
                self._replace(sheet, changed)

    def _replace(self, sheet: Sheet, changed: set[str]) -> None:
        known = {p.name: number for p, number in zip(self._sheet.parameters, self.point, strict=True)}
        done = self.step == self.steps
        self._sheet, self._picture = sheet, picture.drawn(sheet)
        stay = {name: number for name, number in known.items() if name not in changed}
        point = [stay.get(p.name, start) for p, start in zip(sheet.parameters, sheet.start, strict=True)]
        with self.hold_sync():
            self.selected = -1
            self.step = self.steps if done else self.step
            for name, value in self._whole(point).items():
                setattr(self, name, value)

    def _rays(self, point: Sequence[float]) -> dict[str, Any]:
        counts, floats = self._sheet.star(list(point), self._seconds)
        return {"base": list(point), "counts": counts, "data": _packed(floats)}

    def _moved(self, _: Any) -> None:
        with self._lock, self.hold_sync():
            for name, value in self._at(self.point).items():
                setattr(self, name, value)

    def _rested(self, _: Any) -> None:
        with self._lock:
            if self._star["base"] != self.point:
                self._star = self._rays(self.point)

    def close(self) -> None:
        """Take the widget off the page and free it, with the layout that ipywidgets made for it."""
        super().close()
        self._renew = None  # which holds what is shown

    # pictures ---------------------------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """Values and adjoints as a table, where the sliders stood at first."""
        return self._sheet.table()

    def svg(self) -> str:
        """Return the picture of both passes as an SVG that stands alone, where the sliders stood at first."""
        return picture.standalone(self._sheet, self._picture)

    def page(self) -> str:
        """Return a page with the view, which needs neither a kernel nor a network: one slider moves at a time there."""
        names = ["step", "point", "selected", "_scene", "_exact", "_star", "_note", "_problem", "_rest"]
        state = {name: getattr(self, name) for name in names}
        state["_scene"] = {**self._scene, "live": False}
        return page(self._sheet.title, STYLE, SCRIPT, state, self.svg())


def _packed(numbers: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(numbers)}d", *numbers)).decode()
