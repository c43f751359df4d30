"""Values that a call keeps in objects and gives back, too: both hold numbers and arrays, whatever holds them."""

from collections import defaultdict, deque

import numpy as np
import pytest

import tensormagic as tm


class Holder:
    """What a call keeps values in."""

    def __init__(self):
        self.kept = []

    def __repr__(self):
        return f"{type(self).__name__}({vars(self)})"


class Layer:
    """A layer whose backward pass names its attributes by texts."""

    def __init__(self):
        self.W, self.b = np.ones((3, 2)), np.zeros(2)

    def __repr__(self):
        return f"Layer({vars(self)})"


class Net:
    """A net of one layer, which learns."""

    def __init__(self):
        self.layers = [Layer()]

    def step(self, x):
        for layer in self.layers:
            layer.x = x
            h = x @ layer.W + layer.b
        g = h * 2
        for layer in reversed(self.layers):
            layer.dW, layer.db = layer.x.T @ g, g.sum(0)
        for layer in self.layers:
            for name in ("W", "b"):
                setattr(layer, name, getattr(layer, name) - 0.1 * getattr(layer, "d" + name))
        return h.sum()


def _grouped(d, x):
    d["a"].append(x.sum())
    return dict(d)


def _last(d, x):
    d["last"] = x.sum()
    return dict(d)


def _together(o, x):
    o.new = [x.sum()]
    return {"new": o.new, "kept": x * 2}


def _record(o, x):
    found = {"v": x * 2, "n": x.sum()}
    o.kept.append(found)
    return found


def _queue(d, x):
    found = {"v": x * 2}
    d.append(found)
    return found, found["v"]


@pytest.mark.parametrize(
    ("fun", "made"),
    [
        (_grouped, lambda: defaultdict(list)),
        (_last, lambda: defaultdict(float)),
        (_together, Holder),
        (_record, Holder),
        (_queue, lambda: deque(maxlen=3)),
        (_queue, list),
    ],
)
def test_both_are_of_values(fun, made):
    ours, theirs, captured = made(), made(), tm.tensor(fun)
    for k in range(3):
        x = np.arange(2.0) + k
        assert repr(captured(ours, x)) == repr(fun(theirs, x))
        assert repr(ours) == repr(theirs)


def _listed(o, x):
    found = [x * 2, {"n": x.sum()}]
    o.kept.append(found)
    o.last = found[1]
    return found, {"inner": found[1]}


@pytest.mark.parametrize("fun", [_record, _listed])
def test_what_is_kept_and_given_is_one_object(fun):
    ours, captured = Holder(), tm.tensor(fun)
    for _ in range(3):
        given = captured(ours, np.arange(2.0))
        assert ours.kept[-1] is (given[0] if fun is _listed else given)
        if fun is _listed:
            assert ours.last is given[0][1] is given[1]["inner"]


def test_attributes_named_by_texts_are_arrays():
    ours, theirs = Net(), Net()
    step = tm.tensor(ours.step)
    for k in range(3):
        x = np.arange(12.0).reshape(4, 3) / (k + 9)
        np.testing.assert_allclose(step(x), theirs.step(x), rtol=1e-12)
        for name, value in vars(theirs.layers[0]).items():
            held = getattr(ours.layers[0], name)
            assert type(held) is np.ndarray
            np.testing.assert_allclose(held, value, rtol=1e-12)


def _differences(x):
    slope = np.zeros_like(x)
    for index, value in np.ndenumerate(x):
        x[index] = value + 1e-3
        above = (x**3).sum()
        x[index] = value - 1e-3
        slope[index] = (above - (x**3).sum()) / 2e-3
        x[index] = value
    return slope


def test_pairs_of_index_and_element():
    for x in (np.arange(4.0).reshape(2, 2), np.arange(3.0)):
        np.testing.assert_allclose(tm.tensor(_differences)(x), _differences(x), rtol=1e-9)
    with pytest.raises(tm.CaptureError, match=r"np\.ndindex"):
        tm.tensor(lambda x: sum(v for v in np.nditer(x))).graph(np.arange(3.0))
