"""How each operation's structure follows from the structure of its operands; None where it has to be taken for dense."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensormagic.ir.node import Node
from tensormagic.ir.operation import Operation
from tensormagic.ir.type import Type
from tensormagic.ops.contract import split
from tensormagic.ops.convolution import CONVOLVE
from tensormagic.ops.effects.checks import REQUIRE
from tensormagic.ops.effects.raising import AFTER, CHECK
from tensormagic.ops.fft import FFT, IFFT
from tensormagic.ops.fold import CUMSUM
from tensormagic.ops.form import FORM
from tensormagic.ops.indices.gather import ADD_ALONG_AXIS, GATHER, TAKE_ALONG_AXIS
from tensormagic.ops.indices.scatter import SCATTER_ADD, SCATTER_SET
from tensormagic.ops.matrices.gaps import OVER, RESOLVED
from tensormagic.ops.matrices.linalg import CHOLESKY, INV, PINV, SOLVE, SOLVE_TRIANGULAR
from tensormagic.ops.reverse.tape import ADD_RECORD, ADD_TAPES, RECORD, REPLAY
from tensormagic.ops.update import ADD_AT, SET
from tensormagic.transform.sparse.dependence import NOTHING, Codes, Sets

if TYPE_CHECKING:
    from tensormagic.transform.sparse.sparsity import Frame

Rule = Callable[["Frame", Node], Any]
_PAIRS = 5_000_000  # pairs of an element and one that it depends on, of one operation that mixes elements


class Pool:
    """What the entries of a tape depend on, by place; None for an unknown place."""

    def __init__(self, entries: dict[Any, Any]) -> None:
        self.entries = entries

    def joined(self, sets: Sets, other: Pool) -> Pool:
        """Return the dependences of both tapes, joined."""
        found = self
        for place, entry in other.entries.items():
            found = found.put(sets, place, entry)
        return found

    def put(self, sets: Sets, place: Any, entry: Any) -> Pool:
        """Return a pool in which an entry depends on something more."""
        old = self.entries.get(place)
        if old is not None:
            entry = sets.union(old, entry) if _alike(old, entry) else np.asarray(pooled(sets, [old, entry]))
        return Pool({**self.entries, place: entry})

    def at(self, place: Any) -> list[Any]:
        """Return the dependences that an entry may have, given that its place may be unknown."""
        places = self.entries if place is None else [p for p in (place, None) if p in self.entries]
        return [self.entries[p] for p in places]


def _alike(a: Any, b: Any) -> bool:
    return np.shape(a) == np.shape(b) and not isinstance(a, Pool) and not isinstance(b, Pool)


def pooled(sets: Sets, structures: Sequence[Any]) -> int:
    """Return the code of the union of everything that elements of some structures depend on."""
    found: list[Codes] = []
    stack = list(structures)
    while stack:
        s = stack.pop()
        if isinstance(s, Pool):
            stack += s.entries.values()
        elif isinstance(s, tuple):
            stack += s
        elif s is not None:
            found.append(np.unique(s))
    codes = np.concatenate(found) if found else np.zeros(0, np.int64)
    return int(sets.unions(np.zeros(codes.size, np.int64), codes, 1)[0])


# element by element, and moves ----------------------------------------------------------------------------------------


def _pointwise(frame: Frame, node: Node) -> Codes:
    shape = frame.shape(node)
    found: Codes | None = None
    for a in node.args:
        if frame.found.get(a) is not None:
            codes = np.broadcast_to(frame.codes(a), shape)
            found = codes if found is None else frame.sets.union(found, codes)
    return np.zeros(shape, np.int64) if found is None else found


def _moved(frame: Frame, node: Node) -> Codes | None:
    """Return the codes moved by NumPy as the op moves elements, or None if a size is not known."""
    if any(frame.position(s) is None for s in _sizes(node)):
        return None
    value = node.op.evaluate(node, [frame.codes(a) for a in node.args], frame.size)
    return np.asarray(value, np.int64)


def _sizes(node: Node) -> list[Any]:
    """Return the sizes that a node's parameters mention."""
    found: list[Any] = []
    stack: list[Any] = list(node.params.values())
    while stack:
        v = stack.pop()
        if isinstance(v, tuple):
            stack += v
        elif not isinstance(v, str | float | bool | bytes | Type) and v is not None and hasattr(v, "terms"):
            found.append(v)
    return found


def _added_at(frame: Frame, node: Node) -> Codes | None:
    base, value = node.args
    if any(frame.position(s) is None for s in _sizes(node)):
        return None
    zeros = np.zeros(frame.shape(base), np.int64)
    placed = node.op.evaluate(node, [zeros, frame.codes(value)], frame.size)
    return frame.sets.union(frame.codes(base), np.asarray(placed, np.int64))


def _of_operand(number: int) -> Rule:
    def rule(frame: Frame, node: Node) -> Codes | None:
        alone = all(frame.found.get(a) is None for k, a in enumerate(node.args) if k != number)
        return frame.codes(node.args[number]) if alone else None

    return rule


