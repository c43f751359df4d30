"""Writes docs/error-classes.md from the classes of errors. ``python docs/generate_errors.py``; a test holds that it is up to date."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path

import tensormagic
from tensormagic.ir.errors import TensorError

HEAD = """# Classes of errors

Made by `python docs/generate_errors.py` from the classes themselves. {doc}`errors` explains the most frequent ones, each with an example.

Every error derives from `tm.TensorError`, and most also from the class that NumPy or Python has for the same mistake:
`except ValueError` and `except IndexError` work as they do without `%%tensor`. Those that are marked with `tm` can be named as
`tm.ShapeError`; the others are caught by a class that they derive from.

| class | derives from | means |
|---|---|---|
"""


def below(base: type) -> Iterator[type]:
    """The classes of the package that users see and that derive from a class, by name, each behind what it derives from."""
    for found in sorted(base.__subclasses__(), key=lambda found: found.__name__):
        if found.__module__.startswith("tensormagic."):
            if (
                getattr(sys.modules[found.__module__], found.__name__, None) is found
            ):  # not what users see by another name
                yield found
            yield from below(found)


def page() -> str:
    """The page."""
    for module in pkgutil.walk_packages(tensormagic.__path__, "tensormagic."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    rows: list[str] = []
    for found in dict.fromkeys([*below(TensorError), *below(UserWarning)]):
        name = f"`{found.__name__}`" + (" (`tm`)" if found.__name__ in tensormagic.__all__ else "")
        bases = ", ".join(f"`{base.__name__}`" for base in found.__bases__)
        rows.append(f"| {name} | {bases} | {(found.__doc__ or '').strip().splitlines()[0]} |")
    return HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("error-classes.md").write_text(page(), encoding="utf-8")
