// The parts of the page around the picture, and its buttons.
function addParts(graph, body) {
  graph.tools = node("div", { class: "tm-tools", role: "toolbar", "aria-label": "graph" });
  graph.names = node("div", { class: "tm-views", role: "group", "aria-label": "view" });
  graph.search = node("input", { type: "search", placeholder: "search  /", "aria-label": "search the graph" });
  graph.main = node("div", { class: "tm-main" });
  graph.stage = node("div", { class: "tm-stage", tabindex: "0", role: "application", "aria-label": `${graph.scene.summary}. ${HELP}` });
  graph.svg = svgNode("svg", { class: "tm-picture", "aria-hidden": "true" }, graph.stage);
  graph.world = svgNode("g", { class: "tm-world" }, graph.svg);
  graph.layers = ["frames", "edges", "boxes", "headings"].map((name) => svgNode("g", { class: `tm-${name}` }, graph.world));
  [graph.frameLayer, graph.edgeLayer, graph.boxLayer, graph.headingLayer] = graph.layers;
  graph.tip = node("div", { class: "tm-tip", role: "presentation" });
  graph.side = node("div", { class: "tm-side" });
  graph.details = node("div", { class: "tm-details" });
  graph.source = node("ol", { class: "tm-source", "aria-label": "the cell" });
  graph.outline = node("details", { class: "tm-outline" });
  graph.tree = node("ul", { role: "tree", "aria-label": "nodes of the graph" });
  graph.live = node("div", { class: "tm-live", role: "status", "aria-live": "polite" });
  graph.outline.append(node("summary", {}, "Outline"), graph.tree);
  graph.side.append(graph.details, graph.source, graph.outline);
  graph.stage.appendChild(graph.tip);
  graph.main.append(graph.stage, graph.side);
  graph.tip.hidden = true;

  graph.viewButtons = graph.scene.views.map((each) => {
    const made = button(each.name, "", () => graph.show(each.name));
    graph.names.appendChild(made);
    return made;
  });
  graph.groupButton = button("open all", "open or close all groups", () => {
    graph.open = graph.open.size ? new Set() : new Set([...graph.table.groups].filter(([, box]) => box.g.picture).map(([key]) => key));
    graph.draw();
    graph.fit(false);
  });
  graph.tools.append(graph.names, graph.groupButton,
    button("\u2212", "zoom out", () => graph.zoomBy(1 / 1.3)), button("+", "zoom in", () => graph.zoomBy(1.3)),
    button("fit", "fit the graph into the view", () => graph.fit(true)), graph.search,
    button("SVG", "save as SVG", () => graph.save("svg")), button("PNG", "save as PNG", () => graph.save("png")));
  body.append(graph.tools, graph.main, graph.live);
}
