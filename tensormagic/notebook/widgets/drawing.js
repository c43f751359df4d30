// Boxes, frames and links as SVG, and what is marked among them.
const MOST_SVG = 500; // boxes; a canvas draws more

function addDrawing(graph) {
  graph.vertexOf = (key) => (graph.table.leaves.has(key) ? graph.scene.vertices[graph.table.leaves.get(key).box.v] : null);
  graph.written = (vertex) => (vertex.line === undefined ? "" : `${vertex.cell || ""} line ${vertex.line}`.trim());
  graph.title = ({ name, label }) => (name && label === "item" ? name : name ? `${name} = ${label}` : label);
  graph.words = function words(key) {
    const vertex = graph.vertexOf(key);
    if (!vertex) return graph.table.groups.has(key) ? `group ${graph.heading(key)}` : "";
    return [graph.title(vertex), vertex.type, vertex.role, graph.written(vertex),
      vertex.kernel === undefined ? "" : `kernel ${vertex.kernel}`, vertex.yellow ? "runs in NumPy" : "", vertex.place, vertex.meaning].filter(Boolean).join(", ");
  };
  // what a frame says of the run: which side of a branch that was, how many iterations
  graph.went = function went(key) {
    const own = graph.vertexOf(key), cut = key.lastIndexOf("/");
    const region = own || (cut < 0 ? null : graph.vertexOf(key.slice(0, cut))), { went } = region ? graph.told(region) : {};
    return (went && went[own ? "" : key.slice(cut + 1)]) || "";
  };
  graph.heading = function heading(key) {
    const { title } = graph.table.groups.get(key).g, went = graph.went(key);
    return went ? `${title} \u00b7 ${went}` : title;
  };
  // what the page shows elsewhere, too, is only read aloud
  graph.say = (text, elsewhere = false) => { graph.live.replaceChildren(elsewhere ? node("span", { class: "tm-spoken" }, text || "") : text || ""); };

  graph.draw = function draw() {
    const before = graph.spots;
    graph.layout = arrange(graph.picture, graph.open, graph.head);
    graph.spots = new Map([...graph.layout.frames, ...graph.layout.boxes].map((spot) => [spot.key, spot]));
    const large = graph.layout.boxes.length > MOST_SVG;
    graph.canvas.hidden = !large;
    graph.svg.style.display = large ? "none" : "";
    if (large) graph.paper(before);
    else graph.drawing(graph.layers, graph.elements);
    graph.groupButton.hidden = !graph.table.groups.size;
    graph.groupButton.textContent = graph.open.size ? "close all" : "open all";
    graph.highlight();
  };

  // `elements` keeps those of the picture before, so that they move
  graph.drawing = function drawing([frameLayer, edgeLayer, boxLayer, headingLayer], elements) {
    const present = new Set();
    for (const spot of graph.layout.boxes) {
      present.add(spot.key);
      let element = elements.get(spot.key);
      const face = `${spot.box.v} ${spot.box.s} ${spot.box.g ? spot.box.g.title : ""}`;
      if (!element) {
        element = svgNode("g", {}, boxLayer);
        element.dataset.key = spot.key;
        elements.set(spot.key, element);
      }
      if (element.dataset.face !== face) { graph.paint(element, spot.box); element.dataset.face = face; }
      element.style.transform = `translate(${spot.x}px, ${spot.y}px)`;
    }
    for (const [key, element] of elements) {
      if (!present.has(key)) { element.remove(); elements.delete(key); }
    }
    frameLayer.replaceChildren();
    headingLayer.replaceChildren();
    for (const spot of graph.layout.frames) {
      const x = spot.x - spot.w / 2, y = spot.y - spot.h / 2;
      const went = graph.went(spot.key);
      const region = spot.box.v !== undefined ? " inner" : went.startsWith("did not") ? " idle" : went ? " ran" : "";
      const frame = svgNode("rect", { class: `frame${region} tm-new`, x, y, width: spot.w, height: spot.h, rx: 10 }, frameLayer);
      const heading = svgNode("text", { class: "heading tm-new", x: x + 10, y: y + 15 }, headingLayer);
      heading.textContent = `\u2212 ${graph.heading(spot.key)}`;
      heading.dataset.group = frame.dataset.group = spot.key;
    }
    edgeLayer.replaceChildren();
    for (const edge of graph.layout.edges) {
      const path = svgNode("path", { class: `${edge.kind} tm-new`, d: edge.d }, edgeLayer);
      if (edge.dx || edge.dy) path.setAttribute("transform", `translate(${edge.dx} ${edge.dy})`);
    }
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

  // what is marked: what is selected, the nodes of a line, what a search found, and what a rewrite has made
  graph.isOn = (key) => {
    const vertex = graph.vertexOf(key), group = graph.table.groups.get(key);
    return key === graph.selected || (graph.marked !== null && (vertex ? vertex.line === graph.marked : Boolean(group) && (group.g.l || []).includes(graph.marked)));
  };
  graph.isOnEdge = ({ from, to }) => {
    if (graph.selected === null) return false;
    const group = graph.table.around.get(graph.selected) || null;
    const operand = (graph.table.fed.get(graph.selected) || []).includes(from);
    return from === graph.selected || to === graph.selected || (operand && (to === group || to === `${from}<`));
  };
  graph.isDim = (key) => graph.found !== null && !graph.found.has(key) && !graph.isUnread(graph.table.groups.get(key));
  graph.isUnread = (box) => Boolean(box) && !box.g.picture && Boolean(box.g.ask); // a group that Python has to be asked for
  graph.isMade = (key) => graph.made.has(key.replace(/~\d+$/, ""));
  graph.highlight = function highlight() {
    if (!graph.canvas.hidden) { graph.repaint(); return; }
    for (const [key, element] of graph.elements) {
      element.classList.toggle("on", graph.isOn(key));
      element.classList.toggle("tm-dim", graph.isDim(key));
      element.classList.toggle("made", graph.isMade(key));
    }
    for (const frame of graph.frameLayer.children) frame.classList.toggle("on", frame.dataset.group === graph.selected);
    [...graph.edgeLayer.children].forEach((path, k) => path.classList.toggle("on", graph.isOnEdge(graph.layout.edges[k])));
  };
}
