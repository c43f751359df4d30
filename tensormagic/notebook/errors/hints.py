"""What to do about an error: one instruction, from its message, the user's line and the variables in it.

Messages are Python's and NumPy's. It does not know how an error came about, nor how it is shown.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import GetSetDescriptorType
from typing import Any

import numpy as np

from tensormagic.alike import alike
from tensormagic.capture.values.value import Tensor
from tensormagic.functions.gradients.value_grad import way_to
from tensormagic.ir.errors import TensorError
from tensormagic.ir.plain_texts import counted
from tensormagic.notebook.cells.lost_names import lost
from tensormagic.notebook.errors import unpacking
from tensormagic.notebook.errors.failed_line import Line
from tensormagic.notebook.errors.other_libraries import METHODS, function, method, written_out
from tensormagic.notebook.errors.shape_fixes import fits_instead
from tensormagic.notebook.errors.shape_pictures import Misfit

_SIGNATURE = 100  # characters
_JOIN = {"concatenate", "stack", "vstack", "hstack", "dstack", "column_stack"}  # what takes arrays in one tuple
_DTYPES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
)


def hint(error: BaseException, line: Line, near: Mapping[str, Any], misfit: Misfit | None = None) -> str:
    """Return one instruction for an error; empty if none is known.

    Parameters
    ----------
    error
        The exception.
    line
        The user's line.
    near
        Names that a misspelt one may mean.
    misfit
        The shapes that do not fit, if the error is about these.
    """
    own = " ".join(error.hint.split()) if isinstance(error, TensorError) else ""
    if misfit is not None and not own:
        return fits_instead(misfit) if re.search(r"@|dot|matmul", line.part) or misfit.kind != "product" else ""
    if isinstance(error, NameError) and error.name:
        return _of_name(error.name, near, line)
    if isinstance(error, AttributeError) and error.name and error.obj is not None:
        return _of_attribute(error.name, error.obj, line)
    if isinstance(error, KeyError) and error.args:
        return _of_key(error.args[0], line)
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.partition(".")[0]
        return f"If it is not installed, run %pip install {package} in a cell of its own."
    if isinstance(error, SyntaxError) and (said := line.keyword_as_name()):
        return said
    message = error.message if isinstance(error, TensorError) else str(error)
    for pattern, said in _KNOWN:
        if found := re.search(pattern, message):
            return said(found, line) or own
    return own


_NO_ATTRIBUTE = r"module '([\w.]+)' has no attribute '([^\W_]\w*)'"


def of_plain(error: BaseException, line: Line) -> str:
    """Return the hint for an error of plain Python: on names that a failed cell would have set, lazy values and gradients."""
    if isinstance(error, ValueError) and "values to unpack" in str(error):
        return unpacking.of_derivative(line.text, line.space)
    if isinstance(error, NameError):
        return lost.hint(error.name or "")
    if isinstance(error, AttributeError) and isinstance(error.obj, Tensor) and error.name:
        return _of_attribute(error.name, error.obj, line)
    if isinstance(error, AttributeError) and isinstance(error.obj, np.ndarray | np.generic) and error.name in METHODS:
        return _of_attribute(error.name, error.obj, line)  # by those who come from other libraries
    if isinstance(error, TypeError) and (found := re.search(r"object is not callable", str(error))):
        return _property(line)
    if isinstance(error, TypeError) and getattr(line.called()[1], "__module__", "").startswith("tensormagic."):
        return hint(error, line, {})
    if isinstance(error, AttributeError) and (found := re.fullmatch(_NO_ATTRIBUTE, str(error))):
        module = sys.modules.get(
            found[1]
        )  # a module's own __getattr__, as NumPy's, names neither itself nor the attribute
        words = () if module is None else (n for n in dir(module) if not n.startswith("_"))
        return function(found[2], module) or _nearest(found[2], words)
    return ""


def _or(words: Iterable[str]) -> str:
    return " or ".join(words)


def _nearest(word: str, words: Iterable[str], least: float = 0.6) -> str:
    found = alike(word, words, least=least)
    return f"Did you mean {_or(map(repr, found))}?" if found else ""


_USUAL = {  # what notebooks call these modules
    "np": "import numpy as np",
    "plt": "import matplotlib.pyplot as plt",
    "pd": "import pandas as pd",
    "scipy": "import scipy",
    "tm": "import tensormagic as tm",
}


def _of_name(name: str, near: Mapping[str, Any], line: Line) -> str:
    if said := lost.hint(name):
        return said
    wanted = _USUAL.get(name) or (f"import {name}" if name in sys.stdlib_module_names else "")
    if wanted and re.search(rf"\b{name}\.", f"{line.part} {line.text}"):
        return f"Write {wanted} in a cell before this one."
    if home := next((n for n, v in near.items() if inspect.ismodule(v) and _has(v, name)), ""):
        return f"Did you mean {home}.{name}?"
    said = _nearest(name, [n for n in near if not n.startswith("_")]) or written_out(name)
    if said := said or _nearest(name, dir(builtins), 0.65):  # many short words are a little like anything
        return said
    return f"No variable has a name like {name}. Has the cell that assigns it been run?"


def _has(module: Any, name: str) -> bool:
    """Return whether a name is one of a module's own functions and numbers."""
    module = inspect.unwrap(module)  # captured code sees modules through others
    return not name.startswith("_") and name in dir(module) and not inspect.ismodule(getattr(module, name, None))