# along axes -----------------------------------------------------------------------------------------------------------


def _reduced(sets: Sets, codes: Codes, axes: Sequence[int]) -> Codes:
    """Return the unions along axes, whose extents become 1."""
    shape = tuple(1 if k in axes else n for k, n in enumerate(codes.shape))
    groups = np.broadcast_to(np.arange(int(np.prod(shape))).reshape(shape), codes.shape)
    return sets.unions(groups.ravel(), codes.ravel(), int(np.prod(shape))).reshape(shape)


def _fold(frame: Frame, node: Node) -> Codes:
    shape = frame.shape(node)
    codes = _reduced(frame.sets, frame.codes(node.args[0]), node["axes"])
    return np.broadcast_to(codes.reshape(shape) if codes.size == np.prod(shape) else codes, shape)


def _running(frame: Frame, node: Node) -> Codes | None:
    """Return the structure of a running fold: each element depends on those up to it along the axis."""
    codes = frame.codes(node.args[0])
    (axis,) = node["axes"]
    extent = codes.shape[axis]
    if codes.size * extent > _PAIRS:
        return np.broadcast_to(_reduced(frame.sets, codes, [axis]), codes.shape)
    last = np.moveaxis(codes, axis, -1)
    place = np.arange(codes.size).reshape(last.shape)
    to, source = np.nonzero(np.tri(extent, dtype=bool))
    found = frame.sets.unions(place[..., to].ravel(), last[..., source].ravel(), codes.size)
    return np.moveaxis(found.reshape(last.shape), -1, axis)


def _along_axis(frame: Frame, node: Node) -> Codes | None:
    """Return the structure of a transform along one axis, which may change its extent."""
    shape, axis = frame.shape(node), node["axis"]
    return np.broadcast_to(_reduced(frame.sets, frame.codes(node.args[0]), [axis]), shape)


def _matrices(frame: Frame, node: Node) -> Codes | None:
    """Return the structure of a library call for each matrix of a stack, or None for other shapes."""
    if len(node.types) > 1:
        return None
    shape = frame.shape(node)
    lead = shape[:-2]
    moving = [frame.codes(a) for a in node.args if frame.found.get(a) is not None]
    if len(shape) < 2 or any(m.shape[:-2] != lead for m in moving):
        return None
    found = np.zeros((*lead, 1, 1), np.int64)
    for codes in moving:
        found = frame.sets.union(found, _reduced(frame.sets, codes, [codes.ndim - 2, codes.ndim - 1]))
    return np.broadcast_to(found, shape)


# products -------------------------------------------------------------------------------------------------------------


def _contract(frame: Frame, node: Node) -> Codes:
    inputs, output = split(node["subscripts"])
    found: Codes | None = None
    for k in (0, 1):
        if frame.found.get(node.args[k]) is not None:
            codes = _factor(frame, node, k, inputs, output)
            found = codes if found is None else frame.sets.union(found, codes)
    return np.zeros(frame.shape(node), np.int64) if found is None else found


def _factor(frame: Frame, node: Node, k: int, inputs: Sequence[str], output: str) -> Codes:
    """Return what the result depends on through operand ``k``."""
    codes, own, letters = frame.codes(node.args[k]), inputs[k], inputs[1 - k]
    other = frame.value(node.args[1 - k])
    if isinstance(other, np.ndarray):
        rest = int(np.prod([n for n, letter in zip(codes.shape, own, strict=True) if letter not in letters]))
        places = np.nonzero(other)
        if places and places[0].size * rest <= _PAIRS and places[0].size < other.size:
            return _selected(frame, codes, own, dict(zip(letters, places, strict=True)), output, frame.shape(node))
    summed = [j for j, letter in enumerate(own) if letter not in output]
    kept = [letter for letter in own if letter in output]
    codes = _reduced(frame.sets, codes, summed).reshape([n for n, c in zip(codes.shape, own, strict=True) if c in kept])
    order = [kept.index(letter) for letter in output if letter in kept]
    codes = np.transpose(codes, order)
    shape = frame.shape(node)
    wide = tuple(n if letter in kept else 1 for n, letter in zip(shape, output, strict=True))
    return np.broadcast_to(codes.reshape(wide), shape)


def _selected(
    frame: Frame, codes: Codes, own: str, places: dict[str, Any], output: str, shape: tuple[int, ...]
) -> Codes:
    """Return the dependence through the nonzero entries of the other, known operand."""
    rest = [(letter, n) for letter, n in zip(own, codes.shape, strict=True) if letter not in places]
    grid = np.indices([n for _, n in rest]).reshape(len(rest), int(np.prod([n for _, n in rest])))
    count = len(next(iter(places.values())))
    at = {letter: np.repeat(p, grid.shape[1]) for letter, p in places.items()}
    at |= {letter: np.tile(grid[j], count) for j, (letter, _) in enumerate(rest)}
    source = np.ravel_multi_index([at[c] for c in own], codes.shape) if own else np.zeros(count, np.int64)
    total = int(np.prod(shape))
    to = np.ravel_multi_index([at[c] for c in output], shape) if output else np.zeros(len(source), np.int64)
    return frame.sets.unions(to, codes.ravel()[source], total).reshape(shape)


