"""Contractions: einsum of two operands by BLAS, longer ones along opt_einsum's path; ``@``, dot, inner and tensordot use them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tensormagic.ir.errors import DTypeError, ShapeError
from tensormagic.ir.node import Node, make
from tensormagic.ir.operation import Guard
from tensormagic.ir.size import product
from tensormagic.ir.type import Size, Type, hint
from tensormagic.ops.fold import reduce_sum
from tensormagic.ops.leaf import iota
from tensormagic.ops.move import broadcast, expand_dims, transpose
from tensormagic.ops.move_kind import broadcast_shapes, same, show
from tensormagic.ops.op import Op, Tangent, Value, as_form
from tensormagic.ops.pointwise import astype, computed_in
from tensormagic.ops.rows import Axes, Found, Mixed, common_axis, shifted
from tensormagic.ops.scalars.scalar import equal, where
from tensormagic.ops.tangents import total

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, eq=False, kw_only=True)
class Contract(Op):
    """The sum of products of two operands that ``params["subscripts"]`` names, ``"ij,jk->ik"``.

    Every letter is in the result or in both operands, and none occurs twice in one operand; :func:`einsum` ensures
    that.
    """

    kind = "contract"

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
        inputs, output = split(params["subscripts"])
        extents: dict[str, Size] = {}
        for letters, arg in zip(inputs, args, strict=True):
            for letter, s in zip(letters, arg.type.shape, strict=True):
                known = extents.setdefault(letter, s)
                if not same(known, s):
                    shapes = " and ".join(show(a.type.shape) for a in args)
                    raise ShapeError(f"shapes {shapes} do not fit: {hint(known)} is not {hint(s)}")
                if isinstance(s, int):
                    extents[letter] = s
        shape = tuple(extents[letter] for letter in output)
        return Type(args[0].type.dtype, shape, "array" if shape else "scalar")

    def evaluate(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        del size
        value = multiply_arrays(node["subscripts"], np.asarray(values[0]), np.asarray(values[1]))
        return value if node.type.shape else as_form(value, node.type.form)

    def expression(self, node: Node, given: Sequence[str], scope: Any) -> str | None:
        if not all(a.type.shape for a in node.args) or (not node.type.shape and node.type.form != "scalar"):
            return None
        operands = operands_of_matmul(node["subscripts"], given)
        if operands is None:
            call = f"{scope.text.object(multiply_arrays)}({node['subscripts']!r}, {given[0]}, {given[1]})"
        else:
            call = f"{scope.text.object(np.matmul)}({', '.join(operands)})"
        return call if node.type.shape else f"{call}[()]"

    def jvp(self, node: Node, tangents: Sequence[Tangent]) -> Tangent:
        left, right = node.args
        pairs = [
            (t, other)
            for t, other in ((tangents[0], right), (left, tangents[1]))
            if t is not None and other is not None
        ]
        return total([make(self, pair, subscripts=node["subscripts"]) for pair in pairs])

    def transpose(self, node: Node, cotangent: Node, linear: Sequence[bool]) -> Sequence[Tangent]:
        (a, b), out = split(node["subscripts"])
        left, right = node.args
        first = einsum(f"{out},{b}->{a}", cotangent, right) if linear[0] else None
        second = einsum(f"{a},{out}->{b}", left, cotangent) if linear[1] else None
        return first, second

    def batch(self, node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
        del size
        (a, b), out = split(node["subscripts"])
        letter = next(c for c in LETTERS if c not in a + b)
        left, right = (letters if not own else letter + letters for letters, own in zip((a, b), batched, strict=True))
        if batched[0]:
            return einsum(f"{left},{right}->{letter}{out}", *args)
        return einsum(
            f"{right},{left}->{letter}{out}", args[1], args[0]
        )  # the batch axis is the first one, without a transpose

    def split(self, node: Node, axes: Axes, rows: Size) -> Found:
        inputs, out = split(node["subscripts"])
        found = {own[axis] for own, axis in zip(inputs, axes, strict=True) if axis is not None}
        if len(found) != 1:
            raise Mixed("multiplies each row with every other one")
        (letter,) = found
        axis = common_axis([shifted(a, -a) for a in axes if a is not None])
        if any(letter in own for own, axis in zip(inputs, axes, strict=True) if axis is None):
            raise Mixed("combines rows with an array of the same length that is not split")
        if letter in out:
            return shifted(axis, out.index(letter))
        return "logical_or" if node.type.dtype.kind == "b" else "add"

    def effort(self, node: Node) -> Size:
        inputs, _ = split(node["subscripts"])
        whole = {
            c: s for own, arg in zip(inputs, node.args, strict=True) for c, s in zip(own, arg.type.shape, strict=True)
        }
        return self.each * product(tuple(whole.values()))

    def guards(self, node: Node) -> list[Guard]:
        inputs, _ = split(node["subscripts"])
        seen: dict[str, Size] = {}
        found: list[Guard] = []
        for letters, arg in zip(inputs, node.args, strict=True):
            for letter, s in zip(letters, arg.type.shape, strict=True):
                known = seen.setdefault(letter, s)
                if known != s:
                    found.append((known, "==", s))
        return found


CONTRACT = Contract(
    name="contract", each=30, linear="each", doc="The sum of products over shared letters of two operands."
)


def split(subscripts: str) -> tuple[list[str], str]:
    """Return the letters of the operands, and those of the result."""
    left, _, out = subscripts.partition("->")
    return left.split(","), out


class Recipe(NamedTuple):
    """How a contraction is computed.

    Parameters
    ----------
    way
        ``"outer"``, ``"matmul"``, ``"swapped"`` for ``np.matmul`` of the second and the first operand, ``"turned"`` for that of
        two matrices, of which some are transposed, or ``"merged"``.
    out
        The order of the result's axes, None where that is theirs.
    orders
        For ``"turned"`` and ``"merged"``, the orders in which the axes of either operand stand: those of stacks, then those that are
        merged.
    counts
        For ``"merged"``, how many axes are of stacks, of the first operand alone, of both, and of the second alone.
    """

    way: str
    out: tuple[int, ...] | None
    orders: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    counts: tuple[int, int, int, int] = (0, 0, 0, 0)


@lru_cache(maxsize=1024)
def recipe_of(subscripts: str) -> Recipe:
    """Return how the contraction of two arrays is computed: directly by ``np.matmul`` if possible, else after rearranging axes."""
    (a, b), out = split(subscripts)
    shared = [c for c in a if c in b and c not in out]
    batch = [c for c in a if c in b and c in out]
    left = [c for c in a if c not in b]
    right = [c for c in b if c not in a]

    def order(letters: Sequence[str]) -> tuple[int, ...] | None:
        found = tuple(letters.index(c) for c in out)
        return None if found == tuple(range(len(out))) else found

    if not batch and not shared:
        return Recipe("outer", order(a + b))
    for way, first, second in (("matmul", a, b), ("swapped", b, a)):
        natural = _of_matmul(first, second, shared)
        if natural is not None and sorted(natural) == sorted(out) and (way == "matmul" or natural == out):
            return Recipe(way, order(natural))
    orders = tuple(a.index(c) for c in batch + left + shared), tuple(b.index(c) for c in batch + shared + right)
    counts = len(batch), len(left), len(shared), len(right)
    return Recipe("turned" if counts == (0, 1, 1, 1) else "merged", order(batch + left + right), orders, counts)


def operands_of_matmul(subscripts: str, given: Sequence[str]) -> list[str] | None:
    """Return the texts of the operands of ``np.matmul`` if the contraction is just that, or None."""
    recipe = recipe_of(subscripts)
    if recipe.out is not None or recipe.way in {"outer", "merged"}:
        return None
    if recipe.way == "turned":
        return [text if order == (0, 1) else f"{text}.T" for text, order in zip(given, recipe.orders, strict=True)]
    return [*given] if recipe.way == "matmul" else [*reversed(given)]


def multiply_arrays(subscripts: str, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> Value:
    """Return the contraction of two arrays."""
    recipe = recipe_of(subscripts)
    if recipe.way == "outer":
        value = np.multiply.outer(x, y)
    elif recipe.way == "merged":
        value = _by_merging(recipe, x, y)
    elif recipe.way == "turned":
        value = np.matmul(x.transpose(recipe.orders[0]), y.transpose(recipe.orders[1]))
    else:
        value = np.matmul(x, y) if recipe.way == "matmul" else np.matmul(y, x)
    return value if recipe.out is None else value.transpose(recipe.out)


def _by_merging(recipe: Recipe, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a stack of matrix products, with several axes of the operands merged into one."""
    stacks, left, shared, _ = recipe.counts
    x, y = x.transpose(recipe.orders[0]), y.transpose(recipe.orders[1])
    stack, rows, columns = x.shape[:stacks], x.shape[stacks : stacks + left], y.shape[stacks + shared :]
    inner = math.prod(x.shape[stacks + left :])
    both = np.matmul(x.reshape((*stack, math.prod(rows), inner)), y.reshape((*stack, inner, math.prod(columns))))
    return both.reshape((*stack, *rows, *columns))


