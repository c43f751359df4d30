// Moving the picture, zooming, and bringing a node into sight.
function addCamera(graph) {
  graph.move = function move(x, y, k = graph.zoom.k) {
    Object.assign(graph.zoom, { x, y, k });
    graph.world.setAttribute("transform", `translate(${x} ${y}) scale(${k})`);
  };
  graph.zoomBy = function zoomBy(factor, cx = graph.stage.clientWidth / 2, cy = graph.stage.clientHeight / 2) {
    const k = Math.min(4, Math.max(0.04, graph.zoom.k * factor));
    graph.move(cx - ((cx - graph.zoom.x) * k) / graph.zoom.k, cy - ((cy - graph.zoom.y) * k) / graph.zoom.k, k);
  };
  graph.fit = function fit(whole) {
    const pad = 16, wide = graph.stage.clientWidth || 600, tall = graph.stage.clientHeight || 400;
    let k = Math.min(1, (wide - 2 * pad) / Math.max(graph.layout.width, 1), (tall - 2 * pad) / Math.max(graph.layout.height, 1));
    if (!whole) k = Math.max(k, 0.6); // readable first; the rest is a drag away
    const x = (wide - graph.layout.width * k) / 2 - graph.layout.left * k;
    const y = Math.max(pad, (tall - graph.layout.height * k) / 2);
    graph.move(x, whole ? y : Math.min(y, pad * 2), k);
  };
  graph.bring = function bring(key, center) {
    const spot = graph.spotOf(graph.visible(key));
    if (!spot) return;
    const x = spot.x * graph.zoom.k + graph.zoom.x, y = spot.y * graph.zoom.k + graph.zoom.y;
    const nudge = (at, half, size) => {
      const edge = Math.min(half * graph.zoom.k + 40, size / 2);
      return center ? size / 2 - at : Math.max(0, edge - at) + Math.min(0, size - edge - at);
    };
    graph.move(graph.zoom.x + nudge(x, spot.w / 2, graph.stage.clientWidth), graph.zoom.y + nudge(y, spot.h / 2, graph.stage.clientHeight));
  };
}
