"""Numbers and arrays inside objects whose values were seen to change, as inputs of a trace, like those of globals.

At first the contents of an object or a container are constants of a trace, which is captured again when a value
differs. If nothing but such values has changed since an earlier trace, they are made inputs, by the mechanism of
``arrays_in_objects.py``: lazy values are put into their places while the function is captured. The trace with
constants is made as well, and decides: if the other one cannot be captured (the value is a size, a key, a text),
leaves something behind, or has other results, the places stay constants.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tensormagic.functions.reads.arrays_in_objects import Inside, held, is_number, places_of
from tensormagic.functions.reads.record import ANYTHING, Check, Record

LIMIT = 64  # places at once
_ONE_BY_ONE = 4  # places that are tried one by one, if all of them together cannot be inputs


def moved(record: Record) -> tuple[Inside, ...]:
    """Return the places whose values have changed, if nothing else has and each may be an input, or nothing."""
    if record.why:
        return ()
    found: dict[Any, Inside] = {}
    for check in record.checks:
        if check.holds():
            continue
        places = _moved_in(check, record)
        if not places or len(found) > LIMIT:
            return ()
        found |= {space.spot: space for space in places}
    return () if found and record.typed() else tuple(found.values())


def arrays_of(record: Record) -> tuple[Inside, ...]:
    """Return the places that hold arrays, each the only one of its array."""
    if record.why or record.typed():
        return ()
    arrays = [check.operands[0] for check in record.checks if check.kind == "array"]
    found = [list(_places_of(array, record.checks)) for array in arrays if _kind(array) is not None]
    places = [Inside(told, [place], moving=True) for one in found if len(one) == 1 for place, told in one]
    return tuple(places) if len(places) <= LIMIT else ()


def _moved_in(check: Check, record: Record) -> list[Inside]:
    """Return the changed places of one check, or nothing if something else has changed."""
    if check.kind == "array":
        places = list(_places_of(check.operands[0], record.checks))
        return [Inside(told, [place], moving=True) for place, told in places] if len(places) == 1 else []
    if check.place is None:
        return []
    if check.kind != "items":
        return _one(check.place, check.operands[2], check.told)
    items, _, before = check.operands
    if len(items) != len(before):
        return []
    changed = [
        (place, old, told)
        for (place, told), old, now in zip(places_of(check), before, items, strict=True)
        if old is not now and old is not ANYTHING
    ]
    places = [_one(place, old, told) for place, old, told in changed]
    return [space for found in places for space in found] if all(places) else []


def _one(place: tuple[Any, Any], before: Any, told: str) -> list[Inside]:
    kind = _kind(held(*place))
    return [Inside(told, [place], moving=True)] if kind is not None and kind == _kind(before) else []


def _kind(value: Any) -> Any:
    """Return what must stay the same of the values of a place, or None for a value that is no input."""
    if type(value) is np.ndarray:
        return (value.dtype, value.ndim) if value.dtype.kind in "biufc" else None
    return type(value) if is_number(value) and type(value).__module__ in {"builtins", "numpy"} else None


def _places_of(array: Any, checks: Iterable[Check]) -> Iterable[tuple[tuple[Any, Any], str]]:
    """Yield the places that hold an array, with their names."""
    for check in checks:
        yield from ((place, told) for place, told in places_of(check) if held(*place) is array)


def choices_of(places: Sequence[Inside]) -> list[tuple[Inside, ...]]:
    """Return which places are tried together: all of them, and then each alone."""
    alone = [(space,) for space in places] if 1 < len(places) <= _ONE_BY_ONE else []
    return [tuple(places), *alone]


def agree(results: Sequence[Any], others: Sequence[Any]) -> bool:
    """Return whether two traces of one function have the same results, up to rounding of values computed at capture."""
    return len(results) == len(others) and all(map(_agree, results, others))


def _agree(one: Any, other: Any) -> bool:
    if type(one) is not type(other) or np.shape(one) != np.shape(other):
        return False
    one, other = np.asarray(one), np.asarray(other)
    if one.dtype != other.dtype:
        return False
    if one.dtype.kind not in "fc":
        return bool(np.array_equal(one, other))
    with np.errstate(all="ignore"):
        finite = one[np.isfinite(one)]
        scale = float(np.max(np.abs(finite), initial=0.0))
        near = float(np.sqrt(np.finfo(one.dtype).eps))
        return bool(np.allclose(other, one, rtol=near, atol=near * scale, equal_nan=True))
