"""Where nodes came from."""

import sys
import threading

from tensormagic.ir import site
from tensormagic.ops.leaf import constant


def test_threads_say_where_one_node_came_from():
    node, errors = constant(3.5), []
    node.sites = None  # an equal number of another test may have some

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


def test_a_node_that_many_functions_share_keeps_the_last_of_its_places():
    node, other = constant(4.5), constant(5.5)
    node.sites = other.sites = None
    places = [site.Site(f"f{k}.py", 0, 1, 0, 1, 2) for k in range(2 * site.MOST)]
    for place in (*places, places[site.MOST]):
        site.record(node, place)
    assert set(site.of(node)) == set(places[site.MOST :])
    site.copy(other, node)
    site.record(other, places[0])
    assert set(site.of(other)) == {*places[site.MOST + 1 :], places[site.MOST], places[0]} - {places[site.MOST + 1]}
    site.record(other, site.Site("In[1]", 3, 1))
    site.record(other, site.Site("In[1]", 4, 1))
    assert {s.run for s in site.of(other) if s.cell == "In[1]"} == {4}
