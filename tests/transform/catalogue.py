"""The rewrites that the field knows, by number: NumPy text, what it has to become, and the level at which it may.

``A``, ``B``, ``C`` are square matrices and ``P`` one that is positive definite, ``V`` one with more columns, ``x``, ``y``, ``z``
vectors, ``s`` and ``t`` numbers between 0.2 and 2. Where ``after`` is given, both texts have one normal form. Otherwise the
ops in ``gone`` are in the text as captured and not in its normal form, and those in ``made`` are in the normal form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from scipy import special

import tensormagic as tm
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, topological
from tensormagic.transform.rewriting import Rewritten, rewrite

NAMES = ("A", "B", "C", "P", "V", "x", "y", "z", "s", "t")
SIZE = 5


@dataclass(frozen=True)
class Row:
    """One rewrite.

    Parameters
    ----------
    text
        What users write.
    after
        Another text of the same normal form.
    level
        The level at which the rewrite holds.
    gone, made
        Ops, by name, that go and that come.
    stays
        Whether the rewrite is wrong, and the text has to stay as it is.
    caught
        Whether capture gives the form at once, without a rule.
    """

    text: str
    after: str = ""
    level: str = "stable"
    gone: str = ""
    made: str = ""
    stays: bool = False
    caught: bool = False


def values() -> list[Any]:
    """A value for each name."""
    draw = np.random.default_rng(5)
    A, B, C = (draw.uniform(0.2, 2, (SIZE, SIZE)) + 4 * np.eye(SIZE) for _ in range(3))
    V = draw.uniform(0.2, 2, (SIZE, SIZE + 1))
    x, y, z = (draw.uniform(0.2, 0.9, SIZE) for _ in range(3))
    return [A, B, C, A @ A.T, V, x, y, z, np.float64(0.7), np.float64(1.3)]


def stored(x: Any, *pairs: Any) -> Any:
    """A copy with values stored at places."""
    x = x.copy()
    for at, value in zip(pairs[::2], pairs[1::2], strict=True):
        x[at] = value
    return x


def added(x: Any, *pairs: Any) -> Any:
    """A copy with values added at places."""
    x = x.copy()
    for at, value in zip(pairs[::2], pairs[1::2], strict=True):
        x[at] += value
    return x


def sigmoid(x: Any) -> Any:
    """The logistic function, as text."""
    return 1 / (1 + np.exp(-x))


def softplus(x: Any) -> Any:
    """The integral of it."""
    return np.log(1 + np.exp(x))


def together(A: Any, B: Any, C: Any, P: Any, V: Any, x: Any, y: Any, z: Any, s: Any, t: Any) -> Any:
    """Something that all names are in, so that equal sizes are one in every text."""
    matrices = np.logaddexp2(np.logaddexp2(A, A.T), np.logaddexp2(B, np.logaddexp2(C, P)))
    return np.logaddexp2(matrices[0], np.logaddexp2(x, np.logaddexp2(np.logaddexp2(y, z), V[:, 0]))) + s * t


SPACE = {
    "np": np,
    "sla": scipy.linalg,
    "special": special,
    "tm": tm,
    "stored": stored,
    "added": added,
    "together": together,
    "sigmoid": sigmoid,
    "softplus": softplus,
}


def function(text: str) -> Callable[..., Any]:
    """The text as a function of all names; the names of a loop's program are those of :data:`LOOPS`."""
    if text in LOOPS:
        return LOOPS[text]
    return eval(f"lambda {', '.join(NAMES)}: {text}", dict(SPACE))


def traced(text: str) -> Graph:
    """The text as it is captured, and what says that sizes are equal."""
    if text in LOOPS:
        return tm.trace(LOOPS[text], *values())
    names = ", ".join(NAMES)
    return tm.trace(eval(f"lambda {names}: ({text}, together({names}))", dict(SPACE)), *values())


@lru_cache(maxsize=1024)
def normal(text: str, level: str) -> Rewritten:
    """The text as it is rewritten."""
    return rewrite(traced(text), level)


