"""Writes docs/magics.md from what the magics, the settings and the commands declare. ``python docs/generate_magics.py``; a test holds it.

Each option has an example here, and a test runs it. What has none is an error.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any

from IPython.core.interactiveshell import InteractiveShell  # noqa: TID251 (its magics are what is described)

from tensormagic import cli
from tensormagic.config import Config
from tensormagic.notebook.magic import TensorMagics

_CODE = re.compile(r"(?<![\w-])--?[a-z][a-z-]*(?: (?:gpu|refuse))?|\bgrad_[AB]\b|\bx=VECTOR\b")
HEAD = """# Every magic, setting and command

Made by `python docs/generate_magics.py` from the package itself. {doc}`options` has the same by subject, with what is shown.

The examples below are for a notebook that begins like this:

```ipython
%load_ext tensormagic

import pathlib

import numpy as np
import tensormagic as tm

X, y = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.array([1.0, 2.0, 2.5])
w, b = np.array([0.5, -0.5]), 0.25
```

"""

BODY = "z = X @ w + b\nloss = np.mean((z - y) ** 2)\nloss\n"  # below each example of an option of %%tensor
EXAMPLES = {
    "NAME": "%%tensor objective",
    "--name": "%%tensor -n objective",
    "--input": "%%tensor -i X,y,w,b",
    "--output": "%%tensor -o loss",
    "--grad": "%%tensor --grad w,b",
    "--of": "%%tensor --grad w --of loss",
    "--device": "%%tensor --device auto",
    "--transfers": "%%tensor --device auto --transfers explicit",
    "--exclusive": "%%tensor --exclusive",
    "--async": "%%tensor --async",
    "--math": "%%tensor --math exact",
    "--without": "%%tensor --without stability,fusion",
    "--dtype": "%%tensor --dtype float32",
    "--show": "%%tensor --grad w --show graph,backprop",
    "--annotate": "%%tensor -a",
    "--time": "%%tensor -t",
    "--against": "%%tensor --against jax",
    "--live": "%%tensor --live b=-1:1",
    "--check": "%%tensor --check --grad w",
    "--plain": "%%tensor --plain",
    "--quiet": "%%tensor -q",
    "--force": "%%tensor -f",
    "--verbose": "%%tensor --verbose",
}
ELSEWHERE = {"--exclusive", "--against"}  # what needs a GPU, or a package that is not there
FIRST = f"%%tensor objective --grad w,b\n{BODY}"
MAGICS = {  # of magics without a parser's own example that runs as it stands
    "%tensor": "%tensor --math exact X.sum()",
    "%%rewrite": "%%rewrite mine --math stable --test\nlog(1 + exp(x)) -> logaddexp(0, x)\nsqrt(x**2) -> x      if x >= 0",
    "%tensor_default": "%tensor_default on\n%tensor_default off",
    "%tensor_cache": "%tensor_cache",
}
DEFAULTS = {"device": "auto", "dtype": "float32", "math": "exact", "show": "graph,code"}  # the others are switches
COMMANDS = {
    "demo": "tensormagic demo lesson.ipynb",
    "lab": "tensormagic lab my-notebooks",
    "export": "tensormagic export lesson.ipynb --numpy -o lesson.py",
    "doctor": "tensormagic doctor",
}
SETTINGS = {
    "math": "tm.config.math = 'exact'",
    "without": "tm.config.without = 'fusion,algebra'",
    "tier": "tm.config.tier = 'numba'",
    "device": "tm.config.device = 'auto'",
    "transfers": "tm.config.transfers = 'explicit'",
    "memory": "tm.config.memory = 2 * 10**9",
    "threads": "tm.config.threads = 1",
    "plain": "tm.config.plain = True",
    "cache_folder": "tm.config.cache_folder = pathlib.Path('cache')",
    "carried_folder": "tm.config.carried_folder = 'carried'",
}


def shell() -> Any:
    """A shell that has the magics."""
    found = InteractiveShell.instance()
    found.run_line_magic("load_ext", "tensormagic")
    return found


def cell(text: str) -> str:
    """A text as a cell of a table. Options and names in it are code: pages make one dash of two elsewhere."""
    plain = " ".join(text.split()).replace("|", r"\|")
    return plain if "`" in plain else _CODE.sub(r"`\g<0>`", plain)


def rows(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str, str]]:
    """Of each argument its spelling, the longest one, and what it does."""
    for action in parser._actions:  # noqa: SLF001 (argparse has no other list of them)
        if action.dest == "help" or isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            continue
        takes = f" {action.metavar.strip('<>')}" if action.option_strings and isinstance(action.metavar, str) else ""
        spelled = ", ".join(f"`{spelling}{takes}`" for spelling in action.option_strings)
        name = max(action.option_strings, key=len, default=str(action.metavar or action.dest))
        yield spelled or f"`{name}`", name, cell(action.help or "")


def of_cells(magic: Any) -> str:
    """The section of ``%%tensor``."""
    lines = [
        "## `%%tensor [NAME] [options]`",
        "",
        "Capture a cell of NumPy code into a graph; differentiate, compile and show it.",
        "",
        "| option | does | example |",
        "|---|---|---|",
    ]
    lines += [f"| {spelled} | {told} | `{EXAMPLES[name]}` |" for spelled, name, told in rows(magic.parser)]
    return "\n".join(lines)


def of_magic(name: str, magic: Any) -> str:
    """The section of another magic, made from its documentation."""
    text = (magic.__doc__ or "").removeprefix("::\n\n")
    usage, _, rest = text.partition("\n\n")
    if name == "%tensor":
        usage, told = "%tensor [options] EXPRESSION", "Capture one expression. The options are those of `%%tensor`."
    else:
        told = re.split(r"\n\n(?:positional arguments|options|Example)::?\n", rest)[0].strip()
    example = MAGICS.get(name) or text.partition("Example::")[2].strip()
    table = list(rows(magic.parser)) if name != "%tensor" else []
    lines = [f"## `{usage.strip()}`", "", told, ""]
    if table:
        lines += ["| argument | is |", "|---|---|", *(f"| {spelled} | {does} |" for spelled, _, does in table), ""]
    return "\n".join([*lines, "```ipython", example, "```"])


def of_defaults() -> str:
    """The section of the defaults of options."""
    lines = ["## `%config TensorMagics`", "", "Defaults of options of `%%tensor`, for the session.", ""]
    lines += ["| default | at first | is | example |", "|---|---|---|---|"]
    for name, trait in sorted(TensorMagics.class_own_traits(config=True).items()):
        example = DEFAULTS.get(name, True)
        lines.append(
            f"| `TensorMagics.{name}` | `{trait.default_value!r}` | {cell(trait.help)} | `%config TensorMagics.{name} = {example!r}` |"
        )
    return "\n".join(lines)


def of_settings() -> str:
    """The section of the settings, told in the words of their documentation."""
    told = dict(re.findall(r"^(\w+)\n((?:    .*\n)+)", f"{inspect.getdoc(Config)}\n", re.MULTILINE))
    told["without"] = Config.without.__doc__ or ""
    lines = ["## `tm.config`", "", "Settings of Python, for the session; `tm.config.using` has them for a block.", ""]
    lines += ["| setting | variable of the environment | is | example |", "|---|---|---|---|"]
    for name in ["math", "without", *(field.name for field in dataclasses.fields(Config) if field.name != "math")]:
        does = cell(told[name]).replace("``", "`")
        lines.append(
            f"| `tm.config.{name}` | `TENSORMAGIC_{name.upper()}` | {does[:1].upper()}{does[1:]} | `{SETTINGS[name]}` |"
        )
    return "\n".join(lines)


def commands() -> dict[str, argparse.ArgumentParser]:
    """The parsers of the commands, by name."""
    made: dict[str, argparse.ArgumentParser] = {}
    add = argparse._SubParsersAction.add_parser  # noqa: SLF001

    def kept(self: Any, name: str, **more: Any) -> argparse.ArgumentParser:
        made[name] = add(self, name, **more)
        made[name].description = more.get("help", "")
        return made[name]

    argparse._SubParsersAction.add_parser = kept  # type: ignore[method-assign] # noqa: SLF001
    try:
        with suppress(SystemExit), redirect_stdout(io.StringIO()):
            cli.main(["--help"])
    finally:
        argparse._SubParsersAction.add_parser = add  # type: ignore[method-assign] # noqa: SLF001
    return made


def of_commands() -> str:
    """The section of the commands of a terminal."""
    lines = ["## Commands of a terminal", "", "| command | does | example |", "|---|---|---|"]
    made = commands()
    lines += [
        f"| `tensormagic {name}` | {cell(parser.description or '')} | `{COMMANDS[name]}` |"
        for name, parser in made.items()
    ]
    lines += ["", "| command | argument | is |", "|---|---|---|"]
    lines += [
        f"| `tensormagic {name}` | {spelled} | {does} |"
        for name, parser in made.items()
        for spelled, _, does in rows(parser)
    ]
    return "\n".join(lines)


def page(of: Any = None) -> str:
    """The page, of the magics of a shell."""
    found = (of or shell()).magics_manager.magics
    own = {
        sign + name: magic
        for kind, sign in (("line", "%"), ("cell", "%%"))
        for name, magic in found[kind].items()
        if name.startswith("tensor") or name == "rewrite"
    }
    cells = own.pop("%%tensor")
    sections = [
        of_cells(cells),
        f"A first cell, which names the values that magics below take:\n\n```ipython\n{FIRST}```",
    ]
    sections += [of_magic(name, magic) for name, magic in own.items()]
    return HEAD + "\n\n".join([*sections, of_defaults(), of_settings(), of_commands()]) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("magics.md").write_text(page(), encoding="utf-8")
