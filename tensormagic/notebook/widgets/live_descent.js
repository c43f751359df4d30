// Steps against the gradient: computed by Python where it answers, else by the sweep.
const STEPS = 50, PATIENCE = 700; // milliseconds until the sweep is asked instead

// rows of point, values, slopes along each slider, and whether they are exact
function readPath(text, spans) {
  const [count, ...rest] = numbersOf(text), width = 2 * spans + 1;
  const rows = Array.from({ length: Math.floor(rest.length / width) }, (_, k) => rest.slice(k * width, (k + 1) * width));
  return { count, rows: rows.map((row) => ({ point: row.slice(0, spans), value: row[spans], slopes: row.slice(spans + 1), known: true })) };
}

function sweptPath(sweep, spans, start, rate) {
  const rows = [];
  let point = start;
  for (let k = 0; k <= STEPS; k += 1) {
    const { values: [value], slopes } = valueAt(sweep, point), gradient = slopes.map(([slope]) => slope);
    if (!Number.isFinite(value) || !finite(gradient)) break;
    rows.push({ point, value, slopes: gradient, known: false });
    const next = point.map((x, j) => Math.min(Math.max(x - rate * gradient[j], spans[j].low), spans[j].high));
    if (next.every((x, j) => x === point[j])) break;
    point = next;
  }
  return rows;
}

// which variables a descent moves: all that have sliders
function inWhat(spans) {
  const names = [...new Set(spans.map(({ label }) => label.split("[")[0]))];
  return names.length <= 3 ? ` in ${names.join(", ")}` : "";
}

function addDescent(view, model, controls) {
  const name = node("label", { class: "tm-rate" }), rate = node("input", { type: "number", step: "any", "aria-label": "learning rate of the descent" });
  let asked = (model.get("_asked") || [0])[0], timer = 0, frame = 0, typed = false;
  rate.addEventListener("input", () => { typed = rate.value !== ""; });
  const stop = () => { clearTimeout(timer); cancelAnimationFrame(frame); timer = frame = 0; };
  const offered = () => { if (!typed) rate.value = String(view.picture().rate); };
  const start = () => {
    stop();
    const chosen = Number.isFinite(rate.valueAsNumber) ? rate.valueAsNumber : view.picture().rate;
    const alone = () => walk(sweptPath(view.sweep(), view.spans, view.point(), chosen));
    if (model.get("_alone")) { alone(); return; }
    asked += 1;
    model.set("_asked", [asked, chosen]);
    model.save_changes();
    timer = setTimeout(() => { asked += 1; alone(); }, PATIENCE);
  };
  // a step in each frame; who wants less motion sees the end at once
  function walk(rows) {
    if (!rows.length) return;
    const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    let k = still ? rows.length - 1 : 0;
    const next = () => {
      view.walked(rows, k);
      k += 1;
      frame = k < rows.length ? requestAnimationFrame(next) : 0;
    };
    next();
  }
  name.append("learning rate ", rate);
  controls.append(button(`descend ${STEPS} steps${inWhat(view.spans)}`, "go down along the gradient: each step is the learning rate times the slope", start), name);
  return {
    stop,
    offered,
    hear() {
      const text = model.get("_path");
      if (!text) return;
      const { count, rows } = readPath(text, view.spans.length);
      if (count === asked && timer) { stop(); walk(rows); } else view.trail(rows);
    },
  };
}
