"""What texts, comparisons and abstract classes read of objects, without a name in the code: changed between calls, and followed."""

import argparse
import collections
import collections.abc
import dataclasses
import functools
import numbers
import types
from collections.abc import Sized

import numpy as np
import pytest

import tensormagic as tm


class Derived(types.SimpleNamespace):
    pass


class Mixed(types.SimpleNamespace):
    def scaled(self, x):
        return x * len("%r" % (self,))  # noqa: UP031 (it is what is tested)


@dataclasses.dataclass
class Pair:
    left: float
    right: object


inner = types.SimpleNamespace(depth=1)
space = types.SimpleNamespace(rate=1.0, inner=inner)
other = types.SimpleNamespace(rate=2.0, inner=inner)
derived = Derived(rate=1.0)
mixed = Mixed(rate=1.0)
parsed = argparse.Namespace(rate=1.0)
held = [space]
table = {"space": space}
pair = Pair(1.0, space)
part = functools.partial(max, space)
PATTERN = "%s"


def by_percent(x):
    return x * len("%r" % (space,))  # noqa: UP031 (it is what is tested)


def by_percent_alone(x):
    return x * len("%s" % space)  # noqa: UP031 (it is what is tested)


def by_pattern(x):
    return x * len(PATTERN % space)


def by_percent_in_place(x):
    text = "a %s"
    text %= held
    return x * len(text)


def by_helper(x):
    return x * len(shown("%s", space))


def shown(pattern, value):
    return pattern % (value,)


def by_list(x):
    return x * len("%s" % held)  # noqa: UP031 (it is what is tested)


def by_dictionary(x):
    return x * len("%(space)s" % table)  # noqa: UP031 (it is what is tested)


def by_dataclass(x):
    return x * len("%s" % pair)  # noqa: UP031 (it is what is tested)


def by_derived(x):
    return x * len(f"{derived}")


def by_method(x):
    return mixed.scaled(x)


def by_parsed(x):
    return x * len("%s" % parsed)  # noqa: UP031 (it is what is tested)


def by_partial(x):
    return x * len("%s" % part)  # noqa: UP031 (it is what is tested)


def by_dunder(x):
    return x * len(space.__repr__())


def by_str_dunder(x):
    return x * len(held.__str__())


def by_format_map(x):
    return x * len("{space}".format_map(table))


def by_equality(x):
    return x * 2 if space == other else x * 3


def by_inequality(x):
    return x * 2 if held != [other] else x * 3


def by_membership(x):
    return x * 2 if other in held else x * 3


def by_count(x):
    return x * (1 + held.count(other))


def in_a_loop(x):
    total = 0.0
    for v in x:
        total += v * len("%s" % space)  # noqa: UP031 (it is what is tested)
    return total


def in_a_branch(x):
    return x * len("%s" % space) if x.sum() > 0 else x  # noqa: UP031 (it is what is tested)


PROGRAMS = [
    by_percent, by_percent_alone, by_pattern, by_percent_in_place, by_helper, by_list, by_dictionary, by_dataclass, by_derived, by_method,
    by_parsed, by_partial, by_dunder, by_str_dunder, by_format_map, by_equality, by_inequality, by_membership, by_count, in_a_loop,
    in_a_branch,
]  # fmt: skip
RATES = [1.0, 1.0, 20.0, 2.0, 2.0, 1.0, 3000.0]


def change(rate):
    for one in (space, derived, mixed, parsed):
        one.rate = rate
    inner.depth = int(rate)


@pytest.fixture(autouse=True)
def _as_before():
    yield
    change(1.0)


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_what_is_read_as_a_whole_is_followed(program):
    x = np.arange(3.0) + 1
    function = tm.tensor(program)
    for rate in RATES:
        change(rate)
        np.testing.assert_array_equal(function(x), program(x))


@pytest.mark.parametrize("program", [by_percent, by_pattern, by_list, by_derived, by_equality, in_a_loop])
def test_and_in_a_gradient(program):
    x = np.arange(3.0) + 1
    gradient = tm.grad(lambda x: program(x).sum())
    for rate in RATES:
        change(rate)
        at_one = program(np.ones(3))
        np.testing.assert_allclose(gradient(x), np.broadcast_to(np.sum(at_one) / 3, 3))


class One:
    def __len__(self):
        return 1


class Two:
    pass


class Three:
    pass


class Four:
    pass


def of_a_module(x):
    return x * 2 if isinstance(one_of[0], collections.abc.Sequence) else x * 3


def of_a_name(x):
    return x * 2 if issubclass(Two, Sized) else x * 3


def of_numbers(x):
    match one_of[2]:
        case numbers.Number():
            return x * 2
    return x * 3


