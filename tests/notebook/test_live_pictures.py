"""The pictures of live views: curves with their tangent, contours, and what the page is made of."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from xml.etree import ElementTree as ET

import numpy as np
import pytest

pytest.importorskip("anywidget")

from tensormagic.functions.calls.callables import of_callable
from tensormagic.notebook.live.plots.contours import contour
from tensormagic.notebook.live.plots.curves import curve
from tensormagic.notebook.live.plots.finer import finer
from tensormagic.notebook.live.ranges import parameter
from tensormagic.notebook.live.sweep import Numbers, Sweep
from tensormagic.notebook.widgets.live import SCRIPT, STYLE, LiveView
from tests.notebook.test_live import wave

pytestmark = pytest.mark.usefixtures("by_numpy")


def test_the_tangent_touches_the_curve_with_its_slope(shown):
    view = shown(lambda a: a**2, a=(0, 10))
    view.a = 3.0
    tangent = next(e for e in ET.fromstring(view.svg()).iter() if e.get("class") == "tangent")
    x1, y1, x2, y2 = map(float, re.findall(r"-?[\d.]+", tangent.get("d")))
    made = view._panels[0]
    for x, y, a in ((x1, y1, 0.0), (x2, y2, 10.0)):
        assert (x, y) == pytest.approx(made.place(a, 9 + 6 * (a - 3)), abs=0.06)


def test_contours_have_their_values_and_bands(shown):
    root = ET.fromstring(shown(lambda a, b: a**2 + b**2, a=(-2, 2), b=(-2, 2)).svg())
    written = [float(e.text or "") for e in root.iter() if e.get("class", "").startswith("tick halo")]
    assert len(written) > 3
    assert list(dict.fromkeys(written)) == sorted(set(written))  # a level may have several lines, and then numbers
    (bands,) = [e for e in root.iter() if e.get("class") == "bands"]
    data = base64.b64decode(bands.get("href", "").partition(",")[2])
    (wide,) = struct.unpack(">I", data[16:20])
    found = data.index(b"IDAT")
    (size,) = struct.unpack(">I", data[found - 4 : found])
    rows = np.frombuffer(zlib.decompress(data[found + 4 : found + 4 + size]), np.uint8).reshape(-1, wide + 1)
    middle = rows[len(rows) // 2, 1:].astype(int)
    assert (np.diff(middle[: len(middle) // 2]) <= 0).all()  # from the rim to the middle it gets less deep
    assert middle[0] > middle[len(middle) // 2]


def test_a_finer_sweep_is_cubic_between_its_points(shown):
    axis = np.linspace(-2, 2, 5)
    a, b = np.meshgrid(axis, axis, indexing="ij")
    found = finer(Sweep((axis, axis), a**3 + b**2, (3 * a**2, 2 * b)), 17)
    x, y = np.meshgrid(*found.axes, indexing="ij")
    np.testing.assert_allclose(found.values, x**3 + y**2, atol=1e-12)
    values = a**3
    values[0, 0] = np.nan
    gaps = np.isnan(finer(Sweep((axis, axis), values, None), 17).values)
    assert gaps[:4, :4].all()
    assert not gaps[4:].any()
    assert not gaps[:, 4:].any()


def test_contours_are_where_the_value_is(shown):
    view = shown(lambda a, b: a**2 + b**2, a=(-2, 2), b=(-2, 2))
    root = ET.fromstring(view.svg())
    paths = [e.get("d") for e in root.iter() if e.get("class") == "contour"]
    assert len(paths) > 3
    left, top, wide, tall = view._panels[0].frame
    for path in "".join(paths).split("M")[1:]:
        steps = np.array([float(v) for v in re.findall(r"-?[\d.]+", path)]).reshape(-1, 2)
        numbers = steps.cumsum(axis=0)  # each place by how far it is from the one before
        a, b = (numbers[:, 0] - left) / wide * 4 - 2, 2 - (numbers[:, 1] - top) / tall * 4
        assert np.ptp(a**2 + b**2) < 0.02
    assert next(e for e in root.iter() if e.get("class") == "arrow") is not None


def test_pictures_of_constants_and_poles_are_drawn():
    for function in (lambda a: 0 * a + 3, lambda a: 1 / a, lambda a: a * 1e300 * 1e10, lambda a: np.sqrt(a)):
        numbers = Numbers(of_callable(function), [parameter("a", (-1, 1), 0.5)])
        with np.errstate(all="ignore"):
            made = curve("f", numbers.spans[0], numbers.sweep(numbers.start))
        assert np.isfinite(made.y).all()
        assert made.y[0] < made.y[1]
        assert "nan" not in str(made.shapes)


def test_hostile_names_are_escaped(shown):
    view = shown(wave, a=(0, 1))
    view._name = "<script>&\"'"
    assert "<script>" not in view.svg()
    assert "<script>&" not in view.page()


def test_script_is_small_text_that_never_parses_markup():
    assert isinstance(LiveView._esm, str)
    assert isinstance(LiveView._css, str)
    assert len(SCRIPT.encode()) < 60_000
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", SCRIPT)
    assert SCRIPT.count("export default") == 1
    assert "</" not in SCRIPT
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", SCRIPT + STYLE)
    assert STYLE.count(".tm-sweep button {") == 1
    assert ".tm-view" not in STYLE


def test_the_page_needs_no_network(shown, tmp_path):
    shown(wave, a=(0, 10)).to_html(tmp_path / "view.html")
    text = (tmp_path / "view.html").read_text()
    assert "default-src 'none'" in text
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)


@pytest.mark.parametrize("points", [7, 9, 11, 41])
def test_contours_are_of_values_that_were_found(points):
    """Between the points of a coarse grid a smooth picture goes below 0, where the function has no value."""
    spans = [s for name, ends in (("u", (-2, 2)), ("v", (-1, 3))) for s in parameter(name, ends).spans]
    axes = tuple(np.linspace(s.low, s.high, points) for s in spans)
    u, v = axes[0][:, None], axes[1][None, :]
    values = (1 - u) ** 2 + 2 * (v - u**2) ** 2
    slopes = (-2 * (1 - u) - 8 * u * (v - u**2), 4 * (v - u**2) + 0 * u)
    made = contour("value", (0, 1), spans, Sweep(axes, values, slopes))
    written = [float(s["text"]) for s in made.shapes if s["class"].startswith("tick halo")]
    assert len(written) > 2
    assert min(written) > values.min()


def levels_of(values, x=(-2, 2), y=(-1, 3)):
    spans = [s for name, ends in (("u", x), ("v", y)) for s in parameter(name, ends).spans]
    axes = tuple(np.linspace(s.low, s.high, 41) for s in spans)
    grid = values(axes[0][:, None], axes[1][None, :])
    made = contour("value", (0, 1), spans, Sweep(axes, grid, (0 * grid, 0 * grid)))
    return grid, [float(s["text"].replace("−", "-")) for s in made.shapes if s["class"].startswith("tick halo")], made


def test_a_valley_has_lines_of_its_own():
    """Where most of the picture lies between two values, there are more of them; what is tiny beside the whole is left."""
    grid, written, made = levels_of(lambda u, v: (1 - u) ** 2 + 100 * (v - u**2) ** 2)
    assert (grid < 250).mean() > 0.6  # the first of the evenly spaced ones
    assert min(written) <= 10
    assert max(written) >= 500
    _, bell, _ = levels_of(lambda u, v: -np.exp(-5 * (u**2 + v**2)))
    assert 1e-3 <= -max(bell) <= 0.05
    _, even, _ = levels_of(lambda u, v: u + v)
    assert np.ptp(np.diff(sorted(even))) < 1e-9
    assert "\N{RIGHTWARDS ARROW} uphill" in [s.get("text", "") for s in made.shapes if "last" in s["class"]][-1]


def test_every_line_has_its_number_and_the_lowest_place_a_cross(shown):
    for scale in (1, 2, 100):
        _, written, made = levels_of(lambda u, v, scale=scale: (1 - u) ** 2 + scale * (v - u**2) ** 2)
        assert len(set(written)) == sum(s["class"] == "contour" for s in made.shapes) > 3
        (cross,) = [s["d"] for s in made.shapes if s["class"] == "lowest"]
        x, y = (np.mean([float(v) for v in re.findall(r"[\d.]+", cross)][k::2]) for k in (0, 1))
        assert (x, y) == pytest.approx(made.place(1.0, 1.0), abs=6)
    _, _, plane = levels_of(lambda u, v: u + v)
    assert not [s for s in plane.shapes if s["class"] == "lowest"]  # it goes on beyond the picture


def test_the_arrow_is_the_gradient_in_the_units_of_the_axes(shown):
    view = shown(lambda u, v: (1 - u) ** 2 + 2 * (v - u**2) ** 2, u=(-2, 2), v=(-1, 3))
    view.u, view.v = 0.5, 0.5
    made = view._panels[0]
    (arrow,) = [e.get("d") for e in ET.fromstring(view.svg()).iter() if e.get("class") == "arrow"]
    x1, y1, x2, y2 = map(float, re.findall(r"-?[\d.]+", arrow)[:4])
    step = np.subtract(made.place(0.5 - 2e-3, 0.5 + 1e-3), made.place(0.5, 0.5))  # along the gradient, -2 and 1
    assert (x1, y1) == pytest.approx(made.place(0.5, 0.5), abs=0.06)
    assert (x2 - x1) / (y2 - y1) == pytest.approx(step[0] / step[1], rel=0.02)
    assert np.hypot(x2 - x1, y2 - y1) > 30
