// The same graph as a list, for keys and for screen readers.
function addOutline(graph) {
  graph.plant = function plant() {
    graph.tree.replaceChildren();
    const leaf = (key) => {
      const item = node("li", { role: "treeitem", tabindex: "-1", "aria-selected": String(key === graph.selected) }, graph.words(key));
      item.dataset.key = key;
      return item;
    };
    const inside = new Map();
    for (const [key, { group }] of graph.table.leaves) {
      if (group === null) graph.tree.appendChild(leaf(key));
      else inside.set(group, [...(inside.get(group) || []), key]);
    }
    for (const [key, box] of graph.table.groups) {
      const item = node("li", { role: "treeitem", tabindex: "-1", "aria-expanded": "false", "aria-selected": String(key === graph.selected) });
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
      graph.tree.appendChild(item);
    }
    if (graph.tree.firstChild) graph.tree.firstChild.tabIndex = 0;
  };
  graph.outline.addEventListener("toggle", () => { if (graph.outline.open && !graph.tree.children.length) graph.plant(); });
  graph.tree.addEventListener("click", (event) => {
    const item = event.target.closest("[role=treeitem]");
    if (!item) return;
    if (item.unfold) item.unfold(item.getAttribute("aria-expanded") !== "true");
    graph.focusItem(item);
  });
  graph.focusItem = function focusItem(item) {
    for (const other of graph.tree.querySelectorAll("[tabindex='0']")) other.tabIndex = -1;
    item.tabIndex = 0;
    item.focus({ preventScroll: false });
    graph.select(item.dataset.key, { center: false });
  };
  graph.tree.addEventListener("keydown", (event) => {
    const shown = [...graph.tree.querySelectorAll("[role=treeitem]")].filter((item) => !item.parentElement.hidden);
    const item = event.target.closest("[role=treeitem]"), at = shown.indexOf(item);
    const wanted = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: shown.length - 1 }[event.key];
    if (wanted !== undefined) { if (shown[wanted]) graph.focusItem(shown[wanted]); }
    else if ((event.key === "ArrowRight" || event.key === "ArrowLeft") && item && item.unfold) item.unfold(event.key === "ArrowRight");
    else if (event.key === "Enter" && item) graph.select(item.dataset.key, { reveal: true, center: true });
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
}
