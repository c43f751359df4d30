"""``scipy.stats.gaussian_kde`` in captured code: a density of samples, composed of captured functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.names import implements
from tensormagic.capture.values.arguments import agreeing, tensor
from tensormagic.capture.values.operands import has_lazy
from tensormagic.capture.values.value import wrap
from tensormagic.ir.type import Size
from tensormagic.ops.leaf import size_node
from tensormagic.ops.matrices import linalg
from tensormagic.ops.move_kind import same, show
from tensormagic.ops.pointwise import astype

_OWN = ("evaluate", "pdf", "logpdf")


def _rows(value: Any) -> Any:
    """Return a value with at least two axes, a vector as one row."""
    found = tensor(value)
    return found if found.ndim > 1 else found.reshape(1, -1)


def _number(size: Size) -> Any:
    return float(size) if isinstance(size, int) else wrap(astype(size_node(size), np.float64))


def _white(factor: Any, points: Any) -> Any:
    return wrap(linalg.solve_triangular(factor.node, points.astype(np.float64).node, lower=True))


class KernelDensity:
    """Represents a ``gaussian_kde`` as captured code sees it: ours on lazy arrays, SciPy's where nothing is lazy.

    Parameters
    ----------
    dataset, bw_method, weights
        As there.
    wrapped
        SciPy's own, of which these are taken.
    """

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None, wrapped: Any = None) -> None:
        self.__wrapped__ = wrapped
        self.dataset = _rows(dataset)
        shape = self.dataset.node.type.shape
        self.d, self.n = shape
        count = self.dataset[:1].ravel()
        given: Any = np.ones_like(count, dtype=np.float64) if weights is None else tensor(weights).astype(np.float64)
        if given.ndim != 1:
            raise ValueError("`weights` input should be one-dimensional.")
        if not same(given.node.type.shape[0], self.n):
            raise ValueError("`weights` input should be of length n")
        self.weights = given / given.sum()
        self.neff = 1.0 / np.sum(self.weights * self.weights)
        self.factor = self._bandwidth(bw_method) if wrapped is None else wrapped.factor
        covariance = np.cov(self.dataset, rowvar=True, bias=False, aweights=self.weights)
        self._data_covariance = covariance.reshape(1, 1) if covariance.ndim == 0 else covariance
        self.covariance = self._data_covariance * self.factor**2
        self.inv_cov = None  # not needed by anything here
        self._factor = np.linalg.cholesky(self._data_covariance) * self.factor

    def _bandwidth(self, method: Any) -> Any:
        axes = _number(self.d)
        exponent = -1.0 / (axes + 4.0)
        if method is None or (isinstance(method, str) and method == "scott"):
            return self.neff**exponent
        if isinstance(method, str) and method == "silverman":
            return (self.neff * (axes + 2.0) / 4.0) ** exponent
        if isinstance(method, str):
            raise ValueError("`bw_method` should be 'scott', 'silverman', a scalar or a callable.")  # noqa: TRY004 (SciPy's)
        if callable(method):
            refuse("scipy.stats.gaussian_kde with a function for bw_method", "Pass the factor as a number.")
        return method

    def _energies(self, x: Any) -> tuple[Any, Any]:
        """Return half of the squared distance of each point from each sample, and the logarithm of the factor before the sum."""
        points = _rows(x)
        d, m = points.node.type.shape
        message = f"points have dimension {show((d,))}, dataset has dimension {show((self.d,))}"
        if d == 1 and self.d != 1 and same(m, self.d):
            points = wrap(agreeing(points.node, m, self.d, message)).reshape(-1, 1)
        else:
            points = wrap(agreeing(points.node, d, self.d, message))
        apart = _white(self._factor, points)[:, :, None] - _white(self._factor, self.dataset)[:, None, :]
        front = np.sum(np.log(np.diag(self._factor))) + 0.5 * _number(self.d) * math.log(2 * math.pi)
        return 0.5 * np.sum(apart * apart, axis=0), -front

    def evaluate(self, points: Any) -> Any:
        """Return the density at points."""
        energies, front = self._energies(points)
        return np.sum(np.exp(-energies) * self.weights, axis=1) * np.exp(front)

    __call__ = pdf = evaluate

    def logpdf(self, x: Any) -> Any:
        """Return the logarithm of the density at points."""
        energies, front = self._energies(x)
        least = np.min(energies, axis=1, keepdims=True)
        return np.log(np.sum(np.exp(least - energies) * self.weights, axis=1)) - least[:, 0] + front

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self.__wrapped__ is None:
            refuse(f"{name} of a gaussian_kde of lazy arrays", f"Captured of it: {', '.join(_OWN)}.")
        return getattr(self.__wrapped__, name)


class _Plain:
    """A ``gaussian_kde`` whose samples are known: SciPy's own, until it is evaluated at lazy points."""

    def __init__(self, wrapped: Any) -> None:
        self.__wrapped__ = wrapped

    def __call__(self, points: Any) -> Any:
        """Return the density at points."""
        return self.evaluate(points)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.__wrapped__, name)
        if not callable(value):
            return value

        def call(*args: Any, **options: Any) -> Any:
            if not any(map(has_lazy, (*args, *options.values()))):
                return value(*args, **options)
            if name not in _OWN:
                refuse(f"{name} of a gaussian_kde at lazy points", f"Captured of it: {', '.join(_OWN)}.")
            inner = self.__wrapped__
            return getattr(KernelDensity(inner.dataset, None, inner.weights, inner), name)(*args, **options)

        return call


def stand_in(value: Any) -> Any:
    """Return a ``gaussian_kde`` as captured code sees it."""
    return _Plain(value)


@implements("scipy.stats.gaussian_kde")
def gaussian_kde(dataset: Any, bw_method: Any = None, weights: Any = None) -> Any:
    """Implement ``scipy.stats.gaussian_kde``."""
    if any(map(has_lazy, (dataset, bw_method, weights))):
        return KernelDensity(dataset, bw_method, weights)
    from scipy import stats

    return _Plain(stats.gaussian_kde(dataset, bw_method, weights))
