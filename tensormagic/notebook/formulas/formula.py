"""A lazy value as a formula: nodes become mathematics with the notebook's names. How that is written is not known here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

import numpy as np

from tensormagic.ir.node import Node
from tensormagic.ir.operation import Operation
from tensormagic.ir.size import Apply, Dim, Size, Symbol, symbol
from tensormagic.notebook.formulas.latex import (
    Add,
    Big,
    Call,
    Cases,
    Cut,
    Expression,
    Fence,
    Name,
    Negative,
    Number,
    Part,
    Power,
    Quotient,
    Relation,
    Row,
    Table,
    Transposed,
)
from tensormagic.notebook.formulas.mathematics import POINTWISE, arguments, negative, plus, times, transposed
from tensormagic.notebook.formulas.places import Places
from tensormagic.notebook.formulas.structure import (
    ANY_ORDER,
    BLOCKS,
    BY_ELEMENT,
    INDEXED,
    LINEAR,
    guards_infinity,
    guards_untouched,
    in_a_row,
    is_column,
    matrix_factors,
    narrow,
    seen,
    takes_together,
)
from tensormagic.ops.contract import CONTRACT, split
from tensormagic.ops.fold import (
    CUMMAX,
    CUMMIN,
    CUMPROD,
    CUMSUM,
    LOG_SOFTMAX,
    LOGSUMEXP,
    SOFTMAX,
    SUM,
)
from tensormagic.ops.indices.gather import GATHER, TAKE_ALONG_AXIS
from tensormagic.ops.indices.scatter import SCATTER_ADD, SCATTER_SET
from tensormagic.ops.leaf import CONSTANT, IOTA, SIZE
from tensormagic.ops.matrices.linalg import INV, SOLVE
from tensormagic.ops.move import BROADCAST, RESHAPE, TRANSPOSE, squeezes
from tensormagic.ops.move_kind import Index
from tensormagic.ops.opaque import ITEM
from tensormagic.ops.regions.control import COND, CUSTOM, LOOP
from tensormagic.ops.regions.recursion import RECURSIVE
from tensormagic.ops.scalars import scalar
from tensormagic.ops.scalars.comparison import where
from tensormagic.ops.scalars.scalar import (
    divide,
    exp,
    multiply,
)
from tensormagic.ops.update import ADD_AT, SET

MOST = 60  # parts of one formula: below the level where there are more, it is cut
_OF_TRUTHS: dict[Operation, Operation] = {
    scalar.bitwise_and: scalar.logical_and,
    scalar.bitwise_or: scalar.logical_or,
    scalar.bitwise_xor: scalar.logical_xor,
    scalar.invert: scalar.logical_not,
}
_BLOCKS: dict[Operation, str] = {COND: "branch", CUSTOM: "rule", RECURSIVE: "call"}  # what regions are called
_LETTERS = "ijklpqrst"
_Indices = tuple[Index, ...] | None  # None is the whole array


class Writer(Places):
    """Writes nodes as formulas.

    Parameters
    ----------
    names
        Variables, by node: a node with a name is written as the name.
    letters
        Gives a size a letter that is not among some names.
    own
        The nodes that the user has written, if there are others: those others may guard against infinities, and are
        written without these guards.
    """

    def __init__(
        self,
        names: Mapping[Node, str],
        letters: Callable[[Symbol, set[str]], str],
        own: Container[Node] | None = None,
    ) -> None:
        self.names = names
        self.used: dict[Node, None] = {}  # the named nodes that were written, in order
        self.blocks: dict[Node, str] = {}  # loops and branches, which have names alone
        self.given: Mapping[Node, Expression] = {}  # what comes from outside of a loop
        self.named: Mapping[Node, Sequence[int]] = {}  # which results of a loop have names, where only these are told
        self.letters = letters
        self.finite = False  # whether something was left out that only infinite numbers need
        self._own = own
        self._known: dict[Node, bool] = {}  # conditions, where they are known to hold or not
        self._taken = set(names.values())
        self._bound: dict[str, Expression] = {}
        self._rows: dict[str, tuple[str, ...]] = {}  # the letters of the axes that one index goes through in a row
        self._most = 0
        self._root: Node | None = None
        self._writers: dict[Operation, Callable[[Node, _Indices, int], Expression]] = {
            CONTRACT: self._contraction,
            **dict.fromkeys((CUMSUM, CUMPROD, CUMMAX, CUMMIN), self._running),
            **dict.fromkeys((SOFTMAX, LOG_SOFTMAX), self._softmax),
            **dict.fromkeys((GATHER, TAKE_ALONG_AXIS), self.gathered),
            **dict.fromkeys((SCATTER_ADD, SCATTER_SET), self.scattered),
            IOTA: self._ramp,
            **dict.fromkeys((INV, SOLVE), self._solved),
            TRANSPOSE: self._flipped,
            **dict.fromkeys((ADD_AT, SET), self._stored),
        }

    def formula(self, node: Node, parts: int = MOST) -> tuple[tuple[str, ...], Expression]:
        """Return the formula of ``node`` itself, cut below so many parts, with the letters of the indices that it is written with."""
        self._root = node
        self._most = self._depth(node, parts)
        if self._is_whole(node):
            return (), self.write(node, () if not node.type.shape else None, 0)
        letters = self._fresh(node.type.ndim)
        return letters, self.write(node, tuple(map(Index, letters)), 0)

    def _depth(self, root: Node, most: int) -> int:
        """Return how deep a formula may go, so that it keeps to its number of parts."""
        level, parts, depth = Counter([seen(root)]), 0, 0
        while level and parts + level.total() <= most:
            parts += level.total()
            depth += 1
            below: Counter[Node] = Counter()
            for node, times_ in level.items():
                if depth == 1 or node not in self.names:
                    for arg in node.args[2:] if self._guards(node) else node.args:
                        below[seen(arg)] += times_
            level = below
        return depth - 1 if level else 10**6

    # nodes ------------------------------------------------------------------------------------------------------------

    def write(self, node: Node, index: _Indices, depth: int) -> Expression:
        """Return a node: the whole of it, or the element at ``index``."""
        node = seen(node)
        if node in self.names and node is not self._root:
            self.used.setdefault(node)
            return self._part(Name(self.names[node]), index)
        if node in self.given:
            return self._part(self.given[node], index if isinstance(self.given[node], Name) else ())
        if node.op is BROADCAST and not node.args[0].type.shape:  # a number for every element
            node, index = narrow(node), ()
            return self.write(node, index, depth)
        index = () if not node.type.shape else index
        if node.op is CONSTANT:
            return self._constant(node, index)
        if node.op is SIZE:
            return self.size(node["size"], depth)
        if depth > self._most:
            return Cut()
        if index is None and not self._is_whole(node):
            letters = self._fresh(node.type.ndim)
            written = self.write(node, tuple(map(Index, letters)), depth)
            self._release(letters)
            return Table(written, letters)
        return self._inner(node, index, depth)

    def _inner(self, node: Node, index: _Indices, depth: int) -> Expression:
        kind = node.op.kind
        if takes_together(node) and index is not None:
            return self._reduction(node, index, depth)
        if node.op in self._writers:
            return self._writers[node.op](node, index, depth)
        if kind == "move" and getattr(node.op, "index", None) is not None and index is not None:
            return self._moved(node, index, depth)
        if kind == "pointwise" and (index is not None or self._is_plain_pointwise(node)):
            return self._pointwise(node, index, depth)
        return self._call(node, index, depth)

    def _pointwise(self, node: Node, index: _Indices, depth: int) -> Expression:
        if node.op is multiply and index is None:
            return self._product(node, depth)
        if node.op is where:
            return self._choice(node, index, depth)
        written = [self.write(a, index if a.type.shape else (), depth + 1) for a in node.args]
        if depth == self._most and all(isinstance(w, Cut) for w in written):
            return Cut()
        if node.op is multiply:
            return times(written)
        op = _OF_TRUTHS.get(node.op, node.op) if node.type.dtype == np.dtype(bool) else node.op
        return POINTWISE[op](*written) if op in POINTWISE else Call(op.name, tuple(written))

    def _choice(self, node: Node, index: _Indices, depth: int) -> Expression:
        """Return one of two; inside each it is known whether the condition holds."""
        first, then, otherwise = node.args
        condition = narrow(first)
        if self._guards(node):
            self.finite = True
            return self.write(otherwise, index, depth)
        if self._own is not None and guards_untouched(node, self._own):
            self.finite = True
            return self.write(then, index, depth)
        if condition in self._known:
            return self.write(then if self._known[condition] else otherwise, index, depth)
        written = [self.write(first, index, depth + 1)]
        for branch, holds in ((then, True), (otherwise, False)):
            self._known[condition] = holds
            written.append(self.write(branch, index, depth + 1))
        del self._known[condition]
        cut = depth == self._most and all(isinstance(w, Cut) for w in written)
        return Cut() if cut else POINTWISE[where](*written)

    def _guards(self, node: Node) -> bool:
        return self._own is not None and guards_infinity(node, self._own)

    def _product(self, node: Node, depth: int) -> Expression:
        """Return a product of whole arrays: the numbers first, then the arrays, element by element."""
        numbers, arrays, pending = list[Expression](), list[Expression](), [node]
        while pending:
            part = seen(pending.pop())
            if part.op is multiply and (part is node or part not in self.names):
                pending += reversed(part.args)
            else:
                into = arrays if narrow(part).type.shape else numbers
                into.append(self.write(part, None, depth + 1))
        return times([*numbers, times(arrays, "each")])

    def _moved(self, node: Node, index: tuple[Index, ...], depth: int) -> Expression:
        move: Any = node.op
        if node.op is RESHAPE and not squeezes(node):
            stored = self.stored_apart(node, index, depth)
            if stored is not None:
                return stored
            row = self._row(node, index)
            return self._call(node, index, depth) if row is None else self.write(node.args[0], row, depth)
        return self.write(node.args[0], move.index(node, index), depth)

    def _row(self, node: Node, index: tuple[Index, ...]) -> tuple[Index, ...] | None:
        """Return the index before a reshape that flattens an array, or gives a vector the shape of one, or None for other reshapes."""
        letters = [i.variable or "" for i in index]
        if len(index) == 1 and letters[0] in self._rows:
            return tuple(map(Index, self._rows[letters[0]]))
        if node.args[0].type.ndim == 1 and in_a_row(node.args[0]) == node.type.shape:
            self._rows["".join(letters)] = tuple(letters)
            return (Index("".join(letters)),) if index == tuple(map(Index, letters)) else None
        return None

    def _call(self, node: Node, index: _Indices, depth: int) -> Expression:
        """Return a call by the op's name with whole operands; regions have a name of their own."""
        if node.op is ITEM:
            region = node.args[0]
            called = self._block(region, depth) if region.op in BLOCKS else self._call(region, None, depth)
            order = self.named.get(region, range(len(region.types)))
            number = Number(order.index(node["index"]))
            return self._part(Part(called, (number,)) if len(order) > 1 else called, index)
        if node.op in BLOCKS:
            return self._part(self._block(node, depth), index)
        given = arguments(self.write(a, None, depth + 1) for a in node.args)
        return self._part(Call(node.op.name, given), index)

    def _block(self, node: Node, depth: int) -> Expression:
        kind = _BLOCKS.get(node.op, node.op.name)
        if node not in self.blocks:
            self.blocks[node] = f"{kind}#{sum(b.partition('#')[0] == kind for b in self.blocks.values()) + 1}"
        carried = node.args[int(node.op is LOOP) :]
        shown = [carried[k] for k in self.named.get(node, range(len(carried)))]
        return Call(self.blocks[node], arguments(self.write(a, None, depth + 2) for a in shown))

    def _part(self, base: Expression, index: _Indices) -> Expression:
        return base if not index else Part(base, tuple(map(self._index, index)))

    def _constant(self, node: Node, index: _Indices) -> Expression:
        array = np.asarray(node["bits"].array())
        if not array.shape:
            return Number(array.item()) if array.item() != np.pi else Name("π")
        whole = Row(tuple(map(Number, array.tolist()))) if array.ndim == 1 and len(array) <= 4 else Name("constant")
        return self._part(whole, index)

    # sums and products ------------------------------------------------------------------------------------------------

    def _reduction(self, node: Node, index: tuple[Index, ...], depth: int) -> Expression:
        x, axes = node.args[0], node["axes"]
        unrolled = in_a_row(x) if node.op in ANY_ORDER and x.type.ndim == 1 else None
        shape = x.type.shape if unrolled is None else unrolled
        letters = self._fresh(len(axes) if unrolled is None else len(unrolled))
        if unrolled is None:
            outer, inner = iter(index), iter(letters)
            full = tuple(Index(next(inner)) if k in axes else next(outer) for k in range(x.type.ndim))
            shape = tuple(shape[k] for k in sorted(axes))
        else:
            full = (Index("".join(letters)),)
            self._rows["".join(letters)] = letters
        body = self.write(x, full, depth + 1)
        bounds = [(i, "<", self.size(extent, depth)) for i, extent in zip(letters, shape, strict=True)]
        self._release(letters)
        if node.op is LOGSUMEXP:
            return Call("log", (Big("sum", tuple(bounds), Power(None, body)),))
        if node.op is SUM and isinstance(body, Negative):  # its sign goes in front
            return negative(Big("sum", tuple(bounds), body.body))
        return Big(node.op.name, tuple(bounds), body)

    def _running(self, node: Node, index: _Indices, depth: int) -> Expression:
        """Return a cumulative sum or the like: over all up to the index."""
        (axis,) = node["axes"]
        if index is None:
            return self._call(node, index, depth)
        letters = self._fresh(1)
        full = tuple(Index(letters[0]) if k == axis else i for k, i in enumerate(index))
        body = self.write(node.args[0], full, depth + 1)
        self._release(letters)
        return Big(node.op.name.removeprefix("cum"), ((letters[0], "<=", self._index(index[axis])),), body)

    def _softmax(self, node: Node, index: _Indices, depth: int) -> Expression:
        if index is None:
            return self._call(node, index, depth)
        x, axes = node.args[0], node["axes"]
        letters = self._fresh(len(axes))
        inner = iter(letters)
        full = tuple(Index(next(inner)) if k in axes else i for k, i in enumerate(index))
        bounds = tuple((i, "<", self.size(x.type.shape[k], depth)) for i, k in zip(letters, sorted(axes), strict=True))
        total = Big("sum", bounds, Power(None, self.write(x, full, depth + 1)))
        self._release(letters)
        own = self.write(x, index, depth + 1)
        if node.op is SOFTMAX:
            return Quotient(Power(None, own), total)
        return plus(own, Negative(Call("log", (total,))))

    def _contraction(self, node: Node, index: _Indices, depth: int) -> Expression:
        factors = matrix_factors(node)
        if factors is not None and all(map(self._is_whole, node.args)):
            made = [self.write(x, None, depth + 1) for x, _ in factors]
            turned = [transposed(e) if iteration else e for e, (_, iteration) in zip(made, factors, strict=True)]
            scaled = not all(x.type.shape for x in node.args)
            return self._part(times(turned, "" if scaled else "matrix"), index)
        return self._einsum(node, index, depth) if index is not None else self._call(node, index, depth)

    def _einsum(self, node: Node, index: tuple[Index, ...], depth: int) -> Expression:
        inputs, out = split(node["subscripts"])
        table = dict(zip(out, index, strict=True))
        extents = {
            c: s
            for x, letters in zip(node.args, inputs, strict=True)
            for c, s in zip(letters, x.type.shape, strict=True)
        }
        summed = [c for c in extents if c not in table]
        row = {in_a_row(x) for x in node.args}
        unrolled = row.pop() if len(row) == 1 and not out and inputs[0] == inputs[1] and len(summed) == 1 else None
        letters = self._fresh(len(summed if unrolled is None else unrolled))
        if unrolled is None:
            shape = tuple(extents[c] for c in summed)
            table |= {c: Index(i) for c, i in zip(summed, letters, strict=True)}
        else:
            shape = unrolled
            self._rows["".join(letters)] = letters
            table |= {summed[0]: Index("".join(letters))}
        written = [
            self.write(x, tuple(table[c] for c in own), depth + 1) for x, own in zip(node.args, inputs, strict=True)
        ]
        self._release(letters)
        bounds = tuple((i, "<", self.size(extent, depth)) for i, extent in zip(letters, shape, strict=True))
        body = times(written)
        return Big("sum", bounds, body) if bounds else body

    # places -----------------------------------------------------------------------------------------------------------

    def _ramp(self, node: Node, index: _Indices, depth: int) -> Expression:
        return self._index(index[node["axis"]]) if index is not None else self._call(node, index, depth)

    def _solved(self, node: Node, index: _Indices, depth: int) -> Expression:
        matrix, *right = [seen(a) for a in node.args]
        if right and is_column(right[0]):  # a vector, which was given a second axis
            right, index = [right[0].args[0]], None if index is None else index[:-1]
        written = [self.write(a, None, depth + 1) for a in (matrix, *right)]
        inverse = Transposed(written[0], "-1")
        return self._part(times([inverse, *written[1:]], "matrix"), index)

    def _stored(self, node: Node, index: _Indices, depth: int) -> Expression:
        """Return a part that stands, or is added, in a larger array."""
        base, part = node.args
        if index is None or any(step != 1 for _, _, step in node["slices"]):
            return self._call(node, index, depth)
        inside: list[Expression] = []
        for i, (start, length, _), extent in zip(index, node["slices"], node.type.shape, strict=True):
            if start != 0:
                inside.append(Relation(">=", self._index(i), self.size(start)))
            if start + length != extent:
                inside.append(Relation("<", self._index(i), self.size(start + length)))
        moved = tuple(i.through(-1 * s, 1) for i, (s, _, _) in zip(index, node["slices"], strict=True))
        before, here = self.write(base, index, depth + 1), self.write(part, moved, depth + 1)
        adds = node.op is ADD_AT
        if not inside:
            return plus(before, here) if adds else here
        condition = inside[0]
        for further in inside[1:]:
            condition = Relation("and", condition, further)
        return plus(before, Cases(condition, here, Number(0))) if adds else Cases(condition, here, before)

    def _flipped(self, node: Node, index: _Indices, depth: int) -> Expression:
        if index is None:
            return transposed(self.write(node.args[0], None, depth + 1))
        return self._moved(node, index, depth)

    # what may be written whole ----------------------------------------------------------------------------------------

    def _is_whole(self, node: Node) -> bool:
        """Return whether a node can be written without indices and still be understood."""
        pending, met = [node], set[Node]()
        while pending:
            part = seen(pending.pop())
            named = part in self.names and part is not self._root
            if part in met or not part.type.shape or named or part.op is CONSTANT:
                continue
            met.add(part)
            if not self._may_be_whole(part):
                return False
            if part.op.kind == "pointwise" or part.op is TRANSPOSE or part.op is CONTRACT:
                pending += part.args
        return True

    def _may_be_whole(self, node: Node) -> bool:
        """Return whether the op itself can be; its operands are another matter."""
        kind = node.op.kind
        if node.op is TRANSPOSE:
            return node.type.ndim == 2
        if node.op is CONTRACT:
            return matrix_factors(node) is not None
        if kind == "pointwise":
            return self._is_plain_pointwise(node)
        if kind in {"move", "fold", "update"} or node.op in INDEXED:
            return node.op is BROADCAST and not node.args[0].type.shape
        return True

    def _is_plain_pointwise(self, node: Node) -> bool:
        scalar_below = node.op is divide and not narrow(node.args[1]).type.shape
        return node.op in LINEAR or node.op in BY_ELEMENT or node.op is exp or scalar_below

    # letters and sizes ------------------------------------------------------------------------------------------------

    def _fresh(self, count: int) -> tuple[str, ...]:
        free = [c for c in (*_LETTERS, *(f"i{k}" for k in range(1, 65))) if c not in self._taken]
        self._taken.update(free[:count])
        return tuple(free[:count])

    def _release(self, letters: Sequence[str]) -> None:
        self._taken.difference_update(letters)

    def _index(self, index: Index) -> Expression:
        if index.variable in self._bound:
            held = self._bound[index.variable]
            scaled = times([Number(index.step), held])
            return scaled if index.offset == 0 else plus(scaled, self.size(index.offset))
        moved = 0 if index.variable is None else symbol(f".{index.variable}") * index.step
        return self.size(moved + index.offset)

    def size(self, size: Size, depth: int = 0) -> Expression:
        """Return a size, with a letter for every extent."""
        if not isinstance(size, Dim):
            return Number(size)
        terms: list[Expression] = []
        for monomial, coefficient in sorted(size.terms, key=lambda term: term[1] < 0):
            atoms = [self._atom(a, depth) if p == 1 else Power(self._atom(a, depth), Number(p)) for a, p in monomial]
            term = times([Number(abs(coefficient)), *atoms])
            terms.append(negative(term) if coefficient < 0 else term)
        return terms[0] if len(terms) == 1 else Add(tuple(terms))

    def _atom(self, atom: Any, depth: int) -> Expression:
        if isinstance(atom, Symbol):
            own = atom.name.startswith(".")  # the index of a sum
            return Name(atom.name[1:] if own else self.letters(atom, self._taken))
        if isinstance(atom, Apply):
            left, right = self.size(atom.left, depth), self.size(atom.right, depth)
            if atom.function == "floordiv":
                return Fence("floor", Quotient(left, right))
            return Relation("mod", left, right) if atom.function == "mod" else Call(atom.function, (left, right))
        return self.write(atom, (), depth + 1)
