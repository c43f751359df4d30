"""Live views of vectors and matrices, of functions that give arrays, of descents, and what was seen."""

from __future__ import annotations

import base64
import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest

pytest.importorskip("anywidget")
import traitlets

import tensormagic as tm
from tensormagic.functions.calls.callables import of_callable
from tensormagic.notebook.live.ranges import parameter
from tensormagic.notebook.live.sweep import Numbers, Star
from tests.notebook.live_views import unpacked

pytestmark = pytest.mark.usefixtures("by_numpy")
A = np.array([[1.0, 0.5, 0.0], [0.5, 2.0, 0.25], [0.0, 0.25, 3.0]])


def form(w):
    return w @ A @ w


def kinds(view):
    return [panel["kind"] for panel in view._picture["panels"]]


# vectors and matrices -------------------------------------------------------------------------------------------------


def test_a_vector_of_three_is_columns_with_its_gradient(shown):
    view = shown(form, w=(-np.ones(3), np.ones(3)))
    assert kinds(view) == ["columns", "history"]
    assert view._scene["sliders"] == []
    view.w = [0.5, -1, 0.25]
    assert view.value == form(np.array([0.5, -1, 0.25]))
    np.testing.assert_allclose(view.gradient["w"], 2 * A @ [0.5, -1, 0.25], rtol=1e-14)
    root = ET.fromstring(view.svg())
    assert sum(e.get("class") == "value" for e in root.iter()) == 3
    tall = [float(e.get("height")) for e in root.iter() if e.get("class") == "bar"]
    up = [float(e.get("y")) < 204 for e in root.iter() if e.get("class") == "bar"]
    assert np.argmax(tall) == 1
    assert up == [False, False, True]


def test_a_matrix_is_cells_and_its_trait_has_rows(shown):
    view = shown(lambda W: np.sum(W**3), W=(-np.ones((2, 3)), np.ones((2, 3)), 0.25))
    assert kinds(view) == ["cells", "history"]
    assert view._scene["spans"][4]["label"] == "W[1, 1]"
    assert view._scene["spans"][4]["index"] == (1, 1)
    view.W = np.arange(6.0).reshape(2, 3) / 8
    assert view.W[1] == [0.375, 0.5, 0.625]
    np.testing.assert_allclose(view.gradient["W"], 3 * (np.arange(6.0).reshape(2, 3) / 8) ** 2, rtol=1e-14)
    with pytest.raises(traitlets.TraitError, match=r"W has shape \(2, 3\), and this has 6 numbers"):
        view.W = np.zeros(6)
    with pytest.raises(traitlets.TraitError, match="array of numbers"):
        view.W = "no"
    negative = [e for e in ET.fromstring(view.svg()).iter() if e.get("class") == "minus"]
    assert negative == []
    view.W = -np.ones((2, 3))
    assert len([e for e in ET.fromstring(view.svg()).iter() if e.get("class") == "minus"]) == 6


def test_a_row_of_a_matrix_is_columns_too(shown):
    assert kinds(shown(lambda W: np.sum(W**2), W=(np.zeros((1, 4)), np.ones((1, 4))))) == ["columns", "history"]


def test_a_vector_of_two_among_others_is_a_point_over_a_slice(shown):
    def f(w, c=2.0):
        return w[0] ** 2 + c * w[1]

    view = shown(f, w=(-np.ones(2), np.ones(2)), c=(0, 4))
    assert kinds(view) == ["contour", "bars", "history"]
    panel = view._picture["panels"][0]
    assert panel["along"] == [0, 1]
    before = [s["d"] for s in panel["shapes"] if s["class"] == "contour"]
    view.c = 0.0
    view._settled += 1
    after = [s["d"] for s in view._picture["panels"][0]["shapes"] if s["class"] == "contour"]
    assert before != after
    across = re.findall(r"M(-?[\d.]+) (-?[\d.]+)L(-?[\d.]+) (-?[\d.]+)", after[0])
    assert all(abs(float(a[0]) - float(a[2])) < 0.2 for a in across)  # for c = 0 the lines are upright


# stars ----------------------------------------------------------------------------------------------------------------


