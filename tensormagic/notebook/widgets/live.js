// The live view: what moves a point, the picture at that point, and the exact value as soon as Python has sent it.
// While one drags, values come from the sweep; without a kernel they always do.
const WIDE = 480, SETTLED = 250, SEEN = 240; // of pictures; milliseconds without a move; values that are kept

function render({ model, el }) {
  el.classList.add("tm-sweep");
  const stop = [];
  const hear = (name, action) => { model.on(`change:${name}`, action); stop.push(() => model.off(`change:${name}`, action)); };
  const view = build(model, el, hear);
  return () => { view.end(); stop.forEach((end) => end()); };
}

function flat(value) { return Array.isArray(value) ? value.flat(Infinity) : [value]; }

// the same numbers with one of them changed, rows and all
function changed(old, index, value) {
  if (index === null) return value;
  const [first, ...rest] = index;
  return old.map((part, k) => (k !== first ? part : rest.length ? changed(part, rest, value) : value));
}

function build(model, el, hear) {
  const { spans, name, indexed, sliders: rows, keep } = model.get("_scene"), names = [...new Set(spans.map((span) => span.name))];
  const readout = node("output", { class: "tm-readout" }), status = node("div", { class: "tm-status", role: "status" });
  const stage = node("div", { class: "tm-stage" }), controls = node("div", { class: "tm-controls" });
  const tools = node("div", { class: "tm-tools", role: "toolbar", "aria-label": name });
  const side = node("div", { class: "tm-side" }), main = node("div", { class: "tm-main" }); // beside each other where there is room
  side.append(controls, tools, node("div", { class: "tm-told" }, (model.get("_scene").told || "").replace(/ = /g, "\u00a0=\u00a0")), status);
  main.append(stage, side);
  el.append(readout, main);
  // the picture is as wide as its place, and its words are 12 pixels high in any
  const sized = new ResizeObserver(() => {
    const grow = Math.min(2.4, Math.max(0.6, WIDE / (stage.clientWidth || WIDE)));
    stage.style.setProperty("--tm-grow", (1.02 * grow).toFixed(2));
    stage.classList.toggle("tm-tight", grow > 1.15);
  });
  sized.observe(stage);
  let sweep, parts = [], exact = null, frame = 0, dirty = false, timer = 0, last = null, seen = [], trail = [], walking = null, going = false;

  const picture = () => model.get("_picture");
  const pointOf = () => names.flatMap((one) => flat(model.get(one)));
  const start = pointOf();
  const stepOf = (span, value) => value >= span.high ? span.steps : Math.max(Math.round((value - span.low) / span.step), 0);
  const valueOf = (span, step) => step >= span.steps ? span.high : span.low + Math.max(step, 0) * span.step;
  const element = () => Math.min(model.get("_element") || 0, picture().shape.reduce((a, b) => a * b, 1) - 1);

  function put(k, value) {
    const span = spans[k];
    model.set(span.name, changed(model.get(span.name), span.index, value));
  }
  function move(k, value) {
    last = k;
    halt();
    put(k, valueOf(spans[k], stepOf(spans[k], value)));
    send();
    later();
  }
  function halt() {
    descent.stop();
    walking = null;
    going = false;
  }
  function step(k, way, large) {
    const span = spans[k];
    move(k, valueOf(span, stepOf(span, pointOf()[k]) + way * (large ? Math.max(Math.round(span.steps / 20), 1) : 1)));
  }
  function choose(k) {
    const most = picture().shape.reduce((a, b) => a * b, 1) - 1;
    model.set("_element", Math.min(Math.max(k, 0), most));
    seen = [];
    send();
    later();
  }
  // one picture a frame, however many events there are
  function later() {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      draw();
    });
  }
  // one message for all that one event has changed; the widget manager sends the next when this one has been answered
  function send() {
    if (!dirty) queueMicrotask(() => { dirty = false; model.save_changes(); });
    dirty = true;
  }
  // lines in each direction, and contours of two numbers among more, are those through the point where one stops
  function settle() {
    clearTimeout(timer);
    timer = 0;
    if (model.get("_alone") || !sweep.centre || going || pointOf().every((x, k) => x === sweep.centre[k])) return;
    model.set("_settled", (model.get("_settled") || 0) + 1);
    model.save_changes();
  }

  const view = { stage, spans, name, move, step, choose, later, settle, element, picture, point: pointOf, sweep: () => sweep,
    walked(path, k) {
      walking = path[k];
      trail = path.slice(0, k + 1).map((row) => [...row.point, row.value]);
      path[k].point.forEach((value, j) => put(j, value));
      going = k < path.length - 1;
      if (!going) send();
      later();
    },
    trail(path) { trail = path.map((row) => [...row.point, row.value]); later(); } };

  const sliders = rows.map((k) => {
    const span = spans[k], row = node("label", { class: "tm-row" }), text = node("span", { class: "tm-number" });
    const input = node("input", { type: "range", min: 0, max: span.steps, step: 1, "aria-label": span.label });
    row.append(node("span", { class: "tm-name" }, span.label), input, text);
    controls.append(row);
    input.addEventListener("input", () => move(k, valueOf(span, input.valueAsNumber)));
    return { k, input, text };
  });
  const descent = picture().slopes && !picture().shape.length ? addDescent(view, model, tools) : { stop() {}, offered() {}, hear() {} };
  tools.append(button("reset", "go back to where the view began", () => {
    halt();
    trail = [];
    start.forEach((value, k) => put(k, value));
    seen = [];
    send();
    later();
  }));
  if (keep) {
    tools.append(button(`keep ${keep} in the notebook`, `set ${keep} in the notebook to what is shown`, () => {
      model.set("_kept", (model.get("_kept") || 0) + 1);
      model.save_changes();
    }));
  }

  function found(point) {
    const d = point.length, size = picture().shape.reduce((a, b) => a * b, 1), same = (other) => point.every((x, k) => x === other[k]);
    if (exact !== null && same(exact)) {
      const slopes = picture().slopes ? Array.from({ length: d }, (_, k) => exact.slice(d + size * (k + 1), d + size * (k + 2))) : null;
      return { known: true, values: exact.slice(d, d + size), slopes };
    }
    if (walking && same(walking.point)) return { known: walking.known, values: [walking.value], slopes: walking.slopes.map((slope) => [slope]) };
    return { known: false, ...valueAt(sweep, point) };
  }

  function draw() {
    const point = pointOf(), at = element(), { known, values, slopes } = found(point), chosen = values[at];
    const gradient = slopes && picture().slopes ? slopes.map((one) => one[at]) : null;
    if (!seen.length || seen[seen.length - 1].point.some((x, k) => x !== point[k])) seen.push({ point, value: chosen });
    else seen[seen.length - 1].value = chosen;
    seen = seen.slice(-SEEN);
    const end = trail[trail.length - 1], fallen = !!end && point.every((x, k) => x === end[k]);
    if (fallen) seen = seen.slice(-1); // the strip is of a descent, or of what is moved after it
    const reading = { point, values, slopes: picture().slopes ? slopes : null, chosen, gradient, element: at, focus: last ?? 0, last, centre: sweep.centre,
      history: fallen ? trail.map((row) => row[row.length - 1]) : seen.map(({ value }) => value), path: trail, fallen };
    parts.forEach((part) => part(reading));
    const wide = picture().shape[1], index = wide ? `${Math.floor(at / wide)}, ${at % wide}` : `${at}`;
    const sign = known ? "=" : "\u2248", where = wide ? "in the frame" : "at the dot";
    const words = `${picture().shape.length ? `${indexed}[${index}] ${where}` : name} ${sign} ${told(chosen)}`;
    const told_slopes = gradient ? spans.map((span, k) => `slope in ${span.label} ${sign} ${told(gradient[k])}`) : [];
    readout.textContent = spans.length > 2 ? words : [words, ...told_slopes].join(" \u00b7 ");
    sliders.forEach(({ k, input, text }) => {
      input.value = stepOf(spans[k], point[k]);
      text.textContent = told(point[k]);
      input.setAttribute("aria-valuetext", [told(point[k]), words, ...told_slopes.slice(k, k + 1)].join(", "));
    });
    el.dataset.exact = String(known);
    el.dataset.drawn = String(Number(el.dataset.drawn || 0) + 1);
  }

  // a part is made anew where Python has drawn it anew, and not while one holds it
  let marked = [], held = false;
  function remake() {
    if (held) return;
    let anew = false;
    picture().panels.forEach((panel, k) => {
      const mark = JSON.stringify(panel);
      if (mark === marked[k]) return;
      const old = stage.children[k], inside = old ? [...old.querySelectorAll("*"), old].indexOf(document.activeElement) : -1;
      parts[k] = makePanel(panel, view);
      const made = stage.lastElementChild;
      if (old) old.replaceWith(made);
      if (inside >= 0) [...made.querySelectorAll("*"), made][inside]?.focus({ preventScroll: true });
      marked[k] = mark;
      anew = true;
    });
    if (anew) draw(); // at once: a part that is not drawn yet says no values to screen readers
    else later();
  }
  function renew() {
    if (picture().panels.length !== parts.length || picture().shape.length !== shape) {
      stage.replaceChildren();
      [parts, marked, shape] = [[], [], picture().shape.length];
    }
    if (picture().version !== version) [seen, trail, version] = [[], [], picture().version];
    sweep = readSweep(picture(), model.get("_sweep"));
    hearExact();
    remake();
    descent.offered();
    say();
  }
  let shape = picture().shape.length, version = picture().version;
  stage.addEventListener("pointerdown", () => { held = true; }, true);
  const release = () => {
    if (!held) return;
    held = false;
    remake();
  };
  for (const end of ["pointerup", "pointercancel"]) document.addEventListener(end, release); // it may be released outside
  function hearExact() {
    exact = model.get("_exact") ? numbersOf(model.get("_exact")) : null;
    later();
  }
  function say() {
    status.textContent = [model.get("_problem"), model.get("_note"), model.get("_problem") ? "" : picture().why].filter(Boolean).join(" \u00b7 ");
  }
  function moved() {
    later();
    clearTimeout(timer);
    timer = setTimeout(settle, SETTLED);
  }

  for (const one of names) hear(one, moved);
  hear("_exact", hearExact);
  hear("_element", () => { seen = []; later(); });
  hear("_path", () => descent.hear());
  hear("_picture", renew);
  hear("_sweep", renew);
  for (const one of ["_problem", "_note"]) hear(one, say);
  // what is painted on a canvas has the colours of the page's theme
  const dark = window.matchMedia("(prefers-color-scheme: dark)"), themes = new MutationObserver(later);
  dark.addEventListener("change", later);
  themes.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "class"] });
  renew();
  return { end() {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    descent.stop();
    dark.removeEventListener("change", later);
    themes.disconnect();
    sized.disconnect();
    for (const end of ["pointerup", "pointercancel"]) document.removeEventListener(end, release);
  } };
}

export default { render };