def every(results: Sequence[Node]) -> list[str]:
    """The names of ops, those in regions as well."""
    found: list[str] = []
    stack = [results]
    while stack:
        for node in topological(stack.pop()):
            found.append(node.op.name)
            stack += [v.results for v in node.params.values() if isinstance(v, Graph)]
    return found


def fires(row: Row) -> bool:
    """Whether the rewrite is made."""
    before, after = traced(row.text), normal(row.text, row.level).graph
    if row.stays:
        return before.results[0] is after.results[0]
    if row.after:
        new = after.results[0]
        return new is normal(row.after, row.level).graph.results[0] and (row.caught or new is not before.results[0])
    ops, old = every(after.results[:1]), every(before.results[:1])
    counts = [(name.partition("*")) for name in row.gone.split()]
    less = all(old.count(n) > ops.count(n) and ops.count(n) <= int(most or 0) for n, _, most in counts)
    return less and all(n in ops for n in row.made.split())


def loop_invariant(A, B, C, P, V, x, y, z, s, t):
    for _ in range(5):
        x = np.tanh(x) * np.exp(y)
    return x


def only_sequences(A, B, C, P, V, x, y, z, s, t):
    found = np.zeros(5)
    for k in range(5):
        found[k] = np.exp(x[k]) * y[k]
    return found


def sums_of_products(A, B, C, P, V, x, y, z, s, t):
    total = np.zeros(5)
    for k in range(5):
        total = total + A[k] @ B
    return total


def last_step(A, B, C, P, V, x, y, z, s, t):
    states = np.zeros((6, 5))
    h = x
    for k in range(6):
        h = np.tanh(h * y)
        states[k] = h
    return states[-1]


def fewer_steps(A, B, C, P, V, x, y, z, s, t):
    states = np.zeros((6, 5))
    h = x
    for k in range(6):
        h = np.tanh(h * y)
        states[k] = h
    return states[2]


def two_loops(A, B, C, P, V, x, y, z, s, t):
    for k in range(5):
        s = np.tanh(s * x[k])
    for k in range(5):
        t = np.sin(t * x[k])
    return s + t


def two_loops_over_arrays(A, B, C, P, V, x, y, z, s, t):
    g, h = x, y
    for _ in range(6):
        g = np.tanh(g * z)
    for _ in range(6):
        h = np.sin(h * z)
    return g + h


def equal_states(A, B, C, P, V, x, y, z, s, t):
    g, h = x, x
    for _ in range(6):
        g, h = np.tanh(g * z), np.tanh(h * z)
    return g + h


def unread_state(A, B, C, P, V, x, y, z, s, t):
    g, h = x, x
    for _ in range(6):
        g, h = np.tanh(g * z), np.sin(h * z)
    return h


def both_branches(A, B, C, P, V, x, y, z, s, t):
    r = np.zeros(5) if s > 0 else np.ones(5)
    q = x if s > 0 else y
    return r + q


def joined_draws(A, B, C, P, V, x, y, z, s, t):
    rng = np.random.default_rng(0)
    rng.normal(size=5)
    return x + rng.normal(size=5)


LOOPS = {
    f.__name__: f
    for f in (
        *(
            loop_invariant,
            only_sequences,
            sums_of_products,
            last_step,
            fewer_steps,
            two_loops,
            two_loops_over_arrays,
            equal_states,
            unread_state,
        ),
        *(both_branches, joined_draws),
    )
}

