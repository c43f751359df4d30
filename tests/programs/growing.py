"""Random programs of NumPy code, grown statement by statement beside a run of them, so that each fits the arrays that there are."""

from __future__ import annotations

import linecache
import random
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.programs import vocabulary as words

LARGEST = 120  # elements of an array
INDENT = "    "


class Reached(Exception):  # noqa: N818 (how a run of a growing program ends)
    """The end of what has grown so far, with the names that are bound there."""


@dataclass(eq=False)
class Block:
    """Statements under a header; ``forced`` stands in its place while the block, or what follows it, grows."""

    header: str
    body: list[str | Block] = field(default_factory=list)
    forced: str = ""

    def lines(self, forced: bool) -> list[str]:
        """The text, as it is or as it is run while it grows."""
        inner = [line for part in self.body for line in text_of(part, forced)]
        return [(forced and self.forced) or self.header, *(INDENT + line for line in inner or ["pass"])]


def text_of(part: str | Block, forced: bool = False) -> list[str]:
    """The lines of a statement."""
    return part.split("\n") if isinstance(part, str) else part.lines(forced)


@dataclass(frozen=True)
class Program:
    """A random program: the text of its statements, the functions that they call, and the names at its end.

    Parameters
    ----------
    seed
        What it grew from; its arrays, too.
    body
        Its statements.
    helpers
        The text of functions that it calls.
    names
        The names that are bound at the end, but for counters.
    """

    seed: int
    body: list[str]
    helpers: str
    names: list[str]

    def function(self, names: tuple[str, ...]) -> str:
        """The text of a function of ``names``."""
        lines = [*self.body, f"return {', '.join(self.names)}{',' * (len(self.names) == 1)}"]
        return "\n".join([f"def f({', '.join(names)}):", *(INDENT + line for line in lines), ""])

    @property
    def cell(self) -> str:
        """The text of a cell."""
        return "\n".join(self.body)


def compiled(source: str, name: str) -> Any:
    """Code whose source can be looked up."""
    filename = f"<random {name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    return compile(source, filename, "exec")


