// Keys on the picture, and the search.
function addKeys(graph) {
  graph.step = function step(key) {
    const from = graph.selected === null ? null : graph.visible(graph.selected);
    const spot = from && graph.spotOf(from);
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
    const members = graph.table.groups.has(from) ? [from, ...[...graph.table.leaves].filter(([, leaf]) => leaf.group === from).map(([k]) => k)] : [from];
    const next = members.flatMap((member) => near.get(member) || []).map(graph.visible).filter((k) => k && k !== from && graph.elements.has(k));
    return next.length ? next[0] : null;
  };
  graph.stage.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key;
    if (key.startsWith("Arrow")) { const next = graph.step(key); if (next) graph.select(next); else graph.say("no further node that way"); }
    else if (key === "Enter" || key === " ") {
      const leaf = graph.table.leaves.get(graph.selected);
      if (graph.table.groups.has(graph.selected)) graph.flip(graph.selected);
      else if (leaf && leaf.group) graph.flip(leaf.group);
    } else if (key === "/") graph.search.focus();
    else if (key === "+" || key === "=") graph.zoomBy(1.3);
    else if (key === "-") graph.zoomBy(1 / 1.3);
    else if (key === "0") graph.fit(true);
    else if (key === "Escape") graph.select(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  let hits = [], hit = -1;
  graph.search.addEventListener("input", () => {
    const wanted = graph.search.value.trim().toLowerCase();
    hits = wanted ? [...graph.table.leaves.keys()].filter((key) => graph.words(key).toLowerCase().includes(wanted)) : [];
    hit = -1;
    for (const [key, element] of graph.elements) {
      const within = hits.includes(key) || hits.some((found) => graph.table.leaves.get(found).group === key);
      element.classList.toggle("tm-dim", Boolean(wanted) && !within);
    }
    graph.say(wanted ? `${hits.length} found${hits.length ? ", Enter goes to the next" : ""}` : "");
  });
  graph.search.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && hits.length) {
      hit = (hit + (event.shiftKey ? hits.length - 1 : 1)) % hits.length;
      graph.select(hits[hit], { reveal: true, center: true });
      graph.say(`${hit + 1} of ${hits.length}: ${graph.words(hits[hit])}`);
    } else if (event.key === "Escape") {
      graph.search.value = "";
      graph.search.dispatchEvent(new Event("input"));
      graph.stage.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
}
