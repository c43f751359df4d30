"""Calls that end as Python's: what no graph holds, what is found when the graph runs, and errors of our own code."""

import array
from pathlib import Path

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture.library import choosing

pytestmark = pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
X = np.array([3.0, np.nan, 1.0])


def stores(x):
    x[0] = 5.0
    return np.sort(x), x.dtype


def in_order(x):
    return sorted(x), sorted([x[2], x[0], x[1]], reverse=True)


def smallest(x):
    return min(x), max([float(v) for v in x]), min(x.tolist(), key=lambda v: -v)


def local_names(x):
    y = x.sum()
    return "{y} {x}".format(**locals())


def local_names_in_a_loop(x):
    found = []
    for k in range(2):
        y = x[k]
        found.append("%(k)d %(y)s" % locals())  # noqa: UP031 (it is what is tested)
    return found


def array_of_its_own(x):
    a = array.array("d", [0.0, 0.0])
    a[0] = x[0]
    a.append(x[2])
    return a


def array_in_a_loop(x):
    a = array.array("d")
    for v in x:
        if v > 1:
            a.append(v)
    return a, len(a)


def a_part_of_a_list(x):
    v = [1.0, 2.0, 3.0]
    v[:] = [e * x[0] for e in v if e * x[0] > 4]
    return v


def a_part_of_a_list_in_a_branch(x):
    v = [1.0, 2.0, 3.0]
    if x[0] > 2:
        v[1:] = [e for e in x if e > 0]
    return v


def stored_into_meanwhile(x):
    y = x[::-1]
    try:
        if x[0] > 0:
            return y[1:] if x[0] > 1 else x[:2]
        return x.copy()
    finally:
        x[2] += 1


PROGRAMS = [
    stores, in_order, smallest, local_names, local_names_in_a_loop, array_of_its_own, array_in_a_loop, a_part_of_a_list,
    a_part_of_a_list_in_a_branch, stored_into_meanwhile,
]  # fmt: skip
KINDS = {"native": X, "swapped": X.astype(">f8"), "small and swapped": X.astype(">f4"), "long": X.astype(np.longdouble)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_the_result_is_pythons(program, kind):
    function = tm.tensor(program)
    for scale in (1.0, 0.5, -1.0, 1.0):
        for _ in range(2):
            one, other = KINDS[kind] * scale, KINDS[kind] * scale
            one, other = one.astype(KINDS[kind].dtype), other.astype(KINDS[kind].dtype)
            assert repr(function(other)) == repr(program(one))
            assert repr(other) == repr(one)


def test_an_array_of_pythons_that_is_given_is_changed_once():
    def add(x, a):
        a.append(1.0)
        for k in range(2):
            a[k] = x[k] * 2
        return sum(a)

    x = np.array([1.0, 2.0])
    one, other = array.array("d", [5.0, 6.0]), array.array("d", [5.0, 6.0])
    for _ in range(3):
        assert tm.tensor(add)(x, other) == add(x, one)
        assert other == one


def test_so_are_bytes():
    def put(x, held):
        held.append(7)
        held[0] = int(x[0])
        return len(held)

    x = np.array([1.0, 2.0])
    one, other = bytearray(b"abc"), bytearray(b"abc")
    for _ in range(3):
        assert tm.tensor(put)(x, other) == put(x, one)
        assert other == one


@pytest.mark.parametrize("kind", ["swapped", "long"])
def test_derivatives_and_compiled_code_refuse_such_arrays(kind):
    for made in (tm.grad, lambda f: lambda x: tm.compile(f, x)):
        with pytest.raises(tm.TensorError, match=r"byte-swapped|not supported"):
            made(lambda x: (x**2).sum())(KINDS[kind])


def test_derivatives_refuse_what_has_no_length():
    with pytest.raises(tm.CaptureError, match="grows a data-dependent number of times"):
        tm.grad(lambda x: sum(a_part_of_a_list(x)))(np.ones(3))


def _broken(text):
    """A function of such a text, in a file of this package."""
    space = {}
    exec(
        compile(f"def broken(*_args, **_options):\n    {text}", str(Path(tm.__file__).parent / "broken.py"), "exec"),
        space,
    )
    return space["broken"]


@pytest.mark.parametrize(
    "text",
    [
        "(None).missing",
        "assert not _args",
        "len(None)",
        "{}['ours']",
    ],
)
def test_an_error_of_our_own_code_leaves_the_call_to_python(text, monkeypatch):
    monkeypatch.setattr(choosing, "_clipped", _broken(text))
    function = tm.tensor(lambda x: np.clip(x, 0.5, 1.5) + 1)
    x = np.arange(3.0)
    for _ in range(2):
        np.testing.assert_array_equal(function(x), np.clip(x, 0.5, 1.5) + 1)


@pytest.mark.parametrize("text", ["(None).missing", "assert not _args"])
def test_and_derivatives_tell_it_as_a_refusal(text, monkeypatch):
    monkeypatch.setattr(choosing, "_clipped", _broken(text))
    for made in (tm.grad, lambda f: lambda x: tm.compile(f, x)):
        with pytest.raises(tm.CaptureError, match="has code that is not captured"):
            made(lambda x: np.clip(x, 0.5, 1.5).sum())(np.arange(3.0))
