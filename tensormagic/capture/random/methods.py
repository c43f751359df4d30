"""The methods of random generators in captured code: arguments as NumPy takes them, and the shape and type of what is drawn."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import refuse, refuse_ambiguous_integer, refuse_foreign_store
from tensormagic.capture.hooks import hooks
from tensormagic.capture.stores.place import Buffer
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, as_size, wrap
from tensormagic.ir.errors import DTypeError, ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.type import Size
from tensormagic.ops.draws.random import draw
from tensormagic.ops.draws.state import put_back
from tensormagic.ops.indices.gather import gather, take_along_axis
from tensormagic.ops.leaf import iota, size_node
from tensormagic.ops.move import reshape
from tensormagic.ops.move_kind import broadcast_shapes, normalise_axis

_FLOATS = (
    "normal loc=0.0 scale=1.0; uniform low=0.0 high=1.0; laplace loc=0.0 scale=1.0; logistic loc=0.0 scale=1.0; "
    "gumbel loc=0.0 scale=1.0; lognormal mean=0.0 sigma=1.0; exponential scale=1.0; rayleigh scale=1.0; gamma shape scale=1.0; "
    "beta a b; chisquare df; noncentral_chisquare df nonc; f dfnum dfden; noncentral_f dfnum dfden nonc; standard_t df; "
    "standard_cauchy; triangular left mode right; vonmises mu kappa; wald mean scale; weibull a; power a; pareto a"
)
_COUNTS = "poisson lam=1.0; binomial n p; geometric p; hypergeometric ngood nbad nsample; negative_binomial n p; zipf a; logseries p"
_REQUIRED = inspect.Parameter.empty


_HELD: weakref.WeakKeyDictionary[Buffer, Any] = weakref.WeakKeyDictionary()  # for each state


class Stateful:
    """Base of objects with random state, which are lent to uncaptured functions."""

    buffer: Buffer
    origin: Any
    """The notebook's own object it stands for; None for one that captured code has made."""

    def handed(self) -> Any:
        """Return what an uncaptured function gets: the notebook's own object, or :meth:`lent`."""
        return self.lent() if self.origin is None else self.origin

    @property
    def held(self) -> Any:
        """Return NumPy's generator that an object of a library has kept, and that has the state from then on; None if there is none."""
        return _HELD.get(self.buffer)

    def keep(self, generator: Any) -> None:
        """Draw at once from now on, from what was handed: an object of a library has kept it, and may draw at any time."""
        if self.held is not None:
            return
        if generator is self.origin:
            put_back(generator, hooks.compute([self.buffer.node])[0])
        bits = isinstance(generator, np.random.BitGenerator)
        _HELD[self.buffer] = np.random.Generator(generator) if bits else generator

    def lent(self) -> Any:
        """Return a NumPy object in the state that captured code has left."""
        raise NotImplementedError

    def continue_from(self, generator: Any) -> None:
        """Continue in the state of a NumPy generator."""
        raise NotImplementedError


class Draws(Stateful):
    """Base of generators: the place of the state, and whether the generator is a legacy one."""

    legacy: bool
    samples: list[Node]

    def next(
        self,
        method: str,
        operands: Mapping[str, Node],
        size: Any,
        *,
        dtype: Any = np.float64,
        form: Any = "python",
        options: tuple[tuple[str, Any], ...] = (),
        shape: tuple[Size, ...] | None = None,
    ) -> Node:
        """Draw a sample of shape ``size``, or if that is None of the operands' common shape, unless ``shape`` is given."""
        sizes = None if size is None else _sizes(size)
        if shape is None:
            common = broadcast_shapes([n.type.shape for n in operands.values()]) if sizes is None else sizes
            shape = common
        own = "array" if shape or sizes is not None else form
        if own == "python" and np.dtype(dtype).kind == "f":
            dtype = np.float64  # a Python float, whatever the precision
        state, sample = draw(
            self.buffer.node, method, operands, size=sizes, shape=shape, dtype=dtype, form=own, legacy=self.legacy,
            options=options,
        )  # fmt: skip
        self.buffer.store(state)
        capture = context.current()
        if capture is not None and not capture.heap.trials:
            self.samples.append(sample)
        return context.record(sample)


def _sizes(size: Any) -> tuple[Size, ...]:
    refuse_ambiguous_integer(size)
    found = tuple(map(as_size, size)) if isinstance(size, tuple | list) else (as_size(size),)
    if any(isinstance(n, int) and n < 0 for n in found):
        raise ValueError("negative dimensions are not allowed")
    return tuple(map(context.settle, found))


