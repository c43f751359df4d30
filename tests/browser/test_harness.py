"""The browser tests' own tools: that they see what they claim to see."""

import pytest
from PIL import Image, ImageStat

from tests.browser.conftest import BOTH


@pytest.mark.parametrize("notebook", BOTH, indirect=True)
def test_a_plain_notebook_is_clean_in_both_themes(notebook):
    opened = notebook("plain", ["import ipywidgets\nipywidgets.IntSlider(3)", "6 * 7"])
    outputs = opened.run_all()
    assert outputs[1]["data"]["text/plain"] == "42"
    opened.page.wait_for_selector(".widget-slider")
    brightness = {}
    for theme in ("light", "dark"):
        opened.use_theme(theme)
        with Image.open(opened.screenshot(f"plain-{theme}")) as picture:
            brightness[theme] = ImageStat.Stat(picture.convert("L")).mean[0]
    assert brightness["light"] > 200
    assert brightness["dark"] < 80
    assert opened.console_errors == []
    assert opened.offsite_requests == []


def test_what_goes_wrong_is_seen(notebook):
    opened = notebook(
        "wrong",
        [
            "from IPython.display import HTML, Javascript\nHTML('<img src=\"https://example.invalid/picture.png\">')",
            "Javascript('console.error(\"on purpose\")')",
            "1 / 0",
        ],
    )
    outputs = opened.run_all()
    assert [output["ename"] for output in outputs if output["output_type"] == "error"] == ["ZeroDivisionError"]
    opened.page.wait_for_timeout(500)
    assert set(opened.offsite_requests) == {"https://example.invalid/picture.png"}
    assert any("on purpose" in error for error in opened.console_errors)
