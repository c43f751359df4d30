"""The colours of pictures (Okabe and Ito's, which colour-blind readers can tell apart) and the style sheet made of them.

The same rules serve an SVG that stands alone, with plain light colours, and a page, with variables that follow the
page's theme. A kind is never marked by its colour alone: outlines differ too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


FONT = "system-ui,-apple-system,'Segoe UI','DejaVu Sans',Arial,sans-serif"

LIGHT = {
    "ground": "#ffffff",
    "ink": "#1a1a1a",
    "soft": "#474747",
    "edge": "#7d7d7d",
    "strong": "#0072b2",
    "kernel": "#f2f4f8",
    "kernel-line": "#6f7f96",
    "input": "#d9eaf5",
    "input-line": "#0072b2",
    "constant": "#f6f6f6",
    "constant-line": "#8c8c8c",
    "pointwise": "#dcf2ea",
    "pointwise-line": "#009e73",
    "fold": "#fdefd0",
    "fold-line": "#c98a00",
    "move": "#e8f5fd",
    "move-line": "#2f93cc",
    "update": "#fbe1d2",
    "update-line": "#d55e00",
    "contract": "#f7e4ee",
    "contract-line": "#b65b8d",
    "opaque": "#ebebeb",
    "opaque-line": "#3a3a3a",
    "sent": "#e9e6f8",
    "sent-line": "#5b4bb5",
    "yellow": "#f6ee85",
    "yellow-line": "#8a8000",
}
DARK = {
    "ground": "#16181c",
    "ink": "#f2f2f2",
    "soft": "#c2c5ca",
    "edge": "#8d949e",
    "strong": "#6cc3f5",
    "kernel": "#1f242c",
    "kernel-line": "#7f90a8",
    "input": "#0f3550",
    "input-line": "#56b4e9",
    "constant": "#26292e",
    "constant-line": "#8d949e",
    "pointwise": "#0e3b30",
    "pointwise-line": "#22bd92",
    "fold": "#45340c",
    "fold-line": "#e69f00",
    "move": "#183544",
    "move-line": "#56b4e9",
    "update": "#4a250d",
    "update-line": "#f0803c",
    "contract": "#452a3b",
    "contract-line": "#e08fbd",
    "opaque": "#34373c",
    "opaque-line": "#c9ccd1",
    "sent": "#2c2850",
    "sent-line": "#a79df0",
    "yellow": "#524d0c",
    "yellow-line": "#f0e442",
}
# what follows the theme of Jupyter, or of VS Code; their softer ink is too pale for small text
PAGE = {
    "ground": ("--jp-layout-color1", "--vscode-editor-background"),
    "ink": ("--jp-ui-font-color1", "--vscode-editor-foreground"),
}
# where a reader has forced a few colours: outlines tell the kinds
_MARKED = {"ground": "Canvas", "strong": "Highlight", "update-line": "LinkText"}
FORCED = {
    name: _MARKED.get(name, "CanvasText" if name.endswith("-line") or name in {"ink", "soft", "edge"} else "Canvas")
    for name in LIGHT
}
_KINDS = ("input", "constant", "pointwise", "fold", "move", "update", "contract", "opaque", "sent", "yellow")


def rules(colour: Callable[[str], str]) -> str:
    """Return the rules that use colours; `colour` writes the colour of a name."""
    lines = [
        f".ground{{fill:{colour('ground')}}}",
        f"text{{fill:{colour('ink')}}}",
        f".type,.tag,.note{{fill:{colour('soft')}}}",
        f".edge{{stroke:{colour('edge')}}}",
        f".edge.back,.edge.on{{stroke:{colour('strong')}}}",
        f".frame{{fill:{colour('kernel')};stroke:{colour('kernel-line')}}}",
        f".frame.ran{{stroke:{colour('strong')}}}",
        f".heading{{fill:{colour('soft')};stroke:{colour('kernel')}}}",
        f".mark circle{{fill:{colour('ground')};stroke:{colour('ink')}}}",
        f".group path{{fill:{colour('kernel')};stroke:{colour('kernel-line')}}}",
        f".region path{{fill:{colour('input')};stroke:{colour('input-line')}}}",
        f".output path{{fill:{colour('input')};stroke:{colour('input-line')}}}",
    ]
    lines += [f".{kind} path{{fill:{colour(kind)};stroke:{colour(kind + '-line')}}}" for kind in _KINDS]
    lines.append(f".on.box>path,.on>.frame{{stroke:{colour('strong')}}}")
    return "\n".join(lines)


_PLAIN = f"""text{{font-family:{FONT};text-anchor:middle;unicode-bidi:plaintext}}
.name{{font-size:14px;font-weight:700}}
.op{{font-size:14px;font-weight:500}}
.symbol{{font-size:20px}}
.value{{font-size:12px}}
.type,.note{{font-size:12px}}
.tag{{font-size:12px;font-style:italic}}
.heading{{font-size:12px;font-weight:600;text-anchor:start;stroke-width:6px;paint-order:stroke;stroke-linejoin:round}}
.view{{font-size:14px;font-weight:700;text-anchor:start}}
.note{{text-anchor:start}}
.mark text{{font-size:12px}}
.box path{{stroke-width:1.4}}
.input path{{stroke-width:2.2}}
.constant path{{stroke-width:1;stroke-dasharray:1 2.5}}
.move path{{stroke-dasharray:5 3}}
.result>path{{stroke-width:3}}
.edge{{fill:none;stroke-width:1.3;stroke-linecap:round;stroke-linejoin:round}}
.edge.many{{stroke-width:3.5}}
.edge.far{{stroke-width:.7;stroke-dasharray:3 4}}
.frame{{stroke-width:1.2}}
.frame.ran{{stroke-width:2.2}}
.frame.idle{{stroke-dasharray:4 3}}
.on.box>path,.on>.frame,.edge.on{{stroke-width:3}}"""


def standalone() -> str:
    """Return the style sheet of an SVG that stands alone: light, for it cannot know the page that it will stand in."""
    return scoped(f"{_PLAIN}\n{rules(LIGHT.__getitem__)}", ".tm-still")


def scoped(style: str, scope: str) -> str:
    """Return a style sheet, one rule on each line, restricted to `scope`: some pages draw several pictures into one document."""
    lines = (line.split("{", 1) for line in style.splitlines())
    return "\n".join(",".join(f"{scope} {part}" for part in places.split(",")) + "{" + body for places, body in lines)


def themed(scope: str) -> str:
    """Return the style sheet of pictures inside `scope` of a page, light or dark as the page's theme says."""
    body = f"{_PLAIN}\n{rules(lambda name: f'var(--tm-{name})')}"
    return f"{variables(scope)}{scoped(body, f'{scope} .tm-picture')}\n"


