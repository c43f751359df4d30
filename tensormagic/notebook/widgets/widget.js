// The widget: a scene that Python laid out. Places, outlines and lines of text come in the message: nothing is measured here.

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
    header.textContent = model.get("scene").summary || "graph";
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
  const scene = model.get("scene");
  const graph = { model, sync, scene, head: scene.head, view: null, table: null, layout: null, selected: null, marked: null,
    open: new Set(), elements: new Map(), zoom: { k: 1, x: 0, y: 0 } };
  addParts(graph, body);
  for (const add of [addDrawing, addSelection, addCamera, addViews, addOutline, addKeys, addPointer, addFiles]) add(graph);

  graph.show(graph.model.get("view"));
  if (graph.model.get("selected")) graph.select(graph.model.get("selected"), { reveal: true });
  const onView = () => { if (graph.view && graph.model.get("view") !== graph.view.name) graph.show(graph.model.get("view")); };
  const onSelected = () => { if ((graph.model.get("selected") || null) !== graph.selected) graph.select(graph.model.get("selected") || null, { reveal: true }); };
  graph.model.on("change:view", onView);
  graph.model.on("change:selected", onSelected);
  let width = graph.stage.clientWidth;
  const watch = new ResizeObserver(() => {
    if (!width && graph.stage.clientWidth) graph.fit(false); // it was drawn while hidden
    width = graph.stage.clientWidth;
  });
  watch.observe(graph.stage);
  return () => {
    watch.disconnect();
    graph.model.off("change:view", onView);
    graph.model.off("change:selected", onSelected);
  };
}

export default { render };
