"""Writes docs/folders.md: each folder of the package and what it holds, from the docstring of its ``__init__.py``.

``python docs/generate_folders.py``
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1] / "tensormagic"
PAGE = Path(__file__).with_name("folders.md")
HEAD = """# The folders of the package

What each folder under `tensormagic/` holds, and how many files. {doc}`architecture` follows one cell through them.

| folder | files | holds |
|---|---|---|
"""


def page() -> str:
    """The page: a row for each folder, parts before what is in them."""
    rows: list[str] = []
    for init in sorted(ROOT.rglob("__init__.py"), key=lambda path: path.parent.parts):
        folder = init.parent
        if folder == ROOT:
            continue
        text = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or ""
        files = len(list(folder.glob("*.py"))) - 1
        holds = " ".join(text.partition("\n\n")[0].split())
        rows.append(f"| `{folder.relative_to(ROOT).as_posix()}/` | {files or ''} | {holds} |")
    return HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
