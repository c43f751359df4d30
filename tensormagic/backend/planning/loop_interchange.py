"""Interchange counted loops whose iterations are element-wise: run all iterations on one tile of elements, then on the next.

Printed as it stands, ``for k in range(50): x = x * x + c`` passes 50 times over arrays that do not fit in the
cache. As no element needs another one, the loops are interchanged: a tile stays in the cache through all
iterations, threads divide the tiles once, and intermediate values are never stored. Short iterations are unrolled,
so that carries stay in registers. Nests over the same elements right before or after the loop run tile by tile with
it. The arithmetic of each element, and so its bits, are unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensormagic.backend.planning.kinds import kind_of
from tensormagic.backend.planning.lower import ANYWHERE, IndexTuple, Stage, axes_of, variable
from tensormagic.backend.planning.schedule import (
    MOST_KERNEL_OPS,
    MOST_NEST_OPS,
    Kernel,
    Loop,
    Nest,
    Part,
    Step,
    Storage,
)
from tensormagic.backend.planning.steps import Region
from tensormagic.backend.printing.body_text import Body, indented
from tensormagic.backend.printing.kernel_text import KernelText, Line
from tensormagic.backend.printing.region_text import number
from tensormagic.ir.node import Node, as_size, topological
from tensormagic.ir.size import Size, nodes_of, product
from tensormagic.ops.move_kind import Index

Copied = Mapping[Node, set[Node]]
Owner = Callable[[Node], Node]
SHORT = 6  # operations of an iteration up to which several are unrolled, since loads and stores dominate
MOST_TOGETHER = 16  # most iterations unrolled
OPS_TOGETHER = 64  # most operations in unrolled iterations


@dataclass(frozen=True)
class Interchanged:
    """A loop whose iterations run element by element, tile by tile.

    Parameters
    ----------
    region
        The loop.
    nest
        All that an iteration computes, as one loop over elements.
    ends
        The arrays whose elements change, each with its value after an iteration.
    before, after
        Nests that run tile by tile with it.
    """

    region: Region
    nest: Nest
    ends: tuple[tuple[Node, Node], ...]
    before: tuple[Nest, ...] = ()
    after: tuple[Nest, ...] = ()

    @property
    def around(self) -> tuple[Nest, ...]:
        """Return the nests before and after it."""
        return (*self.before, *self.after)

    @property
    def is_strided(self) -> bool:
        """Return whether neighbouring elements are far apart in memory, because an iteration fixes the place along an array's last axis."""
        stages = self.nest.stages
        touched = [index for s in stages for index in (*(i for _, i in s.reads), s.written or ())]
        return any(index and index[-1].variable is None and any(i.variable for i in index) for index in touched)

    def print_tile(self, text: KernelText) -> tuple[str, list[Line]]:
        """Return the number of iterations, and the lines that a tile from ``start`` to ``stop`` runs."""
        head = self.region.head
        iterations = number(text, head) if head is not None else "0"
        known = 0 if head is None else as_size(head)
        together, count = self._together(known), f"np.int64({iterations})"
        first = [line for nest in self.before for line in _print_nest(text, nest)]
        last = [line for nest in self.after for line in _print_nest(text, nest)]
        if together == 1:
            return iterations, [*first, *self._print_loop(text, count, count, 1), *last]
        if known == together:
            return iterations, [*self._print_loop(text, f"0, {count}, {together}", count, together, self.before), *last]
        if isinstance(known, int) and known % together == 0:
            return iterations, [*first, *self._print_loop(text, f"0, {count}, {together}", count, together), *last]
        rest = text.fresh("rest")
        return iterations, [
            *first,
            (f"{rest} = {count} % {together}", None),
            *self._print_loop(text, f"0, {count} - {rest}, {together}", count, together),
            *self._print_loop(text, f"{count} - {rest}, {count}", count, 1),
            *last,
        ]

    def _together(self, count: Size | None) -> int:
        """Return how many iterations are written in sequence, so that carries stay in registers."""
        stages = self.nest.stages
        if not self.ends or self.nest.ops > SHORT or any(s.heavy or s.kind == "store" for s in stages):
            return 1
        most = min(MOST_TOGETHER, OPS_TOGETHER // max(1, self.nest.ops))
        if not isinstance(count, int):
            return most
        return min(range(most, 0, -1), key=lambda k: count // k + count % k)

    def _print_loop(
        self, text: KernelText, bounds: str, count: str, together: int, before: Sequence[Nest] = ()
    ) -> list[Line]:
        """Return the loop over iterations, ``together`` at once, around the loop over the elements of the tile.

        Results of the nests ``before`` are computed before the first iteration; pass them only if there are no others.
        """
        index, lines, scalars = text.fresh("iteration"), text.lines, text.scalars
        text.lines = []
        own = {c: axes_of(c.type.shape)[1] for c, _ in self.ends}
        text.scalars = self._scalars(scalars, index)
        nest = self._with(before, text.memory.owner)
        body = Body(text, nest, nest.loops[0], None)
        body.carries, body.iteration = {end: carry for carry, end in self.ends}, self.region.index
        body.print_stages(s for n in before for s in n.stages)
        starts = dict(zip(self.region.carries, self.region.starts, strict=True))
        for carry, index_of in own.items():  # each element is read before any of them is written
            known = body.memo.get((starts[carry], index_of))
            if known is None:
                body.value(carry, index_of)
            else:
                body.memo[carry, index_of] = known
        after = self._print_iteration(body)
        for k in range(1, together):
            text.scalars = self._scalars(scalars, f"({index} + {k})")
            body.begin_again(dict(zip(own, after, strict=True)))
            after = self._print_iteration(body)
        for (carry, index_of), value in zip(own.items(), after, strict=True):
            body.store(carry, index_of, value)
        inside = [*text.lines, *body.sections[0], *body.printed(woven=together > 1)]
        text.lines, text.scalars = lines, scalars
        rows = text.product(product(self.nest.rows))
        done = f"(start * {count} + (stop - start) * {index}) // {rows}"  # as if all elements had advanced equally
        return [
            (f"for {index} in range({bounds}):", self.region.root),
            *indented([*text.polls(done, count, inner=False), *inside]),
        ]

    def _with(self, first: Sequence[Nest], owner: Callable[[Node], Node]) -> Nest:
        """Return all that an iteration and the nests before it compute; values that the loop overwrites are not stored."""
        if not first:
            return self.nest
        stages = [s for n in (*first, self.nest) for s in n.stages]
        found = Nest(stages, depth=self.nest.depth, loops=[Loop((), stages)])
        over = {owner(c) for c, _ in self.ends}
        for nest in (*first, self.nest):
            found.storage.update(nest.storage)
        for s in (s for n in first for s in n.stages):
            if owner(s.root) in over:
                found.storage[s.root] = Storage.LOCAL
        return found

    def _scalars(self, scalars: dict[Any, str], index: str) -> dict[Any, str]:
        """Return the numbers known in an iteration."""
        return {**scalars, **({} if self.region.index is None else {(self.region.index, ()): index})}

    def _print_iteration(self, body: Body) -> list[str]:
        """Print one iteration; returns the carried elements after it."""
        body.print_stages(self.nest.stages)
        return [body.after_store(c, body.value(e, axes_of(c.type.shape)[1])) for c, e in self.ends]


def _print_nest(text: KernelText, nest: Nest) -> list[Line]:
    """Return the loop over the elements of a tile for a nest that runs before or after the iterations."""
    lines, scalars = text.lines, text.scalars
    text.lines, text.scalars = [], dict(scalars)
    body = Body(text, nest, nest.loops[0], None)
    body.print_stages()
    found = [*text.lines, *body.sections[0], *body.printed()]
    text.lines, text.scalars = lines, scalars
    return found


def interchanged(region: Region, copied: Copied, owner: Owner) -> Interchanged | None:
    """Return a region as such a loop, or None for any other.

    Parameters
    ----------
    region
        A region that is not inside another one.
    copied
        Steps that begin with a copy of what they change.
    owner
        Gives the owner of a value's array.
    """
    body = region.blocks.get("body")
    if body is None or region.head is None or not body.parts:
        return None
    nests = [part for part in body.parts if isinstance(part, Nest) and _is_flat(part)]
    if len(nests) < len(body.parts):
        return None
    stages = [s for nest in nests for s in nest.stages]
    domain = stages[0].domain
    if any(map(nodes_of, domain)) or not _are_of_one(stages, domain, copied):
        return None
    ends = [(c, e) for c, e in zip(region.carries, body.results, strict=False) if c is not e]
    stores, computed = {s.root for s in stages if s.kind == "store"}, {s.root for s in stages}
    taken = tuple([(c, e) for c, e in ends if e not in stores or owner(c) is not owner(e)])
    if not all(axes_of(c.type.shape)[0] == domain and (e in computed or e in region.carries) for c, e in taken):
        return None
    changed = {owner(n) for n in (*(c for c, _ in ends), *stores)}
    nest = _flat(stages, stores)
    keeps = nest.ops <= MOST_NEST_OPS and _keep_to_their_own(stages, computed, changed, owner)
    return Interchanged(region, nest, taken) if keeps else None


def _are_of_one(stages: Sequence[Stage], domain: tuple[Size, ...], copied: Copied) -> bool:
    """Return whether stages compute or store the elements of one domain, in any order, and none begins with a copy."""
    return not any(s.domain != domain or s.root in copied.get(s.root, ()) or _may_fail(s) for s in stages)


def _keep_to_their_own(stages: Sequence[Stage], computed: set[Node], changed: set[Node], owner: Owner) -> bool:
    """Return whether each element reads and writes, of computed or changed arrays, only its own element."""
    along: dict[Node, tuple[int, ...]] = {}
    for stage in stages:
        for array, index in _touched(stage, computed, changed, owner):
            axes = _own_axes(stage, index)
            if axes is None or along.setdefault(array, axes) != axes:
                return False
    return True


def _flat(stages: list[Stage], stored: set[Node]) -> Nest:
    """Return a nest of one loop over all elements that stores these nodes."""
    nest = Nest(stages, depth=len(stages[0].domain), loops=[Loop((), stages)])
    nest.storage = {s.root: Storage.FULL if s.root in stored else Storage.LOCAL for s in stages}
    return nest


def gathered(steps: Sequence[Step], copied: Copied, owner: Owner) -> list[Step]:
    """Return the steps, with the nests directly before and after an interchanged loop moved into its kernel."""
    for k, step in enumerate(steps):
        if not isinstance(step, Kernel) or not step.regions:
            continue
        before = steps[k - 1] if k else None
        while isinstance(before, Kernel) and before.parts and not before.regions:
            if surrounded([before.parts[-1], *step.parts], copied, owner) is None:
                break
            step.parts.insert(0, before.parts.pop())
        after = steps[k + 1] if k + 1 < len(steps) else None
        while isinstance(after, Kernel) and after.parts and not after.regions:
            if surrounded([*step.parts, after.parts[0]], copied, owner) is None:
                break
            step.parts.append(after.parts.pop(0))
    return [step for step in steps if not isinstance(step, Kernel) or step.parts]


def surrounded(parts: Sequence[Part], copied: Copied, owner: Owner) -> Interchanged | None:
    """Return a loop and the nests around it as one loop over tiles, or None if they cannot be."""
    (region,) = (part for part in parts if isinstance(part, Region))
    added = [part for part in parts if isinstance(part, Nest) and _is_flat(part) and len(part.loops) == 1]
    loop = interchanged(region, copied, owner)
    if loop is None or len(added) < len(parts) - 1:
        return None
    stages = [s for nest in added for s in nest.stages]
    domain, made = loop.nest.stages[0].domain, {owner(s.root) for s in stages}
    if any(s.kind != "map" for s in stages) or not _are_of_one(stages, domain, copied):
        return None
    if _copies_what_is_made(region, made, copied, owner):
        return None
    flat = [_flat(n.stages, {r for r, kept in n.storage.items() if kept is Storage.FULL}) for n in added]
    count = parts.index(region)
    found = Interchanged(region, loop.nest, loop.ends, tuple(flat[:count]), tuple(flat[count:]))
    every = [s for nest in (loop.nest, *flat) for s in nest.stages]
    computed = {s.root for s in every} | {n for n, _ in region.results}
    changed = made | {owner(n) for n in (*computed, *region.carries)}
    keeps = sum(s.ops for s in every) <= MOST_KERNEL_OPS and _keep_to_their_own(every, computed, changed, owner)
    return found if keeps else None


def _copies_what_is_made(region: Region, made: set[Node], copied: Copied, owner: Owner) -> bool:
    """Return whether a loop begins with a copy of a result of the nests before it: copies are made before the kernel runs."""
    copies = copied.get(region.root, ())
    return any(c in copies and owner(s) in made for c, s in zip(region.carries, region.starts, strict=True))


def _is_flat(nest: Nest) -> bool:
    """Return whether all stages of a nest compute or store single elements."""
    return nest.depth > 0 and all(
        s.kind in {"map", "store"} and not s.reduced and (s.written is None or "slices" in s.root.params)
        for s in nest.stages
    )


def _may_fail(stage: Stage) -> bool:
    """Return whether single elements may raise errors: which comes first depends on the order of elements and iterations."""
    read = {node for node, _ in stage.reads}
    inside = topological([stage.root], stop=lambda n: n in read)
    return any(
        kind_of(n) == "take" and any(a.type.shape for a in n.args["axis" in n.params :])
        for n in inside
        if n not in read
    )


def _touched(stage: Stage, computed: set[Node], changed: set[Node], owner: Owner) -> Iterator[tuple[Node, IndexTuple]]:
    """Yield the arrays, with indices, that a stage reads and writes, among those the loop computes or changes."""
    for node, index in stage.reads:
        if node.type.shape and (node in computed or owner(node) in changed):
            yield owner(node), index
    if stage.written is not None:
        yield owner(stage.root), stage.written


def _own_axes(stage: Stage, index: IndexTuple) -> tuple[int, ...] | None:
    """Return the axes along which an index follows the stage's element, if it is constant along the others, or None."""
    axes = tuple(k for k, i in enumerate(index) if i.variable is not None or i == ANYWHERE)
    own = tuple(index[k] for k in axes)
    return axes if own == tuple(Index(variable(k)) for k in range(len(stage.domain))) else None
