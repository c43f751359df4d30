// Draws a scene that Python laid out: places, outlines and lines of text come in the message, so nothing is measured here.
// One file, no build, no network. Text from the user is only ever set as textContent.
const NS = "http://www.w3.org/2000/svg";
const KEYED = ["button", "input", "summary"];
const HELP = "Arrow keys follow the links, Enter opens or closes a group, / searches, + and - zoom, 0 fits.";

function svgNode(tag, attributes = {}, parent) {
  const node = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (parent) parent.appendChild(node);
  return node;
}

function node(tag, attributes = {}, text) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  // JupyterLab listens before us, and leaves alone what carries this mark itself
  if (KEYED.includes(tag) || "tabindex" in attributes) made.setAttribute("data-lm-suppress-shortcuts", "true");
  return made;
}

function button(text, title, action) {
  const made = node("button", { type: "button", title }, text);
  if (title) made.setAttribute("aria-label", title);
  made.addEventListener("click", action);
  return made;
}

// ---- places -------------------------------------------------------------------------------------------------------

// The message holds the places of the first state. A group that was opened or closed since pushes the rest of its row
// aside by half the difference, and the rows below down.
function place(picture, open, head) {
  const isOpen = (box) => Boolean(box.g && box.g.picture && open.has(box.k));
  const wide = (box) => (isOpen(box) ? box.g.w : box.w);
  const tall = (box) => (isOpen(box) ? box.g.h : box.h);
  const heights = new Array(picture.gaps.length + 1).fill(0);
  const pushes = heights.map(() => []);
  for (const box of picture.boxes) {
    heights[box.r] = Math.max(heights[box.r], tall(box));
    const change = wide(box) - (box.g && box.g.open ? box.g.w : box.w);
    if (change) pushes[box.r].push([box.x, change / 2]);
  }
  const rows = [];
  let top = 0;
  heights.forEach((height, row) => {
    rows.push([top, top + height]);
    top += height + (picture.gaps[row] || 0);
  });
  const across = (row, x) => pushes[row].reduce((sum, [at, by]) => sum + Math.sign(Math.round(x - at)) * by, x);
  const placed = picture.boxes.map((box) => {
    const [above, below] = rows[box.r];
    return { box, key: box.k, x: across(box.r, box.x), y: (above + below) / 2, w: wide(box), h: tall(box),
      row: box.r, open: isOpen(box), closed: Boolean(box.g) && !isOpen(box), group: null };
  });
  const touch = (spot, offset) => (spot.closed && spot.box.g.picture ? (offset * 0.9 * spot.box.w) / spot.box.g.w : offset);
  const count = new Map();
  for (const [s, t] of picture.routes) count.set(`${s} ${t}`, (count.get(`${s} ${t}`) || 0) + 1);
  const edges = [];
  const seen = new Set();
  for (const [s, t, leaves, enters, bends, carries] of picture.routes) {
    const source = placed[s], target = placed[t], pair = `${s} ${t}`;
    const many = source.closed && target.closed && count.get(pair) > 1;
    if (many && seen.has(pair)) continue;
    seen.add(pair);
    const x = source.x + (many ? 0 : touch(source, leaves)), y = source.y + source.h / 2;
    const endX = target.x + (many ? 0 : touch(target, enters)), endY = target.y - target.h / 2 + (target.open ? head : 0);
    const arrow = target.open || target.box.s === undefined ? "" : "m-3.5 -5.5l3.5 5.5l3.5 -5.5";
    let d, kind = many ? "edge many" : "edge";
    if (target.row - source.row !== bends.length + 1) {
      const middle = (y + endY) / 2;
      d = `M${x} ${y}C${x} ${middle} ${endX} ${middle} ${endX} ${endY}`;
      kind = "edge far";
    } else {
      const way = [x, ...bends.map((bend, k) => across(source.row + k + 1, bend)), endX];
      d = `M${x} ${y}V${rows[source.row][1]}`;
      for (let k = 0; k + 1 < way.length; k++) {
        const row = source.row + k, middle = (rows[row][1] + rows[row + 1][0]) / 2;
        d += `C${way[k]} ${middle} ${way[k + 1]} ${middle} ${way[k + 1]} ${rows[row + 1][0]}`;
        d += `V${row + 1 < target.row ? rows[row + 1][1] : endY}`;
      }
    }
    const port = source.box.s === undefined && !source.box.g;
    edges.push({ d: d + arrow, kind, from: carries || (port ? source.key.slice(0, -1) : source.key), to: target.key });
  }
  const left = Math.min(0, ...placed.map((spot) => spot.x - spot.w / 2));
  const right = Math.max(0, ...placed.map((spot) => spot.x + spot.w / 2), ...picture.routes.flatMap((route) => route[4]));
  return { placed, edges, left, right, height: rows.length ? rows[rows.length - 1][1] : 0 };
}

