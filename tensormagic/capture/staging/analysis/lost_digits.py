"""Examines operations while Python runs a function: whether one loses digits that captured code would keep.

A rule for accuracy changes a result by more than rounding where an operation of the text cancels, leaves the range of
its numbers, or is a logarithm near 1. Where none has done that, the result is as good as the best form gives it. A
difference that cancels is recorded (:attr:`Looks.lost`): the function may be run again with differences that are
perturbed by some rounding errors (:meth:`Looks.shaken`), and where that changes no result, the lost digits did not
matter. Any other such operation raises :class:`Lost`.
"""

from __future__ import annotations

import math
import operator
import random
import time
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from math import fabs
from typing import Any

import numpy as np

from tensormagic.capture.staging.analysis.cancelling import (
    DEEP,
    DENOMINATOR,
    DIFFERENCE,
    DIVISOR,
    EXPONENTIAL,
    LOGARITHM,
    POWER,
    QUOTIENT,
    ROOT,
)
from tensormagic.capture.staging.syntax.looked_at import CALL, name_of

KINDS = NO_SQUARES, OF_NUMBERS, OF_ARRAYS = "", "numbers", "arrays"
"""Of what there are squares that may run over: of nothing, of Python's numbers alone, of elements of arrays too."""
_MOST = {False: 2.0**18, True: 2.0**8}
"""How many times larger than a difference its sides may be; by whether any is of 32 bits."""
_DEEP = {False: 2.0**30, True: 2.0**11}
"""The same for a difference in a side of which there is one: times the largest such quotient before it."""
_LEAST, _LARGEST = 1e-290, 1e290
_RANGE = {False: (_LEAST, _LARGEST), True: (1e-30, 1e30)}
_SHORT = {np.dtype(np.float32), np.dtype(np.complex64)}
_LONG = {float, int, bool, complex, np.float64, np.int64}
_LONGEST = 1024  # the largest exponent
_FINE = 8.0  # how many times smaller than its sides a difference may be, wherever it is and whatever follows
_INTEGER, _LONGS = np.dtype(np.int64), np.dtype(np.float64)
_greatest, _smallest = np.maximum.reduce, np.minimum.reduce
_SMALL = 2**18  # elements of a difference that has cancelled: with more, the run is not repeated
_ARRAY = 16  # numbers whose examination takes as long as a small array's
_SHAKES = 2.0, 4.0  # a perturbation, in rounding errors of a side: between these
_BLOCK = 2**14  # elements of a block
_FAR = 2.0**8  # how many times larger a side is than a perturbed difference
_ALIKE = {False: 2.0**-30, True: 2.0**-12}
"""How far apart results may be where differences are off, as a part of them."""


class Lost(Exception):  # noqa: N818 (it is no error of the user's)
    """Raised where digits are lost that captured code may keep."""


def _is_short(*values: Any) -> bool:
    return any(v.__class__ not in _LONG and getattr(v, "dtype", None) in _SHORT for v in values)