def _operand(value: Any, name: str) -> Node:
    node = node_of(value)
    if node.type.dtype.kind == "c":
        raise DTypeError(f"{name} is complex: random generators take real parameters", "Take its real part.")
    return node


def _bound(text: str, *more: tuple[str, Any]) -> tuple[str, inspect.Signature]:
    """Return a method's name and its signature."""
    name, *parts = text.split()
    pairs = [(n, float(v) if v else _REQUIRED) for n, _, v in (p.partition("=") for p in parts)]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return name, inspect.Signature([inspect.Parameter(n, kind, default=d) for n, d in (*pairs, *more)])


def _arguments(
    name: str, signature: inspect.Signature, args: tuple[Any, ...], options: dict[str, Any]
) -> dict[str, Any]:
    try:
        bound = signature.bind(*args, **options)
    except TypeError as error:
        raise TypeError(f"{name}(): {error}") from None
    bound.apply_defaults()
    return bound.arguments


def _plain(text: str, dtype: Any) -> tuple[str, Callable[..., Any]]:
    """Return the name and the method of a distribution whose parameters are its operands."""
    name, signature = _bound(text, ("size", None))

    def method(self: Draws, *args: Any, **options: Any) -> Any:
        given = _arguments(name, signature, args, options)
        size = given.pop("size")
        operands = {k: _operand(v, k) for k, v in given.items()}
        return wrap(self.next(name, operands, size, dtype=dtype))

    return name, method


def _standard(name: str, text: str, *more: str) -> Callable[..., Any]:
    """Return a method of ``Generator`` that takes ``dtype`` and ``out``."""
    _, signature = _bound(
        text, ("size", None), ("dtype", np.float64), *((m, "zig") for m in more), ("out", None)
    )  # fmt: skip

    def method(self: Draws, *args: Any, **options: Any) -> Any:
        given = _arguments(name, signature, args, options)
        dtype, out, size = np.dtype(given.pop("dtype")), given.pop("out"), given.pop("size")
        if dtype not in {np.dtype(np.float32), np.dtype(np.float64)}:
            raise TypeError(f"Unsupported dtype {dtype!r} for {name}")
        fixed = [(m, given.pop(m)) for m in more]
        operands = {k: _operand(v, k) for k, v in given.items()}
        if out is not None:
            if not isinstance(out, Tensor):
                refuse_foreign_store(f"{name} with out=")
            if out.dtype != dtype:
                raise TypeError(f"Supplied output array has the wrong type. Expected {dtype}, got {out.dtype}")
            size = out.type.shape if size is None else size
        sample = self.next(name, operands, size, dtype=dtype, options=(("dtype", dtype.name), *fixed))
        if out is None:
            return wrap(sample)
        out[...] = wrap(sample)
        return out

    return method


# integers -------------------------------------------------------------------------------------------------------------


def _range(low: Any, high: Any) -> dict[str, Node]:
    low, high = (0, low) if high is None else (low, high)
    return {"low": _operand(low, "low"), "high": _operand(high, "high")}


def _integers(
    self: Draws, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False
) -> Any:
    """Implement ``Generator.integers``."""
    kind = np.dtype(dtype)
    options = (("dtype", kind.name), ("endpoint", bool(endpoint)))
    form = "python" if dtype in (int, bool) else "scalar"
    return wrap(self.next("integers", _range(low, high), size, dtype=kind, form=form, options=options))


def _randint(self: Draws, low: Any, high: Any = None, size: Any = None, dtype: Any = int) -> Any:
    """Implement ``RandomState.randint``."""
    kind = np.dtype(dtype)
    form = "python" if dtype in (int, bool) else "scalar"
    return wrap(self.next("randint", _range(low, high), size, dtype=kind, form=form, options=(("dtype", kind.name),)))


# numbers of the global generator --------------------------------------------------------------------------------------


def _sampled(self: Draws, size: Any = None) -> Any:
    """Implement ``RandomState.random_sample``."""
    return wrap(self.next("random_sample", {}, size))


def _rand(self: Draws, *shape: Any) -> Any:
    """Implement ``RandomState.rand``."""
    return wrap(self.next("random_sample", {}, shape or None))


def _randn(self: Draws, *shape: Any) -> Any:
    """Implement ``RandomState.randn``."""
    return wrap(self.next("standard_normal", {}, shape or None))


