"""A set of what is still alive, for several threads."""

import gc
import threading

from tensormagic.ir.alive import Alive


class _Thing:
    pass


def test_goes_over_what_was_there_when_it_began():
    alive, kept = Alive(), [_Thing() for _ in range(3)]
    for one in kept:
        alive.add(one)
    for _ in alive:
        kept.append(_Thing())
        alive.add(kept[-1])
        alive.discard(kept[0])
    assert len(list(alive)) == 5
    assert kept[0] not in alive


def test_drops_what_nobody_has():
    alive, kept = Alive(), [_Thing(), _Thing()]
    for one in kept:
        alive.add(one)
    del one
    kept.pop()
    gc.collect()
    assert list(alive) == kept
    kept.clear()
    gc.collect()
    assert not alive


def test_threads_add_while_another_goes_over_it():
    alive, kept, errors, over = Alive(), [], [], threading.Event()

    def fill():
        while not over.is_set() and len(kept) < 20_000:
            one = _Thing()  # and not the last one of the list, which may be the other thread's
            kept.append(one)
            alive.add(one)

    def read():
        try:
            for _ in range(200):
                assert all(isinstance(one, _Thing) for one in alive)
        except Exception as error:  # noqa: BLE001 (it is asserted on in the main thread)
            errors.append(error)

    threads = [*(threading.Thread(target=fill) for _ in range(2)), *(threading.Thread(target=read) for _ in range(2))]
    for t in threads:
        t.start()
    for t in threads[2:]:
        t.join()
    over.set()
    for t in threads[:2]:
        t.join()
    assert not errors
    assert len(list(alive)) == len(kept)
