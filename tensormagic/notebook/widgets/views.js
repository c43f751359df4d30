// The views before and after, how nodes are grouped, and the lines of the cell beside them.
function addViews(graph) {
  let turn = 0;
  graph.viewNumber = () => graph.scene.views.indexOf(graph.view);
  graph.layoutName = () => (graph.step === null ? graph.grouping : `step ${graph.step}`);

  // a view, perhaps grouped otherwise than usual, or as it was after some steps of rewriting
  graph.show = function show(name, { grouping = graph.chosen, step = null, made = [], then = () => {} } = {}) {
    const view = graph.scene.views.find((each) => each.name === name) || graph.scene.views[0];
    if (!view) { graph.say("This graph is empty."); return; }
    const usual = view.groupings[0], wanted = view.groupings.includes(grouping) ? grouping : usual;
    const mine = ++turn;
    const present = (picture) => {
      if (mine !== turn) return;
      Object.assign(graph, { view, step, grouping: wanted, picture, made: new Set(made) });
      graph.present();
      then();
    };
    if (step === null && wanted === usual && view.picture) present(view.picture);
    else {
      if (!graph.view && view !== graph.scene.views[0]) { graph.show(graph.scene.views[0].name); turn = mine; }
      graph.ask(["picture", graph.scene.views.indexOf(view), step === null ? wanted : `step ${step}`], (picture) => {
        if (step === null && wanted === usual) view.picture = picture;
        present(picture);
      });
    }
  };

  // the stages after the first; the first one stays as it is, with what a reader has opened in it
  graph.completed = function completed({ views: [own, ...others], ...told }) {
    const [first] = graph.scene.views;
    Object.assign(graph.scene, told, { begun: false });
    Object.assign(first, own, { picture: first.picture });
    graph.scene.views.push(...others);
    graph.staged();
    if (graph.model.get("view") && graph.model.get("view") !== graph.view.name) graph.show(graph.model.get("view"));
  };

  graph.present = function present() {
    const first = !graph.table, kept = graph.open;
    graph.table = index(graph.picture);
    graph.open = new Set([...graph.table.groups].filter(([key, box]) => box.g.picture && (box.g.open || kept.has(key))).map(([key]) => key));
    graph.scene.views.forEach((each, k) => graph.viewButtons[k].setAttribute("aria-pressed", String(each === graph.view)));
    graph.groupings.replaceChildren(...graph.view.groupings.map((each) => node("option", { value: each }, ({ none: "groups: none", all: "every step" })[each] || `groups: by ${each}`)));
    graph.groupings.value = graph.grouping;
    graph.groupings.hidden = graph.view.groupings.length < 2 || graph.step !== null;
    if (graph.selected !== null && !graph.table.around.has(graph.selected)) graph.selected = null;
    const anchor = graph.selected === null || first ? null : graph.spots.get(graph.visible(graph.selected));
    graph.layout = arrange(graph.picture, graph.open, graph.head);
    if (graph.step === null) graph.stage.style.flexBasis = `${Math.max(380, graph.layout.width + 40)}px`;
    graph.frame(graph.step !== null); // steps make it higher and never lower: the slider stays where it is
    graph.draw();
    graph.turnTo(anchor, first);
    if (!first) graph.sync("view", graph.view.name);
    graph.panel();
    graph.lines();
    graph.stepped();
    if (graph.outline.open) graph.plant();
    if (!first && graph.search.value) graph.search.dispatchEvent(new Event("input")); // what was found is in the view before
    if (!first && graph.step === null && !graph.made.size) {
      graph.say(`${graph.view.stage}: ${graph.view.counted}; ${graph.view.told.replace(": ", "")}`, true);
    }
  };

  // what is selected stays where it was, if that is possible; otherwise the whole comes into sight
  graph.turnTo = function turnTo(anchor, first) {
    const now = anchor && graph.spots.get(graph.visible(graph.selected));
    if (now) graph.glide(graph.zoom.x + (anchor.x - now.x) * graph.zoom.k, graph.zoom.y + (anchor.y - now.y) * graph.zoom.k, graph.zoom.k);
    else graph.fit(false, first ? graph.move : graph.glide);
  };

  graph.lines = function lines() {
    const nodes = new Map();
    const note = (line, key) => { if (!nodes.has(line)) nodes.set(line, []); nodes.get(line).push(key); };
    for (const key of graph.table.leaves.keys()) {
      const { line } = graph.vertexOf(key);
      if (line !== undefined) note(line, key);
    }
    for (const [key, box] of graph.table.groups) if (!box.g.picture) (box.g.l || []).forEach((line) => note(line, key));
    graph.source.replaceChildren(...graph.scene.source.map((text, k) => {
      const item = node("li"), here = nodes.get(k + 1);
      item.appendChild(here ? button(text || " ", "", () => {
        graph.marked = graph.marked === k + 1 ? null : k + 1;
        graph.selected = null;
        graph.highlight();
        if (graph.marked !== null) graph.bring(here[0], false);
        graph.say(`line ${k + 1}: ${here.map((key) => (graph.table.leaves.has(key) ? graph.vertexOf(key).label : graph.table.groups.get(key).g.title)).join(", ")}`);
      }) : node("span", {}, text || " "));
      return item;
    }));
    graph.panel();
  };
}
