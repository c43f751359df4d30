"""Descents of a live view: against the gradient, as its button does."""

from __future__ import annotations

import base64
import threading
from typing import Any

import numpy as np
import traitlets

from tensormagic.notebook.live.sweep import Numbers
from tensormagic.notebook.widgets.standing import Standing

_STEPS = 50


class Descending(Standing):
    """The descent of a live view, which has the numbers and shows the points visited."""

    _asked = traitlets.List(default_value=[0, 0.0]).tag(sync=True)  # a descent: its number and its rate
    _path = traitlets.Unicode().tag(sync=True)  # its number, then a row of point, value and slopes for each step
    _problem = traitlets.Unicode().tag(sync=True)

    _numbers: Numbers
    _name: str
    _rate: float
    _lock: threading.RLock
    _steps: np.ndarray

    @property
    def point(self) -> tuple[float, ...]:
        """Return the positions of the sliders, one number for each."""
        raise NotImplementedError

    def _see(self, point: tuple[float, ...], value: float) -> None:
        raise NotImplementedError

    def _descending(self, _: Any) -> None:
        count, rate = self._asked
        self._descend(float(rate), _STEPS, int(count))

    def _descend(self, rate: float, steps: int, count: int) -> np.ndarray:
        with self._lock:
            spans = len(self._numbers.spans)
            try:
                rows = self._numbers.descent(self.point, rate, steps)
            except Exception as error:  # noqa: BLE001 (as where the view is moved there by hand)
                self._problem = f"{type(error).__name__}: {error}"
                rows = np.zeros((0, 2 * spans + 1))
            self._steps = rows[:, : spans + 1]
            for row in rows:
                self._see(tuple(row[:spans].tolist()), float(row[spans]))
            self._path = packed(np.array([float(count)]), rows)
            return rows

    def descend(self, steps: int = _STEPS, rate: float | None = None) -> dict[str, np.ndarray]:
        """Move against the gradient, as the view's button does.

        Parameters
        ----------
        steps : int
            How many times; fewer where nothing changes any more, and after two seconds.
        rate : float, optional
            How far, times the gradient; a negative one climbs. Default: the one that the view offers.

        Returns
        -------
        dict
            The parameters at each step, and ``value``: arrays of the same length.

        Raises
        ------
        ValueError
            Where there is no gradient of one number, and of a view that is closed.

        Examples
        --------
        >>> import tensormagic as tm
        >>> view = tm.live(lambda a: a**2, a=(-1.0, 3.0))
        >>> view.descend(steps=2, rate=0.25)["value"].tolist()
        [1.0, 0.25, 0.0625]
        >>> view.close()
        """
        if self.comm is None:
            raise ValueError("the view is closed: make a new one")
        if not self._numbers.has_slopes or self._numbers.shape:
            raise ValueError(f"{self._name} is not one number with a gradient, so there is no direction of descent")
        rows = self._descend(self._rate if rate is None else rate, steps, -1)
        found = self._numbers.by_name(rows)
        if len(rows):
            with self.hold_trait_notifications():
                for name, taken in found.items():
                    setattr(self, name, taken[-1] if taken[-1].ndim else float(taken[-1]))
        return {**found, "value": rows[:, len(self._numbers.spans)]}


def packed(*parts: np.ndarray) -> str:
    """Return arrays as base64 of float64, which preserves nan and inf."""
    return base64.b64encode(b"".join(p.astype("<f8").tobytes() for p in parts)).decode()
