"""Print one loop of a nest: the element of an iteration, with statements sorted by the depth of the loops around them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tensormagic.backend.planning.horner import steps_rounded_once
from tensormagic.backend.planning.kinds import is_fold, is_inline_move, is_leaf, kind_of
from tensormagic.backend.planning.lower import IndexTuple, Stage, axes_of, operand_reads
from tensormagic.backend.planning.schedule import Loop, Nest, Storage, coefficients, collapses, strides
from tensormagic.backend.printing.chunk_text import SHORT, Group, counted, in_chunks
from tensormagic.backend.printing.kernel_text import INNER, KernelText, Line, Local, Raised, indented
from tensormagic.backend.printing.scalar_text import (
    as_text,
    combine_text,
    extremum_texts,
    is_extremum,
    scalar_text,
    start_text,
    step_text,
)
from tensormagic.backend.printing.total_text import Frame, own_part, total_of
from tensormagic.ir.errors import BoundsError, WideError
from tensormagic.ir.lazily import lazily
from tensormagic.ir.node import Node, as_size
from tensormagic.ir.size import Size, atom, is_at_least, product
from tensormagic.ops.effects.checks import ERRORS, without_value
from tensormagic.ops.effects.raising import CHECK
from tensormagic.ops.fold import SUM
from tensormagic.ops.indices.gather import are_indices
from tensormagic.ops.indices.position import POSITION
from tensormagic.ops.leaf import CONSTANT, INPUT, IOTA, PARAMETER, SIZE
from tensormagic.ops.move_kind import Index
from tensormagic.ops.scalars.scalar import add


@dataclass
class Body:
    """One loop of a nest: its statements, sorted by how many loops are around them."""

    text: KernelText
    nest: Nest
    loop: Loop
    width: Size | None
    groups: list[Group] = field(default_factory=list)
    sections: list[list[Line]] = field(default_factory=list)
    endings: list[list[Line]] = field(default_factory=list)
    frame: Frame = field(default_factory=Frame)
    memo: dict[tuple[Node, tuple[Index, ...]], str] = field(default_factory=dict)
    depth_of: dict[str, int] = field(default_factory=dict)
    chunked: list[tuple[str, str, str]] = field(default_factory=list)
    split_rows: bool = False
    only_where: str = ""  # of rows: where the loops inside are needed
    carries: Mapping[Node, Node] = field(
        default_factory=dict
    )  # by what becomes of them in an iteration, of this number
    iteration: Node | None = None

    def __post_init__(self) -> None:
        depth = self.nest.depth
        if depth:
            stages = self.loop.stages
            self.split_rows = not collapses(stages, range(depth))
            self.groups = [Group(tuple(range(depth)), "i", product(self.nest.rows)), *self._inner_groups(depth)]
        self.sections = [[] for _ in range(len(self.groups) + 1)]
        self.endings = [[] for _ in range(len(self.groups) + 1)]
        self._read_numbers()
        if self.split_rows:
            self._split_rows(depth)

    def _read_numbers(self) -> None:
        """Print the scalars that the stages read, first of all since sizes may mention them."""
        for stage in self.loop.stages:
            for node, index in stage.reads:
                if not index and not is_leaf(node):
                    self.value(node, index)

    def begin_again(self, known: Mapping[Node, str]) -> None:
        """Forget all computed values but ``known``: what follows is another iteration of an outer loop."""
        self.memo = {(node, axes_of(node.type.shape)[1]): name for node, name in known.items()}
        self._read_numbers()

    def _inner_groups(self, depth: int) -> list[Group]:
        domain = self.loop.stages[0].domain
        runs: list[list[int]] = []
        for k in range(depth, len(domain)):
            if runs and collapses(self.loop.stages, (k - 1, k)):
                runs[-1].append(k)
            else:
                runs.append([k])
        names = [INNER[k] if k < len(INNER) else f"j{k}" for k in range(len(runs))]
        return [
            Group(tuple(run), name, product(tuple(domain[k] for k in run)))
            for run, name in zip(runs, names, strict=True)
        ]

    def _split_rows(self, depth: int) -> None:
        """Print the row's index along each axis."""
        extents = self.nest.rows
        for k in range(depth):
            below = product(extents[k + 1 :])
            quotient = f"i // ({self.text.size(below)})" if below != 1 else "i"
            line = f"{quotient} % ({self.text.size(extents[k])})" if k else quotient
            self.sections[1].append((f"i{k} = {line}", None))

    # expressions

    def emit(self, depth: int, line: str, node: Node | None = None) -> None:
        """Append a statement inside ``depth`` loops."""
        self.sections[depth].append((line, node))

    def assign(self, stem: str, expression: str, depth: int, node: Node | None) -> str:
        """Return a new variable."""
        name = self.text.fresh(stem)
        self.depth_of[name] = depth
        self.emit(depth, f"{name} = {expression}", node)
        return name

    def value(self, node: Node, index: tuple[Index, ...]) -> str:
        """Return the expression for the element of ``node`` at ``index``."""
        while is_inline_move(node) and not self.text.stored(node):
            node, index = node.args[0], node.op.index(node, index)  # type: ignore[attr-defined]
        key = (node, index)
        known = self.memo.get(key) or self.text.scalars.get(key)
        if known is not None:
            return known
        if is_leaf(node) and (
            node.op is IOTA or not self.text.stored(node)
        ):  # where it is stored it may be stored into
            return self._leaf(node, index)
        if self.text.stored(node):
            result = self._load(node, index)
        else:
            result = self._taken(node, index) if kind_of(node) == "take" else self._compute(node, index)
        (self.memo if self._depth(result) else self.text.scalars)[key] = result
        return result

    def _leaf(self, node: Node, index: tuple[Index, ...]) -> str:
        if node.op is CONSTANT:
            return self.text.number(node["bits"].array()[()])
        for n in node.sized_by:  # numbers first, as for stages
            self.value(n, ())
        if node.op is SIZE:
            return self._size(node)
        along = index[node["axis"]]
        return f"({self._linear({int(along.variable[1:]): along.step} if along.variable else {}, along.offset)})"

    def _size(self, node: Node) -> str:
        """Return a size; if data make it exceed a word, that is recorded, and NumPy computes it with Python's integers."""
        text, wide = f"({self.text.size(node['size'])})", self.text.wide(node["size"])
        if wide and (node, ()) not in self.memo:
            self.memo[node, ()] = text
            depth = self._depth(text)
            self.emit(depth, f"if {' or '.join(wide)}:", node)
            for line in self.text.fault(WideError, "an integer of data is larger than 64 bits hold"):
                self.emit(depth, f"    {line}", node)
        return text

    @lazily
    def _steps(self) -> Mapping[Node, tuple[Node, Node]]:
        return steps_rounded_once([s.root for s in self.loop.stages], self.text.stored, self.carries, self.iteration)

    def _compute(self, node: Node, index: tuple[Index, ...]) -> str:
        if node.op is add and node in self._steps:
            product, number = self._steps[node]
            terms = [self.value(a, index) for a in (*product.args, number)]
            return self.assign("step", f"multiply_add({', '.join(terms)})", max(map(self._depth, terms)), node)
        values = [self.value(a, index) for a in node.args]
        depth = max((self._depth(v) for v in values), default=0)
        return self.assign(node.op.name, scalar_text(node, values), depth, node)

    def _taken(self, node: Node, index: IndexTuple) -> str:
        """Return the element that an index array selects, or a checked number."""
        if "axis" not in node.params:
            return self._checked(node, index)
        (x, inner), (indices, own) = operand_reads(node, index)
        place = self.place(node, indices, own, x.type.shape[node["axis"]])
        axis = node["axis"]
        return self.value(x, (*inner[:axis], place, *inner[axis + 1 :]))

    def _checked(self, node: Node, index: IndexTuple) -> str:
        values = [self.value(n, i) for n, i in operand_reads(node, index)]
        if node.op is POSITION:
            there = all(is_at_least(s, 1) for s in node.type.shape)  # else a check waits for an element
            loops = 0 if there else self._depth_of_positions({int(i.variable[1:]): 1 for i in index if i.variable})
            return self._wrapped(node, node.args[0], values[0], node["extent"], node["number"], loops)
        depth = self._depth(values[1])  # a number is checked where there are no elements, too
        self.emit(depth, f"if not {values[1]}:", node)
        for line in self._left(node, values[2:]):
            self.emit(depth, f"    {line}", node)
        return self.assign("checked", values[0], max(map(self._depth, values)), node)

    def _left(self, node: Node, values: Sequence[str]) -> list[str]:
        """Return statements that record a failed check, with the numbers for its message."""
        if node.op is not CHECK:
            message = without_value(node["message"]).replace("{", "{{").replace("}", "}}")
            return self.text.fault(ERRORS[node["error"]], message)
        types = tuple(a.type for a in node.args[2:])
        noted = [f"bits({v})" if t.dtype.kind == "f" else f"np.int64({v})" for v, t in zip(values, types, strict=True)]
        return self.text.leave(Raised(node["error"], node["told"], node["place"], types), *noted)

    def place(self, node: Node, indices: Node, own: IndexTuple, extent: Size) -> Index:
        """Return the place that an element of an index array means: checked, and counted from the front."""
        known = None if indices.type.shape else as_size(indices)
        given = self.value(indices, own)
        if known is not None and is_at_least(known, 0) and is_at_least(extent - 1 - known, 0):
            return Index(None, 1, known)
        if are_indices(indices, extent):
            return Index(None, 1, atom(Local(self.assign("place", f"np.int64({given})", self._depth(given), node))))
        name = self._wrapped(node, indices, given, extent, node["axis"])
        return Index(None, 1, atom(Local(name)))

    def _wrapped(self, node: Node, indices: Node, given: str, extent: Size, axis: int, loops: int = 0) -> str:
        """Return a checked index counted from the front, computed inside at least ``loops`` loops."""
        count = f"({self.text.size(extent)})"
        wrapped = given if indices.type.dtype.kind in "bu" else f"{given} if {given} >= 0 else {given} + {count}"
        depth = max(loops, self._depth(given), self._depth(count))
        name = self.assign("place", f"np.int64({wrapped})", depth, node)
        self.emit(depth, f"if {name} < 0 or {name} >= {count}:", node)
        for line in self._outside(name, given, count, axis):
            self.emit(depth, f"    {line}", node)
        return name

    def _outside(self, name: str, given: str, count: str, axis: int) -> Iterable[str]:
        """Return statements for an index out of bounds; ``name`` is the index as used, ``given`` as written."""
        del name
        return self.text.fault(
            BoundsError, f"index {{0}} is out of bounds for axis {axis} with size {{1}}", given, count
        )

    def _depth(self, text: str) -> int:
        """Return the number of loops that a text depends on, by its names and loop variables."""
        if text in self.depth_of:
            return self.depth_of[text]
        words = set(re.findall(r"\w+", text))
        inside = [self.depth_of.get(w, 0) for w in words]
        inside += [k + 1 for k, g in enumerate(self.groups) if g.name in words]
        if self.split_rows and any(re.fullmatch(r"i\d", w) for w in words):
            inside.append(1)
        return max(inside, default=0)

    def _load(self, node: Node, index: tuple[Index, ...]) -> str:
        name, offset, depth = self.address(node, index)
        return self.assign("x", f"{name}[{offset}]", depth, node if node.op not in {PARAMETER, INPUT} else None)

    def address(self, node: Node, index: tuple[Index, ...]) -> tuple[str, str, int]:
        """Return the array that holds ``node``, the offset of an element, and the number of loops that the offset depends on."""
        host = self.nest.lodged.get(node, node)
        if host is node and self.nest.storage.get(node) is Storage.TILE:
            return self._tile_address(node, index)
        factors, offset = coefficients(node, index)
        depth = max(self._depth_of_positions(factors), self._depth(self.text.size(offset)))
        return self.text.array(host), self._linear(factors, offset), depth

    def _tile_address(self, node: Node, index: tuple[Index, ...]) -> tuple[str, str, int]:
        stage = next(s for s in self.nest.stages if s.root is node)
        axes = [k for k, p in enumerate(stage.place) if p is not None and p >= self.nest.depth]
        shape = [node.type.shape[k] for k in axes]
        factors: dict[int, Size] = {}
        offset: Size = 0
        for axis, stride in zip(axes, strides(shape), strict=True):
            i = index[axis]
            if i.variable is not None:
                position = int(i.variable[1:])
                factors[position] = factors.get(position, 0) + i.step * stride
            offset = offset + i.offset * stride
        count = product(tuple(shape))
        name = self.text.tile(node, count, self.width)
        row = "(i - start)" if count == 1 else f"(i - start) * {self.text.product(count)}"
        rest = self._linear(factors, offset)
        return (
            name,
            row.strip("()") if rest == "0" and count == 1 else row if rest == "0" else f"{row} + {rest}",
            max(1, self._depth_of_positions(factors), self._depth(self.text.size(offset))),
        )

    def _depth_of_positions(self, positions: Mapping[int, Size]) -> int:
        return max(
            (k + 1 for k, g in enumerate(self.groups) for p in g.positions if positions.get(p, 0) != 0), default=0
        )

    def _linear(self, factors: Mapping[int, Size], offset: Size) -> str:
        """Return a linear function of the loop variables as text."""
        terms: list[str] = []
        for g in self.groups:
            if g.name == "i" and self.split_rows:
                pairs = [(f"i{p}", factors.get(p, 0)) for p in g.positions]
            else:
                pairs = [(g.name, factors.get(p, 0)) for p in g.positions[-1:]]
            terms += [name if c == 1 else f"{name} * {self.text.product(c)}" for name, c in pairs if c != 0]
        if offset != 0 or not terms:
            terms.append(self.text.size(offset))
        return " + ".join(terms).replace("+ -", "- ")

    # stages

    def result(self, stage: Stage, index: tuple[Index, ...]) -> str:
        """Return the expression of a stage without loops of its own: an element, or a fold of one."""
        root = stage.root
        if not is_fold(root):
            if is_inline_move(root):
                return self.value(root.args[0], root.op.index(root, stage.body[0][1]))  # type: ignore[attr-defined]
            if kind_of(root) == "take":
                return self._taken(root, stage.body[0][1])
            return self._leaf(root, stage.body[0][1]) if is_leaf(root) else self._compute(root, stage.body[0][1])
        value = self.element(stage)
        return self.assign(
            root.op.name, step_text(root, start_text(root, self.text), value, free=False), self._depth(value), root
        )

    def element(self, stage: Stage) -> str:
        """Return the element a fold takes at each iteration, in the dtype of its result."""
        values = [self.value(n, i) for n, i in stage.body]
        root = stage.root
        if len(values) == 1:
            before = stage.body[0][0].type.dtype
            return (
                values[0]
                if before == root.type.dtype or root.type.dtype.kind == "b"
                else f"np.{root.type.dtype.name}({values[0]})"
            )
        text = f"{values[0]} * {values[1]}"
        dtype = root.type.dtype
        return self.assign(
            "product",
            text if dtype.kind == "f" or dtype.itemsize == 8 else f"np.{dtype.name}({text})",
            len(self.groups),
            root,
        )

    def print_loop(self) -> list[Line]:
        """Return the statements of one tile."""
        self.print_stages()
        return self.printed()

    def print_stages(self, stages: Iterable[Stage] | None = None) -> None:
        """Print what the stages (by default all of the loop's) compute and store."""
        for stage in self.loop.stages if stages is None else stages:
            if stage.reduced:
                self._print_fold(stage)
            elif stage.written is not None:
                self.print_store(stage)
            else:
                self._print_map(stage)

    def printed(self, *, woven: bool = False, narrow: bool = False) -> list[Line]:
        """Return the loops around what has been printed.

        Parameters
        ----------
        woven
            Whether the outermost loop runs several elements side by side.
        narrow
            Whether rows are narrow.
        """
        counts = self.split_rows and len(self.groups) > 1  # where rows are the innermost loop, it is one of vectors
        begin, steps = counted(self.text, self.nest.rows) if counts else ([], [])
        kind = "woven" if woven else "range"
        return [*self.frame.tile[0], *begin, *self._nested(0, kind, steps, narrow=narrow), *self.frame.tile[1]]

    def _nested(self, depth: int, kind: str = "range", steps: Sequence[Line] = (), *, narrow: bool) -> list[Line]:
        """Return the loop number ``depth`` + 1 and everything in it, beginning with ``steps``."""
        if depth == len(self.groups):
            return []
        group = self.groups[depth]
        own, inner = self.sections[depth + 1], self._nested(depth + 1, narrow=narrow)
        if self.only_where and depth == 0:
            inner = [(f"if {self.only_where}:", None), *indented(inner)]
        body = [*steps, *own[len(steps) :], *inner, *self.endings[depth + 1]]
        if not body:
            return []
        if depth == len(self.groups) - 1 and self.chunked:
            twice = not any(s.heavy for s in self.loop.stages) and sum(s.ops for s in self.loop.stages) <= SHORT
            return in_chunks(
                (group.name, self.text.product(group.extent)), body, self.chunked, narrow=narrow, twice=twice
            )
        where = "start, stop" if depth == 0 else self.text.size(group.extent)
        return [(f"for {group.name} in {kind}({where}):", None), *indented(body)]

    def _print_map(self, stage: Stage) -> None:
        root = stage.root
        value = self.result(stage, ())
        self.memo[root, stage.identity()] = value
        self.depth_of.setdefault(value, self._depth(value))
        if self.nest.storage[root] is not Storage.LOCAL:
            self.store(root, stage.identity(), value)

    def after_store(self, node: Node, value: str) -> str:
        """Return an element of ``node`` after storing ``value``, converted to its dtype, without printing a store."""
        stored = as_text(node, value)
        return value if stored == value else self.assign("x", stored, self._depth(value), node)

    def store(self, node: Node, index: IndexTuple, value: str) -> None:
        """Print the store of an element."""
        name, offset, _ = self.address(node, index)
        self.emit(len(self.groups), f"{name}[{offset}] = {as_text(node, value)}", node)

    def print_store(self, stage: Stage) -> None:
        """Print a store into a slice, or by index, which may combine with the present contents."""
        root = stage.root
        written = stage.identity()
        value = self.value(*stage.body[0])
        if "slices" not in root.params:
            axis = root["axis"]
            place = self.place(root, *stage.body[1], root.type.shape[axis])
            written = (*written[:axis], place, *written[axis + 1 :])
        name, offset, _ = self.address(root, written)
        target = f"{name}[{offset}]"
        self.emit(len(self.groups), f"{target} = {combine_text(root, target, value)}", root)

    def _print_fold(self, stage: Stage) -> None:
        reduced = [g.positions[0] in stage.reduced for g in self.groups]
        suffix = next(k for k in range(len(reduced) + 1) if all(reduced[k:]))
        value = self.element(stage)
        innermost = len(self.groups)
        if suffix == innermost:
            self._fill(stage, reduced)
            self._accumulate(stage, value, innermost, self.sections)
            return
        total = self._accumulator(stage, value, suffix)
        if suffix == 0:
            self._finish_total(stage, total)
        elif any(reduced[:suffix]):
            self._fill(stage, reduced)
            self._accumulate(stage, total, suffix, self.endings)
        else:
            name, offset, _ = self.address(stage.root, stage.identity())
            self.endings[suffix].append((f"{name}[{offset}] = {total}", stage.root))

    def _accumulator(self, stage: Stage, value: str, suffix: int) -> str:
        """Return a variable that accumulates over the innermost loops, from number ``suffix`` on; sums go by chunks."""
        root, innermost = stage.root, len(self.groups)
        total, zero = self.text.fresh(root.op.name), start_text(root, self.text)
        begin = self.frame.tile[0] if suffix == 0 else self.sections[suffix]
        begin.append((f"{total} = {zero}", root))
        folded = total
        if root.op is SUM and root.type.dtype.kind == "f" and innermost > 1:
            folded = self.text.fresh("part")
            self.chunked.append((total, folded, zero))
        if is_extremum(root) and self._depth(value) == innermost:
            nan, signs = self.text.fresh("nan"), self.text.fresh("signs")
            first, steps, last = extremum_texts(root, total, nan, signs, value)
            begin += [(line, root) for line in first]
            self.sections[innermost] += [(line, root) for line in steps]
            (self.frame.tile[1] if suffix == 0 else self.endings[suffix]).append((last, root))
            return total
        self.emit(innermost, f"{folded} = {step_text(root, folded, value, free=True)}", root)
        return total

    def _accumulate(self, stage: Stage, value: str, depth: int, sections: list[list[Line]]) -> None:
        """Print one step of a reduction with its accumulator in memory: by an element, or by the result of inner loops."""
        name, offset, _ = self.address(stage.root, stage.identity())
        place = f"{own_part(self.text, self.frame, self.nest, stage.root) or name}[{offset}]"
        step = step_text(stage.root, place, value, free=False, whole=depth < len(self.groups))
        sections[depth].append((f"{place} = {step}", stage.root))

    def _fill(self, stage: Stage, reduced: Sequence[bool]) -> None:
        """Print the initialisation of accumulators in memory."""
        root, zero = stage.root, start_text(stage.root, self.text)
        name, offset, _ = self.address(root, stage.identity())
        first = reduced.index(True)
        if first == 0:
            k, own = self.text.fresh("k"), own_part(self.text, self.frame, self.nest, root)
            (self.frame.share[0] if own else self.frame.before).extend(
                [
                    (f"for {k} in range({self.text.size(root.type.size)}):", root),
                    (f"    {own or name}[{k}] = {zero}", root),
                ]
            )
            return
        kept = [g for g, r in zip(self.groups[first:], reduced[first:], strict=True) if not r]
        for depth, g in enumerate(kept):
            self.sections[first].append((f"{'    ' * depth}for {g.name} in range({self.text.size(g.extent)}):", root))
        self.sections[first].append((f"{'    ' * len(kept)}{name}[{offset}] = {zero}", root))

    def _finish_total(self, stage: Stage, part: str) -> None:
        """Add a tile's result to the total."""
        root = stage.root
        value = total_of(self.text, self.frame, root, part)
        self.text.scalars[root, tuple(Index(None) for _ in stage.place)] = value
        if self.text.exported(root):
            self.frame.after.append((f"{self.text.array(root)}[0] = {value}", root))