class Grower:
    """Grows one program.

    Parameters
    ----------
    seed
        Where all its choices come from.
    arguments
        Makes the arrays and numbers that the program begins with.
    jumps
        Whether it may ``return``.
    """

    def __init__(self, seed: int, arguments: Any, *, jumps: bool) -> None:
        self.draw = random.Random(seed)
        self.seed, self.arguments, self.jumps = seed, arguments, jumps
        self.top: list[str | Block] = []
        self.space: dict[str, Any] = dict(arguments())
        self.given = tuple(self.space)
        self.count = 0
        self.indices: list[str] = []
        self.loops = 0
        self.used: set[str] = set()
        self.left: dict[str, dict[str, Any]] = {}  # what is bound where a function returns early, by what stands there
        self.code = compiled(words.HELPER_TEXT, "helpers")

    # running ----------------------------------------------------------------------------------------------------------

    def reach(self, here: list[str | Block]) -> dict[str, Any] | None:
        """The names that are bound at the end of the block ``here``; None where that is not reached.

        Raises
        ------
        Exception
            What NumPy raises on the way.
        """
        here.append("_reached(locals())")
        lines = [INDENT + line for part in self.top for line in text_of(part, True)]
        here.pop()
        source = "\n".join([f"def f({', '.join(self.given)}):", *lines])
        found: list[dict[str, Any]] = []

        def reached(names: dict[str, Any]) -> None:
            found.append(dict(names))
            raise Reached

        iterations = iter(range(50))
        space: dict[str, Any] = {
            "np": np,
            "_reached": reached,
            "_iterations": lambda: next(iterations) >= 0,
        }  # it stops by raising
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            exec(self.code, space)
            exec(compile(source, "<growing>", "exec"), space)
            try:
                space["f"](**self.arguments())
            except Reached:
                return found[0]
        return None

    def add(self, part: str | Block, here: list[str | Block]) -> bool:
        """Put a statement at the end of a block if it runs."""
        here.append(part)
        try:
            names = self.reach(here)
            if names is None and isinstance(part, Block):
                part.forced = part.header.split()[0] + " False:"  # it leaves: what follows is for other data
                names = self.reach(here)
        except Exception:  # noqa: BLE001 (whatever NumPy raises)
            names = None
        if names is None or not all(map(_small, names.values())):
            here.pop()
            return False
        self.space = names
        return True

    # growing ----------------------------------------------------------------------------------------------------------

    def grow(self, length: int) -> Program:
        """The program."""
        self.fill(self.top, length, 2)
        body = [line for part in self.top for line in text_of(part)]
        if self.draw.random() < 0.04:
            body += self.simple().split("\n")  # which may fail
        names = [n for n, v in self.space.items() if n not in self.given and not n.startswith("t") and _shown(v)]
        names = [n for n in names if n not in {"i", "j", "l"}]
        names += [n for n in self.given if isinstance(self.space.get(n), np.ndarray)]
        for mark, space in self.left.items():
            given = ", ".join(_like(self.space[n], n, space) for n in names) + "," * (len(names) == 1)
            body = [line.replace(mark, given) for line in body]
        helpers = "\n".join(text for name, text in words.HELPERS.items() if any(name in line for line in body))
        return Program(self.seed, body, helpers, names)

    def fill(self, here: list[str | Block], length: int, depth: int) -> None:
        """Grow a block."""
        for _ in range(length):
            for _ in range(8):
                if depth and self.draw.random() < 0.45:
                    if self.compound(here, depth - 1):
                        break
                elif self.add(self.simple(), here):
                    break

    def compound(self, here: list[str | Block], depth: int) -> bool:
        """Grow a statement with blocks."""
        kind = self.pick("if", "if", "for", "for", "for", "while", "leave", "collect", "comprehend")
        return getattr(self, f"_{kind}")(here, depth)

    def _inside(self, block: Block, here: list[str | Block], depth: int, length: int) -> bool:
        """Grow what is in a block that is the last one of ``here``; whether all runs then."""
        kept = self.space
        here.append(block)
        try:
            names = self.reach(block.body)
        except Exception:  # noqa: BLE001 (whatever NumPy raises)
            names = None
        if names is not None:
            self.space = names
            self.fill(block.body, length, depth)
        here.pop()
        self.space = kept
        return names is not None

    def _if(self, here: list[str | Block], depth: int) -> bool:
        first = Block(f"if {self.test()}:", forced="if True:")
        if not self._inside(first, here, depth, self.pick(1, 1, 2)):
            return False
        blocks = [first]
        for header in self.pick([], ["else:"], ["else:"], [f"elif {self.test()}:"], [f"elif {self.test()}:", "else:"]):
            for b in blocks:
                b.forced = b.header.split()[0] + " False:"
            other = Block(header, forced="" if header == "else:" else "elif True:")
            here += blocks
            grown = self._inside(other, here, depth, self.pick(1, 1, 2))
            del here[-len(blocks) :]
            if not grown:
                return False
            blocks.append(other)
        for b in blocks:
            b.forced = ""
        here += blocks[:-1]
        if self.add(blocks[-1], here):
            return True
        if len(blocks) > 1:
            del here[-len(blocks) + 1 :]
        return False

    def _for(self, here: list[str | Block], depth: int) -> bool:
        index = "ijl"[min(len(self.indices), 2)]
        form = self.pick(*words.RANGES, *(words.INNER_RANGES * 2 if self.indices else ()))
        self.count += 1
        header = form.format(
            i=index, r=f"r{self.count}", a=self.array(), b=self.array(), o=(self.indices or ["0"])[-1], n=self.size()
        )
        return self._loop(Block(header + ":"), here, depth, [index] if index in header.split(" in ")[0] else [])

    def _while(self, here: list[str | Block], depth: int) -> bool:
        self.count += 1
        counter = f"t{self.count}"
        if not self.add(f"{counter} = 0", here):
            return False
        test = self.pick(f"{counter} < 4 and ({self.test()})", f"{counter} < {self.size()}", f"{counter} < 3")
        block = Block(f"while {test}:", [f"{counter} += 1"], forced="while _iterations():")
        if self._loop(block, here, depth, [counter]):
            return True
        here.pop()
        return False

    def _loop(self, block: Block, here: list[str | Block], depth: int, indices: list[str]) -> bool:
        self.indices += indices
        self.loops += 1
        grown = self._inside(block, here, depth, self.pick(1, 2, 3))
        if grown and self.draw.random() < 0.2:
            block.body.insert(self.draw.randint(1, len(block.body)) if block.body else 0, self._jump())
        self.loops -= 1
        del self.indices[len(self.indices) - len(indices) :]
        block.forced = ""
        if not grown:
            return False
        if self.draw.random() < 0.1:
            other = Block("else:", [self.simple()])
            here.append(block)
            if self.add(other, here):
                return True
            here.pop()
        return self.add(block, here)

    def _jump(self) -> str:
        return f"if {self.test()}:\n{INDENT}{self.pick('break', 'continue')}"

    def _leave(self, here: list[str | Block], depth: int) -> bool:
        if self.jumps and self.draw.random() < 0.6:
            block = Block(f"if {self.test()}:")
            if self.draw.random() < 0.5:
                self._inside(Block(block.header, forced="if True:"), here, 0, 1)
            mark = f"None  # way out {len(self.left)}."
            block.body.append(f"return {mark}")
            self.left[mark] = dict(self.space)
            return self.add(block, here)
        if not self.loops:
            return False
        return self.add(Block(f"if {self.test()}:", [self.pick("break", "continue")]), here)

    def _collect(self, here: list[str | Block], depth: int) -> bool:
        """A list that grows by one element an iteration, and is stacked."""
        self.count += 1
        found = f"t{self.count}"
        if not self.add(f"{found} = []", here):
            return False
        block = Block(f"for i in range({self.size()}):")
        self.indices.append("i")
        self._inside(block, here, 0, self.pick(0, 1))
        block.body.append(f"{found}.append({self.expression()})")
        self.indices.pop()
        if not self.add(block, here):
            here.pop()
            return False
        return self.add(f"v{self.count} = np.{self.pick('stack', 'array', 'concatenate')}({found})", here)

    def _comprehend(self, here: list[str | Block], depth: int) -> bool:
        self.count += 1
        self.indices.append("i")
        made = self.expression()
        self.indices.pop()
        over = self.pick(f"range({self.size()})", f"range({self.size()})", "range(2)")
        form = self.pick("np.array([{e} for i in {o}])", "sum([{e} for i in {o}])", "max({e} for i in {o})")
        return self.add(f"v{self.count} = {form.format(e=made, o=over)}", here)

    # words ------------------------------------------------------------------------------------------------------------

    def pick(self, *values: Any) -> Any:
        """One of several."""
        return self.draw.choice(values)

    def arrays(self) -> list[str]:
        """The names of arrays that may be indexed."""
        return [n for n, v in self.space.items() if isinstance(v, np.ndarray) and n not in {"k", "u"}]

    def array(self) -> str:
        """The name of an array with axes, mostly."""
        names = self.arrays()
        wide = [n for n in names if self.space[n].ndim]
        return self.pick(*(wide or names)) if self.draw.random() < 0.95 else self.pick(*names)

    def numbers(self) -> list[str]:
        """The names of numbers."""
        kinds = (int, float, complex, np.generic)
        return [n for n, v in self.space.items() if isinstance(v, kinds) and n not in self.indices]

    def name(self) -> str:
        """A name to be bound: a new one, or one that there is."""
        if self.draw.random() < 0.55:
            self.count += 1
            return f"v{self.count}"
        names = [n for n in (*self.arrays(), *self.numbers()) if n not in {"n", "m", "k", "u"} and n[0] != "t"]
        return self.pick(*names)

    def number(self) -> str:
        """A number: written out, a name, an index."""
        if self.indices and self.draw.random() < 0.3:
            return self.pick(*self.indices)
        if self.draw.random() < 0.3 and self.numbers():
            return self.pick(*self.numbers())
        return self.pick(*words.NUMBERS)

    def real(self) -> str:
        """A number that may be compared."""
        found = self.number()
        return "1" if found == "1j" or isinstance(self.space.get(found), complex | np.complexfloating) else found

    def size(self) -> str:
        """A count of iterations."""
        return self.pick("n", "m", "2", "3", f"len({self.array()})", f"{self.array()}.shape[-1]", "k[0]", "k.max()")

    def position(self) -> str:
        """A position along an axis."""
        if self.indices and self.draw.random() < 0.6:
            return self.pick(*words.MOVING).format(i=self.pick(*self.indices))
        return self.pick(*words.POSITIONS)

    def entry(self) -> str:
        """One entry of an index."""
        kind = self.draw.random()
        if kind < 0.42:
            low, high = (self.pick("", "", self.position()) for _ in range(2))
            return f"{low}:{high}{self.pick('', '', '', ':2', ':-1', ':-2')}"
        if kind < 0.8:
            return self.pick(self.position(), self.position(), self.position(), "...", "None")
        return self.pick(*words.CHOOSING)

    def index(self, name: str) -> str:
        """An index into an array."""
        if self.draw.random() < 0.12:
            return f"[{self.pick(*words.MASKS).format(a=name, n=self.number())}]"
        most = max(getattr(self.space.get(name), "ndim", 2), 1)
        return f"[{', '.join(self.entry() for _ in range(self.draw.randint(1, most)))}]"

    def operand(self) -> str:
        """An array, a part of one, or a number."""
        name = self.array()
        return self.pick(name, f"{name}{self.index(name)}", f"{name}{self.index(name)}", self.number())

    def expression(self) -> str:
        """An operation on operands."""
        form = self.pick(*words.EXPRESSIONS)
        axis = self.pick("None", "0", "-1", "1")
        return form.format(x=self.operand(), y=self.operand(), a=self.array(), n=self.number(), k=axis, t=self.test())

    def test(self) -> str:
        """A condition."""
        form = self.pick(*words.TESTS, *(words.INDEX_TESTS if self.indices else ()))
        index = self.indices[-1] if self.indices else "0"
        return form.format(a=self.array(), b=self.array(), n=self.real(), m=self.real(), i=index)

    def simple(self) -> str:
        """A statement without blocks."""
        name = self.array()
        place = name + self.index(name)
        kind = self.draw.random()
        if kind < 0.13:
            return f"{self.name()} = {self.pick(*words.UNARY).format(a=name)}"
        if kind < 0.22:
            return f"{self.name()} = {place}"
        if kind < 0.38:
            return f"{self.name()} = {self.expression()}"
        if kind < 0.58:
            return f"{place} = {self.value(place)}"
        if kind < 0.72:
            target = self.pick(place, place, name, *(self.numbers()[:1] if self.draw.random() < 0.5 else ()))
            target = place if target in {"n", "m"} or target[0] == "t" else target
            return f"{target} {self.pick(*words.OPERATORS)}= {self.value(target)}"
        form = self.pick(*(words.WHOLE if kind < 0.85 else words.CALLS if kind < 0.91 else words.REBINDING))
        self.count += 1
        return form.format(
            a=name,
            b=self.array(),
            n=self.number(),
            i=self.position(),
            j=self.position(),
            p=place,
            v=f"v{self.count}",
            e=self.expression(),
            t=self.test(),
        )

    def value(self, place: str) -> str:
        """What is stored."""
        other = self.array()
        return self.pick(
            self.number(),
            self.number(),
            other,
            f"{other}{self.index(other)}",
            f"{place} * 2",
            f"{place} + {self.number()}",
            f"{place}[::-1]",
            self.expression(),
            self.expression(),
        )


def _like(value: Any, name: str, space: dict[str, Any]) -> str:
    """What an early ``return`` gives for the name of one at the end: itself, or a name of the same kind; else zeros."""
    found = [n for n, v in space.items() if _kind(v) == _kind(value)]
    if found:
        return name if name in found else found[0]
    if not isinstance(value, np.ndarray | np.generic):
        return repr(type(value)(0))
    if isinstance(value, np.generic):
        return f"np.{value.dtype.name}(0)"
    arrays = [n for n, v in space.items() if isinstance(v, np.ndarray)]
    nearest = next((n for n in arrays if space[n].shape == value.shape), arrays[0])
    return f"np.zeros_like({nearest}, dtype=np.{value.dtype.name})"


def _kind(value: Any) -> Any:
    return type(value), getattr(value, "dtype", None), getattr(value, "shape", None)


def _small(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.size <= LARGEST and value.dtype.kind in "biufc"
    if isinstance(value, int | float | complex):
        return abs(value) < 1e9 or value != value  # noqa: PLR0124 (nan)
    return True


def _shown(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic | int | float | complex)
