"""Drawn functions at drawn points, ties, zeros and empty arrays among them, and the ways in which they are differentiated.

Where a function has a derivative at a point, as differences on both sides say, every way gives it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

import tensormagic as tm

Function = Callable[..., Any]

SCALARS: dict[str, Function] = {
    "x": lambda x: x,
    "x ** 2": lambda x: x**2,
    "x ** 3": lambda x: x**3,
    "x * x": lambda x: x * x,
    "2 ** x": lambda x: 2.0**x,
    "exp": np.exp,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "arctan": np.arctan,
    "sinh": np.sinh,
    "log1p of a square": lambda x: np.log1p(x * x),
    "log of 2 and more": lambda x: np.log(2 + x * x),
    "root of 1 and more": lambda x: np.sqrt(1 + x * x),
    "reciprocal": lambda x: 1 / (3 + x * x),
    "where": lambda x: np.where(np.isfinite(x), x * 2, 0.0),
    "a zero times": lambda x: 0.0 * x + x,
    "minus itself": lambda x: (x - 1.0) * (x + 1.0),
}
REALS: dict[str, Function] = {
    "abs": np.abs,
    "sqrt of abs": lambda x: np.sqrt(np.abs(x)),
    "square of abs": lambda x: np.abs(x) ** 2,
    "relu": lambda x: np.maximum(x, 0.0),
    "clip": lambda x: np.clip(x, -0.75, 2.5),
    "minimum": lambda x: np.minimum(x, x * x),
    "softplus": lambda x: np.logaddexp(x, 0.0),
    "hypot": lambda x: np.hypot(x, 1.0),
    "hypot of itself": lambda x: np.hypot(x, x * x),
    "arctan2": lambda x: np.arctan2(x, 1.0),
    "xlogy": lambda x: scipy.special.xlogy(x * x, 2 + x),
    "erf": scipy.special.erf,
    "expit": scipy.special.expit,
    "sinc": np.sinc,
    "sign times": lambda x: np.sign(x) * x * x,
    "floor": lambda x: np.floor(x) + x,
    "x ** 1.5 of abs": lambda x: np.abs(x) ** 1.5,
    "copysign": lambda x: np.copysign(x, 1.0),
    "fmax": lambda x: np.fmax(x, -x),
}
FOLDS: dict[str, Function] = {
    "sum": np.sum,
    "mean": np.mean,
    "prod": np.prod,
    "sum along": lambda x: np.sum(x, axis=0),
    "prod along": lambda x: np.prod(x, axis=-1),
    "mean along": lambda x: np.mean(x, axis=0, keepdims=True),
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
    "cumsum along": lambda x: np.cumsum(x, axis=-1),
    "cumprod along": lambda x: np.cumprod(x, axis=0),
    "var": np.var,
    "std": np.std,
    "var along": lambda x: np.var(x, axis=0),
    "std of one less": lambda x: np.std(x, ddof=1),
    "norm": lambda x: np.linalg.norm(x.ravel()),
    "sum of squares": lambda x: np.sum(x * x),
    "root of squares": lambda x: np.sqrt(np.sum(x * np.conj(x)).real),
    "dot": lambda x: np.dot(x.ravel(), x.ravel()),
    "diff": np.diff,
    "reversed": lambda x: x[::-1],
    "roll": lambda x: np.roll(x, 1),
    "concatenate": lambda x: np.concatenate([x, x * 2]),
    "stored": lambda x: _stored(x),
    "outer": lambda x: np.outer(x, x),
    "flat": np.ravel,
}
REAL_FOLDS: dict[str, Function] = {
    "max": np.max,
    "min": np.min,
    "max along": lambda x: np.max(x, axis=0),
    "ptp": np.ptp,
    "sort": np.sort,
    "median": np.median,
    "running maximum": np.maximum.accumulate,
    "logsumexp": lambda x: np.log(np.sum(np.exp(x))),
    "softmax": lambda x: scipy.special.softmax(x, axis=-1),
    "norm 1": lambda x: np.linalg.norm(x.ravel(), 1),
    "norm 3": lambda x: np.linalg.norm(x.ravel(), 3),
    "norm inf": lambda x: np.linalg.norm(x.ravel(), np.inf),
    "selected": lambda x: np.where(x > 0.25, x * x, x),
    "masked": lambda x: np.sum(x * x, where=x > 0.25),
    "taken": lambda x: np.take_along_axis(x, np.argsort(x, axis=-1), -1),
    "nansum": np.nansum,
}
MATRICES: dict[str, Function] = {
    "product": lambda x: x @ x.T,
    "power": lambda x: np.linalg.matrix_power(_square(x), 3),
    "determinant": lambda x: np.linalg.det(_square(x)),
    "inverse": lambda x: np.linalg.inv(_square(x) + 4 * np.eye(len(x))),
    "solve": lambda x: np.linalg.solve(_square(x) + 4 * np.eye(len(x)), x),
    "trace": lambda x: np.trace(_square(x)),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, x),
    "diagonal": lambda x: np.diagonal(_square(x)),
    "tril": np.tril,
    "slogdet": lambda x: np.linalg.slogdet(_square(x) + 4 * np.eye(len(x)))[1],
    "kron": lambda x: np.kron(x, x[:1]),
    "frobenius": np.linalg.norm,
}
REAL_MATRICES: dict[str, Function] = {
    "eigenvalues": lambda x: np.linalg.eigvalsh(_square(x) + np.diag(np.arange(len(x)) * 9.0)),
    "singular values": lambda x: np.linalg.svd(x + np.eye(*x.shape) * np.arange(2.0, 2 + x.shape[1]), compute_uv=False),
    "cholesky": lambda x: np.linalg.cholesky(_square(x) + 4 * np.eye(len(x))),
    "qr": lambda x: np.linalg.qr(x.T + 4 * np.eye(x.shape[1], x.shape[0]))[1] if x.shape[1] >= x.shape[0] else x,
    "expm": lambda x: scipy.linalg.expm(_square(x) * 0.25),
}


def _square(x: Any) -> Any:
    return x @ np.conj(x).T


def _stored(x: Any) -> Any:
    y = x.copy()
    y[1:] = x[:-1] * y[1:]
    return y


SHAPES = ((), (1,), (3,), (4,), (0,), (2, 3), (3, 2), (3, 3), (2, 1), (0, 2))
POINTS = (0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, 1.0, 0.0)


@dataclass(frozen=True)
class Drawn:
    """A function, by the names of its steps, and a point."""

    steps: tuple[str, ...]
    at: Any

    def __str__(self) -> str:
        return f"{' of '.join(reversed(self.steps))} at {self.at.dtype} {self.at.tolist()}"

    @property
    def total(self) -> Function:
        """A real number of all elements, each of another weight."""
        functions, real = [ALL[step] for step in self.steps], np.real(self.at).dtype

        def total(x: Any) -> Any:
            for function in functions:
                x = function(x)
            weights = np.cos(np.arange(x.size, dtype=real)).reshape(x.shape) + 1.5
            return np.sum(np.real(x) * weights) + (np.sum(np.imag(x) * weights) if np.iscomplexobj(x) else 0.0)

        return total


ALL = SCALARS | REALS | FOLDS | REAL_FOLDS | MATRICES | REAL_MATRICES


def draw(seed: int) -> Drawn | None:
    """A function at a point where NumPy gives numbers; None where it does not."""
    r = np.random.default_rng(seed)
    dtype = r.choice(np.array(["f8", "f8", "f8", "f4", "c16"]))
    real = dtype != "c16"
    shape = SHAPES[r.integers(len(SHAPES))]
    x = r.choice(np.array(POINTS), shape) if r.random() < 0.6 else r.normal(size=shape) + 0.1
    if r.random() < 0.15 and np.size(x):
        x = np.full(shape, np.ravel(x)[0])
    if not real:
        x = x + 1j * r.choice(np.array(POINTS), shape)
    x = np.asarray(x).astype(dtype)
    scalars = list(SCALARS | (REALS if real else {}))
    folds = list(FOLDS | (REAL_FOLDS if real else {}))
    if len(shape) == 2 and r.random() < 0.5:
        folds = list(MATRICES | (REAL_MATRICES if real else {}))
    first, fold, last = (
        scalars[r.integers(len(scalars))],
        folds[r.integers(len(folds))],
        scalars[r.integers(len(scalars))],
    )
    steps = (first, fold, last) if r.random() < 0.5 else (first, fold) if r.random() < 0.5 else (fold, last)
    drawn = Drawn(steps, x)
    try:
        with np.errstate(all="ignore"):
            value = np.asarray(drawn.total(x))
    except (TypeError, ValueError, IndexError, ZeroDivisionError, np.linalg.LinAlgError):
        return None
    return drawn if value.shape == () and np.isfinite(value) and abs(value) < 1e3 else None


# the ways -------------------------------------------------------------------------------------------------------------


def _basis(x: Any) -> list[Any]:
    units = []
    for index in np.ndindex(x.shape):
        for unit in (1.0, -1j)[: 1 + np.iscomplexobj(x)]:
            move = np.zeros_like(x)
            move[index] = unit
            units.append(move)
    return units


def _parts(gradient: Any) -> Any:
    """A gradient as real numbers: for complex ones those by the real and by minus the imaginary part of each element."""
    g = np.asarray(gradient)
    return np.stack([g.real, g.imag], -1).ravel() if np.iscomplexobj(g) else g.ravel()


def reverse(f: Function, x: Any) -> Any:
    return _parts(tm.grad(f)(x))


def forward(f: Function, x: Any) -> Any:
    return np.array([tm.jvp(f, (x,), (move,))[1] for move in _basis(x)], np.real(x).dtype)


def looped(f: Function, x: Any) -> Any:
    def run(x: Any, k: int) -> Any:
        total = 0.0
        for _ in range(k):
            total = total + f(x)
        return total

    return _parts(tm.grad(run)(x, 2)) / 2


def replaced(f: Function, x: Any) -> Any:
    def run(x: Any, k: int) -> Any:
        result = 0.0
        for _ in range(k):
            x = x * 1.0
            result = f(x)
        return result

    return _parts(tm.grad(run)(x, 2))


def counted(f: Function, x: Any) -> Any:
    def run(x: Any, k: int) -> Any:
        found, iteration = np.zeros(3), 0
        while iteration < k:
            found[iteration] = f(x)
            iteration += 1
        return found.sum()

    return _parts(tm.grad(run)(x, 2)) / 2


def unrolled(f: Function, x: Any) -> Any:
    return _parts(tm.grad(lambda x: f(x) + f(x * 1.0))(x)) / 2


def branched(f: Function, x: Any) -> Any:
    def run(x: Any, s: float) -> Any:
        return f(x) if s > 0 else 0.0 * f(x)

    return _parts(tm.grad(run)(x, 1.0))


def batched(f: Function, x: Any) -> Any:
    return _parts(tm.vmap(tm.grad(f))(np.stack([x, x]))[1])


def pulled(f: Function, x: Any) -> Any:
    value, pull = tm.vjp(f, x)
    return _parts(pull(np.ones_like(value)[()])[0])


def compiled(f: Function, x: Any) -> Any:
    with tm.config.using(tier="numba"):
        return reverse(f, x)


WAYS = (reverse, forward, looped, replaced, counted, unrolled, branched, batched, pulled)

# what they are held against -------------------------------------------------------------------------------------------


def differences(f: Function, x: Any, h: float = 2e-6) -> Any:
    """Slopes in float64; nan where those of both sides, or of two steps, are not the same."""
    wide = x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)
    found = []
    with np.errstate(all="ignore"):
        middle = f(wide)
        for move in _basis(wide):
            at = {j: f(wide + move * (j * h)) for j in (-4, -2, -1, 1, 2, 4)}
            sides = [s * (4 * at[s] - 3 * middle - at[2 * s]) / (2 * h) for s in (1, -1)]
            fine, coarse = ((8 * (at[j] - at[-j]) - (at[2 * j] - at[-2 * j])) / (12 * h * j) for j in (1, 2))
            same = all(abs(other - fine) < 1e-4 * (1 + abs(fine)) for other in (*sides, coarse))
            found.append(fine if same else np.nan)
    return np.array(found)


def second(drawn: Drawn) -> dict[str, Any]:
    """The derivatives of one weighted sum of the gradient, by each order of modes."""
    x, total = drawn.at, drawn.total
    weights = np.sin(np.arange(max(x.size, 1)) + 1.0)[: x.size].reshape(x.shape).astype(np.real(x).dtype)

    def along(x: Any) -> Any:
        return tm.jvp(total, (x,), (weights,))[1]

    def summed(x: Any) -> Any:
        return np.sum(tm.grad(total)(x) * weights)

    return {
        "reverse of forward": tm.grad(along)(x),
        "reverse of reverse": tm.grad(summed)(x),
        "forward of reverse": tm.jvp(tm.grad(total), (x,), (weights,))[1],
        "batched": tm.vmap(tm.grad(summed))(np.stack([x, x]))[0],
    }


def bends(drawn: Drawn, h: float = 1e-3) -> Any:
    """Differences of the gradient along the same weights; nan where both sides are not the same."""
    x = drawn.at.astype(np.float64)
    weights = np.sin(np.arange(max(x.size, 1)) + 1.0)[: x.size].reshape(x.shape)
    gradient = tm.grad(Drawn(drawn.steps, x).total)
    at = {j: gradient(x + weights * (j * h)) for j in (-2, -1, 0, 1, 2)}
    right, left = ((s * (4 * at[s] - 3 * at[0] - at[2 * s])) / (2 * h) for s in (1, -1))
    fine = (8 * (at[1] - at[-1]) - (at[2] - at[-2])) / (12 * h)
    coarse = (at[2] - at[-2]) / (4 * h)
    known = (np.abs(right - fine) < 1e-2 * (1 + np.abs(fine))) & (np.abs(left - fine) < 1e-2 * (1 + np.abs(fine)))
    return np.where(known & (np.abs(coarse - fine) < 1e-2 * (1 + np.abs(fine))), fine, np.nan)


def compared(seed: int, ways: tuple[Function, ...] = WAYS, *, twice: bool = True) -> list[str] | None:
    """What is wrong with a drawn function: nothing, as a rule; None where there is no function."""
    drawn = draw(seed)
    if drawn is None:
        return None
    wrong: list[str] = []
    single = drawn.at.dtype == np.float32
    with np.errstate(all="ignore"):
        total = drawn.total
        slopes = differences(total, drawn.at)
        smooth = np.isfinite(slopes).all()
        for way in ways:
            try:
                found = way(total, drawn.at)
            except tm.CaptureError:  # refused by name
                continue
            close = np.abs(found - slopes) <= (2e-3 if single else 1e-5) * (1 + np.abs(slopes).max(initial=0))
            if found.shape != slopes.shape or (smooth and not close.all()):
                wrong.append(f"{seed}: {drawn}: {way.__name__} {found.tolist()}, and differences {slopes.tolist()}")
        if twice and smooth and not np.iscomplexobj(drawn.at):
            wrong += _twice(seed, drawn, single=single)
    return wrong


def _twice(seed: int, drawn: Drawn, *, single: bool) -> list[str]:
    try:
        expected, ways = bends(drawn), second(drawn)
    except tm.CaptureError:
        return []
    if not np.isfinite(expected).all():
        return []
    close = (5e-2 if single else 1e-2) * (1 + np.abs(expected).max(initial=0))
    return [
        f"{seed}: {drawn}: {name} {np.asarray(found).tolist()}, and differences {expected.tolist()}"
        for name, found in ways.items()
        if not (np.abs(found - expected) <= close).all()
    ]
