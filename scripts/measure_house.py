"""Counts that say what shape the code is in: lines, long files, import circles, op names outside ``ops/``, decisions.

``python scripts/measure_house.py`` prints the table; ``--list COUNT`` prints what one count counts, a line each.
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import tensormagic
from tensormagic.ops.op import registry

ROOT = Path(tensormagic.__file__).parent
LONG, MANY = 500, 10
DECISIONS = (ast.If, ast.For, ast.While, ast.IfExp, ast.ExceptHandler, ast.comprehension, ast.match_case, ast.Assert)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def knows_ops(path: Path) -> bool:
    """Whether op names may stand in a file: the ops themselves, and files of rules."""
    return path.relative_to(ROOT).as_posix().startswith(("ops/", "transform/rewriting/"))


def named_ops(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Where a text compares an op's name with literals, and where tables of two or more op names stand."""
    names = set(registry)
    for node in ast.walk(tree):
        if isinstance(node, ast.Set | ast.Tuple | ast.List | ast.Dict):
            parts = node.keys if isinstance(node, ast.Dict) else node.elts
            found = [e.value for e in parts if isinstance(e, ast.Constant)]
            if len(found) > 1 and sum(isinstance(n, str) and n in names for n in found) * 2 > len(found):
                yield node.lineno, f"table {found}"
    for node, called in compared(tree):
        yield node.lineno, f"compares {ast.unparse(node).splitlines()[0]}{'' if called else ' …'}"


