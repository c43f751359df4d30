"""The text of a kernel while it is printed: the entries of its table, names, constants and sizes. Knows no loops."""

from __future__ import annotations

import keyword
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tensormagic.backend.cpu.kinds import MOST_BUFFERS
from tensormagic.backend.cpu.rows import ROW_TILE
from tensormagic.backend.planning.inline import is_growing
from tensormagic.backend.planning.shared_arrays import Memory
from tensormagic.backend.planning.size_bounds import RefusedError
from tensormagic.ir import site
from tensormagic.ir.node import Node
from tensormagic.ir.size import Apply, Dim, Size, Symbol, atoms, is_at_least
from tensormagic.ir.type import Type
from tensormagic.ops.effects.raising import made
from tensormagic.ops.leaf import PARAMETER
from tensormagic.ops.op import as_form

FLAT_TILE = 1024  # elements in a tile without further axes: also how many are summed before totals are
WIDE_TILE = 1 << 16  # elements in a tile where nothing is kept for it: how often the stop flag is looked at
_PLAIN = frozenset({0.0, 0.5, 1.0, 2.0, 3.0, 4.0})
INNER = "jklpquvw"  # the names of loops inside rows


@dataclass(frozen=True)
class Entry:
    """One entry of a kernel's table.

    Parameters
    ----------
    kind
        ``"array"``, ``"growing"`` (one that grows), ``"tile"`` (memory for one tile), ``"size"``, ``"number"``,
        ``"address"`` (of a function of this process), ``"parts"`` (memory for what each share of a loop adds up, by elements),
        ``"fault"`` (what went wrong), ``"threads"`` (the pool that loops are shared among, or 0) or ``"traded"`` (where arrays
        of one group are at the end).
    key
        The node, the symbol, the constant's bits as an integer, or the group; for parts the node, the number of rows, and how many
        elements a share adds up in all.
    count, width
        For a tile: elements for one row, and what the number of rows depends on.
    """

    kind: str
    key: Any
    count: Size = 1
    width: Size = 1


WORD = 2.0**63 - 2.0**54  # what 64 bits hold for sure, as far as an estimate can tell
_SMALL = 2**31
_EXTREMES = {"min", "max"}  # of sizes


def _may_wrap(size: Dim) -> bool:
    """Return whether a data-dependent size may need more than 64 bits; not one that a loop counts in small steps."""
    free = [(m, c) for m, c in size.terms if any(_is_free(a) for a, _ in m)]
    if not free or (len(size.terms) == 1 and size.terms[0][1] == 1 and len(free[0][0]) == 1 and free[0][0][0][1] == 1):
        return False
    (first, factor), *others = free
    counted = len(first) == 1 and factor == 1 and first[0][1] == 1 and first[0][0].op is PARAMETER
    return bool(others) or not counted or any(abs(c) >= _SMALL for m, c in size.terms if m != first)


def _is_free(a: Any) -> bool:
    """Return whether an atom is a data-dependent integer without known bounds."""
    return isinstance(a, Node) and a.bounds == (None, None)


class Fault(NamedTuple):
    """An error and its texts; {0}, {1}, {2} stand for recorded numbers."""

    error: type[Exception]
    texts: tuple[str, ...]

    def made(self, noted: Sequence[int]) -> BaseException:
        """Return the exception, of what was noted."""
        return self.error(*(text.format(*noted) for text in self.texts))


class Raised(NamedTuple):
    """An error raised by the user's code, see :data:`~tensormagic.ops.effects.raising.CHECK`; with the types of its details."""

    error: str
    told: str
    place: tuple[Any, ...]
    details: tuple[Type, ...]

    def made(self, noted: Sequence[int]) -> BaseException:
        """Return the exception, from the recorded bits."""
        given = [_with_bits(t, bits) for t, bits in zip(self.details, noted, strict=False)]
        return made(self.error, self.told, self.place, given)


def _with_bits(t: Type, bits: int) -> Any:
    number = np.int64(bits).view({"f": np.float64, "u": np.uint64}.get(t.dtype.kind, np.int64)).astype(t.dtype)
    return as_form(number, t.form)