class Looks:
    """Examines the numbers of a run.

    Parameters
    ----------
    quick
        The seconds of this thread after which a cancelling difference is an error: running again takes longer than
        capturing.
    excused
        Returns whether no rule applies in the texts; called when a difference has lost digits.
    patience
        The number of numbers examined before ``excused`` is called anyway, as it then takes less time.
    squares
        Returns the kind of squares whose overflow rules prevent, after ``excused`` was called: one of :data:`KINDS`.
    asking
        The seconds that ``excused`` takes: a run shorter than half of them is repeated instead.

    Attributes
    ----------
    lost
        Whether a difference has lost digits.
    free
        Whether lost digits no longer matter, since no rule would keep them.
    blind
        Whether nothing matters, not even ranges.
    narrow
        Whether only the ranges of Python's numbers matter.
    under
        Whether NumPy has computed numbers too small to have all digits.
    """

    def __init__(
        self,
        quick: float = math.inf,
        excused: Callable[[], bool] | None = None,
        patience: float = math.inf,
        squares: Callable[[], str] = lambda: NO_SQUARES,
        asking: float = 0.0,
    ) -> None:
        self.lost = self.under = self.free = self.blind = self.narrow = False
        self._excused, self._seen_squares = excused, squares
        self._worst = _FINE
        self._exponentials_under = self._zeros = False
        self._quick, self._asking = quick, asking
        self._left = patience
        self._until = self._begun = self._short = math.inf

    def names(self) -> dict[str, Any]:
        """Return the functions that examine operations, by the names that instrumented code has for them."""
        looks = _OTHERS | {EXPONENTIAL: self._exponential, DENOMINATOR: self._denominator}
        looks |= dict.fromkeys((ROOT, QUOTIENT), self._with_zeros)
        own: dict[str, Any] = {name_of(kind): partial(self._look, look) for kind, look in looks.items()}
        for deep in (False, True):
            for op, does in _OPERATIONS.items():
                differs = does if self.free else self._differs(does, deep)
                kind = DEEP if deep else DIFFERENCE
                own[name_of(kind, op)] = differs
                beside = _right if self.free else _beside(differs)
                own[name_of(kind, op, True)] = _into(differs) if op == CALL else beside
        return own

    def shaken(self, sign: float) -> dict[str, Any]:
        """Return the functions for a run whose differences are perturbed by rounding errors of their sides.

        Each error is random in size and of a random direction, times ``sign``.
        """
        own, shaking = self.names(), _Perturbation(sign)
        own |= dict.fromkeys(map(name_of, _OF_VALUES), _as_it_is)  # these values have been examined
        for op, does in _OPERATIONS.items():
            for kind in (DIFFERENCE, DEEP):
                differs = own[name_of(kind, op)] = partial(shaking.differs, does)
                own[name_of(kind, op, True)] = _into(differs) if op == CALL else partial(shaking.beside, does)
        return own

    def begins(self) -> None:
        """Note that the run begins now."""
        wall = time.perf_counter()
        self._until, self._short, self._begun = wall + self._quick, wall + self._asking / 2, time.thread_time()

    def holds(self, stands: Callable[[], bool]) -> bool:
        """Return whether a result has the digits of captured code although a difference has lost some; the quicker test runs first.

        ``stands``: whether it is the same with perturbed differences.
        """
        first, second = (stands, self._is_excused) if self._waits() else (self._is_excused, stands)
        return first() or second()

    def ends(self, result: Any) -> Any:
        """Return the result, which must have no inf or nan: otherwise an intermediate value may have overflowed."""
        if self.blind:
            return result
        if self._zeros and self.under:
            raise Lost  # a 0 may be a number that was too small
        for whole in result if isinstance(result, tuple | list) else (result,):
            for (part,) in () if whole is None else _blocks(whole):
                if not np.all(np.isfinite(part)):
                    raise Lost
        return result

    def _differs(self, does: Callable[[Any, Any], Any], deep: bool) -> Callable[[Any, Any], Any]:
        """Return a function that computes a difference, or a sum, and examines it."""
        less = does is operator.sub

        def differs(left: Any, right: Any) -> Any:
            result = does(left, right)
            if self.free:
                return result
            self._left -= 1
            if self._left < 0 and self._is_excused():
                return result
            if isinstance(result, float):  # NumPy's float64, too
                if not fabs(result) * _FINE >= fabs(left):
                    self._number(left, right, result, deep)
                return result
            kind = getattr(result, "dtype", _INTEGER).kind
            if kind in "fc":
                self._array(left, right, result, deep, less)
            elif kind not in "biu":
                raise Lost
            return result

        return differs

    def _look(self, look: Callable[[Any], Any], value: Any) -> Any:
        """Return a value, after examining it where that matters."""
        if self.narrow and value.__class__ is np.ndarray:
            return value
        self._left -= 1 if value.__class__ is float else _ARRAY
        if self.blind or (self._left < 0 and self._is_excused() and self.blind):
            return value
        return look(value)

    def _number(self, left: Any, right: Any, result: float, deep: bool) -> None:
        size, most = fabs(result), fabs(left)
        if math.isnan(size):
            raise Lost
        self._loses(most / size if size else math.inf if most else 1.0, deep, _is_short(left, right), 1)

    def _array(self, left: Any, right: Any, result: Any, deep: bool, less: bool) -> None:
        self._left -= _ARRAY
        count = result.size
        beside = np.divide(left, result) if 0 < count <= _BLOCK and result.dtype == _LONGS else None
        quotient = math.nan if beside is None else _largest(beside)
        if quotient <= _FINE:
            return
        itself = _itself(left, right, result) if less and count <= _SMALL else None
        if beside is not None:
            if itself is not None:
                beside[itself] = 0
                quotient = _largest(beside)
            if math.isnan(quotient) and beside.ndim:  # 0 less 0 is 0
                beside[(result == 0) & (left == 0)] = 0
                quotient = _largest(beside)
            if quotient <= _FINE or self._keeps(quotient, deep, short=True):
                return
            if not math.isnan(quotient):
                self._loses(quotient, deep, _is_short(left, right), count)
                return
        short = _is_short(left, right, result)
        if itself is not None:
            left = np.array(np.broadcast_to(left, result.shape))
            left[itself] = 0
        for beside, own in _blocks(left, result) if count else ():
            size, most = (np.abs(own), np.abs(beside)) if result.dtype.kind == "c" else (own, beside)
            quotients = np.divide(most, size)
            quotient = _largest(quotients)
            if math.isnan(quotient):  # 0 less 0 is 0
                size, most = np.abs(own), np.abs(beside)
                quotient = float((most / np.where((size == 0) & (most == 0), 1, size)).max())
            self._loses(quotient, deep, short, count)

    def _loses(self, quotient: float, deep: bool, short: bool, count: int) -> None:
        """Note that a difference is so many times smaller than a side, which is about as large as the other one."""
        if self._keeps(quotient, deep, short):
            return
        again = not math.isnan(quotient) and count <= _SMALL
        if not (again and self._waits()):
            if self._is_excused():
                return
            if not again or self._takes_long():
                raise Lost
        self.lost = True

    def _waits(self) -> bool:
        """Return whether the rules have not been checked yet, and the run is so short that running it twice more takes less time."""
        short = self._asking > 0 and self._excused is not None
        return short and (time.perf_counter() <= self._short or time.thread_time() - self._begun <= self._asking / 2)

    def _keeps(self, quotient: float, deep: bool, short: bool) -> bool:
        """Return whether a difference that is so many times smaller than a side has digits enough."""
        keeps = quotient <= _MOST[short] and not (deep and quotient * self._worst > _DEEP[short])
        if keeps:
            self._worst = max(self._worst, quotient)
        return keeps

    def excuse(self, free: bool) -> None:
        """Note whether no rule applies."""
        self.free = free
        self.blind = free and self._seen_squares() == NO_SQUARES
        self.narrow = free and self._seen_squares() == OF_NUMBERS

    def _is_excused(self) -> bool:
        """Return whether no rule applies; checked once, and not counted as time of the run."""
        if self._excused is not None:
            wall, own = time.perf_counter(), time.thread_time()
            self.excuse(self._excused())
            self._excused = None
            self._until += time.perf_counter() - wall
            self._begun += time.thread_time() - own
        return self.free

    def _takes_long(self) -> bool:
        """Return whether the run takes long; the cheap wall clock is read first, as it is never behind the thread's."""
        return time.perf_counter() > self._until and time.thread_time() - self._begun > self._quick

    def _exponential(self, value: Any) -> Any:
        """Check that exponentials do not overflow; those that underflow must be no denominators."""
        least, most = _RANGE[_is_short(value)]
        for (part,) in _blocks(value):
            size = np.abs(part)
            if not np.all(size < most):
                raise Lost
            self._exponentials_under = self._exponentials_under or not np.all(size > least)
        return value

    def _denominator(self, value: Any) -> Any:
        """Return a divisor; raise Lost if it may depend on exponentials too small to have all digits."""
        return _ranged(value) if self._exponentials_under else value

    def _with_zeros(self, value: Any) -> Any:
        """Return numbers; raise Lost unless they are far from the ends of their range, or 0 where nothing was too small."""
        if _is_within(value):
            return value
        if isinstance(value, np.ndarray | np.generic) and not np.all(value):
            self._zeros = True
            _ranged(np.where(value == 0, 1, value))
            return value
        return _ranged(value)


