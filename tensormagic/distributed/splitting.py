"""Which nodes of a graph are whole, have the rows of a batch, or are a part; and the stages that follow from this.

A node is *whole* if it is the same for all rows, has *rows* if one of its axes is the batch, and is a *part* if it is
a reduction over the batch: that of a chunk, which is combined with those of the others. A node that reads a part
waits for all chunks.

If a row of a result is computed from neighbours, as in ``x[1:] - x[:-1]``, a chunk is lent the first rows of the next
one, the *halo*. What is computed of these beyond the chunk's own rows is left out before it is summed or returned.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.config import config
from tensormagic.distributed.driving import Driving, driving
from tensormagic.distributed.masks import without_masks
from tensormagic.distributed.stages import Driven, Inner, Split, Stage, Whole
from tensormagic.ir import site
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.graph import Graph, bare_symbol, graphs_in
from tensormagic.ir.node import Node, resized, topological, users
from tensormagic.ir.site import Site
from tensormagic.ir.size import Atom, Size, Symbol, atom, atoms, nodes_of
from tensormagic.ir.substituting import substitute
from tensormagic.ir.type import Type
from tensormagic.ops.draws.random import DRAW, SEED
from tensormagic.ops.effects.telling import is_effect
from tensormagic.ops.leaf import CONSTANT, IOTA, PARAMETER, SIZE, Source, input_node, parameter
from tensormagic.ops.move import slice_
from tensormagic.ops.op import plainly
from tensormagic.ops.opaque import ITEM, items
from tensormagic.ops.regions.region import Region, as_sizes, graph_over, with_loosened
from tensormagic.ops.rows import Merged, Mixed, axis_of_rows, missing_rows
from tensormagic.ops.scalars.scalar import add
from tensormagic.transform.rewriting import rewrite

"""The number of rows of a chunk: 0 and 1 are numbers like others."""


def split(
    graph: Graph,
    places: Sequence[int],
    level: str | None = None,
    sites: Callable[[Node], Sequence[Site]] = site.of,
    *,
    each: bool = False,
) -> Split:
    """Return a graph, whose parameters at ``places`` come as chunks of rows, split into stages.

    Parameters
    ----------
    graph
        A closed graph, before rewriting.
    places
        The numbers of the parameters that are split.
    level
        The rewriting level; None for the configured one.
    sites
        The sites of nodes, for messages.
    each
        Whether it is the graph of a ``vmap`` over the rows: then rows are independent, except for effects.

    Raises
    ------
    CaptureError
        If rows are mixed in a way that has no rule, with the line of the user's code.
    """
    batch = _batch_of(graph, places)
    if graph.ops & _DRAWS:
        raise CaptureError(
            "random numbers are not drawn where rows are split", "Draw them beforehand, and pass them as arguments."
        )
    source, graph = graph, without_masks(rewrite(graph, level or config.math).graph, batch)
    _batch_of(graph, places)  # rewriting may find more sizes that must be checked
    return _split(source, graph, tuple(places), batch, sites, each=each)


def _split(
    source: Graph,
    graph: Graph,
    places: tuple[int, ...],
    batch: Symbol,
    sites: Callable[[Node], Sequence[Site]],
    *,
    each: bool = False,
) -> Split:
    """Return the stages of a graph that was rewritten, and whose number of rows is known."""
    own = next(s for k in itertools.count() if not _has(graph, s := Symbol(f"any{k}", least=0)))
    known: dict[Node, Any] = {}
    instead_of: dict[Node, CaptureError] = {}  # errors name the user's node, and not its simpler form
    while True:
        try:
            return _Splitting(source, graph, places, batch, own, sites, each, known).result()
        except _Refused as error:
            raise instead_of.get(error.node, error.told) from None
        except _Simpler as found:
            refused = instead_of.get(found.node, found.refused)
            instead_of.update(dict.fromkeys(found.made, refused))
            graph = graph.with_results(site.substituted(graph.results, found.instead))


class _Refused(Exception):  # noqa: N818 (caught above)
    """Raised if a node has no rule."""

    def __init__(self, node: Node, told: CaptureError) -> None:
        self.node, self.told = node, told


class _Simpler(Exception):  # noqa: N818 (caught above)
    """Raised if a node without a rule has an equal form in simpler ops, which may have one."""

    def __init__(self, node: Node, same: Node | tuple[Node, ...], refused: CaptureError) -> None:
        self.node, self.refused = node, refused
        ends = same if isinstance(same, tuple) else (same,)
        self.instead = dict(zip(items(node), ends, strict=True))
        self.made = topological(ends, stop=lambda n: n in node.args)
        for end in ends:
            site.inherit(end, node)


def _has(graph: Graph, symbol: Symbol) -> bool:
    return any(_mentions(n, symbol) for n in graph.nodes)


def _batch_of(graph: Graph, places: Sequence[int]) -> Symbol:
    """Return the symbol for the number of rows, which all split parameters share; raise CaptureError if there is none."""
    names = {k: graph.names[k] if k < len(graph.names) else f"argument {k + 1}" for k in range(len(graph.parameters))}
    found: dict[Symbol, str] = {}
    for k in places:
        shape = graph.parameters[k].type.shape
        symbol = bare_symbol(shape[0]) if shape else None
        if symbol is None:
            raise CaptureError(
                f"{names[k]} has no axis of rows whose length is open", "Split arrays of at least 2 rows."
            )
        found.setdefault(symbol, names[k])
    if len(found) != 1:
        raise CaptureError(f"{' and '.join(found.values()) or 'nothing'}: no common number of rows", SAME)
    (batch,) = found
    for k, p in enumerate(graph.parameters):
        count = sum(batch in atoms(s) for s in p.type.shape)
        if count != (k in places):
            what = "has further axes as long as" if k in places else "is not split and has the length of"
            raise CaptureError(f"{names[k]} {what} what is split: {p.type}", SAME)
    return batch


SAME = "Arguments that are split have their rows along the first axis, as many in each; and all that have these rows are split."
APART = "Compute this part without splitting, or split along another axis."
_FREE = Graph((), ())  # no guards
_DRAWS = frozenset({DRAW.name, SEED.name})  # a generator would not be advanced


def _mentions(node: Node, symbol: Symbol) -> bool:
    """Return whether a symbol occurs in the sizes of a node, or in those of graphs in it."""
    if symbol in node.symbols:
        return True
    return any(_has(g, symbol) for g in graphs_in(node.params.values()))


Change = Callable[[Node, Node], Node]


@dataclass(eq=False)
class _Splitting:
    source: Graph
    graph: Graph
    places: tuple[int, ...]
    batch: Symbol
    own: Symbol
    sites: Callable[[Node], Sequence[Site]]
    each: bool
    known: dict[Node, Any]  # how regions are driven, or the errors that prevent it

    def __post_init__(self) -> None:
        self.axis: dict[Node, Any] = {}  # None for a whole value or a part; a tuple for several results
        self.less: dict[Node, int] = {}  # how many fewer rows a node has than the arguments
        self.parts: dict[Node, str] = {}  # parts, with the ufuncs that combine them
        self.merged: set[Node] = set()  # nodes whose axis of rows is merged with other axes
        self.level: dict[Node, int] = {}  # the stage from which on a node can be read
        self.driven: dict[Node, Driving] = {}  # loops and branches that are driven
        self.left: set[Node] = set()  # results of driven regions that have rows
        for node in self.graph.nodes:
            if node not in self.axis:
                self._learn(node)

    # the axis of rows of each node

    def _learn(self, node: Node) -> None:
        sizing = _sizing((node, *node.args))
        if any(n not in self.axis for n in sizing):
            self._refuse(node, "has a size that depends on data, in a loop or branch that takes all rows together")
        level = max((self.level[a] for a in (*node.needs, *sizing)), default=0)
        if self.each and node.op is not PARAMETER and self._is_of_rows(node):
            self.axis[node], self.level[node], self.less[node] = self._axis_by_size(node), 0, 0
            return
        found = self._axis(node)
        if found is not None and any(self.axis[n] is not None for n in sizing):
            self._refuse(node, "has a size that each row decides for itself")
        if isinstance(found, str):
            self.parts[node], found, level = found, None, level + 1
        if node in self.driven:
            level = max([level, *(self.level[a] + 1 for a in self.driven[node].begins if self._is_kept(a))])
        if isinstance(found, int) and (node in self.driven or (node.op is ITEM and node.args[0] in self.driven)):
            self.left.add(node)
        self.axis[node], self.level[node] = found, level
        if node.op is not SIZE:
            self._fits(node, found)
        if node in self.driven and len(node.types) > 1:
            for result in items(node):
                self._learn(result)

    def _is_of_rows(self, node: Node) -> bool:
        return any(self.axis[a] is not None for a in node.needs) or _mentions(node, self.batch)

    def _axis_by_size(self, node: Node) -> int:
        """Return the axis whose length is the number of rows, or -1 if there is none, as for intermediate results common to all rows."""
        if is_effect(node.op):
            self._refuse(node, "is done once for each call, and not for each chunk")
        return (
            next((k for k, s in enumerate(node.type.shape) if s == atom(self.batch)), -1)
            if len(node.types) == 1
            else -1
        )

    def _axis(self, node: Node) -> Any:
        """Return the axis of rows, or one for each result; None for a whole value; for a part, the ufunc that combines two of them."""
        if node.op is PARAMETER:
            return 0 if node["index"] in self.places else None
        axes = [self.axis[a] for a in node.args]
        if node.op is ITEM and node.args[0] in self.driven:
            return axes[0][node["index"]]
        if not any(a is not None for a in axes) and (node.op in {CONSTANT, SIZE} or not _mentions(node, self.batch)):
            if is_effect(node.op):
                self._refuse(node, "is done once for each call, and not for each chunk")
            return None
        try:
            return axis_of_rows(node, axes, atom(self.batch))
        except Mixed as error:
            return self._otherwise(node, axes, self._refusal(node, str(error)))

    def _otherwise(self, node: Node, axes: Sequence[Any], refused: CaptureError) -> Any:
        """Return the axis for a node that combines rows, if its region can be driven; else raise to refuse it, or to try simpler ops."""
        found = self._driving(node, axes) if isinstance(node.op, Region) and not self.each else None
        if isinstance(found, Driving) and found.in_order:
            self.driven[node] = found
            return found.axes
        same = node.op.apart(node)
        if same is not None:
            raise _Simpler(node, same, refused)
        if isinstance(found, Driving):
            self.driven[node] = found
            return found.axes
        raise _Refused(node, found or refused)

    def _driving(self, node: Node, axes: Sequence[Any]) -> Driving | CaptureError | None:
        """Return how to drive a region, the error that prevents it, or None."""
        if node not in self.known:
            try:
                self.known[node] = driving(node, axes, atom(self.batch), self._within)
            except CaptureError as error:
                self.known[node] = error
        return self.known[node]

    def _within(self, results: Sequence[Node], state: Sequence[Node], axes: Sequence[Any]) -> Inner:
        """Return a graph of a region, split, as a function of its state and of outer nodes that it reads."""
        inside = topological(results, stop=self._is_around)
        reads = tuple(n for n in inside if self._is_around(n) and n.op is not CONSTANT)
        own = [*axes, *(self.axis[n] for n in reads)]
        graph = graph_over([*state, *reads], results)
        places = tuple(k for k, a in enumerate(own) if a is not None)
        found = _split(graph, without_masks(graph, self.batch), places, self.batch, self.sites)
        if found.halo:
            raise CaptureError(
                "rows of neighbours are taken together in a loop or branch that takes all rows together", APART
            )
        return Inner(found, reads)

    def _is_around(self, node: Node) -> bool:
        """Return whether a node is outside of a region and available there: a whole value, or rows that exist."""
        return node in self.axis and (self.axis[node] is None or node.op is PARAMETER or node in self.left)

    def _is_kept(self, node: Node) -> bool:
        """Return whether a node has rows that are computed, and kept for a loop or branch that is driven."""
        return self.axis[node] is not None and node.op is not PARAMETER and node not in self.left

    def _fits(self, node: Node, found: Any) -> None:
        """Check that the number of rows is the size of the axis of rows, and of no other axis."""
        every = found if isinstance(found, tuple) else (found,) * len(node.types)
        for t, axis in zip(node.types, every, strict=True):
            for k, size in enumerate(t.shape):
                if k == axis and isinstance(axis, Merged):
                    self.merged.add(node)
                    continue
                less = missing_rows(size, atom(self.batch)) if k == axis else None
                if less is not None:
                    self.less[node] = less
                if less is not None if k == axis else self.batch not in atoms(size):
                    continue
                self._refuse(node, f"has a shape in which the number of rows is not that of an axis of rows: {t}")

    def _refuse(self, node: Node, why: str) -> Any:
        """Raise what cannot be split, with the user's line."""
        raise _Refused(node, self._refusal(node, why))

    def _refusal(self, node: Node, why: str) -> CaptureError:
        table, pending = users(self.graph.nodes), [node]
        while not (places := [s for n in pending for s in self.sites(n)]) and pending:
            pending = [u for n in pending for u in table.get(n, ())]
        where = f"{places[0]}: " if places else ""
        return CaptureError(f"{where}{plainly(node) or node.op.name} {why}", APART)

    # stages

    def result(self) -> Split:
        results = self.graph.results
        rows = {k: self.axis[r] for k, r in enumerate(results) if self.axis[r] is not None}
        ends = [r for k, r in enumerate(results) if k not in rows]
        needed = set(topological(results))
        parts = [p for p in self.parts if p in needed]
        driven = [n for n in self.driven if n in needed]
        kept = [a for n in driven for a in self.driven[n].begins if self._is_kept(a)]
        given = {r: self.axis[r] for r in (*(results[k] for k in rows), *kept) if r not in self.left}
        self.halo = max((self.less.get(n, 0) for n in needed), default=0)
        self._check_halo(needed, parts, driven, [results[k] for k in rows])
        count = max([self.level[p] for p in parts] + [self.level[r] + 1 for r in given], default=0)
        known = [*parts, *(r for n in driven for r in items(n) if self.axis[r] is None)]
        stages = tuple(self._stage(k, parts, known, given) for k in range(count))
        shorts = [g.split.short for n in driven for g in self.driven[n].graphs.values()]
        return Split(
            self.source,
            self.graph,
            self.places,
            self.batch,
            self.own,
            self.halo,
            max([self.halo + self._has_regions(needed), *shorts]),
            {k: self.less[results[k]] for k in rows},
            stages,
            tuple(self._driven(n, known) for n in sorted(driven, key=self.level.__getitem__)),
            rows,
            self._whole(ends, known, self._guards(count, None)),
        )

    def _guards(self, first: int, last: int | None) -> Graph:
        """Return the guards on data-dependent sizes that are known between two stages; the others are checked before all stages."""
        found = [g for g in self.graph.guards if nodes_of(g[0]) or nodes_of(g[2])]
        for n in Graph((), (), tuple(found)).checked:
            if n not in self.axis or self.axis[n] is not None:
                self._refuse(n, "is a size that is checked, and is not the same for all rows")
        known = [max(self.level[n] for n in (*nodes_of(left), *nodes_of(right))) for left, _, right in found]
        return Graph(
            (), (), tuple(g for g, k in zip(found, known, strict=True) if first <= k and (last is None or k <= last))
        )

    def _has_regions(self, needed: set[Node]) -> bool:
        """Return whether chunks run loops or branches, which are made for sizes of at least 2."""
        return self.each or any(
            isinstance(n.op, Region) and n not in self.driven and self.axis[n] is not None for n in needed
        )

    def _check_halo(
        self, needed: set[Node], parts: Sequence[Node], driven: Sequence[Node], rows: Sequence[Node]
    ) -> None:
        """Raise if chunks are lent rows of the next one, and that has no rule."""
        for r in rows:
            if r in self.merged:
                self._refuse(r, "merges the rows with another axis in a result")
        for n in self.merged & needed if self.halo else ():
            self._refuse(n, "puts rows together with other axes, where chunks are lent rows of the next one")
        for p in parts if self.halo else ():
            if p.op is ITEM or isinstance(p.op, Region):
                self._refuse(p, "sums over rows within it, and a chunk has rows of the next one, too")
        for n in driven if self.halo else ():
            self._refuse(n, "takes rows together within it, and a chunk has rows of the next one, too")

    def _driven(self, node: Node, known: Sequence[Node]) -> Driven:
        level, found = self.level[node], self.driven[node]
        reads = dict.fromkeys([*found.begins, *(n for g in found.graphs.values() for n in g.reads)])
        return Driven(
            node,
            self._whole(
                [n for n in reads if self.axis[n] is None],
                [n for n in known if self.level[n] <= level and n.args[:1] != (node,)],
            ),
            found.begins,
            found.graphs,
            items(node),
            frozenset(self.left.intersection(items(node))),
            level,
        )

    def _stage(self, number: int, parts: Sequence[Node], known: Sequence[Node], given: Mapping[Node, int]) -> Stage:
        own = [p for p in parts if self.level[p] == number + 1]
        kept = [(r, axis) for r, axis in given.items() if self.level[r] == number]
        wanted = [*own, *(r for r, _ in kept)]
        computed = set(own)
        inside = topological(wanted, stop=lambda n: self._is_whole(n, computed) or n in self.left)
        reads = _with_sizes(n for n in inside if self._is_whole(n, computed) and n.op is not CONSTANT)
        numbered = any(self._numbers(n) for n in inside)
        inputs = (*(self.graph.parameters[k] for k in self.places), *(n for n in inside if n in self.left))
        chunk = self._chunk(wanted, inputs, reads, numbered, self.halo)
        end = self._chunk(wanted, inputs, reads, numbered, 0) if self.halo else chunk
        before = self._whole(reads, [n for n in known if self.level[n] <= number], self._guards(number, number))
        return Stage(before, inputs, chunk, end, numbered, reads, tuple((p, self.parts[p]) for p in own), tuple(kept))

    def _numbers(self, node: Node) -> bool:
        """Return whether a node numbers the rows."""
        return node.op is IOTA and self.axis[node] == node["axis"]

    def _chunk(
        self, wanted: Sequence[Node], chunks: Sequence[Node], reads: Sequence[Node], numbered: bool, halo: int
    ) -> Graph:
        """Return the graph of a chunk with so many rows of the next one."""
        before = Type(np.dtype(np.int64), (), "scalar")
        given = [*chunks, *([input_node(Source("rows before"), before)] if numbered else []), *reads]

        def changed(node: Node, new: Node) -> Node:
            return add(new, parameter(len(chunks), before)) if self._numbers(node) else new

        def kept(node: Node, new: Node) -> Node:
            axis = self.axis[node]
            beyond = halo - self.less.get(node, 0)
            if not isinstance(axis, int) or beyond <= 0:
                return new
            return slice_(new, tuple((0, s - beyond if k == axis else s, 1) for k, s in enumerate(new.type.shape)))

        return self._cut(wanted, given, {self.batch: atom(self.own)}, changed, kept)

    def _is_whole(self, node: Node, own: set[Node]) -> bool:
        """Return whether a node is a whole value that a chunk reads and does not compute."""
        return self.axis[node] is None and node not in own

    def _whole(self, wanted: Sequence[Node], parts: Sequence[Node], under: Graph = _FREE) -> Whole:
        """Return what is computed of whole parameters, of numbers of rows and of combined parts, under some guards."""
        known = set(_with_sizes(parts))
        inside = topological([*wanted, *under.checked], stop=lambda n: n in known)
        reads = _with_sizes(n for n in inside if n in known or n.op is PARAMETER or self._counts(n))
        return Whole(self._cut(wanted, reads, {}, under=under), reads, tuple(wanted))

    def _counts(self, node: Node) -> bool:
        """Return whether a node is a number that follows from the number of all rows."""
        return node.op is SIZE and self.batch in node.symbols

    def _cut(
        self,
        wanted: Sequence[Node],
        reads: Sequence[Node],
        sizes: Mapping[Atom, Size],
        changed: Change = lambda _node, new: new,
        kept: Change = lambda _node, new: new,
        under: Graph = _FREE,
    ) -> Graph:
        """Return the graph of ``wanted``, with parameters in place of ``reads``.

        ``changed`` maps a node and its rebuilt version to the one to use; ``kept`` to the one to return, or to sum
        over rows.
        """
        known: dict[Node, Node] = {}
        for k, node in enumerate(reads):
            own = {**sizes, **as_sizes(_sizing([node]), known)}
            shape = tuple(substitute(s, own) for s in node.type.shape)
            known[node] = parameter(k, Type(node.type.dtype, shape, node.type.form))
        parameters = tuple(known.values())
        for node in topological([*wanted, *under.checked], stop=lambda n: n in known):
            if node not in known:
                own = {a: kept(a, known[a]) for a in node.args} if node in self.parts else {}
                new = _rebuilt(node, {**known, **own} if own else known, sizes)
                if isinstance(node.op, Region) and any(self.axis[a] is not None for a in node.args):
                    new = with_loosened(new)
                known[node] = new = changed(node, new)
                for place in site.of(node):
                    site.record(new, place)
        return Graph(parameters, tuple(kept(n, known[n]) for n in wanted), under.guards_over(known))


def _sizing(nodes: Iterable[Node]) -> list[Node]:
    """Return the nodes that sizes of nodes are computed from."""
    return list(dict.fromkeys(n for node in nodes for t in node.types for s in t.shape for n in nodes_of(s)))


def _with_sizes(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Return nodes, and before each those that its sizes are computed from."""
    return tuple(dict.fromkeys(n for node in nodes for n in (*_sizing([node]), node)))


def _rebuilt(node: Node, known: Mapping[Node, Node], sizes: Mapping[Atom, Size]) -> Node:
    return resized(node, [known[a] for a in node.args], {**sizes, **as_sizes(node.sized_by, known)})
