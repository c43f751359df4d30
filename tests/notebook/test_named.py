"""A named cell, called: its options carry over to calls and to the functions that are made of it."""

import math

import numpy as np
import pytest

import tensormagic as tm


def test_the_level_of_rewriting_carries_over(notebook):
    notebook["big"] = np.array([1000.0, 2000.0])
    text = "%%tensor {} -q --math {}\nnp.sum(np.log(1 + np.exp(big)))"
    notebook.ok(text.format("strict", "exact"))
    notebook.ok(text.format("stable", "stable"))
    with np.errstate(all="ignore"):
        assert math.isinf(notebook["strict"]())
        assert np.isnan(tm.grad(notebook["strict"])(notebook["big"])).all()
        assert np.isnan(tm.vjp(notebook["strict"], notebook["big"])[1](1.0)[0]).all()
        assert np.isnan(tm.jvp(notebook["strict"], (notebook["big"],), (np.ones(2),))[1])
    assert notebook["stable"]() == 3000.0
    assert tm.grad(notebook["stable"])(notebook["big"]).tolist() == [1, 1]
    tm.config.math = "exact"
    try:
        assert notebook["stable"](notebook["big"] + 1) == 3002.0
        assert tm.grad(notebook["stable"])(notebook["big"] + 1).tolist() == [1, 1]
    finally:
        tm.config.math = "stable"


def test_the_dtype_carries_over(notebook):
    notebook.ok("%%tensor single -q --dtype float32\nnp.sum(X @ w) + b")
    single = notebook["single"]
    assert single().dtype == np.float32
    assert single(w=np.ones(3)).dtype == np.float32
    assert tm.grad(single, "w")(w=np.ones(3)).dtype == np.float32
    assert tm.value_and_grad(single, ("w", "X"))()[1][1].dtype == np.float32
    notebook.ok("%%tensor -q\nv = single(w=w + 1)")
    assert notebook["v"].dtype == np.float32
    notebook.ok("%%tensor part -q -i w --dtype float32\nX @ w")
    assert notebook["part"]().dtype == np.float32
    assert notebook["part"](np.ones(3)) == pytest.approx(notebook["X"].astype(np.float32).sum(1))


def test_what_is_made_for_types_takes_all_inputs_of_a_cell(notebook):
    notebook.ok("%%tensor objective -q\nloss = (w * X).sum()\nloss")
    for call, said in {
        "tm.compile(objective)": "tm.compile needs an example of each argument beside the function: objective has w, X",
        "tm.trace(objective, w)": "objective() takes 2 arguments (w, X)",
    }.items():
        ran = notebook(call)
        assert isinstance(ran.error, TypeError)
        assert isinstance(ran.error, tm.TensorError)
        assert said in ran.out
        assert "functions/cells.py" not in ran.out
    assert notebook.ok("tm.compile(objective, w, X).run(w, X)").value == 0
