"""The graph as a widget: pan, zoom, search, details, views before and after. It knows scenes, not graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import anywidget
import traitlets
from ipywidgets import Widget

from tensormagic.notebook.pictures import svg
from tensormagic.notebook.pictures.palette import themed
from tensormagic.notebook.pictures.scene import Scene

__all__ = ["SCRIPT", "STYLE", "GraphView"]

_Bundle = tuple[dict[str, Any], dict[str, Any]]
_here = Path(__file__).parent
_MODULES = "page places parts drawing selection camera views outline keys pointer files widget".split()  # noqa: SIM905 (in this order)
# a page takes one module and the network is not asked for others, so they are joined; the last one exports the widget
SCRIPT = "\n".join((_here / f"{name}.js").read_text(encoding="utf-8") for name in _MODULES)
STYLE = themed(".tm-graph") + (_here / "graph.css").read_text(encoding="utf-8")


class GraphView(anywidget.AnyWidget):
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
    _css = STYLE

    scene = traitlets.Dict().tag(sync=True)
    expanded = traitlets.Bool(default_value=False).tag(sync=True)
    view = traitlets.Unicode().tag(sync=True)
    selected = traitlets.Unicode().tag(sync=True)

    _made_layout: Widget | None = None

    def __init__(self, scene: Scene, *, expanded: bool = False, view: str | None = None, **traits: Any) -> None:
        first = scene.view(view).name if view is not None else scene.views[0].name if scene.views else ""
        self._scene = scene
        super().__init__(scene=scene.message(), expanded=expanded, view=first, **traits)
        self._made_layout = None if "layout" in traits else cast("Widget", self.layout)

    def close(self) -> None:
        """Take the widget off the page and free it, with the layout that ipywidgets made for it."""
        super().close()
        made, self._made_layout = self._made_layout, None
        if made is not None:
            made.close()

    def svg(self) -> str:
        """Return the view that is shown as an SVG that stands alone."""
        return svg.render(self._scene, (self.view,) if self.view else ())

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        live, metadata = cast("_Bundle", super()._repr_mimebundle_() or ({}, {}))
        return {**live, "text/plain": self._scene.text(), "image/svg+xml": self.svg()}, metadata