def _of_matmul(a: str, b: str, shared: list[str]) -> str | None:
    """Return the letters of ``np.matmul``'s result if that computes the contraction over the last axis of ``a``, or None.

    None also for a stack of matrices times one matrix: as one taller matrix it is a single call of BLAS.
    """
    if len(shared) != 1 or a[-1:] != shared[0]:
        return None
    if len(b) == 1 or len(a) == 1:
        return a[:-1] + b[1:] if len(a) <= 2 and len(b) <= 2 and b[:1] == shared[0] else None
    stack, rows = b[:-2], a[:-2]
    return stack + a[-2] + b[-1] if b[-2] == shared[0] and rows in {stack, ""} else None


def _diagonal(letters: str, x: Node) -> tuple[str, Node]:
    """Return an operand with each repeated letter once: the diagonal, taken by a mask and a sum."""
    for letter in dict.fromkeys(letters):
        while letters.count(letter) > 1:
            first, second = [k for k, c in enumerate(letters) if c == letter][:2]
            on = equal(iota(x.type.shape, first), iota(x.type.shape, second))
            x = astype(reduce_sum(where(on, x, 0), (first,)), x.type.dtype)
            letters = letters[:first] + letters[first + 1 :]
    return letters, x


def einsum(subscripts: str, *operands: Node) -> Node:
    """Return ``np.einsum`` over explicit subscripts without ellipsis."""
    inputs, out = split(subscripts)
    if len(inputs) != len(operands):
        raise ShapeError(f"einsum {subscripts!r} names {len(inputs)} operands, but {len(operands)} were given")
    dtype = computed_in(np.result_type(*(n.type.dtype for n in operands)))
    if dtype.kind not in "biufc":
        raise DTypeError(f"einsum does not take operands of dtype {dtype}")
    terms: list[tuple[str, Node]] = []
    for letters, x in zip(inputs, operands, strict=True):
        if len(letters) != x.type.ndim:
            raise ShapeError(
                f"einsum subscripts {letters!r} name {len(letters)} axes of an operand of shape {show(x.type.shape)}"
            )
        terms.append(_diagonal(letters, astype(x, dtype)))
    for left, right in _path(terms, out):
        second, first = terms.pop(max(left, right)), terms.pop(min(left, right))
        rest = set(out).union(*(letters for letters, _ in terms))
        terms.append(_pair(first, second, rest))
    return _finish(terms[0], out, [(letters, x) for letters, x in zip(inputs, operands, strict=True)])