def _largest(numbers: Any) -> float:
    """Return the largest absolute value in a new array; nan if it contains one."""
    return float(_greatest(np.abs(numbers, out=numbers if isinstance(numbers, np.ndarray) else None), axis=None))


def _blocks(*values: Any) -> Iterable[tuple[Any, ...]]:
    """Return parts of values that fit the cache: temporaries of large arrays would need new memory, which takes longer."""
    if max(map(np.size, values)) <= _BLOCK:
        return (values,)
    found = np.nditer(values, ["external_loop", "buffered"], buffersize=_BLOCK)
    return ((part,) for part in found) if len(values) == 1 else found


def _itself(left: Any, right: Any, result: Any) -> Any:
    """Return where a difference subtracts an element from itself, at one place in memory: 0 has all digits there; None if nowhere."""
    arrays = type(left) is type(right) is np.ndarray
    if not arrays or not left.ndim or left.dtype != right.dtype or not np.may_share_memory(left, right):
        return None
    sides = (left.strides, left.shape), (right.strides, right.shape)
    between = left.__array_interface__["data"][0] - right.__array_interface__["data"][0]
    if sides[0] == sides[1] and between:
        return None  # of a stencil: no element is subtracted from itself
    return _where_alike(*sides, between, result.shape)


_Layout = tuple[tuple[int, ...], tuple[int, ...]]


