"""The options of ``%%tensor``: declared once, for reading, for their help and for completion. Knows no graphs."""

from __future__ import annotations

import argparse
import ast
import importlib.util
import keyword
import re
import unicodedata
from collections.abc import Callable, Container, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic_arguments import MagicArgumentParser, argument, kwds, magic_arguments

from tensormagic.alike import alike
from tensormagic.backend.cuda.device import is_there, missing
from tensormagic.config import config, leveled
from tensormagic.notebook.display.panels import PANELS

SHOWN = ("graph", "backprop", *PANELS, "speed")
CHOICES: dict[str, tuple[str, ...]] = {
    "--device": ("cpu", "gpu", "auto"),
    "--transfers": ("warn", "explicit", "refuse"),
    "--math": ("exact", "stable", "real"),
    "--dtype": ("float32", "float64"),
    "--show": (*SHOWN, "none"),
    "--against": ("jax", "pytensor", "torch"),
}
NAMES = ("-i", "--input", "-o", "--output", "--grad", "--of", "--live")  # options that take names of variables
_EXAMPLE = """
Example::

    %%tensor objective --grad w,b
    z = X @ w + b
    loss = np.mean(np.log(1 + np.exp(-y * z)))
    loss

X, y, w and b are arrays of the notebook. Afterwards loss and z are lazy values, so are grad_w and grad_b, and
objective(w=..., b=...) is a function of what the cell reads. `%tensor EXPRESSION` captures one line; options stand
before the expression, as in `%tensor --math exact X.sum()`.
"""

# one row an option: its spellings, its metavariable or None for a switch, and what it does
_TABLE: tuple[tuple[tuple[str, ...], str | None, str], ...] = (
    (("-n", "--name"), "NAME", "the same as NAME before the options"),
    (("-i", "--input"), "A,B", "names of the inputs (default: all variables of the notebook that the cell reads)"),
    (("-o", "--output"), "A,B", "names that the notebook gets (default: all that the cell assigns)"),
    (("--grad",), "A,B", "gradients of the cell's last expression with respect to A and B, as grad_A and grad_B"),
    (("--of",), "NAME", "with --grad: take the gradient of this variable instead of the last expression"),
    (("--device",), "DEVICE", "cpu, gpu, or auto, which chooses by size; results stay on the GPU"),
    (
        ("--transfers",),
        "POLICY",
        "copies to and from the GPU that you did not ask for: warn, explicit (refuse arrays), refuse (refuse all)",
    ),
    (("--exclusive",), None, "short for --device gpu --transfers refuse"),
    (("--async",), None, "return a future at once, and compute the cell in the background"),
    (
        ("--math",),
        "LEVEL",
        "which rewrites may be used: exact (they keep every bit), stable (never less accurate), real (true of real numbers)",
    ),
    (
        ("--without",),
        "THEMES",
        "what to leave out: themes of rules, stability, rules, loops, fusion; separate several by commas",
    ),
    (("--dtype",), "DTYPE", "float32 or float64: convert floating-point inputs to it"),
    (
        ("--show",),
        "WHAT",
        f"{', '.join(SHOWN)} or none; separate several by commas",
    ),
    (("-a", "--annotate"), None, "what each line became: its operations and its kernel, yellow where NumPy runs it"),
    (("-t", "--time"), None, "speed and accuracy, compared with plain NumPy"),
    (
        ("--against",),
        "PACKAGES",
        "like -t, and compared with jax, pytensor or torch, too, if they can run the cell unchanged",
    ),
    (
        ("--live",),
        "A=START:STOP[:STEP]",
        "a slider for A, with value, slope and plot; separate several by commas; x=VECTOR is the axis of a plotted vector",
    ),
    (("--check",), None, "compare gradients with finite differences, and the value with NumPy"),
    (("--plain",), None, "run the cell as ordinary Python and NumPy, without capturing it"),
    (("-q", "--quiet"), None, "show nothing"),
    (("-f", "--force"), None, "clear the cache of this cell"),
    (("--verbose",), None, "print each step, and show errors with the whole traceback"),
)
OPTIONS: dict[str, str | None] = {spelling: metavar for spellings, metavar, _ in _TABLE for spelling in spellings}

_OF_DEVICES = frozenset(("--device", "--transfers", "--exclusive"))


