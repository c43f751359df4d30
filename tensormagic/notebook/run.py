"""Running a captured cell: capture, gradients, values; when all of it worked, the notebook's variables."""

from __future__ import annotations

import ast
import difflib
import warnings
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

import numpy as np
from IPython.core.error import UsageError

from tensormagic import session
from tensormagic.capture import inputs
from tensormagic.capture.cell import Captured, Code, at_home, compile_cell, free_names, run_cell
from tensormagic.capture.tree import flatten
from tensormagic.capture.value import Tensor, input_tensor, node_of, wrap
from tensormagic.config import config
from tensormagic.functions.derivatives import gradient_nodes
from tensormagic.functions.function import Function, of_cell
from tensormagic.ir.errors import ConstantGradientWarning, DifferentiationError
from tensormagic.ir.node import Node
from tensormagic.notebook.lines import plain_python
from tensormagic.notebook.options import Options
from tensormagic.transform.grad import depends

_WHOLE = (bool, int, np.bool_, np.integer)

__all__ = ["Outcome", "Source", "compiled", "run", "run_plain", "setting"]


@dataclass(frozen=True)
class Source:
    """A cell as the user wrote it: its text below the magic's line, its label, and how often a cell has run."""

    text: str
    label: str
    count: int


@dataclass
class Outcome:
    """What a run of a cell gave.

    Parameters
    ----------
    code
        The cell, compiled.
    result
        The last expression's value, or that of the final assignment.
    name
        What the result is called, where it has a name.
    shown
        Whether the result is to be shown with its value.
    gradients, moving
        Of the result, by variable; and the variable's node.
    inputs
        The lazy array of each input.
    stored
        Names of notebook arrays that the cell has stored into.
    target
        What the gradients are of.
    notebook
        What the cell has read: the notebook's variables at that time.
    """

    code: Code
    options: Options
    result: Any
    name: str
    shown: bool
    gradients: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    moving: dict[str, Node] = field(default_factory=dict[str, Node])
    inputs: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    stored: tuple[str, ...] = ()
    target: Any = None
    outputs: dict[str, Any] = field(default_factory=dict[str, Any])
    notebook: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def _written(self) -> str:
        """The name that the cell ends in, where it ends in one."""
        last = self.code.parsed.last
        return last.body.id if last is not None and isinstance(last.body, ast.Name) else ""

    def release(self) -> None:
        """Let go of what only comparisons need, so that what is shown keeps no variable of the notebook alive."""
        self.notebook, self.inputs = {}, {}
        self.outputs = {} if tensors_in(self.result) else self.outputs

    @property
    def results(self) -> dict[str, Tensor]:
        """The lazy arrays that the cell is about: those in its value, else those it binds; and what gradients are of."""
        found = tensors_in(self.result)
        if isinstance(self.result, Tensor):
            named = {self.name or self._written or "value": self.result}
        elif found:
            named = {f"value[{k}]": tensor for k, tensor in enumerate(found)}
        else:
            named = {n: v for n, v in self.outputs.items() if isinstance(v, Tensor)}
        if isinstance(self.target, Tensor) and all(self.target.node is not t.node for t in named.values()):
            named[self.options.of] = self.target
        return named


@contextmanager
def setting(**values: Any) -> Generator[None]:
    """Settings of ``tm.config`` for a while; empty ones stay as they are."""
    kept = {name: getattr(config, name) for name in values}
    try:
        for name, value in values.items():
            if value:
                setattr(config, name, value)
        yield
    finally:
        for name, value in kept.items():
            setattr(config, name, value)


def compiled(source: Source, shell: Any) -> Code:
    """The cell, compiled so that its lines count from the magic's own; raises SyntaxError as Python would."""
    text = "\n" + plain_python(source.text, shell)
    filename = shell.compile.cache(text, source.count, raw_code=text)
    return compile_cell(text, source.label, source.count, filename)


def run(code: Code, shell: Any, options: Options) -> Outcome:
    """Capture the cell and change the notebook's variables, all or none of them."""
    before = dict(shell.user_ns)
    checked(code, options, before)
    notebook = cast(code, before, options)
    with setting(math=options.math), restored(code, before):
        captured = run_cell(code, notebook, options.inputs)
        outcome = _outcome(code, options, captured, notebook)
        if options.force:
            _forget(outcome)
        _compute(outcome, captured)
    for buffer in captured.stores:
        buffer.array = _original(buffer.array, notebook, before)
    _commit(outcome, captured, shell)
    return outcome


