// The live view: sliders that move a point, the picture at that point, and the exact value as soon as Python has sent it.
// While one drags, values come from the sweep; without a kernel they always do.

function render({ model, el }) {
  el.classList.add("tm-sweep");
  const stop = [];
  const hear = (name, action) => { model.on(`change:${name}`, action); stop.push(() => model.off(`change:${name}`, action)); };
  let view = build(model, el, hear);
  const renew = () => view.renew();
  hear("_scene", renew);
  hear("_sweep", renew);
  return () => { view.end(); stop.forEach((end) => end()); };
}

function build(model, el, hear) {
  const scene = { ...model.get("_scene") }, spans = scene.spans;
  const readout = node("output", { class: "tm-readout" }), status = node("div", { class: "tm-status", role: "status" });
  const stage = node("div", { class: "tm-stage" }), controls = node("div", { class: "tm-controls" });
  if (scene.plot.kind === "contour") {
    for (const [name, value] of Object.entries({ tabindex: "0", role: "application", "data-lm-suppress-shortcuts": "true",
      "aria-label": `${spans[0].label} and ${spans[1].label}: arrow keys move the point` })) stage.setAttribute(name, value);
  }
  el.append(readout, stage, controls, status);
  let sweep, plot, exact = null, frame = 0, dirty = false;

  const pointOf = () => spans.map(({ name, index }) => (index === null ? model.get(name) : model.get(name)[index]));
  const stepOf = (span, value) => value >= span.high ? span.steps : Math.max(Math.round((value - span.low) / span.step), 0);
  const valueOf = (span, step) => step >= span.steps ? span.high : span.low + Math.max(step, 0) * span.step;

  const sliders = spans.map((span, k) => {
    const row = node("label", { class: "tm-row" }), text = node("span", { class: "tm-number" });
    const input = node("input", { type: "range", min: 0, max: span.steps, step: 1, "aria-label": span.label });
    row.append(node("span", { class: "tm-name" }, span.label), input, text);
    controls.append(row);
    input.addEventListener("input", () => move(k, valueOf(span, input.valueAsNumber)));
    return { input, text };
  });
  if (scene.keep) {
    const keep = button("keep", `set ${scene.keep} in the notebook to what is shown`, () => {
      model.set("_kept", (model.get("_kept") || 0) + 1);
      model.save_changes();
    });
    controls.append(keep);
  }

  function move(k, value) {
    const { name, index } = spans[k];
    const whole = index === null ? value : model.get(name).map((old, place) => (place === index ? value : old));
    model.set(name, whole);
    dirty = true;
    later();
  }
  // one picture and one message a frame, however many events there are
  function later() {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      draw();
      if (dirty) { dirty = false; model.save_changes(); }
    });
  }

  function draw() {
    const point = pointOf();
    const known = exact !== null && point.every((x, k) => x === exact[k]);
    const found = known ? { value: exact[point.length], slopes: scene.slopes ? exact.slice(point.length + 1) : null }
      : valueAt(sweep, point);
    plot.draw(point, found.value, found.slopes);
    const words = `${scene.name} ${known ? "=" : "\u2248"} ${told(found.value)}`;
    const slopes = found.slopes ? spans.map((s, k) => `slope in ${s.label} ${told(found.slopes[k])}`) : [];
    readout.textContent = scene.plot.kind === "bars" ? words : [words, ...slopes].join(" \u00b7 ");
    sliders.forEach(({ input, text }, k) => {
      input.value = stepOf(spans[k], point[k]);
      text.textContent = told(point[k]);
      input.setAttribute("aria-valuetext", [told(point[k]), words, ...slopes.slice(k, k + 1)].join(", "));
    });
    el.dataset.exact = String(known);
  }

  function renew() {
    const now = model.get("_scene");
    for (const name of ["plot", "counts", "slopes", "why"]) scene[name] = now[name];
    sweep = readSweep(scene, model.get("_sweep"));
    plot = makePlot(stage, scene.plot);
    hearExact();
  }
  function hearExact() {
    exact = model.get("_exact") ? numbersOf(model.get("_exact")) : null;
    later();
  }
  function say() { status.textContent = model.get("_problem") || scene.why; }

  // pointer and keys on the picture
  let held = false;
  function point(event) {
    plot.under(event).forEach((value, k) => move(k, valueOf(spans[k], stepOf(spans[k], value))));
  }
  if (scene.plot.kind !== "bars") {
    stage.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      held = true;
      stage.setPointerCapture(event.pointerId);
      point(event);
    });
    stage.addEventListener("pointermove", (event) => { if (held) point(event); });
    for (const end of ["pointerup", "pointercancel"]) stage.addEventListener(end, () => { held = false; });
  }
  const ways = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowDown: [1, -1], ArrowUp: [1, 1] };
  stage.addEventListener("keydown", (event) => {
    if (scene.plot.kind !== "contour" || !(event.key in ways)) return;
    event.preventDefault();
    const [k, way] = ways[event.key];
    move(k, valueOf(spans[k], stepOf(spans[k], pointOf()[k]) + way));
  });

  for (const name of new Set(spans.map((span) => span.name))) hear(name, later);
  hear("_exact", hearExact);
  hear("_problem", say);
  renew();
  draw();
  say();
  return { renew, end: () => cancelAnimationFrame(frame) };
}

export default { render };
