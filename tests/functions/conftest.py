"""What tests of functions share."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Make a function of the lines of its body, in a file of its own."""

    def make(body: str, arguments: str = "x") -> Any:
        path = tmp_path / f"made{len(list(tmp_path.iterdir()))}.py"
        path.write_text(f"import numpy as np\ndef f({arguments}):\n    {body}\n")
        space: dict[str, Any] = {}
        exec(compile(path.read_text(), str(path), "exec"), space)
        return space["f"]

    return make
