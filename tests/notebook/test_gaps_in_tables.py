"""Gaps that captured code makes in Series and DataFrames (``np.log(s - 1)``, ``s / s``): what is summed leaves them out, as pandas does."""

import random

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

MADE = ("np.sqrt({} - 1)", "{0} / {0}", "np.log({} - 1) * 0.5", "{0} * 2 - {0} / {0}", "-np.sqrt(2.5 - {})", "{} + 1")
NAMES = ("sum", "mean", "std", "var", "min", "max", "prod", "any", "all", "cumsum", "cumprod")


def table(rng, kind):
    values = np.array([rng.choice([0.0, 0.5, 1.0, 2.0, 3.0]) for _ in range(12)])
    return pd.Series(values) if kind == "Series" else pd.DataFrame(values.reshape(4, 3), columns=list("abc"))


def asked(rng, kind):
    name, axes = rng.choice(NAMES), ["", "axis=0"] if kind == "Series" else ["", "axis=0", "axis=1", "axis='columns'"]
    if rng.random() < 0.3:
        axis = "" if kind == "Series" else "axis=0"
        return f"np.{name}(t, {axis})"
    options = [rng.choice(axes), rng.choice(["", "", "skipna=False", "skipna=True"])]
    return f"t.{name}({', '.join(filter(None, options))})"


@pytest.mark.parametrize("kind", ["Series", "DataFrame"])
@pytest.mark.parametrize("seed", range(25))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_gaps_are_left_out(notebook, kind, seed):
    rng = random.Random(f"{kind} {seed}")
    space = {"x": table(rng, kind), "np": np}
    lines = [f"t = {rng.choice(MADE).format('x')}", *(f"r{k} = {asked(rng, kind)}" for k in range(6))]
    notebook.shell.push(dict(space))
    with np.errstate(all="ignore"):
        exec("\n".join(lines), space)
        notebook.ok("%%tensor -q --math exact\n" + "\n".join(lines))
        for k in range(6):
            ours = np.asarray(notebook.shell.user_ns[f"r{k}"], dtype=float)
            pandas = np.asarray(space[f"r{k}"], dtype=float)
            np.testing.assert_allclose(ours, pandas, rtol=1e-12, err_msg=f"{lines[0]}; {lines[k + 1]}")


def test_what_has_no_gaps_is_summed_as_before(notebook):
    notebook.shell.push({"df": pd.DataFrame({"a": [0.0, 1.0], "b": [2.0, 3.0]})})
    notebook.ok("%%tensor -q\nm = df['a'].mean()\nn = df.sum(numeric_only=True)")
    assert float(notebook["m"]) == 0.5
    assert np.asarray(notebook["n"]).tolist() == [1, 5]