def run_plain(code: Code, shell: Any, options: Options) -> Outcome:
    """Run the cell as ordinary Python; gradients come from a capture beside it, by NumPy."""
    before = dict(shell.user_ns)
    checked(code, options, before)
    gradients: dict[str, Tensor] = {}
    read: dict[str, Tensor] = {}
    moving: dict[str, Node] = {}
    if options.grad or options.name:
        with setting(tier="numpy", math=options.math), restored(code, before), redirect_stdout(StringIO()):
            captured = run_cell(code, cast(code, before, options), options.inputs)
            outcome = _outcome(code, options, captured, before)
            gradients, moving, read = outcome.gradients, outcome.moving, outcome.inputs
            session.compute([t.node for t in gradients.values()])
    result = plain(code, shell.user_ns)
    if options.name:
        shell.push({options.name: function_of(code, options, read, shell)})
    name = "" if code.last is not None else code.parsed.last_name
    return Outcome(code, options, result, name, code.last is not None, gradients, moving, read, notebook=before)


def plain(code: Code, space: dict[str, Any]) -> Any:
    """The cell's own value, by Python and NumPy, over the variables in ``space``, which it binds too."""
    tree = ast.parse(code.cell.source, code.filename)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, code.filename, "exec"), space)  # noqa: S102 (running the user's cell is what this is for)
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), code.filename, "eval"), space)  # noqa: S307 (as above)
    return space.get(code.parsed.last_name) if code.parsed.last_name else None


# before ---------------------------------------------------------------------------------------------------------------


def checked(code: Code, options: Options, notebook: Mapping[str, Any]) -> None:
    """Refuse names in options that do not exist, before anything runs."""
    binds = code.parsed.binds
    if options.name and options.name in binds:
        raise UsageError(
            f"%%tensor {options.name}: the cell assigns {options.name}, so it cannot be the cell's name too; "
            f"call the cell {'objective' if options.name != 'objective' else 'cost'}, for example"
        )
    for name in options.inputs or ():
        if name not in code.parsed.reads:
            raise UsageError(f"%%tensor --input: the cell does not read {name}{near(name, code.parsed.reads)}")
        if name not in notebook:
            raise UsageError(f"%%tensor --input: the notebook has no variable {name}{near(name, notebook)}")
    for name in options.outputs or ():
        if name not in binds and name not in notebook:
            raise UsageError(f"%%tensor --output: the cell does not bind {name}{near(name, binds)}")
    for name in options.grad:
        if name not in notebook and name not in binds:
            raise UsageError(f"%%tensor --grad: there is no variable {name}{near(name, [*binds, *notebook])}")
    if options.of and options.of not in binds and options.of not in notebook:
        raise UsageError(f"%%tensor --of: there is no variable {options.of}{near(options.of, [*binds, *notebook])}")


def near(word: str, words: Iterable[str]) -> str:
    """`` (did you mean …?)``, where a name is near."""
    found = difflib.get_close_matches(word, [w for w in words if not w.startswith("_")], 2, 0.6)
    return f" (did you mean {' or '.join(found)}?)" if found else ""


def cast(code: Code, notebook: Mapping[str, Any], options: Options) -> dict[str, Any]:
    """The notebook as the cell reads it: floating inputs in the dtype that was asked for."""
    space = dict(notebook)
    if not options.dtype:
        return space
    done: dict[int, Any] = {}
    for name in code.parsed.reads:
        value = space.get(name)
        dtype = getattr(value, "dtype", None)
        if isinstance(value, np.ndarray | np.floating | Tensor) and dtype is not None and dtype.kind == "f":
            space[name] = done.setdefault(id(value), value.astype(options.dtype))
    return space


def _original(array: Any, notebook: Mapping[str, Any], before: Mapping[str, Any]) -> Any:
    """The notebook's own array for one that the cell has read, cast or not."""
    return next((before[name] for name, value in notebook.items() if value is array), array)


@contextmanager
def restored(code: Code, notebook: Mapping[str, Any]) -> Generator[None]:
    """Take back what the cell stored into lazy values of the notebook, where it fails."""
    tensors = [v for n in code.parsed.reads if isinstance(v := notebook.get(n), Tensor)]
    buffers = {id(t.place.buffer): t.place.buffer for t in tensors}
    kept = [(buffer, buffer.node, buffer.version) for buffer in buffers.values()]
    try:
        yield
    except BaseException:
        for buffer, node, version in kept:
            if buffer.version != version:
                buffer.store(node)
        raise


# gradients ------------------------------------------------------------------------------------------------------------


def _outcome(code: Code, options: Options, captured: Captured, notebook: Mapping[str, Any]) -> Outcome:
    result, name = captured.result, "" if captured.shown else code.parsed.last_name
    target = captured.values.get(options.of, notebook.get(options.of)) if options.of else result
    moving = {n: _moving(n, captured, notebook) for n in options.grad}
    gradients = _gradients(options, target, moving, code.cell.label)
    shown = captured.shown or bool(options.grad)
    read = {n: t for n, t in captured.inputs.items() if options.inputs is None or n in options.inputs}
    outputs = {n: v for n, v in captured.outputs.items() if options.outputs is None or n in options.outputs}
    return Outcome(
        code, options, result, name, shown, gradients, moving, read, target=target, outputs=outputs, notebook=notebook
    )


