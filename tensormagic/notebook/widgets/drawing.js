// Boxes, frames and links as SVG, and what is marked among them.
function addDrawing(graph) {
  graph.vertexOf = (key) => (graph.table.leaves.has(key) ? graph.scene.vertices[graph.table.leaves.get(key).box.v] : null);
  graph.written = (vertex) => (vertex.line === undefined ? "" : `${vertex.cell || ""} line ${vertex.line}`.trim());
  graph.words = function words(key) {
    const vertex = graph.vertexOf(key);
    if (!vertex) return graph.table.groups.has(key) ? `group ${graph.table.groups.get(key).g.title}` : "";
    return [vertex.label, vertex.type, vertex.role, graph.written(vertex),
      vertex.kernel === undefined ? "" : `kernel ${vertex.kernel}`, vertex.yellow ? "runs in NumPy" : ""].filter(Boolean).join(", ");
  };
  graph.say = (text) => { graph.live.textContent = text; };

  graph.draw = function draw() {
    graph.layout = arrange(graph.view, graph.open, graph.head);
    const present = new Set();
    for (const spot of graph.layout.boxes) {
      present.add(spot.key);
      let element = graph.elements.get(spot.key);
      const face = `${spot.box.v} ${spot.box.s} ${spot.box.g ? spot.box.g.title : ""}`;
      if (!element) {
        element = svgNode("g", {}, graph.boxLayer);
        element.dataset.key = spot.key;
        graph.elements.set(spot.key, element);
      }
      if (element.dataset.face !== face) { graph.paint(element, spot.box); element.dataset.face = face; }
      element.style.transform = `translate(${spot.x}px, ${spot.y}px)`;
    }
    for (const [key, element] of graph.elements) {
      if (!present.has(key)) { element.remove(); graph.elements.delete(key); }
    }
    graph.frameLayer.replaceChildren();
    graph.headingLayer.replaceChildren();
    for (const spot of graph.layout.frames) {
      const x = spot.x - spot.w / 2, y = spot.y - spot.h / 2;
      const frame = svgNode("rect", { class: "frame tm-new", x, y, width: spot.w, height: spot.h, rx: 10 }, graph.frameLayer);
      const heading = svgNode("text", { class: "heading tm-new", x: x + 10, y: y + 16 }, graph.headingLayer);
      heading.textContent = `\u2212 ${spot.box.g.title}`;
      heading.dataset.group = frame.dataset.group = spot.key;
    }
    graph.edgeLayer.replaceChildren();
    for (const edge of graph.layout.edges) {
      const path = svgNode("path", { class: `${edge.kind} tm-new`, d: edge.d }, graph.edgeLayer);
      if (edge.dx !== undefined) path.setAttribute("transform", `translate(${edge.dx} ${edge.dy})`);
    }
    graph.groupButton.hidden = !graph.table.groups.size;
    graph.groupButton.textContent = graph.open.size ? "close all" : "open all";
    graph.highlight();
  };

  graph.paint = function paint(element, box) {
    const vertex = box.v === undefined ? null : graph.scene.vertices[box.v];
    element.setAttribute("class", ["box tm-new", vertex ? vertex.kind : "group", vertex && vertex.yellow ? "yellow" : "",
      box.z ? "result" : ""].join(" "));
    element.replaceChildren();
    svgNode("path", { d: graph.scene.shapes[box.s] }, element);
    for (const [text, style, y] of box.t || []) svgNode("text", { class: style, y }, element).textContent = text;
    if (box.m) {
      const sign = svgNode("g", { class: "mark", transform: `translate(${box.w / 2 - 9} ${-box.h / 2})` }, element);
      svgNode("circle", { r: 7.5 }, sign);
      svgNode("text", { y: 4 }, sign).textContent = box.m;
    }
  };

  graph.highlight = function highlight() {
    const group = graph.selected && graph.table.leaves.has(graph.selected) ? graph.table.leaves.get(graph.selected).group : null;
    const operands = new Set((graph.selected && graph.table.fed.get(graph.selected)) || []);
    for (const [key, element] of graph.elements) {
      const vertex = graph.vertexOf(key);
      element.classList.toggle("on", key === graph.selected || (graph.marked !== null && Boolean(vertex) && vertex.line === graph.marked));
    }
    for (const frame of graph.frameLayer.children) frame.classList.toggle("on", frame.dataset.group === graph.selected);
    [...graph.edgeLayer.children].forEach((path, k) => {
      const { from, to } = graph.layout.edges[k];
      const passes = operands.has(from) && (to === group || to === `${from}<`);
      path.classList.toggle("on", graph.selected !== null && (from === graph.selected || to === graph.selected || passes));
    });
  };
}
