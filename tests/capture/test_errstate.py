"""What NumPy is asked to do about floating-point errors, as it is asked at every moment."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture.errors import errstate


def test_is_what_numpy_says_after_each_change():
    assert errstate.asked() == np.geterr()
    with np.errstate(divide="raise"):
        assert errstate.raises()
        assert errstate.asked() == np.geterr()
        with np.errstate(all="ignore"):
            assert not errstate.raises()
        assert errstate.raises()
    before = np.seterr(over="raise")
    try:
        assert errstate.raises()
        found: list[bool] = []
        thread = threading.Thread(target=lambda: found.append(errstate.raises()))
        thread.start()
        thread.join()
        assert found == ["raise" in before.values()]  # a thread has settings of its own
    finally:
        np.seterr(**before)
    assert errstate.asked() == np.geterr()


def test_machine_code_that_fails_says_what_the_long_path_says():
    take = tm.tensor(lambda x, k: x[k[0]] * 2.0)
    x = np.arange(4.0)
    with tm.config.using(tier="numba"):
        for _ in range(2):
            assert take(x, np.array([3])) == 6.0
        for _ in range(2):
            with pytest.raises(IndexError, match="4"):
                take(x, np.array([4]))
        assert take(x, np.array([1])) == 2.0


def test_a_compiled_function_takes_arrays_of_shapes_that_it_has_seen_and_others():
    double = tm.compile(lambda x: x * 2.0, "float64[n]")
    for n in (3, 4, 3, 4):
        assert np.array_equal(double.run(np.arange(float(n))), np.arange(float(n)) * 2)
    both = tm.compile(lambda p, k: {"a": p[0] * k, "b": p[1]}, [np.ones(3), np.ones(2)], 2)
    for _ in range(2):
        found = both.run([np.ones(3), np.zeros(2)], 2)
        assert found["a"].tolist() == [2.0] * 3
        assert found["b"].tolist() == [0.0] * 2
    with pytest.raises(tm.GuardError):
        double.run(np.arange(3))


def test_without_numpys_own_variable_it_is_asked_each_time(monkeypatch):
    monkeypatch.setattr(errstate, "_settings", lambda: None)
    monkeypatch.setattr(errstate, "_last", (None, {}, False))
    for how in ("raise", "ignore", "warn"):
        with np.errstate(divide=how):
            assert errstate.asked() == np.geterr()
            assert errstate.raises() is ("raise" in np.geterr().values())
