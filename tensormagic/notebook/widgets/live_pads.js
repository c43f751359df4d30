// Vectors and matrices that are dragged where they are drawn. Each number is a slider for keyboards and screen readers:
// one of them is in the tab order; `turns` says which keys go where from it, and others move its value.

function knob(svg, view, panel, attributes) {
  const made = svgNode("rect", { class: "tm-knob", role: "slider", tabindex: "-1", "data-lm-suppress-shortcuts": "true", ...attributes }, svg);
  return made;
}

function makePad(panel, view, svg, knobs, turns, words, low = false) {
  const name = view.spans[panel.along[0]].name;
  svg.removeAttribute("aria-hidden");
  svg.setAttribute("role", "group");
  svg.setAttribute("aria-label", `${name}: ${words}`);
  svg.classList.add("tm-drag");
  const hint = svgNode("text", { class: low ? "tick last" : "tick last top", x: panel.wide - 16, y: low ? panel.tall - 8 : 14, "aria-hidden": "true" }, svg);
  let active = 0, focused = false;
  const choose = (k, focus = true) => {
    knobs[active].setAttribute("tabindex", "-1");
    active = Math.min(Math.max(k, 0), knobs.length - 1);
    knobs[active].setAttribute("tabindex", "0");
    if (focus) knobs[active].focus({ preventScroll: true });
    view.later();
  };
  knobs.forEach((one, k) => {
    const span = view.spans[panel.along[k]];
    for (const [key, value] of Object.entries({ label: span.label, valuemin: span.low, valuemax: span.high, orientation: "vertical" })) {
      one.setAttribute(`aria-${key}`, value);
    }
    one.addEventListener("focus", () => { focused = true; if (active !== k) choose(k, false); view.later(); });
    one.addEventListener("blur", () => { focused = false; view.later(); });
  });
  svg.addEventListener("keydown", (event) => {
    const turn = turns(event, active), pace = { ArrowUp: 1, ArrowDown: -1, "+": 1, "-": -1, PageUp: 10, PageDown: -10 }[event.key];
    if (turn !== undefined) choose(turn);
    else if (pace !== undefined) view.step(panel.along[active], pace, event.shiftKey);
    else return;
    event.preventDefault();
  });
  choose(0, false);
  return {
    choose,
    active: () => active,
    describe(reading) {
      knobs.forEach((one, k) => {
        const at = panel.along[k], slope = reading.gradient ? `, slope ${told(reading.gradient[at])}` : "";
        one.setAttribute("aria-valuenow", Number(reading.point[at].toPrecision(6)));
        one.setAttribute("aria-valuetext", `${told(reading.point[at])}${slope}`);
      });
      const at = panel.along[active], slope = reading.gradient ? ` \u00b7 slope ${told(reading.gradient[at])}` : "";
      hint.textContent = focused || reading.last === at ? `${view.spans[at].label} = ${told(reading.point[at])}${slope}` : words;
    },
  };
}

