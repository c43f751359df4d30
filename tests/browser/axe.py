"""axe-core, the checker of accessibility, run over a part of a page. It comes with a package; nothing is fetched."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from playwright.sync_api import Page

OUTPUTS = ".jp-OutputArea-output"
# the body of a front end is of no height and hides what overflows it: axe-core takes all that is in it for invisible
RUN = """async (selector) => {
    const { style } = document.body, was = style.overflow;
    style.overflow = 'visible';
    const found = await axe.run({ include: [[selector]] }, { resultTypes: ['violations'] });
    style.overflow = was;
    return found.violations.flatMap((one) => one.nodes.map((node) => `${one.id}: ${node.target.join(' ')}: ${node.html.slice(0, 200)}`));
}"""


@cache
def _source() -> str:
    return files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


def violations(page: Page, selector: str = OUTPUTS) -> list[str]:
    """What axe-core objects to in the parts of a page that a selector names: the rule, and the element."""
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(_source())
    return page.evaluate(RUN, selector)
