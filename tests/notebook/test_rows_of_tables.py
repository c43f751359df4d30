"""Rows of tables of numbers and texts are pandas' own in cells; columns of objects that are numbers are refused by name."""

from __future__ import annotations

import numpy as np
import pytest

pandas = pytest.importorskip("pandas")

TABLE = {"a": [1, 2, 3], "b": [1.5, 2.5, 3.5], "g": ["x", "y", "x"]}
CELLS = {
    "df.iloc[0]['b'] * x": 1.5 * np.arange(3.0),
    "df.loc[1, 'a'] + df.loc[1]['b']": 4.5,
    "[(row['a'] * 2, row['g'], row.b + x.sum()) for _, row in df.iterrows()]": [(2, "x", 4.5), (4, "y", 5.5), (6, "x", 6.5)],
    "df.apply(lambda r: r['a'] + r['b'], axis=1).tolist()": [2.5, 4.5, 6.5],
    "df.iloc[0].to_dict()": {"a": 1, "b": 1.5, "g": "x"},
    "df.T[0]['b'] - x[1]": 0.5,
    "df.sort_values('b', ascending=False).iloc[0]['g']": "x",
    "[v * 2 for v in df.loc[2]]": [6, 7.0, "xx"],
}  # fmt: skip


@pytest.mark.parametrize("cell", CELLS)
def test_elements_are_taken_from_rows(notebook, cell):
    notebook["df"], notebook["x"], notebook["np"] = pandas.DataFrame(TABLE), np.arange(3.0), np
    found = notebook.ok(f"%%tensor\nfound = {cell}\nfound").value
    assert np.array_equal(found, CELLS[cell]) if isinstance(CELLS[cell], np.ndarray) else found == CELLS[cell]


@pytest.mark.parametrize("values", [[1, 2.5, None], [1, 2], [None, 2.0]])
def test_columns_of_numbers_as_objects_are_refused(notebook, values):
    notebook["s"] = pandas.Series(values, dtype=object)
    ran = notebook("%%tensor\ns.sum()")
    assert "column s is of objects, some of them numbers" in ran.out
