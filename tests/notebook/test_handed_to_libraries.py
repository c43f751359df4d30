"""Functions of earlier cells that a library calls as they are, and that store into the notebook's arrays: the cell sees the stores."""

import numpy as np
import pytest

BODY = "def {name}(v):\n    log[2] = log[2] + v\n    return v * 1.0\n"
H, H0 = BODY.format(name="h"), BODY.format(name="h0")

HANDED = {
    "nothing between": H,
    "cache": f"@functools.cache\n{H}",
    "lru_cache": f"@functools.lru_cache(maxsize=4)\n{H}",
    "vectorize": f"@np.vectorize\n{H}",
    "frompyfunc": f"{H0}h = np.frompyfunc(h0, 1, 1)\n",
    "singledispatch": f"@functools.singledispatch\n{H}",
    "partial": f"{H0}h = functools.partial(h0)\n",
    "contextmanager": (
        "@contextlib.contextmanager\ndef man(v):\n    log[2] = log[2] + v\n    yield v * 1.0\n"
        "def h(v):\n    with man(v) as q:\n        return q\n"
    ),
    "weak reference": f"{H0}q = weakref.ref(h0)\nh = lambda v: q()(v)\n",
    "read-only mapping": f"{H0}q = types.MappingProxyType({{'a': h0}})\nh = lambda v: q['a'](v)\n",
    "defaultdict": f"{H0}q = collections.defaultdict(lambda: h0)\nh = lambda v: q['z'](v)\n",
    "method that is kept": (
        "class K:\n    @functools.cached_property\n    def p(self):\n        log[2] = log[2] + 2\n        return 2.0\n"
        "k = K()\nh = lambda v: k.p\n"
    ),
    "key": f"{H0}h = lambda v: max([v], key=h0) * 1.0\n",
    "reduce": f"{H0}h = lambda v: functools.reduce(lambda a, b: h0(b), [0, v])\n",
}
CELLS = {
    "read behind it": "r = h(2) * log[2]\nprint(float(r), log)",
    "called twice": "r = h(2) + h(3)\nprint(float(r), log)",
    "branch": "x = np.arange(3.0)\nif x[1] > 0:\n    r = h(2)\nelse:\n    r = h(5)\nprint(float(r), log)",
    "loop": "x = np.arange(3.0)\ns = 0.0\nfor e in x:\n    s = s + h(4) * log[2]\nprint(float(s), log)",
    "list": "r = [float(h(i)) for i in range(3)]\nprint(r, log.sum())",
}


def outcome(notebook, definition: str, cell: str, line: str) -> tuple[str, list[float]]:
    notebook.ok("import collections, contextlib, functools, types, weakref")
    notebook["log"] = np.zeros(3)
    notebook.ok(definition)
    ran = notebook.ok(f"{line}{cell}")
    printed = [row for row in ran.out.splitlines() if "[" in row]
    return printed[0], notebook["log"].tolist()


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("between", HANDED)
def test_a_cell_sees_what_such_functions_store(notebook, between, cell):
    plain = outcome(notebook, HANDED[between], CELLS[cell], "")
    assert outcome(notebook, HANDED[between], CELLS[cell], "%%tensor\n") == plain