ONE = "np.ones_like(x)"
NONE = "np.zeros_like(x)"
ROWS: dict[str, Row] = {
    "1": Row("x + 0", "x", "real"),
    "2": Row("x * 1", "x", "exact"),
    "3": Row("x * 0", NONE, "real"),
    "4": Row("x - x", NONE, "real"),
    "5": Row("x / x", ONE, "real"),
    "6": Row("x * y / x", "y", "real"),
    "7": Row("(x + y) - x", "y", "real"),
    "8": Row("0 / x", NONE, "real"),
    "9": Row("-(-x)", "x", "exact"),
    "10": Row("x - (-y)", "x + y", "exact"),
    "11": Row("-x + y", "y - x", "exact"),
    "12": Row("x / 1", "x", "exact"),
    "13": Row("1 / (1 / x)", "x"),
    "14": Row("x / 2", "x * 0.5", "exact"),
    "15": Row("x / 3", "x * (1 / 3)", "real"),
    "16": Row("2 * (3 * x)", "x * 6", "real"),
    "17": Row("(x + 1) + 2", "x + 3", "real"),
    "18": Row("x + x", "x * 2", "real"),
    "19": Row("np.power(x, 2)", "np.square(x)", "exact"),
    "20": Row("x ** 0", ONE, "exact"),
    "21": Row("x ** 1", "x", "exact"),
    "22": Row("np.power(x, 0.5)", "np.sqrt(x)", "real"),
    "23": Row("np.power(x, -1)", "1 / x"),
    "24": Row("x ** 3", "x * np.square(x)", "real"),
    "25": Row("x ** 8", "np.square(np.square(np.square(x)))", "real"),
    "26": Row("1 ** x", ONE, "exact"),
    "27": Row("s * x + s * y", "s * (x + y)", "real"),
    "28": Row("(s / x + t / y) * x * y", "s * y + t * x", "real"),
    "29": Row("x / np.abs(x)", "np.sign(x)", "real"),
    "30": Row("np.abs(np.abs(x))", "np.abs(x)", "exact"),
    "31": Row("np.abs(-x)", "np.abs(x)", "exact"),
    "32": Row("np.sqrt(x**2)", "np.abs(x)"),
    "33": Row("np.sqrt(x) ** 2", "x", "real"),
    "34": Row("np.maximum(x, x)", "x", "exact"),
    "35": Row("x == x", level="real", stays=True),
    "36": Row("x != x", level="real", stays=True),
    "37": Row("np.where(x > y, x, x)", "x", "exact"),
    "38": Row("np.where(True, x, y)", "x", "exact"),
    "39": Row("np.where(x > y, x, z) + np.where(x > y, y, x)", "np.where(x > y, x + y, z + x)", "exact"),
    "40": Row("np.where(x > y, 0, x) * y", "np.where(x > y, 0, x * y)", "real"),
    "41": Row("-np.max(-x)", "np.min(x)"),
    "42": Row("np.exp(np.log(x))", "x", "real"),
    "43": Row("np.log(np.exp(x))", "x"),
    "44": Row("np.exp(x) * np.exp(y)", "np.exp(x + y)", "real"),
    "45": Row("np.exp(x) / np.exp(y)", "np.exp(x - y)", "real"),
    "46": Row("y / np.exp(x)", "y * np.exp(-x)", "real"),
    "47": Row("x**s * x**t", "x ** (s + t)", "real"),
    "48": Row("np.log(1 + x)", "np.log1p(x)"),
    "49": Row("np.log(1 - x)", "np.log1p(-x)"),
    "50": Row("np.exp(x) - 1", "np.expm1(x)"),
    "51": Row("1 - np.exp(x)", "-np.expm1(x)"),
    "52": Row("np.log1p(np.expm1(x))", "x"),
    "53": Row("np.log(np.sqrt(x))", "0.5 * np.log(x)"),
    "54": Row("np.log(1 / x)", "-np.log(x)", "real"),
    "55": Row("np.log(x * y)", "np.log(x) + np.log(y)", "real"),
    "56": Row("np.log(x**s)", "s * np.log(x)", "real"),
    "57": Row("np.log(x / 2)", "np.log(x) + np.log(0.5)", "real"),
    "58": Row("np.log(1 + np.exp(x))", "np.logaddexp(0, x)"),
    "59": Row("np.log(sigmoid(x))", "-np.logaddexp(0, -x)"),
    "60": Row("np.log(1 - sigmoid(x))", "-np.logaddexp(0, x)"),
    "61": Row("1 - special.expit(x)", "special.expit(-x)"),
    "62": Row("1 / (1 + np.exp(-x))", "special.expit(x)"),
    "63": Row("np.exp(x) / (1 + np.exp(x))", "special.expit(x)"),
    "64": Row("np.log(1 - np.exp(-x))", gone="log exp", made="log1mexp"),
    "65": Row("np.log(np.exp(x) + np.exp(y))", "np.logaddexp(x, y)"),
    "66": Row("np.log(np.sum(np.exp(x)))", "special.logsumexp(x)"),
    "67": Row("np.log(special.softmax(x))", "special.log_softmax(x)"),
    "68": Row("np.exp(x) / np.sum(np.exp(x))", gone="exp sum divide", made="softmax"),
    "69": Row("1 - special.erf(x)", "special.erfc(x)"),
    "70": Row("1 + special.erf(x)", "special.erfc(-x)"),
    "71": Row("np.log(np.prod(np.exp(x)))", "np.sum(x)", "real"),
    "72": Row("np.log(sigmoid(x) / (1 - sigmoid(x)))", "x"),
    "73": Row("np.log(1 + np.exp(np.log(x)))", "np.log1p(x)", "real"),
    "74": Row("np.sum(np.sum(A, 0))", "np.sum(A)"),
    "75": Row("np.max(np.max(A, 0))", "np.max(A)", "exact"),
    "76": Row("np.sum(-x)", "-np.sum(x)"),
    "77": Row("np.sum(s * x)", "np.sum(x) * s", "real"),
    "78": Row("np.sum(x / s)", "np.sum(x) / s", "real"),
    "79": Row("np.sum(np.full(7, s))", "s * 7"),
    "80": Row("np.sum(A[:1], 0)", "A[0] + 0.0"),
    "81": Row("np.sum(x[:, None] * y, 1)", "np.sum(y) * x", "real"),
    "82": Row("np.prod(np.exp(x))", "np.exp(np.sum(x))", "real"),
    "83": Row("A.T.T", "A", "exact"),
    "84": Row("V.reshape(6, 5).reshape(30)", "V.reshape(30)", "exact"),
    "85": Row("np.concatenate([x]) * y", "x * y", "exact", caught=True),
    "86": Row("np.concatenate([x[:2], x[2:]])", "x", "exact"),
    "87": Row("x[::-1][::-1]", "x", "exact"),
    "88": Row("x[1:][2:]", gone="slice*1", level="exact"),
    "89": Row("x[1:4][1]", "x[2]", "exact"),
    "90": Row("np.exp(A)[0:1]", "np.exp(A[0:1])"),
    "91": Row("(A @ B)[0]", "A[0] @ B"),
    "92": Row("np.sum(A, 1)[1:3]", "np.sum(A[1:3], 1)"),
    "93": Row("np.zeros_like(x) + y", "y", "real"),
    "94": Row("np.stack([s, t])[1] * 2.0", "t * 2.0", "exact"),
    "95": Row("np.exp(x).shape[0] * s", "x.shape[0] * s", "exact", caught=True),
    "96": Row("stored(x, 1, s)[1] * 2.0", "s * 2.0", "exact"),
    "97": Row("np.exp(x) * y + np.exp(x)", "(lambda e: e * y + e)(np.exp(x))", "exact", caught=True),
    "98": Row("np.linalg.inv(A) @ x", "np.linalg.solve(A, x)", "real"),
    "99": Row("np.linalg.inv(np.linalg.inv(A))", "A", "real"),
    "100": Row("np.linalg.det(np.linalg.inv(A))", "1 / np.linalg.det(A)", "real"),
    "101": Row("np.log(np.abs(np.linalg.det(A)))", "np.linalg.slogdet(A)[1]"),
    "102": Row("np.linalg.det(np.diag(x))", "np.prod(x)", "real"),
    "103": Row("np.linalg.inv(np.diag(x))", "np.diag(1 / x)", "real"),
    "104": Row("np.linalg.cholesky(np.diag(x))", "np.diag(np.sqrt(x))", "real"),
    "105": Row("np.diag(x) @ A", "x[:, None] * A", "real"),
    "106": Row("np.eye(5) @ A", gone="contract", level="real"),
    "107": Row("(A @ V).T", gone="transpose"),
    "108": Row("(A @ B) @ x", "A @ (B @ x)", "real"),
    "109": Row("np.trace(A @ B)", gone="gather", made="contract"),
    "110": Row("np.diag(A @ B)", gone="gather", made="contract"),
    "111": Row("np.sum(A @ B, 0)", "np.sum(A, 0) @ B", "real"),
    "112": Row("A @ B + A @ C", "A @ (B + C)", "real"),
    "113": Row("np.concatenate([A @ B, A @ C], 1)", "A @ np.concatenate([B, C], 1)"),
    "114": Row("2.5 * C + 0.3 * (A @ B)", gone="contract", made="gemm"),
    "115": Row("np.linalg.solve(np.linalg.cholesky(P), x)", gone="solve", made="solve_triangular", level="real"),
    "116": Row("np.linalg.cholesky(np.tril(A) @ np.tril(A).T)", "np.tril(A)", "real"),
    "117": Row("np.zeros((5, 5)) @ A", gone="contract", level="real"),
    "118a": Row("1 - special.erfc(x)", "special.erf(x)"),
    "118b": Row("special.erf(x) - 1", "-special.erfc(x)"),
    "118c": Row("special.erfc(-x) - 1", "special.erf(x)"),
    "119": Row("np.log(special.erfc(x))", gone="log erfc", made="log_erfc"),
    "120": Row("np.log(np.exp(x + 1) - np.exp(y))", gone="log exp", made="log1mexp", level="real"),
    "121": Row("special.expit(np.log(x / (1 - x)))", "x", "real"),
    "122": Row("np.log(special.ive(s, x) * np.exp(np.abs(x)))", "np.abs(x) + np.log(special.ive(s, x))", "real"),
    "123": Row("special.polygamma(0, x)", "special.digamma(x)", "exact"),
    "124": Row("np.conj(x) * y", "x * y", "exact"),
    "125": Row("x.astype(np.float32).astype(np.float64).astype(np.float32)", "x.astype(np.float32)", "exact"),
    "126": Row("(1 - x) * (1.0 - x)", "(lambda u: u * u)(1 - x)", "exact", caught=True),
    "127a": Row("np.where(x.shape[0] < 0, x, y)", "y", "exact"),
    "127b": Row("np.maximum(x.shape[0], 0) * x", gone="maximum", level="exact"),
    "128": Row("np.sign(y / np.exp(x))", "np.sign(y)", "real"),
    "129": Row("np.prod(s * x)", made="power", level="real"),
    "130": Row("np.sum((A[None] * B[:, None]) ** 2, (1, 2))", gone="multiply", made="contract", level="real"),
    "131": Row("sla.block_diag(A, B) @ V[:, :1].repeat(2, 0)", made="contract", gone="set*1", level="real"),
    "132": Row("np.linalg.det(sla.block_diag(A, B))", "np.linalg.det(A) * np.linalg.det(B)", "real"),
    "133": Row("np.linalg.inv(np.kron(A, B))", "np.kron(np.linalg.inv(A), np.linalg.inv(B))", "real"),
    "134": Row("np.linalg.solve(np.diag(x), y)", gone="solve", made="divide", level="real"),
    "135a": Row("np.linalg.solve(A, x) + np.linalg.solve(A, np.exp(B))", gone="solve*1", level="real"),
    "135b": Row("np.linalg.solve(A, x) + np.linalg.slogdet(A)[1]", gone="slogdet"),
    "136": Row("np.linalg.solve(np.linalg.inv(A), x)", "A @ x", "real"),
    "137": Row("np.linalg.eigvals(A + A.T)", gone="eigvals", made="eigvalsh", level="real"),
    "138": Row("np.linalg.svd(np.diag(x), compute_uv=False)", "np.sort(np.abs(x))[::-1]", "real"),
    "139": Row("np.linalg.svd(A)[0] * np.linalg.svd(A, compute_uv=False)", gone="svdvals", made="svd", level="real"),
    "140": Row("np.linalg.det(P) + np.linalg.cholesky(P)[0, 0]", gone="det", made="cholesky", level="real"),
    "141": Row("A @ np.eye(5)[:, [2, 0]]", gone="contract", made="gather", level="real"),
    "142": Row("np.dot(A, x)", "A @ x", "exact", caught=True),
    "143": Row("A[None] @ B[None]", "(A @ B)[None]"),
    "144": Row("np.einsum('ij,jk,k->i', A, B, x)", "A @ (B @ x)", caught=True),
    "145": Row("np.full_like(x, 2.0) * y", "2.0 * y", "exact"),
    "146": Row("np.exp(np.full_like(x, s)) * y", "np.exp(s) * y", "exact"),
    "147": Row("np.exp(A.T).T", "np.exp(A)", "exact"),
    "148": Row("x.reshape(1, -1)[0]", "x", "exact"),
    "149": Row("special.softmax(A, axis=1)[0]", "special.softmax(A[:1], axis=1)[0]"),
    "150": Row("stored(stored(x, 1, s), 1, t)", "stored(x, 1, t)", "exact"),
    "151": Row("stored(np.zeros_like(x), 1, s) + x", gone="set", made="add_at"),
    "152": Row("tm.grad(lambda v: v[0] * v[1])(x)", made="add_at"),
    "153a": Row("x[np.arange(x.size - 1) + 1]", "x[1:]", "exact"),
    "153b": Row(
        "A[np.arange(len(A)), np.arange(len(A))]",
        "np.take_along_axis(A, np.arange(len(A))[:, None], 1)[:, 0]",
        "exact",
        caught=True,
    ),
    "154": Row("A[:, np.array([0, 2])]", "np.take(A, [0, 2], 1)", "exact", caught=True),
    "155a": Row("np.concatenate([np.zeros(3), np.zeros(2)])", "np.zeros(5)", "exact"),
    "155b": Row("np.concatenate([x, x, x])", "np.tile(x, 3)", "exact"),
    "156": Row("np.unique(np.repeat(x, 2))", "np.unique(x)", "exact"),
    "157a": Row("x + np.exp(np.zeros_like(x))", "x + 1.0", "exact"),
    "157b": Row("np.sort(np.array([3.0, 1.0, 2.0]))[:1] * x", "np.array([1.0]) * x", "exact"),
    "157c": Row("np.linalg.det(np.array([[2.0, 0.0], [0.0, 3.0]])) * x", gone="det", level="exact"),
    "158": Row("x + np.broadcast_to(y, x.shape)", "x + y", "exact", caught=True),
    "164": Row("tm.tensor(np.exp)(x) * y", "np.exp(x) * y", "exact", caught=True),
    "165": Row("loop_invariant", level="exact"),
    "166": Row("only_sequences", gone="loop"),
    "167": Row("sums_of_products", gone="loop", made="contract", level="real"),
    "168": Row("last_step", gone="set", level="exact"),
    "169": Row("fewer_steps", gone="set", level="exact"),
    "170a": Row("two_loops", gone="loop*1", level="exact"),
    "170b": Row("two_loops_over_arrays", gone="loop*1"),
    "171a": Row("unread_state", gone="tanh"),
    "171b": Row("equal_states", gone="tanh*1"),
    "173": Row("both_branches", gone="branch*1 if*1"),
    "174": Row("joined_draws", stays=True),
}

MISSING: dict[str, str] = {
    "135b": "one decomposition for a system and a determinant has no function of its own",
    "140": "a Cholesky decomposition reads one triangle: nothing is known of the other one",
    "170b": "of arrays each loop has enough to do: 0.5 to 1.3 times as quick, measured (0318)",
    "173": "one way of a branch runs, so nothing is saved: measured (0319)",
    "114": "a product is added to by the loop after it",
    "137": "the order of the eigenvalues would be another one",
    "156": "the length is a size that follows from the longer array",
}
"""Rows that do not fire, and why."""

ELSEWHERE: dict[str, str] = {
    "159": "`backend/planning/schedule.py`: elementwise chains are one kernel",
    "160": "`backend/planning/schedule.py`: a fold and what it folds are one kernel",
    "161": "`backend/planning/schedule.py`: gathers are read within kernels",
    "162": "`backend/planning/shared_arrays.py`: buffers are used again",
    "163": "sums are n-ary in rules of the level real: constants meet, and what cancels goes",
    "172": "`backend/planning/recorded_states.py`: states of loops are stored in place",
}
"""Rewrites that are no rules: where they are made."""
