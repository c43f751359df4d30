"""Compiles staged code: the rewritten syntax of a cell or a function, with the run-time module among its constants."""

from __future__ import annotations
import __future__

import ast
import contextlib
import dis
import functools
import linecache
import operator
import sys
import warnings
from collections.abc import Generator, Iterable, Iterator
from functools import lru_cache
from types import CellType, CodeType, FunctionType
from typing import Any

from tensormagic.capture import clocks
from tensormagic.capture.hooks import run_time
from tensormagic.capture.inputs.stand_ins import own_of
from tensormagic.capture.python.bytecode import within
from tensormagic.capture.python.usercode import is_stageable
from tensormagic.capture.staging.loops.simple_code import called_by
from tensormagic.capture.staging.syntax import formulas
from tensormagic.capture.staging.syntax.generated_code import PART, RUNTIME
from tensormagic.capture.staging.syntax.received_code import locate, located
from tensormagic.capture.staging.syntax.statements import Staging
from tensormagic.capture.staging.syntax.syntax_trees import cloned, copied, placed, walk
from tensormagic.ir.alive import Alive

_BY_GLOBAL, _BY_MAPPING = (bytes([dis.opmap[name]]) for name in ("STORE_GLOBAL", "STORE_NAME"))
_FACTORY = "__tensor_factory__"
_MADE = "__tensor_made__"
_FUTURE: int = functools.reduce(
    operator.or_, (getattr(__future__, n).compiler_flag for n in __future__.all_feature_names)
)

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)

_staged = Alive[CodeType]()  # code that was staged already
_plain: dict[Any, CodeType] = {}  # the code of a cell's functions as it was written, by its position


# compiled code --------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _without_syntax_warnings() -> Generator[None]:
    """Suppress warnings about syntax, which Python gave where the user's code was compiled first."""
    with warnings.catch_warnings(action="ignore", category=SyntaxWarning):
        warnings.simplefilter("ignore", DeprecationWarning)  # of escapes in texts, before Python 3.12
        yield


def compiled(
    tree: ast.Module | ast.Expression, filename: str, mode: str, flags: int = 0, owner: str = "<module>"
) -> CodeType:
    """Compile rewritten syntax of the function ``owner``."""
    return _finished(compile(tree, filename, mode, flags=flags, dont_inherit=True), owner)


def is_part(code: CodeType) -> bool:
    """Return whether code is a block that was made a function here: tracebacks call it by the name of the user's function."""
    return PART in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def is_part_of(code: CodeType, around: CodeType) -> bool:
    """Return whether code is a block of ``around``, or of the same function as that."""
    return is_part(code) and (code.co_filename, code.co_name) == (around.co_filename, around.co_name)


def _finished(code: CodeType, owner: str) -> CodeType:
    part = is_part(code)
    own = owner if part or code.co_name in {_FACTORY, _MADE, "<module>"} else code.co_name
    constants = tuple(_constant(c, own) for c in code.co_consts)
    changes: dict[str, Any] = {"co_name": own, "co_qualname": own} if part else {}
    done = code.replace(co_consts=constants, **changes)
    _staged.add(done)
    return done


def _constant(value: Any, owner: str) -> Any:
    if isinstance(value, CodeType):
        return _finished(value, owner)
    if isinstance(value, str) and value == RUNTIME:
        return run_time.module
    return value


def staged_cell(
    body: ast.Module, last: ast.Expression | None, filename: str, after: set[str]
) -> tuple[CodeType, CodeType | None]:
    """Return the code of a cell's statements and of its last expression; the names ``after`` are needed later.

    The syntax tree is consumed.
    """
    if any(isinstance(n, _FUNCTIONS) for n in walk(body)):
        with _without_syntax_warnings():  # the warnings come when the staged code is compiled
            plain = compile(body, filename, "exec", dont_inherit=True)
        _keep_plain(plain)
    staging = Staging()
    needed = set(after)
    if last is not None and body.body:
        needed |= {n.id for n in walk(last) if isinstance(n, ast.Name)}
    tree = ast.Module(staging.module(body.body, needed), body.type_ignores)
    end = None
    if last is not None:
        end = compiled(ast.Expression(staging.visit(last.body)), filename, "eval")  # every node of it has a position
    return _binding_by_mapping(compiled(placed(tree), filename, "exec")), end


