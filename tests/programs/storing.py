"""Random programs that store: through views in helpers, in loops with ``break``, in ``while``; names are bound anew on the way."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.programs.growing import INDENT, Program

HELPERS = """
def h_shift(a, d):
    a[1:] = d
    return a

def h_back(a, d):
    b = a[::-1]
    b[:2] += d
    return b

def h_until(a, t):
    for q in range(len(a)):
        if a[q] > t:
            a[q] = t
            break
    return a

def h_or(a, b, t):
    if t > 0.0:
        a = b
    a[-1] -= 0.25
    return a

def h_new(a, t):
    if t > 0.0:
        a = np.cos(a)
    return a

def h_while(a, t):
    q = 0
    while q < len(a):
        if a[q] > t:
            a[q:] *= 0.5
            break
        q += 1
    return q

def h_rows(a, d):
    for r in a:
        r[::-1][1:] += d

def h_many(a, t):
    a, b = a[1:], a[:-1]
    a *= 0.5
    b += t
    return b[0]
"""

# Whole vectors of the names {v}, {w}; those of VIEWS share memory.
VIEWS = [
    "{v}",
    "{v}",
    "{v}[::-1]",
    "{v}[...]",
    "{v}[:]",
    "{v}.reshape(-1)",
    "{v}.reshape(-1, 1)[:, 0]",
    "{v}[None][0]",
    "{v}[:, None].T[0]",
    "{v}.real",
    "{v}.T",
    "{v}.view()",
    "{v}.ravel()",
    "np.asarray({v})",
    "np.flip({v})",
    "np.squeeze({v}[None])",
    "np.atleast_2d({v})[0]",
    "z[0]",
    "z[-1]",
    "z[:, 1]",
    "z.T[0]",
    "z[1, ::-1]",
    "z[::-1, 0]",
    "np.swapaxes(z, 0, 1)[1]",
    "z.reshape(-1)[:n]",
    "c.real",
    "c.imag[::-1]",
    "h_shift({v}, 0.5)",
    "h_back({v}, 0.5)",
    "h_until({v}, s)",
    "h_or({v}, {w}, s)",
    "h_or({v}, {w}[::-1], {w}[0])",
    "h_new({v}, s)",
    "({v} if s > 0.0 else {w})",
    "({v} if {w}[0] > 0.25 else {v}[::-1])",
    "({v}, {w})[0]",
    "[{v}, {w}][-1]",
    "h_new({v}[::-1], {w}[1])",
]
COPIES = [
    "np.tanh({v})",
    "{v} * 0.5",
    "{v} + {w}",
    "{v} - np.sin({w})",
    "{v}.copy()",
    "{v}[[k for k in range(n)]]",
    "{v}[order]",
    "np.where({w} > 0.25, {v}, {w})",
    "np.array([q * 0.5 for q in {v}])",
    "np.concatenate([{v}[1:], {w}[:1]])",
    "z @ {v}",
    "np.cumsum({v}) * 0.25",
    "np.zeros(n) + {v}[0]",
    "np.roll({v}, 1)",
    "{v} * {w}.mean()",
    "z.sum(axis=0)",
]
# Parts of a vector: never empty.
PARTS = [
    "{v}",
    "{v}[::-1]",
    "{v}[1:]",
    "{v}[:-1]",
    "{v}[::2]",
    "{v}[1::2]",
    "{v}[::-1][1:]",
    "{v}[1:][::-1]",
    "{v}[:, None][1:, 0]",
    "{v}[None, 1:][0]",
    "{v}.reshape(1, -1)[0, 1:]",
    "{v}.reshape(-1, 1).T[0][::-1]",
    "{v}.real[1:]",
    "{v}.T[:1]",
    "{v}[...][1:]",
    "{v}.view()[:2]",
    "{v}.ravel()[1:]",
    "np.flip({v})[:1]",
    "{v}[1:2]",
    "{v}[k[1]:]",
]
STORES = [
    "{p}[...] = 0.0",
    "{p}[:] = {n}",
    "{p}[0] = {n}",
    "{p}[-1] += {n}",
    "{v}[::-1][1:] = {n}",
    "{v}[::-1][:-1] = {w}[1:]",
    "{v}[1:] = {w}[:-1]",
    "{v}[1:] = {v}[:-1]",
    "{v}[::-1][...] += {w}",
    "{v}[:] = {w}",
    "{v} += {n}",
    "{v} *= 0.5",
    "{v} -= {w}",
    "{v}[[0, 1]] = {n}",
    "{v}[::-1][[0, 1]] = {n}",
    "{v}[order] = {w}",
    "{v}[order[:2]] += {w}[:2]",
    "{v}[{v} > {n}] = 0.5",
    "{v}[::-1][{w} > {n}] = 0.5",
    "{v}[mask] = {w}[mask]",
    "{v}[mask] += 1.0",
    "{v}[{i}] += 1.0",
    "{v}[{i}] = {w}[-{i} - 1]",
    "{v}[::-1][{i}:] = {n}",
    "{v}[k[1]] = {n}",
    "{v}.fill({n})",
    "{p}.fill({n})",
    "{v}.sort()",
    "{v}[::-1].sort()",
    "{v}[:2].sort()",
    "np.copyto({v}, {w})",
    "np.copyto({p}, {n})",
    "np.copyto({v}[::-1], {w}, where=mask)",
    "np.put({v}, [0, 1], {n})",
    "{v}.put([1], {n})",
    "np.put({v}[::-1], order[:2], {w}[:2])",
    "np.place({v}, mask, [0.25, {n}])",
    "np.putmask({v}, {w} > {n}, {w})",
    "np.putmask({v}[::-1], mask, 0.0)",
    "np.add({v}, {w}, out={v})",
    "np.multiply({v}, 0.5, out={v}[::-1])",
    "np.sin({w}, out={v})",
    "np.sin({w}[1:], out={v}[::-1][1:])",
    "np.maximum({v}, {n}, out={v}, where=mask)",
    "np.cumsum({w}, out={v})",
    "np.add.at({v}, [0, 0, 1], {n})",
    "np.add.at({v}[::-1], order, {w})",
    "np.subtract.at({v}, order[:1], {n})",
    "np.multiply.at({v}, 1, {n})",
    "{v}.flat = {n}",
    "{v}.flat[1:] = {n}",
    "{v}[None][0, 1:] = {n}",
    "{v}[:, None][1:] = {n}",
    "{v}[:, None][...] = {w}[:, None]",
    "{v}.reshape(-1, 1)[1:] += {n}",
    "{v}.real[1:] = {n}",
    "{v}.real = {w}",
    "{v}[0], {v}[-1] = {v}[-1], {v}[0]",
    "{v}[:], {w}[:] = {w} * 0.5, {v} * 0.5",
    "np.fill_diagonal(z, {v})",
    "np.fill_diagonal(z.T, {n})",
    "z[0] = {v}",
    "z[::-1, 1] = {v}",
    "z.T[1:, 0] = {n}",
    "z.T[0] += {v}",
    "z[mask] = {v}",
    "z[order, order] = {v}",
    "z[:, mask] *= 0.5",
    "z += {v}",
    "z.reshape(-1)[::2] = {n}",
    "z[z > {n}] = 0.5",
    "np.add.at(z, (order, order), {v})",
    "h_rows(z, {n})",
    "h_rows(z.T, {v}[0])",
    "c.real[1:] = {n}",
    "c.imag = {v}",
    "c[::-1].imag[1:] += {v}[1:]",
    "c += {v}",
    "c[1:] *= 1j",
    "h_shift({p}, {n})",
    "h_shift({v}[::-1], {n})",
    "h_back({v}, {n})",
    "h_until({v}, {n})",
    "h_until({v}[::-1], {n})",
    "h_or({v}, {w}, {n})[1:] = 0.5",
    "h_while({v}, {n})",
    "h_while({v}[::-1], {w}[0])",
    "h_many({v}, {n})",
    "[h_shift({v}[q:], 0.25) for q in range(2)]",
    "[h_until({p}, {n}) for p in ({v}, {w})]",
    "for p in ({v}, {w}): p[1:] -= {n}",
    "for r in z: r[:1] = {n}",
    "t = {v}; t[::-1][1:] = {n}",
    "t = {v}[::-1]; t += {n}; t[1:] = 0.5",
]
NUMBERS = ["0.25", "0.5", "-0.5", "1.0", "s", "s * 0.5", "{w}[0]", "{w}[-1]", "{w}.mean()", "z[0, 1]", "c.real[0]"]
TESTS = [
    "s > 0.0",
    "s > 0.0",
    "s > s",
    "s < 1.0",
    "{v}[0] > 0.3",
    "{v}[-1] > {w}[0]",
    "{v}.sum() > {n}",
    "np.any({v} > {n})",
    "z[0, 0] > {v}[1]",
    "k[1] > 0",
    "flag",
    "not (s > 0.0 and {v}[0] > 0.0)",
    "{n} > 0.0",
]
INDEX_TESTS = ["{i} == 1", "{i} > 0", "{v}[{i}] > {n}", "{i} == k[1]"]
LOOPS = [
    "for {i} in range(2):",
    "for {i} in range(n):",
    "for {i} in range(k[1] + 1):",
    "for {i}, r in enumerate({v}):",
    "for {i} in range(n - 1, -1, -1):",
]


def arguments(seed: int, variant: int = 0) -> dict[str, Any]:
    """Arrays and numbers that a program begins with, in another variant other sizes and values."""
    draw = np.random.default_rng([seed, variant])
    n = int(draw.choice([2, 3, 4, 5])) if variant else 4
    return {
        "x": draw.normal(size=n),
        "y": draw.normal(size=n),
        "z": draw.normal(size=(n, n)),
        "c": draw.normal(size=n) + 1j * draw.normal(size=n),
        "s": float(draw.normal()),
        "n": n,
        "k": draw.permutation(n),
        "order": draw.permutation(n),
        "mask": draw.random(n) > 0.5,
        "flag": bool(draw.random() > 0.5),
    }


def storing(seed: int) -> Program:
    """The program of a seed: all of its arrays of one axis have ``n`` elements, so that it runs."""
    made = _Drawing(seed)
    body = [line for _ in range(made.draw.randint(2, 6)) for line in made.statement(3)]
    return Program(seed, body, HELPERS, [*made.known, "z", "c"])


class _Drawing:
    """One program while it is drawn."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.known = ["x", "y"]
        self.counters: list[str] = []
        self.count = 0
        self.loops = 0

    def statement(self, depth: int) -> list[str]:
        """A statement, with blocks ``depth`` deep."""
        kinds: list[tuple[float, Callable[[int], list[str]]]] = [
            (0.34, lambda _: [self.filled(STORES)]),
            (0.24, self.bind),
            (0.24, self.branch),
            (0.12, self.loop),
            (0.05, self.whiles),
            (0.01, self.tries),
        ]
        makes = [make for _, make in kinds]
        make = self.draw.choices(makes, [w for w, _ in kinds])[0]
        return make(depth) if depth else self.draw.choice(makes[:2])(0)

    def bind(self, _depth: int) -> list[str]:
        """A name that is bound anew, or a new one."""
        name = self.draw.choice(self.known)
        new = self.draw.random() < 0.3 and not self.loops and not self.counters
        text = self.filled(self.draw.choice([VIEWS, VIEWS, COPIES]))
        if new:
            name = f"v{len(self.known)}"
            self.known.append(name)
        return [f"{name} = {text}"]

    def branch(self, depth: int) -> list[str]:
        """An ``if``, half of them with ``else``."""
        found = [f"if {self.test()}:", *self.block(depth)]
        kind = self.draw.random()
        if kind < 0.15:
            return [found[0], INDENT + "pass", "else:", *found[1:]]
        if kind < 0.25:
            return [*found, f"elif {self.test()}:", *self.block(depth)]
        return [*found, "else:", *self.block(depth)] if kind < 0.6 else found

    def loop(self, depth: int) -> list[str]:
        """A ``for``, some with a ``break``, a ``continue`` or an ``else``."""
        i = f"i{len(self.counters)}"
        header = self.filled(LOOPS, i)
        self.counters.append(i)
        self.loops += 1
        body = self.block(depth)
        if self.draw.random() < 0.5:
            self.jump(body)
        self.counters.pop()
        self.loops -= 1
        found = [header, *body]
        return [*found, "else:", *self.block(depth)] if self.draw.random() < 0.1 else found

    def jump(self, body: list[str]) -> None:
        """A ``break`` or a ``continue`` between the statements of a loop."""
        inside = (INDENT * 2, *(INDENT + word for word in ("else", "elif", "except", "finally")))
        at = self.draw.randint(0, len(body))
        while at < len(body) and body[at].startswith(inside):
            at += 1
        stores = [INDENT * 2 + self.filled(STORES)] if self.draw.random() < 0.3 else []
        word = self.draw.choice(["break", "break", "continue"])
        body[at:at] = [f"{INDENT}if {self.test()}:", *stores, f"{INDENT * 2}{word}"]

    def whiles(self, depth: int) -> list[str]:
        """A ``while`` that ends."""
        i = f"j{len(self.counters)}"
        test = self.test()
        self.counters.append(i)
        self.loops += 1
        body = self.block(depth)
        self.counters.pop()
        self.loops -= 1
        if self.draw.random() < 0.5:
            return [f"{i} = 0", f"while {i} < n:", *body, f"{INDENT}{i} += 1"]
        return [
            f"{i} = 0",
            f"while {test}:",
            *body,
            f"{INDENT}{i} += 1",
            f"{INDENT}if {i} >= n - 1:",
            f"{INDENT * 2}break",
        ]

    def tries(self, depth: int) -> list[str]:
        """A ``try`` around statements."""
        ending = self.draw.choice([["except ValueError:", INDENT + "pass"], ["finally:", INDENT + self.filled(STORES)]])
        return ["try:", *self.block(depth), *ending]

    def block(self, depth: int) -> list[str]:
        """The statements of a block."""
        known = list(self.known)
        found = [line for _ in range(self.draw.choice([1, 1, 2, 3])) for line in self.statement(depth - 1)]
        self.known = known
        return [INDENT + line for line in found]

    def test(self) -> str:
        """The condition of a branch."""
        return self.filled([*TESTS, *INDEX_TESTS] if self.counters else TESTS)

    def filled(self, texts: list[str], i: str = "") -> str:
        """One of several texts, with names."""
        v, w = (self.draw.choice(self.known) for _ in range(2))
        i = i or (self.draw.choice(self.counters) if self.counters else "1")
        number = self.draw.choice(NUMBERS).format(w=self.draw.choice(self.known))
        part = self.draw.choice(PARTS).format(v=v)
        return self.draw.choice(texts).format(v=v, w=w, n=number, p=part, i=i)
