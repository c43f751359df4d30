"""The graph as a widget: pan, zoom, search, details, views before and after. It knows scenes, not graphs."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from typing import Any, cast

import traitlets

from tensormagic.notebook.pictures import svg
from tensormagic.notebook.pictures.html import to_html
from tensormagic.notebook.pictures.message import part
from tensormagic.notebook.pictures.scene import Scene
from tensormagic.notebook.widgets.controls import MESSAGES
from tensormagic.notebook.widgets.graph_files import SCRIPT, STYLE
from tensormagic.notebook.widgets.standing import Closing

_log = logging.getLogger(__name__)
_Bundle = tuple[dict[str, Any], dict[str, Any]]


WORDS = {  # of the line above a graph, where a pointer rests on it
    "more accurate": "a rule has replaced a formula by one that loses fewer digits",
    "rewritten": "rules have changed in which order it is computed: the last digits may differ",
    "simplified": "rules that are true of real numbers have shortened a formula: digits may differ",
}


class GraphView(Closing):
    """A scene to look at and to walk through.

    Beside the live widget its display carries an SVG and a text, for pages without a kernel or a widget manager.

    Parameters
    ----------
    scene : Scene
        What to show.
    expanded : bool
        Whether the graph is shown at once, or only its header line until that is clicked.
    view : str, optional
        The name of the view shown first. Default: the scene's first.

    Examples
    --------
    >>> from tensormagic.notebook.pictures.scene import Scene, Vertex, View
    >>> graph = GraphView(Scene("In[1]", "y = np.exp(x)", (View("captured", (Vertex("e", "exp", "pointwise"),), ()),)))
    >>> graph.scene["summary"]
    'graph: 1 op'
    >>> graph.close()
    """

    _esm = SCRIPT
    _css = STYLE + MESSAGES

    scene = traitlets.Dict().tag(sync=True)
    expanded = traitlets.Bool(default_value=False).tag(sync=True)
    view = traitlets.Unicode().tag(sync=True)
    selected = traitlets.Unicode().tag(sync=True)

    def __init__(
        self, scene: Scene, *, expanded: bool = False, view: str | None = None, line: str = "", **traits: Any
    ) -> None:
        self._scene = scene
        first = scene.view(view).name if view is not None else scene.views[0].name if scene.views else ""
        self._answering = threading.Lock()
        message = scene.message()
        if line:  # it stands above the closed graph
            meant = "\n".join(f"{word}: {told}" for word, told in WORDS.items() if f" · {word}" in line)
            message |= {"line": line, "meant": meant}
        super().__init__(scene=message, expanded=expanded, view=first, **traits)
        self.on_msg(self._answer)

    def _answer(self, _: Any, content: Any, __: Any) -> None:
        """Send a page what it asks for; errors must not end the kernel's message loop."""
        asked: Any = content.get("ask") if isinstance(content, dict) else None
        if not isinstance(asked, list):
            return
        with self._answering:
            try:
                self.send(self._part(cast("list[Any]", asked)))
            except Exception as error:  # noqa: BLE001 (the page says what happened)
                _log.debug("a graph could not answer %r", asked, exc_info=True)
                self.send({"part": asked, "error": f"This could not be saved: {type(error).__name__}: {error}"[:300]})

    def _part(self, asked: list[Any]) -> dict[str, Any]:
        if asked == ["html"]:
            return {"part": asked, "content": to_html(self._scene, view=self.view or None)}
        return part(self._scene, asked)

    def close(self) -> None:
        """Take the widget off the page and free it, with the layout that ipywidgets made for it."""
        super().close()
        # what it would find out holds the graph, and the inputs
        self._scene = replace(self._scene, later=None, rest=None)

    def svg(self) -> str:
        """Return the view that is shown as an SVG that stands alone."""
        return svg.render(self._scene, (self.view,) if self.view else ())

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        live, metadata = cast("_Bundle", super()._repr_mimebundle_() or ({}, {}))
        return {**live, "text/plain": self._scene.text(), "image/svg+xml": self.svg()}, metadata