def of_several(x):
    return x * 2 if isinstance(one_of[3], (collections.abc.Mapping, collections.abc.Set)) else x * 3


def of_a_loop(x):
    total = 0.0
    for v in x:
        total = total + (v if isinstance(one_of[4], numbers.Real) else -v)
    return total


one_of = [One(), Two(), Three(), Four(), Four()]
REGISTERED = {
    of_a_module: lambda: collections.abc.Sequence.register(One),
    of_a_name: lambda: Sized.register(Two),
    of_numbers: lambda: numbers.Number.register(Three),
    of_several: lambda: collections.abc.Set.register(Four),
    of_a_loop: lambda: numbers.Real.register(Four),
}


@pytest.mark.parametrize("program", REGISTERED, ids=lambda p: p.__name__)
def test_what_is_registered_with_pythons_abstract_classes_later(program):
    x = np.arange(3.0) + 1
    function, gradient = tm.tensor(program), tm.grad(lambda x: program(x).sum())
    for _ in range(3):
        np.testing.assert_array_equal(function(x), program(x))
        np.testing.assert_array_equal(gradient(x), np.broadcast_to(program(np.ones(3)).sum() / 3, 3))
    before = program(x)
    REGISTERED[program]()
    assert not np.array_equal(before, program(x))
    for _ in range(3):
        np.testing.assert_array_equal(function(x), program(x))
        np.testing.assert_array_equal(gradient(x), np.broadcast_to(program(np.ones(3)).sum() / 3, 3))


class Sizes:
    """An integer, and a sequence."""

    def __index__(self):
        return 2

    def __len__(self):
        return 1

    def __iter__(self):
        return iter((3,))

    def __getitem__(self, k):
        return (3,)[k]


class Iterable:
    """An integer, and what is gone over."""

    def __index__(self):
        return 2

    def __iter__(self):
        return iter((3,))


SHAPES = {
    "zeros": lambda x, n: np.zeros(n) + x[0],
    "full": lambda x, n: np.full(n, x[1]),
    "tile": lambda x, n: np.tile(x, n),
    "broadcast": lambda x, n: np.broadcast_to(x[1], n),
    "resize": lambda x, n: np.resize(x, n),
    "repeat": lambda x, n: np.repeat(x, n),
    "an index": lambda x, n: x[n],
    "draws": lambda x, n: x[0] + np.random.default_rng(3).random(n),
    "within a tuple": lambda x, n: np.zeros((n, 2)) + x[0],
}


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
@pytest.mark.parametrize("kind", [Sizes, Iterable])
@pytest.mark.parametrize("name", SHAPES)
def test_an_integer_that_is_a_sequence_too(name, kind):
    program, x = SHAPES[name], np.arange(1.0, 5.0)
    try:
        expected = program(x, kind())
    except Exception as error:  # noqa: BLE001 (the same is raised)
        with pytest.raises(type(error)):
            tm.tensor(program)(x, kind())
        return
    for _ in range(2):
        found = tm.tensor(program)(x, kind())
        assert np.shape(found) == np.shape(expected)
        np.testing.assert_array_equal(found, expected)


class Tagged(np.ndarray):
    def __array_finalize__(self, other):
        self.tag = getattr(other, "tag", "none")


class Below(Tagged):
    pass


class Plain(np.ndarray):
    pass


def tag_of_result(x):
    return getattr(x * 2, "tag", None)


def tag_of_argument(x):
    return x + (0 if getattr(x, "tag", None) is None else len(x.tag))


def tag_of_part(x):
    return x[1:].tag


def tagged_here(x):
    return (np.asarray(x).view(Tagged) + 1).tag


def tags_of_parts(x):
    return [v.tag for v in (x, x.T, x.copy())]


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
@pytest.mark.parametrize("kind", [Tagged, Below])
@pytest.mark.parametrize("program", [tag_of_result, tag_of_argument, tag_of_part, tagged_here, tags_of_parts])
def test_attributes_that_a_class_of_arrays_sets(program, kind):
    function = tm.tensor(program)
    for tag in ("one", "one", "other"):
        x = np.arange(3.0).view(kind)
        x.tag = tag
        expected, found = program(x), function(x)
        assert type(found) is type(expected)
        np.testing.assert_array_equal(found, expected)
        assert getattr(found, "tag", None) == getattr(expected, "tag", None)


def test_derivatives_refuse_such_a_class_by_name():
    x = np.arange(3.0).view(Tagged)
    with pytest.raises(tm.TensorError, match="x is a Tagged"):
        tm.grad(lambda x: (x**2).sum())(x)
    np.testing.assert_array_equal(tm.grad(lambda x: (x**2).sum())(np.arange(3.0).view(Plain)), 2 * np.arange(3.0))