def _binding_by_mapping(code: CodeType) -> CodeType:
    """Return a cell's code that binds its variables through the mapping that it is run in, which may be no plain dictionary.

    Python binds them as globals where a function inside declares them so, as the parts of loops and branches do.
    """
    steps = bytearray(code.co_code)
    steps[::2] = steps[::2].replace(_BY_GLOBAL, _BY_MAPPING)  # every second byte is an opcode
    return code.replace(co_code=bytes(steps))


def _keep_plain(code: CodeType) -> None:
    for part in within(code):
        if part is not code:
            _plain[_where(part)] = part


def _where(code: CodeType) -> Any:
    """Return the key that tells the code of one function from another's; for two lambdas in one line, where their bodies begin."""
    start = min(_positions(code), default=None) if code.co_name == "<lambda>" else None
    return code.co_filename, code.co_name, code.co_firstlineno, start and start[:2]


def _positions(code: CodeType) -> list[tuple[int, int, int, int]]:
    """Return the source ranges of instructions: first line and column, last line and column."""
    found = [(a, c, b, d) for a, b, c, d in code.co_positions() if None not in {a, b, c, d}]
    return [p for p in found if p[1:2] + p[3:] != (0, 0)]  # type: ignore[misc]


def as_written(function: FunctionType, space: dict[str, Any]) -> FunctionType:
    """Return a function of a cell without staging, over other globals, for calls outside captured code."""
    return rebound(function, code_as_written(function), space)


def code_as_written(function: FunctionType) -> CodeType:
    """Return the code of a function without staging."""
    return _plain.get(_where(function.__code__), function.__code__)


def syntax_of(code: CodeType) -> ast.FunctionDef | ast.Lambda | None:
    """Return the syntax of a function of the user's as it was written, not to be changed; None where it is not available."""
    node = found(code)
    if not isinstance(node, ast.FunctionDef | ast.Lambda):
        return None
    return node if _identifiers(node).issuperset((*code.co_freevars, *code.co_names)) else None


def found(code: CodeType) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | None:
    """Return the syntax found at the position of a user's function; callers must check that its names are among the code's."""
    return _found(code) if is_stageable(code) else None


def calls_of(code: CodeType) -> tuple[str, ...] | None:
    """Return the names that a function of the user's calls, if its code is simple: see :func:`called_by`."""
    node = syntax_of(code)
    if node is None:
        return None
    return called_by([node.body] if isinstance(node, ast.Lambda) else node.body, whole=True)


@lru_cache(maxsize=4096)
def code_with_formulas(code: CodeType) -> CodeType | None:
    """Return the code of a user's function that checks operands before computing the formulas in it; None where it cannot be made."""
    node = syntax_of(code)
    if node is None or not formulas.are_in(node):
        return code
    if code.co_freevars:
        return None
    body = [ast.Return(node.body)] if isinstance(node, ast.Lambda) else node.body
    own = ast.FunctionDef("made", node.args, [formulas.within(cloned(s)) for s in body], [])
    if sys.version_info >= (3, 12):
        own.type_params = []
    made = _finished(compiled_anew(placed(ast.copy_location(own, node)), code), code.co_name)
    return made.replace(co_name=code.co_name, co_qualname=code.co_qualname)


def compiled_anew(node: ast.FunctionDef, code: CodeType) -> CodeType:
    """Return the code of a changed function without free names; its root node is owned, its parts may be shared."""
    node.decorator_list, node.returns, node.args = [], None, copied(node.args)
    node.args.defaults = [
        ast.copy_location(ast.Constant(None), d) for d in node.args.defaults
    ]  # the function already has them
    node.args.args = [ast.copy_location(ast.arg(a.arg), a) for a in node.args.args]
    with _without_syntax_warnings():
        whole = compile(
            ast.Module([node], []), code.co_filename, "exec", flags=code.co_flags & _FUTURE, dont_inherit=True
        )
    return next(c for c in whole.co_consts if isinstance(c, CodeType) and c.co_name == node.name)