// One flat list of boxes, frames of open groups and edges.
function arrange(view, open, head) {
  const outer = place(view.picture, open, head);
  const boxes = [], frames = [], edges = [...outer.edges];
  for (const spot of outer.placed) {
    if (!spot.open) {
      if (spot.box.s !== undefined) boxes.push(spot);
      continue;
    }
    frames.push(spot);
    const inner = place(spot.box.g.picture, open, head);
    const dx = spot.x - (inner.right + inner.left) / 2, dy = spot.y - spot.h / 2 + head;
    for (const member of inner.placed) {
      if (member.box.s !== undefined) boxes.push({ ...member, x: member.x + dx, y: member.y + dy, group: spot.key });
    }
    for (const edge of inner.edges) edges.push({ ...edge, dx, dy, group: spot.key });
  }
  return { boxes, frames, edges, left: outer.left, width: outer.right - outer.left, height: outer.height };
}

// What the view holds whatever is open: every leaf with its group, and who feeds whom.
function index(view) {
  const leaves = new Map(), groups = new Map(), feeds = new Map(), fed = new Map();
  const link = (source, target) => {
    for (const [table, one, other] of [[feeds, source, target], [fed, target, source]]) {
      if (!table.has(one)) table.set(one, []);
      if (!table.get(one).includes(other)) table.get(one).push(other);
    }
  };
  const walk = (picture, group) => {
    for (const box of picture.boxes) {
      if (box.g) {
        groups.set(box.k, box);
        if (box.g.picture) walk(box.g.picture, box.k);
      } else if (box.s !== undefined) leaves.set(box.k, { box, group });
    }
    for (const [s, t, , , , carries] of picture.routes) {
      const source = picture.boxes[s], target = picture.boxes[t];
      if (target.s === undefined || (target.g && target.g.picture)) continue;
      const port = source.s === undefined;
      link(carries && source.g.picture ? carries : port ? source.k.slice(0, -1) : source.k, target.k);
    }
  };
  walk(view.picture, null);
  return { leaves, groups, feeds, fed };
}

// ---- the widget ---------------------------------------------------------------------------------------------------

function render({ model, el }) {
  el.classList.add("tm-graph");
  const header = node("button", { type: "button", class: "tm-header" });
  const body = node("div", { class: "tm-body" });
  el.append(header, body);
  const stop = [];
  let close = null;

  const sync = (name, value) => {
    if (model.get(name) === value) return;
    model.set(name, value);
    model.save_changes();
  };
  const toggle = () => {
    const open = Boolean(model.get("expanded"));
    header.textContent = model.get("scene").summary || "graph";
    header.setAttribute("aria-expanded", String(open));
    body.hidden = !open;
    if (open && !close) close = build(body, model, sync);
    if (!open && close) { close(); close = null; body.replaceChildren(); }
  };
  const renew = () => {
    if (close) { close(); close = null; body.replaceChildren(); }
    toggle();
  };
  header.addEventListener("click", () => { sync("expanded", !model.get("expanded")); toggle(); });
  for (const [name, action] of [["change:expanded", toggle], ["change:scene", renew]]) {
    model.on(name, action);
    stop.push(() => model.off(name, action));
  }
  toggle();
  return () => { stop.forEach((end) => end()); if (close) close(); };
}