def _path(terms: list[tuple[str, Node]], out: str) -> list[tuple[int, int]]:
    if len(terms) <= 2:
        return [(0, 1)] if len(terms) > 1 else []
    import opt_einsum

    extents = {c: hint(s) or 32 for letters, x in terms for c, s in zip(letters, x.type.shape, strict=True)}
    expression = ",".join(letters for letters, _ in terms) + "->" + out
    shapes = [tuple(extents[c] for c in letters) for letters, _ in terms]
    path, _ = opt_einsum.contract_path(expression, *shapes, shapes=True, optimize="auto")
    pairs: list[tuple[int, int]] = []
    for step in path:
        pairs += [(step[0], step[1])] if len(step) > 1 else []
    return pairs


def _reduced(letters: str, x: Node, keep: set[str]) -> tuple[str, Node]:
    """Return an operand summed over the letters that occur nowhere else."""
    alone = tuple(k for k, c in enumerate(letters) if c not in keep)
    if not alone:
        return letters, x
    return "".join(c for c in letters if c in keep), astype(reduce_sum(x, alone), x.type.dtype)


def _pair(first: tuple[str, Node], second: tuple[str, Node], rest: set[str]) -> tuple[str, Node]:
    a, x = _reduced(*first, rest | set(second[0]))
    b, y = _reduced(*second, rest | set(first[0]))
    batch = [c for c in a if c in b and c in rest]
    out = "".join(batch + [c for c in a if c in rest and c not in b] + [c for c in b if c in rest and c not in a])
    names = dict(zip(dict.fromkeys(a + b), LETTERS, strict=False))
    text = "".join(names.get(c, c) for c in f"{a},{b}->{out}".replace("->", "\0")).replace("\0", "->")
    return out, make(CONTRACT, (x, y), subscripts=text)