class Local(Symbol):
    """A kernel variable in a size: the place that an index array selects."""


@dataclass(frozen=True)
class Printed:
    """A kernel as text.

    Parameters
    ----------
    source
        What is compiled.
    readable
        The same with the user's names, and where each line comes from.
    entries
        What the table holds behind the stop flag.
    faults
        What each number in the fault stands for.
    origins
        For each line of ``readable`` below its first the node that it is for, where it is for one.
    """

    source: str
    readable: str
    entries: tuple[Entry, ...]
    faults: tuple[Fault | Raised, ...] = ()
    origins: tuple[Node | None, ...] = ()


Line = tuple[str, Node | None]


def indented(lines: Sequence[Line], by: int = 1) -> list[Line]:
    """Return lines indented by ``by`` more blocks."""
    return [("    " * by + text, node) for text, node in lines]


@dataclass
class Sharing:
    """A loop over rows that threads may share: each runs whole shares, with tiles of its own.

    Parameters
    ----------
    rows
        The variable for the number of rows in a tile.
    share
        The variable for the number of rows in a share.
    count
        The variable for the number of shares.
    lines
        The statements at the start of a share.
    rows_in_all, width, kept
        The number of rows, of elements in a row, and of elements that a share accumulates.
    """

    rows: str
    share: str
    count: str
    lines: list[Line] = field(default_factory=list)
    rows_in_all: Size = 1
    width: Size = 1
    kept: Size = 0


