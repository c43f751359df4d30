"""What is known of matrices by how they were made, where it holds and nowhere else; one decomposition for several uses."""

import numpy as np
import pytest
import scipy.linalg as sla

import tensormagic as tm
from tensormagic.transform import definite, matrices
from tensormagic.transform.rewriting import rewrite

draw = np.random.default_rng(5)
N = 12
OPERANDS = {
    "A": draw.normal(size=(N, N)) + N * np.eye(N),
    "B": draw.normal(size=(N, N)),
    "U": draw.normal(size=(N, 2)),
    "d": draw.uniform(1, 2, N),
    "b": draw.normal(size=N),
}
SPACE = {"np": np, "sla": sla}
SQUARE = "np.trace(A @ A @ B @ B)"  # both are square


def made(text):
    """The matrix that a text is, as a node; both A and B are known to be square."""
    names = ", ".join(OPERANDS)
    function = eval(f"lambda {names}: (np.sort({text}, axis=0), {SQUARE})", dict(SPACE))
    graph = rewrite(tm.trace(function, *OPERANDS.values()), "stable").graph
    return graph.results[0].args[0]


FACTS = {
    "diagonal": lambda x: matrices.diagonal_of(x) is not None,
    "lower": lambda x: matrices.triangle_of(x) == "lower",
    "upper": lambda x: matrices.triangle_of(x) == "upper",
    "orthogonal": matrices.orthogonal,
    "blocks": lambda x: matrices.blocks_of(x) is not None,
    "kronecker": lambda x: matrices.factors_of(x) is not None,
    "symmetric": definite.symmetric,
    "semidefinite": definite.semidefinite,
    "definite": definite.definite,
    "low rank": lambda x: definite.low_rank(x) is not None,
}
KNOWN = {
    "np.diag(b)": "diagonal, symmetric",
    "np.diag(np.exp(b))": "diagonal, symmetric, semidefinite, definite",
    "np.eye(12) * 0.5": "diagonal, symmetric, semidefinite, definite",
    "np.diag(d) + 2 * np.eye(12)": "diagonal, symmetric",
    "np.tril(A)": "lower",
    "np.tril(A).T": "upper",
    "np.linalg.svd(A)[0]": "orthogonal",
    "sla.block_diag(A, B)": "blocks",
    "np.kron(A, B)": "kronecker",
    "A + A.T": "symmetric",
    "A - A.T": "",
    "A @ A.T": "symmetric, semidefinite",
    "A @ A": "",
    "A @ B.T": "",
    "U @ U.T": "symmetric, semidefinite",
    "3 * (A @ A.T) + 0.1 * np.eye(12)": "symmetric, semidefinite, definite",
    "A @ A.T - 0.1 * np.eye(12)": "symmetric",
    "-(A @ A.T)": "",
    "A @ A.T + np.exp(b[0]) * np.eye(12)": "symmetric, semidefinite, definite",
    "A @ A.T + b[0] * np.eye(12)": "symmetric",
    "np.linalg.inv(A @ A.T + 0.1 * np.eye(12))": "symmetric, definite",
    "np.eye(12) + np.outer(b, b)": "low rank",
    "np.diag(d) + b[:, None] * d": "low rank",
    "A + np.outer(b, b)": "",
    "A": "",
}


@pytest.mark.parametrize("text", KNOWN)
def test_facts_hold_where_they_follow_from_the_text_alone(text):
    node = made(text)
    assert [name for name, holds in FACTS.items() if holds(node)] == [f for f in FACTS if f in KNOWN[text].split(", ")]


def names_of(text, level="real"):
    names = ", ".join(OPERANDS)
    function = eval(f"lambda {names}: {text}", dict(SPACE))
    graph = rewrite(tm.trace(function, *OPERANDS.values()), level).graph
    found = tm.compile(function, *OPERANDS.values(), math=level)(*OPERANDS.values())
    np.testing.assert_allclose(found, function(*OPERANDS.values()), rtol=1e-9)
    return [n.op.name for n in graph.nodes]


K = "(A @ A.T + 0.5 * np.eye(12))"


@pytest.mark.parametrize(
    "text",
    [
        f"b @ np.linalg.solve({K}, b) + np.linalg.slogdet({K})[1]",
        f"-0.5 * b @ np.linalg.solve({K}, b) - 0.5 * np.linalg.slogdet({K})[1] * np.linalg.slogdet({K})[0]",
        f"(np.linalg.solve({K}, U) ** 2).sum() + (b @ np.linalg.solve({K}, d)) * np.linalg.slogdet({K})[1]",
    ],
)
def test_a_positive_definite_matrix_is_decomposed_once(text):
    names = names_of(text)
    assert names.count("cholesky") == 1
    assert not {"solve", "slogdet"} & set(names)
    assert "cholesky" not in names_of(text, "stable")


@pytest.mark.parametrize(
    "text",
    [f"np.linalg.solve({K}, b)", f"np.linalg.slogdet({K})[1]", "np.linalg.solve(A, b) * np.linalg.slogdet(A)[1]"],
)
def test_one_decomposition_alone_and_other_matrices_stay(text):
    assert "cholesky" not in names_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "np.linalg.solve(np.diag(d) + np.outer(b, b), U)",
        "np.linalg.inv(np.diag(d) + np.outer(b, d)) @ b",
        "np.linalg.inv(np.eye(12) + np.outer(b, d))",
        "np.linalg.det(np.diag(d) + np.outer(b, b))",
        "np.linalg.slogdet(np.diag(d) - np.outer(b, d) * 3)[1]",
    ],
)
def test_gradients_of_structured_matrices_are_those_of_the_text(text):
    names = ", ".join(OPERANDS)
    function = eval(f"lambda {names}: np.sum({text})", dict(SPACE))
    for argument in (3, 4):
        with tm.config.using(math="stable"):
            expected = tm.grad(function, argument)(*OPERANDS.values())
        with tm.config.using(math="real"):
            found = tm.grad(function, argument)(*OPERANDS.values())
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