def _gradients(options: Options, result: Any, nodes: Mapping[str, Node], label: str) -> dict[str, Tensor]:
    if not nodes:
        return {}
    if result is None:
        raise UsageError("%%tensor --grad: the cell has no value; end it in an expression, or name one with --of")
    top = node_of(result)
    for name, node in nodes.items():
        if not depends([top], node):
            what = options.of or "the cell's value"
            message = f"{what} does not depend on {name}: grad_{name} is zero"
            warnings.warn_explicit(message, ConstantGradientWarning, label, 1)
    moving = list(nodes.values())
    apart = [
        n for n in moving if any(m is not n and depends([m], n) for m in moving)
    ]  # another variable is computed from it
    together = [n for n in moving if n not in apart]
    found = dict(zip(together, gradient_nodes(top, together), strict=True))
    found |= {n: gradient_nodes(top, [n])[0] for n in apart}
    return {name: wrap(found[node]) for name, node in nodes.items()}


def _moving(name: str, captured: Captured, notebook: Mapping[str, Any]) -> Node:
    """The node of a variable: the notebook's value, as the cell read it, before one that the cell binds."""
    own = name in captured.values and name in captured.parsed.binds and name not in captured.parsed.reads
    value = captured.values[name] if own or name not in notebook else notebook[name]
    tensor = value if isinstance(value, Tensor) else input_tensor(value, name)
    node = tensor.node if tensor is not None else None
    if node is None or not node.type.inexact:
        what = f"{node.type}" if node is not None else type(value).__name__
        raise DifferentiationError(
            f"{name} is {what}: there is no derivative with respect to it",
            f"Make it a float: {name} = np.asarray({name}, float).",
        )
    return node


# values and variables -------------------------------------------------------------------------------------------------


def tensors_in(value: Any) -> list[Tensor]:
    """The lazy arrays in a result."""
    return [leaf for leaf in flatten(value)[0] if isinstance(leaf, Tensor)]


def _forget(outcome: Outcome) -> None:
    nodes = [
        t.node
        for t in (*tensors_in(outcome.result), *tensors_in(list(outcome.outputs.values())), *outcome.gradients.values())
    ]
    if nodes:
        session.forget_values(nodes)
        session.forget(session.close_over(nodes, use_values=False).graph)
        session.forget(session.close_over(nodes).graph)


def _compute(outcome: Outcome, captured: Captured) -> None:
    """Compute in one run what is stored and shown; everything, where the level of rewriting is this cell's own."""
    options = outcome.options
    wanted = [buffer.node for buffer in captured.stores]
    if outcome.shown and not options.quiet:
        wanted += [t.node for t in (*tensors_in(outcome.result), *outcome.gradients.values())]
    if options.math:
        wanted += [t.node for t in (*tensors_in(list(captured.outputs.values())), *outcome.gradients.values())]
    if wanted:
        session.compute(list(dict.fromkeys(wanted)))


def _commit(outcome: Outcome, captured: Captured, shell: Any) -> None:
    """Everything worked: store into arrays, and bind names."""
    options = outcome.options
    stores = list(zip(captured.stores, session.compute([b.node for b in captured.stores]), strict=True))
    if stores:
        inputs.secure_all()
        _keep_read(outcome, [buffer.array for buffer, _ in stores])
    for buffer, value in stores:
        np.copyto(buffer.array, value, casting="same_kind")
    outcome.stored = tuple(buffer.name for buffer, _ in stores)
    bound = {name: at_home(value, shell.user_ns) for name, value in outcome.outputs.items()}
    if options.name:
        bound[options.name] = function_of(outcome.code, options, outcome.inputs, shell)
    shell.push(bound)


def _keep_read(outcome: Outcome, changing: list[Any]) -> None:
    """What is compared later with a run in NumPy starts from what the cell has read."""
    if outcome.options.check or "speed" in outcome.options.show:
        kept = {id(array): array.copy() for array in changing}
        outcome.notebook = {n: kept.get(id(v), v) for n, v in outcome.notebook.items()}


def function_of(code: Code, options: Options, read: Mapping[str, Tensor], shell: Any) -> Function:
    """The cell as a function of what it reads: arrays and floats, and ints and bools, which are taken for their values."""
    values = shell.user_ns
    numbers = set() if options.inputs else {n for n in free_names(code, values) if isinstance(values[n], _WHOLE)}
    return of_cell(code, options.name, [n for n in free_names(code, values) if n in read or n in numbers], values)