def _finish(term: tuple[str, Node], out: str, given: list[tuple[str, Node]]) -> Node:
    letters, x = _reduced(*term, set(out))
    missing = [c for c in out if c not in letters]
    if missing:  # letters of the result that a transpose has turned into a sum: broadcast back
        extents = {c: s for text, node in given for c, s in zip(text, node.type.shape, strict=True)}
        unknown = [c for c in missing if c not in extents]
        if unknown:
            raise ShapeError(f"einsum: the result has {unknown[0]!r}, which no operand has")
        x = broadcast(
            expand_dims(x, tuple(range(x.type.ndim, x.type.ndim + len(missing)))),
            (*x.type.shape, *(extents[c] for c in missing)),
        )
        letters += "".join(missing)
    return transpose(x, tuple(letters.index(c) for c in out))


def matmul(x: Node, y: Node) -> Node:
    """Return ``np.matmul``: 1-D operands are vectors, leading axes broadcast."""
    if not x.type.ndim or not y.type.ndim:
        raise ShapeError("matmul: Input operand does not have enough dimensions (a scalar)")
    dtype = np.matmul.resolve_dtypes((x.type.dtype, y.type.dtype, None))[-1]
    x, y = astype(x, dtype), astype(y, dtype)
    a, b = x.type.ndim, y.type.ndim
    if not same(x.type.shape[-1], y.type.shape[-2 if b > 1 else 0]):
        raise ShapeError(
            f"matmul: shapes {show(x.type.shape)} and {show(y.type.shape)} do not fit: "
            f"{hint(x.type.shape[-1])} {'columns' if a > 1 else 'elements'} on the left, "
            f"{hint(y.type.shape[-2 if b > 1 else 0])} {'rows' if b > 1 else 'elements'} on the right"
        )
    if a > 2 or b > 2:
        return _batched(x, y)
    left, right = ("i" if a > 1 else "") + "j", "j" + ("k" if b > 1 else "")
    return einsum(f"{left},{right}->{left[:-1]}{right[1:]}", x, y)


def _batched(x: Node, y: Node) -> Node:
    left = x.type.shape[:-2] if x.type.ndim > 1 else ()
    right = y.type.shape[:-2] if y.type.ndim > 1 else ()
    lead = broadcast_shapes([left, right])
    names = LETTERS[3 : 3 + len(lead)]

    def operand(v: Node, own: tuple[Size, ...], core: str) -> tuple[str, Node]:
        if v.type.ndim == 1 or not own:
            return core, v
        stretched = broadcast(v, (*lead, *v.type.shape[-len(core) :]))
        return names + core, stretched

    a, x = operand(x, left, "b" if x.type.ndim == 1 else "ab")
    b, y = operand(y, right, "b" if y.type.ndim == 1 else "bc")
    out = names + ("a" if "a" in a else "") + ("c" if "c" in b else "")
    return einsum(f"{a},{b}->{out}", x, y)
