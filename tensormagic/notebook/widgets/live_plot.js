// The parts of the picture: shapes that Python made, and marks that follow the point. tensormagic/notebook/plots draws
// the same marks. A part is made of the page's view, which knows the sliders, and draws a reading: the point, the values
// of all elements, the slopes of each along each slider, and which element and which slider are looked at.

function makePanel(panel, view) {
  const made = { curve: makeCurve, contour: makeContour, bars: makeBars, columns: makeColumns, cells: makeCells,
    line: makeLine, heat: makeHeat, history: makeHistory }[panel.kind];
  return made(panel, view);
}

// an svg with the shapes that stay; what is inside the frame is cut off there
function canvas(panel, view) {
  const svg = svgNode("svg", { class: `tm-picture tm-${panel.kind}`, viewBox: `0 0 ${panel.wide} ${panel.tall}`, "aria-hidden": "true" });
  const outer = svgNode("g", {}, svg);
  let inner = svg;
  if (panel.x) {
    const [x, y, width, height] = panel.frame;
    inner = svgNode("svg", { x, y, width, height, viewBox: `${x} ${y} ${width} ${height}` }, svg);
  }
  const over = panel.x ? svgNode("g", { "pointer-events": "none" }, svg) : outer; // what has a halo stands above what moves
  for (const { tag, text, inside, ...attributes } of panel.shapes) {
    const shape = svgNode(tag, attributes, inside ? inner : attributes.class.includes("halo") ? over : outer);
    if (text) shape.textContent = text;
  }
  view.stage.appendChild(svg);
  return { svg, inner };
}

function scales({ frame: [left, top, wide, tall], x, y, tall: height }) {
  return {
    across: (value) => left + wide * (value - x[0]) / (x[1] - x[0]),
    up: (value) => Math.min(Math.max(top + tall * (1 - (value - y[0]) / (y[1] - y[0])), -2 * height), 3 * height),
  };
}

function show(element, there) { element.style.display = there ? "" : "none"; }
function finite(numbers) { return numbers !== null && numbers.every(Number.isFinite); }

// the numbers under the pointer, in the frame's own measure
function under(svg, panel, event) {
  const box = svg.getBoundingClientRect(), k = panel.wide / box.width, [left, top, wide, tall] = panel.frame;
  return [((event.clientX - box.left) * k - left) / wide, 1 - ((event.clientY - box.top) * k - top) / tall];
}

// what is dragged: `start` says whether the pointer takes hold of something, `move` follows it
function draggable(element, start, move, end = () => {}) {
  let held = false;
  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || start(event) === false) return;
    held = true;
    element.setPointerCapture(event.pointerId);
    move(event);
  });
  element.addEventListener("pointermove", (event) => { if (held) move(event); });
  for (const name of ["pointerup", "pointercancel"]) {
    element.addEventListener(name, () => { if (held) end(); held = false; });
  }
}

function trailOf(inner) {
  const way = svgNode("path", { class: "trail" }, inner), steps = svgNode("path", { class: "trail steps" }, inner);
  return (places) => {
    way.setAttribute("d", places.map(([x, y], k) => `${k ? "L" : "M"}${x} ${y}`).join(""));
    steps.setAttribute("d", places.map(([x, y]) => `M${x} ${y}h0`).join(""));
  };
}

function makeCurve(panel, view) {
  const { svg, inner } = canvas(panel, view), { across, up } = scales(panel), trail = trailOf(inner);
  const tangent = svgNode("path", { class: "tangent" }, inner), dot = svgNode("circle", { class: "dot", r: 6 }, inner);
  const [left, , wide] = panel.frame, [k] = panel.along, top = panel.y, height = panel.frame[3];
  // unlike the dot, a tangent goes on beyond the frame: it is cut off there, and not bent
  const free = (y) => panel.frame[1] + height * (1 - (y - top[0]) / (top[1] - top[0]));
  const jump = (event) => view.move(k, panel.x[0] + under(svg, panel, event)[0] * (panel.x[1] - panel.x[0]));
  draggable(svg, () => {}, jump, view.settle);
  svg.classList.add("tm-drag");
  return (reading) => {
    const x = reading.point[k], y = reading.chosen, there = Number.isFinite(y);
    trail(reading.path.map((row) => [across(row[k]), up(row[row.length - 1])]));
    show(dot, there);
    show(tangent, there && finite(reading.gradient));
    if (!there) return;
    dot.setAttribute("cx", across(x));
    dot.setAttribute("cy", up(y));
    const slope = finite(reading.gradient) ? reading.gradient[k] : 0;
    const [start, end] = panel.x.map((at) => `${left + wide * (at - panel.x[0]) / (panel.x[1] - panel.x[0])} ${free(y + slope * (at - x))}`);
    tangent.setAttribute("d", `M${start}L${end}`);
  };
}

