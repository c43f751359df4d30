"""Results that are parts of arguments, from places that data decide, are NumPy's views; sizes that are keys are numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensormagic as tm


def _inner(x: Any) -> Any:
    ok = np.flatnonzero(x > 1)
    return x[ok[0] : ok[-1] + 1]


def _stored(x: Any) -> Any:
    part = x[(x > 1).sum() :]
    part *= 2
    return part


PARTS = {
    "ends": lambda x: x[: (x > 1).sum()],
    "begins": lambda x: x[(x > 1).sum() :],
    "from behind": lambda x: x[-(x > 1).sum() :],
    "backwards": lambda x: x[: np.searchsorted(x, 2.5)][::-1],
    "inner": _inner,
    "columns": lambda x: x.reshape(2, -1)[:, (x > 1).sum() - 2 :],
    "stored into": _stored,
    "trim_zeros": np.trim_zeros,
    "trim_zeros of the front": lambda x: np.trim_zeros(x, "f"),
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("beside", [False, True])
def test_a_part_whose_bounds_data_decide_is_a_view(name: str, beside: bool):
    part = PARTS[name]

    def f(x: Any) -> Any:
        return (part(x), x.sum()) if beside else part(x)

    captured = tm.tensor(f)
    for k in range(3):
        own, plain = (np.array([0.0, 0.0, 1.5 + k, 3.0, 4.0, 0.0]) for _ in range(2))
        got, want = (g[0] if beside else g for g in (captured(own), f(plain)))
        assert type(got) is np.ndarray
        np.testing.assert_array_equal(got, want)
        assert np.shares_memory(got, own)
        got[:], want[:] = 7.0, 7.0
        np.testing.assert_array_equal(own, plain)


def test_two_parts_between_which_data_decide():
    def f(x: Any, v: float) -> Any:
        k = np.searchsorted(x, v)
        return x[:k], x[k:]

    captured = tm.tensor(f)
    for k in range(4):
        x = np.arange(5.0)
        left, right = captured(x, k + 0.5)
        left[:], right[:] = -1.0, 1.0
        assert x.tolist() == [-1.0] * (k + 1) + [1.0] * (4 - k)


def test_parts_of_data_are_captured_once(monkeypatch: pytest.MonkeyPatch):
    from tensormagic.functions.calls.specialised import Specialised

    traces, usual = [0], Specialised.specialise

    def counted(self: Any, *args: Any) -> Any:
        traces[0] += 1
        return usual(self, *args)

    monkeypatch.setattr(Specialised, "specialise", counted)
    captured = tm.tensor(lambda x: (x[: (x > 1).sum()],))
    for _ in range(5):
        captured(np.arange(5.0))
    assert traces == [1]


def test_sizes_that_are_keys_are_numbers():
    seen: dict[Any, int] = {}
    sizes: set[int] = set()

    def f(x: Any) -> Any:
        seen[len(x)] = seen.get(len(x), 0) + 1
        sizes.add(x.shape[0])
        return {len(x): x.sum(), (len(x), 1): 2}, {x.size}, x * seen[len(x)]

    captured = tm.tensor(f)
    for k in range(6):
        found, own, _ = captured(np.ones(3 + k % 2))
        assert [type(v) for v in (*found, *own, *seen, *sizes) if type(v) is not tuple] == [int] * (
            2 + len(seen) + len(sizes)
        )
        assert [*map(type, [*found][1])] == [int, int]
    assert seen == {3: 3, 4: 3}


@pytest.mark.parametrize("kind", [complex, np.complex128, np.complex64])
def test_products_of_complex_numbers_have_the_bits_that_numbers_have(kind: Any):
    captured = tm.tensor(lambda z: (z * z.conjugate(), z * z, z * (2 + z)))
    for z in (kind(3e-9 + 1e-10j), kind(0.3 - 0.7j), kind(1e10 + 3j)):
        want = z * z.conjugate(), z * z, z * (2 + z)
        with tm.config.using(math="exact"):
            got = captured(z)
        assert [(type(v), repr(v)) for v in got] == [(type(v), repr(v)) for v in want]
