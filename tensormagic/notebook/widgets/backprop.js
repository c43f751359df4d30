// Backpropagation, seen: Python drew the picture, this writes the numbers of a step into it, and moves through the steps.

const BACKPROP_KEYS = "Left and right arrows step, Home and End go to the ends, up and down choose a node, space plays, plus and minus zoom, 0 fits.";

function render({ model, el }) {
  el.classList.add("tm-backprop");
  const stop = [];
  const hear = (name, action) => { model.on(`change:${name}`, action); stop.push(() => model.off(`change:${name}`, action)); };
  let end = build(model, el, hear);
  const close = () => { end(); stop.splice(0).forEach((one) => one()); };
  const renew = () => { close(); el.replaceChildren(); end = build(model, el, hear); };
  model.on("change:_scene", renew);
  return () => { model.off("change:_scene", renew); close(); };
}

function build(model, el, hear) {
  const scene = model.get("_scene"), { steps, sliders } = scene;
  const size = Math.max(0, ...[...scene.nodes.flatMap((n) => [n.value, n.adjoint]), ...scene.uses.flatMap((u) => [u.part, u.local])]
    .filter(Boolean).map((s) => s.at + widthOf(s)));
  const valueStep = scene.nodes.map((_, k) => steps.findIndex(([what, n]) => what === "value" && n === k) + 1);
  const useStep = scene.uses.map((_, k) => steps.findIndex(([what, n]) => what === "use" && n === k) + 1);
  const seedStep = steps.findIndex(([what]) => what === "seed") + 1, result = steps[seedStep - 1][1];
  let frame = null, exact = null, star = null, timer = 0, playing = 0, dirty = false, rest = 0, shownStep = -1;

  // the page ----------------------------------------------------------------------------------------------------------
  const header = node("div", { class: "tm-title" }), tools = node("div", { class: "tm-tools", role: "group", "aria-label": "steps" });
  const sizes = node("span", { class: "tm-sizes", role: "group", "aria-label": "size of the picture" });
  const status = node("div", { class: "tm-status", role: "status" }), controls = node("div", { class: "tm-controls" });
  const stage = node("div", { class: "tm-stage", tabindex: "0", role: "application", "aria-label": `${scene.title}. ${BACKPROP_KEYS}` });
  const side = node("div", { class: "tm-side" }), main = node("div", { class: "tm-main" }), note = node("div", { class: "tm-note" });
  const legend = node("details", { class: "tm-soft tm-legend" }); // closed on a narrow page, where it would be longer than the picture
  legend.append(node("summary", {}, "words and signs"), node("p", {}, scene.legend));
  const parsed = new DOMParser().parseFromString(scene.svg, "image/svg+xml").documentElement;
  const drawing = document.importNode(parsed, true), natural = Number(parsed.getAttribute("width"));
  let zoom = 1; // at which text is as large as beside the picture
  function zoomTo(scale) {
    const middle = (stage.scrollLeft + stage.clientWidth / 2) / zoom, centre = (stage.scrollTop + stage.clientHeight / 2) / zoom;
    zoom = Math.min(3, Math.max(0.2, scale));
    Object.assign(drawing.style, { width: `${zoom * natural}px`, height: "auto", maxWidth: "none" });
    stage.scrollTo(middle * zoom - stage.clientWidth / 2, centre * zoom - stage.clientHeight / 2);
    edges();
  }
  stage.append(drawing);
  const frameOf = node("div", { class: "tm-frame" });
  frameOf.style.flexBasis = `${natural}px`; // what stands beside it goes below where there is no room for both
  frameOf.appendChild(stage);
  const cover = coverOf(frameOf);
  function edges() {
    const right = stage.scrollWidth - stage.clientWidth - stage.scrollLeft, below = stage.scrollHeight - stage.clientHeight - stage.scrollTop;
    markEdges(cover, { left: stage.scrollLeft > 6, right: right > 6, top: stage.scrollTop > 6, bottom: below > 6 },
      `scroll to see the rest${stage.scrollWidth > stage.clientWidth + 6 ? ", or press fit" : ""}`);
  }
  stage.addEventListener("scroll", edges, { passive: true });
  let opened = false;
  const resized = new ResizeObserver(() => {
    if (!opened && stage.clientWidth) { opened = true; legend.open = el.clientWidth >= 700; begin(); }
    edges();
  });
  resized.observe(stage);
  main.append(frameOf, side);
  el.append(header, tools, controls, status, legend, main, note);
  const elements = scene.nodes.map((_, k) => stage.querySelector(`[data-n="${k}"]`));
  const cards = scene.uses.map((_, k) => stage.querySelector(`.card[data-u="${k}"]`));
  const ways = scene.uses.map((_, k) => [...stage.querySelectorAll(`.way[data-u="${k}"]`)]);
  const texts = new Map([...elements, ...cards].filter(Boolean)
    .map((one) => [one, Object.fromEntries([...one.querySelectorAll("[data-p]")].map((text) => [text.dataset.p, text]))]));
  const strips = scene.nodes.flatMap((one, k) => ["value", "adjoint"].map((part) => [k, part, elements[k].querySelector(`[data-c="${part}"]`)]))
    .filter(([, , group]) => group);
  const put = (one, part, text) => {
    const found = one && texts.get(one)[part];
    if (found && found.textContent !== text) found.textContent = text;
  };

  const slide = node("input", { type: "range", min: 0, max: steps.length, step: 1, "aria-label": "step" });
  const count = node("span", { class: "tm-count" });
  const play = button("\u25b6 play", "play the passes from here", () => (playing ? halt() : run()));
  tools.append(button("|\u25c0", "to the start: inputs alone", () => go(0)), button("\u25c0", "one step back", () => go(now() - 1)),
    button("\u25b6", "one step on", () => go(now() + 1)), button("\u25b6|", "to the end: both passes", () => go(steps.length)), play, slide, count, sizes);
  sizes.append(button("\u2212", "smaller", () => zoomTo(zoom / 1.25)), button("+", "larger", () => zoomTo(zoom * 1.25)),
    button("fit", "all of the picture, as wide as there is room", () => zoomTo(Math.min(1, (stage.clientWidth - 2) / natural))));
  slide.addEventListener("input", () => go(slide.valueAsNumber));

  const inputs = sliders.map((span, k) => {
    const row = node("label", { class: "tm-row" }), text = node("span", { class: "tm-number" });
    const input = node("input", { type: "range", min: 0, max: span.steps, step: 1, "aria-label": span.name });
    row.append(node("span", { class: "tm-name" }, span.name), input, text);
    controls.append(row);
    input.addEventListener("input", () => move(k, input.valueAsNumber));
    return { input, text };
  });
  const stepOf = (span, x) => (x >= span.high ? span.steps : Math.max(Math.round((x - span.low) / span.step), 0));
  const placeOf = (span, step) => (step >= span.steps ? span.high : span.low + Math.max(step, 0) * span.step);

  // steps -------------------------------------------------------------------------------------------------------------
  const now = () => model.get("step");
  const state = {
    use: -1,
    hasValue: (k) => valueStep[k] <= now(),
    arrived: (k) => scene.nodes[k].uses.filter((u) => useStep[u] <= now()),
    hasAdjoint: (k) => (k === result ? now() >= seedStep : now() >= seedStep && state.arrived(k).length === scene.nodes[k].uses.length),
  };
  function sync(name, value) { if (model.get(name) !== value) { model.set(name, value); model.save_changes(); } }
  function go(step) {
    const wanted = Math.min(Math.max(step, 0), steps.length);
    if (wanted !== now()) sync("selected", -1);
    sync("step", wanted);
    draw();
  }
  function halt() {
    clearInterval(playing);
    playing = 0;
    play.textContent = "\u25b6 play";
    play.setAttribute("aria-pressed", "false");
  }
  function run() {
    if (now() >= steps.length) go(0);
    play.textContent = "\u275a\u275a pause";
    play.setAttribute("aria-pressed", "true");
    playing = setInterval(() => { go(now() + 1); if (now() >= steps.length) halt(); }, 800);
  }
  function about() { // the node and the use that the step is about
    const [what, k] = now() ? steps[now() - 1] : ["start", result];
    return what === "use" ? { node: scene.uses[k].source, use: k } : { node: k, use: -1 };
  }
  function words() {
    if (!now()) return "The inputs are known. Press \u25b6 or move the slider: the values are computed one by one, and then the adjoints.";
    const [what, k] = steps[now() - 1];
    if (what === "value") return `forward: ${scene.nodes[k].heading} is ${slotText(scene.nodes[k].value, frame)}`;
    if (what === "done") {
      const inputs_ = scene.nodes.map((one, n) => [one, n]).filter(([one, n]) => valueStep[n] === 0 && one.adjoint);
      return `Both passes are done, forward and backward. The gradient, with respect to ${inputs_.map(([one]) => `${one.heading}: ${slotText(one.adjoint, frame)}`).join(", ")}`;
    }
    if (what === "seed") return `backward begins: the adjoint of ${scene.nodes[k].heading} is 1`;
    const one = scene.uses[k], source = scene.nodes[one.source], target = scene.nodes[one.target];
    const came = state.arrived(one.source).length, all = source.uses.length;
    const total = came === all ? `its adjoint is ${slotText(source.adjoint, frame)}` : `its adjoint so far: from ${came} of ${all} arrows`;
    const adjoint = target.adjoint ? slotText(target.adjoint, frame) : "";
    return `backward: ${source.heading} gets ${productText(one, adjoint, frame)}${whySum(one, source.heading)}; ${total}`;
  }

  // numbers -----------------------------------------------------------------------------------------------------------
  function choose() {
    const point = model.get("point");
    if (exact && point.every((x, k) => x === exact.point[k])) { frame = exact.frame; el.dataset.exact = "true"; return; }
    const found = frameOnStar(star, point);
    el.dataset.exact = found ? "near" : "false";
    frame = found || frame || (exact && exact.frame);
  }
  function draw() {
    choose();
    if (!frame) { status.textContent = model.get("_problem"); return; }
    const focus = about(), chosen = model.get("selected") >= 0 ? model.get("selected") : focus.node;
    state.use = focus.use;
    scene.nodes.forEach((one, k) => drawNode(one, k, focus, chosen));
    scene.uses.forEach((one, k) => drawUse(one, k, focus));
    for (const [k, part, group] of strips) {
      const there = part === "value" ? state.hasValue(k) : state.hasAdjoint(k);
      group.style.display = there ? "" : "none";
      if (there) drawCells(group, scene.nodes[k][part], frame);
    }
    slide.value = now();
    stage.classList.toggle("tm-done", now() === steps.length);
    const kind = now() < seedStep ? "forward" : "backward";
    count.textContent = now() === 0 ? "inputs" : now() === steps.length ? "end: both passes" : `${kind}, step ${now()} of ${steps.length - 1}`;
    slide.setAttribute("aria-valuetext", `${now()} of ${steps.length}: ${words()}`);
    const sign = { true: "=", near: "\u2248", false: "\u2026" }[el.dataset.exact];
    header.textContent = `backprop of ${scene.name} ${sign} ${slotText(scene.nodes[result].value, frame)}`;
    const text = model.get("_problem") || words();
    if (status.textContent !== text) status.textContent = text;
    note.textContent = model.get("_note");
    sliders.forEach((span, k) => {
      const x = model.get("point")[k];
      inputs[k].input.value = stepOf(span, x);
      inputs[k].text.textContent = numberText(x);
      inputs[k].input.setAttribute("aria-valuetext", `${numberText(x)}, ${header.textContent}`);
    });
    details(chosen, frame, state);
    lines(scene.nodes[chosen].line);
    if (shownStep >= 0 && shownStep !== now()) bring(elements[focus.node]);
    shownStep = now();
  }
  function drawNode(one, k, focus, chosen) {
    const there = state.hasValue(k), came = state.arrived(k), whole = state.hasAdjoint(k);
    put(elements[k], "value", there ? slotText(one.value, frame) : "");
    if (one.adjoint) {
      const parts = came.map((u) => scene.uses[u].part), numbers = one.adjoint.kind === "number";
      put(elements[k], "adjoint", whole ? slotText(one.adjoint, frame) : came.length ? "\u2026" : "");
      const sum = numbers ? sumText(parts.map((p) => slotText(p, frame, 4)), one.uses.length - came.length) : came.length === one.uses.length ? `sum of what ${one.uses.length} arrows pass up` : `so far ${came.length} of ${one.uses.length} arrows`;
      put(elements[k], "sum", came.length ? sum : "");
    }
    const marks = { "tm-wait": !there, "tm-now": now() > 0 && k === focus.node, "tm-chosen": k === chosen && model.get("selected") >= 0 };
    for (const [name, on] of Object.entries(marks)) elements[k].classList.toggle(name, on);
  }
  function drawUse(one, k, focus) {
    const known = state.hasValue(one.target), came = one.part && useStep[k] <= now();
    put(cards[k], "local", known && now() >= seedStep ? cardText(one, frame) : "");
    put(cards[k], "part", came ? partText(one.part, frame) : "");
    const back = k === focus.use, forth = focus.use < 0 && now() > 0 && now() < seedStep && one.target === focus.node;
    if (cards[k]) { cards[k].classList.toggle("tm-now", back); cards[k].classList.toggle("tm-wait", !came); }
    for (const way of ways[k]) { way.classList.toggle("tm-back", back); way.classList.toggle("tm-forth", forth); way.classList.toggle("tm-came", Boolean(came)); }
  }
  function begin() { // a picture that is wider than its frame opens with what stands at its top, where most other boxes are whole beside that
    if (stage.scrollLeft !== 0) return;
    const left = stage.getBoundingClientRect().left, room = stage.clientWidth, most = stage.scrollWidth - room;
    const boxes = elements.map((one) => one.getBoundingClientRect()).map((box) => [box.left - left, box.right - left, box.top]);
    const first = boxes.reduce((one, other) => (other[2] < one[2] ? other : one)), middle = (first[0] + first[1] - room) / 2;
    const whole = (x) => boxes.filter((box) => box[0] >= x && box[1] <= x + room).length;
    const places = boxes.flatMap((box) => [box[0] - 12, box[1] + 12 - room]).map((x) => Math.min(most, Math.max(0, x)));
    const fit = places.filter((x) => first[0] >= x && first[1] <= x + room).sort((one, other) => Math.abs(one - middle) - Math.abs(other - middle));
    stage.scrollLeft = [Math.min(most, middle), ...fit].reduce((one, other) => (whole(other) > whole(one) ? other : one));
  }
  function bring(element) { // scrolls the picture alone, never the page
    const box = element.getBoundingClientRect(), frameBox = stage.getBoundingClientRect();
    if (box.top < frameBox.top || box.bottom > frameBox.bottom) stage.scrollTop += (box.top + box.bottom - frameBox.top - frameBox.bottom) / 2;
    if (box.left < frameBox.left || box.right > frameBox.right) stage.scrollLeft += (box.left + box.right - frameBox.left - frameBox.right) / 2;
  }

  // sliders: one picture and one message a frame, however many events there are -----------------------------------------
  function move(k, step) {
    const from = scene.live ? model.get("point") : star ? star.base : model.get("point"); // without a kernel one moves at a time
    model.set("point", from.map((x, other) => (other === k ? placeOf(sliders[k], step) : x)));
    dirty = true;
    later();
  }
  function later() {
    timer ||= requestAnimationFrame(() => {
      timer = 0;
      draw();
      if (!dirty) return;
      dirty = false;
      model.save_changes();
      status.setAttribute("aria-busy", "true"); // not read aloud sixty times a second
      clearTimeout(rest);
      rest = setTimeout(() => {
        status.removeAttribute("aria-busy");
        if (scene.live) sync("_rest", (model.get("_rest") || 0) + 1);
      }, 400);
    });
  }

  // choosing ----------------------------------------------------------------------------------------------------------
  function select(k) { sync("selected", k); draw(); if (k >= 0) bring(elements[k]); }
  elements.forEach((element, k) => element.addEventListener("click", () => select(model.get("selected") === k ? -1 : k)));
  cards.forEach((card, k) => { if (card) card.addEventListener("click", () => go(useStep[k])); });
  const acts = {
    ArrowRight: () => go(now() + 1), ArrowLeft: () => go(now() - 1), Home: () => go(0), End: () => go(steps.length),
    ArrowDown: () => select(Math.min((model.get("selected") < 0 ? about().node : model.get("selected")) + 1, scene.nodes.length - 1)),
    ArrowUp: () => select(Math.max((model.get("selected") < 0 ? about().node : model.get("selected")) - 1, 0)),
    " ": () => (playing ? halt() : run()), Escape: () => select(-1),
    "+": () => zoomTo(zoom * 1.25), "=": () => zoomTo(zoom * 1.25), "-": () => zoomTo(zoom / 1.25), 0: () => zoomTo(Math.min(1, (stage.clientWidth - 2) / natural)),
  };
  stage.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in acts)) return;
    acts[event.key]();
    event.preventDefault();
    event.stopPropagation();
  });

  const details = addDetails(side, scene, select), lines = addLines(side, scene, select);
  function hearExact() {
    const all = model.get("_exact") ? floatsOf(model.get("_exact")) : null;
    exact = all && { point: all.slice(0, sliders.length), frame: all.slice(sliders.length) };
    later();
  }
  function hearStar() {
    star = readStar(model.get("_star"), size);
    for (const { input } of inputs) {
      input.disabled = !scene.live && !star;
      if (input.disabled) input.title = "this slider needs a kernel";
    }
    later();
  }
  for (const name of ["point", "step", "selected", "_problem", "_note"]) hear(name, later);
  hear("_exact", hearExact);
  hear("_star", hearStar);
  hearExact();
  hearStar();
  zoomTo(1);
  draw();
  return () => { cancelAnimationFrame(timer); clearTimeout(rest); resized.disconnect(); halt(); };
}

function widthOf(slot) {
  return slot.kind === "array" ? HEAD + slot.rows * slot.columns : { number: 1, bool: 1, complex: 2 }[slot.kind] || 0;
}

export default { render };