def _of_attribute(name: str, owner: Any, line: Line) -> str:
    if isinstance(owner, Tensor | np.ndarray | np.generic) and name in METHODS:
        written = line.owner_of(name)
        if name == "grad" and f"grad_{written}" in line.space:
            return f"The gradient with respect to {written} is grad_{written}."
        return method(
            name,
            owner,
            written or "x",
            way_to(owner, written or "y") if isinstance(owner, Tensor) else 'loss.grad("w")',
        )
    if said := function(name, owner):
        return said
    if isinstance(getattr(owner, "shape", None), tuple) and callable(getattr(np, name, None)):
        array = line.shaped()[0] or "x"
        return f"Arrays have no method {name}, but NumPy has a function: write np.{name}({array}, ...)."
    if isinstance(owner, list | tuple) and hasattr(np.ndarray, name):
        own = line.holding(lambda value: value is owner)
        return f"{own or 'It'} is a {type(owner).__name__}: np.array({own or '...'}) makes an array of it, which has {name}."
    return _nearest(name, [n for n in dir(owner) if not n.startswith("_")])


def _of_key(key: object, line: Line) -> str:
    name = line.holding(lambda value: _has_keys(value) and key not in value)
    if not name:
        return ""
    keys: list[Any] = list(line.space[name].keys())
    said = ", ".join(map(repr, keys[:8])) + (", …" if len(keys) > 8 else "")
    close = _nearest(str(key), map(str, keys)) if isinstance(key, str) else ""
    what = "keys" if isinstance(line.space[name], Mapping) else "columns"
    return f"{close} {name} has the {what} {said}.".strip() if keys else f"{name} has no {what}."


def _has_keys(value: Any) -> bool:
    """Return whether a value is a mapping, or a table with named columns."""
    return isinstance(value, Mapping) or _is_table(value)


def _is_table(value: Any) -> bool:
    return len(getattr(value, "shape", ())) == 2 and callable(getattr(value, "keys", None))


# shapes ---------------------------------------------------------------------------------------------------------------


def _axes(_: re.Match[str], line: Line) -> str:
    name, shape = line.shaped()
    if not shape:
        return f"{name} is one number and has no axes." if name else ""
    last = len(shape) - 1
    return f"{name} has {counted(len(shape), 'axis', 'axes')}: {f'0 to {last}' if last else '0'}, or -1 for the last."


def _bounds(found: re.Match[str], _: Line) -> str:
    size = int(found[1])
    return f"Indices go from 0 to {size - 1}, or from -{size} to -1." if size else "It has no elements there."


def _reshaped(found: re.Match[str], _: Line) -> str:
    sizes = [int(s) for s in re.findall(r"\d+", found[2])]
    made = (
        f", but {' x '.join(map(str, sizes))} is {math.prod(sizes)}" if len(sizes) > 1 and "-" not in found[2] else ""
    )
    return f"The sizes must multiply to {found[1]}{made}. One of them may be -1: it follows from the others."


def _too_many(_: re.Match[str], line: Line) -> str:
    name, shape = line.shaped()
    most = counted(len(shape), "index", "indices")
    return f"{name} has {counted(len(shape), 'axis', 'axes')}, and takes at most {most}." if name else ""


def _unpacked(_: re.Match[str], line: Line) -> str:
    if said := unpacking.told(line.text, line.space):
        return said
    name, shape = line.shaped()
    return f"{name} has {counted(shape[0], 'element', 'elements')}: give as many names on the left." if shape else ""


