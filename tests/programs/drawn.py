"""Short random programs, drawn from tables of statements: data-dependent sizes, and arrays that share memory."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.programs.growing import INDENT, Program
from tests.programs.vocabulary import HELPERS


@dataclass(frozen=True)
class Words:
    """What programs are drawn from: texts with holes ``{v}`` and ``{w}`` for names.

    Parameters
    ----------
    begins
        Values that the first names have.
    values, longer
        Values of others; ``longer`` ones have more elements than their operands, and are not made in loops.
    stores
        Statements that change arrays.
    tests, loops
        Conditions of branches, and headers of loops.
    """

    begins: tuple[str, ...]
    values: tuple[str, ...]
    longer: tuple[str, ...]
    stores: tuple[str, ...]
    tests: tuple[str, ...]
    loops: tuple[str, ...]


def lines(text: str) -> tuple[str, ...]:
    """The lines of a table."""
    return tuple(text.strip().split("\n"))


def drawn(seed: int, words: Words) -> Program:
    """The program of a seed, which need not run: both sides may raise."""
    made = _Drawing(seed, words)
    body = [line for _ in range(made.draw.choice([1, 1, 2])) for line in made.begin()]
    body += [line for _ in range(made.draw.randint(1, 4)) for line in made.statement(2)]
    helpers = "\n".join(text for name, text in HELPERS.items() if any(name in line for line in body))
    return Program(seed, body, helpers, [*made.bound, "x", "y", "z", "k", "u"])


class _Drawing:
    """One program while it is drawn."""

    def __init__(self, seed: int, words: Words) -> None:
        self.draw = random.Random(seed)
        self.words = words
        self.known: list[str] = []  # names that are bound here
        self.bound: dict[str, None] = {}  # and those that are bound at the end
        self.count = 0
        self.loops = 0

    def statement(self, depth: int) -> list[str]:
        """A statement, with blocks ``depth`` deep."""
        kind = self.draw.random()
        if kind < 0.42:
            return [f"{self.name()} = {self.value()}"]
        if kind < 0.64 or not depth:
            return [self.filled(self.words.stores)]
        if kind < 0.71:
            return self.begin()
        return self.branch(depth) if kind < 0.87 else self.loop(depth)

    def begin(self) -> list[str]:
        """A first value."""
        value = self.draw.choice(self.words.begins) + self.draw.choice(["", " + 0", "", " * 2"])
        return [f"{self.new()} = {value}"]

    def branch(self, depth: int) -> list[str]:
        """An ``if``, half of them with ``else``."""
        found = [f"if {self.filled(self.words.tests)}:", *self.block(depth)]
        return [*found, "else:", *self.block(depth)] if self.draw.random() < 0.5 else found

    def loop(self, depth: int) -> list[str]:
        """A ``for``."""
        header = self.filled(self.words.loops)
        self.loops += 1
        body = self.block(depth)
        self.loops -= 1
        return [f"{header}:", *body]

    def block(self, depth: int) -> list[str]:
        """The statements of a block: whether its names are bound behind it is not known."""
        known, bound = list(self.known), dict(self.bound)
        found = [line for _ in range(self.draw.choice([1, 1, 2])) for line in self.statement(depth - 1)]
        self.known, self.bound = known, bound
        return [INDENT + line for line in found]

    def value(self) -> str:
        """A value of a name."""
        return self.filled(self.words.values if self.loops else (*self.words.values, *self.words.longer))

    def name(self) -> str:
        """A name that is bound: a new one, or one that there is."""
        return self.draw.choice(self.known) if self.known and self.draw.random() < 0.3 else self.new()

    def new(self) -> str:
        """A new name."""
        self.count += 1
        name = f"v{self.count}"
        self.known.append(name)
        self.bound[name] = None
        return name

    def filled(self, texts: tuple[str, ...]) -> str:
        """One of several texts, with names."""
        names = ["x", "y", "z", *self.known]
        v, w = (self.draw.choice([*names, *self.known, *names[-3:]]) for _ in range(2))
        return self.draw.choice(texts).format(v=v, w=w)


SIZES = Words(
    begins=lines("""
