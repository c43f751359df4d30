"""A sum that is a small part of its terms, and no smaller nearer to a place, does not cancel there: it is not read as series."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.transform.rewriting import rewrite
from tensormagic.transform.rewriting.sums import expansions

STAYS = (  # small by their numbers alone
    "np.tanh(x + 7.5) * np.cos(x + 7.5) + np.sin(x + 7.5) ** 2",
    "np.exp(x * 0.01 + 0.1) - np.cos(x * 0.01)",
    "np.sqrt(x + 3) - np.log(x + 5.2)",
)


@pytest.mark.parametrize("text", STAYS)
def test_what_gets_no_smaller_is_not_read(monkeypatch, text):
    read = []
    monkeypatch.setattr(expansions, "_form", lambda total, dtype, place: read.append(place))
    rewrite(tm.trace(eval(f"lambda x: {text}", {"np": np}), np.linspace(0.2, 2, 5)), "stable")
    assert not read