@dataclass
class KernelText:
    """The text printed so far: the table's entries, and lines at the function's top level."""

    stored: Callable[[Node], bool]
    exported: Callable[[Node], bool]
    memory: Memory = field(default_factory=Memory)
    copied: Mapping[Node, set[Node]] = field(default_factory=dict)
    depth: int = 0  # how many regions there are around what is printed
    entries: list[Entry] = field(default_factory=list)
    names: dict[Any, str] = field(default_factory=dict)
    head: list[Line] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    scalars: dict[Any, str] = field(default_factory=dict)
    literals: dict[str, str] = field(default_factory=dict)
    counter: int = 0
    buffers: int = 0
    groups: dict[Node, int] = field(default_factory=dict)
    traded: dict[Node, list[str]] = field(default_factory=dict)
    faults: dict[Fault | Raised, int] = field(default_factory=dict)
    sharing: Sharing | None = None  # the loop that is printed, where threads share it

    def fresh(self, stem: str) -> str:
        """Return a new name."""
        self.counter += 1
        return f"{stem}_{self.counter}"

    def _number(self) -> int:
        self.buffers += 1
        return min(self.buffers, MOST_BUFFERS) - 1

    def _declare(self, key: Any, prefix: str, entry: Entry, make: Callable[[int], str]) -> str:
        name = self.names.get(key)
        if name is None:
            self.entries.append(entry)
            name = self.names[key] = f"{prefix}{len(self.entries)}"
            self.head.append((f"{name} = {make(len(self.entries))}", None))
        return name

    def array(self, node: Node) -> str:
        """Return the name of the array that holds a node."""
        owner = self.memory.owner(node)
        if owner not in self.names and is_growing(owner):
            read = self._growing(owner)
            self._declare(owner, "a", Entry("growing", owner), lambda k: read.format(k))
        elif owner not in self.names:
            number = self._number_of(owner)
            self._declare(
                owner, "a", Entry("array", owner), lambda k: f'array(table, {k}, "{owner.type.dtype.name}", {number})'
            )
        return self.names[owner]

    def _growing(self, owner: Node) -> str:
        return f'growing(table, {{}}, "{owner.type.dtype.name}", {self._number_of(owner)})'

    def grow(self, node: Node, count: str) -> list[Line]:
        """Return statements that make room for ``count`` elements in an array that grows."""
        name, owner = self.array(node), self.memory.owner(node)
        place = next(k for k, entry in enumerate(self.entries, 1) if entry.key is owner)
        wanted = self.fresh("wanted")
        failed = self.fault(MemoryError, "there is no memory for what a loop records")
        return [
            (f"{wanted} = ({count}) * {owner.type.dtype.itemsize}", None),
            (f"if {wanted} > room(table, {place}):", None),
            (f"    if not grow(table, {place}, {wanted}):", None),
            *((f"        {line}", None) for line in failed),
            (f"    {name} = {self._growing(owner).format(place)}", None),
        ]

    def _number_of(self, owner: Node) -> int:
        """Return the number of an array; the same for all that trade places."""
        group = self.memory.group(owner)
        if group not in self.groups:
            self.groups[group] = self._number()
        return self.groups[group]

    def fault(self, error: type[Exception], message: str, *values: str, advice: str | None = None) -> list[str]:
        """Return statements that record an error and return."""
        return self.leave(Fault(error, (message,) if advice is None else (message, advice)), *values)

    def leave(self, fault: Fault | Raised, *values: str) -> list[str]:
        """Return statements that record a fault with the numbers for its message, and return."""
        number = self.faults.setdefault(fault, len(self.faults) + 1)
        name = self._declare(
            "fault", "fault", Entry("fault", None), lambda k: f'array(table, {k}, "int64", {MOST_BUFFERS - 1})'
        )
        noted = [f"{name}[{k}] = {value}" for k, value in enumerate((str(number), *values))]
        return [*noted, "return"]

    def copy(self, to: Node, of: Node) -> list[Line]:
        """Return a loop that copies a whole array."""
        if is_growing(self.memory.owner(to)) or is_growing(self.memory.owner(of)):
            raise RefusedError(None)
        target, source, k = self.array(to), self.array(of), self.fresh("k")
        return [(f"for {k} in range({self.size(of.type.size)}):", to), (f"    {target}[{k}] = {source}[{k}]", to)]

    @property
    def counts_iterations(self) -> bool:
        """Return whether a data-dependent loop counts its iterations for `polls`: only the outermost one does."""
        return not self.depth

    def polls(self, done: str, count: str, *, inner: bool) -> list[Line]:
        """Return statements for each iteration: the outermost loop checks the stop flag, and reports its progress or ends.

        An ``inner`` loop with loops inside ends when the outermost does.
        """
        if not self.depth:
            return [
                ("if asked(table):", None),
                (f"    if told(table, {done}, {count}):", None),
                ("        return", None),
            ]
        return [("if stopped(table):", None), ("    return", None)] if inner else []

    def latched(self, wanted: Mapping[Node, Node]) -> list[Line]:
        """Return statements that give each owner the array of the owner it maps to, and pass on the spare arrays."""
        sources = set(wanted.values())
        moves = list(wanted.items())
        for source in sources - set(wanted):
            end = next(t for t, s in wanted.items() if s is source)
            while end in sources:
                end = next(t for t, s in wanted.items() if s is end)
            moves.append((source, end))
        return [(line, None) for line in self.trade(moves)]

    def _let_trade(self, owner: Node) -> None:
        """Register an array among those that trade memory."""
        known, name = self.traded.setdefault(self.memory.group(owner), []), self.names[owner]
        if name not in known:
            known.append(name)
            self.head.append((f"at_{name} = {len(known) - 1}", None))

    def trade(self, moves: Sequence[tuple[Node, Node]]) -> list[str]:
        """Return statements that give each first owner the array of the second."""
        pairs = [(self.array(a), self.array(b)) for a, b in moves]
        for owner in dict.fromkeys(n for pair in moves for n in pair):
            self._let_trade(owner)
        kept = [(f"old_{b}", f"at_old_{b}", b) for _, b in pairs]
        return [
            *(f"{old} = {b}" for old, _, b in kept),
            *(f"{at} = at_{b}" for _, at, b in kept),
            *(f"{a} = {old}" for (a, _), (old, _, _) in zip(pairs, kept, strict=True)),
            *(f"at_{a} = {at}" for (a, _), (_, at, _) in zip(pairs, kept, strict=True)),
        ]

    def tile(self, node: Node, count: Size, width: Size | None) -> str:
        """Return the memory for one tile of a node; on the stack if a row is one element."""
        key, own = ("tile", node), ("own tile", node)
        lines = self.head if self.sharing is None else self.sharing.lines
        if count != 1:
            entry = Entry("tile", node, count, width or 1)
            name = self._declare(
                key, "b", entry, lambda k: f'array(table, {k}, "{node.type.dtype.name}", {self._number()})'
            )
            if self.sharing is None:
                return name
            if own not in self.names:
                self.names[own] = self.fresh("own")
                lines.append((f"{self.names[own]} = own({name}, {self.product(count)} * {self.sharing.rows})", None))
            return self.names[own]
        key = key if self.sharing is None else own
        if key not in self.names:
            rows = FLAT_TILE if width is None else ROW_TILE
            self.names[key] = self.scratch("tile", rows, node.type.dtype.name, lines)
        return self.names[key]

    def scratch(self, stem: str, count: int, dtype: str, lines: list[Line]) -> str:
        """Declare memory on the stack in ``lines``, and return its name."""
        name = self.fresh(stem)
        lines.append((f'{name} = scratch({count}, "{dtype}", {self._number()})', None))
        return name

    def parts(self, node: Node, sharing: Sharing) -> str:
        """Return the memory in which each share but the first accumulates a node; the first uses the node's array."""
        entry = Entry("parts", (node, sharing.rows_in_all, sharing.kept), node.type.size, sharing.width)
        number = self._number_of(self.memory.owner(node))  # one pointer in the loop stands for both
        return self._declare(
            ("parts", node), "b", entry, lambda k: f'array(table, {k}, "{node.type.dtype.name}", {number})'
        )

    def threads(self) -> str:
        """Return the variable of the thread pool."""
        return self._declare("threads", "threads", Entry("threads", None), lambda k: f"table[{k}]")

    def size(self, size: Size) -> str:
        """Return a size as an expression."""
        if isinstance(size, int):
            return str(size)
        return " + ".join(self._term(m, c) for m, c in size.terms).replace("+ -", "- ")

    def _term(self, monomial: Any, coefficient: int) -> str:
        factors = [self._atom(a) for a, power in monomial for _ in range(power)]
        if coefficient == -1 and factors:
            return "-" + " * ".join(factors)
        if coefficient != 1 or not factors:
            factors.insert(0, str(coefficient))
        return " * ".join(factors)

    def _atom(self, a: Any) -> str:
        if isinstance(a, Apply) and not _is_of_the_host(a):
            left, right = (f"({self.size(s)})" for s in (a.left, a.right))
            if a.function in _EXTREMES:
                return f"({left} if {left} {'<' if a.function == 'min' else '>'} {right} else {right})"
            return f"({left} {'//' if a.function == 'floordiv' else '%'} {right})"
        if isinstance(a, Local):
            return a.name
        if isinstance(a, Node):
            known = self.scalars.get((a, ()))  # one that no statement has read so far is read where it is stored
            number = f"{self.array(a)}[0]" if known is None and self.stored(a) else self.scalars[a, ()]
            return number if a.type.dtype == np.dtype(np.int64) else f"np.int64({number})"
        return self._declare(a, "n", Entry("size", a), lambda k: f"table[{k}]")

    def wide(self, size: Size) -> list[str]:
        """Return conditions under which a data-dependent size, or a part of it, exceeds 64 bits, estimated in floating point.

        Also conditions for a division by zero.
        """
        if isinstance(size, int):
            return []
        parts = [a for m, _ in size.terms for a, _ in m if isinstance(a, Apply)]
        found = [text for a in parts for s in (a.left, a.right) for text in self.wide(s)]
        divisors = [a.right for a in parts if a.function in {"floordiv", "mod"} and not is_at_least(a.right, 1)]
        found += [f"({self.size(s)}) == 0" for s in divisors if not isinstance(s, int)]
        if not _may_wrap(size):
            return found
        total = " + ".join(
            " * ".join([f"float({c})", *(f"float({self._atom(a)})" for a, power in m for _ in range(power))])
            for m, c in size.terms
        )
        return [*found, f"not abs({total}) < {WORD}"]

    def product(self, size: Size) -> str:
        """Return a size as a factor."""
        text = self.size(size)
        return f"({text})" if isinstance(size, Dim) and len(size.terms) > 1 else text

    def number(self, value: Any) -> str:
        """Return a constant: as text if it is plain, so that the compiler can use it; else an entry of the table."""
        dtype = value.dtype
        if dtype.kind == "b":
            return "True" if value else "False"
        if dtype.kind == "c":
            return f"complex({self.number(value.real)}, {self.number(value.imag)})"
        plain = abs(float(value)) in _PLAIN or not np.isfinite(value)
        plain = plain or (dtype.kind in "iu" and -(2**63) <= int(value) < 2**63)  # divisors: far quicker when known
        if dtype.kind == "f":
            shown, bits, read = float_literal(float(value)), struct.pack("<d", float(value)), "real(table, {})"
        else:
            shown, bits, read = str(int(value)), struct.pack("<Q", int(value) % 2**64), "table[{}]"
        literal = shown
        if not plain:
            (number,) = struct.unpack("<q", bits)
            literal = self._declare(("number", read, number), "c", Entry("number", number), read.format)
            self.literals[literal] = f"{literal} = {shown}"
        return literal if dtype in {np.dtype("f8"), np.dtype("i8")} else f"np.{dtype.name}({literal})"

    def address(self, number: int) -> str:
        """Return an address, as an entry of the table: it differs between processes, and so is not part of the text."""
        return self._declare(("address", number), "c", Entry("address", number), lambda k: f"table[{k}]")

    def finish(self, names: Mapping[Node, str]) -> Printed:
        """Return the whole function."""
        ends: list[Line] = []
        for group, known in self.traded.items():
            place = self._declare(
                ("traded", group),
                "t",
                Entry("traded", tuple(self._owner(n) for n in known)),
                lambda k: f'array(table, {k}, "int64", {MOST_BUFFERS - 1})',
            )
            ends += [(f"{place}[{k}] = at_{name}", None) for k, name in enumerate(known)]
        body = [*self.head, *self.lines, *ends] or [("pass", None)]
        source = "def kernel(table):\n" + "".join(f"    {text}\n" for text, _ in body)
        shown = shown_names(self.names, names, source)
        pattern = re.compile(r"\b(" + "|".join(map(re.escape, shown)) + r")\b") if shown else None

        def readable(line: Line) -> str:
            text = self.literals.get(line[0].partition(" = ")[0]) if "table" in line[0] else None
            text = text or (pattern.sub(lambda m: shown[m[1]], line[0]) if pattern else line[0])
            places = site.of(line[1]) if line[1] is not None else ()
            return f"    {text}  # {places[0]}\n" if places else f"    {text}\n"

        return Printed(
            source,
            "def kernel(table):\n" + "".join(map(readable, body)),
            tuple(self.entries),
            tuple(self.faults),
            tuple(node for _, node in body),
        )

    def _owner(self, name: str) -> Node:
        return next(key for key, known in self.names.items() if known == name)