# types ----------------------------------------------------------------------------------------------------------------


def _kind(value: Any) -> str:
    """Return the kind of an array's dtype; empty for values without one."""
    return getattr(getattr(value, "dtype", None), "kind", "")


def _is_text(value: Any) -> bool:
    return isinstance(value, str | bytes) or _kind(value) in {"U", "S", "T"}


_TEXTS = "The column holds text. If these are numbers, convert them: .astype(float)."


def _operands(found: re.Match[str], line: Line) -> str:
    if name := line.holding(lambda value: value is None):
        return f"{name} is None, and not a number or an array: a function without return gives None."
    call = line.part_of(ast.Call)
    if _writes_none(line):
        return "None is written there, and is neither a number nor an array: np.nan is a number that is missing."
    if call is not None and "NoneType" in found.string:
        return f"{ast.unparse(call)} is None, and not a number or an array: a function without return gives None."
    if name := line.holding(_is_text):
        way = f"float({name})" if isinstance(line.space[name], str | bytes) else f"{name}.astype(float)"
        return f"{name} holds text. If these are numbers, convert them: {way}."
    if "can't multiply sequence" in found.string and line.holding(_is_table):
        return _TEXTS
    if isinstance(text := getattr(line.part_of(ast.Constant), "value", None), str):
        return f"{text!r} is text, and not a number."
    bits = line.part_of(ast.BinOp) or line.part_of(ast.UnaryOp)
    if isinstance(
        getattr(bits, "op", None), ast.BitAnd | ast.BitOr | ast.BitXor | ast.Invert | ast.LShift | ast.RShift
    ):
        return "These operators are for booleans and integers: compare first, in brackets, as in (a > 0) & (b > 0)."
    if name := line.holding(lambda value: isinstance(value, list | tuple)):
        return f"{name} is a {type(line.space[name]).__name__}: np.array({name}) makes an array of it."
    if name := line.holding(lambda value: _kind(value) == "O"):
        return f"{name} holds Python objects. If these are numbers, convert them: {name}.astype(float)."
    return ""


def _writes_none(line: Line) -> bool:
    """Return whether a binary operator of the line has the literal None as an operand."""
    sum_ = line.part_of(ast.BinOp)
    return sum_ is not None and any(isinstance(n, ast.Constant) and n.value is None for n in ast.walk(sum_))


def _nothing(_: re.Match[str], line: Line) -> str:
    name = line.holding(lambda value: value is None)
    return f"{name or 'It'} is None, and not a number or an array: a function without return gives None."


def _property(line: Line) -> str:
    """Return the hint for calling an attribute of an array that is no method: ``x.size()``."""
    called = line.part_of(ast.Call)
    part = called.func if called is not None else None
    if not isinstance(part, ast.Attribute) or not isinstance(
        getattr(np.ndarray, part.attr, None), GetSetDescriptorType
    ):
        return ""
    beside = "; the sizes of its axes are .shape" if part.attr == "size" else ""
    return f"{ast.unparse(part)} is no method: write it without brackets{beside}."


def _not_callable(_: re.Match[str], line: Line) -> str:
    if said := _property(line):
        return said
    written, value = line.called()
    if isinstance(getattr(value, "shape", None), tuple) or isinstance(value, list | tuple | dict | str):
        return f"{written} is not a function. To index it, write square brackets: {written}[...]."
    if written in dir(builtins) and written in line.space:
        return f"{written} is a variable here, and hides Python's own {written}: give it another name."
    return (
        "Is an operator or a comma missing before the bracket?"
        if not written.isidentifier()
        else f"{written} is no function."
    )


def _not_indexed(_: re.Match[str], line: Line) -> str:
    part = line.part_of(ast.Subscript)
    if part is None or not callable(line.value(part.value)):
        return ""
    written = ast.unparse(part.value)
    return f"{written} is a function. To call it, write round brackets: {written}({ast.unparse(part.slice)})."


def _arguments(_: re.Match[str], line: Line) -> str:
    if said := _joined(line):
        return said
    written, function = line.called()
    try:
        text = re.sub(r"<no value>", "...", str(_without_types(inspect.signature(function))))
    except (TypeError, ValueError):
        return ""
    return f"It is called as {written}{text if len(text) <= _SIGNATURE else text[: _SIGNATURE - 1] + '…'}"


def _without_types(signature: inspect.Signature) -> inspect.Signature:
    """Return a signature without type annotations, as one calls it."""
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return signature.replace(parameters=plain, return_annotation=signature.empty)


