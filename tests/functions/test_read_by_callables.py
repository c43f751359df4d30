"""State that is read by callables of the standard library, whose code names it nowhere: changed between calls, and followed."""

import abc
import functools
import operator
import types

import numpy as np
import pytest

import tensormagic as tm


class Thing:
    def __init__(self, z):
        self.z = z
        self.inner = types.SimpleNamespace(z=z)

    def times(self, by):
        return self.z * by


thing = Thing(2.0)
whole = operator.attrgetter("inner.z")
two = operator.attrgetter("z", "inner.z")
call = operator.methodcaller("times", 3.0)
first = operator.itemgetter("rate")
options = {"rate": 0.5}
space = types.SimpleNamespace(rate=1.0, name="a")
table = {"pick": operator.attrgetter("z")}


@functools.singledispatch
def factor(value):
    return 1.0


class Kind(metaclass=abc.ABCMeta):  # noqa: B024 (others register theirs)
    pass


class Below(Kind):
    pass


def scale():
    """One word."""


def with_whole(x):
    return x * whole(thing)


def with_two(x):
    a, b = two(thing)
    return x * a + b


def with_call(x):
    return x * call(thing)


def with_item(x):
    return x * first(options)


def with_kept(x):
    return x * table["pick"](thing)


def with_given(x, get=operator.attrgetter("z")):
    return x * get(thing)


def dispatched(x):
    return x * factor(thing)


def dispatched_by_method(x):
    return x * factor.dispatch(Thing)(thing)


def of_kind(x):
    return x * 2 if isinstance(thing, Kind) else x


def below_kind(x):
    return x * 3 if issubclass(Thing, Below) else x


def by_repr(x):
    return x * len(repr(space))


def by_text(x):
    return x * len(f"{space} {space.name}")


def by_format(x):
    return x * len("{}".format(space))  # noqa: UP032 (it is what is tested)


def by_name(x):
    return x * len(scale.__name__)


def by_doc(x):
    return x * len(scale.__doc__)


def by_qualname(x):
    return x * len(f"{scale.__qualname__}")


def change_thing():
    thing.z += 1.5
    thing.inner.z *= 3


def register_factor():
    factor.register(Thing, lambda value: 7.0)


def register_kind():
    Kind.register(Thing)


def register_below():
    Below.register(Thing)


def rename():
    scale.__name__ += "_and_more"
    scale.__qualname__ += "_and_more"
    scale.__doc__ += " And more."


def change_space():
    space.rate = 100.25


PROGRAMS = {
    with_whole: change_thing,
    with_two: change_thing,
    with_call: change_thing,
    with_item: lambda: options.update(rate=options["rate"] + 1),
    with_kept: change_thing,
    with_given: change_thing,
    dispatched: register_factor,
    dispatched_by_method: register_factor,
    of_kind: register_kind,
    below_kind: register_below,
    by_repr: change_space,
    by_text: change_space,
    by_format: change_space,
    by_name: rename,
    by_doc: rename,
    by_qualname: rename,
}


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_what_they_read_is_followed(program):
    x = np.arange(3.0) + 1
    function = tm.tensor(program)
    space.rate = 1.0
    for _ in range(2):
        np.testing.assert_array_equal(function(x), program(x))
    PROGRAMS[program]()
    for _ in range(2):
        np.testing.assert_array_equal(function(x), program(x))


def test_a_getter_among_the_arguments():
    def of(x, get):
        return x * get(thing)

    function = tm.tensor(of)
    x = np.arange(3.0)
    for get in (operator.attrgetter("z"), operator.attrgetter("inner.z"), operator.methodcaller("times", 2.0)):
        for _ in range(2):
            np.testing.assert_array_equal(function(x, get), of(x, get))
            change_thing()
            np.testing.assert_array_equal(function(x, get), of(x, get))
