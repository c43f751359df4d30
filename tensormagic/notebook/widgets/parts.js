// The parts of the page around the picture, and its buttons.
function addParts(graph, body) {
  graph.tools = node("div", { class: "tm-tools", role: "toolbar", "aria-label": "graph" });
  const legend = node("div"), counts = node("div");
  graph.names = node("div", { class: "tm-stages", role: "group", "aria-label": "stages" });
  graph.search = node("input", { type: "search", placeholder: "search: press /", "aria-label": "search the graph" });
  graph.groupings = node("select", { "aria-label": "group the nodes" });
  graph.stepBar = node("div", { class: "tm-steps", role: "group", "aria-label": "steps of rewriting" });
  graph.main = node("div", { class: "tm-main" });
  graph.stage = node("div", { class: "tm-stage", tabindex: "0", role: "application" });
  graph.canvas = node("canvas", { class: "tm-canvas", "aria-hidden": "true" });
  graph.stage.appendChild(graph.canvas);
  graph.svg = svgNode("svg", { class: "tm-picture", "aria-hidden": "true" }, graph.stage);
  graph.world = svgNode("g", { class: "tm-world" }, graph.svg);
  graph.layers = layersIn(graph.world);
  [graph.frameLayer, graph.edgeLayer, graph.boxLayer, graph.headingLayer] = graph.layers;
  graph.beyond = coverOf(graph.stage);
  graph.tip = node("div", { class: "tm-tip", role: "presentation" });
  graph.side = node("div", { class: "tm-side" });
  graph.iterations = node("label", { class: "tm-iterations" }, "iteration");
  graph.iterations.appendChild(node("input", { type: "range", min: 0 }));
  graph.card = node("div", { class: "tm-details" });
  graph.source = node("ol", { class: "tm-source", "aria-label": "the cell" });
  graph.rules = node("details", { class: "tm-rules" });
  graph.outline = node("details", { class: "tm-outline" });
  graph.tree = node("ul", { role: "tree", "aria-label": "nodes of the graph" });
  graph.live = node("div", { class: "tm-live", role: "status", "aria-live": "polite" });
  graph.outline.append(node("summary", {}, "Outline"), graph.tree);
  graph.side.append(graph.iterations, graph.card, graph.source, graph.rules, legend, graph.outline);
  graph.stage.appendChild(graph.tip);
  graph.main.append(graph.stage, graph.side);
  graph.tip.hidden = graph.iterations.hidden = graph.stepBar.hidden = graph.rules.hidden = graph.canvas.hidden = true;

  // what the stages are, and how large; again where those after the first have come
  graph.staged = function staged() {
    const { line, summary, rules = [], ruled, chosen = [], views, begun } = graph.scene;
    graph.viewButtons = views.map((each) => {
      const made = button(each.stage, each.stage, () => graph.show(each.name));
      made.title = `${each.told}${each.counted}`;
      made.append(" ", node("span", { class: "tm-count" }, each.counted));
      made.setAttribute("aria-pressed", String(each === graph.view));
      return made;
    });
    const then = (text, title = "") => node("span", { class: "tm-then", title, "aria-hidden": "true" }, text);
    graph.names.replaceChildren(...(views.length > 1 || begun ? [node("span", { class: "tm-as" }, "stages")] : []),
      ...graph.viewButtons.flatMap((made, k) => (k ? [then("\u2192"), made] : [made])),
      ...(begun ? [then("\u2192 \u2026", "the other stages come when the kernel has answered")] : []));
    graph.stage.setAttribute("aria-label", `${summary}. ${HELP}`);
    legend.replaceChildren(legendOf(graph.scene.legend));
    const all = node(rules.length ? "details" : "div", { class: "tm-counts" });
    // the line above says "graph" already, and without it the summary stands there
    const told = [line ? summary.replace("graph: ", "") : "", ruled];
    all.append(node(rules.length ? "summary" : "span", { title: "one computation: as you wrote it, as rules have changed it, and as the compiled loops and library calls that run it" }, told.filter(Boolean).join(" \u00b7 ")), ...rules.map((rule) => node("div", {}, rule)));
    counts.replaceChildren(all, ...chosen.map((text) => node("div", { class: "tm-counts" }, text)));
  };
  graph.staged();
  graph.groupings.addEventListener("change", () => { graph.chosen = graph.groupings.value; graph.show(graph.view.name); });
  graph.groupButton = button("open all", "open or close all groups", () => graph.flipAll());
  const files = node("div", { class: "tm-views", role: "group", "aria-label": "save as" });
  files.append(...["SVG", "PNG", "HTML", "DOT", "Mermaid"].map((kind) => button(kind, `save as ${kind}`, () => graph.save(kind))));
  files.prepend(node("span", { class: "tm-as" }, "save as"));
  const zoom = node("div", { class: "tm-zoom", role: "group", "aria-label": "zoom" });
  zoom.append(button("\u2212", "zoom out", () => graph.zoomBy(1 / 1.3)), button("+", "zoom in", () => graph.zoomBy(1.3)),
    button("fit", "fit the graph into the view", () => graph.fit(true)));
  graph.tools.append(graph.names, graph.groupings, graph.groupButton, zoom, graph.search, files);
  body.append(counts, graph.tools, graph.stepBar, graph.main, graph.live);
}

// what the signs mean that are in sight: a reader meets them before the legend
function signsOf(rows = [], { boxes, edges } = { boxes: [], edges: [] }) {
  const seen = { "A dot": boxes.some(({ box }) => (box.t || []).some(([text]) => text.includes("\u00b7"))),
    "\u2202": boxes.some(({ box }) => box.m === "\u2202"), "An arrow back": edges.some(({ kind }) => kind === "edge back") };
  return rows.map(([, , told]) => told).filter((told) => Object.entries(seen).some(([sign, there]) => there && told.startsWith(sign)));
}

// what colours and shapes mean: drawn when somebody opens it
function legendOf(rows = []) {
  const all = node("details", { class: "tm-legend" });
  all.append(node("summary", {}, "Colours and shapes"));
  all.addEventListener("toggle", () => {
    if (all.children.length > 1) return;
    for (const [kind, path, told] of rows) {
      const row = node("div");
      if (path) svgNode("path", { d: path }, svgNode("g", { class: `box ${kind}` }, svgNode("svg", { class: "tm-picture", viewBox: "-15 -9 30 18", "aria-hidden": "true" }, row)));
      row.append(node("span", {}, told));
      all.append(row);
    }
  });
  return all;
}

function layersIn(world) {
  return ["frames", "edges", "boxes", "headings"].map((name) => svgNode("g", { class: `tm-${name}` }, world));
}