def _keyword(found: re.Match[str], line: Line) -> str:
    if found[1] == "requires_grad":
        return METHODS[found[1]].format(x="w")
    try:
        known = [p for p in inspect.signature(line.called()[1]).parameters if not p.startswith("_")]
    except (TypeError, ValueError):
        return ""
    return _nearest(found[1], known) or f"It takes {', '.join(known)}." if known else ""


def _narrow(_: re.Match[str], line: Line) -> str:
    store = line.part_of(ast.AugAssign)
    if not isinstance(store, ast.AugAssign) or not isinstance(store.target, ast.Name):
        return ""
    whole = ast.unparse(ast.BinOp(ast.Name(store.target.id), store.op, store.value))
    return f"Write {store.target.id} = {whole}, which makes a new array of the wider type."


_WHOLE = "A whole number is needed: convert it by int(...), or divide by //."


def _sizes(found: re.Match[str], line: Line) -> str:
    call = line.part_of(ast.Call)
    if found[1] == "tuple" and call is not None:
        return f"Write the sizes one by one: {ast.unparse(call.func)}(2, 3)."
    if found[1] in {"float", "numpy.float64"}:
        return _WHOLE
    return f"A whole number is needed, but this is of type {found[1]}."


def _as_sizes(_: re.Match[str], line: Line) -> str:
    call = line.part_of(ast.Call)
    if call is None or len(call.args) < 2:
        return ""
    return f"Give all sizes as one tuple: {ast.unparse(call.func)}(({', '.join(map(ast.unparse, call.args))}))."


def _joined(line: Line) -> str:
    """Return where a function that joins arrays has got them one by one."""
    call = line.part_of(ast.Call)
    own = line.called()[0].rpartition(".")[2]
    if call is None or own not in _JOIN or len(call.args) < 2:
        return ""
    return f"Give the arrays as one tuple: {ast.unparse(call.func)}(({', '.join(map(ast.unparse, call.args))}))."


def _fixed(found: re.Match[str], line: Line) -> str:
    """Return where something is stored into a tuple or a text."""
    name = next(iter(re.findall(r"^\s*([^\W\d]\w*)\s*\[", line.text)), "it")
    what, way = ("text", f"{name}.replace(...)") if found[1] == "str" else ("tuple", f"{name} = list({name})")
    return f"A {what} cannot be changed: {'make a new one' if found[1] == 'str' else 'a list can'}, {way}."


def _of_where(_: re.Match[str], line: Line) -> str:
    call = line.part_of(ast.Call)
    if call is None or len(call.args) != 2:
        return ""
    first, second = map(ast.unparse, call.args)
    called = ast.unparse(call.func)
    return f"Say what is to stand elsewhere, too: {called}({first}, {second}, 0). With the condition alone, it gives indices."


def _one_number(_: re.Match[str], line: Line) -> str:
    if said := _joined(line):
        return said
    name = line.shaped()[0]
    called, function = line.called()
    own = called.rpartition(".")[2]
    if getattr(function, "__module__", "") == "math" and hasattr(np, own):
        return f"{called} takes one number; np.{own} takes arrays."
    return f"Choose one element ({name}[0]), or reduce it ({name}.sum())." if name else ""


def _truth(_: re.Match[str], line: Line) -> str:
    called = line.called()[0]
    if called in {"max", "min", "sorted", "sum"}:
        return f"Python's {called} compares whole rows: use np.{'sort' if called == 'sorted' else called}."
    if line.part_of(ast.BoolOp) or isinstance(getattr(line.part_of(ast.UnaryOp), "op", None), ast.Not):
        return "Element by element, write & for and, | for or, ~ for not, with comparisons in brackets."
    return "For one answer write .all() or .any() behind the comparison; for one of each element use np.where."


def _read_only(_found: re.Match[str], line: Line) -> str:
    """Return a copy in place of the array that the line stores into."""
    name = next(iter(re.findall(r"^\s*([^\W\d]\w*)\s*(?:\[|\W{1,3}=)", line.text)), "")
    return f"{name or 'The array'} is read-only. Store into a copy{f': {name} = {name}.copy()' if name else ''}."


def _always(text: str) -> Callable[[re.Match[str], Line], str]:
    return lambda _found, _line: text


