"""What a graph asks of the kernel while that computes: said, and shown when it comes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensormagic.notebook import widgets

SCRIPT = (Path(widgets.__file__).parent / "asking.js").read_text(encoding="utf-8").replace("= 20000", "= 80")
SETTING = """
const said = [], sent = [], shown = [], hearing = [];
const graph = {
    scene: { vertices: [], shapes: [] }, main: document.createElement("div"), live: document.createElement("div"),
    model: { send: (message) => sent.push(message.ask.join()), on: (_, hear) => hearing.push(hear), off: () => {} },
    say: (text) => { said.push(text); graph.live.textContent = text; },
};
const answer = (part) => hearing[0]({ part, content: part.join() }), wait = (time) => new Promise((done) => setTimeout(done, time));
addAsking(graph, []);
const told = () => ({ said: said.map((text) => text.slice(0, 31)), sent, shown });
"""
LATE = "The kernel has not answered yet"
ASKED = {
    "an answer in time": ("ask(1); answer(['1']);", [], ["1"], ["1"]),
    "a late one": ("ask(1); await wait(200); answer(['1']);", [LATE, ""], ["1"], ["1"]),
    "none": ("ask(1); await wait(200);", [LATE], ["1"], []),
    "asked twice at once": ("ask(1); ask(1); answer(['1']); answer(['1']);", [], ["1"], ["1", "1"]),
    "asked anew when it is late": (
        "ask(1); await wait(120); ask(1); answer(['1']); answer(['1']);",
        [LATE, ""],
        ["1", "1"],
        ["1", "1"],
    ),
    "two things": (
        "ask(1); ask(2); answer(['2']); await wait(200); answer(['1']);",
        [LATE, ""],
        ["1", "2"],
        ["2", "1"],
    ),
    "what was said since stays": (
        "ask(1); await wait(200); graph.say('saved'); answer(['1']);",
        [LATE, "saved"],
        ["1"],
        ["1"],
    ),
}


@pytest.mark.parametrize("case", ASKED)
def test_what_comes_late_is_shown(browser, case):
    """It was thrown away after 20 seconds: a graph that was looked at while a cell trained showed nothing more."""
    acts, said, sent, shown = ASKED[case]
    page = browser.new_page()
    try:
        ask = "const ask = (k) => graph.ask([String(k)], (content) => shown.push(content));"
        found = page.evaluate(f"async () => {{ {SCRIPT} {SETTING} {ask} {acts} return told(); }}")
    finally:
        page.close()
    assert found == {"said": said, "sent": sent, "shown": shown}
