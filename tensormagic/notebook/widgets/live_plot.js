// The picture: shapes that Python made, and marks that follow the point. tensormagic/notebook/plots.py draws the same marks.
const MIDDLE = 250, HALF = 120;

function makePlot(stage, plot) {
  const svg = svgNode("svg", { class: "tm-picture", viewBox: `0 0 ${plot.wide} ${plot.tall}`, "aria-hidden": "true" });
  const [left, top, wide, tall] = plot.frame;
  const outer = svgNode("g", {}, svg);
  const inner = svgNode("svg", { x: left, y: top, width: wide, height: tall, viewBox: `${left} ${top} ${wide} ${tall}` });
  if (plot.kind !== "bars") svg.appendChild(inner);
  for (const { tag, text, inside, ...attributes } of plot.shapes) {
    const made = svgNode(tag, attributes, inside ? inner : outer);
    if (text) made.textContent = text;
  }
  const line = svgNode("path", { class: plot.kind === "curve" ? "tangent" : "arrow" }, plot.kind === "curve" ? inner : svg);
  const dot = svgNode("circle", { class: "dot", r: 6 }, plot.kind === "curve" ? inner : svg);
  const bars = plot.kind === "bars" ? plot.scale.map((_, k) => [
    svgNode("rect", { class: "bar", y: 32 + plot.row * k, height: plot.row - 8 }, svg),
    svgNode("text", { class: "tick first", x: MIDDLE + HALF + 10, y: 45 + plot.row * k }, svg)]) : [];
  const across = (x) => left + wide * (x - plot.x[0]) / (plot.x[1] - plot.x[0]);
  const up = (y) => top + tall * (1 - (y - plot.y[0]) / (plot.y[1] - plot.y[0]));
  const near = (y) => Math.min(Math.max(y, -2 * plot.tall), 3 * plot.tall);
  stage.replaceChildren(svg);

  function draw(point, value, slopes) {
    const there = slopes !== null && slopes.every(Number.isFinite);
    bars.forEach(([bar, text], k) => {
      const long = there ? HALF * Math.max(Math.min(slopes[k] / plot.scale[k], 1), -1) : 0;
      bar.setAttribute("x", MIDDLE + Math.min(long, 0));
      bar.setAttribute("width", Math.abs(long));
      text.textContent = slopes === null ? "" : told(slopes[k]);
    });
    const y = plot.kind === "curve" ? value : point[1];
    const shown = plot.kind !== "bars" && Number.isFinite(y);
    dot.style.display = shown ? "" : "none";
    line.style.display = shown && there ? "" : "none";
    if (!shown) return;
    dot.setAttribute("cx", across(point[0]));
    dot.setAttribute("cy", near(up(y)));
    if (there) line.setAttribute("d", plot.kind === "curve" ? tangent(point[0], value, slopes[0]) : arrow(point, slopes));
  }

  function tangent(x, value, slope) {
    const [start, end] = plot.x.map((at) => `${across(at)} ${up(value + slope * (at - x))}`);
    return `M${start}L${end}`;
  }

  function arrow(point, slopes) {
    const u = slopes[0] * (plot.x[1] - plot.x[0]) / wide, v = -slopes[1] * (plot.y[1] - plot.y[0]) / tall;
    const norm = Math.hypot(u, v);
    if (norm === 0) return "";
    const [a, b] = [u / norm, v / norm];
    const long = 10 + (plot.reach - 10) * Math.min(norm / plot.scale[0], 1);
    const x = across(point[0]), y = up(point[1]), [x2, y2] = [x + a * long, y + b * long];
    const barbs = [1, -1].map((s) => `M${x2} ${y2}l${-8 * a - s * 4 * b} ${-8 * b + s * 4 * a}`);
    return `M${x} ${y}L${x2} ${y2}${barbs.join("")}`;
  }

  // the numbers under the pointer, one or two
  function under(event) {
    const box = svg.getBoundingClientRect(), k = plot.wide / box.width;
    const x = ((event.clientX - box.left) * k - left) / wide, y = 1 - ((event.clientY - box.top) * k - top) / tall;
    const found = [plot.x[0] + x * (plot.x[1] - plot.x[0])];
    return plot.kind === "contour" ? [...found, plot.y[0] + y * (plot.y[1] - plot.y[0])] : found;
  }
  return { draw, under };
}
