"""Chains of cells, drawn: names, functions, classes, stores, views, loops, prints and failing lines, in plain and in captured cells.

A line that fails stands first in its cell: a captured cell that fails changes nothing, a plain one what stands above the line. None fails
by its data alone: what nobody uses is not computed.
"""

from __future__ import annotations

import random
import re

START = """
import math
import numpy as np
a0, a1 = np.array([0.5, -1.25, 2.0, 3.5]), np.arange(5.0)
b0 = np.arange(6.0).reshape(2, 3) - 2
k0 = np.array([2, 0, 1, 2])
x0, x1 = 1.5, -0.25
n0, n1 = 3, 2
l0 = [1.0, 2, 0.5]
d0 = {'a': 0.75, 'b': 2}
s0 = 'ab'
def f0(v): return v * 2 + x0
def g0(v, k=1): return v - k if v > k else v + k
class Model:
    made = 0
    def __init__(self, w):
        self.w = np.array(w, float)
        self.log = []
        Model.made += 1
    def step(self, v, rate=0.1):
        self.w = self.w - rate * v.mean()
        self.log.append(float(self.w.sum()))
        return self
    def shift(self, v):
        self.w += v
    @property
    def size(self): return self.w.size
    def __repr__(self): return f'Model({self.w.round(3).tolist()}, {len(self.log)})'
o0 = Model([1, 2])
"""
FIRST = {
    "a": ["a0", "a1"], "b": ["b0"], "k": ["k0"], "x": ["x0", "x1"], "n": ["n0", "n1"], "l": ["l0"], "d": ["d0"], "s": ["s0"],
    "f": ["f0"], "g": ["g0"], "o": ["o0"],
}  # fmt: skip
VALUES = {
    "a": """
{a} * {x}; np.sin({a}); {a}[1:]; {a}[::-1]; {a}.copy(); np.where({a} > {x}, {a}, -{a}); np.cumsum({a}); np.sort({a})
{a}[{a} > {x}]; np.concatenate([{a}, {a}]); {b}.sum(axis=0); {b}[0]; {b}[:, 1]; {b}.T[1]; {b}.ravel(); np.array([{x}, {n}, {x}])
np.array({l}, float); np.linspace(0, {x}, 4); np.zeros({n} % 5 + 1); {f}({a}); np.unique({a}); np.asarray({a}); {o}.w; {o}.w * 2
np.round({a}, 2); {a}.clip(-1, 1); np.abs({a}) + {k}.sum(); {a}.astype(np.float32); np.full(3, {x})
np.array([v + 1 for v in {l}], float); np.diff({b}, axis=1)[0]; np.array([{g}(v) for v in {a}]); {a}[[0, 0]]; {a}[None][0]
np.exp(-{a} ** 2); np.stack([{a}, {a}]).mean(axis=0) if len({a}) > 2 else {a}; (lambda v: v[:2] + {x})({a}); np.append({a}, {x})
{a}.reshape(-1, 1)[:, 0]; np.maximum({a}, {x})
""",
    "b": """
{b} * 2; {b}.T; {b}[:, ::-1]; {b} @ {b}.T; np.outer({a}, {a}); {b} - {b}.mean(axis=0); np.vstack([{b}[0], {b}[0]]); {b}.copy()
{b}[:1]; {b}.reshape(3, -1) if {b}.size % 3 == 0 else {b}
""",
    "k": """
{k} + 1; np.argsort({a}); ({a} > 0).astype(int); {k}[::-1]; np.arange({n} % 6 + 1); {k}.copy(); np.array([{n}, 1, 2]); {k} % 3
np.array([int(v) for v in {k}]); np.searchsorted(np.sort({a}), {k})
""",
    "x": """
{a}.mean(); float({a}.sum()); {a}[0]; {x} * 2; abs({x}); max({x}, {x}); round({x}, 2); {a}.max(); {l}[0] * 1.5
np.sqrt(abs({x})); math.exp(-abs({x})); {g}({x}); sum({l}); {d}['a']; {x} + {n}; {a} @ {a}; {b}.std(); float({o}.w[0])
{o}.log[-1] if {o}.log else {x}; np.mean({l}); {x} / ({n} + 1); min({l}); {b}[0, 1]; float(f'{{{x}:.2f}}'); np.float32({x})
{k}.mean(); sum(v for v in {a} if v > 0); next((v for v in {a} if v > {x}), {x}); np.linalg.norm({a})
{x} if {x} > {a}[0] else {n} * 1.0; math.floor({x}) + 0.5; divmod({x}, 2)[1]; {a}.sum() / len({a})
""",
    "n": """
len({a}); int({a}.argmax()); {a}.size; {n} + 1; {n} % 3 + 1; int(({a} > 0).sum()); len({l}); {k}.max(); int({k}[0])
{b}.shape[1]; {o}.size; Model.made; {k}[-1] + 1; len({s}); {n} // 2; sum(1 for v in {a} if v > {x}); int({x} > 0) + 1
{n} * 2 if {x} > 0 else {n}; len(set({k}.tolist())); {d}['b']; ({a} > {x}).sum(); round({x}); {k}.argmin(); {a}.ndim
""",
    "l": """
[v * 2 for v in {l}]; list({a}); {a}.tolist(); [{x}, {n}]; sorted({l}); {l} + [{x}]; [i * {x} for i in range({n} % 5 + 1)]
list(map({g}, {l})); [{g}(v) for v in {a}]; {l}[::-1]; [{a}.sum(), {x}, 1]; list({l}); {l} * 2
[v for v in {a} if v > {x}] + [{x}]; [*{l}, *{k}]
""",
    "d": """
dict({d}); {{'a': {x}, 'b': {n}}}; {{**{d}, 'c': {x}}}; {{'b': {n}, 'a': {a}.sum()}}; dict(zip('ab', [{x}, {n}]))
{{key: v * 2 for key, v in {d}.items()}}
""",
    "s": """
{s} + 'c'; f'{{{x}:.2f}}'; str({n}); '-'.join(f'{{v:.1f}}' for v in {l}); {s} * 2; '%d %s' % ({n}, {s})
{s}.upper() if {x} > 0 else {s}[:2]; str({k}); str({a}.round(2))
""",
    "o": """
Model({a}[:2]); Model({l}[:2]); {o}; Model([{x}, {n}]).step({a})
""",
}
CHANGES = """
{a} += {x}; {a}[0] = {x}; {a}[{a} > {x}] = 0.0; {a}[::2] *= 2; {l}.append({x}); {l}.append({a}[0]); {l}[0] = {x}; {d}['a'] = {x}
{d}['a'] += 1; {d}['b'] = {n}; {o}.step({a}); {o}.w[0] = {x}; {o}.w = {a} * 0.5; {n} += 1; {x} *= 0.5; np.add({a}, 1, out={a})
{a}.sort(); {a}.fill({x}); {b}[0] = {x}; {b} *= 2; {b}.T[0] += 1; {k}[0] = {n}; {k} += 1; {o}.shift({x}); {o}.log.append({n})
{a}[-1] -= {x}; {a}, {a} = {a}, {a} + 1; {l}.extend([{n}, {x}]); {l}.insert(0, {x}); {a}[1:] = {a}[:-1].copy(); {b}[:, 0] = {x}
del {l}[1:2]; Model.made += 1; {o}.step(v={a}, rate=0.5).shift(1); {d}.update(a={x}); {x} = {x}; {a}[:] = np.sort({a})[::-1]
{b}[1] = {b}[0]; {l}.sort(); {l}.reverse(); {a}[{n} % len({a})] = {n}; {x}, {n} = {x} + 1, {n} + 2; {a}[[0, -1]] = {x}
{l} += [{x}]; {d}.setdefault('a', {x}); np.copyto({a}, {x}); {a}.flat[0] = {x}; {a}[...] = {a} * 2
"""
BLOCKS = """
for i in range({n} % 5):
    CHANGE
===
for v in {a}:
    {x} = {x} + v
===
for i, v in enumerate({a}):
    if v > {x}:
        CHANGE
    else:
        {l}.append(i)
===
for i in range(4):
    {a}[i % len({a})] += i * {x}
===
while abs({x}) > 1:
    {x} = {x} / 2
    CHANGE
===
if {x} > {a}.mean():
    CHANGE
else:
    CHANGE
===
try:
    {a}[99]
    CHANGE
except IndexError as error:
    told = str(error)
finally:
    CHANGE
===
try:
    CHANGE
    raise ValueError({s})
except ValueError as error:
    told = repr(error)
===
with np.errstate(all='ignore'):
    {x} = float(np.log(np.abs({a})).sum())
===
for row in {b}:
    if row.sum() > {x}:
        break
    {l}.append(row.sum())
===
total = 0
for v in {l}:
    if v < 0:
        continue
    total += v
===
if (m := {a}.max()) > {x}:
    {d}['a'] = m
===
best, where = None, -1
for i, v in enumerate({a}):
    if best is None or v < best:
        best, where = v, i
===
counts = {{}}
for v in {k}:
    counts[int(v)] = counts.get(int(v), 0) + 1
===
match {n}:
    case 1 | 2:
        CHANGE
    case _:
        CHANGE
===
assert {n} > -100, 'never'
===
def change(v):
    global {x}
    {x} = v
    CHANGE
change({x})
""".strip().split("\n===\n")
MAKERS = {
    "f": """
def NEW(v):
    return v * {x} + {n}
===
NEW = lambda v: {f}(v) - 1
===
def NEW(v):
    out = v.copy()
    out[0] = {x}
    return out
===
def NEW(v, *, scale={x}):
    def inner(u):
        return u * scale
    return inner(v) + {a}.mean()
===
def NEW(v):
    w = v * 1
    for i in range(len(w)):
        if w[i] > {x}:
            w[i] = -w[i]
    return w
===
def NEW(v):
    {l}.append(len(v))
    return v
===
class NEWClass:
    def __init__(self, k): self.k = k
    def __call__(self, v): return v * self.k
NEW = NEWClass({x})
===
def double(function):
    return lambda v: function(function(v))
@double
def NEW(v):
    return v / 2 + {n}
""",
    "g": """
def NEW(v, k=2):
    return v / k if v > {x} else v + k
===
NEW = lambda v: v ** 2 + {n}
===
def NEW(v):
    if v < 0:
        return 0.0
    return min(v, {x})
===
def NEW(v, depth=3):
    return v if depth == 0 else NEW(v * 0.5 + 1, depth - 1)
===
def counter():
    n = 0
    def count(v):
        nonlocal n
        n += 1
        return v + n
    return count
NEW = counter()
===
def upto(n):
    for i in range(n):
        yield i
def NEW(v):
    return v + sum(upto(3))
""",
}
PRINTS = """
print({a}, {x}, {n}); print(f'{{{x}:.3f}} {{{n}}}'); print({l}, {d}); print({o}, {s}); print({b}.shape, {k}, ({x}, {n}))
print(*{a}, sep=' '); print([v for v in {l}][-1]); print({a} > {x}, {n} == 2); print(repr({x}), str({n}))
print({a}.dtype, {k}.dtype, isinstance({x}, float), isinstance({n}, int)); print('%.2f %d' % ({x}, {n})); print({n}, end=' ')
print(len({a}), sum({l})); print({d}.get('a'), 'b' in {d}); print({f}({a})); print({g}({x}))
"""
ENDS = """
{a}; {x} + 1; ({n}, {x}); {a}[1:]; {l}; {o}; {d}; {s}; {a} * 2; {b}.T; {f}({a}); {g}({x}); {a}.sum() > {x}; None; [{x}, {n}]
{k}.tolist(); {a}.mean()
"""
FAILS = """
{a}[99]; missing + 1; 1 / 0; {a} + np.ones(17); raise ValueError({s}); assert {a}.sum() < -1e9, 'too large'; {d}['zz']; int('x')
{a}.nothing; {l}[77]; np.linalg.inv(np.ones(3)) @ {b}; {o}.step(); {g}(); np.reshape({a}, (7, 11))
"""
PLACE = re.compile(r"\{([a-z])\}")


