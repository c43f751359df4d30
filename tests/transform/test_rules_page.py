"""docs/rules.md, which is generated, is up to date."""

import importlib.util
from pathlib import Path

from tensormagic.transform.loops.loop_rules import OF_LOOPS
from tensormagic.transform.rewriting import rules

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_rules_is_up_to_date():
    spec = importlib.util.spec_from_file_location("generate_rules", DOCS / "generate_rules.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = module.page()
    assert (DOCS / "rules.md").read_text() == page, (
        "docs/rules.md is not up to date: run `python docs/generate_rules.py`"
    )
    assert page.count("\n| `") == len(rules("real")) + sum(not rule.quiet for rule in OF_LOOPS)
