// Keys on the picture, and the search.
function addKeys(graph) {
  graph.nextOf = function nextOf(key) {
    const from = graph.selected === null ? null : graph.visible(graph.selected);
    const spot = from && graph.spots.get(from);
    if (!spot) {
      const used = graph.layout.boxes.filter((other) => graph.table.feeds.has(other.key) || other.box.g);
      const first = used.length ? used : graph.layout.boxes;
      return first.length ? first.reduce((a, b) => (b.y < a.y || (b.y === a.y && b.x < a.x) ? b : a)).key : null;
    }
    if (key === "ArrowLeft" || key === "ArrowRight") {
      const sign = key === "ArrowLeft" ? -1 : 1;
      const beside = graph.layout.boxes.filter((other) => Math.abs(other.y - spot.y) < 30 && (other.x - spot.x) * sign > 1);
      return beside.length ? beside.reduce((a, b) => (Math.abs(b.x - spot.x) < Math.abs(a.x - spot.x) ? b : a)).key : null;
    }
    const near = key === "ArrowDown" ? graph.table.feeds : graph.table.fed;
    const members = graph.table.groups.has(from) ? [from, ...[...graph.table.leaves.keys()].filter((other) => graph.inside(other, from))] : [from];
    const next = members.flatMap((member) => near.get(member) || []).map(graph.visible).filter((k) => k && k !== from && !graph.inside(k, from));
    return next.length ? next[0] : null;
  };
  graph.stage.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key;
    if (key.startsWith("Arrow")) { const next = graph.nextOf(key); if (next) graph.select(next); else graph.say("no further node that way"); }
    else if (key === "Enter" || key === " ") {
      const leaf = graph.table.leaves.get(graph.selected);
      if (graph.table.groups.has(graph.selected)) graph.flip(graph.selected);
      else if (leaf && leaf.group) graph.flip(leaf.group);
    } else if (key === "[" || key === "]") {
      if (graph.steps().length > 1) graph.stepTo(graph.stepNow() + (key === "]" ? 1 : -1));
      else graph.say("no rewriting led to this view");
    } else if (/^[1-9]$/.test(key)) {
      if (graph.scene.views[key - 1]) graph.show(graph.scene.views[key - 1].name);
    } else if (key === "/") graph.search.focus();
    else if (key === "+" || key === "=") graph.zoomBy(1.3);
    else if (key === "-") graph.zoomBy(1 / 1.3);
    else if (key === "0") graph.fit(true);
    else if (key === "Escape") graph.select(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  let hits = [], hit = -1, elsewhere = [];
  // what was found stays bright, and the groups around it; what nobody has opened yet is known by its name alone
  graph.seek = function seek() {
    const wanted = graph.search.value.trim().toLowerCase();
    const here = wanted ? [...graph.table.leaves.keys()].filter((key) => graph.words(key).toLowerCase().includes(wanted)) : [];
    hits = [...new Set([...here, ...elsewhere])];
    hit = -1;
    graph.found = wanted ? new Set(here.flatMap((key) => [key, graph.visible(key)])) : null;
    graph.highlight();
    graph.say(wanted ? `${hits.length} found${hits.length ? ", Enter goes to the next" : ""}` : "");
    return wanted;
  };
  graph.search.addEventListener("input", () => {
    elsewhere = [];
    const wanted = graph.seek(), apart = () => [...graph.table.groups.values()].some(graph.isUnread);
    if (!wanted || !graph.model.send || !apart()) return;
    // groups that were never opened are looked through by Python, once somebody stops to type
    setTimeout(() => {
      const meant = () => graph.search.value.trim().toLowerCase() === wanted;
      if (meant()) graph.ask(["search", graph.viewNumber(), wanted], (keys) => {
        if (!meant() || hit >= 0) return;
        elsewhere = keys;
        graph.seek();
      });
    }, 200);
  });
  graph.search.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && hits.length) {
      hit = (hit + (event.shiftKey ? hits.length - 1 : 1)) % hits.length;
      graph.reach(hits[hit], () => {
        graph.select(hits[hit], { reveal: true, center: true });
        graph.say(`${hit + 1} of ${hits.length}: ${graph.words(hits[hit])}`);
      });
    } else if (event.key === "Escape") {
      graph.search.value = "";
      graph.search.dispatchEvent(new Event("input"));
      graph.stage.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
}
