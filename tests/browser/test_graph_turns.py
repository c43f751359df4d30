"""What the graph's page tells of nodes inside loops and branches, and the slider through the iterations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tensormagic.notebook.pictures.html import to_html
from tensormagic.notebook.pictures.scene import Scene
from tests.browser.axe import violations
from tests.notebook import demo_scenes


@dataclass
class Open:
    """A scene as a page, open."""

    scene: Scene

    def to_html(self, path: Path) -> None:
        path.write_text(to_html(self.scene, expanded=True), encoding="utf-8")

    def close(self) -> None:
        """There is nothing to free."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_slider_goes_through_the_iterations(opened: Any, scheme: str) -> None:
    page = opened(Open(demo_scenes.turning()), color_scheme=scheme)
    details, slider = page.locator(".tm-details"), page.get_by_role("slider", name="iteration")
    assert not slider.is_visible()
    page.locator('.tm-boxes [data-key="loop/cond/then/op"]').click()
    told = details.inner_text()
    for part in ("ran\n2 of 3 times", "3 µs in NumPy, all together", "all iterations\nmin 0, max 25", "48 B each"):
        assert part in told
    assert "when\nk = 2 (3rd of 3)" in told
    assert "range\nmin 0, max 25" in told
    assert slider.get_attribute("aria-valuetext") == "k = 2 (3rd of 3)"
    assert details.get_by_role("img", name="histogram from 0 to 25").count() == 1
    page.mouse.move(5, 5)
    slider.focus()
    page.keyboard.press("ArrowLeft")
    assert "when\nk = 0 (1st of 3)" in details.inner_text()
    assert details.get_by_role("img", name="histogram from 0 to 5").count() == 1
    assert page.locator(".tm-live").inner_text() == "k = 0 (1st of 3)"
    assert slider.get_attribute("aria-valuetext") == "k = 0 (1st of 3)"
    assert page.evaluate("document.activeElement.type") == "range"
    page.locator('.tm-boxes [data-key="loop/cond/then/op"]').hover()
    assert "when: k = 0 (1st of 3)" in page.locator(".tm-tip").inner_text()
    assert violations(page, "html") == []
    page.locator('.tm-boxes [data-key="loop/cond/else/op"]').click()
    assert "ran\ndid not run" in details.inner_text()
    assert not slider.is_visible()
