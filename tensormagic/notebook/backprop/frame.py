"""Numbers of a run in a form that a page can hold: one list of floats, and how it is read; the text of each quantity.

An array is told by its norm, its ends and a small heat map of its elements; one of three elements or fewer is written out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_MOST_ROWS = 6
_MOST_COLUMNS = 12
_FEW = 3  # elements that are written out
HEAD = 4  # norm, least, largest, how many are not finite
MINUS = "-"  # that Python reads


def told(value: float, digits: int = 5) -> str:
    """Return a number for people, as the page writes it.

    >>> told(-0.25), told(123456.0), told(1e-7), told(float("inf"))
    ('-0.25', '123460', '1e-7', 'inf')
    """
    if not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else f"{MINUS}inf"
    shown = float(f"{value:.{digits}g}")
    if shown == 0:
        return "0"
    if 1e-5 <= abs(shown) < 1e7:
        text = np.format_float_positional(shown, trim="-")
    else:
        mantissa, exponent = f"{shown:.{digits - 1}e}".split("e")
        text = f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{int(exponent)}"
    return text


@dataclass(frozen=True)
class Quantity:
    """A value of a kind and shape that stay: how it becomes floats, and what these say.

    Parameters
    ----------
    kind
        ``"number"``, ``"bool"``, ``"complex"``, ``"array"``, or ``"several"`` for the results of an op that gives many.
    shape
        The shape.
    rows, columns
        Which of the elements, seen as a matrix, the heat map holds.
    """

    kind: str
    shape: tuple[int, ...]
    rows: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Return how many floats it takes."""
        return {"number": 1, "bool": 1, "complex": 2, "array": HEAD + len(self.rows) * len(self.columns)}.get(
            self.kind, 0
        )

    @property
    def few(self) -> bool:
        """Return whether the elements are written out."""
        return self.kind == "array" and len(self.shape) == 1 and 0 < self.shape[0] <= _FEW

    @property
    def is_many(self) -> bool:
        """Return whether it is told by its norm: the elements are too many to be written out."""
        return self.kind == "array" and not self.few

    @property
    def whole(self) -> bool:
        """Return whether the heat map holds every element."""
        return len(self.rows) * len(self.columns) == math.prod(self.shape)

    def pack(self, value: Any) -> list[float]:
        """Return the floats of a value.

        Raises
        ------
        ValueError
            For a value of another shape: the picture was made for this one.
        """
        if self.kind == "several":
            return []
        if np.shape(value) != self.shape:
            raise ValueError(
                f"the shape of a value depends on the inputs: it was {list(self.shape)} and is {list(np.shape(value))} here"
            )
        if self.kind in {"number", "bool"}:
            return [float(np.asarray(value))]
        if self.kind == "complex":
            number = complex(np.asarray(value))
            return [number.real, number.imag]
        return self._array(np.asarray(value))

    def _array(self, array: np.ndarray) -> list[float]:
        whole = np.abs(array) if array.dtype.kind == "c" else array
        flat = np.asarray(whole, float).ravel()
        if not flat.size:
            return [0.0] * self.size
        with np.errstate(all="ignore"):
            norm = float(np.linalg.norm(flat))
        bad = int(flat.size - np.isfinite(flat).sum())
        cells = flat if self.whole else _matrix(flat.reshape(array.shape))[np.ix_(self.rows, self.columns)].ravel()
        return [norm, float(flat.min()), float(flat.max()), float(bad), *cells.tolist()]

    @property
    def placeholder(self) -> str:
        """Return a text about as long as the longest: what room is left for."""
        longest = f"{MINUS}0.00012345"
        if self.few:
            return f"[{', '.join([longest[:8]] * self.shape[0])}]"
        if self.kind == "array":
            return f"{self.shape_text}, norm {longest[1:]}"
        return {"bool": "False", "complex": f"{longest}{longest}j", "several": self.shape_text}.get(self.kind, longest)

    @property
    def shape_text(self) -> str:
        """Return the shape in NumPy's notation: ``(40, 3)``."""
        return f"{self.shape[0]} results" if self.kind == "several" else str(self.shape)

    def text(self, floats: Sequence[float], digits: int = 5) -> str:
        """Return the floats as a short text."""
        if self.kind == "number":
            return told(floats[0], digits)
        if self.kind == "bool":
            return str(bool(floats[0]))
        if self.kind == "complex":
            imaginary = told(floats[1], digits)
            return f"{told(floats[0], digits)}{'' if imaginary.startswith(MINUS) else '+'}{imaginary}j"
        if self.few:
            return f"[{', '.join(told(v, 4) for v in floats[HEAD:])}]"
        return f"{self.shape_text}, norm {told(floats[0], digits)}" if self.kind == "array" else self.shape_text

    def message(self, offset: int) -> dict[str, Any]:
        """Return how the page reads the floats that begin at ``offset``."""
        made: dict[str, Any] = {"kind": self.kind, "at": offset, "shape": self.shape_text}
        if self.kind == "array":
            made |= {"rows": len(self.rows), "columns": len(self.columns), "few": self.few}
            made["whole"] = self.whole
        return made


def described(value: Any) -> Quantity:
    """Return the quantity that a value is."""
    if isinstance(value, tuple | list):
        return Quantity("several", (len(value),))
    array = np.asarray(value)
    if not array.ndim:
        return Quantity({"b": "bool", "c": "complex"}.get(array.dtype.kind, "number"), ())
    rows, columns = _matrix(array).shape
    return Quantity("array", array.shape, _chosen(rows, _MOST_ROWS), _chosen(columns, _MOST_COLUMNS))


def _matrix(array: np.ndarray) -> np.ndarray:
    """Return an array with its leading axes as one."""
    last = array.shape[-1]
    return array.reshape(array.size // last if last else 0, last)


def _chosen(count: int, most: int) -> tuple[int, ...]:
    """Return at most ``most`` of the first ``count`` numbers, evenly spaced, with both ends."""
    if count <= most:
        return tuple(range(count))
    return tuple(round(k * (count - 1) / (most - 1)) for k in range(most))
