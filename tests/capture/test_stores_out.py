"""``out=`` and ``where=``: results stored into arrays of the cell, with NumPy's casts and shapes."""

import numpy as np
import pytest

from tests.capture.harness import check

X = np.arange(12.0).reshape(3, 4)
NAMES = {
    "x": X,
    "y": X[::-1] * 0.5,
    "v": np.arange(4.0),
    "q": np.arange(9.0).reshape(3, 3),
    "i": np.array([3, 1, 2], np.int8),
    "f": np.zeros((3, 4), np.float32),
    "m": X % 3 > 0,
    "s": 2.5,
}

PROGRAMS = {
    "binary": "np.add(x, y, out=x)",
    "unary": "np.sqrt(x, out=y)",
    "by position": "np.multiply(x, 2, y)",
    "comparison": "np.less(x, y, out=m)",
    "comparison into floats": "np.less(x, 5, out=x)",
    "into less precision": "np.exp(x / 10, out=f)",
    "into a view": "np.add(v, 1, out=x[1])",
    "into a transpose": "np.add(q, q.T, out=q.T)",
    "overlapping": "np.add(v[1:], v[:-1], out=v[1:])",
    "overlapping backwards": "np.add(v[:-1], v[1:], out=v[1:])",
    "broadcast": "np.add(v, 1, out=x)",
    "numbers": "np.add(1, s, out=v)",
    "returns it": "z = np.add(v, 1, out=v)\nz[0] = 100",
    "chained": "np.sqrt(np.add(v, 1, out=v), out=v)",
    "two results": "np.divmod(x, 3, out=(x, y))",
    "two results, one out": "a, b = np.divmod(y, 2, out=(x, None))",
    "matmul": "np.matmul(q, q.T, out=q)",
    "matmul into a stack": "a = np.zeros((2, 3, 3))\nnp.matmul(q, q, out=a)",
    "dot": "a = np.empty((3, 3))\nnp.dot(q, q, out=a)",
    "dot of vectors into a row": "a = np.empty(3)\nnp.dot(q, q[0], out=a)\na[0] += 1",
    "outer": "a = np.empty((4, 3))\nnp.outer(v, q[0], out=a)",
    "sum": "np.sum(x, axis=0, out=v)",
    "sum into integers": "a = np.zeros((), int)\nnp.sum(y, out=a)",
    "sum of integers into floats": "a = np.zeros(())\nnp.sum(i, out=a)",
    "sum by method": "x.sum(axis=0, out=v)",
    "mean": "np.mean(x, axis=0, out=v)",
    "max": "np.max(x, axis=0, out=v)",
    "argmax": "a = np.zeros(4, int)\nnp.argmax(x, axis=0, out=a)",
    "std": "x.std(axis=0, out=v)",
    "any": "a = np.zeros(4, bool)\nnp.any(x > 9, axis=0, out=a)",
    "cumsum": "np.cumsum(x, axis=1, out=x)",
    "cumsum into integers": "a = np.zeros(4, int)\nnp.cumsum(v * 1.5, out=a)",
    "cumprod by method": "v.cumprod(out=v)",
    "reduce": "np.add.reduce(x, axis=0, out=v)",
    "accumulate": "np.add.accumulate(v, out=v)",
    "outer of a ufunc": "np.multiply.outer(v, q[0], out=x.T)",
    "clip": "np.clip(x, 2, 7, out=x)",
    "clip by method": "x.clip(2, 7, out=f)",
    "round": "np.round(y, 0, out=y)",
    "take": "np.take(v, [3, 0, 0, 1], out=v)",
    "concatenate": "a = np.zeros(8)\nnp.concatenate([v, v], out=a)",
    "stack": "a = np.zeros((2, 4))\nnp.stack([v, v + 1], out=a)",
    "trace": "a = np.zeros(())\nnp.trace(q, out=a)",
    "where": "np.add(x, 1, out=x, where=m)",
    "where, and another array": "np.sqrt(x, out=y, where=x > 2)",
    "where of one row": "np.multiply(x, 10, out=x, where=v > 1)",
    "where of one column": "np.add(v, 1, out=x, where=[[True], [False], [True]])",
    "safe division": "np.divide(x, y, out=np.zeros((3, 4)), where=y != 0)",
    "safe division, assigned": "z = np.divide(1, v, out=np.zeros_like(v), where=v > 0)",
    "where of a list of integers": "np.add(v, 1, out=v, where=[1, 0, 1, 1])",
    "where with a cast": "np.add(x, 0.5, out=f, where=m)",
    "in place on elements": "x[0, 0] += s\nnp.negative(x[0], out=x[0])",
    "at a step of a loop": "for k in range(3):\n    np.multiply(v, 0.5, out=v)\n    np.add(v, k, out=v)",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str):
    check(PROGRAMS[name], **NAMES)


ERRORS = {
    "another kind": "a = np.zeros(4, int)\nnp.add(v, 0.5, out=a)",
    "another shape": "np.add(x, 1, out=v)",
    "another shape of the same rank": "np.add(v, 1, out=q[0])",
    "matmul of another shape": "np.matmul(q, q, out=x)",
    "dot of another dtype": "a = np.empty((3, 3), np.float32)\nnp.dot(q, q, out=a)",
    "dot of another order": "a = np.empty((3, 3)).T\nnp.dot(q, q, out=a)",
    "sum of another shape": "np.sum(x, axis=0, out=q[0])",
    "sum that would be stretched": "np.sum(x, axis=0, out=x)",
    "cumsum of another shape": "np.cumsum(v, out=q[0])",
    "clip of another kind": "a = np.zeros(4, int)\nnp.clip(v, 0.5, 1, out=a)",
    "concatenate of another shape": "a = np.zeros(7)\nnp.concatenate([v, v], out=a)",
    "concatenate of another kind": "a = np.zeros(8, int)\nnp.concatenate([v, v], out=a)",
    "where of integers": "np.add(v, 1, out=v, where=np.array([1, 0, 1, 1]))",
    "where of another shape": "np.add(v, 1, out=v, where=m)",
    "into a number": "a = v[0]\nnp.add(v, 1, out=a)",
}


@pytest.mark.parametrize("name", ERRORS)
def test_error(name: str):
    check(ERRORS[name], **NAMES)