def compared(tree: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """Comparisons of an op's name with texts or tables, and whether the name is read there or was given a variable before."""
    for function in [tree, *(n for n in ast.walk(tree) if isinstance(n, FUNCTIONS))]:
        own = list(walk_function(function))
        variables = {name for n in own if isinstance(n, ast.Assign) for name in names_of_ops(n)}
        for node in own:
            sides = sides_of(node)
            named = [s for s in sides if is_name_of_op(s) or getattr(s, "id", "") in variables]
            if named and (len(sides) == 1 or any(s not in named and is_text(s) for s in sides)):
                yield node, any(map(is_name_of_op, named))


def sides_of(node: ast.AST) -> list[ast.expr]:
    """What a node compares; of a ``match`` and of ``startswith`` the one side that is no text."""
    match node:
        case ast.Compare(left=left, comparators=others):
            return [left, *others]
        case ast.Call(func=ast.Attribute(value=value, attr="startswith" | "endswith")):
            return [value]
        case ast.Match(subject=subject):
            return [subject]
        case _:
            return []


def is_text(node: ast.AST) -> bool:
    """Whether an expression holds texts: one, several, or a table with a name in capitals."""
    parts = list(ast.walk(node))
    texts = any(isinstance(n, ast.Constant) and isinstance(n.value, str) for n in parts)
    return texts or any(isinstance(n, ast.Name) and n.id.isupper() for n in parts)


def names_of_ops(assignment: ast.Assign) -> Iterator[str]:
    """The variables that an assignment binds to the names of ops."""
    for target in assignment.targets:
        pairs = [(target, assignment.value)]
        if isinstance(target, ast.Tuple) and isinstance(assignment.value, ast.Tuple):
            pairs = list(zip(target.elts, assignment.value.elts, strict=False))
        yield from (t.id for t, v in pairs if isinstance(t, ast.Name) and is_name_of_op(v))


def is_name_of_op(node: ast.AST) -> bool:
    """Whether an expression is ``….op.name`` or ``op.name``."""
    if not isinstance(node, ast.Attribute) or node.attr != "name":
        return False
    return getattr(node.value, "attr", getattr(node.value, "id", "")) == "op"


def walk_function(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, or of a module, less those of functions in it."""
    left = list(ast.iter_child_nodes(function))
    while left:
        node = left.pop()
        if not isinstance(node, FUNCTIONS):
            yield node
            left += ast.iter_child_nodes(node)


def decisions(function: ast.AST) -> int:
    """One more than the places where a function decides: branches, loops, handlers, ``and``, ``or``, comprehensions."""
    count = 1
    for node in walk_function(function):
        count += isinstance(node, DECISIONS)
        count += len(node.values) - 1 if isinstance(node, ast.BoolOp) else 0
        count += len(node.ifs) if isinstance(node, ast.comprehension) else 0
    return count


def inner_imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Imports inside functions."""
    for function in ast.walk(tree):
        if isinstance(function, FUNCTIONS):
            for node in ast.walk(function):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    yield node.lineno, ast.unparse(node)


def edges(path: Path, tree: ast.AST, modules: dict[str, Path], *, inner: bool) -> set[Path]:
    """The files that a file imports when it is imported, less those for types alone; with ``inner``, those of its functions, too."""
    parts = [
        p for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test) for p in n.body
    ]
    parts += [] if inner else [n for n in ast.walk(tree) if isinstance(n, FUNCTIONS)]
    skipped = {id(n) for part in parts for n in ast.walk(part)}
    found: set[Path] = set()
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {modules[a.name] for a in node.names if a.name in modules}
        elif isinstance(node, ast.ImportFrom) and node.module:
            parts = [f"{node.module}.{a.name}" for a in node.names]
            found |= {modules.get(p, modules.get(node.module, path)) for p in parts}
    return found - {path}


def circles(graph: dict[Path, set[Path]]) -> list[list[Path]]:
    """The sets of files that reach each other, largest first."""
    reach = {p: set(e) for p, e in graph.items()}
    for middle in graph:
        for p, seen in reach.items():
            if middle in seen:
                reach[p] = seen | reach[middle]
    seen: set[Path] = set()
    found: list[list[Path]] = []
    for p in graph:
        if p in reach[p] and p not in seen:
            found.append(sorted(q for q in reach[p] if p in reach[q]))
            seen |= set(found[-1])
    return sorted(found, key=len, reverse=True)


def main() -> None:
    """Print the table, or what one count counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", metavar="COUNT", help="a name in the table: print its places")
    wanted = parser.parse_args().list
    trees = {p: ast.parse(p.read_text(encoding="utf-8")) for p in sorted(ROOT.rglob("*.py"))}
    modules = {
        ".".join(["tensormagic", *p.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__"): p
        for p in trees
    }
    lines = {p: len(p.read_text(encoding="utf-8").splitlines()) for p in trees}
    ops = [(p, n, t) for p, tree in trees.items() if not knows_ops(p) for n, t in named_ops(tree)]
    functions = [
        (p, f.lineno, f"{decisions(f)} {f.name}")
        for p, t in trees.items()
        for f in ast.walk(t)
        if isinstance(f, FUNCTIONS)
    ]
    found = {
        "long": [(p, n, "lines") for p, n in lines.items() if n > LONG],
        "tables": [place for place in ops if place[2].startswith("table")],
        "comparisons": [place for place in ops if place[2].startswith("compares")],
        "decisions": sorted((f for f in functions if int(f[2].split()[0]) > MANY), key=lambda f: -int(f[2].split()[0])),
        "imports": [(p, n, t) for p, tree in trees.items() for n, t in inner_imports(tree)],
    }
    for name, inner in (("circles", False), ("inner_circles", True)):
        graph = {p: edges(p, t, modules, inner=inner) for p, t in trees.items()}
        found[name] = [(c[0], len(c), " ".join(q.relative_to(ROOT).as_posix() for q in c)) for c in circles(graph)]
    if wanted:
        for path, line, text in found[wanted]:
            print(f"{path.relative_to(ROOT)}:{line} {text}")
        return
    packages = Counter[str]()
    for p, n in lines.items():
        packages[p.relative_to(ROOT).parts[0]] += n
    print(
        f"{sum(lines.values()):,} lines in {len(lines)} files:",
        ", ".join(f"{k} {n:,}" for k, n in packages.most_common(9)),
    )
    words = {
        "long": f"files over {LONG} lines",
        "tables": "tables of op names outside ops/ and files of rules",
        "comparisons": "comparisons of op.name with literals there",
        "decisions": f"functions of over {MANY} decisions",
        "imports": "imports inside functions",
        "circles": "circles of imports between files",
        "inner_circles": "circles, with the imports inside functions",
    }
    for name, text in words.items():
        more = f" (files: {', '.join(str(n) for _, n, _ in found[name])})" if "circles" in name else ""
        print(f"{name:>14} {len(found[name]):>5}  {text}{more}")


if __name__ == "__main__":
    main()
