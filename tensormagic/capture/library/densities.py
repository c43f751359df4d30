"""The distributions of ``scipy.stats`` in captured code: the standard form of each, shifted and scaled.

A distribution is an object, and NumPy's protocol does not reach its methods: captured code sees a stand-in, whose
methods are ours for lazy arrays and SciPy's for others.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import refuse, text_asked_for, values_are_there
from tensormagic.capture.foreign.calls import call_library, on_loan
from tensormagic.capture.foreign.lending import Loan
from tensormagic.capture.inputs.stand_ins import StandIn, noted
from tensormagic.capture.library import kernel_density
from tensormagic.capture.numbers.deferred import Deferred
from tensormagic.capture.values.operands import has_lazy, node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.modules import module_of
from tensormagic.ir.node import Node
from tensormagic.ops.form import to_form
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar

INF = float("inf")
Function = Callable[..., Node]


@dataclass(frozen=True, kw_only=True)
class Density:
    """Represents a distribution in its standard form; functions take the value, then the shape parameters.

    Parameters
    ----------
    log
        The logarithm of the density, or of the probability of a whole number.
    shapes
        The names of the shape parameters.
    low, high
        The support, ends included; ``high`` may be a function of the shape parameters.
    valid
        Whether the shape parameters are allowed.
    cdf, sf, logcdf, logsf, ppf
        Distribution function, survival function, their logarithms, quantile function, where they are captured.
    discrete
        Whether it is one of whole numbers, which has no scale.
    """

    log: Function
    shapes: tuple[str, ...] = ()
    low: float = -INF
    high: float | Function = INF
    valid: Function | None = None
    cdf: Function | None = None
    sf: Function | None = None
    logcdf: Function | None = None
    logsf: Function | None = None
    ppf: Function | None = None
    discrete: bool = False

    def top(self, shapes: list[Node]) -> Node | float:
        """Return the upper end of the support."""
        return self.high(*shapes) if callable(self.high) else self.high

    @property
    def within(self) -> float:
        """Return a value in the support, which replaces values outside of it, so that formulas and derivatives are defined there."""
        if self.discrete:
            return self.low
        if self.low == -INF:
            return 0.0
        return (self.low + self.high) / 2 if not callable(self.high) and self.high < INF else self.low + 1.0


TABLE: dict[str, Density] = {}  # by the names in scipy.stats; densities_table.py fills it
SEVERAL: dict[str, dict[str, Callable[..., Any]]] = {}  # methods of the distributions of vectors


def number(value: Any) -> Node:
    """Return an operand as SciPy's distributions take it: float64, and a NumPy scalar where it has no axes."""
    node = node_of(value)
    node = to_form(node, "scalar") if not node.type.shape else node
    return astype(node, np.float64)


@dataclass(frozen=True)
class Place:
    """Represents the operands of one call: the standardised value, the shape parameters, scale, and whether they are allowed."""

    z: Node
    shapes: list[Node]
    scale: Node
    allowed: Node


