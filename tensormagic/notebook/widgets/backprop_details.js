// The side of the view: the numbers of one node in full, and the lines of code that nodes come from.

function heatMap(slot, frame, name) {
  const cells = cellsOf(slot, frame), at = slot.at;
  const most = Math.max(...cells.filter(Number.isFinite).map(Math.abs), 0) || 1;
  const part = node("div"), table = node("table", { class: "tm-heat" });
  const caption = node("p", {}, `${name} ${slot.shape}: ${frame[at + 1] === frame[at + 2] ? `all ${numberText(frame[at + 1])}` : `norm ${numberText(frame[at])}, from ${numberText(frame[at + 1])} to ${numberText(frame[at + 2])}`}${frame[at + 3] ? `, ${frame[at + 3]} not finite` : ""}${slot.whole ? "" : "; some of its elements"}`);
  const body = node("tbody");
  const told = slot.columns <= 4;
  for (let row = 0; row < slot.rows; row++) {
    const line = node("tr");
    for (let column = 0; column < slot.columns; column++) {
      const x = cells[row * slot.columns + column];
      const cell = node("td", { title: numberText(x), class: x < 0 ? "tm-below" : "tm-above" }, told ? numberText(x, 3) : Number.isFinite(x) ? (x < 0 ? MINUS : x > 0 ? "+" : "0") : "!");
      cell.style.setProperty("--share", `${Number.isFinite(x) ? Math.round(100 * Math.abs(x) / most) : 0}%`);
      line.append(cell);
    }
    body.append(line);
  }
  table.append(body);
  table.setAttribute("role", "img");
  table.setAttribute("aria-label", caption.textContent);
  part.append(caption, table);
  return part;
}

function described(name, slot, frame) {
  const part = node("div", { class: "tm-part" });
  if (slot.kind === "array" && slot.rows * slot.columns) part.append(heatMap(slot, frame, name));
  else part.append(node("span", { class: "tm-soft" }, `${name} `), node("strong", {}, slotText(slot, frame)));
  return part;
}

// what is known of one node at this step
function addDetails(side, scene, select) {
  const title = node("div", { class: "tm-heading" }), place = node("p", { class: "tm-soft" }), body = node("div");
  const panel = node("div", { class: "tm-details" });
  panel.append(title, place, body);
  side.append(panel);

  function use(k, frame, now) {
    const one = scene.uses[k], target = scene.nodes[one.target], item = node("li", now ? { class: "tm-now" } : {});
    const adjoint = target.adjoint ? slotText(target.adjoint, frame) : "";
    const where = target.line === null ? "" : ` (${scene.lines[target.line][0]})`;
    const press = button(`${target.heading}${where}`, `choose ${target.heading}${where}`, () => select(one.target));
    item.append(node("span", { class: "tm-soft" }, "through "), press, node("span", {}, ": "));
    const words = productText(one, adjoint, frame);
    item.append(node("span", { class: "tm-numbers" }, words));
    if (one.formula && one.kind !== "matrix" && !one.inWords) item.append(node("code", {}, one.formula));
    if (one.local && one.local.kind === "array" && !one.local.few) item.append(heatMap(one.local, frame, "local derivative"));
    return item;
  }

  return function show(k, frame, state) {
    const one = scene.nodes[k], line = one.line === null ? null : scene.lines[one.line];
    title.textContent = one.heading;
    place.textContent = [one.type, line ? line[0] : "input"].join(", ");
    body.replaceChildren();
    if (!state.hasValue(k)) { body.append(node("p", {}, "not computed yet at this step")); return; }
    body.append(described("value", one.value, frame));
    const without = scene.uses.filter((other) => other.source === k && other.why).map((other) => other.why);
    for (const why of new Set(without)) body.append(node("p", {}, why));
    if (!one.adjoint) { body.append(node("p", {}, "no derivative flows here")); return; }
    const came = state.arrived(k);
    if (state.hasAdjoint(k)) body.append(described("adjoint", one.adjoint, frame));
    else body.append(node("p", {}, came.length ? `adjoint so far: from ${came.length} of ${one.uses.length} arrows` : "no adjoint yet at this step"));
    if (came.length) {
      const list = node("ul");
      came.forEach((other) => list.append(use(other, frame, other === state.use)));
      body.append(list);
    }
  };
}

// the lines that nodes come from: each marks its nodes, and is marked with them
function addLines(side, scene, select) {
  const list = node("ol", { class: "tm-source", "aria-label": "lines of code" });
  scene.lines.forEach(([place, text], number) => {
    const item = node("li"), press = button("", `${place}: ${text}`, () => {
      const found = scene.nodes.map((one, k) => (one.line === number ? k : -1)).filter((k) => k >= 0);
      if (found.length) select(found[found.length - 1]);
    });
    press.append(node("span", { class: "tm-soft" }, `${place} `), node("code", {}, text));
    item.append(press);
    list.append(item);
  });
  side.append(list);
  return (number) => [...list.children].forEach((item, k) => {
    item.classList.toggle("on", k === number);
    if (k === number) item.setAttribute("aria-current", "true"); else item.removeAttribute("aria-current");
  });
}
