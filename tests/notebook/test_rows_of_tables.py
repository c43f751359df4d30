"""Rows of tables of numbers and texts are pandas' own in cells; so are columns of objects that are numbers."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import tensormagic as tm
from tests.notebook.sameness import difference, form

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


OF_OBJECTS = {
    "s": ["s.sum()", "s * w", "s.dropna() * x[:1]", "x + s", "sum(v * w for v in s if v)", "s[s.notna()].tolist()", "np.sum(s)"],
    "d": [
        "d.groupby('a')['p'].sum()", "d[d.a > x[1]]", "d.p * w", "d.o * 2 + d.p", "d.assign(z=d.p * w)", "d.sort_values('p')",
        "d.loc[1, 'o'] + w", "d['o'].sum()", "d.pivot_table(index='a', values='p')", "d.iloc[1]['p']", "d.mean(numeric_only=True)",
    ],
}  # fmt: skip


@pytest.mark.parametrize("values", [[1, 2.5, None], [1, 2, 4], [None, 2.0, 3.0]])
@pytest.mark.parametrize("name", OF_OBJECTS)
def test_columns_of_numbers_as_objects_are_pandas_own_in_cells(notebook, name, values):
    column = pandas.Series(values, dtype=object)
    table = pandas.DataFrame({"a": [1, 2, 1], "p": [0.5, 1.0, 2.0], "o": column})
    start = {"s": column, "d": table, "x": np.arange(3.0), "w": 0.5}
    notebook["np"] = np
    for text in OF_OBJECTS[name]:
        for key, value in start.items():
            notebook[key] = copy.copy(value)
        found = notebook.ok(f"%%tensor\nfound = {text}\nfound").value
        wanted = eval(text, {**start, "np": np})
        assert not [d for d in difference(form(wanted), form(found)) if not d.startswith("digits")], text


@pytest.mark.parametrize("values", [[1, 2.5, None], [1, 2], [None, 2.0]])
def test_columns_of_numbers_as_objects_are_refused_by_functions(notebook, values):
    column = pandas.Series(values, dtype=object)
    with pytest.raises(tm.DTypeError, match="is of objects, some of them numbers"):
        tm.tensor(lambda s: s.sum())(column)
    notebook["s"] = column
    assert notebook("%%tensor --grad s\nnp.sum(s)").error is not None


def test_functions_take_the_other_columns_of_a_table_with_a_column_of_objects():
    table = pandas.DataFrame({"a": [1, 2, 1], "p": [0.5, 1.0, 2.0], "o": pandas.Series([1, 2.5, 3], dtype=object)})
    np.testing.assert_array_equal(tm.tensor(lambda d: (d.p * d.a).to_numpy())(table), [0.5, 2.0, 2.0])
    with pytest.raises(tm.TensorError, match="'o'"):
        tm.tensor(lambda d: d.o * 2).graph(table)