def restore_written_code(function: FunctionType) -> None:
    """Give a function of a cell the code that the user wrote, in place: for everything that holds it."""
    code = code_as_written(function)
    if code is not function.__code__ and code.co_freevars == function.__code__.co_freevars:
        if function.__qualname__ == function.__code__.co_qualname:
            function.__qualname__ = code.co_qualname
        function.__code__ = code
    if function.__defaults__:
        function.__defaults__ = tuple(map(own_of, function.__defaults__))
    if function.__kwdefaults__:
        function.__kwdefaults__ = {n: own_of(v) for n, v in function.__kwdefaults__.items()}


# functions ------------------------------------------------------------------------------------------------------------


def staged(function: FunctionType) -> FunctionType:
    """Return ``function`` with its control flow staged; itself, where its source is not the user's or is not found."""
    locate(function)
    code = staged_code(function.__code__)
    return function if code is None or code is function.__code__ else rebound(function, code, function.__globals__)


def rebound(
    function: FunctionType, code: CodeType, space: dict[str, Any], cells: dict[str, CellType] | None = None
) -> FunctionType:
    """Return ``function`` with other code and globals and, if given, other closure cells."""
    own = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)) | (cells or {})
    closure = tuple(own[name] for name in code.co_freevars)
    made = FunctionType(code, space, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__, made.__qualname__ = function.__kwdefaults__, function.__qualname__
    made.__module__, made.__doc__ = function.__module__, function.__doc__
    if hasattr(function, "__type_params__"):  # from Python 3.12 on
        setattr(made, "__type_params__", getattr(function, "__type_params__"))  # noqa: B009, B010 (the types are those of 3.11)
    made.__dict__.update(function.__dict__)
    return made


def staged_code(code: CodeType) -> CodeType | None:
    """Return the staged code of a user's function; None where it cannot be staged."""
    return code if code in _staged else _staged_in(code.co_filename, code)


@lru_cache(maxsize=4096)
def _staged_in(_filename: str, code: CodeType) -> CodeType | None:
    own = located(code)  # equal code may stand in several files
    return _stage(own) if is_stageable(own) else None


def was_staged(function: Any) -> bool:
    """Return whether the code of a function, or of a method, is staged code."""
    return getattr(getattr(function, "__func__", function), "__code__", None) in _staged


def _stage(code: CodeType) -> CodeType | None:
    node = _found(code)
    if node is None or not _identifiers(node).issuperset((*code.co_freevars, *code.co_names)):
        return None  # not its source, or no longer
    node = cloned(node)
    node.args.defaults = [
        ast.copy_location(ast.Constant(None), d) for d in node.args.defaults
    ]  # the function already has them
    node.args.kw_defaults = [d and ast.copy_location(ast.Constant(None), d) for d in node.args.kw_defaults]
    if isinstance(node, ast.Lambda):
        made: ast.stmt = ast.copy_location(ast.Return(Staging().visit(node)), node)
    else:
        node.lineno = _first_line(node)  # the line at which Python says that the function begins
        node.decorator_list, node.returns = [], None
        if hasattr(node, "type_params"):  # from Python 3.12 on; where the code reads one, it is in a cell
            setattr(node, "type_params", [])  # noqa: B010 (the types are those of 3.11)
        for argument in walk(node.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        Staging().function(node, code.co_firstlineno)
        node.name = _MADE  # its own name in it, if it calls itself, is that of its module
        made = node
    given = ast.arguments([], [ast.arg(n) for n in code.co_freevars], None, [], [], None, [])
    factory = ast.copy_location(ast.FunctionDef(_FACTORY, given, [made], []), made)
    tree = placed(ast.Module([factory], []))
    with _without_syntax_warnings():
        whole = compiled(tree, code.co_filename, "exec", code.co_flags & _FUTURE, code.co_name)
    outer = next(c for c in whole.co_consts if isinstance(c, CodeType))
    inner = next(c for c in outer.co_consts if isinstance(c, CodeType) and c.co_name in {code.co_name, _MADE})
    return _renamed(inner.replace(co_name=code.co_name), inner.co_qualname, code.co_qualname)


def _renamed(code: CodeType, own: str, name: str) -> CodeType:
    """Return staged code whose inner functions and classes are named as in the function that the user wrote: ``f.<locals>.Point``."""

    def renamed(value: Any) -> Any:
        if isinstance(value, CodeType):
            return _renamed(value, own, name)
        within = isinstance(value, str) and (value == own or value.startswith(f"{own}."))
        return name + value[len(own) :] if within else value

    done = code.replace(co_consts=tuple(map(renamed, code.co_consts)), co_qualname=renamed(code.co_qualname))
    _staged.add(done)
    return done


def _identifiers(node: ast.AST) -> set[str]:
    """Return every name in a function's source, with ``__class__`` if ``super`` is among them."""
    found: set[str] = set()
    for n in walk(node):
        for field in _naming(n.__class__):
            if isinstance(value := n.__dict__.get(field), str):
                found.add(value)
                if "." in value:
                    found.update(value.split("."))
        if isinstance(n, ast.Global | ast.Nonlocal):
            found.update(n.names)
    return found | ({"__class__"} if "super" in found else set()) | {"AssertionError"} | clocks.ADDED


_NAMING = ("id", "attr", "arg", "name", "module", "asname")


@functools.cache
def _naming(kind: type[ast.AST]) -> tuple[str, ...]:
    """Return the fields of a kind of node that may hold names."""
    return tuple([name for name in _NAMING if name in kind._fields])


def _found(code: CodeType) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | None:
    """Return the syntax of a function, found by its name, line and parameters in its file; None if it is not there."""
    lines = linecache.getlines(code.co_filename)
    tree = _parsed(code.co_filename, _own_lines(code, lines)) or _parsed(code.co_filename, "".join(lines))
    if tree is None:
        return None
    if code.co_name == "<lambda>":
        lambdas = (n for n in walk(tree) if isinstance(n, ast.Lambda) and n.lineno == code.co_firstlineno)
        around = [n for n in lambdas if _contains(n.body, _positions(code))]
        found: Iterable[Any] = sorted(around, key=lambda n: _size(n.body))
    else:
        found = (n for n in _functions(tree) if n.name == code.co_name and _first_line(n) == code.co_firstlineno)
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return next((n for n in found if _arguments(n) == arguments), None)


def text_of(code: CodeType) -> str:
    """Return the text that the syntax of a function is parsed from, with lines in place."""
    lines = linecache.getlines(code.co_filename)
    return _own_lines(code, lines) or "".join(lines)


def _own_lines(code: CodeType, lines: list[str]) -> str:
    """Return the text of a function's file reduced to the function's own lines, at their places; empty for a lambda.

    Parsing a whole file for one function takes long. A text that is cut too short is a syntax error.
    """
    first = code.co_firstlineno - 1
    if code.co_name == "<lambda>" or not 0 <= first < len(lines):
        return ""
    margin = len(lines[first]) - len(lines[first].lstrip())
    last = first + 1
    while last < len(lines) and not lines[last - 1].lstrip().startswith(("def ", "async ")):  # decorators
        last += 1
    while last < len(lines) and _is_within(lines[last], margin):
        last += 1
    before = ["\n"] * (first - 1) + ["if True:\n"] if margin else ["\n"] * first
    return "".join(before + lines[first:last])


def _is_within(line: str, margin: int) -> bool:
    """Return whether a line may belong to the block before it, whose head stands at ``margin``."""
    text = line.lstrip()
    return not text or text.startswith(("#", ")")) or len(line) - len(text) > margin


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (n for n in walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))


def _first_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return node.decorator_list[0].lineno if node.decorator_list else node.lineno


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> tuple[str, ...]:
    args = node.args
    return tuple(a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs))


def _contains(body: ast.expr, positions: list[tuple[int, int, int, int]]) -> bool:
    start, end = (body.lineno, body.col_offset), (body.end_lineno or 0, body.end_col_offset or 0)
    return all(start <= (a, b) and (c, d) <= end for a, b, c, d in positions)


def _size(body: ast.expr) -> tuple[int, int]:
    return (body.end_lineno or 0) - body.lineno, (body.end_col_offset or 0) - body.col_offset


@lru_cache(maxsize=64)
def _parsed(filename: str, text: str) -> ast.Module | None:
    try:
        with _without_syntax_warnings():
            return ast.parse(text, filename) if text else None
    except SyntaxError:
        return None
