"""docs/themes, which are generated: up to date, and what they show is what the themes do."""

# tests named elsewhere

import re

import pytest

import tensormagic as tm
from benchmarks.ablation import curves
from benchmarks.theme_examples import EXAMPLES
from tensormagic.config import THEMES, leveled
from tensormagic.transform.rewriting import rewrite
from tests.docs.test_generated import DOCS, generator

DRAWN = [name for name, example in EXAMPLES.items() if example.along]


@pytest.fixture(scope="module")
def themes():
    return generator("generate_themes")


def test_every_theme_has_an_example_and_a_page_that_is_listed(themes):
    assert set(EXAMPLES) == set(THEMES)
    assert (DOCS / "themes" / "index.md").read_text(encoding="utf-8") == themes.index()
    assert {path.stem for path in (DOCS / "themes").glob("*.md")} == {*THEMES, "index"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_page_of_a_theme_is_up_to_date(themes, name):
    assert (DOCS / "themes" / f"{name}.md").read_text(encoding="utf-8") == themes.page(name)


@pytest.mark.parametrize("name", sorted(set(EXAMPLES) - {"fusion"}))
def test_a_theme_changes_its_example(themes, name):
    example = EXAMPLES[name]
    graph = themes.graph_of(example)
    whole, without = (rewrite(graph, leveled(example.level, w)).graph for w in ("", name))
    assert whole.results != without.results


@pytest.mark.parametrize("name", DRAWN)
def test_the_picture_shows_what_the_theme_gains(name):
    with_it, without = zip(*curves(EXAMPLES[name], name, 12), strict=True)
    assert max(with_it) < 200
    assert max(without) > 1e6
    text = (DOCS / "images" / f"theme-{name}.svg").read_text(encoding="utf-8")
    heights = [float(y) for y in re.findall(r'<circle class="with" cx="\S+" cy="(\S+)"', text)[:-1]]
    assert len(heights) > 100
    assert min(heights) > 200, "the errors with the theme lie at the bottom"


def test_fusion_makes_one_kernel_of_its_example():
    example = EXAMPLES["fusion"]
    values = example.given.values()
    assert len(tm.compile(example.function, *values).kernels) == 1
    assert len(tm.compile(example.function, *values, without="fusion").kernels) > 4