def variables(scope: str) -> str:
    """Return the style sheet of the colours alone, as variables inside `scope` of a page."""
    light, dark = ({name: _themed(name, value) for name, value in table.items()} for table in (LIGHT, DARK))
    return in_themes(scope, light, dark, FORCED)


def in_themes(scope: str, light: Mapping[str, str], dark: Mapping[str, str], forced: Mapping[str, str]) -> str:
    """Return CSS variables inside `scope` for light and dark themes, and for colours forced by the reader.

    A page of unknown theme counts as light; the pages that we write follow the reader's system.
    """
    lights = f"[data-jp-theme-light='true'] {scope},.vscode-light {scope},.vscode-high-contrast-light {scope}"
    darks = f"[data-jp-theme-light='false'] {scope},.vscode-dark {scope}"
    darks += f",.vscode-high-contrast:not(.vscode-high-contrast-light) {scope}"
    in_light, in_dark, in_forced = (
        ";".join(f"--tm-{name}:{value}" for name, value in table.items()) for table in (light, dark, forced)
    )
    return (
        f"{scope}{{{in_light}}}\n@media (prefers-color-scheme:dark){{.tm-own {scope}{{{in_dark}}}}}\n"
        f"{lights}{{{in_light}}}\n{darks}{{{in_dark}}}\n"
        f"@media (forced-colors:active){{{scope},.tm-own {scope},{lights},{darks}{{{in_forced}}}}}\n"
    )


def _themed(name: str, value: str) -> str:
    for variable in reversed(PAGE.get(name, ())):
        value = f"var({variable},{value})"
    return value
