"""``scipy.spatial.distance`` on lazy arrays: distances between rows, composed of captured functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.names import implements
from tensormagic.capture.values.arguments import extent_number, tensor
from tensormagic.ops.move_kind import same

Metric = Callable[..., Any]


def _weights(w: Any) -> Any:
    return 1.0 if w is None else tensor(w).astype(np.float64)


def _minkowski(u: Any, v: Any, p: Any = 2, w: Any = None) -> Any:
    """Return the p-norm of the difference; where it is 0, its derivative is 0."""
    size = np.abs(u - v)
    if w is not None:
        size = size * _weights(w) ** (1.0 / p)
    return np.linalg.norm(size, p, axis=-1)


def _euclidean(u: Any, v: Any, w: Any = None) -> Any:
    gap = u - v
    return np.linalg.norm(gap if w is None else gap * np.sqrt(_weights(w)), axis=-1)


def _chebyshev(u: Any, v: Any, w: Any = None) -> Any:
    size = np.abs(u - v)
    return np.max(size if w is None else np.where(_weights(w) > 0, size, 0.0), axis=-1)


def _cosine(u: Any, v: Any, w: Any = None) -> Any:
    k = _weights(w)
    product = np.sum(k * u * v, axis=-1)
    return 1.0 - product / np.sqrt(np.sum(k * u * u, axis=-1) * np.sum(k * v * v, axis=-1))


def _correlation(u: Any, v: Any, w: Any = None) -> Any:
    if w is not None:
        refuse("the metric 'correlation' with w", "Leave w out.")
    return _cosine(u - u.mean(axis=-1, keepdims=True), v - v.mean(axis=-1, keepdims=True))


def _canberra(u: Any, v: Any, w: Any = None) -> Any:
    gap, size = np.abs(u - v), np.abs(u) + np.abs(v)
    none = size == 0
    return np.sum(_weights(w) * np.where(none, 0.0, gap / np.where(none, 1.0, size)), axis=-1)


def _braycurtis(u: Any, v: Any, w: Any = None) -> Any:
    k = _weights(w)
    return np.sum(k * np.abs(u - v), axis=-1) / np.sum(k * np.abs(u + v), axis=-1)


def _hamming(u: Any, v: Any, w: Any = None) -> Any:
    apart = (u != v).astype(np.float64)
    return np.mean(apart, axis=-1) if w is None else np.sum(_weights(w) * apart, axis=-1) / np.sum(_weights(w))


def _seuclidean(u: Any, v: Any, V: Any = None) -> Any:
    if V is None:
        refuse("the metric 'seuclidean' without V", "Pass the variances as V.")
    return np.linalg.norm((u - v) / np.sqrt(tensor(V)), axis=-1)


def _mahalanobis(u: Any, v: Any, VI: Any = None) -> Any:
    if VI is None:
        refuse("the metric 'mahalanobis' without VI", "Pass the inverse of the covariance as VI.")
    gap = u - v
    total = np.sum((gap @ tensor(VI)) * gap, axis=-1)
    none = total == 0
    return np.where(none, 0.0, np.sqrt(np.where(none, 1.0, total)))


METRICS: dict[str, Metric] = {
    "euclidean": _euclidean,
    "sqeuclidean": lambda u, v, w=None: np.sum(_weights(w) * np.square(u - v), axis=-1),
    "cityblock": lambda u, v, w=None: np.sum(_weights(w) * np.abs(u - v), axis=-1),
    "chebyshev": _chebyshev,
    "minkowski": _minkowski,
    "cosine": _cosine,
    "correlation": _correlation,
    "canberra": _canberra,
    "braycurtis": _braycurtis,
    "hamming": _hamming,
    "seuclidean": _seuclidean,
    "mahalanobis": _mahalanobis,
}
_SHORT = {
    "euclid": "euclidean", "eu": "euclidean", "e": "euclidean", "sqeuclid": "sqeuclidean", "sqe": "sqeuclidean",
    "manhattan": "cityblock", "cblock": "cityblock", "cb": "cityblock", "c": "cityblock", "cheby": "chebyshev", "chebychev": "chebyshev",
    "cheb": "chebyshev", "ch": "chebyshev", "mi": "minkowski", "m": "minkowski", "pnorm": "minkowski", "cos": "cosine", "co": "correlation",
    "se": "seuclidean", "s": "seuclidean", "mahal": "mahalanobis", "mah": "mahalanobis", "hamm": "hamming", "ha": "hamming", "h": "hamming",
}  # fmt: skip


def _metric(name: str, metric: Any, options: dict[str, Any]) -> Metric:
    if options.pop("out", None) is not None:
        refuse(f"{name} with out=", "Assign the result instead.")
    if not isinstance(metric, str):
        refuse(f"{name} with a metric that is a function", f"Captured metrics: {', '.join(METRICS)}.")
    key = metric.lower()
    found = METRICS.get(_SHORT.get(key, key))
    if found is None:
        refuse(f"{name} with the metric {metric!r}", f"Captured metrics: {', '.join(METRICS)}.")
    return found


def _rows(x: Any, name: str) -> Any:
    found = tensor(x)
    if found.ndim != 2:
        raise ValueError(f"{name} must be a 2-dimensional array.")
    if found.dtype.kind == "c":
        refuse("distances between complex vectors", "Use their real and imaginary parts.")
    return found.astype(np.float64)


@implements("scipy.spatial.cdist")
def cdist(XA: Any, XB: Any, metric: Any = "euclidean", **options: Any) -> Any:
    """Implement ``scipy.spatial.distance.cdist``: in float64, as in SciPy."""
    measure = _metric("cdist", metric, options)
    u, v = _rows(XA, "XA"), _rows(XB, "XB")
    if not same(u.node.type.shape[1], v.node.type.shape[1]):
        raise ValueError("XA and XB must have the same number of columns (i.e. feature dimension.)")
    return measure(u[:, None, :], v[None, :, :], **options)


@implements("scipy.spatial.pdist")
def pdist(X: Any, metric: Any = "euclidean", **options: Any) -> Any:
    """Implement ``scipy.spatial.distance.pdist``: in float64, as in SciPy."""
    measure = _metric("pdist", metric, options)
    x = tensor(X)
    if x.ndim != 2:
        raise ValueError("A 2-dimensional array must be passed.")
    first, second = np.triu_indices(extent_number(x.node, 0), 1)
    x = _rows(x, "X")
    return measure(x[first], x[second], **options)