def _legacy_standard(name: str) -> Callable[..., Any]:
    def method(self: Draws, size: Any = None) -> Any:
        return wrap(self.next(name, {}, size))

    return method


# choices and orders ---------------------------------------------------------------------------------------------------


def _is_number(value: Any) -> bool:
    return isinstance(value, int | np.integer) or (isinstance(value, Tensor) and not value.ndim)


def _choice(
    self: Draws, a: Any, size: Any = None, replace: Any = True, p: Any = None, axis: int = 0, shuffle: bool = True
) -> Any:
    """Implement ``Generator.choice``: from the numbers below one, or from an array along an axis."""
    number = _is_number(a)
    x = None if number else node_of(a)
    if x is not None and self.legacy and x.type.ndim != 1:
        raise ValueError("a must be 1-dimensional")
    axis = 0 if x is None else normalise_axis(axis, x.type.ndim)
    count = node_of(a) if x is None else size_node(x.type.shape[axis])
    operands = {"a": count} | ({} if p is None else {"p": _operand(p, "p")})
    options: tuple[tuple[str, Any], ...] = (("replace", bool(replace)),)
    if not self.legacy:
        options += (("shuffle", bool(shuffle)),)
    shape = () if size is None else _sizes(size)
    places = self.next("choice", operands, size, dtype=np.int64, options=options, shape=shape)
    return wrap(places if x is None else context.record(gather(x, places, axis)))


def _legacy_choice(self: Draws, a: Any, size: Any = None, replace: Any = True, p: Any = None) -> Any:
    """Implement ``RandomState.choice``."""
    return _choice(self, a, size, replace, p)


def _order(self: Draws, count: Node, extent: Size) -> Node:
    """Return a random order of ``extent`` items."""
    return self.next("permutation", {"x": count}, None, dtype=np.int64, shape=(extent,))


def _permutation(self: Draws, x: Any, axis: int = 0) -> Any:
    """Implement ``permutation``: of the numbers below one, or of an array along an axis."""
    if _is_number(x):
        extent = as_size(x)
        return wrap(_order(self, size_node(extent), extent))
    node = node_of(x)
    if not node.type.ndim:
        wrong = IndexError("x must be an integer or at least 1-dimensional")
        raise wrong if self.legacy else np.exceptions.AxisError(axis, 0)
    axis = normalise_axis(axis, node.type.ndim)
    order = _order(self, size_node(node.type.shape[axis]), node.type.shape[axis])
    return wrap(context.record(gather(node, order, axis)))


def _shuffle(self: Draws, x: Any, axis: int = 0) -> None:
    """Shuffle an array in place, as ``shuffle``."""
    if isinstance(x, list):
        refuse("shuffle of a list", "Use rng.permutation(len(list)), or an array.")
    if not isinstance(x, Tensor):
        refuse_foreign_store("shuffle")
    if not x.ndim:
        raise TypeError("cannot shuffle an array without axes")
    axis = normalise_axis(axis, x.ndim)
    extent = x.type.shape[axis]
    x[...] = wrap(gather(x.node, _order(self, size_node(extent), extent), axis))


def _legacy_permutation(self: Draws, x: Any) -> Any:
    """Implement ``RandomState.permutation``."""
    return _permutation(self, x)


def _legacy_shuffle(self: Draws, x: Any) -> None:
    """Implement ``RandomState.shuffle``."""
    _shuffle(self, x)


def _permuted(self: Draws, x: Any, axis: int | None = None, out: Any = None) -> Any:
    """Implement ``Generator.permuted``: every row along an axis in an order of its own."""
    node = node_of(x)
    flat = axis is None
    rows = reshape(node, (node.type.size,)) if flat else node
    along = 0 if axis is None else normalise_axis(axis, node.type.ndim)
    places = self.next(
        "permuted", {"x": iota(rows.type.shape, along)}, None, dtype=np.int64, options=(("axis", along),),
        shape=rows.type.shape,
    )  # fmt: skip
    taken = take_along_axis(rows, places, along)
    found = wrap(context.record(reshape(taken, node.type.shape) if flat else taken))
    if out is None:
        return found
    if not isinstance(out, Tensor):
        refuse_foreign_store("permuted with out=")
    out[...] = found
    return out


# vectors --------------------------------------------------------------------------------------------------------------


