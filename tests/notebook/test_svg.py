"""The standalone SVG: well-formed, complete, safe, and readable by itself."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

import tensormagic as tm
from tensormagic.notebook.pictures import svg
from tensormagic.notebook.pictures.html import to_html
from tensormagic.notebook.pictures.palette import DARK, LIGHT
from tensormagic.notebook.pictures.scene import KINDS, Scene, Vertex, View
from tensormagic.notebook.pictures.shapes import describe, outline
from tests.notebook import demo_scenes

SVG = "{http://www.w3.org/2000/svg}"


def parsed(text: str) -> ET.Element:
    """Parse our own SVG."""
    return ET.fromstring(text)


def texts(root: ET.Element) -> list[str]:
    """Return what is written in the picture."""
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def test_title_description_and_every_op() -> None:
    root = parsed(svg.render(demo_scenes.logistic()))
    assert (
        root.findtext(f"{SVG}title")
        == "In[3]: graph: 8 ops as written → 6 after rewriting → 13 with the gradient → 3 compiled kernels"
    )
    assert "z = X @ w + b" in (root.findtext(f"{SVG}desc") or "")
    written = texts(root)
    for label in ("X", "w", "b", "y", "@", "+", "exp", "log", "mean", "loss", "float64[569, 30]"):
        assert label in written


def test_before_and_after_in_one_picture() -> None:
    both = parsed(svg.render(demo_scenes.logistic(), ("captured", "rewritten")))
    one = parsed(svg.render(demo_scenes.logistic(), ("captured",)))
    assert float(both.get("width", 0)) > float(one.get("width", 0))
    assert {"as written", "after rewriting", "8 ops", "6 ops", "rule softplus"} <= set(texts(both))


def test_wide_views_are_stacked() -> None:
    scene = demo_scenes.hostile()
    both = parsed(svg.render(scene, [view.name for view in scene.views]))
    one = parsed(svg.render(scene))
    assert float(both.get("height", 0)) > 1.7 * float(one.get("height", 0))
    assert both.get("width") == one.get("width")


def test_boxes_and_texts_stay_inside() -> None:
    for scene in (demo_scenes.logistic(), demo_scenes.softmax(), demo_scenes.chain()):
        root = parsed(svg.render(scene))
        wide, tall = float(root.get("width", 0)), float(root.get("height", 0))
        for group in root.iter(f"{SVG}g"):
            if (group.get("class") or "").startswith("box") and group.get("transform"):
                x, y = map(float, re.findall(r"-?[\d.]+", group.get("transform", "")))
                assert 0 < x < wide
                assert 0 <= y < tall


@pytest.mark.parametrize("views", [None, ("captured",)])
def test_hostile_names_are_text(views: tuple[str, ...] | None) -> None:
    text = svg.render(demo_scenes.hostile(), views)
    root = parsed(text)
    allowed = {"svg", "title", "desc", "style", "rect", "g", "path", "text", "circle"}
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= allowed
    assert not any(name.startswith("on") or "href" in name for element in root.iter() for name in element.attrib)
    assert any(line.startswith("<script>") for line in texts(root))
    assert any(line.startswith("xxx") and line.endswith("…") for line in texts(root))
    assert len(text) < 40_000


def test_hostile_names_are_data_in_a_page() -> None:
    page = to_html(demo_scenes.hostile())
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    assert "<img" not in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")


def test_no_reference_leaves_the_picture() -> None:
    text = svg.render(demo_scenes.logistic(), ("kernels",))
    assert "url(" not in text
    assert "@import" not in text
    assert text.count("http") == 1


def test_kernels_are_framed_and_named_and_numpy_is_said() -> None:
    root = parsed(svg.render(demo_scenes.logistic(), ("kernels",)))
    frames = [element for element in root.iter(f"{SVG}rect") if element.get("class") == "frame"]
    assert len(frames) == 3
    assert {"kernel 1: 1 op", "kernel 2: 10 ops", "kernel 3: 1 op", "NumPy"} <= set(texts(root))


def test_adjoints_are_marked_and_the_legend_says_how() -> None:
    written = texts(parsed(svg.render(demo_scenes.logistic(), ("gradient",))))
    assert written.count("∂") == 7 + 1  # the ops that are drawn, and the legend
    assert "adjoint" in written


def test_a_kind_is_told_by_its_outline_and_not_only_by_its_colour() -> None:
    solid = {kind: outline(kind, 80, 40) for kind in KINDS if kind not in {"pointwise", "move"}}
    assert len(set(solid.values())) == len(solid)
    assert ".move path{stroke-dasharray" in svg.render(demo_scenes.logistic())


def luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_text_and_lines_are_readable(theme: dict[str, str]) -> None:
    def contrast(one: str, other: str) -> float:
        light, dark = sorted((luminance(theme[one]), luminance(theme[other])), reverse=True)
        return (light + 0.05) / (dark + 0.05)

    fills = [name for name in theme if f"{name}-line" in theme]
    assert len(fills) == 11
    for fill in [*fills, "ground"]:
        assert contrast("ink", fill) >= 7
        assert contrast("soft", fill) >= 4.5
    for fill in fills:
        assert contrast(f"{fill}-line", "ground") >= 2.8
    assert contrast("edge", "ground") >= 3


def test_a_picture_that_stands_alone_is_light_on_a_ground_of_its_own() -> None:
    picture = svg.render(demo_scenes.softmax())
    style = parsed(picture).findtext(f"{SVG}style") or ""
    assert LIGHT["ground"] in style
    assert "prefers-color-scheme" not in picture  # the page around it may be light on a dark system
    assert DARK["ink"] not in style


def test_an_empty_scene_is_a_picture_too() -> None:
    assert parsed(svg.render(Scene("nothing", "", ()))).findtext(f"{SVG}title") == "nothing: graph: nothing"
    assert parsed(svg.render(Scene("", "", (View("captured", (), ()),)))).findtext(f"{SVG}title") == "graph: 0 ops"


def test_equal_scenes_give_equal_pictures() -> None:
    assert svg.render(demo_scenes.random_graph(300)) == svg.render(demo_scenes.random_graph(300))


def test_describe() -> None:
    vertex = Vertex("a", "exp", "pointwise", "float64[3]", line=2, cell="In[4]", role="adjoint", kernel=1, yellow=True)
    assert describe(vertex) == "exp, float64[3], adjoint, In[4] line 2, kernel 1, runs in NumPy"


def test_pictures_in_one_document_do_not_change_each_other() -> None:
    pictures = [
        svg.render(demo_scenes.softmax()),
        tm.backprop(lambda x: x * x, 2.0).svg(),
        tm.live(lambda a: a * a, a=(0, 1)).svg(),
    ]
    for picture in pictures:
        root = parsed(picture)
        (scope,) = root.attrib["class"].split()
        rules = (root.findtext(f"{SVG}style") or "").splitlines()
        assert len(rules) > 10
        for rule in rules:
            assert all(part.startswith(f".{scope} ") for part in rule.partition("{")[0].split(",")), rule