def offered() -> list[str]:
    """Return the options that apply here: without those for devices if there is no GPU, and those for missing packages."""
    return [o for o in OPTIONS if (o not in _OF_DEVICES or is_there()) and (o != "--against" or choices(o))]


def help_here(text: str) -> str:
    """Return the help of ``%%tensor`` without the options that do nothing here."""
    for left_out in OPTIONS.keys() - set(offered()):
        text = re.sub(rf"\n  {left_out}\b.*?(?=\n  -|\n\n)", "", text, flags=re.DOTALL)
    return text


def choices(option: str) -> tuple[str, ...]:
    """Return the choices of an option; of packages only those that are installed."""
    known = CHOICES[option]
    return tuple(filter(is_installed, known)) if option == "--against" else known


def is_installed(package: str) -> bool:
    """Return whether a package could be imported."""
    return importlib.util.find_spec(package) is not None


@dataclass(frozen=True)
class Options:
    """What the first line of a cell asks for."""

    name: str = ""
    inputs: tuple[str, ...] | None = None
    outputs: tuple[str, ...] | None = None
    grad: tuple[str, ...] = ()
    of: str = ""
    math: str = ""
    device: str = ""
    transfers: str = ""
    dtype: str = ""
    show: tuple[str, ...] = ("graph",)
    opened: bool = False
    quiet: bool = False
    force: bool = False
    check: bool = False
    plain: bool = False
    against: tuple[str, ...] = ()
    verbose: bool = False
    live: tuple[tuple[str, tuple[float, ...]], ...] = ()
    axis: str = ""
    later: bool = False


