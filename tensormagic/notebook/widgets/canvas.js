// The same picture on a canvas, where SVG would be too slow: what is in sight, and text where it can be read.
const SHADES = ["ground", "ink", "soft", "edge", "strong", "kernel", "kernel-line", "yellow", "yellow-line",
  ...["input", "constant", "pointwise", "fold", "move", "update", "contract", "opaque", "sent"].flatMap((kind) => [kind, `${kind}-line`])];
const FACES = { name: "700 14px", op: "500 14px", symbol: "20px", value: "12px", type: "12px", tag: "italic 12px" };
const DASHES = { move: [5, 3], constant: [1, 2.5] };

function addCanvas(graph) {
  const pen = graph.canvas.getContext("2d");
  const outlines = new Map();
  let paths = new Map(), start = 0, from = new Map(), asked = 0;

  graph.still = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  graph.paper = function paper(before) {
    paths = new Map(); // of each group, of each kind of edge
    for (const edge of graph.layout.edges) {
      if (!paths.has(edge.group)) paths.set(edge.group, new Map());
      const kinds = paths.get(edge.group);
      if (!kinds.has(edge.kind)) kinds.set(edge.kind, new Path2D());
      kinds.get(edge.kind).addPath(new Path2D(edge.d), new DOMMatrix([1, 0, 0, 1, edge.dx, edge.dy]));
    }
    from = graph.still() ? new Map() : before;
    start = from.size ? performance.now() : 0;
    graph.repaint();
  };
  graph.repaint = function repaint() {
    if (!asked) asked = requestAnimationFrame(() => { asked = 0; graph.stroke(); });
  };

  const outline = (shape) => {
    if (!outlines.has(shape)) outlines.set(shape, new Path2D(graph.scene.shapes[shape]));
    return outlines.get(shape);
  };
  graph.stroke = function stroke() {
    const dense = window.devicePixelRatio || 1, wide = graph.stage.clientWidth, tall = graph.stage.clientHeight;
    if (graph.canvas.width !== Math.round(wide * dense)) graph.canvas.width = Math.round(wide * dense);
    if (graph.canvas.height !== Math.round(tall * dense)) graph.canvas.height = Math.round(tall * dense);
    const style = getComputedStyle(graph.stage), shade = {};
    for (const name of SHADES) shade[name] = style.getPropertyValue(`--tm-${name}`);
    const { x, y, k } = graph.zoom;
    const share = start ? Math.min(1, (performance.now() - start) / 400) : 1, eased = share * share * (3 - 2 * share);
    const within = (spot, at) => at.x + spot.w / 2 > -x / k && at.x - spot.w / 2 < (wide - x) / k
      && at.y + spot.h / 2 > -y / k && at.y - spot.h / 2 < (tall - y) / k;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, graph.canvas.width, graph.canvas.height);
    pen.setTransform(k * dense, 0, 0, k * dense, x * dense, y * dense);
    pen.lineJoin = pen.lineCap = "round";
    for (const spot of graph.layout.frames) {
      pen.fillStyle = shade.kernel;
      pen.strokeStyle = spot.key === graph.selected ? shade.strong : shade["kernel-line"];
      pen.lineWidth = spot.key === graph.selected ? 3 : 1.2;
      pen.beginPath();
      pen.roundRect(spot.x - spot.w / 2, spot.y - spot.h / 2, spot.w, spot.h, 10);
      pen.fill();
      pen.stroke();
    }
    pen.globalAlpha = eased;
    pen.strokeStyle = shade.edge;
    for (const [group, kinds] of paths) {
      const frame = graph.spots.get(group);
      if (frame && (k < 0.1 || !within(frame, frame))) continue; // finer than a pixel, or out of sight
      for (const [kind, path] of kinds) {
        pen.lineWidth = kind === "edge many" ? 3.5 : kind === "edge far" ? 0.7 : Math.max(1.3, 0.5 / k);
        pen.strokeStyle = kind === "edge back" ? shade.strong : shade.edge;
        pen.setLineDash(kind === "edge far" && k > 0.3 ? [3, 4] : []);
        pen.stroke(path);
      }
    }
    pen.setLineDash([]);
    if (graph.selected !== null) {
      pen.strokeStyle = shade.strong;
      pen.lineWidth = 3;
      for (const edge of graph.layout.edges) {
        if (!graph.isOnEdge(edge)) continue;
        pen.save();
        pen.translate(edge.dx, edge.dy);
        pen.stroke(new Path2D(edge.d));
        pen.restore();
      }
    }
    const small = new Map(); // boxes without outlines, by colour
    for (const spot of graph.layout.boxes) {
      const old = eased < 1 ? from.get(spot.key) : null;
      const at = old ? { x: old.x + (spot.x - old.x) * eased, y: old.y + (spot.y - old.y) * eased } : spot;
      pen.globalAlpha = (old || eased === 1 ? 1 : eased) * (graph.isDim(spot.key) ? 0.25 : 1);
      if (within(spot, at)) box(spot, at, shade, k, small);
    }
    for (const [colour, [alpha, path]] of small) {
      pen.globalAlpha = alpha;
      pen.fillStyle = colour.slice(colour.indexOf(" ") + 1);
      pen.fill(path);
    }
    pen.globalAlpha = 1;
    pen.textAlign = "start";
    pen.font = `600 12px ${style.fontFamily}`;
    pen.fillStyle = shade.soft;
    if (k > 0.3) for (const spot of graph.layout.frames) pen.fillText(`\u2212 ${graph.heading(spot.key)}`, spot.x - spot.w / 2 + 10, spot.y - spot.h / 2 + 15);
    if (share < 1) graph.repaint(); else start = 0;
  };

  function box(spot, at, shade, k, small) {
    const vertex = spot.box.v === undefined ? null : graph.scene.vertices[spot.box.v];
    const kind = vertex && vertex.yellow ? "yellow" : !vertex ? "kernel" : ["region", "output"].includes(vertex.kind) ? "input" : vertex.kind;
    const on = graph.isOn(spot.key), made = graph.isMade(spot.key);
    pen.fillStyle = shade[kind];
    pen.strokeStyle = on ? shade.strong : shade[`${kind}-line`];
    if (k < 0.2 && !on) { // too small for its outline
      const colour = `${pen.globalAlpha} ${shade[`${kind}-line`]}`;
      if (!small.has(colour)) small.set(colour, [pen.globalAlpha, new Path2D()]);
      small.get(colour)[1].rect(at.x - spot.w / 2, at.y - spot.h / 2, spot.w, spot.h);
      return;
    }
    pen.save();
    pen.translate(at.x, at.y);
    pen.lineWidth = on || made || spot.box.z ? 3 : 1.4;
    pen.setLineDash(DASHES[kind] || []);
    const path = outline(spot.box.s);
    pen.fill(path);
    pen.stroke(path);
    if (k > 0.4) {
      pen.textAlign = "center";
      for (const [text, style, line] of spot.box.t || []) {
        pen.font = `${FACES[style]} system-ui, "DejaVu Sans", Arial, sans-serif`;
        pen.fillStyle = style === "type" || style === "tag" ? shade.soft : shade.ink;
        pen.fillText(text, 0, line);
      }
      if (spot.box.m) { pen.font = "12px sans-serif"; pen.fillStyle = shade.ink; pen.fillText(spot.box.m, spot.w / 2 - 9, -spot.h / 2 + 4); }
    }
    pen.restore();
  }

  // what lies under the pointer: a box, or the frame of an open group, perhaps at its heading
  graph.at = function at(event) {
    if (graph.canvas.hidden) {
      const found = event.target.closest("[data-key]"), group = event.target.closest("[data-group]");
      if (found) return { key: found.dataset.key, heading: false };
      return group ? { key: group.dataset.group, heading: group.tagName === "text" } : null;
    }
    const frame = graph.stage.getBoundingClientRect();
    const x = (event.clientX - frame.left - graph.zoom.x) / graph.zoom.k, y = (event.clientY - frame.top - graph.zoom.y) / graph.zoom.k;
    const holds = (spot) => Math.abs(x - spot.x) <= spot.w / 2 && Math.abs(y - spot.y) <= spot.h / 2;
    const spot = graph.layout.boxes.findLast(holds) || graph.layout.frames.findLast(holds);
    return spot ? { key: spot.key, heading: spot.open && y < spot.y - spot.h / 2 + graph.head } : null;
  };
}
