"""The pool of memory: what it hands out can be written to."""

import numpy as np

from tensormagic.backend.buffers import Pool


def test_a_block_that_was_made_read_only_is_handed_out_writeable():
    pool = Pool()
    first = pool.take((1000,), np.dtype("f8"))
    first.base.flags.writeable = False
    address = first.ctypes.data
    del first
    again = pool.take((1000,), np.dtype("f8"))
    assert again.ctypes.data == address
    assert again.flags.writeable
    again[:] = 1.0
    assert again.sum() == 1000.0
