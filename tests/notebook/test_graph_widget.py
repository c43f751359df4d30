"""The graph widget: what it sends and what it leaves behind."""

from __future__ import annotations

import gc
import re
import weakref

import pytest

pytest.importorskip("anywidget")
import ipywidgets

from tensormagic.notebook.pictures.scene import Scene
from tensormagic.notebook.widgets import graph_files
from tensormagic.notebook.widgets.graph import GraphView
from tensormagic.notebook.widgets.graph_files import SCRIPT, STYLE
from tests.notebook import demo_scenes


def test_script_is_small_text_that_never_parses_markup() -> None:
    assert isinstance(GraphView._esm, str)
    assert isinstance(GraphView._css, str)
    assert len(SCRIPT.encode()) < 63_000
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", SCRIPT)
    assert SCRIPT.count("export default") == 1
    assert "</" not in SCRIPT
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", SCRIPT + STYLE)


def test_the_bundle_has_a_widget_a_picture_and_words() -> None:
    graph = GraphView(demo_scenes.logistic())
    bundle, _ = graph._repr_mimebundle_()
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == graph.model_id
    assert bundle["image/svg+xml"].startswith("<svg")
    assert bundle["text/plain"].startswith(
        "In[3], graph: 8 ops as written → 6 after rewriting → 13 with the gradient → 3 compiled kernels\n  line 1  z = X @ w + b"
    )
    graph.close()


def test_closing_leaves_no_widget_and_keeps_the_picture() -> None:
    before = set(ipywidgets.widgets.widget._instances)
    graph = GraphView(demo_scenes.softmax())
    assert set(ipywidgets.widgets.widget._instances) - before == {graph.model_id, graph.layout.model_id}
    graph.close()
    assert set(ipywidgets.widgets.widget._instances) == before
    assert graph.svg().startswith("<svg")
    gone = weakref.ref(graph)
    del graph
    gc.collect()
    assert gone() is None


def test_the_first_view_and_the_state() -> None:
    graph = GraphView(demo_scenes.logistic(), view="gradient", expanded=True)
    state = graph.get_state()
    assert (state["view"], state["expanded"], state["selected"]) == ("gradient", True, "")
    assert ">grad_w<" in graph.svg()
    graph.view = "captured"
    assert ">grad_w<" not in graph.svg()
    graph.close()
    with pytest.raises(KeyError, match="there are: captured, rewritten"):
        GraphView(demo_scenes.logistic(), view="other")


def test_an_empty_scene_is_shown() -> None:
    graph = GraphView(Scene("", "", ()))
    assert graph._repr_mimebundle_()[0]["text/plain"] == "graph: nothing"
    graph.close()


def test_a_text_inside_a_text_keeps_its_spaces():
    line = 'say = (n) => `${n ? `${n} op${n === 1 ? "" : "s"}, ${`a  ,  b`} (c = d)` : "none  , "}  ;  ` + {a : 1}.a ; x = 2'
    kept = 'say=(n)=>`${n?`${n} op${n===1?"":"s"}, ${`a  ,  b`} (c = d)`:"none  , "}  ;  ` +{a:1}.a;x=2'
    assert graph_files._tight(line) == kept
