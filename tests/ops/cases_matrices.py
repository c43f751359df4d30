"""Cases of the ops on matrices that SciPy has, and of general eigenvalues and least squares."""

import numpy as np
import scipy

from tensormagic.ops import contract
from tensormagic.ops.matrices import gaps, least_squares, matrix, matrix_function, spectral, systems
from tests.ops.cases import case
from tests.ops.cases_linear import SQUARES

SPREAD = np.diag([1.0, 4.0, 9.0])


def _spread(a):
    """Square matrices with real eigenvalues far apart, in any dtype."""
    return ((a / 8 + SPREAD).astype(a.dtype) if a.dtype.kind in "fc" else SPREAD.astype(a.dtype),)


def _positive(a):
    """Positive definite, and not too far from the unit matrix, so that every function of it is defined."""
    whole = np.eye(a.shape[-1])
    return ((whole + (a @ np.conj(np.swapaxes(a, -1, -2))) / 40).astype(a.dtype),)


def _complex(found):
    return tuple(v.astype(np.result_type(v.dtype, np.complex64)) for v in found)


def _one_by_one(function, a):
    matrix.square(place_of(a))
    found = [function(a[k]) for k in np.ndindex(a.shape[:-2])]
    return tuple(np.reshape([f[j] for f in found], (*a.shape[:-2], *found[0][j].shape)) for j in range(len(found[0])))


def place_of(a):
    from tests.ops.harness import place

    return place(a)


STAYS_REAL = (
    np.linalg.eigvals(np.eye(1)).dtype.kind == "f"
)  # eigenvalues of real matrices are always complex from NumPy 2.5 on

for _shape in SQUARES:
    _fine = _shape[-2:] == (3, 3)
    _fields = {"derivative": _fine, "prepare": _spread if _fine else (lambda *v: v)}
    case(
        "eig",
        lambda a: spectral.eig(a, real=False),
        lambda a: _complex(np.linalg.eig(a)),
        _shape,
        **_fields,
    )
    case(
        "eigvals",
        lambda a: spectral.eigvals(a, real=False),
        lambda a: _complex([np.linalg.eigvals(a)])[0],
        _shape,
        **_fields,
    )
    if STAYS_REAL:
        case(
            "eig",
            lambda a: spectral.eig(a, real=True),
            lambda a: tuple(np.linalg.eig(a)),
            _shape,
            label=f"{_shape}-real",
            dtypes="bhilBHILfd" if _fine else "fd",
            **_fields,
        )
for _real in (True, False):
    case(
        "close_to_real",
        lambda z, real=_real: spectral.close_to_real(z, real=real, limit=100.0, site=0),
        np.real_if_close,
        (2, 3),
        label=f"real-{_real}",
        prepare=lambda z, real=_real: (z.real.astype(z.dtype) if real else z,),
        dtypes="FD",
        derivative=not _real,
    )
for _shape in [(3, 3), (2, 3, 3)]:
    for _lower in (True, False):
        case(
            "scipy_eigh",
            lambda a, lower=_lower: spectral.scipy_eigh(a, None, lower=lower),
            lambda a, lower=_lower: _one_by_one(lambda m: scipy.linalg.eigh(m, lower=lower), a),
            _shape,
            label=f"{_shape}-{_lower}",
            prepare=_spread,
            settle=lambda wv: (
                wv[0],
                contract.matmul(matrix.scaled(wv[1], matrix.as_row(wv[0])), matrix.adjoint(wv[1])),
            ),
            dtypes="fdFD",
        )
case(
    "scipy_eigh",
    lambda a, b: spectral.scipy_eigh(a, b, lower=True),
    lambda a, b: tuple(scipy.linalg.eigh(a, b)),
    (3, 3),
    (3, 3),
    label="two",
    prepare=lambda a, b: (*_spread(a), *_positive(b)),
    settle=lambda wv: (wv[0], contract.matmul(matrix.scaled(wv[1], matrix.as_row(wv[0])), matrix.adjoint(wv[1]))),
    dtypes="fdFD",
)


def _lu(a):
    rows, low, up = scipy.linalg.lu(a, p_indices=True)
    return rows.astype(np.int32), low, up


for _shape in [(3, 3), (4, 2), (2, 4), (2, 3, 3)]:
    case("lu", spectral.lu, _lu, _shape, dtypes="fdFD")

# pivots, Schur's form, systems ------------------------------------------------------------------------------------------


def _rows_of(a):
    return (scipy.linalg.lu(np.asarray(a, np.float64), p_indices=True)[0].astype(np.int32),)


def _exchanged(rows):
    """LAPACK's pivots of a matrix that is a permutation."""
    whole = np.eye(rows.shape[-1])[rows]
    return scipy.linalg.lu_factor(whole)[1].astype(np.int32)


for _shape in [(3, 3), (5, 5)]:
    case(
        "pivots",
        lambda rows: systems.pivots(rows, rows.type.shape[-1]),
        _exchanged,
        _shape,
        prepare=_rows_of,
        dtypes="d",
        derivative=False,
    )