x[x > 1]
x[k[0]:]
y[y > 0]
x[u]
x[k[k > 0]]
np.flatnonzero(y)
np.unique(y)
x[:k[-1]]
x[~(x > 1)]
z[z > 0]
x[k[0]:, 1:]
x[:, k[0]:]
np.repeat(y, 2)[k[0]:]
np.concatenate([y, y[y > 0]])
x[u][:, 1:]
y[:k.max()]
np.nonzero(x)[0]
x.T[k[0]:]
np.arange(k.max())
y[np.argmax(y):]
np.zeros(k[0] + 1)
x[0][k[0]:][::-1]
np.append(y, y[y > 1])
y[k[k > 0]]
np.zeros((k.max(), n))
y[int(y.sum() > 0):]
x[int(s):]
np.stack([y] * 2)[:k[0] + 1]
np.array([r for r in y if r > 1])
y[(y > 0) & (y < 3)]
"""),
    values=lines("""
{v} + {w}
{v} * 2
np.where({v} > 1, {v}, {w})
{v}.reshape(-1)
{v}[::-1]
{v}.sum()
{v}.sum(axis=0)
{v}[1:] - {v}[:-1]
{w}[:len({v})]
np.zeros(len({v}))
np.zeros_like({v})
{v} @ {w}
{v}.T
{v}.ravel()
np.cumsum({v})
np.sort({v}, axis=-1)
{v}.max(initial=0)
{v}[{v} > 1]
np.roll({v}, 1)
np.maximum({v}, {w})
{v}.mean(axis=0)
np.split({v}, [1])[0]
np.diff({v}, axis=0)
len({v})
{v}.shape[0] + {w}
{v}[:2]
{v}[-1:]
{v}[k[0]:]
np.dot({v}, {w})
{v}.flatten()
np.squeeze({v})
{v}[0]
{v}[-1]
np.take({v}, k, axis=0, mode='clip')
{v}.astype(float)
np.argsort({v}, axis=0)
np.interp(s, np.arange(3.0), np.arange(3.0)) + {v}
np.any({v} > {w})
np.einsum('i,i->i', {v}, {w})
np.ones({v}.shape) + {w}
np.full({v}.shape, s)
np.linspace(0, 1, len({v}))
np.reshape({v}, (len({v}), -1))
{v} if s > 1 else {w}
({v} + {w}) if {v}.sum() > 1 else {v} * 2
np.arange(len({v})) + {w}
"""),
    longer=lines("""
np.concatenate([{v}, {w}])
{v}.reshape(-1, 1)
np.broadcast_to({v}, (2, *np.shape({v})))
np.outer({v}, {w})
np.stack([{v}, {w}])
np.pad({v}, 1)
{v}[None]
np.tile({v}, 2)
np.add.outer({v}, {w})
{v}[..., None] + {w}
np.hstack([{v}, {w}])
np.vstack([{v}, {w}])
np.atleast_2d({v})
np.expand_dims({v}, 0)
np.repeat({v}, 2, axis=0)
{v}[:, None]
np.array([{v}, {w}])
np.eye(len({v}))
"""),
    stores=lines("""
{v}[...] = {w}
{v} += {w}
{v}[:1] = 7
{v}[:] = {w}[:len({v})]
{w}[:len({v})] = {v}
{v}[{v} > 1] = 0
{v}[0] = 3
{v}[1:] = {v}[:-1]
np.add.at({v}, k, 1)
{v}[k[0]:] += 1
{v}.shape = -1
{v}[::2] = s
{v}.sort()
{v}.fill(2)
x[u] = {v}
y[y > 0] = {v}
x[0, :] = {v}
y[:k[0]] = {v}[:k[0]]
{v} *= 2
np.copyto({v}, {w})
{v}[...] += {v}[::-1]
y[:] = {v}
z[...] = {v}
{v}[-1] = {w}.sum()
"""),
    tests=lines("""
s > 1
{v}.sum() > 1
len({v}) > 2
k[0] < n
np.any({v} > 1)
{v}.size > 2
flag
y.max() > y.min()
"""),
    loops=lines("""