def test_a_star_has_the_function_along_each_direction():
    numbers = Numbers(of_callable(form), [parameter("w", (-np.ones(3), np.ones(3)))])
    centre = (0.5, -0.2, 0.1)
    star = numbers.sweep(centre)
    assert isinstance(star, Star)
    assert [c in axis for c, axis in zip(centre, star.axes, strict=True)] == [True] * 3
    points = [np.where(np.arange(3) == k, x, centre) for k, axis in enumerate(star.axes) for x in axis]
    np.testing.assert_allclose(star.values[:, 0], [form(p) for p in points], rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(star.slopes, [2 * A @ p for p in points], rtol=1e-13, atol=1e-14)
    size = 3 + sum(map(len, star.axes)) + 4 * len(points)
    assert len(star.packed()) == 8 * size


def test_lines_are_those_through_the_point_where_one_stops(shown):
    view = shown(form, w=(-np.ones(3), np.ones(3)))
    before = view._sweep
    view.w = [0.5, 0.0, 0.0]
    assert view._sweep is before
    view._settled += 1
    assert unpacked(view._sweep)[:3].tolist() == [0.5, 0.0, 0.0]
    after = view._sweep
    view._settled += 1
    assert view._sweep is after


def test_what_is_sent_of_many_numbers_is_bounded():
    numbers = Numbers(of_callable(lambda w: np.sum(w**2)), [parameter("w", (-np.ones(64), np.ones(64)))])
    assert len(numbers.sweep(numbers.start).packed()) < 300_000
    numbers = Numbers(of_callable(lambda a: np.ones((64, 64)) * a), [parameter("a", (0, 1))])
    assert len(numbers.sweep(numbers.start).packed()) < 300_000


# functions that give arrays -------------------------------------------------------------------------------------------


def wave(a, b=1.0):
    return np.sin(a * np.arange(8.0)) * b


def test_a_vector_is_a_line_and_one_element_is_looked_at(shown):
    view = shown(wave, a=(0, 1), b=(0, 2))
    assert kinds(view) == ["line", "history"]
    np.testing.assert_array_equal(view.value, wave(0.5))
    np.testing.assert_allclose(view.gradient["a"], np.arange(8.0) * np.cos(0.5 * np.arange(8.0)), rtol=1e-14)
    np.testing.assert_allclose(view.gradient["b"], wave(0.5), rtol=1e-14)
    assert view.text.endswith("wave[0] = 0 · slope in a = 0 · slope in b = 0")
    view.choose(3)
    assert f"wave[3] = {wave(0.5)[3]:.6g} · slope in a = {3 * np.cos(1.5):.6g}" in view.text
    view.a = 0.25
    assert view.history["value"].tolist() == [wave(0.5)[3], wave(0.25)[3]]
    packed = unpacked(view._exact)
    np.testing.assert_array_equal(packed[2:10], wave(0.25))
    assert packed.size == 2 + 8 * 3
    assert view.get_state("value") == {"value": None}
    assert {"curve", "ghost", "dot"} <= {e.get("class") for e in ET.fromstring(view.svg()).iter()}


def test_the_sweep_of_an_array_is_its_elements_along_each_direction(shown):
    view = shown(wave, a=(0, 1), b=(0, 2))
    found = np.frombuffer(base64.b64decode(view._sweep), "<f4")
    first, second = view._picture["counts"]
    axis = found[2 : 2 + first].astype(float)
    values = found[2 + first + second :].reshape(first + second, 8)
    np.testing.assert_allclose(values[:first], [wave(a) for a in axis], atol=1e-6)


def test_a_matrix_is_a_heat_map(shown):
    view = shown(lambda a: np.outer(np.arange(-2.0, 3), np.ones(4)) * a, a=(0, 1))
    assert kinds(view) == ["heat", "history"]
    assert view.gradient["a"].shape == (5, 4)
    view.choose(4, 1)
    assert view.text.endswith("[4, 1] = 1 · slope in a = 2")
    classes = [e.get("class") for e in ET.fromstring(view.svg()).iter()]
    assert {"plus", "minus", "chosen"} <= set(classes)


def test_arrays_of_whole_numbers_have_no_slopes(shown):
    view = shown(lambda a: np.arange(4) + (a > 0.5), a=(0, 1))
    assert view.gradient is None
    assert view._picture["why"].startswith("no slopes")
    assert "ghost" not in view.svg().split("</style>")[1]


def test_an_array_of_another_shape_is_an_error_there_that_passes(shown):
    view = shown(lambda n: np.linspace(0, 1, n), n=(2, 6, 1))
    view.n = 3
    assert view._problem.startswith("ValueError: the value has shape (3,) here, and (4,)")
    assert np.isnan(view.value).all()
    view.n = 4
    assert view._problem == ""


def test_arrays_that_are_too_large_are_refused():
    with pytest.raises(TypeError, match="1 to 4096 elements, but <lambda> gives 10000"):
        tm.live(lambda a: a * np.ones((100, 100)), a=(0, 1))
    with pytest.raises(TypeError, match=r"gives float64\[2, 2, 2\]"):
        tm.live(lambda a: a * np.ones((2, 2, 2)), a=(0, 1))


def test_the_view_follows_an_array_that_gets_another_shape(notebook):
    notebook.ok("x = np.arange(3.0)\nview = tm.live(lambda a: a * x, a=(0, 1))")
    view = notebook["view"]
    view.choose(2)
    notebook.ok("x = np.arange(2.0)")
    assert view.value.shape == (2,)
    assert view._element == 1
    notebook.ok("x = 3.0")
    assert view.value == 1.5
    assert kinds(view) == ["curve", "history"]


# descents and histories -----------------------------------------------------------------------------------------------


def test_a_descent_goes_against_the_gradient_within_the_ranges(shown):
    view = shown(lambda u, v: (u - 3) ** 2 + v**2, u=(0, 2), v=(-1, 1))
    view.v = 1.0
    path = view.descend(steps=3, rate=0.25)
    np.testing.assert_allclose(path["u"], [1.0, 2.0, 2.0, 2.0])
    np.testing.assert_allclose(path["v"], [1.0, 0.5, 0.25, 0.125])
    np.testing.assert_allclose(path["value"], (path["u"] - 3) ** 2 + path["v"] ** 2)
    assert (view.u, view.v, view.value) == (2.0, 0.125, path["value"][-1])
    np.testing.assert_array_equal(view.history["value"], [4.0, *path["value"]])
    trail = [e for e in ET.fromstring(view.svg()).iter() if (e.get("class") or "").startswith("trail")]
    assert trail[0].get("d").count("L") == 3


def test_the_page_asks_for_a_descent_and_gets_points_values_and_slopes(shown):
    view = shown(lambda a: a**2, a=(-2, 2))
    view.a = 1.0
    view._asked = [7, 0.25]
    found = unpacked(view._path)
    assert found[0] == 7
    rows = found[1:].reshape(-1, 3)
    np.testing.assert_allclose(rows[:3], [[1, 1, 2], [0.5, 0.25, 1], [0.25, 0.0625, 0.5]])
    assert view.a == 1.0
    assert len(rows) == 51


def test_the_offered_rate_makes_no_step_longer_than_a_tenth_of_a_range(shown):
    for function, ends in ((lambda a: 1e6 * a**2, (-1, 1)), (lambda a: 1e-6 * np.sin(a), (0, 50))):
        view = shown(function, a=ends)
        view.a = ends[1]
        steps = np.abs(np.diff(view.descend(steps=20)["a"]))
        assert steps.max() <= 0.16 * (ends[1] - ends[0])


def test_a_descent_stops_where_there_is_no_number_and_where_nothing_changes(shown):
    view = shown(lambda a: np.log(a), a=(-1, 1))
    view.a = 0.5
    assert np.isfinite(view.descend(rate=1.0)["value"]).all()
    view = shown(lambda a: 0 * a, a=(0, 1))
    assert len(view.descend()["value"]) == 1


def test_no_descent_without_a_gradient(shown):
    view = shown(form, w=(-np.ones(3), np.ones(3)))
    view.close()
    with pytest.raises(ValueError, match="the view is closed"):
        view.descend()
    with pytest.raises(ValueError, match="no direction of descent"):
        shown(lambda n: n, n=(0, 3, 1)).descend()
    with pytest.raises(ValueError, match="no direction of descent"):
        shown(wave, a=(0, 1)).descend()


def test_history_has_the_parameters_and_is_bounded(shown):
    view = shown(form, w=(-np.ones(3), np.ones(3)))
    for k in range(600):
        view.w = [k / 600, 0.0, 0.0]
    history = view.history
    assert history["w"].shape == (500, 3)
    np.testing.assert_allclose(history["value"], history["w"][:, 0] ** 2)


# pictures -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "ranges"),
    [
        (lambda a: a**2, {"a": (0, 1)}),
        (lambda a, b: a * b, {"a": (0, 1), "b": (0, 1)}),
        (form, {"w": (-np.ones(3), np.ones(3))}),
        (lambda W: np.sum(W**2), {"W": (-np.ones((2, 2)), np.ones((2, 2)))}),
        (lambda a: a * np.arange(3.0), {"a": (0, 1)}),
        (lambda a: a * np.ones((2, 2)), {"a": (0, 1)}),
    ],
    ids=["curve", "contour", "columns", "cells", "line", "heat"],
)
def test_every_static_picture_has_title_description_and_no_hostile_markup(shown, function, ranges):
    view = shown(function, **ranges)
    view._name = "<script>&\"'\u202eאב🙂" * 200
    view._picture = view._swept(view.point)["_picture"]
    root = ET.fromstring(view.svg())
    assert root.find("{*}title").text
    assert root.find("{*}desc").text
    assert not [e for e in root.iter() if e.tag.endswith("script")]
    assert len(view.svg()) < 60_000