def _placed(density: Density, x: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Place:
    given = _bound(density, args, options)
    shapes = [number(given[name]) for name in density.shapes]
    loc, scale = number(given.get("loc", 0.0)), number(given.get("scale", 1.0))
    z = number(x) - loc
    allowed = scalar.greater(scale, 0)
    if density.valid is not None:
        allowed = scalar.logical_and(allowed, density.valid(*shapes))
    return Place(z if density.discrete else z / scale, shapes, scale, allowed)


def _bound(density: Density, args: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    names = (*density.shapes, "loc") if density.discrete else (*density.shapes, "loc", "scale")
    if len(args) > len(names):
        raise TypeError("_parse_args() takes too many positional arguments")
    given = dict(zip(names, args, strict=False)) | options
    missing = [n for n in density.shapes if n not in given]
    unknown = sorted(set(given) - set(names))
    if missing or unknown:
        raise TypeError(f"_parse_args() got wrong arguments: {', '.join(missing or unknown)}")
    return given


def _finish(place: Place, value: Node) -> Tensor:
    """Return the value where the parameters are allowed and the argument is not nan, else nan."""
    known = scalar.logical_and(place.allowed, scalar.logical_not(scalar.isnan(place.z)))
    return wrap(context.record(scalar.where(known, value, np.nan)))


def _log_density(density: Density, place: Place) -> Node:
    inside = scalar.logical_and(
        scalar.greater_equal(place.z, density.low), scalar.less_equal(place.z, density.top(place.shapes))
    )
    if density.discrete:
        inside = scalar.logical_and(inside, scalar.equal(scalar.floor(place.z), place.z))
    value = density.log(scalar.where(inside, place.z, density.within), *place.shapes)
    value = value if density.discrete else value - scalar.log(place.scale)
    return scalar.where(inside, value, -INF)


def _log(density: Density, x: Any, *args: Any, **options: Any) -> Tensor:
    place = _placed(density, x, args, options)
    return _finish(place, _log_density(density, place))


def _plain(density: Density, x: Any, *args: Any, **options: Any) -> Tensor:
    place = _placed(density, x, args, options)
    return _finish(place, scalar.exp(_log_density(density, place)))


def _cumulative(name: str, below: float, above: float) -> Callable[..., Tensor]:
    """Return a method for the probability below a value; ``below`` and ``above`` are its values beyond the ends of the support."""

    def method(density: Density, x: Any, *args: Any, **options: Any) -> Tensor:
        place = _placed(density, x, args, options)
        z = place.z
        under = scalar.less(z, density.low) if density.discrete else scalar.less_equal(z, density.low)
        over = scalar.greater_equal(z, density.top(place.shapes))
        safe = scalar.where(scalar.logical_or(under, over), density.within, z)
        value = _of(density, name)(scalar.floor(safe) if density.discrete else safe, *place.shapes)
        return _finish(place, scalar.where(under, below, scalar.where(over, above, value)))

    return method


def _of(density: Density, name: str) -> Function:
    """Return the function of that name, from its own formula or from that of the complement or the logarithm's argument."""
    own = getattr(density, name)
    if own is not None:
        return own
    if name.startswith("log"):
        return lambda *operands: scalar.log(_of(density, name.removeprefix("log"))(*operands))
    other = density.sf if name == "cdf" else density.cdf
    if other is None:
        raise CaptureError(
            f"{name} of this distribution is not captured", "Call it in a separate cell without %%tensor."
        )
    return lambda *operands: 1 - other(*operands)


def _quantile(density: Density, q: Any, *args: Any, **options: Any) -> Tensor:
    if density.ppf is None:
        raise CaptureError("ppf of this distribution is not captured", "Call it in a separate cell without %%tensor.")
    given = _bound(density, args, options)
    shapes = [number(given[name]) for name in density.shapes]
    loc, scale = number(given.get("loc", 0.0)), number(given.get("scale", 1.0))
    p = number(q)
    allowed = scalar.greater(scale, 0)
    inside = scalar.logical_and(scalar.greater(p, 0), scalar.less(p, 1))
    end = scalar.where(scalar.equal(p, 0), density.low, scalar.where(scalar.equal(p, 1), density.top(shapes), np.nan))
    value = scalar.where(inside, density.ppf(scalar.where(inside, p, 0.5), *shapes), end)
    if density.valid is not None:
        allowed = scalar.logical_and(allowed, density.valid(*shapes))
    return wrap(context.record(scalar.where(allowed, value * scale + loc, np.nan)))


_CUMULATIVE = {
    "cdf": _cumulative("cdf", 0.0, 1.0),
    "sf": _cumulative("sf", 1.0, 0.0),
    "logcdf": _cumulative("logcdf", -INF, 0.0),
    "logsf": _cumulative("logsf", 0.0, -INF),
}


METHODS = ("logpdf", "pdf", "logpmf", "pmf", *_CUMULATIVE, "ppf")


def method_of(name: str, method: str) -> Callable[..., Any] | None:
    """Return our method for a distribution of SciPy; None if there is none."""
    if name in SEVERAL:
        return SEVERAL[name].get(method)
    density = TABLE.get(name)
    if density is None:
        return None
    own = {"logpmf": _log, "pmf": _plain} if density.discrete else {"logpdf": _log, "pdf": _plain, "ppf": _quantile}
    function = (own | _CUMULATIVE).get(method)
    return None if function is None else lambda *args, **options: function(density, *args, **options)


def is_distribution(value: Any) -> bool:
    """Return whether a value is a distribution of SciPy, or one with its parameters."""
    kind = type(value)
    return module_of(kind).startswith("scipy.stats.") and (
        hasattr(value, "logpdf") or hasattr(value, "logpmf") or hasattr(value, "rvs")
    )


def _has_values() -> bool:
    return context.current() is None or values_are_there()


def stand_in(value: Any) -> Any:
    """Return a distribution as captured code sees it."""
    if type(value).__name__ == "gaussian_kde":
        return kernel_density.stand_in(value)
    inner = getattr(value, "dist", None) if hasattr(value, "args") else None
    if inner is not None:
        if (made := _lazy.get(value)) is not None:
            return made  # made in an earlier cell, with lazy parameters
        return Frozen(value, Distribution(inner), value.args, value.kwds)
    return Distribution(value)


def _nothing() -> None:
    """Return None, as a reference to a freed object does."""


def _set(distribution: Any, name: str, value: Any) -> None:
    """Set an attribute of SciPy's distribution; the stand-in has no attributes of its own."""
    on_loan(setattr, (distribution, name, value), {}, Loan(f"the attribute {name} of a distribution"))


_lazy: WeakKeyDictionary[Any, Frozen] = WeakKeyDictionary()  # by SciPy's distribution that cells have returned


class Distribution(StandIn):
    """Represents a distribution as captured code sees it: our methods on lazy arrays, SciPy's on others."""

    def __init__(self, wrapped: Any) -> None:
        vars(self)["__wrapped__"] = wrapped

    def __setattr__(self, name: str, value: Any) -> None:
        _set(self.__wrapped__, name, value)

    @property
    def own_class(self) -> type:
        """Return SciPy's class of the distribution."""
        return type(self.__wrapped__)

    def real(self) -> Any:
        """Return SciPy's own distribution."""
        return self.__wrapped__

    @property
    def identity(self) -> Any:
        """Return SciPy's own distribution."""
        return self.__wrapped__

    @property
    def title(self) -> str:
        """Return the name in ``scipy.stats``."""
        kind = type(self.__wrapped__).__name__
        return getattr(self.__wrapped__, "name", None) or kind.removesuffix("_gen")

    def __call__(self, *args: Any, **options: Any) -> Any:
        lazy = "seed" not in options and any(
            map(has_lazy, (*args, *options.values()))
        )  # what draws from a seed is SciPy's
        made = None if lazy else on_loan(self.__wrapped__, args, options, Loan("a distribution"))
        return Frozen(made, self, args, options)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.__wrapped__, name)
        if not callable(value):
            return value

        def call(*args: Any, **options: Any) -> Any:
            if name != "rvs" and not any(map(has_lazy, (*args, *options.values()))):
                return value(*args, **options)
            own = method_of(self.title, name)
            if own is None:
                return call_library(
                    value, args, options, _refusal(f"scipy.stats.{self.title}.{name}", name, self.title)
                )
            try:
                return own(*args, **options)
            except CaptureError as error:
                return call_library(value, args, options, error)

        return noted(call, value)

    def __repr__(self) -> str:
        return f"{self.__wrapped__!r} (captured)"


class Frozen(StandIn, Deferred):
    """Represents a distribution with its parameters; other code gets SciPy's own, with their values."""

    said = "a distribution"

    def __init__(self, wrapped: Any, of: Distribution, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        vars(self).update(__wrapped__=wrapped, _of=of, _args=args, _options=options, _handed_on=_nothing)

    def __setattr__(self, name: str, value: Any) -> None:
        if not _has_values():
            refuse("a change of a distribution", "Pass size= and random_state= to rvs; or do that outside.")
        own = self.real()
        _set(own, name, value)
        vars(self)["__wrapped__"] = own

    @property
    def identity(self) -> Any:
        """Return SciPy's own distribution."""
        return self.real()

    def __repr__(self) -> str:
        if not _has_values():
            raise text_asked_for()
        return repr(self.real())

    @property
    def own_class(self) -> type:
        """Return SciPy's class of the distribution, where that is known."""
        return type(self.real())

    def real(self) -> Any:
        """Return SciPy's frozen distribution; lazy parameters are replaced by their values if these are available."""
        if self.__wrapped__ is not None:
            return self.__wrapped__
        if not _has_values():
            return self
        made = self._handed_on()
        if made is None:
            made = self._real("parameters")
            _lazy[made] = self
            vars(self)["_handed_on"] = weakref.ref(made)
        return made

    @property
    def parts(self) -> Sequence[Any]:
        """Return the parameters if one is lazy; else none."""
        return [] if self.__wrapped__ is not None else [*self._args, *self._options.values()]

    @property
    def form(self) -> Any:
        """Return what a trace depends on: the distribution and how its parameters are given; SciPy's object itself if it was given."""
        named = tuple(self._options)
        return (self._of.title, len(self._args), named) if self.__wrapped__ is None else (id(self.__wrapped__), self)

    @property
    def again(self) -> Callable[[Sequence[Any]], Any]:
        """Return a function that makes the distribution with other parameters."""
        if (wrapped := self.__wrapped__) is not None:
            return lambda _: wrapped
        of, count, names = self._of, len(self._args), list(self._options)

        def made(parts: Sequence[Any]) -> Any:
            args, options = tuple(parts[:count]), dict(zip(names, parts[count:], strict=True))
            return Frozen(None, of, args, options) if any(map(has_lazy, parts)) else of.__wrapped__(*args, **options)

        return made

    def __getattr__(self, name: str) -> Any:
        if self.__wrapped__ is not None:
            value = getattr(self.__wrapped__, name)
            if not callable(value):
                return value
        elif not callable(getattr(self._of.__wrapped__, name, None)):
            if name.startswith("_") or not _has_values():
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return getattr(self._real(name), name)

        def call(*operands: Any, **named: Any) -> Any:
            lazy = any(map(has_lazy, (*operands, *named.values())))
            if self.__wrapped__ is not None and name != "rvs" and not lazy:
                return getattr(self.__wrapped__, name)(*operands, **named)
            if method_of(self._of.title, name) is not None:
                return getattr(self._of, name)(*operands, *self._args, **self._options, **named)
            if context.current() is None:
                return self._made(name, *operands, **named)
            title = f"scipy.stats.{self._of.title}.{name}"
            return call_library(partial(self._made, name), operands, named, _refusal(title, name, self._of.title))

        return call if self.__wrapped__ is None else noted(call, getattr(self.__wrapped__, name))

    def _made(self, name: str, *operands: Any, **named: Any) -> Any:
        """Return the result of SciPy's own method."""
        whole = self._real(name) if self.__wrapped__ is None else self.__wrapped__
        return getattr(whole, name)(*operands, **named)

    def _real(self, name: str) -> Any:
        """Return SciPy's own distribution, with the values of the parameters."""
        return on_loan(self._of.__wrapped__, self._args, self._options, Loan(f"the {name} of a distribution"))


def _advice(title: str) -> str:
    known = [m for m in METHODS if method_of(title, m) is not None]
    names = (
        f"Captured of it: {', '.join(known)}. "
        if known
        else f"Captured distributions: {', '.join((*TABLE, *SEVERAL))}. "
    )
    return names + "Or call it in a separate cell without %%tensor."


def _refusal(title: str, method: str, distribution: str) -> CaptureError:
    """Return the error for a method that cannot be captured without values."""
    draws = "Draw the numbers in a separate cell, and use the array here."
    return CaptureError(f"{title} is not captured", draws if method == "rvs" else _advice(distribution))
