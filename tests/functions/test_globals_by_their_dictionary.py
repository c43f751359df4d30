"""Functions that read or bind variables of their module by ``globals()``, ``exec`` or the module itself."""

from __future__ import annotations

import linecache
import sys

import numpy as np
import pytest

import tensormagic as tm

COUNT, RATE = 0, 2.0
HERE = __name__
x = np.ones(3)


def rate():
    return globals()["RATE"]


class Reader:
    def rate(self):
        look = globals
        return look()["RATE"]


READS = {
    "directly": lambda v: v * globals()["RATE"],
    "with a default": lambda v: v * globals().get("RATE", 5.0),
    "as a member": lambda v: v * (2.0 if "RATE" in globals() else 5.0),
    "by a helper": lambda v: v * rate(),
    "by a method": lambda v: v * Reader().rate(),
    "as text": lambda v: v * eval("RATE"),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_code_that_is_called_once_for_all_reads_its_own(read):
    assert tm.vmap(read)(x).tolist() == [2.0, 2.0, 2.0]
    assert tm.tensor(lambda: np.vectorize(read)(x))().tolist() == [2.0, 2.0, 2.0]


def by_item(v):
    globals()["COUNT"] += 1
    return v * 2


def by_update(v):
    space = globals()
    space.update(COUNT=space["COUNT"] + 1)
    return v * 2


def by_text(v):
    exec("global COUNT\nCOUNT += 1")
    return v * 2


def taken(v):
    return v * globals().pop("COUNT", 0)


def by_module(v):
    sys.modules[HERE].COUNT += 1
    return v * COUNT


def by_attribute(v):
    setattr(sys.modules[HERE], "COUNT", COUNT + 1)  # noqa: B010 (as people write it)
    return v * COUNT


@pytest.mark.parametrize("function", [by_item, by_update, by_text, taken, by_module, by_attribute])
@pytest.mark.parametrize("inside", [False, True])
def test_a_variable_that_is_bound_so_is_followed_or_refused(function, inside):
    space = globals()
    expected, after, refusal = [], [], ""
    for found in (expected, after):
        space["COUNT"] = 1
        captured = function if found is expected else tm.tensor((lambda v: function(v)) if inside else function)
        try:
            found += [captured(x).tolist(), space.get("COUNT")]
        except tm.CaptureError as error:
            refusal = str(error)
        finally:
            space["COUNT"] = 0
    assert after == expected or "outside of itself" in refusal


def test_a_long_function_that_is_defined_again():
    text = "def f(x, k):\n" + "".join(f"    if k == {n}: return x[{n % 3}] + {n}\n" for n in range(40))
    for k in range(2):
        space, file = {}, f"<again {k}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec"), space)
        assert tm.grad(space["f"])(x, 39).tolist() == [1.0, 0.0, 0.0]
