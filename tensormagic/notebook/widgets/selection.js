// What is selected, what is told of it, and groups that open and close.
function addSelection(graph) {
  // the box or frame that stands for a node: itself, or the closed group that it is in
  graph.visible = (key) => {
    while (key && !graph.spots.has(key)) key = graph.table.around.get(key) || null;
    return key || null;
  };
  // what is in a group that was never opened is not known here: the way to it is asked for
  graph.reach = function reach(key, then) {
    if (graph.table.around.has(key)) { then(); return; }
    graph.ask(["way", graph.viewNumber(), graph.layoutName(), key], (way) => {
      const next = () => {
        const group = way.shift();
        if (group === undefined) { if (graph.table.around.has(key)) then(); return; }
        if (graph.open.has(group)) next(); else graph.flip(group, next);
      };
      next();
    });
  };
  graph.select = function select(key, { reveal = false, center = false } = {}) {
    if (reveal && key !== null && !graph.table.around.has(key)) { graph.reach(key, () => graph.select(key, { reveal, center })); return; }
    if (key !== null && !graph.table.around.has(key)) key = null;
    if (reveal && key !== null) {
      const closed = [];
      for (let group = graph.table.around.get(key); group; group = graph.table.around.get(group)) if (!graph.open.has(group)) closed.unshift(group);
      closed.forEach((group) => graph.flip(group));
    }
    graph.selected = key;
    graph.marked = null;
    graph.sync("selected", key || "");
    graph.highlight();
    graph.panel();
    if (key !== null) {
      graph.say(graph.words(key), true);
      graph.bring(key, center);
    }
    for (const item of graph.tree.querySelectorAll("[role=treeitem]")) item.setAttribute("aria-selected", String(item.dataset.key === key));
  };

  graph.panel = function panel() {
    graph.card.replaceChildren();
    const vertex = graph.selected === null ? null : graph.vertexOf(graph.selected);
    const group = graph.selected === null ? null : graph.table.groups.get(graph.selected);
    if (vertex) {
      graph.card.appendChild(node("p", { class: "tm-title" }, graph.title(vertex)));
      const list = node("dl");
      const rows = [["what it is", vertex.meaning], ["type", vertex.type], ["sizes", vertex.symbolic === vertex.type || (vertex.name && vertex.symbolic.includes(`len(${vertex.name})`)) ? "" : vertex.symbolic], ["kind", graph.scene.kinds[vertex.kind] || vertex.kind],
        ["role", vertex.role], ["source", graph.written(vertex)], ["function", vertex.function],
        ["kernel", vertex.kernel === undefined ? "" : String(vertex.kernel)], ["runs in", vertex.yellow ? "NumPy" : ""],
        ...graph.measures(vertex)];
      for (const [name, value] of rows) if (value) list.append(node("dt", {}, name), arrowed("dd", value));
      const history = graph.history(graph.selected);
      const rules = history.length ? history.map(([step, rule, level, where]) => `${step}. ${rule} (${[level, where].filter(Boolean).join(", ")})`) : vertex.rules || [];
      if (rules.length) {
        const told = node("dd");
        rules.forEach((rule) => told.appendChild(arrowed("div", rule)));
        list.append(node("dt", {}, "rules"), told);
      }
      graph.card.append(list, ...graph.pictures(vertex));
    }
    if (group) {
      if (!vertex) graph.card.appendChild(node("p", { class: "tm-title" }, graph.heading(group.k)));
      graph.card.appendChild(button(graph.open.has(group.k) ? "close group" : "open group", "", () => graph.flip(group.k)));
    } else if (!vertex) graph.card.appendChild(node("p", { class: "tm-hint" }, ["Click a node for its type, its source line, its values and the rules that made it.", ...signsOf(graph.scene.legend, graph.layout || undefined)].join(" ")));
    if (graph.details && graph.details.note) graph.card.appendChild(node("p", { class: "tm-hint" }, graph.details.note));
    graph.turned(graph.told(vertex));
    graph.markLine(vertex ? vertex.line : undefined, "on");
  };

  graph.markLine = function markLine(line, style) {
    [...graph.source.children].forEach((item, k) => {
      const here = k + 1 === line;
      item.classList.toggle(style, here);
      if (style !== "on") return;
      if (here) { item.setAttribute("aria-current", "true"); graph.source.scrollTop = Math.max(0, item.offsetTop - graph.source.offsetTop - 40); }
      else item.removeAttribute("aria-current");
    });
  };

  // what a closed group holds may have to be asked for
  graph.flip = function flip(key, then = () => {}) {
    const box = graph.table.groups.get(key);
    if (!box) return;
    if (graph.isUnread(box)) {
      const { picture } = graph;
      graph.ask(["group", graph.viewNumber(), graph.layoutName(), key], (opened) => {
        Object.assign(box.g, opened);
        if (graph.picture !== picture) return; // another view is shown by now
        graph.table = index(picture);
        graph.lines();
        graph.flip(key, then);
      });
      return;
    }
    if (!box.g.picture) return;
    const before = graph.spots.get(key);
    if (graph.open.has(key)) graph.open.delete(key); else graph.open.add(key);
    graph.draw();
    if (graph.selected !== null && graph.visible(graph.selected) !== graph.selected) {
      graph.selected = key;
      graph.sync("selected", key);
      graph.highlight();
    }
    const after = graph.spots.get(key);
    if (before && after) graph.move(graph.zoom.x + (before.x - after.x) * graph.zoom.k, graph.zoom.y + (before.y - before.h / 2 - after.y + after.h / 2) * graph.zoom.k);
    graph.panel();
    if (graph.outline.open) graph.plant();
    graph.say(`${graph.heading(key)}, ${graph.open.has(key) ? "open" : "closed"}`, true);
    then();
  };

  graph.flipAll = function flipAll() {
    if (graph.open.size) graph.open = new Set();
    else {
      const asked = [...graph.table.groups.values()].filter(graph.isUnread);
      const { picture } = graph;
      asked.forEach((box) => graph.ask(["group", graph.viewNumber(), graph.layoutName(), box.k], (opened) => {
        Object.assign(box.g, opened);
        if (graph.picture !== picture || asked.some((other) => !other.g.picture)) return;
        graph.table = index(picture);
        graph.lines();
        graph.flipAll();
      }));
      if (asked.length) return;
      graph.open = new Set([...graph.table.groups].filter(([, box]) => box.g.picture).map(([key]) => key));
    }
    graph.draw();
    graph.fit(false);
    graph.panel();
  };
}