class Drawn:
    """A chain that grows by cells."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.names = {kind: list(names) for kind, names in FIRST.items()}
        self.count = 2

    def filled(self, text: str) -> str:
        """A text with names in its places; of two names that one statement binds, no two are one."""
        found = PLACE.sub(lambda m: self.draw.choice(self.names[m[1]][-4:]), text)
        return found.replace("{{", "{").replace("}}", "}")

    def one(self, texts: str) -> str:
        """One of several texts."""
        return self.filled(self.draw.choice([t.strip() for t in re.split("[;\n]", texts) if t.strip()]))

    def change(self, but: str = "") -> str:
        """A statement of one line that changes something, ``but`` no number of that name."""
        while True:
            text = self.one(CHANGES)
            left, _, right = text.partition(" = ")
            parts = left.split(", ")
            if (not right or len(set(parts)) == len(parts)) and but not in re.findall(r"\w+", text.partition("=")[0]):
                return text

    def block(self, text: str) -> str:
        """A statement of several lines; a loop ends: the number that it halves is the one it looks at, and is not changed otherwise."""
        name = self.filled("{x}") if "while" in text else ""
        filled = self.filled(text.replace("{x}", name) if name else text)
        return "\n".join(line.replace("CHANGE", self.change(but=name)) for line in filled.splitlines())

    def statement(self) -> str:
        """Anything but an end."""
        r = self.draw.random()
        if r < 0.4:
            kind = self.draw.choices(list(VALUES), [8, 3, 2, 6, 4, 4, 2, 2, 1])[0]
            known = self.names[kind]
            name = self.draw.choice(known) if self.draw.random() < 0.3 else f"{kind}{self.count}"
            text = f"{name} = {self.one(VALUES[kind])}"
            self._know(kind, name)
            return text
        if r < 0.65:
            return self.change()
        if r < 0.8:
            return self.block(self.draw.choice(BLOCKS))
        if r < 0.9:
            return self.one(PRINTS)
        kind = self.draw.choice("fg")
        name = self.draw.choice(self.names[kind]) if self.draw.random() < 0.3 else f"{kind}{self.count}"
        text = self.filled(
            self.draw.choice(MAKERS[kind].strip().split("\n===\n"))
            .replace("NEW", name)
            .replace(f"{{{kind}}}", FIRST[kind][0])
        )
        self._know(kind, name)
        return text

    def _know(self, kind: str, name: str) -> None:
        self.count += 1
        if name not in self.names[kind]:
            self.names[kind].append(name)

    def cell(self) -> str:
        """Lines; sometimes the first one fails, sometimes the last one is a value."""
        before = {kind: list(names) for kind, names in self.names.items()}
        lines = [self.statement() for _ in range(self.draw.randint(1, 5))]
        if self.draw.random() < 0.08:
            self.names = before  # nothing that it binds is there
            return "\n".join([self.one(FAILS), *lines])
        return "\n".join([*lines, self.one(ENDS)] if self.draw.random() < 0.5 else lines)


def program(seed: int) -> list[tuple[bool, str]]:
    """Cells, each with whether it is captured."""
    drawn = Drawn(seed)
    return [(False, START), *((drawn.draw.random() < 0.65, drawn.cell()) for _ in range(drawn.draw.randint(3, 6)))]
