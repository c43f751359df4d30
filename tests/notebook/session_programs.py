"""Sessions as students write them, drawn from pieces whose names collide: run again, out of order, with tables, plots, ``_``, ``Out``.

A captured cell that fails ends what is compared, unless it fails at its first line: it changes nothing, a plain one does what stands
above.
"""

from __future__ import annotations

import random

from tests.notebook.session_pieces import PIECES

START = """
import math, json, copy, pickle, itertools, functools, collections
import numpy as np
import pandas as pd
import matplotlib
matplotlib.use('agg')
import matplotlib.pyplot as plt
np.random.seed(0)
from collections import defaultdict, Counter, namedtuple, deque
from dataclasses import dataclass, field
rng = np.random.default_rng(7)
x = np.linspace(-1.0, 2.0, 7)
y = 3 * x - 1 + np.array([0.1, -0.2, 0.05, 0.0, 0.3, -0.1, 0.02])
M = np.arange(12.0).reshape(3, 4) - 4
k = np.array([2, 0, 1, 2, 1, 1])
w, b, lr = 0.5, 0.25, 0.1
n = 3
hist = []
params = {'w': 1.5, 'b': np.zeros(2)}
df = pd.DataFrame({'a': [1.0, 2.0, 3.5, -1.0], 'g': list('uvuv'), 'c': [4, 3, 2, 1]})
s = pd.Series([1.0, -2.0, 0.5])
v = x[2:]
z = 2.0
loss = 1.0
Point = namedtuple('Point', 'p q')
@dataclass
class Run:
    name: str
    best: float = math.inf
    log: list = field(default_factory=list)
    def add(self, value):
        self.log.append(value)
        if value < self.best:
            self.best = value
        return self
run = Run('one')
class Net:
    count = 0
    def __init__(self, size, scale=0.1):
        self.W = np.ones(size) * scale
        self.cache = {}
        Net.count += 1
    def forward(self, u):
        self.cache['u'] = u
        self.out = np.tanh(u.sum() * self.W)
        return self.out
    def step(self, rate):
        self.W -= rate * self.out
        return self
    @property
    def norm(self): return np.sqrt((self.W ** 2).sum())
    @staticmethod
    def relu(u): return np.maximum(u, 0)
    @classmethod
    def tiny(cls): return cls(2, 0.5)
    def __len__(self): return len(self.W)
    def __getitem__(self, i): return self.W[i]
net = Net(3)
def f(u): return u ** 2 - 1
def mse(p, q): return np.mean((p - q) ** 2)
def bump(a, by=1.0):
    a += by
    return a
"""
OPTIONS = ("", "", "", " --show none", " --math exact")
PROBES = """
x[0] = 77.0
M[0] = 55.0
y[-1] = 33.0
===
for _q in (hist if 'hist' in globals() else []), params.values():
    for _p in _q:
        if isinstance(_p, np.ndarray): _p += 100
===
net.W += 10
if 'v' in globals() and len(v): v[0] = 11.0
===
if 'u' in globals() and isinstance(u, np.ndarray): u[0] = 12.0
===
if 'L' in globals() and np.ndim(L[0]): L[0][0] = 13.0
===
held = {n: globals()[n] for n in ('x', 'y', 'v', 'u', 'M', 'hist', 'h1', 'params', 'old', 'run', 'net', 'L') if n in globals()}
[(p, q) for p in held for q in held if held[p] is held[q]]
""".strip().split("\n===\n")


def program(seed: int) -> list[tuple[str | None, str]]:
    """Cells, each with the magic's options, or None where it is plain; the last ones store into what names and containers hold."""
    draw = random.Random(seed)
    share = draw.choice([0.4, 0.6, 1.0])
    cells: list[tuple[str | None, str]] = [(None, START)]
    texts: list[str] = []
    for _ in range(draw.randint(6, 15)):
        if texts and draw.random() < 0.15:
            text = draw.choice(texts)  # run again
        else:
            text = "\n".join(draw.choice(PIECES) for _ in range(draw.choice([1, 1, 1, 2, 3])))
            texts.append(text)
        cells.append((draw.choice(OPTIONS) if draw.random() < share else None, text))
    return [*cells, *((None, text) for text in PROBES)]
