"""Drawn programs over which object a result is: rows, views, entries of containers, arguments, what branches and loops leave."""

from __future__ import annotations

import random


class Draw:
    """One program."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines = ["    found = []"]
        self.matrices, self.rows, self.containers = ["a", "b"], list[str](), list[str]()
        self.count = self.loops = 0

    def name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def one(self, *several: str) -> str:
        return self.random.choice(several)

    def condition(self) -> str:
        return self.one("s.sum() > 0", "s[0] > s[1]", "a[0, 0] > 1", "b.sum() > s[2]", "np.argmax(s) > 0")

    def index(self) -> str:
        return self.one("np.argmax(s)", "np.argmin(s)", "0", "-1", "int(s[2] > 0)", "i % 3" if self.loops else "1")

    def row(self) -> str:
        m, i = self.one(*self.matrices), self.index()
        own = self.one(*self.rows) if self.rows else f"{m}[{i}]"
        return self.one(
            f"{m}[{i}]", f"{m}[:, {i}]", f"{m}[{i}] * 2", f"{m}[{i}, ::-1]", own, f"np.diag({m})", f"{m}.T[{i}]"
        )

    def matrix(self) -> str:
        m = self.one(*self.matrices)
        either = f"({m} if {self.condition()} else {self.one(*self.matrices)})"
        return self.one(m, f"{m}.T", f"{m} + 1", f"{m}[::-1]", f"{m}.copy()", either, f"np.where({m} > 0, {m}, 0.5)")

    def value(self) -> str:
        return self.row() if self.random.random() < 0.5 else self.matrix()

    def statement(self, depth: int) -> None:
        kinds = [self._row, self._matrix, self._store, self._container, self._append, self._scores, self._exchange]
        kinds += [self._branch, self._loop] if depth < 2 else []
        self.random.choice(kinds)(depth)

    def add(self, depth: int, line: str) -> None:
        self.lines.append("    " * (depth + 1) + line)

    def _row(self, depth: int) -> None:
        known = self.rows and self.random.random() < 0.4
        name, value = self.one(*self.rows) if known else self.name("r"), self.row()
        self.add(depth, f"{name} = {value}")
        if depth == 0 and not known:
            self.rows.append(name)

    def _matrix(self, depth: int) -> None:
        name, value = self.name("m"), self.matrix()
        self.add(depth, f"{name} = {value}")
        if depth == 0:
            self.matrices.append(name)

    def _store(self, depth: int) -> None:
        self.add(depth, self.one(f"{self.one(*self.matrices)}[{self.index()}] += 1.5", "s[0] = s[2]", "s[1] = a[0, 1]"))

    def _container(self, depth: int) -> None:
        name, v, w = self.name("c"), self.value(), self.value()
        self.add(depth, f"{name} = " + self.one(f"[{v}, {w}]", f"{{'p': {v}, 'q': {w}}}", f"({v}, {w})"))
        if depth == 0:
            self.containers.append(name)

    def _append(self, depth: int) -> None:
        self.add(depth, f"found.append({self.one(self.row(), 's', 's * 2', 's[0]')})")

    def _scores(self, depth: int) -> None:
        self.add(depth, f"s = {self.one('s * 2', 's[::-1]', 's.copy()')}")

    def _exchange(self, depth: int) -> None:
        first, second = self.one(*self.matrices), self.one(*self.matrices)
        self.add(depth, f"{first}, {second} = {second}, {first}" if first != second else f"{first} = {first} - 1")

    def _branch(self, depth: int) -> None:
        self.add(depth, f"if {self.condition()}:")
        self.statement(depth + 1)
        if self.random.random() < 0.5:
            self.add(depth, "else:")
            self.statement(depth + 1)

    def _loop(self, depth: int) -> None:
        self.add(depth, f"for i in range({self.one('3', 'len(s)', 'int(abs(s[1])) % 4 + 1', '70')}):")
        self.loops += 1
        self.statement(depth + 1)
        self.statement(depth + 1)
        self.loops -= 1

    def text(self) -> str:
        for _ in range(self.random.randrange(3, 8)):
            self.statement(0)
        own = [*self.rows, *self.containers, "found", "s", *self.matrices]
        results = [self.one(self.row(), *own) for _ in range(self.random.randrange(1, 4))]
        form = self.one("{}", "[{}]", "{{'z': [{}]}}")
        return "\n".join(["def f(a, b, s):", *self.lines, f"    return {form.format(', '.join(results))}", ""])


def program(seed: int) -> str:
    """The text of a function of two matrices and three scores."""
    return Draw(seed).text()
