"""Where nodes came from."""

import sys
import threading

from tensormagic.ir import site
from tensormagic.ops.leaf import constant


def test_threads_say_where_one_node_came_from():
    node, errors = constant(3.5), []

    def work(k):
        try:
            for i in range(500):
                site.record(node, site.Site(f"cell {k}.{i % 7}", i, 1, 0, 1, 2))
        except RuntimeError as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(interval)
    assert not errors
    assert len(site.of(node)) == 4 * 7
