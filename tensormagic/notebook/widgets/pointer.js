// Dragging, pinching, clicking, and what is told under the pointer.
function addPointer(graph) {
  const pointers = new Map();
  let dragged = false;
  graph.stage.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    dragged = false;
  });
  graph.stage.addEventListener("pointermove", (event) => {
    const last = pointers.get(event.pointerId);
    if (!last) { graph.hover(event); return; }
    const dx = event.clientX - last[0], dy = event.clientY - last[1];
    if (!dragged && Math.hypot(dx, dy) < 4) return;
    if (!dragged) { dragged = true; graph.tip.hidden = true; graph.stage.setPointerCapture(event.pointerId); }
    const frame = graph.stage.getBoundingClientRect();
    if (pointers.size === 2) {
      const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
      const before = Math.hypot(last[0] - other[0], last[1] - other[1]), after = Math.hypot(event.clientX - other[0], event.clientY - other[1]);
      if (before > 0) graph.zoomBy(after / before, (event.clientX + other[0]) / 2 - frame.left, (event.clientY + other[1]) / 2 - frame.top);
      graph.move(graph.zoom.x + dx / 2, graph.zoom.y + dy / 2); // two fingers move it, too: one finger scrolls the page up and down
    } else graph.move(graph.zoom.x + dx, graph.zoom.y + dy);
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
  });
  const lift = (event) => pointers.delete(event.pointerId);
  graph.stage.addEventListener("pointerup", lift);
  graph.stage.addEventListener("pointercancel", lift);
  graph.stage.addEventListener("pointerleave", () => { graph.tip.hidden = true; graph.markLine(undefined, "at"); });
  graph.stage.addEventListener("click", (event) => {
    if (dragged) { dragged = false; return; }
    const hit = graph.at(event);
    const closed = hit && graph.table.groups.has(hit.key) && !graph.open.has(hit.key);
    if (hit && (hit.heading || (closed && graph.selected === hit.key))) graph.flip(hit.key);
    else graph.select(hit ? hit.key : null);
  });
  graph.stage.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return; // a plain wheel scrolls the page
    event.preventDefault();
    const frame = graph.stage.getBoundingClientRect();
    graph.zoomBy(Math.exp(-event.deltaY * 0.004), event.clientX - frame.left, event.clientY - frame.top);
  }, { passive: false });

  graph.hover = function hover(event) {
    const hit = graph.at(event), box = hit && !graph.open.has(hit.key) ? hit.key : null;
    const vertex = box && graph.vertexOf(box), group = box && graph.table.groups.get(box);
    graph.tip.hidden = !box;
    graph.canvas.style.cursor = hit ? "pointer" : "";
    graph.markLine(vertex ? vertex.line : undefined, "at");
    if (!box) return;
    if (graph.tip.dataset.key !== box) {
      graph.tip.dataset.key = box;
      const measured = vertex ? graph.measures(vertex).filter(([, value]) => value && value !== "none").map(([name, value]) => `${name}: ${value}`) : [];
      const told = vertex
        ? [graph.title(vertex), vertex.meaning, vertex.type, vertex.symbolic === vertex.type ? "" : vertex.symbolic, vertex.role, graph.written(vertex), ...measured]
        : [group.g.title];
      if (group) told.push("click twice to open");
      graph.tip.replaceChildren(...told.filter(Boolean).map((text, k) => node(k ? "div" : "strong", {}, text)));
      const bars = vertex && graph.told(vertex).bars ? barsOf(graph.told(vertex)) : [];
      graph.tip.append(...bars);
    }
    const frame = graph.stage.getBoundingClientRect();
    graph.tip.style.left = `${Math.max(0, Math.min(event.clientX - frame.left + 14, graph.stage.clientWidth - graph.tip.offsetWidth - 4))}px`;
    const below = event.clientY - frame.top + 18;
    graph.tip.style.top = `${below + graph.tip.offsetHeight > graph.stage.clientHeight ? Math.max(0, below - graph.tip.offsetHeight - 30) : below}px`;
  };
}
