"""Live views: what they compute, what they send, whom they follow, and when they go."""

from __future__ import annotations

import gc
import time
import weakref
from xml.etree import ElementTree as ET

import numpy as np
import pytest

pytest.importorskip("anywidget")
import ipywidgets
import traitlets

import tensormagic as tm
from tensormagic.functions.calls.callables import of_callable
from tensormagic.ir.errors import ArgumentError, CaptureError
from tensormagic.notebook.live.ranges import parameter
from tensormagic.notebook.live.sweep import Numbers
from tensormagic.notebook.widgets.live import LiveView
from tests.notebook.live_views import WIDGET, unpacked, widgets

pytestmark = pytest.mark.usefixtures("by_numpy")


def wave(a=2.0):
    return np.sin(a) * a


# what is computed -----------------------------------------------------------------------------------------------------


def test_a_view_has_a_trait_for_its_parameter_and_the_exact_value(shown):
    view = shown(wave, a=(0, 10))
    assert view.a == 2.0
    assert view.value == np.sin(2.0) * 2.0
    view.a = 3
    assert view.value == pytest.approx(np.sin(3.0) * 3, rel=1e-15)
    assert view.gradient == {"a": pytest.approx(np.sin(3.0) + 3 * np.cos(3.0), rel=1e-14)}
    assert unpacked(view._exact).tolist() == [3.0, view.value, view.gradient["a"]]
    assert {"a", "value"} <= set(view.get_state())
    assert isinstance(view, ipywidgets.DOMWidget)


