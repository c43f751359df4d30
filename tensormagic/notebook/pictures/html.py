"""A scene as one HTML file: the widget's own script and style, the scene as data, and no request to anywhere."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from tensormagic.notebook.pictures import svg
from tensormagic.notebook.pictures.labels import clean
from tensormagic.notebook.pictures.scene import Scene
from tensormagic.notebook.widgets.graph_files import SCRIPT, STYLE

# the page may run what is written in it and nothing else
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
_MODEL = """
const state = JSON.parse(document.getElementById("tm-state").textContent);
const heard = {};
const model = {
  whole: document.documentElement.outerHTML,
  get: (name) => state[name],
  set(name, value) { state[name] = value; for (const call of heard["change:" + name] || []) call(); },
  save_changes() {},
  on(name, call) { (heard[name] ||= []).push(call); },
  off(name, call) { heard[name] = (heard[name] || []).filter((other) => other !== call); },
};
widget.render({ model, el: document.getElementById("tm-root") });
"""
_PAGE = """<!doctype html>
<html lang="en" class="tm-own">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
body {{ margin: 16px; font-family: system-ui, sans-serif; background: Canvas; color: CanvasText; }}
h1 {{ font-size: 1.1rem; overflow-wrap: anywhere; }}
{style}
</style>
</head>
<body>
<main>
<h1>{title}</h1>
<div id="tm-root"></div>
<noscript>{picture}</noscript>
</main>
<script type="application/json" id="tm-state">{state}</script>
<script type="module">
{script}
</script>
</body>
</html>
"""


def to_html(scene: Scene, *, expanded: bool = True, view: str | None = None) -> str:
    """Return a page that shows the scene as the widget does, without a kernel and without a network.

    Parameters
    ----------
    scene : Scene
        What to show.
    expanded : bool
        Whether the graph is shown at once.
    view : str, optional
        The name of the view shown first. Default: the scene's first.

    Returns
    -------
    str
        The page; written to a file it opens anywhere.
    """
    scene = scene.whole
    first = scene.view(view).name if view is not None else scene.views[0].name if scene.views else ""
    state = {"scene": scene.message(deep=True), "expanded": expanded, "view": first, "selected": ""}
    title = clean(scene.title or "graph", 200)
    return page(title, STYLE, SCRIPT, state, svg.render(scene, (first,) if first else ()))


def page(title: str, style: str, script: str, state: dict[str, Any], picture: str) -> str:
    """Return a page with one widget.

    Parameters
    ----------
    title : str
        The page's title and heading.
    style, script : str
        The widget's style sheet and its module.
    state : dict
        What its model holds, as JSON has it.
    picture : str
        The SVG that stands in its place where scripts do not run.
    """
    return _PAGE.format(
        policy=_POLICY,
        title=escape(title),
        style=style,
        picture=picture,
        state=json.dumps(state, separators=(",", ":")).replace("<", "\\u003c"),
        script=script.replace("export default", "const widget =") + _MODEL,
    )
