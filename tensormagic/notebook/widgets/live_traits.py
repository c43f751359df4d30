"""Traits of live views: numbers, vectors and matrices that stay in their ranges, and the value."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import traitlets

from tensormagic.notebook.live.ranges import Parameter

Kind = Literal["array", "number", "whole"]


class _Number(traitlets.CFloat[float, Any]):
    """A number that stays in its range, which its view knows."""

    def validate(self, obj: Any, value: Any) -> float:
        return _inside(self, obj, [super().validate(obj, value)])[0]


class _Whole(traitlets.CInt[int, Any]):
    """A whole number that stays in its range."""

    def validate(self, obj: Any, value: Any) -> int:
        return int(_inside(self, obj, [super().validate(obj, value)])[0])


class _Array(traitlets.List[Any]):
    """Numbers of a vector, or rows of a matrix, that stay in their ranges."""

    def validate(self, obj: Any, value: Any) -> list[Any]:
        try:
            given = np.asarray(value, dtype=float)
        except (TypeError, ValueError):
            raise traitlets.TraitError(f"{self.name} must be an array of numbers, not {value!r}") from None
        shape = obj.moved[self.name].shape
        if given.shape != shape:
            raise traitlets.TraitError(f"{self.name} has {_counted(shape)}, and this has {_counted(given.shape)}")
        return np.reshape(_inside(self, obj, given.ravel().tolist()), shape).tolist()


def _counted(shape: tuple[int, ...]) -> str:
    return f"{shape[0]} numbers" if len(shape) == 1 else f"shape {shape}"


def _inside(trait: Any, obj: Any, numbers: list[float]) -> list[float]:
    if any(map(math.isnan, numbers)):
        trait.error(obj, math.nan)
    return obj.moved[trait.name].inside(numbers)


def kind_of(parameter: Parameter) -> Kind:
    """Return the kind of trait that holds a parameter."""
    return "array" if parameter.shape else "whole" if parameter.whole else "number"


@lru_cache(maxsize=64)
def with_traits(view: type[Any], kinds: tuple[tuple[str, Kind], ...]) -> type[Any]:
    """Return a view class with a trait for each of these parameters; cached, so that views with the same parameters share it.

    Raises
    ------
    ValueError
        If a name is an attribute of every widget, or begins with an underscore, as private ones do.
    """
    for name, _ in kinds:
        if hasattr(view, name) or name.startswith("_"):
            raise ValueError(f"{name} is a name that widgets use themselves: rename the parameter")
    made = {"array": _Array, "whole": _Whole, "number": _Number}
    kind: Any = type(view)
    return kind(view.__name__, (view,), {name: made[kind]().tag(sync=True) for name, kind in kinds})


class _Value(traitlets.Any):
    """A number, or an array of numbers."""

    def validate(self, obj: Any, value: Any) -> Any:
        if isinstance(value, np.ndarray) and value.ndim:
            return value
        try:
            return float(value)
        except (TypeError, ValueError):
            self.error(obj, value)


def _finite(value: Any, widget: Any) -> float | None:
    return value if isinstance(value, float) and math.isfinite(value) else None  # JSON has no other numbers


def _number(value: float | None, widget: Any) -> float:
    return math.nan if value is None else value


def value_trait() -> traitlets.TraitType[Any, Any]:
    """Return the trait that holds the value; the page gets an array with its slopes, and not by this."""
    return _Value(default_value=math.nan).tag(sync=True, to_json=_finite, from_json=_number)
