// What is selected, what is told of it, and groups that open and close.
function addSelection(graph) {
  graph.visible = (key) => {
    if (graph.elements.has(key) || graph.layout.frames.some((spot) => spot.key === key)) return key;
    const leaf = graph.table.leaves.get(key);
    return leaf ? leaf.group : null;
  };
  graph.select = function select(key, { reveal = false, center = false } = {}) {
    if (key !== null && !graph.table.leaves.has(key) && !graph.table.groups.has(key)) key = null;
    const leaf = graph.table.leaves.get(key);
    if (reveal && leaf && leaf.group && !graph.open.has(leaf.group)) graph.flip(leaf.group);
    graph.selected = key;
    graph.marked = null;
    graph.sync("selected", key || "");
    graph.highlight();
    graph.panel();
    if (key !== null) {
      graph.say(graph.words(key));
      graph.bring(key, center);
    }
    for (const item of graph.tree.querySelectorAll("[role=treeitem]")) item.setAttribute("aria-selected", String(item.dataset.key === key));
  };

  graph.panel = function panel() {
    graph.details.replaceChildren();
    const vertex = graph.selected === null ? null : graph.vertexOf(graph.selected);
    const group = graph.selected === null ? null : graph.table.groups.get(graph.selected);
    if (vertex) {
      graph.details.appendChild(node("h4", {}, vertex.label));
      const list = node("dl");
      const rows = [["type", vertex.type], ["sizes", vertex.symbolic === vertex.type ? "" : vertex.symbolic], ["kind", vertex.kind],
        ["role", vertex.role], ["source", graph.written(vertex)], ["rules", (vertex.rules || []).join(", ")],
        ["kernel", vertex.kernel === undefined ? "" : String(vertex.kernel)], ["runs in", vertex.yellow ? "NumPy" : ""],
        ["values", vertex.preview]];
      for (const [name, value] of rows) if (value) list.append(node("dt", {}, name), node("dd", {}, value));
      graph.details.appendChild(list);
    } else if (group) {
      graph.details.appendChild(node("h4", {}, group.g.title));
      if (group.g.picture) graph.details.appendChild(button(graph.open.has(group.k) ? "close group" : "open group", "", () => graph.flip(group.k)));
      else graph.details.appendChild(node("p", {}, "This graph is too large to be opened here."));
    } else {
      graph.details.appendChild(node("p", { class: "tm-hint" }, "Click a node for its type, its source line and the rules that made it."));
    }
    const line = vertex ? vertex.line : undefined;
    [...graph.source.children].forEach((item, k) => {
      const here = k + 1 === line;
      item.classList.toggle("on", here);
      if (here) { item.setAttribute("aria-current", "true"); graph.source.scrollTop = Math.max(0, item.offsetTop - graph.source.offsetTop - 40); }
      else item.removeAttribute("aria-current");
    });
  };

  graph.flip = function flip(key) {
    const box = graph.table.groups.get(key);
    if (!box || !box.g.picture) return;
    const before = graph.spotOf(key);
    if (graph.open.has(key)) graph.open.delete(key); else graph.open.add(key);
    graph.draw();
    if (graph.selected !== null && graph.visible(graph.selected) !== graph.selected) {
      graph.selected = key;
      graph.sync("selected", key);
      graph.highlight();
    }
    const after = graph.spotOf(key);
    if (before && after) graph.move(graph.zoom.x + (before.x - after.x) * graph.zoom.k, graph.zoom.y + (before.y - before.h / 2 - after.y + after.h / 2) * graph.zoom.k);
    graph.panel();
    graph.say(`${box.g.title}, ${graph.open.has(key) ? "open" : "closed"}`);
  };

  graph.spotOf = (key) => graph.layout.boxes.find((spot) => spot.key === key) || graph.layout.frames.find((spot) => spot.key === key);
}
