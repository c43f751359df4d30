"""What other libraries call things, and what is written here: for those who type from memory."""

from __future__ import annotations

import inspect
from typing import Any

__all__ = ["METHODS", "function"]

METHODS = {
    "backward": 'Gradients are asked for by %%tensor --grad w, or of a value: loss.grad("w").',
    "requires_grad": "Nothing has to be marked: %%tensor --grad w asks for the gradient.",
    "requires_grad_": "Nothing has to be marked: %%tensor --grad w asks for the gradient.",
    "zero_grad": "Gradients do not add up here: nothing has to be set to zero.",
    "detach": "x.numpy() is the value without its history; tm.stop_gradient(x) stays in the graph.",
    "eval": "x.numpy() is the value.",
    "block_until_ready": "x.numpy() waits for the value.",
    "cpu": "x.numpy() is the value, wherever it was computed.",
    "at": "Arrays are stored into as in NumPy: x[i] = v, x[i] += v.",
    "assign": "Arrays are stored into as in NumPy: x[...] = v.",
    "unsqueeze": "Write x[None] for a new first axis, x[:, None] for a second one.",
    "permute": "NumPy calls it x.transpose(...).",
    "numel": "NumPy calls it x.size.",
    "matmul": "Write a @ b.",
    "float": "NumPy calls it x.astype(float).",
    "double": "NumPy calls it x.astype(float).",
    "long": "NumPy calls it x.astype(int).",
}
"""What values of other libraries have, and what is done here."""

_RNG = "rng = np.random.default_rng(0) once, then rng"
_FUNCTIONS = {  # that NumPy has by no such name
    "sigmoid": "1 / (1 + np.exp(-x)), or scipy.special.expit(x)",
    "expit": "1 / (1 + np.exp(-x)), or scipy.special.expit(x)",
    "logit": "np.log(x / (1 - x)), or scipy.special.logit(x)",
    "relu": "np.maximum(x, 0)",
    "leaky_relu": "np.where(x > 0, x, 0.01 * x)",
    "softplus": "np.log(1 + np.exp(x)), or np.logaddexp(x, 0)",
    "silu": "x / (1 + np.exp(-x))",
    "softmax": "scipy.special.softmax(x, axis=-1)",
    "log_softmax": "scipy.special.log_softmax(x, axis=-1)",
    "logsumexp": "scipy.special.logsumexp(x)",
    "erf": "scipy.special.erf(x)",
    "erfc": "scipy.special.erfc(x)",
    "gamma": "scipy.special.gamma(x)",
    "lgamma": "scipy.special.gammaln(x)",
    "factorial": "scipy.special.factorial(n)",
    "ln": "np.log(x)",
    "rsqrt": "1 / np.sqrt(x)",
    "clamp": "np.clip(x, low, high)",
    "cat": "np.concatenate([a, b])",
    "mm": "a @ b",
    "bmm": "a @ b",
    "one_hot": "np.eye(n)[k]",
    "tensor": "np.array(...)",
    "norm": "np.linalg.norm(x)",
    "inv": "np.linalg.inv(A)",
    "det": "np.linalg.det(A)",
    "solve": "np.linalg.solve(A, b)",
    "eig": "np.linalg.eig(A)",
    "eigh": "np.linalg.eigh(A)",
    "svd": "np.linalg.svd(A)",
    "cholesky": "np.linalg.cholesky(A)",
    "randn": f"{_RNG}.normal(size=3)",
    "rand": f"{_RNG}.random(3)",
    "randint": f"{_RNG}.integers(0, 10, 3)",
    "normal": f"{_RNG}.normal(size=3)",
    "uniform": f"{_RNG}.uniform(0, 1, 3)",
}


def function(name: str, owner: Any) -> str:
    """What is written for a function that NumPy does not have; nothing for other modules, and names that nobody has.

    >>> import numpy as np
    >>> function("relu", np), function("relu", inspect), function("sumn", np)
    ('NumPy has no relu: write np.maximum(x, 0).', '', '')
    """
    if not inspect.ismodule(owner) or name not in _FUNCTIONS:
        return ""
    seen: Any = owner  # captured code sees modules through others
    is_numpy = inspect.unwrap(seen).__name__ == "numpy"
    return f"NumPy has no {name}: write {_FUNCTIONS[name]}." if is_numpy else ""