case(
    "pivoted",
    lambda found: systems.pivoted(found, 4),
    lambda found: np.array([2, 0, 3, 1], np.int64) if found.size else None,
    np.array([2, 2, 3], np.int32),
    dtypes="d",
    derivative=False,
)
case(
    "schur",
    lambda a: systems.schur(a),
    lambda a: scipy.linalg.schur(a, "complex" if a.dtype.kind == "c" else "real"),
    (4, 4),
    dtypes="fdFD",
    derivative=False,
)
case(
    "solve_sylvester",
    systems.solve_sylvester,
    scipy.linalg.solve_sylvester,
    (3, 3),
    (2, 2),
    (3, 2),
    prepare=lambda a, b, q: ((a / 8 + 3 * np.eye(3)).astype(a.dtype), (b / 8 + np.eye(2)).astype(b.dtype), q),
    dtypes="fdFD",
)
for _lower, _upper in [(1, 1), (0, 2), (2, 0), (1, 0)]:
    case(
        "solve_banded",
        lambda ab, b, lower=_lower, upper=_upper: systems.solve_banded(ab, b, lower, upper),
        lambda ab, b, lower=_lower, upper=_upper: scipy.linalg.solve_banded((lower, upper), ab, b),
        (_lower + _upper + 1, 5),
        (5, 2),
        label=f"{_lower}-{_upper}",
        prepare=lambda ab, b, upper=_upper: ((ab / 8 + 4 * (np.arange(len(ab)) == upper)[:, None]).astype(ab.dtype), b),
        dtypes="fdFD",
    )
for _real in (True, False):
    case(
        "roots",
        lambda p, real=_real: spectral.roots(p, real=real, site=-1),
        lambda p, real=_real: np.roots(p) if real else _complex((np.roots(p),))[0],
        np.array([2.0, -3.0, -5.0, 1.0]),
        label=f"real-{_real}",
        dtypes="d",
    )

# least squares --------------------------------------------------------------------------------------------------------

for _a, _b in [((4, 2), (4, 3)), ((2, 4), (2, 1)), ((3, 3), (3, 2))]:
    case(
        "lstsq",
        lambda a, b: least_squares.lstsq(a, b, None),
        lambda a, b: np.linalg.lstsq(a, b)[0],
        _a,
        _b,
        dtypes="bilfdFD",
    )
case(
    "lstsq_residuals",
    lambda a, b: least_squares.residuals(a, b, None),
    lambda a, b: np.linalg.lstsq(a, b)[1],
    (4, 2),
    (4, 3),
    dtypes="bilfdFD",
)

# functions of matrices ------------------------------------------------------------------------------------------------

for _name in matrix_function.NAMES:
    for _shape in [(3, 3), (2, 2, 2)] if _name == "expm" else [(3, 3)]:
        case(
            "matrix_function",
            lambda a, name=_name: matrix_function.matrix_function(name, a),
            lambda a, name=_name: getattr(scipy.linalg, name)(a),
            _shape,
            label=f"{_name}-{_shape}",
            prepare=_positive,
            dtypes="dD",
            tags=frozenset({"rounds"}),
        )


def _direction(a, e):
    return scipy.linalg.expm_frechet(a, e, compute_expm=False)


case(
    "matrix_function",
    lambda a, e: matrix_function.make(matrix_function.MATRIX_FUNCTION, (a, e), name="expm"),
    _direction,
    (3, 3),
    (3, 3),
    dtypes="dD",
    tags=frozenset({"rounds"}),
)

# gaps between eigenvalues ---------------------------------------------------------------------------------------------


def _gaps(a):
    values = np.sort(a, axis=-1)
    differences = values[..., None, :] - values[..., :, None]
    eye = np.eye(a.shape[-1], dtype=bool)
    return np.where(eye | (np.abs(differences) > 1e-6), np.where(eye, 1, differences), 0).astype(a.dtype)


for _shape in [(4,), (2, 3)]:
    case(
        "resolved",
        gaps.gaps_between,
        _gaps,
        _shape,
        dtypes="fd",
        prepare=lambda a: (np.sort(np.concatenate([a[..., :-1], a[..., :1]], axis=-1), axis=-1),),
        derivative=False,
    )
case(
    "over_gaps",
    lambda x, y: gaps.over(x, y, "these"),
    np.divide,
    (3, 3),
    (3, 3),
    dtypes="fdFD",
    prepare=lambda x, y: (x, y + 4),
)
case(
    "resolved",
    gaps.gaps_between,
    _gaps,
    (4,),
    label="apart",
    dtypes="d",
    prepare=lambda a: (np.sort(a) + np.arange(4),),
)
case(
    "over_gaps",
    lambda x, y: gaps.over(x, y, "these"),
    lambda x, _y: x * 0,
    np.zeros(3),
    np.zeros(3),
    label="none",
    dtypes="d",
    derivative=False,
)
