"""Every panel that `--show` names, on cells of many kinds: it is shown as a page and as text, behind the value, and changes nothing."""

# tests named elsewhere

import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest

from tensormagic.notebook.display.panels import PANELS

CELLS = {
    "value": ("", "np.log(1 + np.exp(w)).sum()"),
    "gradient": ("--grad w,b", "np.mean((X @ w + b) ** 2)"),
    "array": ("", "np.stack([w, np.tanh(w), w < 0])"),
    "loop": ("--grad w", "s = 0.0\nfor k in range(3):\n    s = s + np.sin(w[k] * k)\ns"),
    "branch": ("", "r = w * 2\nif w[0] > 0:\n    r = w + 1\nr"),
    "while": ("", "s = b\nwhile s < 10:\n    s = 2 * s + 1\ns"),
    "function": ("", "def half(v, by=2):\n    return v / by\nhalf(w) + half(b)"),
    "number": ("", "2 * b + 1"),
    "integers": ("", "(np.arange(4) << 1) & 5"),
    "signs": ("", "np.where(w < b, w, -w).max() > 1"),
}
VOID = {"br", "hr", "img", "input", "meta", "link", "col", "rect", "path", "line", "circle"}


class Balanced(HTMLParser):
    """That what is opened is closed: a panel's text is escaped."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_is_shown_of_every_cell(notebook, panel, cell):
    options, source = CELLS[cell]
    alone = notebook.ok(f"%%tensor --show none {options}\n{source}").data["text/plain"]
    ran = notebook.ok(f"%%tensor --show {panel} {options}\n{source}")
    text, page = ran.data["text/plain"], ran.data["text/html"]
    assert text.startswith(alone), "a panel changes nothing of the value"
    assert len(text) > len(alone), f"{panel} shows no text"
    reader = Balanced()
    reader.feed(page)
    assert not reader.open, f"{panel} leaves {reader.open} open: are its words escaped (notebook/display/forms.py)?"
    if "image/svg+xml" in ran.data:
        ET.fromstring(ran.data["image/svg+xml"])


@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_is_named_where_it_is_chosen(notebook, panel):
    assert panel in notebook.completions("%%tensor --show ")
    assert panel in notebook.completions(f"%%tensor --show graph,{panel[:2]}")
    assert panel in str(notebook(f"%%tensor --show {panel}x\nw").error)
