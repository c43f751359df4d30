"""Kinds of values that code may be given: NumPy's, Python's, pandas', and objects of classes that look like numbers or arrays."""

import enum
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

pandas = pytest.importorskip("pandas")


class Units(np.ndarray):
    """Numbers with a scale, which every ufunc brings in."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        options.pop("out", None)
        return getattr(ufunc, method)(*(1000 * np.asarray(v) if isinstance(v, Units) else v for v in inputs), **options)


class Backwards(np.ndarray):
    """Adds by subtracting."""

    def __add__(self, other):
        return np.asarray(self) - other

    __radd__ = __add__

    def sum(self, *args, **options):
        return -np.asarray(self).sum(*args, **options)


class Noted(np.ndarray):
    """An array with a note, that computes as any array does."""

    note = "metres"


class Metres(float):
    """A float with operators of its own."""

    def __mul__(self, other):
        return 1000 * float(self) * other

    __rmul__ = __mul__


class Named(float):
    """A float that computes as any float does."""

    label = "rate"


class Level(enum.IntEnum):
    """Numbers with names."""

    LOW = 2


class Rate(float, enum.Enum):
    """Floats with names, told apart by identity."""

    SLOW = 0.5


class Held:
    """An object that NumPy reads as an array, and no more."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype or float)


class Duck(Held):
    """An object that NumPy reads as an array, with a sum of its own."""

    def sum(self, *args, **options):
        return 100.0


class Quantity(Held):
    """An object with operators of its own, which NumPy asks."""

    __array_priority__ = 100

    def __mul__(self, other):
        return 1000 * np.asarray(self.values) * other

    __rmul__ = __add__ = __radd__ = __mul__

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return getattr(ufunc, method)(*(1000 * np.asarray(v) if isinstance(v, Quantity) else v for v in inputs))


@dataclass(eq=False)
class Record:
    """A container that NumPy reads as an array, too."""

    values: Any

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype or float)


class Interface:
    """An object that says where its numbers lie."""

    def __init__(self, values):
        self.held = np.array(values, float)
        self.__array_interface__ = self.held.__array_interface__


class Countable:
    """An object that is no array, and that float() takes."""

    def __float__(self):
        return 2.5


def memory_map(values):
    """A memory map without a file's name, as np.load(mmap_mode=...) gives one."""
    import tempfile

    with tempfile.TemporaryFile() as file:
        made = np.memmap(file, float, "w+", shape=(len(values),))
        made[:] = values
        return made


ROW = [1.0, 7.0, 2.0, 3.0]


KINDS = {
    "an array": lambda: np.array(ROW),
    "a masked array": lambda: np.ma.array(ROW, mask=[False, True, False, False]),
    "a masked array without a mask": lambda: np.ma.array(ROW),
    "a masked array of integers": lambda: np.ma.array([1, 0, 2, 3], mask=[0, 1, 0, 0]),
    "a matrix": lambda: np.matrix([[1.0, 2.0], [3.0, 4.0]]),
    "a memory map": lambda: memory_map(ROW),
    "a recarray of floats": lambda: np.array(ROW).view(np.recarray),
    "a recarray": lambda: np.rec.fromarrays([ROW, ROW], names="a,b"),
    "a chararray": lambda: np.char.array(["a", "b", "c", "d"]),
    "a structured array": lambda: np.zeros(4, [("a", float), ("b", int)]),
    "dates": lambda: np.array(["2020-01-01"] * 4, "datetime64[D]"),
    "time differences": lambda: np.arange(4).astype("timedelta64[s]"),
    "one time difference": lambda: np.timedelta64(3, "s"),
    "one date": lambda: np.datetime64("2020-01-01"),
    "a long double array": lambda: np.array(ROW, np.longdouble),
    "a long double": lambda: np.longdouble("0.1"),
    "a complex long double": lambda: np.clongdouble(1 + 2j),
    "half precision": lambda: np.array(ROW, np.float16),
    "one of half precision": lambda: np.float16(0.1),
    "a swapped array": lambda: np.array(ROW, ">f8"),
    "an object array": lambda: np.array(ROW, object),
    "an object array without axes": lambda: np.array(2.0, object),
    "strings": lambda: np.array(["a", "b", "c", "d"]),
    "fractions": lambda: np.array([Fraction(1, 3)] * 4),
    "a Fraction": lambda: Fraction(1, 3),
    "a Decimal": lambda: Decimal("0.1"),
    "a Series": lambda: pandas.Series(ROW),
    "a Series with labels": lambda: pandas.Series(ROW, index=list("dabc")),
    "a Series of single precision": lambda: pandas.Series(ROW, dtype=np.float32),
    "a Series with gaps": lambda: pandas.Series([1.0, np.nan, 2.0, 3.0]),
    "a Series of integers with gaps": lambda: pandas.Series([1, None, 2, 3], dtype="Int64"),
    "a Series of nullable integers": lambda: pandas.Series([1, 5, 2, 3], dtype="Int64"),
    "a Series of nullable floats": lambda: pandas.Series(ROW, dtype="Float64"),
    "a Series of categories": lambda: pandas.Series([1, 2, 1, 2], dtype="category"),
    "a Series of dates": lambda: pandas.Series(pandas.date_range("2020", periods=4)),
    "a Series of texts": lambda: pandas.Series(list("abcd")),
    "a Series of objects": lambda: pandas.Series(ROW, dtype=object),
    "categories": lambda: pandas.Categorical([1, 2, 1, 2]),
    "an array of pandas": lambda: pandas.array([1, 5, 2, 3]),
    "a DataFrame": lambda: pandas.DataFrame({"a": ROW, "b": [4.0, 3.0, 2.0, 1.0]}),
    "a DataFrame with gaps": lambda: pandas.DataFrame({"a": ROW, "b": [4.0, np.nan, 2.0, 1.0]}),
    "a DataFrame of two kinds": lambda: pandas.DataFrame({"a": ROW, "b": [4, 3, 2, 1]}),
    "an index": lambda: pandas.Index(ROW),
    "an index with gaps": lambda: pandas.Index([1.0, np.nan, 2.0, 3.0]),
    "units": lambda: np.array(ROW).view(Units),
    "operators of its own": lambda: np.array(ROW).view(Backwards),
    "a subclass that adds a note": lambda: np.array(ROW).view(Noted),
    "a float with operators": lambda: Metres(2.0),
    "a float with a label": lambda: Named(0.1),
    "an integer with a name": lambda: Level.LOW,
    "a float with a name": lambda: Rate.SLOW,
    "an object read as an array": lambda: Held(ROW),
    "an object with a sum": lambda: Duck(ROW),
    "a quantity": lambda: Quantity(ROW),
    "a dataclass read as an array": lambda: Record(np.array(ROW)),
    "an interface": lambda: Interface(ROW),
    "an object that is a float": Countable,
    "a truth value of NumPy's": lambda: np.True_,
    "a small integer of NumPy's": lambda: np.int8(3),
    "a single precision number": lambda: np.float32(0.1),
}
