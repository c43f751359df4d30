"""The base class of ops: their facts, and the methods that each kind implements. The ops themselves are on the next floor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from tensormagic.ir.errors import DifferentiationError
from tensormagic.ir.size import Size
from tensormagic.ir.type import Type

if TYPE_CHECKING:
    from tensormagic.ir.node import Node

Bounds = tuple[Size | None, Size | None]  # bounds of an integer, inclusive
Guard = tuple[Size, str, Size]  # left, "==" or ">=", right


@dataclass(frozen=True, eq=False, kw_only=True)
class Operation:
    """One operation: its facts, and the methods that its kind implements.

    Parameters
    ----------
    name
        NumPy's name, where NumPy has one.
    doc
        One line for the reference.
    plainly
        What messages call it, where a user would not know the name.
    edges
        Operand values that the generated tests try beside random ones.
    picks
        Whether every element of the result is one of an operand, its sign aside: nothing is rounded.
    hands_on
        Whether the result is the first operand as it is, perhaps stretched, in another form or checked: rules look through it.
    not_negative
        Whether no element of the result is below 0: it may be nan, and integers may wrap around.
    keeps_sign
        Whether no element of the result is below 0 where none of any operand is, integers that wrap around aside.
    factors
        Whether the result is off, as a part of itself, by no more than its operands are together: products, quotients and roots.
    steep
        Whether the slope may be infinite, or have no bound.
    sequential
        Whether each step of its loop needs the one before.
    joins
        The name of the ufunc that puts two results, or what is stored and what was there, together; empty where none does.
    weight
        What one application costs, in the time of half an addition; 0: what its kind costs (:mod:`tensormagic.ir.cost`).
    raises
        Whether it raises for some values when the graph runs; of an op that does so for some of its nodes, whether for a node.
    commutative
        Whether its two operands may trade places.
    infix
        Python's operator, for a function that has one.
    signs
        Of a sum, a difference or a negative: what each operand is multiplied by.
    linear
        In which operands the value is linear: ``together`` in all (a sum), ``each`` in any one (a product), in the ``first``, or in the
        ``rest``, all but the first; empty where it is not, or that is not said.
    takes
        For a call that takes elements of the first operand, one for each of the result, from places that the second one holds.
    counted
        Whether its first operand is the number of its iterations.
    cubed
        For a call of LAPACK, which has a loop over the columns for each element of the first operand: about how many picoseconds one
        iteration of it takes, on one core.
    fails
        What NumPy's ``LinAlgError`` says, for a call that raises one for some values, and with this text alone.
    in_numpy
        How a text calls it, where that is not ``np`` and its name: a function (``scipy.special.expit``), or an expression of the
        operands and parameters (``np.logaddexp({0}, 0)``).
    numpy
        The function of NumPy, SciPy or our own that gives its values; called as its kind says.
    each
        About how many picoseconds NumPy takes for an element that is read or made, on one core.
    """

    name: str
    doc: str = ""
    plainly: str = ""
    edges: tuple[Any, ...] = ()
    picks: bool = False
    hands_on: bool = False
    not_negative: bool = False
    keeps_sign: bool = False
    factors: bool = False
    steep: bool = False
    sequential: bool = False
    joins: str = ""
    weight: int = field(default=0, repr=False)
    raises: bool | Callable[[Node], bool] = field(default=False, repr=False)
    each: int = field(default=500, repr=False)
    commutative: bool = False
    infix: str = ""
    signs: tuple[int, ...] = ()
    linear: Literal["", "together", "each", "first", "rest"] = ""
    takes: bool = False
    counted: bool = False
    cubed: int = field(default=0, repr=False)
    fails: str = ""
    in_numpy: str = field(default="", repr=False)
    numpy: Any = field(default=None, repr=False)
    kind: ClassVar[str] = ""
    any_dtype: ClassVar[bool] = False
    """Whether it takes values of a dtype that nothing computes with (:mod:`tensormagic.ir.stored`)."""

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}>"

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type | tuple[Type, ...]:
        """Return the type of the result; raise an error if the operands do not fit."""
        raise NotImplementedError

    def evaluate(self, node: Node, values: Sequence[Any], size: Callable[[Any], int]) -> Any:
        """Compute the value with NumPy; ``size`` gives the number of a symbolic size."""
        raise NotImplementedError

    def expression(self, node: Node, given: Sequence[str], scope: Any) -> str | None:
        """Return a Python expression for the value, as fast as NumPy, over the names of the operands, or None to call :meth:`evaluate`.

        ``scope`` (:class:`tensormagic.ops.loop_text.Scope`) knows sizes, and names objects.
        """
        return None

    def is_aside(self, node: Node, scope: Any) -> bool:
        """Return whether the readers of the value redo this op from its first operand, so that it need not be computed."""
        return False

    def jvp(self, node: Node, tangents: Sequence[Node | None]) -> Node | tuple[Node | None, ...] | None:
        """Return the tangent of the result, linear in ``tangents``, or None if it is zero."""
        message = f"{self.name} has no derivative"
        raise DifferentiationError(message)

    def transpose(self, node: Node, cotangent: Node, linear: Sequence[bool]) -> Sequence[Node | None]:
        """Return the cotangents of the operands marked in ``linear``, for an op that is linear in these."""
        message = f"{self.name} is not linear: it has no transpose"
        raise DifferentiationError(message)

    def batch(self, node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
        """Return the node for a batch: operands marked in ``batched`` have a new leading axis of ``size``, and so do the results."""
        message = f"{self.name} has no rule for batches"
        raise NotImplementedError(message)

    def split(self, node: Node, axes: Any, rows: Size) -> Any:
        """Return the axis of a batch of ``rows`` in the result, given the ``axes`` of the operands: see :mod:`tensormagic.ops.rows`."""
        raise NotImplementedError

    def may_raise(self, node: Node) -> bool:
        """Return whether it may raise when the graph runs, whatever :meth:`guards` say of sizes."""
        return self.raises(node) if callable(self.raises) else self.raises

    def apart(self, node: Node) -> Node | tuple[Node, ...] | None:
        """Return the same value in ops that have a rule for splitting rows, if this op has none; None if there is no such form."""
        return self.expand(node)

    def guards(self, node: Node) -> list[Guard]:
        """Return the conditions on sizes, checked when the graph runs."""
        return []

    def effort(self, node: Node) -> Size:
        """Return a formula in sizes for the picoseconds that NumPy takes on one core, or 0 if most of the time is Python's."""
        total: Size = 0
        for t in (*node.types, *(t for a in node.args for t in a.types)):
            total = total + self.each * t.size
        return total

    def bounds(self, node: Node) -> Bounds:
        """Return inclusive bounds of the value of an integer as sizes; None for an unknown bound."""
        return None, None

    def expand(self, node: Node) -> Node | None:
        """Return the same value in simpler ops, for the planner, or None if the op is simple already."""
        return None
