"""Random numbers as NumPy draws them: the state of a generator is a value, and a draw returns the next state and the sample.

Samples of continuous distributions have derivatives with respect to their parameters: the same standard numbers, moved and
scaled, which a second draw from the same state gives.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.ir.errors import DifferentiationError
from tensormagic.ir.node import Node, make
from tensormagic.ir.type import Dim, Form, Size, Type
from tensormagic.ops.contract import matmul
from tensormagic.ops.draws.implicit import IMPLICIT, implicit_tangent
from tensormagic.ops.draws.state import KINDS, encoded, fresh, generator_at, left_by
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import constant, index_node, size_node
from tensormagic.ops.matrices import linalg
from tensormagic.ops.move import broadcast, reshape, slice_, transpose
from tensormagic.ops.op import Tangent, Value, as_form
from tensormagic.ops.opaque import Opaque, item, items
from tensormagic.ops.regions.loops import loop
from tensormagic.ops.regions.region import derivatives, graph_over, like, stand_in, tangent_type
from tensormagic.ops.scalars import scalar
from tensormagic.ops.update import place_in, set_at

Path = Callable[["Node", Mapping[str, Node]], Node]


def _draw_types(args: tuple[Node, ...], params: Mapping[str, Any]) -> tuple[Type, ...]:
    return args[0].type, Type(np.dtype(params["dtype"]), params["shape"], params["form"])


def _drawn(state: Any, *values: Any, **params: Any) -> tuple[Any, Any]:
    generator = generator_at(state, legacy=params["legacy"])
    options = dict(zip(params["names"], values, strict=True)) | dict(params["options"])
    if params["size"] is not None:
        options["size"] = params["size"]
    sample = getattr(generator, params["method"])(**options)
    return left_by(generator, np.asarray(state), params["method"], legacy=params["legacy"]), sample


@dataclass(frozen=True, eq=False, kw_only=True)
class Draw(Opaque):
    """Calls of a generator's methods."""

    each_formed = True  # its expression gives both results, in their forms

    def evaluate(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        params = dict(node.params)
        if params["size"] is not None:
            params["size"] = tuple(size(n) for n in params["size"])
        state, sample = self.numpy(*values, **params)
        return state, as_form(sample, node.types[1].form)

    def expression(self, node: Node, given: Sequence[str], scope: Any) -> str | None:
        if any(isinstance(n, Dim) for n in node["size"] or ()):
            return None
        return f"{scope.text.object(_drawer(node))}({', '.join(given)})"

    def jvp(self, node: Node, tangents: Sequence[Tangent]) -> tuple[Tangent, ...]:
        moving = {node.args[k]: t for k, t in enumerate(tangents) if k and t is not None}
        sample = item(node, 1)
        if not moving or not sample.type.inexact:
            if moving:
                raise _no_derivative(node)
            return None, None
        if node["method"] in IMPLICIT:
            return None, _implicit(node, moving)
        path = PATHS.get(node["method"])
        if path is None:
            raise _no_derivative(node)
        own = path(node, dict(zip(node["names"], node.args[1:], strict=True)))
        _, (tangent,) = derivatives().push([own], moving)
        return None, None if tangent is None else like(tangent, stand_in("sample", tangent_type(sample.type)))

    def batch(self, node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Any:
        """Draw for each element of the batch from its own state, in a loop."""
        return _one_by_one(node, args, batched, size)


def _drawer(node: Node) -> Callable[..., tuple[Any, Any]]:
    """Return a function of the state and the arguments that draws; what is the same for every call is looked up once."""
    method, names, legacy, form = node["method"], node["names"], node["legacy"], node.types[1].form
    fixed = dict(node["options"]) | ({} if node["size"] is None else {"size": node["size"]})

    def drawn(state: Any, *values: Any) -> tuple[Any, Any]:
        generator = generator_at(state, legacy=legacy)
        sample = getattr(generator, method)(**dict(zip(names, values, strict=True)), **fixed)
        own = sample if form == "python" and type(sample) in _PYTHONS else as_form(sample, form)
        return left_by(generator, state, method, legacy=legacy), own

    return drawn


_PYTHONS = {float, int}


def _one_by_one(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> tuple[Node, ...]:
    """Return the results of a loop that draws for each element of a stack."""
    index = index_node("index", 0, size)
    given = [stand_in("operand", a.type) for a in args]
    single = [_row(g, a, index) if b else g for g, a, b in zip(given, node.args, batched, strict=True)]
    starts = [broadcast(constant(t.dtype.type(0)), (size, *t.shape)) for t in node.types]
    carried = [stand_in("drawn", s.type) for s in starts]
    made = items(make(node.op, single, **node.params))
    ends = [set_at(c, reshape(m, (1, *m.type.shape)), place_in(c, index)) for c, m in zip(carried, made, strict=True)]
    return loop(size_node(size), graph_over([index, *carried, *given], ends), starts, args)


def _row(stack: Node, single: Node, index: Node) -> Node:
    """Return one element of a stack, in the form of the operand that it stands for."""
    part = reshape(slice_(stack, place_in(stack, index)), stack.type.shape[1:])
    return part if part.type.shape else to_form(part, single.type.form)


def _no_derivative(node: Node) -> DifferentiationError:
    return DifferentiationError(
        f"what np.random {node['method']} draws has no derivative with respect to its parameters",
        "Use tm.stop_gradient on the parameters, or shift and scale draws from a fixed distribution.",
    )


def check_discrete(node: Node, active: Container[Node]) -> None:
    """Raise DifferentiationError for derivatives through integer samples, which would otherwise be taken for constants."""
    if not node.types[1].inexact and any(a in active for a in node.args):
        raise _no_derivative(node)


DRAW = Draw(
    name="draw",
    types=_draw_types,
    numpy=_drawn,
    doc="The next state of a random generator, and what it draws.",
    names={"method": lambda name: not name.startswith("_") and hasattr(np.random.Generator, name)},
)


def draw(
    state: Node,
    method: str,
    operands: Mapping[str, Node],
    *,
    size: tuple[Size, ...] | None,
    shape: tuple[Size, ...],
    dtype: Any,
    form: Form,
    legacy: bool = False,
    options: tuple[tuple[str, Any], ...] = (),
) -> tuple[Node, ...]:
    """Return the next state, and a sample of ``shape`` that ``method`` draws.

    Parameters
    ----------
    state
        The words of a generator's state.
    method
        The method of a ``Generator``, or of a ``RandomState`` where ``legacy``.
    operands, options
        Its arguments by name: those that are values of the graph, and those that are fixed.
    size
        Its argument ``size``.
    """
    return items(
        make(
            DRAW, (state, *operands.values()), method=method, names=tuple(operands), size=size, shape=shape,
            dtype=np.dtype(dtype).str, form=form, legacy=legacy, options=options,
        )
    )  # fmt: skip


# seeds ----------------------------------------------------------------------------------------------------------------


def _seed_type(_args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
    return Type(np.dtype(np.uint64), encoded(fresh(params["bits"], legacy=params["legacy"])).shape)


def _seeded(seed: Any, bits: str, legacy: bool) -> Any:
    return encoded(fresh(bits, legacy=legacy, seed=seed))


def _seed_stacked(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
    return _one_by_one(node, args, batched, size)[0]


SEED = Opaque(
    name="random_state",
    types=_seed_type,
    numpy=_seeded,
    tangent=lambda _node, _tangents: None,
    stacked=_seed_stacked,
    doc="The state of a new random generator.",
    names={"bits": KINDS.__contains__},
)


def seeded(seed: Node, bits: str, *, legacy: bool) -> Node:
    """Return the state of a generator over the bit generator ``bits``, seeded with ``seed``."""
    return make(SEED, (seed,), bits=bits, legacy=legacy)


# samples in terms of standard ones ------------------------------------------------------------------------------------


def _standard(node: Node, method: str, **operands: Node) -> Node:
    """Return a sample that ``method`` draws from the state of ``node``, in the shape of the node's sample."""
    t = node.types[1]
    size = t.shape if t.shape or t.form == "array" else None
    return draw(
        node.args[0], method, operands, size=size, shape=t.shape, dtype=t.dtype, form=t.form, legacy=node["legacy"]
    )[1]


def _moved(method: str, **fixed: float) -> Path:
    """Return a function that builds ``location + scale * standard`` for a draw."""

    def path(node: Node, given: Mapping[str, Node]) -> Node:
        standard = _standard(node, method, **{k: constant(v) for k, v in fixed.items()})
        return given["loc"] + given["scale"] * standard if "loc" in given else given["scale"] * standard

    return path


def _uniform(node: Node, given: Mapping[str, Node]) -> Node:
    standard = _standard(node, "random_sample" if node["legacy"] else "random")
    return given["low"] + (given["high"] - given["low"]) * standard


def _lognormal(node: Node, given: Mapping[str, Node]) -> Node:
    return scalar.exp(given["mean"] + given["sigma"] * _standard(node, "standard_normal"))


def _weibull(node: Node, given: Mapping[str, Node]) -> Node:
    return _standard(node, "standard_exponential") ** (1.0 / given["a"])


def _pareto(node: Node, given: Mapping[str, Node]) -> Node:
    return scalar.expm1(_standard(node, "standard_exponential") / given["a"])


def _implicit(node: Node, moving: Mapping[Node, Node]) -> Node:
    """Return the tangent of samples drawn by rejection, or by another formula without a derivative."""
    given = dict(zip(node["names"], node.args[1:], strict=True))
    tangents = {name: moving[v] for name, v in given.items() if v in moving}
    sample = item(node, 1)
    return like(
        implicit_tangent(node["method"], sample, given, tangents), stand_in("sample", tangent_type(sample.type))
    )


def _gamma(node: Node, given: Mapping[str, Node]) -> Node:
    return given["scale"] * _standard(node, "standard_gamma", shape=given["shape"])


def _chisquare(node: Node, given: Mapping[str, Node]) -> Node:
    return 2.0 * _standard(node, "standard_gamma", shape=given["df"] / 2.0)


def _triangular(node: Node, given: Mapping[str, Node]) -> Node:
    left, mode, right = given["left"], given["mode"], given["right"]
    standard = _standard(node, "random_sample" if node["legacy"] else "random")
    base, low, high = right - left, mode - left, right - mode
    rising = left + scalar.sqrt(standard * low * base)
    falling = right - scalar.sqrt((1.0 - standard) * high * base)
    return scalar.where(scalar.less_equal(standard, low / base), rising, falling)


def _multivariate_normal(node: Node, given: Mapping[str, Node]) -> Node:
    """Return the sample as a function of mean and covariance, through the factor of the covariance that NumPy uses."""
    method = dict(node["options"]).get("method", "svd")
    if method == "cholesky":
        factor = linalg.cholesky(given["cov"])
    elif method == "eigh":
        values, vectors = linalg.eigh(given["cov"])
        factor = vectors * scalar.sqrt(scalar.absolute(values))
    else:
        left, values, right = linalg.svd(given["cov"])
        factor = (transpose(right, (1, 0)) if node["legacy"] else left) * scalar.sqrt(values)
    return given["mean"] + matmul(_standard(node, "standard_normal"), transpose(factor, (1, 0)))


def _power(node: Node, given: Mapping[str, Node]) -> Node:
    return (-scalar.expm1(-_standard(node, "standard_exponential"))) ** (1.0 / given["a"])


PATHS: dict[str, Path] = {
    "normal": _moved("standard_normal"),
    "laplace": _moved("laplace"),
    "logistic": _moved("logistic"),
    "gumbel": _moved("gumbel"),
    "exponential": _moved("standard_exponential"),
    "rayleigh": _moved("rayleigh"),
    "uniform": _uniform,
    "lognormal": _lognormal,
    "weibull": _weibull,
    "pareto": _pareto,
    "power": _power,
    "gamma": _gamma,
    "chisquare": _chisquare,
    "triangular": _triangular,
    "multivariate_normal": _multivariate_normal,
}