def float_literal(value: float) -> str:
    """Return a float as Python text."""
    if value != value:  # noqa: PLR0124 (nan)
        return "np.nan"
    if value in {np.inf, -np.inf}:
        return "np.inf" if value > 0 else "(-np.inf)"
    return repr(value) if np.copysign(1.0, value) > 0 else f"({value!r})"


def shown_names(own: Mapping[Any, str], names: Mapping[Node, str], source: str) -> dict[str, str]:
    """Return the user's names of arrays, as identifiers that are otherwise unused in the kernel's text."""
    taken = {"table", "kernel", "np", "math", "start", "stop", "i", "tile", *INNER, *re.findall(r"[^\W\d]\w*", source)}
    shown: dict[str, str] = {}
    for key, name in own.items():
        wanted = re.sub(r"\W", "_", names.get(key, "")) if isinstance(key, Node) else ""
        if wanted.isidentifier() and not keyword.iskeyword(wanted) and wanted not in taken:
            taken.add(wanted)
            shown[name] = wanted
    return shown


def _is_of_the_host(a: Apply) -> bool:
    """Return whether a minimum or maximum of sizes is known before the kernel runs, and cannot fail."""
    return a.function in _EXTREMES and all(
        not isinstance(b, Local | Node) and (not isinstance(b, Apply) or _is_of_the_host(b))
        for s in (a.left, a.right)
        for b in atoms(s)
    )
