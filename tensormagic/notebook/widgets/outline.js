// The same graph as a list of lists, for keys and for screen readers.
function addOutline(graph) {
  const unfolded = new Set();
  graph.plant = function plant() {
    const focused = graph.tree.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    const inside = new Map();
    for (const [key, group] of graph.table.around) inside.set(group, [...(inside.get(group) || []), key]);
    const grow = (key) => {
      const item = node("li", { role: "treeitem", tabindex: "-1", "aria-selected": String(key === graph.selected) });
      const box = graph.table.groups.get(key);
      item.dataset.key = key;
      item.appendChild(node("span", {}, box && box.v === undefined ? box.g.title : graph.words(key)));
      if (!box) return item;
      const list = node("ul", { role: "group" });
      item.appendChild(list);
      item.unfold = (open) => {
        if (open) unfolded.add(key); else unfolded.delete(key);
        if (open && !box.g.picture) { graph.flip(key); return; } // what it holds comes, and the list is made anew
        item.setAttribute("aria-expanded", String(open));
        list.hidden = !open;
        if (open && !list.children.length) list.append(...(inside.get(key) || []).map(grow));
      };
      if (unfolded.has(key) && box.g.picture) item.unfold(true);
      else { item.setAttribute("aria-expanded", "false"); list.hidden = true; }
      return item;
    };
    // vertices before groups, as they are read
    const top = inside.get(null) || [];
    graph.tree.replaceChildren(...top.filter((key) => !graph.table.groups.has(key)).map(grow), ...top.filter((key) => graph.table.groups.has(key)).map(grow));
    if (graph.tree.firstChild) graph.tree.firstChild.tabIndex = 0;
    const again = focused && [...graph.tree.querySelectorAll("[role=treeitem]")].find((item) => item.dataset.key === focused);
    if (again) graph.focusItem(again);
  };
  graph.outline.addEventListener("toggle", () => { if (graph.outline.open && !graph.tree.children.length && graph.table) graph.plant(); });
  graph.tree.addEventListener("click", (event) => {
    const item = event.target.closest("[role=treeitem]");
    if (!item) return;
    graph.focusItem(item);
    if (item.unfold) item.unfold(item.getAttribute("aria-expanded") !== "true");
  });
  graph.focusItem = function focusItem(item) {
    for (const other of graph.tree.querySelectorAll("[tabindex='0']")) other.tabIndex = -1;
    item.tabIndex = 0;
    item.focus({ preventScroll: false });
    graph.select(item.dataset.key, { center: false });
  };
  graph.tree.addEventListener("keydown", (event) => {
    const shown = [...graph.tree.querySelectorAll("[role=treeitem]")].filter((item) => !item.parentElement.closest("[hidden]"));
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
