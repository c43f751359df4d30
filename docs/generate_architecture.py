"""Draws docs/images/architecture.svg from the imports of the package; a test holds that it is up to date.

``python docs/generate_architecture.py``
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1] / "tensormagic"
PICTURE = Path(__file__).parent / "images" / "architecture.svg"
HOLDS = {  # what is drawn: not the small files that most others import, or that import most others
    "ir": "nodes, types, sizes, graphs, rules",
    "ops": "the operations, by kind",
    "capture": "from Python to graphs",
    "transform": "derivatives, batches, rewriting",
    "backend": "plan, kernels, compilers, cache",
    "session": "what is computed when",
    "functions": "tm.tensor, tm.grad, tm.vmap …",
    "notebook": "magics, displays, live views",
    "distributed": "tm.distribute",
    "numpy": "the array-API namespace",
    "__init__": "import tensormagic as tm",
}
WIDTH, HEIGHT, GAP, RISE, MARGIN = 212, 46, 16, 40, 14


def package_of(path: Path) -> str:
    """The part of the package that a file belongs to: a folder or a file at its top."""
    return path.relative_to(ROOT).with_suffix("").parts[0]


def imports() -> dict[str, set[str]]:
    """What each part of the package imports of the others."""
    found: dict[str, set[str]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        own = found.setdefault(package_of(path), set())
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            own.update(name.split(".")[1] for name in names if name.startswith("tensormagic."))
    parts = found.keys()
    return {part: {p for p in used if p in parts and p != part} for part, used in found.items() if part in HOLDS}


def floors(used: dict[str, set[str]]) -> dict[str, int]:
    """The floor of each part, from 0: right below the lowest of those that import it."""
    depth: dict[str, int] = {}

    def below(part: str) -> int:
        if part not in depth:
            depth[part] = 1 + max((below(p) for p, others in used.items() if part in others), default=-1)
        return depth[part]

    deepest = max(below(part) for part in used)
    return {part: deepest - depth[part] for part in used}


def drawing() -> str:
    """The picture: a row of boxes a floor, and a line from each part to what it imports, where that does not follow from other lines."""
    used = imports()
    level = floors(used)
    rows = [[p for p in HOLDS if p in level and level[p] == k] for k in range(max(level.values()) + 1)]
    width = max(len(row) for row in rows) * (WIDTH + GAP) - GAP + 2 * MARGIN
    height = len(rows) * (HEIGHT + RISE) - RISE + 2 * MARGIN
    place = {
        part: (
            (width - len(row) * (WIDTH + GAP) + GAP) / 2 + k * (WIDTH + GAP),
            height - MARGIN - HEIGHT - level[part] * (HEIGHT + RISE),
        )
        for row in rows
        for k, part in enumerate(row)
    }
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" role="img">',
        "<title>The parts of the package, by floor: each imports from lower floors only</title>",
        "<style>text{font:13px sans-serif;fill:#1b1f24}.what{font-size:11px;fill:#57606a}rect{fill:#f3f6fa;stroke:#0072b2}",
        "path{stroke:#8c959f;fill:none}@media (prefers-color-scheme:dark){text{fill:#e6edf3}.what{fill:#9aa4af}",
        "rect{fill:#161b22;stroke:#56b4e9}path{stroke:#6e7681}}</style>",
    ]
    for part, others in used.items():
        below = {p for p in others if p in place}
        reached = {q for p in below for q in used[p]}
        for other in sorted(below - reached):
            (x, y), (u, v) = place[part], place[other]
            lines.append(
                f'<path d="M{x + WIDTH / 2:.0f} {y + HEIGHT:.0f}V{v - RISE:.0f}L{u + WIDTH / 2:.0f} {v:.0f}"/>'
            )
    for part, (x, y) in place.items():
        name = "tensormagic" if part == "__init__" else part
        lines += [
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{WIDTH}" height="{HEIGHT}" rx="6"/>',
            f'<text x="{x + WIDTH / 2:.0f}" y="{y + 19:.0f}" text-anchor="middle">{name}</text>',
            f'<text class="what" x="{x + WIDTH / 2:.0f}" y="{y + 36:.0f}" text-anchor="middle">{HOLDS[part]}</text>',
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(drawing(), encoding="utf-8")