def declare(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a magic the options, and their table as its documentation."""
    help_of = "also make the cell a function of this name, whose arguments are the variables that it reads"
    function = argument("NAME", nargs="?", help=help_of)(function)
    for spellings, metavar, told in reversed(_TABLE):
        more: dict[str, Any] = {"metavar": metavar} if metavar is not None else {"action": "store_true"}
        more |= {"action": "append"} if "--live" in spellings else {}
        function = argument(*spellings, help=told, default=None, **more)(function)
    function = kwds(epilog=_EXAMPLE)(function)
    function = magic_arguments("tensor")(function)
    return _used(function, "%%tensor [NAME] [options]\n  %tensor [options] EXPRESSION")


def _used(function: Callable[..., Any], usage: str) -> Callable[..., Any]:
    """Put the usage line into a magic's documentation."""
    _, _, rest = (function.__doc__ or "").removeprefix("::\n\n").partition("\n\n")
    function.__doc__ = f"::\n\n  {usage}\n\n{rest}"
    return function


def describe(
    *rows: tuple[str, str | None, str], usage: str, example: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a magic with its options, and generate their table with an example as its documentation.

    A row is an option or an argument, its metavariable (None for a switch), and what it does; ``usage`` is how it is
    typed.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for spelling, metavar, told in reversed(rows):
            if not spelling.startswith("-"):
                function = argument(spelling, nargs="?", default="", help=told)(function)
            elif metavar is None:
                function = argument(spelling, action="store_true", help=told)(function)
            else:
                function = argument(spelling, metavar=metavar, default="", help=told)(function)
        function = kwds(epilog="Example::\n\n    " + example.strip().replace("\n", "\n    "))(function)
        return _used(magic_arguments()(function), usage)

    return decorate


def arguments(magic: Any, line: str, prefix: str = "%") -> argparse.Namespace:
    """Return the arguments of another magic in ``line``.

    Raises
    ------
    UsageError
        For what the magic does not take.
    """
    name = magic.__name__
    try:
        found: argparse.Namespace = magic.parser.parse_argstring(line.strip())
    except (UsageError, ValueError) as error:
        raise UsageError(f"{prefix}{name}: {error}; `{prefix}{name}?` shows what it takes") from None
    return found


def read(parser: MagicArgumentParser, line: str, defaults: Mapping[str, Any]) -> Options:
    """Return the options in ``line``; those that it does not name are as in ``defaults``.

    Raises
    ------
    UsageError
        For an option or a value that does not exist, with the nearest one that does.
    """
    line = re.sub(r",\s+", ",", line.strip())
    try:
        given: Any = parser.parse_argstring(line)
    except UsageError as error:
        raise UsageError(_explained(str(error), line)) from None
    except ValueError as error:  # quotation marks that are not closed
        raise UsageError(f"%%tensor: {error}") from None
    values = {k: v for k, v in vars(given).items() if v is not None}
    for option, allowed in CHOICES.items():
        for value in _split(values.get(option[2:], "")):
            if value not in allowed:
                near = (
                    _near(_ALSO.get(value, value), allowed)
                    if value != "formula"
                    else "; formulas are shown by %tensor_formula"
                )
                raise UsageError(f"%%tensor {option} must be one of {', '.join(allowed)}, not {value!r}{near}")
    values = _placed(values, defaults)
    _refuse(values, defaults)
    return _made(given, values, defaults)


def of_line(line: str, variables: Container[str]) -> tuple[str, str]:
    """Return the options that a ``%tensor`` line begins with, and the expression after them.

    A minus before the name of a variable is arithmetic: ``-q * 2`` with a variable ``q``.
    """
    rest, end = line.strip(), 0
    while found := re.compile(r"\s*(--?[a-z]+)(=\S*)?(?=\s|$)").match(rest, end):
        option, value = found.groups()
        if option.strip("-") in variables and value is None:
            break
        if option not in OPTIONS and not option.startswith("--"):
            break
        end = found.end()
        if OPTIONS.get(option) is not None and value is None:
            given = re.compile(r"\s*[^\s,]+(,\s*[^\s,]+)*,?").match(rest, end)
            end = given.end() if given is not None else end
    return rest[:end], rest[end:].strip()


def _made(given: argparse.Namespace, values: dict[str, Any], defaults: Mapping[str, Any]) -> Options:
    names = {given.NAME, given.name} - {None}
    if len(names) > 1:
        raise UsageError(f"%%tensor got two names: {given.NAME} and {given.name}")
    show = _split(values.get("show", defaults.get("show", "graph")))
    show += tuple(
        panel for panel, asked in (("annotate", given.annotate), ("speed", given.time or given.against)) if asked
    )
    known = {f.name for f in fields(Options)}
    made = {k: v for k, v in {**defaults, **values}.items() if k in known}
    if values.get("without"):
        try:
            made["math"] = leveled(made.get("math") or config.math, values["without"])
        except ValueError as error:
            raise UsageError(f"%%tensor --without: {error}") from None
    made |= {
        "name": _identifier(next(iter(names), ""), "NAME"),
        "inputs": _names(values, "input"),
        "outputs": _names(values, "output"),
        "grad": tuple(dict.fromkeys(map(_path, _split(values.get("grad", ""))))),
        "of": _identifier(values.get("of", ""), "--of"),
        "live": _ranges(values.get("live", [])),
        "axis": _axis(values.get("live", [])),
        "against": tuple(dict.fromkeys(_split(values.get("against", "")))),
        "show": tuple(dict.fromkeys(panel for panel in show if panel != "none")),
        "opened": "graph" in _split(values.get("show", "")),
        "later": bool(values.get("async")),
    }
    return Options(**made)


def _ranges(given: list[str]) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """``A=START:STOP[:STEP]``, several with commas."""
    found: dict[str, tuple[float, ...]] = {}
    for text in _split(",".join(given)):
        name, equals, ends = text.partition("=")
        if _is_axis(name, ends):
            continue
        parts = ends.split(":")
        if not equals and name.strip().isidentifier():
            raise UsageError(f"%%tensor --live {name.strip()} needs a range, as in --live {name.strip()}=0:10")
        if not equals or len(parts) not in {2, 3}:
            raise UsageError(
                f"%%tensor --live takes A=START:STOP or A=START:STOP:STEP, as in --live a=0:10, not {text!r}"
            )
        name = _identifier(name.strip(), "--live")
        if name in found:
            raise UsageError(f"%%tensor --live has two ranges for {name}")
        found[name] = tuple(_number(part) for part in parts)
    if given and not found:
        raise UsageError("%%tensor --live needs a range, as in a=0:10, beside x=VECTOR")
    return tuple(found.items())


def _is_axis(name: str, ends: str) -> bool:
    """Return whether ``x=tt`` names the vector for the horizontal axis, and is no range."""
    return name.strip() == "x" and ":" not in ends and ends.strip().isidentifier()


def _axis(given: list[str]) -> str:
    parts = [text.partition("=") for text in _split(",".join(given))]
    return next((ends.strip() for name, _, ends in parts if _is_axis(name, ends)), "")


def _number(text: str) -> float:
    """Return a number as Python writes it; an int stays one."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"%%tensor --live takes numbers, as in a=0:10 or a=-1:1:0.1, not {text!r}") from None


def _names(values: Mapping[str, Any], option: str) -> tuple[str, ...] | None:
    if option not in values:
        return None
    return tuple(dict.fromkeys(_identifier(name, f"--{option}") for name in _split(values[option])))


def _path(text: str) -> str:
    """Return a variable, or a part of one by attributes and constant indices: ``net.layers[0].w``."""
    with suppress(SyntaxError):
        parsed = top = ast.parse(text, mode="eval").body
        while isinstance(top, ast.Attribute) or (
            isinstance(top, ast.Subscript) and isinstance(top.slice, ast.Constant)
        ):
            top = top.value
        if isinstance(top, ast.Name):
            return ast.unparse(parsed)
    raise UsageError(f"%%tensor --grad: {text!r} is neither a variable nor a path like net.layers[0].w")


def _identifier(name: str, option: str) -> str:
    name = unicodedata.normalize("NFKC", name)  # as Python reads it: µ and μ are one name
    if name and (not name.isidentifier() or keyword.iskeyword(name)):
        raise UsageError(f"%%tensor {option}: {name!r} is not a name for a variable")
    return name


def _placed(values: dict[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with the device that they mean."""
    if values.get("exclusive"):
        for option, wanted in (("device", "gpu"), ("transfers", "refuse")):
            if values.setdefault(option, wanted) != wanted:
                raise UsageError(f"%%tensor --exclusive means --{option} {wanted}, not {values[option]}")
    device = values.get("device") or defaults.get("device") or config.device
    if values.get("transfers") and device == "cpu":
        raise UsageError("%%tensor --transfers needs --device gpu or auto: on the CPU nothing is copied")
    return {**values, "device": device} if values.get("transfers") else values


def _refuse(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Refuse options that this machine or another option rules out."""
    device = values.get("device") or defaults.get("device") or config.device
    plain = values.get("plain") or defaults.get("plain") or config.plain
    if device == "gpu" and not plain and not is_there():
        what, mend = missing() or ("", "")
        raise UsageError(f"%%tensor --device gpu: {what}. {mend}")
    if values.get("device") == "gpu" and values.get("plain"):
        raise UsageError("%%tensor --plain runs on the CPU and cannot be combined with --device gpu")
    if values.get("async"):
        _refuse_beside_async(values, plain=plain)
    if values.get("live") and (values.get("plain") or defaults.get("plain") or config.plain):
        raise UsageError("%%tensor --live needs a captured cell and cannot be combined with --plain")


def _refuse_beside_async(values: Mapping[str, Any], *, plain: Any) -> None:
    """Refuse options that a cell in the background does not support."""
    asked = next(
        (f"--{name}" for name in ("live", "check", "time", "annotate", "against", "show") if values.get(name)), ""
    )
    if asked:
        raise UsageError(f"%%tensor --async returns before there is a value and cannot be combined with {asked}")
    if plain:
        raise UsageError("%%tensor --async is for captured cells and cannot be combined with --plain")


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


_ALSO = {"cuda": "gpu", "single": "float32", "double": "float64"}  # what choices are called elsewhere


def _explained(message: str, line: str) -> str:
    """Return an error of the parser in the words of the user's line."""
    found = re.match(r"argument (?:.*/)?(--?\w+): expected one argument", message)
    if found is not None:
        return f"%%tensor {found[1]} needs a value; `%%tensor?` has an example"
    found = re.match(r"unrecognized arguments: (.*)", message)
    if found is None:
        return f"%%tensor: {message}; see `%%tensor?`"
    unknown = found[1].split()
    if "#" in line and any(word.startswith("#") for word in line.split()):
        return "%%tensor: a comment cannot stand behind the options; put it on the line below"
    option = next((word for word in unknown if word.startswith("-")), "")
    if not option:
        meant = [f"--{word}" for word in line.split() if f"--{word}" in OPTIONS]
        way = f" (did you mean {meant[0]}?)" if meant else ""
        return f"%%tensor takes one NAME before its options; {unknown[0]!r} is one too many in {line!r}{way}"
    name = option.partition("=")[0]
    near = _near(name, [o for o in OPTIONS if o.startswith("--")])
    return f"%%tensor has no option {name}{near}; see `%%tensor?`"


def _near(word: str, words: Any) -> str:
    near = alike(word, words, 2, 0.5)
    return f" (did you mean {' or '.join(near)}?)" if near else ""
