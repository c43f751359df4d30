// Functions that give arrays: a vector as a line, a matrix as a heat map. The element that is looked at is chosen with
// the pointer or the arrow keys.

function elementHolder(svg, view, turns, words) {
  const holder = node("div", { class: "tm-elements", tabindex: "0", role: "application", "aria-label": words });
  view.stage.replaceChild(holder, svg);
  holder.appendChild(svg);
  holder.addEventListener("keydown", (event) => {
    const turn = turns[event.key];
    if (turn === undefined) return;
    event.preventDefault();
    view.choose(view.element() + turn);
  });
  return holder;
}

function makeLine(panel, view) {
  const { svg, inner } = canvas(panel, view), { across, up } = scales(panel);
  const ghost = svgNode("path", { class: "ghost" }, inner), line = svgNode("path", { class: "curve" }, inner);
  const dots = svgNode("path", { class: "curve dots" }, inner), dot = svgNode("circle", { class: "dot", r: 6 }, inner);
  const holder = elementHolder(svg, view, { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 },
    `the elements of ${view.name}: arrow keys choose one`);
  const legend = svg.querySelector(".ahead"); // the dashed line is for the slider that was moved last
  const place = (k) => across(panel.at.length ? panel.at[k] : k);
  const way = (values, mark) => {
    let drawing = false;
    return values.map((value, k) => {
      const there = Number.isFinite(value), begin = mark || !drawing;
      drawing = there;
      return there ? `${begin ? "M" : "L"}${place(k).toFixed(1)} ${up(value).toFixed(1)}${mark ? "h0" : ""}` : "";
    }).join("");
  };
  const nearest = (x) => panel.at.length ? panel.at.reduce((best, at, k) => (Math.abs(at - x) < Math.abs(panel.at[best] - x) ? k : best), 0) : Math.round(x);
  draggable(holder, () => {}, (event) => view.choose(nearest(panel.x[0] + under(svg, panel, event)[0] * (panel.x[1] - panel.x[0]))));
  return (reading) => {
    const slopes = reading.slopes && reading.slopes[reading.focus];
    show(ghost, slopes);
    if (slopes && legend) legend.textContent = `with a larger ${panel.labels[reading.focus]}`;
    if (slopes) ghost.setAttribute("d", way(reading.values.map((value, k) => value + slopes[k] * panel.ahead[reading.focus]), false));
    line.setAttribute("d", way(reading.values, false));
    if (reading.values.length <= panel.dots) dots.setAttribute("d", way(reading.values, true));
    show(dot, Number.isFinite(reading.chosen));
    if (!Number.isFinite(reading.chosen)) return;
    dot.setAttribute("cx", place(reading.element));
    dot.setAttribute("cy", up(reading.chosen));
  };
}

// thousands of squares are painted on a canvas behind the picture: as shapes they would take longer than a frame
function makeHeat(panel, view) {
  const { svg } = canvas(panel, view), { side, head, lefts, levels, grid: [rows, wide] } = panel;
  const dots = Math.max(Math.floor(640 / Math.max(rows, wide)), 4), share = (length, whole) => `${100 * length / whole}%`;
  const maps = lefts.map((left) => {
    const made = node("canvas", { width: wide * dots, height: rows * dots, "aria-hidden": "true" });
    Object.assign(made.style, { left: share(left, panel.wide), top: share(head, panel.tall),
      width: share(wide * side, panel.wide), height: share(rows * side, panel.tall) });
    return made;
  });
  const frames = lefts.map(() => svgNode("rect", { class: "chosen", width: side, height: side }, svg));
  const title = svgNode("text", { class: "tick first top", x: lefts[1], y: 16 }, svg);
  const holder = elementHolder(svg, view, { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -wide, ArrowDown: wide },
    `the elements of ${view.name}: arrow keys choose one`);
  draggable(holder, () => {}, (event) => {
    const box = svg.getBoundingClientRect(), k = panel.wide / box.width, x = (event.clientX - box.left) * k;
    const left = lefts[x >= lefts[1] ? 1 : 0], column = Math.floor((x - left) / side);
    const row = Math.floor(((event.clientY - box.top) * k - head) / side);
    if (column >= 0 && column < wide && row >= 0 && row < rows) view.choose(row * wide + column);
  });
  holder.prepend(...maps);
  const fill = (map, values, most, colours) => {
    const paint = map.getContext("2d"), gap = Math.max(Math.round(dots * 0.15), 1);
    paint.clearRect(0, 0, map.width, map.height);
    values.forEach((value, k) => {
      const depth = Math.ceil(Math.min(Math.abs(value) / most, 1) * levels), inset = value < 0 ? gap : 0;
      if (!depth) return;
      paint.globalAlpha = 0.9 * depth / levels;
      paint.fillStyle = colours[value < 0 ? 1 : 0];
      paint.fillRect(dots * (k % wide) + inset, dots * Math.floor(k / wide) + inset, dots - 2 * inset, dots - 2 * inset);
    });
  };
  return (reading) => {
    const slopes = reading.slopes && reading.slopes[reading.focus], most = panel.scales[reading.focus + 1];
    const style = getComputedStyle(holder), colours = ["strong", "update-line"].map((name) => style.getPropertyValue(`--tm-${name}`));
    fill(maps[0], reading.values, panel.scales[0], colours);
    fill(maps[1], slopes || [], most || 1, colours);
    title.textContent = slopes ? `slope in ${panel.labels[reading.focus]}, to ${told(Number((most || 1).toPrecision(3)))}` : "";
    frames.forEach((frame, k) => {
      frame.setAttribute("x", lefts[k] + side * (reading.element % wide));
      frame.setAttribute("y", head + side * Math.floor(reading.element / wide));
      show(frame, k === 0 || slopes);
    });
  };
}

function makeHistory(panel, view) {
  const { svg } = canvas(panel, view), [left, top, wide, tall] = panel.frame;
  const line = svgNode("path", { class: "seen" }, svg), words = svgNode("text", { class: "tick", x: left + wide / 2, y: panel.tall - 6 }, svg);
  const ends = [0, 1].map(() => svgNode("text", { class: "tick last up halo", x: left - 6 }, svg));
  return (reading) => {
    const seen = reading.history, there = seen.filter(Number.isFinite), low = Math.min(...there), high = Math.max(...there);
    const up = (value) => top + tall * (1 - (high > low ? (value - low) / (high - low) : 0.5)), some = there.length >= 2;
    let drawing = false;
    line.setAttribute("d", !some ? "" : seen.map((value, k) => {
      const begin = !drawing;
      drawing = Number.isFinite(value);
      return drawing ? `${begin ? "M" : "L"}${(left + wide * k / (seen.length - 1)).toFixed(1)} ${up(value).toFixed(1)}` : "";
    }).join(""));
    svg.classList.toggle("tm-none", !some); // its room is kept, so that nothing moves away under the pointer
    ends.forEach((text, k) => {
      text.textContent = some && (high > low || !k) ? told(+[low, high][k].toPrecision(3)) : "";
      text.setAttribute("y", some ? up([low, high][k]) + 4 : 0);
    });
    words.textContent = some ? `${reading.fallen ? `descent: ${seen.length - 1} steps` : `${seen.length} values so far`}, from left to right` : "each new value is drawn here";
  };
}
