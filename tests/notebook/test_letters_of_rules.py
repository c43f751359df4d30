"""Rules in the graph of a cell have letters that are no variables of the cell."""

import pytest

from tensormagic.notebook.pictures.labels import in_cell


@pytest.mark.parametrize(
    ("rule", "cell", "told"),
    [
        ("-x * y -> -(x * y)", "z = X @ w + b", "-x * y -> -(x * y)"),
        ("-x * y -> -(x * y)", "loss = np.sum(-y * z)", "-x * p -> -(x * p)"),
        ("-x * y -> -(x * y)", "x = y * p", "-q * r -> -(q * r)"),
        ("log(1 + x) -> log1p(x)", "for x in range(3):\n    p = x", "log(1 + q) -> log1p(q)"),
        ("log(1 + x) -> log1p(x)", "y = np.exp(w) if w > 0 else w", "log(1 + x) -> log1p(x)"),
        ("exp(v) / sum(exp(v), axes) -> softmax(v, axes)", "v = tm.grad(f)(w)", "exp(p) / sum(exp(p), axes) -> softmax(p, axes)"),
        (
            "sqrt(sum(x**2)) -> sqrt(sum((c * x)**2)) / c for a power of two c", "c = 1",
            "sqrt(sum(x**2)) -> sqrt(sum((p * x)**2)) / p for a power of two p",
        ),
        ("einsum(-x, y) -> -einsum(x, y)", "X @ w", "product(-x, y) -> -product(x, y)"),
        ("einsum(-x, y) -> -einsum(x, y)", "np.einsum('ij,j', x, w)", "einsum(-p, y) -> -einsum(p, y)"),
        ("sums in blocks", "x = y", "sums in blocks"),
    ],
)  # fmt: skip
def test_letters_that_a_cell_has_are_others_in_its_graph(rule, cell, told):
    assert in_cell(rule, cell) == told