for i in range(2)
for i in range(k.max())
for i in range(len({v}))
for i in range(n)
for r in {v}
for i, r in enumerate({v})
for i in k
for r, _p in zip({v}, {w})
"""),
)

PLACES = Words(
    begins=lines("""
x[1:]
x.T
y[::-1]
x[0]
x[:, 0]
x.reshape(-1)
x if s > 1 else x.T
y if y.sum() > 1 else y + 0
z[..., 0]
x[k[0]]
x[k[0]:]
y[:k[0]]
x.ravel()
np.asarray(y)
x[::2]
x[:, ::-1]
y
x
z
x.copy()
np.broadcast_to(y, (2, *y.shape))
x[...]
np.diagonal(x)
np.atleast_2d(y)
z[0] if z.sum() > 2 else z[-1]
x.real
x.flat[1:]
np.squeeze(x)
x[-1][::-1]
x[y > 1]
np.swapaxes(x, 0, -1)
y[None]
np.where(x > 1, x, 0)
next(iter(x))
x[np.argmax(y):]
x[u]
"""),
    values=lines("""
{v}
{v}[1:]
{v}[::-1]
{v}.T
{v}[0]
{v}[-1]
{v}.reshape(-1)
{v}.ravel()
{v} if s > 1 else {w}
{v} if {v}.sum() > 1 else {w}
{v}[k[0]:]
{v}[:k[-1]]
{v}[...]
{v} + {w}
{v}.copy()
np.asarray({v})
{v}[k[1]]
{v}[{v} > 1]
[{v}, {w}][-1]
({v}, {w})[int(s)]
{v} or {w}
{v}.astype({v}.dtype, copy=False)
{v}.astype(float)
{v}[..., 0]
{v}.squeeze()
{v}[::2]
{v}.sum()
{v} * 2
(lambda p: p[::-1])({v})
{v}.swapaxes(0, -1)
np.where({v} > 1, {v}, {w})
{v}[u]
{v}.view()
np.flip({v})
np.ascontiguousarray({v})
{v}[k]
{v}.reshape({w}.shape)
"""),
    longer=lines("""
{v}[None]
np.array([{v}, {w}])
np.concatenate([{v}, {w}])
"""),
    stores=lines("""
{v}[...] = {w}
{v} += {w}
{v}[:1] = 7
{v}[0] = {w}[0]
{v}[{v} > 1] = 0
{v}[0] += 3
{v}[1:] = {v}[:-1]
np.add.at({v}, k, 1)
{v}[k[0]:] += 1
{v}.sort()
{v}.fill(2)
{v} *= {v}
np.copyto({v}, {w})
{v}[::-1] = {v}
{v}[...] += {v}[::-1]
y[:] = {v}
x[0] = {v}
{v}[-1] = {w}.sum()
{v}, {w} = {w}, {v}
{v}[0], {v}[-1] = {v}[-1], {v}[0]
np.add({v}, 1, out={w})
{v}.T[...] = {w}
{v}[::2] -= {w}[1::2]
{v}.flat[0] = 9
{v}.shape = -1
{v}[k] = {w}[k]
{v}[u] += 1
h_add({v}, {w})
h_swap({v}, {w})
{v} = {w}; {w}[0] = 4
for _q in ({v}, {w}): _q[0] = 5
_l = [{v}, {w}]; _l.reverse(); _l[0][0] = 6
np.maximum({v}, {w}, out={v})
{v}[[0, 0]] += 1
np.fill_diagonal({v}, 1)
np.put({v}, 0, s)
{v}[...] = {v}.T
np.cumsum({v}, axis=0, out={v})
"""),
    tests=lines("""
s > 1
{v}.sum() > 1
len({v}) > 2
k[0] < n
np.any({v} > 1)
{v}.size > 2
flag
y.max() > y.min()
{v} is {w}
np.all({v} == {w})
k[0] > 0
"""),
    loops=lines("""
for i in range(2)
for i in range(k.max())
for i in range(len({v}))
for i in range(n)
for r in {v}
for i, r in enumerate({v})
for i in k
for r, _p in zip({v}, {w})
for r in ({v}, {w})
for i in reversed(range(n))
"""),
)
