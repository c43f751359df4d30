"""How many have an object, on whichever Python: what memory is lent or taken again by."""

from __future__ import annotations

import numpy as np

from tensormagic.backend.running.buffers import Pool
from tensormagic.ir.counting import ONE, count


def test_each_holder_counts_once() -> None:
    mine = [object()]
    assert count(mine) == ONE
    for number in range(1, 4):
        others = [mine[0]] * number
        assert count(mine) == ONE + number
        del others
    one = mine[0]
    assert count(mine) == ONE + 1
    assert one is mine[0]


def test_memory_that_somebody_has_is_not_taken_again() -> None:
    pool, held, places = Pool(), [], set()
    for number in range(8):
        array = pool.take((20_000,), np.dtype(float))
        array[:] = number
        places.add(array.ctypes.data)
        held.append(array[number:] if number % 2 else array)
        del array
    assert [part[0] for part in held] == list(range(8))
    assert len(places) == 8
    held.clear()
    assert pool.take((20_000,), np.dtype(float)).ctypes.data in places