function build(body, model, sync) {
  const scene = model.get("scene");
  const head = scene.head;
  let view, table, layout, selected = null, marked = null;
  let open = new Set();
  const elements = new Map();
  const zoom = { k: 1, x: 0, y: 0 };

  // -- parts of the page
  const tools = node("div", { class: "tm-tools", role: "toolbar", "aria-label": "graph" });
  const names = node("div", { class: "tm-views", role: "group", "aria-label": "view" });
  const search = node("input", { type: "search", placeholder: "search  /", "aria-label": "search the graph" });
  const main = node("div", { class: "tm-main" });
  const stage = node("div", { class: "tm-stage", tabindex: "0", role: "application", "aria-label": `${scene.summary}. ${HELP}` });
  const svg = svgNode("svg", { class: "tm-picture", "aria-hidden": "true" }, stage);
  const world = svgNode("g", { class: "tm-world" }, svg);
  const layers = ["frames", "edges", "boxes", "headings"].map((name) => svgNode("g", { class: `tm-${name}` }, world));
  const [frameLayer, edgeLayer, boxLayer, headingLayer] = layers;
  const tip = node("div", { class: "tm-tip", role: "presentation" });
  const side = node("div", { class: "tm-side" });
  const details = node("div", { class: "tm-details" });
  const source = node("ol", { class: "tm-source", "aria-label": "the cell" });
  const outline = node("details", { class: "tm-outline" });
  const tree = node("ul", { role: "tree", "aria-label": "nodes of the graph" });
  const live = node("div", { class: "tm-live", role: "status", "aria-live": "polite" });
  outline.append(node("summary", {}, "Outline"), tree);
  side.append(details, source, outline);
  stage.appendChild(tip);
  main.append(stage, side);
  tip.hidden = true;

  const viewButtons = scene.views.map((each) => {
    const made = button(each.name, "", () => show(each.name));
    names.appendChild(made);
    return made;
  });
  const groupButton = button("open all", "open or close all groups", () => {
    open = open.size ? new Set() : new Set([...table.groups].filter(([, box]) => box.g.picture).map(([key]) => key));
    draw();
    fit(false);
  });
  tools.append(names, groupButton,
    button("\u2212", "zoom out", () => zoomBy(1 / 1.3)), button("+", "zoom in", () => zoomBy(1.3)),
    button("fit", "fit the graph into the view", () => fit(true)), search,
    button("SVG", "save as SVG", () => save("svg")), button("PNG", "save as PNG", () => save("png")));
  body.append(tools, main, live);

  // -- words
  const vertexOf = (key) => (table.leaves.has(key) ? scene.vertices[table.leaves.get(key).box.v] : null);
  const written = (vertex) => (vertex.line === undefined ? "" : `${vertex.cell || ""} line ${vertex.line}`.trim());
  function words(key) {
    const vertex = vertexOf(key);
    if (!vertex) return table.groups.has(key) ? `group ${table.groups.get(key).g.title}` : "";
    return [vertex.label, vertex.type, vertex.role, written(vertex),
      vertex.kernel === undefined ? "" : `kernel ${vertex.kernel}`, vertex.yellow ? "runs in NumPy" : ""].filter(Boolean).join(", ");
  }
  const say = (text) => { live.textContent = text; };

  // -- drawing
  function draw() {
    layout = arrange(view, open, head);
    const present = new Set();
    for (const spot of layout.boxes) {
      present.add(spot.key);
      let element = elements.get(spot.key);
      const face = `${spot.box.v} ${spot.box.s} ${spot.box.g ? spot.box.g.title : ""}`;
      if (!element) {
        element = svgNode("g", {}, boxLayer);
        element.dataset.key = spot.key;
        elements.set(spot.key, element);
      }
      if (element.dataset.face !== face) { paint(element, spot.box); element.dataset.face = face; }
      element.style.transform = `translate(${spot.x}px, ${spot.y}px)`;
    }
    for (const [key, element] of elements) {
      if (!present.has(key)) { element.remove(); elements.delete(key); }
    }
    frameLayer.replaceChildren();
    headingLayer.replaceChildren();
    for (const spot of layout.frames) {
      const x = spot.x - spot.w / 2, y = spot.y - spot.h / 2;
      const frame = svgNode("rect", { class: "frame tm-new", x, y, width: spot.w, height: spot.h, rx: 10 }, frameLayer);
      const heading = svgNode("text", { class: "heading tm-new", x: x + 10, y: y + 16 }, headingLayer);
      heading.textContent = `\u2212 ${spot.box.g.title}`;
      heading.dataset.group = frame.dataset.group = spot.key;
    }
    edgeLayer.replaceChildren();
    for (const edge of layout.edges) {
      const path = svgNode("path", { class: `${edge.kind} tm-new`, d: edge.d }, edgeLayer);
      if (edge.dx !== undefined) path.setAttribute("transform", `translate(${edge.dx} ${edge.dy})`);
    }
    groupButton.hidden = !table.groups.size;
    groupButton.textContent = open.size ? "close all" : "open all";
    highlight();
  }

  function paint(element, box) {
    const vertex = box.v === undefined ? null : scene.vertices[box.v];
    element.setAttribute("class", ["box tm-new", vertex ? vertex.kind : "group", vertex && vertex.yellow ? "yellow" : "",
      box.z ? "result" : ""].join(" "));
    element.replaceChildren();
    svgNode("path", { d: scene.shapes[box.s] }, element);
    for (const [text, style, y] of box.t || []) svgNode("text", { class: style, y }, element).textContent = text;
    if (box.m) {
      const sign = svgNode("g", { class: "mark", transform: `translate(${box.w / 2 - 9} ${-box.h / 2})` }, element);
      svgNode("circle", { r: 7.5 }, sign);
      svgNode("text", { y: 4 }, sign).textContent = box.m;
    }
  }

  function highlight() {
    const group = selected && table.leaves.has(selected) ? table.leaves.get(selected).group : null;
    const operands = new Set((selected && table.fed.get(selected)) || []);
    for (const [key, element] of elements) {
      const vertex = vertexOf(key);
      element.classList.toggle("on", key === selected || (marked !== null && Boolean(vertex) && vertex.line === marked));
    }
    for (const frame of frameLayer.children) frame.classList.toggle("on", frame.dataset.group === selected);
    [...edgeLayer.children].forEach((path, k) => {
      const { from, to } = layout.edges[k];
      const passes = operands.has(from) && (to === group || to === `${from}<`);
      path.classList.toggle("on", selected !== null && (from === selected || to === selected || passes));
    });
  }

  // -- selection
  const visible = (key) => {
    if (elements.has(key) || layout.frames.some((spot) => spot.key === key)) return key;
    const leaf = table.leaves.get(key);
    return leaf ? leaf.group : null;
  };
  function select(key, { reveal = false, center = false } = {}) {
    if (key !== null && !table.leaves.has(key) && !table.groups.has(key)) key = null;
    const leaf = table.leaves.get(key);
    if (reveal && leaf && leaf.group && !open.has(leaf.group)) flip(leaf.group);
    selected = key;
    marked = null;
    sync("selected", key || "");
    highlight();
    panel();
    if (key !== null) {
      say(words(key));
      bring(key, center);
    }
    for (const item of tree.querySelectorAll("[role=treeitem]")) item.setAttribute("aria-selected", String(item.dataset.key === key));
  }

  function panel() {
    details.replaceChildren();
    const vertex = selected === null ? null : vertexOf(selected);
    const group = selected === null ? null : table.groups.get(selected);
    if (vertex) {
      details.appendChild(node("h4", {}, vertex.label));
      const list = node("dl");
      const rows = [["type", vertex.type], ["sizes", vertex.symbolic === vertex.type ? "" : vertex.symbolic], ["kind", vertex.kind],
        ["role", vertex.role], ["source", written(vertex)], ["rules", (vertex.rules || []).join(", ")],
        ["kernel", vertex.kernel === undefined ? "" : String(vertex.kernel)], ["runs in", vertex.yellow ? "NumPy" : ""],
        ["values", vertex.preview]];
      for (const [name, value] of rows) if (value) list.append(node("dt", {}, name), node("dd", {}, value));
      details.appendChild(list);
    } else if (group) {
      details.appendChild(node("h4", {}, group.g.title));
      if (group.g.picture) details.appendChild(button(open.has(group.k) ? "close group" : "open group", "", () => flip(group.k)));
      else details.appendChild(node("p", {}, "This graph is too large to be opened here."));
    } else {
      details.appendChild(node("p", { class: "tm-hint" }, "Click a node for its type, its source line and the rules that made it."));
    }
    const line = vertex ? vertex.line : undefined;
    [...source.children].forEach((item, k) => {
      const here = k + 1 === line;
      item.classList.toggle("on", here);
      if (here) { item.setAttribute("aria-current", "true"); source.scrollTop = Math.max(0, item.offsetTop - source.offsetTop - 40); }
      else item.removeAttribute("aria-current");
    });
  }

  function flip(key) {
    const box = table.groups.get(key);
    if (!box || !box.g.picture) return;
    const before = spotOf(key);
    if (open.has(key)) open.delete(key); else open.add(key);
    draw();
    if (selected !== null && visible(selected) !== selected) {
      selected = key;
      sync("selected", key);
      highlight();
    }
    const after = spotOf(key);
    if (before && after) move(zoom.x + (before.x - after.x) * zoom.k, zoom.y + (before.y - before.h / 2 - after.y + after.h / 2) * zoom.k);
    panel();
    say(`${box.g.title}, ${open.has(key) ? "open" : "closed"}`);
  }

  const spotOf = (key) => layout.boxes.find((spot) => spot.key === key) || layout.frames.find((spot) => spot.key === key);

  // -- the view
  function move(x, y, k = zoom.k) {
    Object.assign(zoom, { x, y, k });
    world.setAttribute("transform", `translate(${x} ${y}) scale(${k})`);
  }
  function zoomBy(factor, cx = stage.clientWidth / 2, cy = stage.clientHeight / 2) {
    const k = Math.min(4, Math.max(0.04, zoom.k * factor));
    move(cx - ((cx - zoom.x) * k) / zoom.k, cy - ((cy - zoom.y) * k) / zoom.k, k);
  }
  function fit(whole) {
    const pad = 16, wide = stage.clientWidth || 600, tall = stage.clientHeight || 400;
    let k = Math.min(1, (wide - 2 * pad) / Math.max(layout.width, 1), (tall - 2 * pad) / Math.max(layout.height, 1));
    if (!whole) k = Math.max(k, 0.6); // readable first; the rest is a drag away
    const x = (wide - layout.width * k) / 2 - layout.left * k;
    const y = Math.max(pad, (tall - layout.height * k) / 2);
    move(x, whole ? y : Math.min(y, pad * 2), k);
  }
  function bring(key, center) {
    const spot = spotOf(visible(key));
    if (!spot) return;
    const x = spot.x * zoom.k + zoom.x, y = spot.y * zoom.k + zoom.y;
    const nudge = (at, half, size) => {
      const edge = Math.min(half * zoom.k + 40, size / 2);
      return center ? size / 2 - at : Math.max(0, edge - at) + Math.min(0, size - edge - at);
    };
    move(zoom.x + nudge(x, spot.w / 2, stage.clientWidth), zoom.y + nudge(y, spot.h / 2, stage.clientHeight));
  }
  function show(name) {
    view = scene.views.find((each) => each.name === name) || scene.views[0];
    if (!view) { say("This graph is empty."); return; }
    const first = !table;
    table = index(view);
    open = new Set([...table.groups].filter(([, box]) => box.g.open).map(([key]) => key));
    scene.views.forEach((each, k) => viewButtons[k].setAttribute("aria-pressed", String(each === view)));
    draw();
    if (first) stage.style.height = `${Math.min(520, Math.max(180, layout.height + 48))}px`;
    fit(false);
    if (selected !== null && !table.leaves.has(selected) && !table.groups.has(selected)) selected = null;
    if (!first) sync("view", view.name);
    panel();
    highlight();
    lines();
    if (outline.open) plant();
    if (!first) say(`${view.name}: ${view.ops} ops${view.kernels ? `, ${view.kernels} kernels` : ""}`);
  }

  function lines() {
    source.replaceChildren();
    const used = new Set([...table.leaves.keys()].map((key) => vertexOf(key).line));
    scene.source.forEach((text, k) => {
      const item = node("li");
      if (used.has(k + 1)) {
        const made = button(text || " ", "", () => {
          marked = marked === k + 1 ? null : k + 1;
          selected = null;
          highlight();
          const first = [...table.leaves.keys()].find((key) => vertexOf(key).line === k + 1);
          if (marked !== null && first) bring(first, false);
          say(`line ${k + 1}: ${[...table.leaves.keys()].filter((key) => vertexOf(key).line === k + 1).length} nodes`);
        });
        item.appendChild(made);
      } else item.appendChild(node("span", {}, text || " "));
      source.appendChild(item);
    });
    panel();
  }

  // -- the same graph as a list
  function plant() {
    tree.replaceChildren();
    const leaf = (key) => {
      const item = node("li", { role: "treeitem", tabindex: "-1", "aria-selected": String(key === selected) }, words(key));
      item.dataset.key = key;
      return item;
    };
    const inside = new Map();
    for (const [key, { group }] of table.leaves) {
      if (group === null) tree.appendChild(leaf(key));
      else inside.set(group, [...(inside.get(group) || []), key]);
    }
    for (const [key, box] of table.groups) {
      const item = node("li", { role: "treeitem", tabindex: "-1", "aria-expanded": "false", "aria-selected": String(key === selected) });
      item.dataset.key = key;
      item.appendChild(node("span", {}, box.g.title));
      const list = node("ul", { role: "group" });
      list.hidden = true;
      item.appendChild(list);
      item.unfold = (unfolded) => {
        item.setAttribute("aria-expanded", String(unfolded));
        list.hidden = !unfolded;
        if (unfolded && !list.children.length) list.append(...(inside.get(key) || []).map(leaf));
      };
      tree.appendChild(item);
    }
    if (tree.firstChild) tree.firstChild.tabIndex = 0;
  }
  outline.addEventListener("toggle", () => { if (outline.open && !tree.children.length) plant(); });
  tree.addEventListener("click", (event) => {
    const item = event.target.closest("[role=treeitem]");
    if (!item) return;
    if (item.unfold) item.unfold(item.getAttribute("aria-expanded") !== "true");
    focusItem(item);
  });
  function focusItem(item) {
    for (const other of tree.querySelectorAll("[tabindex='0']")) other.tabIndex = -1;
    item.tabIndex = 0;
    item.focus({ preventScroll: false });
    select(item.dataset.key, { center: false });
  }
  tree.addEventListener("keydown", (event) => {
    const shown = [...tree.querySelectorAll("[role=treeitem]")].filter((item) => !item.parentElement.hidden);
    const item = event.target.closest("[role=treeitem]"), at = shown.indexOf(item);
    const step = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: shown.length - 1 }[event.key];
    if (step !== undefined) { if (shown[step]) focusItem(shown[step]); }
    else if ((event.key === "ArrowRight" || event.key === "ArrowLeft") && item && item.unfold) item.unfold(event.key === "ArrowRight");
    else if (event.key === "Enter" && item) select(item.dataset.key, { reveal: true, center: true });
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  // -- keys
  function step(key) {
    const from = selected === null ? null : visible(selected);
    const spot = from && spotOf(from);
    if (!spot) {
      const used = layout.boxes.filter((other) => table.feeds.has(other.key) || other.box.g);
      const first = used.length ? used : layout.boxes;
      return first.length ? first.reduce((a, b) => (b.y < a.y || (b.y === a.y && b.x < a.x) ? b : a)).key : null;
    }
    if (key === "ArrowLeft" || key === "ArrowRight") {
      const sign = key === "ArrowLeft" ? -1 : 1;
      const beside = layout.boxes.filter((other) => Math.abs(other.y - spot.y) < 30 && (other.x - spot.x) * sign > 1);
      return beside.length ? beside.reduce((a, b) => (Math.abs(b.x - spot.x) < Math.abs(a.x - spot.x) ? b : a)).key : null;
    }
    const near = key === "ArrowDown" ? table.feeds : table.fed;
    const members = table.groups.has(from) ? [from, ...[...table.leaves].filter(([, leaf]) => leaf.group === from).map(([k]) => k)] : [from];
    const next = members.flatMap((member) => near.get(member) || []).map(visible).filter((k) => k && k !== from && elements.has(k));
    return next.length ? next[0] : null;
  }
  stage.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key;
    if (key.startsWith("Arrow")) { const next = step(key); if (next) select(next); else say("no further node that way"); }
    else if (key === "Enter" || key === " ") {
      const leaf = table.leaves.get(selected);
      if (table.groups.has(selected)) flip(selected);
      else if (leaf && leaf.group) flip(leaf.group);
    } else if (key === "/") search.focus();
    else if (key === "+" || key === "=") zoomBy(1.3);
    else if (key === "-") zoomBy(1 / 1.3);
    else if (key === "0") fit(true);
    else if (key === "Escape") select(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  let hits = [], hit = -1;
  search.addEventListener("input", () => {
    const wanted = search.value.trim().toLowerCase();
    hits = wanted ? [...table.leaves.keys()].filter((key) => words(key).toLowerCase().includes(wanted)) : [];
    hit = -1;
    for (const [key, element] of elements) {
      const within = hits.includes(key) || hits.some((found) => table.leaves.get(found).group === key);
      element.classList.toggle("tm-dim", Boolean(wanted) && !within);
    }
    say(wanted ? `${hits.length} found${hits.length ? ", Enter goes to the next" : ""}` : "");
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && hits.length) {
      hit = (hit + (event.shiftKey ? hits.length - 1 : 1)) % hits.length;
      select(hits[hit], { reveal: true, center: true });
      say(`${hit + 1} of ${hits.length}: ${words(hits[hit])}`);
    } else if (event.key === "Escape") {
      search.value = "";
      search.dispatchEvent(new Event("input"));
      stage.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });

  // -- pointer
  const pointers = new Map();
  let dragged = false;
  stage.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    dragged = false;
  });
  stage.addEventListener("pointermove", (event) => {
    const last = pointers.get(event.pointerId);
    if (!last) { hover(event); return; }
    const dx = event.clientX - last[0], dy = event.clientY - last[1];
    if (!dragged && Math.hypot(dx, dy) < 4) return;
    if (!dragged) { dragged = true; tip.hidden = true; stage.setPointerCapture(event.pointerId); }
    const frame = stage.getBoundingClientRect();
    if (pointers.size === 2) {
      const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
      const before = Math.hypot(last[0] - other[0], last[1] - other[1]), after = Math.hypot(event.clientX - other[0], event.clientY - other[1]);
      if (before > 0) zoomBy(after / before, (event.clientX + other[0]) / 2 - frame.left, (event.clientY + other[1]) / 2 - frame.top);
    } else move(zoom.x + dx, zoom.y + dy);
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
  });
  const lift = (event) => pointers.delete(event.pointerId);
  stage.addEventListener("pointerup", lift);
  stage.addEventListener("pointercancel", lift);
  stage.addEventListener("pointerleave", () => { tip.hidden = true; });
  stage.addEventListener("click", (event) => {
    if (dragged) { dragged = false; return; }
    const heading = event.target.closest("[data-group]");
    const box = event.target.closest("[data-key]");
    if (box) {
      if (table.groups.has(box.dataset.key) && selected === box.dataset.key) flip(box.dataset.key);
      else select(box.dataset.key);
    } else if (heading && heading.tagName === "text") flip(heading.dataset.group);
    else select(heading ? heading.dataset.group : null);
  });
  stage.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return; // a plain wheel scrolls the page
    event.preventDefault();
    const frame = stage.getBoundingClientRect();
    zoomBy(Math.exp(-event.deltaY * 0.004), event.clientX - frame.left, event.clientY - frame.top);
  }, { passive: false });

  function hover(event) {
    const box = event.target.closest("[data-key]");
    tip.hidden = !box;
    if (!box) return;
    const vertex = vertexOf(box.dataset.key), group = table.groups.get(box.dataset.key);
    const told = vertex
      ? [vertex.label, vertex.type, vertex.symbolic === vertex.type ? "" : vertex.symbolic, vertex.role, written(vertex), vertex.preview]
      : [group.g.title, group.g.picture ? "click twice to open" : ""];
    tip.replaceChildren(...told.filter(Boolean).map((text, k) => node(k ? "div" : "strong", {}, text)));
    const frame = stage.getBoundingClientRect();
    tip.style.left = `${Math.max(0, Math.min(event.clientX - frame.left + 14, stage.clientWidth - tip.offsetWidth - 4))}px`;
    const below = event.clientY - frame.top + 18;
    tip.style.top = `${below + tip.offsetHeight > stage.clientHeight ? Math.max(0, below - tip.offsetHeight - 30) : below}px`;
  }

  // -- files
  function file() {
    const pad = 16, wide = Math.ceil(layout.width + 2 * pad), tall = Math.ceil(layout.height + 2 * pad);
    const root = svgNode("svg", { xmlns: NS, width: wide, height: tall, viewBox: `0 0 ${wide} ${tall}`, role: "img" });
    svgNode("title", {}, root).textContent = `${scene.title} ${view.name}`;
    svgNode("style", {}, root).textContent = scene.style;
    svgNode("rect", { class: "ground", width: wide, height: tall, fill: "#ffffff" }, root);
    const copy = world.cloneNode(true);
    copy.setAttribute("transform", `translate(${pad - layout.left} ${pad})`);
    for (const each of copy.querySelectorAll("*")) {
      each.classList.remove("on", "tm-new", "tm-dim");
      if (each.style.transform) each.setAttribute("transform", each.style.transform.replaceAll("px", ""));
      each.removeAttribute("style");
      for (const name of Object.keys(each.dataset)) delete each.dataset[name];
    }
    root.appendChild(copy);
    return { text: new XMLSerializer().serializeToString(root), wide, tall };
  }
  function download(blob, ending) {
    const link = node("a", { download: `${(scene.title || "graph").replace(/[^\w-]+/g, "_").slice(0, 60)}_${view.name.replace(/[^\w-]+/g, "_")}.${ending}` });
    link.href = URL.createObjectURL(blob);
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    say(`saved ${link.download}`);
  }
  function save(ending) {
    const { text, wide, tall } = file();
    if (ending === "svg") { download(new Blob([text], { type: "image/svg+xml" }), "svg"); return; }
    const image = new Image();
    const scale = Math.min(2, 16000 / Math.max(wide, tall));
    image.onload = () => {
      const canvas = node("canvas", { width: Math.round(wide * scale), height: Math.round(tall * scale) });
      const pen = canvas.getContext("2d");
      pen.scale(scale, scale);
      pen.drawImage(image, 0, 0, wide, tall);
      canvas.toBlob((blob) => (blob ? download(blob, "png") : say("The picture is too large for PNG: save it as SVG.")), "image/png");
    };
    image.onerror = () => say("This browser cannot turn the picture into PNG: save it as SVG.");
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  }

  // -- start, and what Python changes
  show(model.get("view"));
  if (model.get("selected")) select(model.get("selected"), { reveal: true });
  const onView = () => { if (view && model.get("view") !== view.name) show(model.get("view")); };
  const onSelected = () => { if ((model.get("selected") || null) !== selected) select(model.get("selected") || null, { reveal: true }); };
  model.on("change:view", onView);
  model.on("change:selected", onSelected);
  let width = stage.clientWidth;
  const watch = new ResizeObserver(() => {
    if (!width && stage.clientWidth) fit(false); // it was drawn while hidden
    width = stage.clientWidth;
  });
  watch.observe(stage);
  return () => {
    watch.disconnect();
    model.off("change:view", onView);
    model.off("change:selected", onSelected);
  };
}

export default { render };
