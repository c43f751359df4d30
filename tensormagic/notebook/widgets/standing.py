"""What widgets have in common: a layout that goes when they go, and a display that stands alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import anywidget
from ipywidgets import Widget

_Bundle = tuple[dict[str, Any], dict[str, Any]]


class Closing(anywidget.AnyWidget):
    """A widget that frees the layout that ipywidgets made for it, where the user gave none."""

    _made_layout: Widget | None = None

    def __init__(self, **traits: Any) -> None:
        super().__init__(**traits)
        self._made_layout = None if "layout" in traits else cast("Widget", self.layout)

    def close(self) -> None:
        """Take the widget off the page and free it, with the layout that ipywidgets made for it."""
        super().close()
        made, self._made_layout = self._made_layout, None
        if made is not None:
            made.close()


class Standing(Closing):
    """A view that is a text, a picture and a page, too."""

    @property
    def text(self) -> str:
        """The view as a text."""
        raise NotImplementedError

    def svg(self) -> str:
        """The view as an SVG that stands alone."""
        raise NotImplementedError

    def page(self) -> str:
        """The text of a page with the view."""
        raise NotImplementedError

    def to_html(self, path: str | Path) -> None:
        """Write a page with the view, which needs neither a kernel nor a network: one slider moves at a time, or the sweep.

        Parameters
        ----------
        path : str or Path
            The file, in HTML. What has that name is replaced.

        Examples
        --------
        >>> import pathlib, tempfile, tensormagic as tm
        >>> page = pathlib.Path(tempfile.mkdtemp(), "view.html")
        >>> view = tm.backprop(lambda x: x * x, 3.0)
        >>> view.to_html(page)
        >>> "adjoint" in page.read_text()
        True
        >>> view.close()
        >>> view = tm.live(lambda a: a**2, a=(0.0, 4.0))
        >>> view.to_html(page)
        >>> "<svg" in page.read_text()
        True
        >>> view.close()
        """
        Path(path).write_text(self.page(), encoding="utf-8")

    def bundle(self) -> _Bundle:
        """Return the display in every form; without the widget itself once that is closed."""
        live, metadata = cast("_Bundle", super()._repr_mimebundle_() or ({}, {})) if self.comm is not None else ({}, {})
        return {**live, "text/plain": self.text, "image/svg+xml": self.svg()}, metadata

    def _repr_mimebundle_(self, **_: Any) -> _Bundle:
        return self.bundle()