def test_the_sweep_is_value_and_slope_on_a_grid():
    a = np.linspace(0, 10, 121)
    numbers = Numbers(of_callable(wave), [parameter("a", (0, 10))])
    found = numbers.sweep(numbers.start)
    np.testing.assert_array_equal(found.axes[0], a)
    np.testing.assert_allclose(found.values, np.sin(a) * a, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(found.slopes[0], np.sin(a) + a * np.cos(a), rtol=1e-12, atol=1e-13)


def test_the_sweep_of_a_pure_function_is_one_batched_call(monkeypatch):
    numbers = Numbers(of_callable(wave), [parameter("a", (0, 10))])
    monkeypatch.setattr(numbers, "at", lambda point: pytest.fail("a point on its own"))
    assert numbers.sweep(numbers.start).values.shape == (121,)


def test_a_sweep_of_two_has_a_gradient_in_both_directions():
    numbers = Numbers(of_callable(lambda a, b: a**2 * b), [parameter("a", (-1, 1)), parameter("b", (0, 2))])
    found = numbers.sweep(numbers.start)
    a, b = np.meshgrid(*found.axes, indexing="ij")
    np.testing.assert_allclose(found.values, a**2 * b, atol=1e-15)
    np.testing.assert_allclose(found.slopes[0], 2 * a * b, atol=1e-15)
    np.testing.assert_allclose(found.slopes[1], a**2, atol=1e-15)


def test_a_slow_function_gets_a_coarser_grid():
    numbers = Numbers(of_callable(lambda a, b: a * b), [parameter("a", (0, 1)), parameter("b", (0, 1))])
    numbers._seconds = 0.02
    found = numbers.sweep(numbers.start)
    assert 9 <= found.values.size <= 100
    np.testing.assert_allclose(found.values, np.outer(*found.axes))


def test_large_inputs_are_swept_in_parts(monkeypatch):
    data = np.arange(3_000_000.0)

    def f(a):
        return np.sum(a * data)

    numbers = Numbers(of_callable(f), [parameter("a", (0, 1))])
    numbers._seconds = 0.2
    sizes = []
    batch = numbers._batch
    monkeypatch.setattr(
        numbers, "_batch", lambda points, **given: sizes.append(points.shape[1]) or batch(points, **given)
    )
    found = numbers.sweep(numbers.start)
    assert set(sizes) == {1}
    np.testing.assert_allclose(found.values, found.axes[0] * data.sum(), rtol=1e-12)


def test_whole_numbers_are_ints_and_have_no_slope(shown):
    view = shown(lambda n: sum(k**2 for k in range(n)), n=(0, 10, 1))
    assert view.n == 5
    assert (view.value, view.gradient) == (30.0, None)
    view.n = 4
    assert (view.value, type(view.parameters["n"])) == (14.0, int)
    assert view._picture["why"] == "no slopes: whole numbers have no slope"
    assert unpacked(view._sweep).tolist() == [*range(11), *(sum(k**2 for k in range(n)) for n in range(11))]


def test_vectors_have_a_slider_for_each_number(shown):
    view = shown(lambda w, k=1.0: np.sum(w**2) * k, w=(-np.ones(2), np.array([1.0, 3.0])), k=(0, 2))
    assert [s["label"] for s in view._scene["spans"]] == ["w[0]", "w[1]", "k"]
    assert (view.w, view.k) == ([0.0, 1.0], 1.0)
    view.w = np.array([0.5, -0.25])
    assert view.value == 0.3125
    np.testing.assert_array_equal(view.gradient["w"], [1.0, -0.5])
    assert view.gradient["k"] == 0.3125
    with pytest.raises(traitlets.TraitError, match="w has 2 numbers, and this has 3"):
        view.w = [1.0, 2.0, 3.0]


def test_parameters_stay_in_their_ranges(shown):
    view = shown(wave, a=(0, 10))
    view.a = 30
    assert view.a == 10.0
    with pytest.raises(traitlets.TraitError):
        view.a = np.nan
    view = shown(lambda w: np.sum(w), w=(np.zeros(2), np.ones(2)))
    view.w = [-3, 0.5]
    assert view.w == [0.0, 0.5]


def test_where_there_is_no_value_the_view_says_nan_and_goes_on(shown):
    view = shown(lambda a: np.log(a), a=(-1, 1))
    view.a = -0.5
    assert np.isnan(view.value)
    assert view.get_state("value") == {"value": None}
    view.a = 0.5
    assert view.value == np.log(0.5)
    assert ET.fromstring(view.svg()) is not None


def test_an_error_at_a_point_is_shown_and_passes(shown):
    view = shown(lambda a: np.linalg.inv(np.array([[a, 0.0], [0.0, 1.0]]))[0, 0], a=(0, 1))
    view.a = 0
    assert view._problem.startswith("LinAlgError: ")
    assert np.isnan(view.value)
    view.a = 0.5
    assert (view.value, view._problem) == (2.0, "")


def test_a_function_that_fails_at_some_points_has_a_gap_there(shown):
    def f(a):
        if a <= 0.3:
            raise ArithmeticError("too small")
        return a

    view = shown(f, a=(0, 1))
    count = view._picture["counts"][0]
    values = unpacked(view._sweep)[count : 2 * count]
    grid = np.linspace(0, 1, count)
    np.testing.assert_array_equal(values, np.where(grid > 0.3, grid, np.nan))
    view.a = 0.1
    assert view._problem == "ArithmeticError: too small"


def test_captured_functions_and_callable_objects(shown):
    class Square:
        def __call__(self, a):
            return a**2

    view = shown(Square(), a=(0, 4))
    assert (view.value, view.gradient) == (4.0, {"a": 4.0})
    view = shown(tm.tensor(wave), a=(0, 10))
    assert (view.a, view._name) == (2.0, "wave")
    view = shown(tm.grad(wave), a=(0, 10))
    assert view.value == pytest.approx(np.sin(view.a) + view.a * np.cos(view.a))
    assert view.gradient["a"] == pytest.approx(2 * np.cos(view.a) - view.a * np.sin(view.a))


def test_a_function_without_derivative_has_a_curve_and_no_tangent(shown):
    view = shown(lambda a: np.argmax(np.array([0.5, a])), a=(0, 1))
    assert view.gradient is None
    assert view._picture["why"].startswith("no slopes: ")
    assert 'class="curve"' in view.svg()
    assert 'class="tangent"' not in view.svg()


def test_a_lazy_value_is_a_function_of_its_inputs(notebook, shown):
    notebook["a"] = 2.0
    notebook.ok("%%tensor -q\nloss = a**2 + b")
    view = shown(notebook["loss"], a=(0, 10))
    assert (view.a, view.value, view.gradient) == (2.0, 4.0, {"a": 4.0})
    view.a = 3
    assert (view.value, float(notebook["loss"])) == (9.0, 4.0)


# what is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.share(4)
@pytest.mark.parametrize(
    ("given", "ranges", "kind", "told"),
    [
        (wave, {}, TypeError, "at least one range"),
        (wave, {"b": (0, 1)}, ArgumentError, "wave has no parameter b; there are a"),
        (wave, {"a": 3}, TypeError, "a takes \\(low, high\\)"),
        (wave, {"a": (1, 0)}, ValueError, "not from 1 to 0"),
        (wave, {"a": (0, np.inf)}, ValueError, "not from 0 to inf"),
        (wave, {"a": (0, 1, 0)}, ValueError, "step of a must be a positive number"),
        (wave, {"a": (0, 1, 1e-9)}, ValueError, "but at most 100000"),
        (wave, {"a": ("x", 1)}, TypeError, "a takes numbers"),
        (wave, {"a": ipywidgets.Text()}, TypeError, "Text is not one"),
        (wave, {"a": ipywidgets.FloatLogSlider()}, TypeError, "FloatLogSlider is not one"),
        (wave, {"a": ipywidgets.FloatRangeSlider()}, TypeError, "FloatRangeSlider is not one"),
        (lambda w: np.sum(w), {"w": (np.zeros(65), np.ones(65))}, ValueError, "at most 64 numbers, but w has 65"),
        (lambda a: (a, a), {"a": (0, 1)}, TypeError, "<lambda> gives tuple"),
        (lambda a: a * 1j, {"a": (0, 1)}, TypeError, "gives complex128"),
        (lambda value: value, {"value": (0, 1)}, ValueError, "rename the parameter"),
        (lambda moved: moved, {"moved": (0, 1)}, ValueError, "moved is a name that widgets use"),
        (lambda _at: _at, {"_at": (0, 1)}, ValueError, "_at is a name that widgets use"),
        (3, {"a": (0, 1)}, CaptureError, "int is not a function"),
    ],
)
def test_what_cannot_be_shown_is_refused(given, ranges, kind, told):
    before = widgets()
    with pytest.raises(kind, match=told):
        tm.live(given, **ranges)
    gc.collect()
    assert not {w for w in widgets() - before if isinstance(ipywidgets.widgets.widget._instances[w], LiveView)}


def test_a_function_that_stores_is_refused():
    history = np.zeros(3)

    def f(a):
        history[0] = a
        return a**2

    with pytest.raises(CaptureError, match="f changes history"):
        tm.live(f, a=(0, 1))
    assert history.tolist() == [0, 0, 0]


def test_a_function_that_draws_from_a_generator_is_refused():
    generator = np.random.default_rng(0)
    with pytest.raises(CaptureError, match="changes generator"):
        tm.live(lambda a: a * generator.normal(), a=(0, 1))
    assert generator.normal() == np.random.default_rng(0).normal()


# widgets --------------------------------------------------------------------------------------------------------------


def test_a_slider_is_linked_both_ways_until_the_view_is_closed(shown):
    slider = ipywidgets.FloatSlider(value=1.0, min=0.0, max=5.0, step=0.5)
    view = shown(wave, a=slider)
    assert view.a == 1.0
    assert (view._scene["spans"][0]["high"], view._scene["spans"][0]["step"]) == (5.0, 0.5)
    slider.value = 2.0
    assert view.value == pytest.approx(2 * np.sin(2.0))
    view.a = 3.0
    assert slider.value == 3.0
    view.close()
    slider.value = 4.0
    assert view.a == 3.0


def test_it_goes_into_boxes_and_links(shown):
    view = shown(wave, a=(0, 10))
    box = ipywidgets.VBox([view])
    assert box.children == (view,)
    label = ipywidgets.FloatText()
    link = ipywidgets.jslink((view, "a"), (label, "value"))
    assert link.source == (view, "a")
    seen = []
    view.observe(lambda change: seen.append(change.new), "value")
    view.a = 1.0
    assert seen == [np.sin(1.0)]


def test_one_message_for_one_move(shown, monkeypatch):
    view = shown(lambda a, b: a * b, a=(0, 1), b=(0, 1))
    sent = []
    monkeypatch.setattr(view, "_send", lambda message, buffers=None: sent.append(message))
    view.set_state({"a": 0.25, "b": 0.5})
    updates = [m["state"] for m in sent if m["method"] == "update"]
    assert [m for m in updates if "_exact" in m and "value" not in m] == []
    assert sum("_exact" in m for m in updates) == 1
    assert view.value == 0.125


def test_closing_leaves_no_widget_and_the_view_is_freed():
    before = widgets()
    view = tm.live(wave, a=(0, 10))
    assert len(widgets() - before) == 2
    view.close()
    assert widgets() == before
    bundle, _ = view.bundle()
    assert set(bundle) == {"text/plain", "image/svg+xml"}
    gone = weakref.ref(view)
    del view, bundle
    gc.collect()
    assert gone() is None


def test_the_bundle_has_a_widget_a_picture_and_words(shown):
    view = shown(wave, a=(0, 10))
    bundle, _ = view._repr_mimebundle_()
    assert bundle[WIDGET]["model_id"] == view.model_id
    assert bundle["text/plain"] == "wave = 1.81859 at a = 2 · slope in a = 0.0770038"
    root = ET.fromstring(bundle["image/svg+xml"])
    assert root.find("{*}title").text == bundle["text/plain"]
    classes = {e.get("class") for e in root.iter()}
    assert {"curve", "tangent", "dot"} <= classes
    assert "http" not in bundle["image/svg+xml"].replace("http://www.w3.org/2000/svg", "")


def test_a_call_that_other_work_has_held_up_makes_no_coarse_grid(monkeypatch):
    """The first call took as long as the machine was busy, and contours were drawn of five points a side."""
    calls, usual = [], Numbers.at

    def at(self, point):
        calls.append(point)
        time.sleep(0.05 if len(calls) == 1 else 0)
        return usual(self, point)

    monkeypatch.setattr(Numbers, "at", at)
    both = [parameter("a", (-2, 2)), parameter("b", (-2, 2))]
    numbers = Numbers(of_callable(lambda a, b: a**2 + b**2), both)
    assert len(calls) > 1
    assert numbers._seconds < 0.05
    monkeypatch.setattr(Numbers, "at", lambda self, point: time.sleep(0.3) or usual(self, point))
    began = time.perf_counter()
    numbers.begin(numbers.start)
    assert numbers._seconds >= 0.3  # and is not tried again
    assert time.perf_counter() - began < 10


def test_functions_of_numpy_take_their_numbers_in_the_order_of_the_ranges(shown):
    view = shown(np.arctan2, up=(0.0, 2.0), across=(1.0, 3.0))
    assert (view.value, view.gradient) == (np.arctan2(1.0, 2.0), {"up": 0.4, "across": -0.2})
    assert view.text.startswith("arctan2 = 0.463648 at up = 1, across = 2")
    with pytest.raises(TypeError, match="sin takes 1 number: a range for each"):
        shown(np.sin, a=(0, 1), b=(0, 1))
