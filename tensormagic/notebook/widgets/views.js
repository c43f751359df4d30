// The views before and after, and the lines of the cell beside them.
function addViews(graph) {
  graph.show = function show(name) {
    graph.view = graph.scene.views.find((each) => each.name === name) || graph.scene.views[0];
    if (!graph.view) { graph.say("This graph is empty."); return; }
    const first = !graph.table;
    graph.table = index(graph.view);
    graph.open = new Set([...graph.table.groups].filter(([, box]) => box.g.open).map(([key]) => key));
    graph.scene.views.forEach((each, k) => graph.viewButtons[k].setAttribute("aria-pressed", String(each === graph.view)));
    graph.draw();
    if (first) graph.stage.style.height = `${Math.min(520, Math.max(180, graph.layout.height + 48))}px`;
    graph.fit(false);
    if (graph.selected !== null && !graph.table.leaves.has(graph.selected) && !graph.table.groups.has(graph.selected)) graph.selected = null;
    if (!first) graph.sync("view", graph.view.name);
    graph.panel();
    graph.highlight();
    graph.lines();
    if (graph.outline.open) graph.plant();
    if (!first) graph.say(`${graph.view.name}: ${graph.view.ops} ops${graph.view.kernels ? `, ${graph.view.kernels} kernels` : ""}`);
  };

  graph.lines = function lines() {
    graph.source.replaceChildren();
    const used = new Set([...graph.table.leaves.keys()].map((key) => graph.vertexOf(key).line));
    graph.scene.source.forEach((text, k) => {
      const item = node("li");
      if (used.has(k + 1)) {
        const made = button(text || " ", "", () => {
          graph.marked = graph.marked === k + 1 ? null : k + 1;
          graph.selected = null;
          graph.highlight();
          const first = [...graph.table.leaves.keys()].find((key) => graph.vertexOf(key).line === k + 1);
          if (graph.marked !== null && first) graph.bring(first, false);
          graph.say(`line ${k + 1}: ${[...graph.table.leaves.keys()].filter((key) => graph.vertexOf(key).line === k + 1).length} nodes`);
        });
        item.appendChild(made);
      } else item.appendChild(node("span", {}, text || " "));
      graph.source.appendChild(item);
    });
    graph.panel();
  };
}
