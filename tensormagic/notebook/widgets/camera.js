// Moving the picture, zooming, and bringing a node into sight.
function addCamera(graph) {
  let gliding = 0;
  graph.move = function move(x, y, k = graph.zoom.k) {
    cancelAnimationFrame(gliding);
    graph.fitted = false;
    graph.aim(x, y, k);
  };
  graph.aim = function aim(x, y, k) {
    Object.assign(graph.zoom, { x, y, k });
    if (graph.canvas.hidden) graph.world.setAttribute("transform", `translate(${x} ${y}) scale(${k})`);
    else graph.repaint();
    graph.edges();
  };
  // where the picture goes on beyond its frame, and how to get there
  graph.edges = () => {
    if (!graph.layout) return;
    const { x, y, k } = graph.zoom, { left, width, height } = graph.layout, near = 6;
    const beyond = { left: left * k + x < -near, right: (left + width) * k + x > graph.stage.clientWidth + near, top: y < -near, bottom: height * k + y > graph.stage.clientHeight + near };
    markEdges(graph.beyond, beyond, "drag to see the rest, or press fit");
  };
  // there in as much time as boxes need to their new places
  graph.glide = function glide(x, y, k) {
    const from = { ...graph.zoom }, begin = performance.now();
    cancelAnimationFrame(gliding);
    if (graph.still()) { graph.aim(x, y, k); return; }
    const step = (now) => {
      const share = Math.min(1, Math.max(0, (now - begin) / 400)), part = share * share * (3 - 2 * share);
      graph.aim(from.x + (x - from.x) * part, from.y + (y - from.y) * part, from.k + (k - from.k) * part);
      if (share < 1) gliding = requestAnimationFrame(step);
    };
    gliding = requestAnimationFrame(step);
  };
  graph.zoomBy = function zoomBy(factor, cx = graph.stage.clientWidth / 2, cy = graph.stage.clientHeight / 2) {
    const k = Math.min(4, Math.max(0.01, graph.zoom.k * factor));
    graph.move(cx - ((cx - graph.zoom.x) * k) / graph.zoom.k, cy - ((cy - graph.zoom.y) * k) / graph.zoom.k, k);
  };
  const pad = 16;
  // how large the picture is drawn where it stands: text stays readable; very large ones are an overview
  graph.scale = () => Math.min(1, Math.max(graph.canvas.hidden ? 1 : 0.6, ((graph.stage.clientWidth || 600) - 2 * pad) / Math.max(graph.layout.width, 1)));
  graph.fit = function fit(whole, move = graph.move) {
    const wide = graph.stage.clientWidth || 600, tall = graph.stage.clientHeight || 400;
    let k = Math.min(1, (wide - 2 * pad) / Math.max(graph.layout.width, 1), (tall - 2 * pad) / Math.max(graph.layout.height, 1));
    if (!whole) k = Math.max(k, graph.scale()); // readable first; the rest is a drag away
    let middle = graph.layout.left + graph.layout.width / 2;
    if (graph.layout.width * k > wide && graph.layout.boxes.length) { // it does not fit: what comes first is shown
      const top = graph.layout.boxes.reduce((a, b) => Math.min(a, b.y), Infinity), first = graph.layout.boxes.filter((spot) => spot.y < top + 30);
      middle = (first[0].x + first[first.length - 1].x) / 2;
    }
    const ends = [pad - graph.layout.left * k, wide - pad - (graph.layout.left + graph.layout.width) * k]; // no empty side beside one that is cut
    const x = ends[1] < ends[0] ? Math.min(ends[0], Math.max(ends[1], wide / 2 - middle * k)) : wide / 2 - middle * k;
    const y = Math.max(pad, (tall - graph.layout.height * k) / 2);
    move(x, whole ? y : Math.min(y, pad * 2), k);
    graph.fitted = true;
  };
  // the frame has another width: a picture that nobody has moved fits again, another keeps its middle
  graph.widen = (before) => {
    if (before && !graph.fitted) graph.move(graph.zoom.x + (graph.stage.clientWidth - before) / 2, graph.zoom.y);
    else if (graph.layout) { graph.frame(); graph.fit(false); }
  };
  // as high as the picture up to a limit, unless somebody has drawn the frame larger
  graph.frame = (grows) => {
    const { style } = graph.stage, tall = Math.round(Math.min(1200, Math.max(140, graph.layout.height * graph.scale() + 56)));
    if (style.height === graph.tall && !(grows && tall <= parseFloat(graph.tall))) style.height = graph.tall = `${tall}px`;
  };
  graph.bring = function bring(key, center) {
    const spot = graph.spots.get(graph.visible(key));
    if (!spot) return;
    const x = spot.x * graph.zoom.k + graph.zoom.x, y = spot.y * graph.zoom.k + graph.zoom.y;
    const nudge = (at, half, size) => {
      const edge = Math.min(half * graph.zoom.k + 40, size / 2);
      return center ? size / 2 - at : Math.max(0, edge - at) + Math.min(0, size - edge - at);
    };
    graph.move(graph.zoom.x + nudge(x, spot.w / 2, graph.stage.clientWidth), graph.zoom.y + nudge(y, spot.h / 2, graph.stage.clientHeight));
  };
}
