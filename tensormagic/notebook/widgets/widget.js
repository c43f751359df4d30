// The widget: a scene that Python laid out. Places, outlines and lines of text come in the message: nothing is measured here.

// the line above a graph: on a narrow page it breaks between what it says, not within
function said(line, meant) {
  const made = node("span", { class: "tm-said", title: meant });
  line.split("\n").forEach((row, k) => {
    const facts = row.split(" \u00b7 ");
    made.append(k ? "\n" : "", ...facts.flatMap((fact, n) => [n ? " " : "", node("span", {}, n < facts.length - 1 ? `${fact} \u00b7` : fact)]));
  });
  return made;
}

function render({ model, el }) {
  el.classList.add("tm-graph");
  const header = node("button", { type: "button", class: "tm-header" });
  const body = node("div", { class: "tm-body" });
  el.append(header, body);
  const stop = [];
  let close = null;

  const sync = (name, value) => {
    if (model.get(name) === value) return;
    model.set(name, value);
    model.save_changes();
  };
  const toggle = () => {
    const open = Boolean(model.get("expanded"));
    const { line, meant, summary } = model.get("scene");
    header.replaceChildren(...(line ? [said(line, meant || "")] : []), node("span", { class: "tm-more" }, line ? "graph" : summary || "graph"));
    header.setAttribute("aria-expanded", String(open));
    body.hidden = !open;
    if (open && !close) close = build(body, model, sync);
    if (!open && close) { close(); close = null; body.replaceChildren(); }
  };
  const renew = () => {
    if (close) { close(); close = null; body.replaceChildren(); }
    toggle();
  };
  header.addEventListener("click", () => { sync("expanded", !model.get("expanded")); toggle(); });
  for (const [name, action] of [["change:expanded", toggle], ["change:scene", renew]]) {
    model.on(name, action);
    stop.push(() => model.off(name, action));
  }
  toggle();
  return () => { stop.forEach((end) => end()); if (close) close(); };
}

function build(body, model, sync) {
  const scene = { ...model.get("scene") };
  scene.views = scene.views.map((view) => ({ ...view }));
  scene.vertices = [...scene.vertices];
  scene.shapes = [...scene.shapes];
  const stop = [];
  const graph = { model, sync, scene, head: scene.head, view: null, picture: null, grouping: "none", chosen: null, step: null, made: new Set(),
    table: null, layout: null, selected: null, marked: null, found: null, details: null, open: new Set(), elements: new Map(), spots: new Map(),
    zoom: { k: 1, x: 0, y: 0 }, tall: "" };
  addParts(graph, body);
  for (const add of [addDrawing, addCanvas, addSelection, addCamera, addValues, addViews, addSteps, addOutline, addKeys, addPointer, addText, addFiles]) add(graph);
  addAsking(graph, stop);

  graph.show(model.get("view"));
  if (graph.table && model.get("selected")) graph.select(model.get("selected"), { reveal: true });
  const askMore = () => {
    if (scene.more) graph.ask(["details"], (details) => { graph.details = details; if (graph.table.groups.size) graph.draw(); graph.stepped(); graph.panel(); });
  };
  if (scene.begun) graph.ask(["whole"], (whole) => { graph.completed(whole); askMore(); });
  else askMore();
  const hear = (name, action) => { model.on(name, action); stop.push(() => model.off(name, action)); };
  hear("change:view", () => { if (graph.view && model.get("view") !== graph.view.name) graph.show(model.get("view")); });
  hear("change:selected", () => {
    if (graph.table && (model.get("selected") || null) !== graph.selected) graph.select(model.get("selected") || null, { reveal: true });
  });
  let width = graph.stage.clientWidth;
  const watch = new ResizeObserver(() => {
    const before = width;
    width = graph.stage.clientWidth;
    if (width && width !== before) graph.widen(before); // drawn while hidden, or a window or a phone that was turned
    if (!graph.canvas.hidden) graph.repaint();
  });
  watch.observe(graph.stage);
  const theme = new MutationObserver(() => { if (!graph.canvas.hidden) graph.repaint(); });
  theme.observe(document.body, { attributes: true });
  return () => { watch.disconnect(); theme.disconnect(); stop.forEach((end) => end()); };
}

export default { render };
