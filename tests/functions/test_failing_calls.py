"""``try`` around calls of NumPy that fail on some data: each way is what Python does, with derivatives, on both tiers."""

import contextlib

import numpy as np
import pytest

import tensormagic as tm

EYE = np.eye(3)
GOOD = 2 * EYE + 0.1
SINGULAR = np.ones((3, 3))
INDEFINITE = np.diag([1.0, -1.0, 2.0]) + 0.1
SLIGHTLY = SINGULAR - 1e-5 * EYE
MATRICES = [GOOD, SINGULAR, INDEFINITE, SLIGHTLY, GOOD * 2, -GOOD, np.full((3, 3), np.nan)]


def _flagged(a):
    try:
        factor = np.linalg.cholesky(a)
        works = True
    except np.linalg.LinAlgError:
        factor, works = np.zeros_like(a), False
    return factor, works


def _jitter(a):
    jitter = 1e-6
    for _ in range(7):
        try:
            return np.linalg.cholesky(a + jitter * np.eye(3)), jitter
        except np.linalg.LinAlgError:
            jitter *= 10
    raise ValueError("not positive definite, even with jitter")


def _while(a):
    shift, count = 0.0, 0
    while count < 6:
        try:
            factor = np.linalg.cholesky(a + shift * np.eye(len(a)))
            break
        except np.linalg.LinAlgError as error:
            shift = max(2 * shift, 0.5)
            text = str(error)
            count += 1
    else:
        return None, text
    return factor @ factor.T, count


def _solve(a):
    b = np.arange(3.0)
    try:
        x = np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        x = np.linalg.pinv(a) @ b if np.isfinite(a).all() else b
    else:
        x = x + 1
    finally:
        b = b * 2
    return x, b


def _suppressed(a):
    inverse = np.zeros((3, 3))
    with contextlib.suppress(np.linalg.LinAlgError):
        inverse = np.linalg.inv(a)
    return inverse.sum()


def _inner(a):
    return np.linalg.eigvalsh(a), np.linalg.inv(a)


def _called(a):
    try:
        values, inverse = _inner(a)
    except (ValueError, ZeroDivisionError):  # which LinAlgError is one of
        return "failed"
    return values.max() * inverse.trace()


def _two(a):
    found = []
    for k in range(3):
        try:
            found.append(np.linalg.inv(a - k * np.eye(3)).sum())
        except np.linalg.LinAlgError:
            found.append(-1.0)
    return found


def _again(a):
    try:
        return np.linalg.cholesky(a)
    except np.linalg.LinAlgError as error:
        raise RuntimeError(f"cannot factor: {error}") from error


def _wrong_class(a):
    try:
        return np.linalg.inv(a)
    except KeyError:
        return a


FUNCTIONS = [_flagged, _jitter, _while, _solve, _suppressed, _called, _two, _again, _wrong_class]


def outcome(call, *args):
    """What a call gives, or its error."""
    try:
        return call(*args)
    except (ValueError, RuntimeError) as error:
        return type(error).__name__, str(error), type(error.__cause__)


def same(ours, theirs):
    """Whether two results are the same, to rounding."""
    if isinstance(theirs, tuple | list):
        return type(ours) is type(theirs) and len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, np.ndarray | np.generic | float):
        return type(ours) is type(theirs) and np.allclose(ours, theirs, rtol=1e-9, atol=1e-12, equal_nan=True)
    return ours == theirs and type(ours) is type(theirs)


@pytest.mark.parametrize("fun", FUNCTIONS, ids=lambda f: f.__name__[1:])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_each_way_is_pythons(fun, tier):
    if tier == "numba" and fun in {_two, _while, _again, _wrong_class}:
        pytest.skip("the same calls as in the others")
    ours = tm.tensor(fun)
    for matrix in (*MATRICES, *reversed(MATRICES)):
        assert same(outcome(ours, matrix), outcome(fun, matrix))


@pytest.mark.parametrize("matrix", [GOOD, INDEFINITE])
def test_derivatives_go_the_way_that_the_call_goes(matrix):
    def loss(a):
        try:
            return np.linalg.cholesky(a)[2, 2] ** 2
        except np.linalg.LinAlgError:
            return (a**3).sum()

    expected = tm.grad((lambda a: np.linalg.cholesky(a)[2, 2] ** 2) if matrix is GOOD else lambda a: (a**3).sum())
    for _ in range(2):
        np.testing.assert_allclose(tm.grad(loss)(matrix), expected(matrix), rtol=1e-12)
    moved = tm.jvp(loss, (matrix,), (SINGULAR,))[1]
    np.testing.assert_allclose(moved, expected(matrix).sum(), rtol=1e-12)
    (curved,) = tm.hvp(loss, (matrix,), (SINGULAR,))
    np.testing.assert_allclose(curved, tm.jvp(expected, (matrix,), (SINGULAR,))[1], rtol=1e-9)


def test_a_batch_whose_elements_may_differ_is_refused():
    with pytest.raises(tm.CaptureError, match="may differ between the elements of a batch"):
        tm.vmap(lambda a: _flagged(a)[0])(np.stack([GOOD, INDEFINITE]))


def test_what_is_compiled_for_types_says_that_it_goes_another_way():
    compiled = tm.compile(lambda a: _flagged(a)[0], GOOD)
    np.testing.assert_allclose(compiled.run(GOOD), np.linalg.cholesky(GOOD))
    with pytest.raises(tm.TensorError, match="a `try`"):
        compiled.run(INDEFINITE)


def _reports(x):
    print("mean", x.mean())
    if x.sum() > 5:
        raise ValueError(f"too much: {x.sum()}")
    return "fine"


def _raises_again(a):
    try:
        return 1 / a
    except ZeroDivisionError:
        raise ValueError("zero") from None


def test_what_another_call_has_caught_is_not_raised_again():
    ours = tm.tensor(_raises_again)
    for a in (2.0, 0.0, 4.0, 0.0, 2.0):
        assert outcome(ours, a) == outcome(_raises_again, a)


def test_a_function_that_only_prints_and_checks(capsys):
    ours = tm.tensor(_reports)
    for x in (np.arange(3.0), np.arange(4.0), np.arange(3.0), np.arange(3.0) + 0.5):
        printed = [(outcome(call, x), capsys.readouterr().out) for call in (ours, _reports)]
        assert printed[0] == printed[1]
