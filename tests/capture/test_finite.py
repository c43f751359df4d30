"""SciPy's linear algebra refuses nan and infinities, on each tier and in derivatives, unless it is told not to look."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy

import tensormagic as tm

S = np.array([[4.0, 1.0, 0.5], [1.0, 5.0, 0.2], [0.5, 0.2, 6.0]])
B = np.array([1.0, 2.0, 3.0])
BANDS = np.array([[0.0, 1.0, 1.0], [4.0, 5.0, 6.0], [1.0, 1.0, 0.0]])
ONE = (
    "inv det cholesky cho_factor pinv svd svdvals qr lu lu_factor eigh eigvalsh norm schur polar".split()  # noqa: SIM905 (a table)
)


def called(name: str) -> Any:
    """A function of SciPy's by its name: arguments first, options behind."""
    return lambda *args, **options: getattr(scipy.linalg, name)(*args, **options)


CALLS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    **{name: (called(name), (S,)) for name in ONE},
    **{name: (called(name), (S, B)) for name in ("solve", "lstsq", "solve_triangular")},
    "generalised eigh": (lambda a, b, **o: scipy.linalg.eigh(a, b, **o), (S, S + np.eye(3))),
    "cho_solve": (lambda c, b, **o: scipy.linalg.cho_solve((c, True), b, **o), (np.linalg.cholesky(S), B)),
    "lu_solve": (lambda a, b, **o: scipy.linalg.lu_solve(scipy.linalg.lu_factor(a), b, **o), (S, B)),
    "solve_banded": (lambda a, b, **o: scipy.linalg.solve_banded((1, 1), a, b, **o), (BANDS, B)),
}
UNDERIVED = {"schur", "lu", "lu_factor", "lu_solve", "polar", "qr", "svd", "cho_factor", "eigh", "generalised eigh", "lstsq"}  # fmt: skip
NAMES = [(name, k) for name, (_, given) in CALLS.items() for k in range(len(given))]


def with_bad(name: str, k: int, bad: float) -> list[Any]:
    """The operands, with one element of one of them bad: one that the function might not read."""
    given = [np.array(v) for v in CALLS[name][1]]
    given[k].reshape(-1)[(1, 0)[given[k].ndim == 1]] = bad
    return given


@pytest.mark.parametrize(("name", "k", "tier"), [(*p, "numpy") for p in NAMES] + [(*p, "numba") for p in NAMES[::5]])
def test_operands_that_are_not_finite(monkeypatch: pytest.MonkeyPatch, name: str, k: int, tier: str) -> None:
    monkeypatch.setattr(tm.config, "tier", tier)
    captured = tm.tensor(CALLS[name][0])
    captured(*CALLS[name][1])
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="array must not contain infs or NaNs"):
            CALLS[name][0](*with_bad(name, k, bad))
        with pytest.raises(ValueError, match="array must not contain infs or NaNs"):
            captured(*with_bad(name, k, bad))


@pytest.mark.parametrize("name", [name for name in CALLS if name not in UNDERIVED])
def test_derivatives_that_read_them_refuse_them_too(name: str) -> None:
    slope = tm.grad(lambda *a: np.sum(CALLS[name][0](*a)))
    assert np.isfinite(slope(*CALLS[name][1])).all()
    with pytest.raises(ValueError, match="array must not contain infs or NaNs"):
        slope(*with_bad(name, 0, np.nan))


@pytest.mark.filterwarnings("ignore::scipy.linalg.LinAlgWarning")
@pytest.mark.parametrize("name", ["inv", "det", "cholesky", "cho_factor", "solve", "solve_triangular", "cho_solve"])
def test_who_asks_for_no_check_gets_none(name: str) -> None:
    call = CALLS[name][0]
    given = with_bad(name, len(CALLS[name][1]) - 1, np.nan)
    want = call(*given, check_finite=False)
    got = tm.tensor(lambda *a: call(*a, check_finite=False))(*given)
    for one, other in zip(*(v if isinstance(v, tuple) else (v,) for v in (got, want)), strict=True):
        assert np.isnan(one).any() == np.isnan(other).any()
