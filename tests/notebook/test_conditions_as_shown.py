"""A condition on what constants alone decide goes by the number that is shown, and not by the formula as it was written."""

import pytest

WRITTEN = "x = np.array([0.0, 1000.0])\ny = np.log(1 + np.exp(x))"  # inf as written, 1000 as it is shown


@pytest.fixture
def improved(notebook):
    notebook(f"%%tensor -q\n{WRITTEN}")
    assert float(notebook["y"][1]) == 1000.0


@pytest.mark.parametrize(
    "asked",
    ["bool(y[1] == 1000)", "y[1] in [1000]", "bool(y.sum() < 2000)", "not y[1] > 1000", "5 if y[1] < 2000 else 0"],
)
@pytest.mark.parametrize("cell", ["found = {}", "%%tensor -q\nfound = {}"])
def test_what_an_earlier_cell_made_of_constants(notebook, improved, asked, cell):
    result = notebook(cell.format(asked))
    assert result.error is None
    assert notebook["found"]


def test_within_the_cell(notebook):
    notebook(f"%%tensor -q\n{WRITTEN}\nfound = 'equal' if y[1] == 1000 else 'other'")
    assert notebook["found"] == "equal"


@pytest.mark.filterwarnings("ignore:overflow")
def test_an_exact_cell_decides_by_numpy_s_digits(notebook):
    notebook(f"%%tensor -q --math exact\n{WRITTEN}\nfound = 'equal' if y[1] == 1000 else 'other'")
    assert notebook["found"] == "other"
