"""The pool of memory: what it hands out can be written to."""

from threading import Thread

import numpy as np

from tensormagic.backend.running import buffers
from tensormagic.backend.running.buffers import Pool

F8 = np.dtype("f8")


def test_a_block_that_was_made_read_only_is_handed_out_writeable():
    pool = Pool()
    first = pool.take((1000,), F8)
    first.base.flags.writeable = False
    address = first.ctypes.data
    del first
    again = pool.take((1000,), F8)
    assert again.ctypes.data == address
    assert again.flags.writeable
    again[:] = 1.0
    assert again.sum() == 1000.0


def test_what_somebody_keeps_is_not_handed_out_and_few_blocks_of_a_size_are_looked_at():
    pool = Pool()
    kept = [pool.take((1000,), F8) for _ in range(3 * buffers._ALIKE)]
    assert len({a.ctypes.data for a in kept}) == len(kept)
    assert [len(blocks) for blocks in pool._blocks.values()] == [buffers._ALIKE]
    views = [a[5:7] for a in kept]
    kept.clear()
    assert pool.take((1000,), F8).ctypes.data + 40 not in {v.ctypes.data for v in views}
    views.clear()
    found = {pool.take((1000,), F8).ctypes.data for _ in range(3)}
    assert len(found) == 1


def test_sizes_that_are_not_asked_for_any_more_are_forgotten_first(monkeypatch):
    monkeypatch.setattr(buffers, "MOST_BYTES", 79_999)
    pool = Pool()
    for size in (1000, 2000, 3000, 2000, 4000, 4000):
        pool.take((size,), F8)
    assert list(pool._blocks) == [8 * 2000, 8 * 3000, 8 * 4000]
    big = pool.take((6000,), F8)  # over half of what is kept: not from the pool
    assert big.base is None


def test_threads_have_blocks_of_their_own():
    pool, wrong = Pool(), []

    def work(number: int) -> None:
        for _ in range(2000):
            array = pool.take((64,), F8)
            array[:] = number
            if not (array == number).all():
                wrong.append(number)

    threads = [Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