def _vectors(self: Draws, name: str, operands: dict[str, Node], size: Any, extent: Size, **more: Any) -> Any:
    shape = (*(() if size is None else _sizes(size)), extent)
    return wrap(self.next(name, operands, size, shape=shape, **more))


def _multivariate_normal(self: Draws, mean: Any, cov: Any, size: Any = None, **options: Any) -> Any:
    """Implement ``multivariate_normal``."""
    known = {"check_valid", "tol"} if self.legacy else {"check_valid", "tol", "method"}
    if set(options) - known:
        raise TypeError(f"multivariate_normal() got an unexpected keyword argument {min(set(options) - known)!r}")
    given = {"mean": _operand(mean, "mean"), "cov": _operand(cov, "cov")}
    if given["mean"].type.ndim != 1:
        raise ShapeError("mean must be 1 dimensional")
    extent = given["mean"].type.shape[0]
    return _vectors(self, "multivariate_normal", given, size, extent, options=tuple(sorted(options.items())))


def _dirichlet(self: Draws, alpha: Any, size: Any = None) -> Any:
    """Implement ``dirichlet``."""
    node = _operand(alpha, "alpha")
    if node.type.ndim != 1:
        raise ShapeError("alpha must be 1 dimensional")
    return _vectors(self, "dirichlet", {"alpha": node}, size, node.type.shape[0])


def _multinomial(self: Draws, n: Any, pvals: Any, size: Any = None) -> Any:
    """Implement ``multinomial``."""
    given = {"n": _operand(n, "n"), "pvals": _operand(pvals, "pvals")}
    extent = given["pvals"].type.shape[-1]
    common = broadcast_shapes([given["n"].type.shape, given["pvals"].type.shape[:-1]])
    shape = (*(common if size is None else _sizes(size)), extent)
    return wrap(self.next("multinomial", given, size, shape=shape, dtype=np.int64))


def _multivariate_hypergeometric(
    self: Draws, colors: Any, nsample: Any, size: Any = None, method: str = "marginals"
) -> Any:
    """Implement ``Generator.multivariate_hypergeometric``."""
    given = {"colors": _operand(colors, "colors"), "nsample": _operand(nsample, "nsample")}
    extent = given["colors"].type.shape[0]
    return _vectors(
        self, "multivariate_hypergeometric", given, size, extent, dtype=np.int64, options=(("method", method),)
    )


def _all(text: str, dtype: Any) -> dict[str, Callable[..., Any]]:
    return dict(_plain(part.strip(), dtype) for part in text.split(";"))


_BOTH = _all(_FLOATS, np.float64) | _all(_COUNTS, np.int64) | {
    "multivariate_normal": _multivariate_normal,
    "dirichlet": _dirichlet,
    "multinomial": _multinomial,
}  # fmt: skip
_NEW: dict[str, Callable[..., Any]] = _BOTH | {
    "random": _standard("random", "random"),
    "standard_normal": _standard("standard_normal", "standard_normal"),
    "standard_exponential": _standard("standard_exponential", "standard_exponential", "method"),
    "standard_gamma": _standard("standard_gamma", "standard_gamma shape"),
    "integers": _integers,
    "choice": _choice,
    "permutation": _permutation,
    "permuted": _permuted,
    "shuffle": _shuffle,
    "multivariate_hypergeometric": _multivariate_hypergeometric,
}
_OLD: dict[str, Callable[..., Any]] = _BOTH | {
    "random": _sampled,
    "random_sample": _sampled,
    "rand": _rand,
    "randn": _randn,
    "standard_normal": _legacy_standard("standard_normal"),
    "standard_exponential": _legacy_standard("standard_exponential"),
    "standard_gamma": _plain("standard_gamma shape", np.float64)[1],
    "randint": _randint,
    "choice": _legacy_choice,
    "permutation": _legacy_permutation,
    "shuffle": _legacy_shuffle,
}
METHODS: dict[bool, dict[str, Callable[..., Any]]] = {False: _NEW, True: _OLD}
"""The methods of ``Generator`` and, under True, of ``RandomState``."""
FUNCTIONS = {"ranf": "random_sample", "sample": "random_sample", "seed": "seed"}
"""Functions of ``np.random`` that are no methods of its generator themselves, and the methods that they call."""


def free_method(function: Any) -> str | None:
    """Return the global generator's method behind a function of ``np.random`` that is not itself that method; else None."""
    return next((method for name, method in FUNCTIONS.items() if function is getattr(np.random, name)), None)
