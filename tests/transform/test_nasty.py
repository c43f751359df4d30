"""Expressions that lose all digits as they are written have them, in every form of number, at first and later calls."""

import pytest

from tests.transform.nasty import ENOUGH, FAMILIES, FORMS, worst

pytestmark = pytest.mark.usefixtures("by_numpy")
FREE = [f for f in FAMILIES if not f.needs]


@pytest.mark.share(3)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("family", FREE, ids=lambda f: f.name)
def test_families_are_accurate_at_stable(family, form):
    assert worst(family, form, "stable") < ENOUGH


@pytest.mark.share(3)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
def test_families_are_accurate_at_real(family, form):
    assert worst(family, form, "real") < ENOUGH


def test_numpy_loses_nearly_all_of_them_and_few_need_an_assumption():
    assert len({f.name for f in FAMILIES}) == len(FAMILIES) == 66
    assert len(FREE) == 63
    assert sum(worst(f, "array", "exact") < ENOUGH for f in FAMILIES) <= 3