@lru_cache(maxsize=32)
def _where_alike(left: _Layout, right: _Layout, between: int, shape: tuple[int, ...]) -> Any:
    """Return where two arrays of some strides and shapes, so many bytes apart, have the same element; None if nowhere."""
    alike = _places(*left, shape) + between == _places(*right, shape)
    return alike if alike.any() else None


def _places(strides: tuple[int, ...], own: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """Return the byte offsets of the elements of an array from its first one, broadcast to ``shape``."""
    place = np.zeros(shape, np.intp)
    for k, (stride, size) in enumerate(zip(strides, own, strict=True), len(shape) - len(own)):
        index = np.arange(shape[k]).reshape(-1, *[1] * (len(shape) - k - 1))
        place += index * (stride if size > 1 else 0)
    return place


def _beside(differs: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a function that examines an in-place sum or difference, and returns its right operand."""

    def beside(left: Any, right: Any) -> Any:
        differs(left, right)
        return right

    return beside


def _into(differs: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], None]:
    """Return a function that stores an examined sum or difference into an array, as a ufunc with an ``out`` does."""

    def into(left: Any, right: Any, target: Any) -> None:
        np.copyto(target, differs(left, right), casting="same_kind")

    return into


def _as_it_is(value: Any) -> Any:
    return value


def _right(_: Any, right: Any) -> Any:
    return right


class _Perturbation:
    """Perturbs differences by some rounding errors of their sides, where these are much larger."""

    def __init__(self, sign: float) -> None:
        self._sign = sign
        self._draw, self._numbers = random.Random(0).random, np.random.default_rng(0)  # noqa: S311 (no secret)

    def differs(self, does: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
        """Return a difference, or a sum, perturbed."""
        result = does(left, right)
        if isinstance(result, float):
            size, most = fabs(result), fabs(left)
            if most <= _FAR * size:
                return result
            return type(result)(result + (most + size) * _rounding(left, right) * self._drawn())
        if getattr(result, "dtype", _INTEGER).kind not in "fc":
            return result
        at, off = self._off(left, right, result)
        if at is None:
            return result
        made = np.array(result)
        made[at] += off
        return made[()]

    def beside(self, does: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
        """Return the right operand of an in-place sum or difference, changed so that the result is perturbed."""
        result = does(left, right)
        if isinstance(result, float):
            off = self.differs(does, left, right) - result
            return right + off if does is operator.add else right - off
        if getattr(result, "dtype", _INTEGER).kind not in "fc":
            return right
        at, off = self._off(left, right, result)
        if at is None:
            return right
        made = np.array(np.broadcast_to(right, result.shape), np.result_type(right, result))
        made[at] += off if does is operator.add else -off
        return made

    def _off(self, left: Any, right: Any, result: Any) -> tuple[Any, Any]:
        """Return where numbers are perturbed, and by how much; None and None if nowhere."""
        if result.dtype == _LONGS and 0 < result.size <= _BLOCK:
            quotients = np.asarray(np.divide(left, result))
            far = np.abs(quotients, out=quotients) > _FAR  # not where 0 is subtracted from 0
        else:
            far = np.abs(left) > _FAR * np.abs(result)
        if not far.any():
            return None, None
        whole = left if np.shape(left) == far.shape else np.broadcast_to(left, far.shape)
        most, size = np.abs(np.asarray(whole)[far]), np.abs(np.asarray(result)[far])
        least, longest = _SHAKES
        part = 2 * self._numbers.random(size.shape) - 1
        off = np.copysign(least + (longest - least) * np.abs(part), self._sign * part) * _rounding(left, right, result)
        return far, ((most + size) * off * (1 + 1j if result.dtype.kind == "c" else 1)).astype(result.dtype)

    def _drawn(self) -> float:
        least, longest = _SHAKES
        part = 2 * self._draw() - 1
        return self._sign * math.copysign(least + (longest - least) * fabs(part), part)


def _rounding(*values: Any) -> float:
    """Return the relative rounding error of numbers."""
    return 2.0**-23 if _is_short(*values) else 2.0**-52


def alike(one: Any, other: Any) -> bool:
    """Return whether results are the same up to what a first call may lose, number for number."""
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(alike, one, other))
    if one is None:
        return True
    if np.shape(one) != np.shape(other) or getattr(one, "dtype", None) != getattr(other, "dtype", None):
        return False
    if isinstance(one, int) or getattr(one, "dtype", np.dtype(float)).kind not in "fc":
        return bool(np.all(one == other))
    return bool(np.all(np.abs(one - other) <= _ALIKE[_is_short(one)] * np.abs(one)))


def _is_within(value: Any) -> bool:
    """Return whether float64 numbers, if they are not many, are quickly seen to be far from the ends of their range."""
    if isinstance(value, float):
        return _LEAST < fabs(value) < _LARGEST
    if not isinstance(value, np.ndarray) or value.dtype != _LONGS or not 0 < value.size <= _BLOCK:
        return False
    size = np.abs(value)
    return bool(_smallest(size, axis=None) > _LEAST and _greatest(size, axis=None) < _LARGEST)


def _ranged(value: Any) -> Any:
    """Return numbers; raise Lost unless they are far from the ends of their range."""
    if _is_within(value):
        return value
    least, most = _RANGE[_is_short(value)]
    for (part,) in _blocks(value):
        size = np.abs(part)
        if not (np.all(size > least) and np.all(size < most)):
            raise Lost
    return value


def _logarithmic(value: Any) -> Any:
    """Return numbers; raise Lost if one is so close to 1 that its logarithm loses digits."""
    short = _is_short(_ranged(value))
    for (part,) in _blocks(value):
        if not np.all(np.abs(part - 1) * _MOST[short] > 1):
            raise Lost
    return value


def _exponent(value: Any) -> Any:
    """Return exponents; raise Lost if one is large."""
    if not np.all(np.abs(value) <= _LONGEST):
        raise Lost
    return value


_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {"Add": operator.add, "Sub": operator.sub, CALL: np.add}
_OF_VALUES = (ROOT, LOGARITHM, EXPONENTIAL, POWER, DENOMINATOR, QUOTIENT, DIVISOR)
_OTHERS: dict[str, Callable[[Any], Any]] = {DIVISOR: _ranged, LOGARITHM: _logarithmic, POWER: _exponent}