function makeColumns(panel, view) {
  const { svg } = canvas(panel, view), [left, wide, top, tall, first, deep] = panel.frame, count = panel.along.length;
  const step = wide / count, up = (y) => top + tall * (1 - (y - panel.y[0]) / (panel.y[1] - panel.y[0]));
  const zero = up(Math.min(Math.max(0, panel.y[0]), panel.y[1]));
  const columns = panel.along.map((_, k) => {
    const x = left + step * (k + 0.15), width = step * 0.7;
    return { x, width, value: svgNode("rect", { class: "value", x, width }, svg), handle: svgNode("path", { class: "handle" }, svg),
      slope: svgNode("rect", { class: "bar", x, width }, svg) };
  });
  const knobs = panel.along.map((_, k) => knob(svg, view, panel, { x: left + step * k, y: top, width: step, height: tall }));
  const pad = makePad(panel, view, svg, knobs, (event, k) => (
    { ArrowLeft: k - 1, ArrowRight: k + 1, Home: 0, End: count - 1 }[event.key]), "drag a column, or arrow keys");
  const height = (event) => {
    const box = svg.getBoundingClientRect(), y = (event.clientY - box.top) * panel.wide / box.width;
    view.move(panel.along[pad.active()], panel.y[0] + (1 - (y - top) / tall) * (panel.y[1] - panel.y[0]));
  };
  draggable(svg, (event) => {
    const box = svg.getBoundingClientRect(), k = panel.wide / box.width;
    const column = Math.floor(((event.clientX - box.left) * k - left) / step), y = (event.clientY - box.top) * k;
    if (column < 0 || column >= count || y > top + tall + 20) return false;
    event.preventDefault();
    pad.choose(column);
    return true;
  }, height, view.settle);
  return (reading) => {
    columns.forEach(({ x, width, value, handle, slope }, k) => {
      const at = panel.along[k], y = up(reading.point[at]), there = reading.gradient !== null && Number.isFinite(reading.gradient[at]);
      value.setAttribute("y", Math.min(y, zero));
      value.setAttribute("height", Math.abs(y - zero));
      handle.setAttribute("d", `M${x} ${y}h${width}`);
      const long = there && panel.scale ? deep / 2 * Math.max(Math.min(reading.gradient[at] / panel.scale, 1), -1) : 0;
      slope.setAttribute("y", first + deep / 2 - Math.max(long, 0));
      slope.setAttribute("height", Math.abs(long));
    });
    pad.describe(reading);
  };
}

function makeCells(panel, view) {
  const { svg } = canvas(panel, view), { side, top, lefts, grid: [rows, wide] } = panel;
  const filled = (left) => panel.along.map((_, k) => ({ x: left + side * (k % wide), y: top + side * Math.floor(k / wide),
    box: svgNode("rect", {}, svg), text: side >= panel.words ? svgNode("text", { class: "cell halo" }, svg) : null }));
  const values = filled(lefts[0]), slopes = panel.scale ? filled(lefts[1]) : [];
  const knobs = values.map(({ x, y }) => knob(svg, view, panel, { x, y, width: side, height: side }));
  const pad = makePad(panel, view, svg, knobs, (event, k) => {
    if (event.key === "Home") return 0;
    if (event.key === "End") return rows * wide - 1;
    const way = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -wide, ArrowDown: wide }[event.key];
    return way === undefined ? undefined : k + way >= 0 && k + way < rows * wide ? k + way : k;
  }, "drag a cell, or arrow keys and + \u2212", true);
  let from = 0, begin = 0;
  const fill = ({ x, y, box, text }, value, most) => {
    const there = Number.isFinite(value), gap = value < 0 ? side * 0.08 : 0, share = there ? Math.min(Math.abs(value) / most, 1) : 0;
    for (const [name, held] of Object.entries({ class: value < 0 ? "minus" : "plus", x: x + gap, y: y + gap,
      width: side - 2 * gap, height: side - 2 * gap, "fill-opacity": 0.85 * share })) box.setAttribute(name, held);
    if (!text) return;
    text.setAttribute("x", x + side / 2);
    text.setAttribute("y", y + side / 2 + 4);
    text.textContent = told(Number(value.toPrecision(2)));
  };
  draggable(svg, (event) => {
    const box = svg.getBoundingClientRect(), k = panel.wide / box.width;
    const column = Math.floor(((event.clientX - box.left) * k - lefts[0]) / side);
    const row = Math.floor(((event.clientY - box.top) * k - top) / side);
    if (column < 0 || column >= wide || row < 0 || row >= rows) return false;
    event.preventDefault();
    pad.choose(row * wide + column);
    from = event.clientY;
    begin = view.point()[panel.along[pad.active()]];
    return true;
  }, (event) => {
    const span = view.spans[panel.along[pad.active()]];
    view.move(panel.along[pad.active()], begin + (from - event.clientY) / 120 * (span.high - span.low));
  }, view.settle);
  return (reading) => {
    values.forEach((cell, k) => fill(cell, reading.point[panel.along[k]], panel.most));
    slopes.forEach((cell, k) => fill(cell, reading.gradient ? reading.gradient[panel.along[k]] : NaN, panel.scale));
    pad.describe(reading);
  };
}
