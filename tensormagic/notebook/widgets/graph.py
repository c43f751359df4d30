"""The graph as a widget: pan, zoom, search, details, views before and after. It draws a scene and knows nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
import traitlets

from tensormagic.notebook import svg
from tensormagic.notebook.palette import themed
from tensormagic.notebook.scene import Scene

__all__ = ["SCRIPT", "STYLE", "GraphView"]

_here = Path(__file__).parent
SCRIPT = (_here / "graph.js").read_text(encoding="utf-8")
STYLE = themed(".tm-graph") + (_here / "graph.css").read_text(encoding="utf-8")


class GraphView(anywidget.AnyWidget):
    """A scene to look at and to walk through.

    Beside the live widget its display carries an SVG and a text, for pages without a kernel or a widget manager.

    Parameters
    ----------
    scene : Scene
        What to show.
    open : bool
        Whether the graph is shown at once, or only its header line until that is clicked.
    view : str, optional
        The name of the view shown first. Default: the scene's first.

    Examples
    --------
    >>> from tensormagic.notebook.scene import Scene, Vertex, View
    >>> graph = GraphView(Scene("In[1]", "y = np.exp(x)", (View("captured", (Vertex("e", "exp", "pointwise"),), ()),)))
    >>> graph.scene["summary"]
    'graph: 1 op'
    >>> graph.close()
    """

    _esm = SCRIPT
    _css = STYLE

    scene = traitlets.Dict().tag(sync=True)
    open = traitlets.Bool(default_value=False).tag(sync=True)
    view = traitlets.Unicode().tag(sync=True)
    selected = traitlets.Unicode().tag(sync=True)

    def __init__(self, scene: Scene, *, open: bool = False, view: str | None = None, **traits: Any) -> None:  # noqa: A002
        first = scene.view(view).name if view is not None else scene.views[0].name if scene.views else ""
        self._scene = scene
        super().__init__(scene=scene.message(), open=open, view=first, **traits)

    def svg(self) -> str:
        """Return the view that is shown as an SVG that stands alone."""
        return svg.render(self._scene, (self.view,) if self.view else ())

    def _repr_mimebundle_(self, **_: object) -> tuple[dict[str, Any], dict[str, Any]]:  # type: ignore[override]
        data: dict[str, Any] = {"text/plain": self._scene.text(), "image/svg+xml": self.svg()}
        if self.comm is None:  # closed: the picture stays
            return data, {}
        bundle, metadata = super()._repr_mimebundle_() or ({}, {})
        return {**bundle, **data}, metadata