# by indices -----------------------------------------------------------------------------------------------------------


def _gathered(frame: Frame, node: Node) -> Codes:
    x, indices = node.args
    codes, places = frame.codes(x), frame.value(indices)
    if isinstance(places, np.ndarray | np.integer | int):
        return np.asarray(node.op.evaluate(node, [codes, places], frame.size), np.int64)
    shape, axis = frame.shape(node), node["axis"]
    one = _reduced(frame.sets, codes, [axis])
    if node.op is GATHER:
        one = one.reshape(*codes.shape[:axis], *[1] * indices.type.ndim, *codes.shape[axis + 1 :])
    return np.broadcast_to(one, shape)


def _scattered(frame: Frame, node: Node) -> Codes:
    base, indices, values = node.args
    old, new, places = frame.codes(base), frame.codes(values), frame.value(indices)
    if not isinstance(places, np.ndarray | np.integer | int):
        return frame.sets.union(old, np.full(old.shape, pooled(frame.sets, [new])))
    numbers = np.arange(old.size).reshape(old.shape)
    along = node.op is ADD_ALONG_AXIS
    targets = (np.take_along_axis if along else np.take)(numbers, np.asarray(places), axis=node["axis"])
    groups = np.concatenate([numbers.ravel(), np.broadcast_to(targets, new.shape).ravel()])
    codes = np.concatenate([old.ravel(), new.ravel()])
    return frame.sets.unions(groups, codes, old.size).reshape(old.shape)


def _convolved(frame: Frame, node: Node) -> Codes | None:
    """Return the structure of a convolution, or None if it is too large.

    Element ``i + j`` depends on element ``i`` of one operand, through element ``j`` of the other.
    """
    a, v = (frame.shape(x) for x in node.args)
    if len(a) != 1 or a[0] * v[0] > _PAIRS:
        return None
    left, right = np.indices((a[0], v[0])).reshape(2, -1)
    codes = [frame.codes(node.args[0])[left], frame.codes(node.args[1])[right]]
    both = np.concatenate(codes)
    return frame.sets.unions(np.concatenate([left + right] * 2), both, frame.shape(node)[0])


# tapes ----------------------------------------------------------------------------------------------------------------


def _place(frame: Frame, index: Node) -> Any:
    value = frame.value(index)
    whole = isinstance(value, int | np.integer) or (isinstance(value, np.ndarray) and not value.ndim)
    return int(value) if whole else None


def _recorded(frame: Frame, node: Node) -> Pool:
    tape, index, value = node.args
    pool = frame.found.get(tape) or Pool({})
    entry = frame.found.get(value)
    return pool if entry is None else pool.put(frame.sets, _place(frame, index), entry)


def _replayed(frame: Frame, node: Node) -> Any:
    tape, index = node.args
    sets, entries = frame.sets, frame.found[tape].at(_place(frame, index))
    if node.type.form == "tape":
        return Pool({None: np.asarray(pooled(sets, entries))})
    shape = frame.shape(node)
    found: Codes = np.full(shape, NOTHING, np.int64)
    for entry in entries:
        found = sets.union(found, entry if _alike(entry, found) else np.full(shape, pooled(sets, [entry])))
    return found


def _tapes_added(frame: Frame, node: Node) -> Pool:
    found = Pool({})
    for a in node.args:
        pool = frame.found.get(a)
        if pool is not None:
            found = found.joined(frame.sets, pool)
    return found


BY_KIND: dict[str, Rule] = {"pointwise": _pointwise, "move": _moved, "fold": _fold, "contract": _contract}
RULES: dict[Operation, Rule] = {
    FORM: _of_operand(0),
    SET: _moved,
    ADD_AT: _added_at,
    CUMSUM: _running,
    GATHER: _gathered,
    TAKE_ALONG_AXIS: _gathered,
    ADD_ALONG_AXIS: _scattered,
    SCATTER_SET: _scattered,
    SCATTER_ADD: _scattered,
    CONVOLVE: _convolved,
    REQUIRE: _of_operand(0),
    CHECK: _of_operand(0),
    AFTER: _of_operand(1),
    RESOLVED: _of_operand(0),
    OVER: _of_operand(0),
    RECORD: _recorded,
    ADD_RECORD: _recorded,
    REPLAY: _replayed,
    ADD_TAPES: _tapes_added,
    **dict.fromkeys((FFT, IFFT), _along_axis),
    **dict.fromkeys((SOLVE, SOLVE_TRIANGULAR, INV, PINV, CHOLESKY), _matrices),
}
