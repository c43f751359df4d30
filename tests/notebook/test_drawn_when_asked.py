"""What a picture costs is paid where it is looked at: further views of all but small graphs, and graphs that are large (decision 0438)."""

import copy
import dis
import json

import pytest

from tensormagic.notebook.display import shown
from tensormagic.notebook.pictures import draw as drawing
from tensormagic.notebook.pictures import naming
from tensormagic.notebook.pictures.message import EAGER_BELOW, part
from tensormagic.notebook.widgets.graph import GraphView
from tensormagic.session import programs
from tests.notebook import demo_scenes

LARGE = {  # cells whose graphs have more nodes than are drawn without being asked for, once those are few
    "written out": "v = w\n" + "\n".join(f"v = np.sin(v) * {k}.5" for k in range(9)) + "\nv.sum()",
    "a loop": "v = w\nfor k in range(n):\n    v = np.sin(v) * k + w\n    v = v - v.mean()\nv.sum()",
    "a branch": "v = np.exp(w)\nif v.sum() > 1:\n    v = np.log(v) * 3 + w\nelse:\n    v = v - w * 2\nv.sum()",
    "a function": "def f(u):\n    return np.tanh(u) * 2 + u\nv = f(f(f(w)))\nv.sum()",
    "a store": "v = np.zeros(40)\nfor k in range(n):\n    v[k] = np.cos(v[k - 1] + k) * w[0]\nv.sum()",
    "a matrix": "A = np.outer(w, w) + np.eye(3)\nv = A @ A @ w + np.linalg.solve(A, w)\nv.sum()",
}


@pytest.fixture
def laid(monkeypatch) -> list[str]:
    """The names of the views that are laid out."""
    found: list[str] = []
    own = drawing.draw

    def noted(view, *args, **more):
        found.append(view.name)
        return own(view, *args, **more)

    monkeypatch.setattr("tensormagic.notebook.pictures.scene.draw", noted)
    return found


@pytest.mark.parametrize("name", LARGE)
def test_a_large_graph_is_laid_out_where_that_is_asked_for(notebook, monkeypatch, laid, name):
    notebook.ok("n = 20")
    monkeypatch.setattr(shown, "_MOST_UNASKED", 8)
    ran = notebook.ok("%%tensor\n" + LARGE[name])
    assert not laid
    assert "nodes, which %%tensor --show graph draws" in ran.data["text/plain"]
    ran = notebook.ok("%%tensor --show graph\n" + LARGE[name])
    assert "captured" in laid
    assert "which %%tensor --show graph draws" not in ran.data["text/plain"]


@pytest.mark.parametrize("name", LARGE)
def test_a_large_graph_is_not_rewritten_for_its_line(notebook, monkeypatch, name):
    """What a run has not rewritten is not rewritten to say what rules did: the line tells where that is said."""
    notebook.ok("n = 20")
    monkeypatch.setattr(shown, "_MOST_UNASKED", 8)
    asked = []
    own = programs.rewrite
    monkeypatch.setattr(programs, "rewrite", lambda *a, **k: (asked.append(1), own(*a, **k))[1])
    text = notebook.ok(f"%%tensor\n{LARGE[name].rpartition(chr(10))[0]}\nfloat(v.sum()) > 0, v[1] + 1").data[
        "text/plain"
    ]
    asked.clear()
    ran = notebook.ok(f"%%tensor\n{LARGE[name].rpartition(chr(10))[0]}\nfloat(v.sum()) > 0, v[1] + 1")
    assert asked == []
    assert ran.data["text/plain"].splitlines()[0] == text.splitlines()[0]


@pytest.mark.parametrize("name", LARGE)
def test_further_views_of_all_but_small_graphs_are_laid_out_for_the_page_that_asks(notebook, monkeypatch, laid, name):
    notebook.ok("n = 20")
    monkeypatch.setattr("tensormagic.notebook.pictures.message.EAGER_BELOW", 2)
    notebook.ok("%%tensor\n" + LARGE[name])
    assert "captured" in laid
    assert not {"rewritten", "kernels"} & set(laid)


def test_what_a_page_asks_for_is_what_a_small_graph_brings():
    scene = demo_scenes.nested()
    count = sum(1 for _ in scene.views[0].drawn.everything())
    assert count <= EAGER_BELOW
    graph = GraphView(scene)
    whole = scene.message()["views"][0]["picture"]
    answer = part(scene, ["picture", 0, scene.views[0].groupings[0]])["content"]
    assert json.loads(json.dumps(answer))["boxes"] == json.loads(json.dumps(whole))["boxes"]
    graph.close()


def test_the_text_of_a_cell_is_read_for_names_once(notebook, monkeypatch):
    """Later cells that have nodes in common with it do not read it again."""
    read = []
    own = naming.parsed
    monkeypatch.setattr(naming, "parsed", lambda source: (read.append(source), own(source))[1])
    texts = [f"%%tensor\nz = w + {k}.5\nread_once = np.maximum(z, 0) * (1 - w)\nread_once.sum()\n" for k in range(3)]
    for text in texts:
        notebook.ok(text)
    assert [source for source in read if "read_once" in source] == texts


@pytest.mark.parametrize("of", [(dis, "get_instructions"), (copy, "deepcopy")], ids=lambda of: of[1])
def test_a_cell_is_compiled_without_what_takes_long(notebook, monkeypatch, of):
    """Its instructions are changed in one go, and the tree of a formula is copied as trees are."""
    called = []
    monkeypatch.setattr(*of, lambda *_, **__: called.append(of[1]))
    notebook.ok("%%tensor\nv = np.log(1 - w / (1 + w) + 1e-3)\nv.sum()")
    assert not called