# what messages say, and what to do; the first that matches counts
_KNOWN: Sequence[tuple[str, Callable[[re.Match[str], Line], str]]] = (
    (
        r"^'(?:Tensor|numpy\.\w+)' object has no attribute '(\w+)'",
        lambda found, line: method(found[1], None, line.owner_of(found[1]) or "x", 'loss.grad("w")'),
    ),  # stored into
    (r"index -?\d+ is out of bounds for axis \d+ with size (\d+)", _bounds),
    (r"axis -?\d+ is out of bounds for array of dimension", _axes),
    (r"too many indices for array", _too_many),
    (r"(?:too many|not enough) values to unpack", _unpacked),
    (
        r"cannot unpack non-iterable (?:float|int|complex|bool|numpy)|'(?:float|numpy\.float\d+)' object is not iterable",
        lambda _, line: unpacking.of_number(line.text),
    ),
    (r"'(tuple|str)' object does not support item assignment", _fixed),
    (r"either both or neither of x and y", _of_where),
    (r"'return' outside function", _always("A cell is no function: end it with the value alone, without return.")),
    (r"with string dtype|with dtype '?str", _always(_TEXTS)),
    (r"cannot reshape array of size (\d+) into shape (\(.*\))", _reshaped),
    (r"Cannot cast ufunc '\w+' output", _narrow),
    (r"Cannot cast array data from .* to dtype\('u?int", _always("Convert it to whole numbers: x.astype(int).")),
    (r"did not contain a loop with signature|not supported for the input types", _operands),
    (r"unsupported operand type\(s\)|bad operand type for unary", _operands),
    (r"can't multiply sequence by non-int|can only concatenate", _operands),
    (
        r"Integers to negative integer powers",
        _always("Write the exponent as a float, -1.0, or convert: x.astype(float)."),
    ),
    (r"'NoneType' object (?:is not|has no)", _nothing),
    (r"object is not callable", _not_callable),
    (r"object is not subscriptable", _not_indexed),
    (r"got an unexpected keyword argument '(\w+)'", _keyword),
    (r"missing \d+ required|takes .* arguments? but|takes (?:at most|exactly|no) .*argument", _arguments),
    (r"data type '(\w+)' not understood", lambda found, _line: _nearest(found[1], _DTYPES)),
    (r"Cannot interpret '\d+' as a data type", _as_sizes),
    (r"'([\w.]+)' object cannot be interpreted as an integer", _sizes),
    (r"expected a sequence of integers or a single integer, got '.*[.e].*'", _always(_WHOLE)),
    (r"'(?:int|numpy\.int\d+)' object is not iterable", _always("To count, loop over range(...) of it.")),
    (r"math\.\w+ is not captured", _one_number),
    (r"only .*arrays can be converted", _one_number),
    (r"truth value of an array", _truth),
    (r"destination is read-only|output array is read-only", _read_only),
    (r"only integers, slices", _always("Use whole numbers as indices: convert by int(...), or divide by //.")),
    (
        r"arrays used as indices must be of integer",
        _always("Convert them to whole numbers, x.astype(int), or choose by a condition, as in a[x > 0]."),
    ),
    (
        r"(?:list|tuple) indices must be integers",
        _always("Lists are indexed by whole numbers, from 0; names are keys of dictionaries."),
    ),
    (r"boolean index did not match", _always("A mask needs an element for each one that it chooses from.")),
    (
        r"inhomogeneous shape|elements have different shapes",
        _always("Rows of an array must be of one length: keep a list, or pad them."),
    ),
    (
        r"must have same number of dimensions",
        _always("Give the smaller one another axis: x[None] puts it first, x[:, None] after the first."),
    ),
    (r"must have the same shape", _always("np.concatenate joins arrays of different lengths.")),
    (r"does not result in an equal division", _always("np.array_split makes parts of unequal lengths, too.")),
    (r"zero-size array to reduction", _always("Nothing was left to reduce: check its size first, or give initial=...")),
    (
        r"Singular matrix",
        _always("It has no inverse, since its rows depend on each other: np.linalg.lstsq and pinv take it."),
    ),
    (r"not positive definite", _always("Its eigenvalues must be positive: look at np.linalg.eigvalsh of it.")),
    (r"must be square", _always("np.linalg.lstsq and np.linalg.pinv take matrices that are not square.")),
    (r"unhashable type: 'numpy\.ndarray'", _always("Keys are numbers, texts or tuples: tuple(x.tolist()) can be one.")),
    (r"does not have enough dimensions", _always("@ multiplies matrices and vectors: write * for a number.")),
)
