"""Names from other libraries and their equivalents here, for users who type from memory."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

METHODS = {
    "grad": "An array knows no gradient: %%tensor --grad {x} makes grad_{x}, in the cell that computes with {x}.",
    "backward": "Gradients are asked for by %%tensor --grad w, or of a value: {way}.",
    "requires_grad": "Nothing has to be marked: %%tensor --grad {x} asks for the gradient.",
    "requires_grad_": "Nothing has to be marked: %%tensor --grad {x} asks for the gradient.",
    "zero_grad": "Gradients do not add up here: nothing has to be set to zero.",
    "detach": "{x}.numpy() is the value without its history; tm.stop_gradient({x}) stays in the graph.",
    "numpy": "",
    "eval": "{x}.numpy() is the value.",
    "block_until_ready": "{x}.numpy() waits for the value.",
    "cpu": "{x}.numpy() is the value, wherever it was computed.",
    "cuda": "%%tensor --device gpu runs a cell on a graphics card.",
    "to": "{x}.astype(np.float32) is of another dtype; %%tensor --device gpu runs a cell on a graphics card.",
    "at": "Arrays are stored into as in NumPy: {x}[i] = value, {x}[i] += value.",
    "assign": "Arrays are stored into as in NumPy: {x}[...] = value.",
    "unsqueeze": "Write {x}[None] for a new first axis, {x}[:, None] for a second one.",
    "permute": "NumPy calls it {x}.transpose(...).",
    "plot": "plt.plot({x}) draws it.",
    "numel": "NumPy calls it {x}.size.",
    "dim": "NumPy calls it {x}.ndim.",
    "matmul": "Write a @ b.",
    "float": "NumPy calls it {x}.astype(float).",
    "double": "NumPy calls it {x}.astype(float).",
    "long": "NumPy calls it {x}.astype(int).",
}
"""What values of other libraries have, and what is done here; ``{x}`` is the value, ``{way}`` how its gradient is asked for."""
_IS_AN_ARRAY = {"detach", "numpy", "eval", "block_until_ready", "cpu"}  # by which others make one

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


_HERE = {  # of a package that differentiates or compiles
    "jit": "@tm.tensor compiles a function at its calls, tm.compile(f, *arguments) at once.",
    "function": "@tm.tensor makes a graph of a function.",
    "value_and_gradient": "It is called tm.value_and_grad.",
    "derivative": "tm.grad(f) is the derivative of a function of one number; tm.vmap(tm.grad(f)) takes it at each element.",
    "gradient": "It is called tm.grad.",
    "jacfwd": "It is called tm.jacobian.",
    "jacrev": "It is called tm.jacobian.",
    "pmap": "tm.distribute splits rows over the processors of a cluster.",
    "lax": "for, while and if are written as in Python; tm.scan, tm.cond and tm.while_loop are there too.",
    "no_grad": "Gradients are computed where they are asked for, and nowhere else; tm.stop_gradient(x) is a constant for them.",
    "GradientTape": "Nothing has to be recorded: tm.grad(f) and %%tensor --grad w give gradients.",
    "nn": "There are no layers: write them in NumPy, as in x @ W + b.",
    "optim": "There are no optimisers: write the step, as in w = w - 0.1 * g.",
    "make_jaxpr": "tm.trace(f, x) is the graph of f: print it.",
    "manual_seed": "Random numbers are NumPy's: rng = np.random.default_rng(0), then rng.normal(size=3).",
    "random": "Random numbers are NumPy's: rng = np.random.default_rng(0), then rng.normal(size=3).",
    "tree_map": "Containers are gone through in Python: {k: p[k] - 0.1 * g[k] for k in p} of dictionaries.",
    "tree": "Containers are gone through in Python: {k: p[k] - 0.1 * g[k] for k in p} of dictionaries.",
    "tree_util": "Containers are gone through in Python: {k: p[k] - 0.1 * g[k] for k in p} of dictionaries.",
    "constant": "Arrays and numbers are what they are: nothing has to be made of them.",
    "Variable": "Arrays of NumPy's are variables: nothing has to be made of them.",
    "eval": "It is called tm.evaluate.",
}


def method(name: str, owner: Any, written: str, way: str) -> str:
    """Return what is done in place of a method or attribute that arrays of other libraries have, in the user's names; nothing for others.

    >>> method("numel", None, "X", "")
    'NumPy calls it X.size.'
    """
    if name in _IS_AN_ARRAY and isinstance(owner, np.ndarray | np.generic):
        return f"{written} is {'an array' if isinstance(owner, np.ndarray) else 'a number'} of NumPy's already: use it as it is."
    return METHODS.get(name, "").format(x=written, way=way)


def written_out(name: str) -> str:
    """Return what to write instead of a common function that neither Python nor the notebook has; empty for other names.

    >>> written_out("relu"), written_out("loss")
    ('There is no function relu: write np.maximum(x, 0).', '')
    """
    return f"There is no function {name}: write {_FUNCTIONS[name]}." if name in _FUNCTIONS else ""


def function(name: str, owner: Any) -> str:
    """Return what is written for a function that NumPy does not have; nothing for other modules, and names that nobody has.

    >>> import numpy as np
    >>> function("relu", np), function("relu", inspect), function("sumn", np)
    ('NumPy has no relu: write np.maximum(x, 0).', '', '')
    """
    if not inspect.ismodule(owner):
        return ""
    seen: Any = owner  # captured code sees modules through others
    home = inspect.unwrap(seen).__name__
    if home == "tensormagic":
        return _HERE.get(name) or (
            f"NumPy's functions are captured as they are: np.{name}." if hasattr(np, name) else ""
        )
    return f"NumPy has no {name}: write {_FUNCTIONS[name]}." if home == "numpy" and name in _FUNCTIONS else ""
