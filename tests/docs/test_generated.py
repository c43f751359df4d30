# tests named elsewhere

import difflib
import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

import tensormagic
from tensormagic.notebook import options
from tensormagic.ops.op import registry
from tensormagic.ops.scalars.scalar import scalar_op

DOCS = Path(__file__).parents[2] / "docs"


def generator(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def hold(page, made, command):
    """That a page is what its command writes; only the lines that differ are told."""
    old, new = (DOCS / page).read_text(encoding="utf-8").splitlines(), made.splitlines()
    lines = [
        line
        for line in difflib.unified_diff(old, new, "as it is", "as it is made", lineterm="", n=0)
        if line[0] in "+-"
    ]
    assert not lines, f"docs/{page} is not up to date: run `python docs/{command}.py`. What differs:\n" + "\n".join(
        lines[2:12]
    )


def test_the_table_of_operations_is_up_to_date():
    hold("ops.md", generator("generate_ops").table(), "generate_ops")


def test_the_page_of_folders_is_up_to_date():
    hold("folders.md", generator("generate_folders").page(), "generate_folders")


def test_the_table_of_errors_is_up_to_date():
    hold("error-classes.md", generator("generate_errors").page(), "generate_errors")


def test_the_page_of_magics_is_up_to_date(notebook):
    hold("magics.md", generator("generate_magics").page(notebook.shell), "generate_magics")


def options_of_cells():
    made = generator("generate_magics")
    return [(option, line) for option, line in made.EXAMPLES.items() if option not in made.ELSEWHERE]


@pytest.mark.parametrize(("option", "line"), options_of_cells(), ids=lambda text: text)
def test_the_example_of_an_option_runs_and_uses_it(option, line, clean):
    made = generator("generate_magics")
    clean(re.search(r"```ipython\n(.*?)```", made.HEAD, re.DOTALL)[1])
    ran = clean(f"{line}\n{made.BODY}")
    assert ran.error is None, ran.error
    spellings = [option] if option != "NAME" else ["objective"]
    spellings += [s for kinds, _, _ in options._TABLE if option in kinds for s in kinds]
    assert any(spelling in line.split() for spelling in spellings)


@pytest.mark.parametrize("option", sorted(generator("generate_magics").ELSEWHERE))
def test_the_example_of_an_option_that_a_machine_may_lack_is_read(option, notebook):
    line = generator("generate_magics").EXAMPLES[option].removeprefix("%%tensor ")
    magic = notebook.shell.magics_manager.magics["cell"]["tensor"]
    assert magic.parser.parse_argstring(line).__dict__[option.removeprefix("--")]


@pytest.mark.parametrize("line", [*generator("generate_magics").SETTINGS.values()])
def test_the_example_of_a_setting_is_one(line):
    import pathlib

    tm = tensormagic
    kept = dict(tm.config.__dict__)
    try:
        exec(line, {"tm": tm, "pathlib": pathlib})
        assert tm.config.__dict__ != kept or eval(line.partition(" = ")[0], {"tm": tm}) == eval(
            line.partition(" = ")[2], {"pathlib": pathlib}
        )
    finally:
        tm.config.__dict__.clear()
        tm.config.__dict__.update(kept)


def test_the_example_of_a_default_is_one(clean):
    text = (DOCS / "magics.md").read_text(encoding="utf-8")
    lines = re.findall(r"\| `(%config [^`]+)` \|$", text, re.MULTILINE)
    assert len(lines) >= 7
    magics = clean.shell.magics_manager.registry["TensorMagics"]
    kept = {name: getattr(magics, name) for name in magics.class_own_traits(config=True)}
    try:
        assert [line for line in lines if clean(line).error is not None] == []
    finally:
        for name, value in kept.items():
            setattr(magics, name, value)


def test_every_operation_says_what_it_is():
    silent = [op.name for op in registry.values() if not op.doc.endswith(".")]
    assert not silent, f"give them one line, doc='... .': {silent}"


@pytest.fixture
def versine():
    """An operation that NumPy does not have, added as CONTRIBUTING says: one record."""
    from tensormagic.ops.scalars.scalar import float_loop, sin

    op = scalar_op(
        "versine",
        lambda x: 1 - np.cos(x),
        source="1 - cos({0})",
        partials=lambda out, x: sin(x),
        dtypes=float_loop,
        doc="1 - cos(x).",
    )
    yield op
    del registry["versine"]


def test_one_record_is_an_operation(versine):
    from tensormagic.capture.values.operands import build

    function = tensormagic.tensor(lambda x: build(versine, x).sum())
    x = np.linspace(-3, 3, 7)
    assert function(x) == pytest.approx((1 - np.cos(x)).sum(), rel=1e-14)
    np.testing.assert_allclose(tensormagic.grad(function)(x), np.sin(x), rtol=1e-14)
    second = tensormagic.grad(lambda v: (tensormagic.grad(function)(v) ** 2).sum())(x)
    np.testing.assert_allclose(second, 2 * np.sin(x) * np.cos(x), rtol=1e-13, atol=1e-15)
    assert "| `versine` | 1 - cos(x). | f | yes |" in generator("generate_ops").table()


def test_the_page_of_coverage_names_every_function_with_its_cases():
    """The cases themselves run in tests/namespace; the page is written from a run of all of them."""
    coverage = generator("generate_coverage")
    expected = {name: len([c for c in cases if not c.refused]) for name, cases in coverage.grouped().items()}
    found = coverage.counts((DOCS / "coverage.md").read_text())
    other = sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name))
    assert not other, f"docs/coverage.md is not up to date: run `python docs/generate_coverage.py {' '.join(other)}`"


def test_the_picture_of_the_parts_is_up_to_date():
    drawing = generator("generate_architecture").drawing()
    assert (DOCS / "images" / "architecture.svg").read_text(encoding="utf-8") == drawing


def test_files_that_the_page_of_the_architecture_names_are_there():
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:\.py|/))`", text)
    assert len(named) > 40
    package = DOCS.parent / "tensormagic"
    assert not [name for name in named if not ((package / name).exists() or (DOCS.parent / name).exists())]