function makeContour(panel, view) {
  const { svg, inner } = canvas(panel, view), { across, up } = scales(panel), trail = trailOf(inner);
  const line = svgNode("path", { class: "arrow" }, svg), dot = svgNode("circle", { class: "dot", r: 6 }, svg);
  const [, , wide, tall] = panel.frame, [i, j] = panel.along, names = panel.along.map((k) => view.spans[k].label);
  const keys = { ArrowLeft: [i, -1], ArrowRight: [i, 1], ArrowDown: [j, -1], ArrowUp: [j, 1] };
  const holder = node("div", { class: "tm-plane", tabindex: "0", role: "application",
    "aria-label": `${names[0]} and ${names[1]}: arrow keys move the point` });
  view.stage.replaceChild(holder, svg);
  holder.appendChild(svg);
  draggable(holder, () => {}, (event) => {
    const [x, y] = under(svg, panel, event);
    view.move(i, panel.x[0] + x * (panel.x[1] - panel.x[0]));
    view.move(j, panel.y[0] + y * (panel.y[1] - panel.y[0]));
  }, view.settle);
  holder.addEventListener("keydown", (event) => {
    if (!(event.key in keys)) return;
    event.preventDefault();
    view.step(...keys[event.key], event.shiftKey);
  });
  return (reading) => {
    const x = across(reading.point[i]), y = up(reading.point[j]);
    trail(reading.path.map((row) => [across(row[i]), up(row[j])]));
    dot.setAttribute("cx", x);
    dot.setAttribute("cy", y);
    svg.classList.toggle("tm-old", reading.point.some((at, k) => k !== i && k !== j && reading.centre && at !== reading.centre[k]));
    show(line, finite(reading.gradient));
    if (finite(reading.gradient)) line.setAttribute("d", arrow(x, y, reading.gradient[i], reading.gradient[j]));
  };

  function arrow(x, y, slope, other) {
    const u = slope * wide / (panel.x[1] - panel.x[0]), v = -other * tall / (panel.y[1] - panel.y[0]), norm = Math.hypot(u, v);
    if (norm === 0) return "";
    const [a, b] = [u / norm, v / norm], long = panel.least + (panel.reach - panel.least) * Math.min(norm / panel.steepest, 1);
    const [x2, y2] = [x + a * long, y + b * long];
    return `M${x} ${y}L${x2} ${y2}${[1, -1].map((s) => `M${x2} ${y2}l${-8 * a - s * 4 * b} ${-8 * b + s * 4 * a}`).join("")}`;
  }
}

function makeBars(panel, view) {
  const { svg } = canvas(panel, view), { middle, half, row } = panel;
  const bars = panel.along.map((_, k) => [
    svgNode("rect", { class: "bar", y: 32 + row * k, height: row - 8 }, svg),
    svgNode("text", { class: "tick first far", x: middle + half + 10, y: 45 + row * k }, svg)]);
  return (reading) => bars.forEach(([bar, text], k) => {
    const slope = reading.gradient === null ? NaN : reading.gradient[panel.along[k]];
    const long = Number.isFinite(slope) ? half * Math.max(Math.min(slope / panel.scale[k], 1), -1) : 0;
    bar.setAttribute("x", middle + Math.min(long, 0));
    bar.setAttribute("width", Math.abs(long));
    text.textContent = reading.gradient === null ? "" : told(slope);
  });
}
