// The graph as text for other programs: DOT for Graphviz, Mermaid for Markdown. As it is shown, with its open groups.
const DOT_SHAPES = { input: "ellipse", output: "doubleoctagon", constant: "plaintext", fold: "invtrapezium", contract: "hexagon",
  update: "note", opaque: "box3d", region: "component", sent: "invhouse" };
const MERMAID_SHAPES = { input: ["([", "])"], output: ["([", "])"], fold: ["[\\", "/]"], contract: ["{{", "}}"], opaque: ["[[", "]]"] };

function addText(graph) {
  // boxes within their groups, and the links between what is shown
  const shown = () => {
    const names = new Map(graph.layout.boxes.map((spot, k) => [spot.key, `n${k}`]));
    const lines = (spot) => (spot.box.t || []).map(([text]) => text);
    const within = (group) => ({
      boxes: graph.layout.boxes.filter((spot) => spot.group === group).map((spot) => ({ name: names.get(spot.key), lines: lines(spot),
        kind: spot.box.v === undefined ? "group" : graph.scene.vertices[spot.box.v].kind })),
      groups: graph.layout.frames.filter((spot) => spot.group === group).map((spot) => ({ title: spot.box.g.title, key: spot.key, ...within(spot.key) })),
    });
    // an open region has no box of its own: what is in it stands for it
    const stands = (key) => {
      const seen = graph.visible(key);
      if (names.has(seen)) return names.get(seen);
      const inner = graph.layout.boxes.filter((spot) => graph.inside(spot.key, seen));
      return inner.length ? names.get(inner[inner.length - 1].key) : null;
    };
    const links = new Set();
    for (const [source, targets] of graph.table.feeds) {
      for (const target of targets) {
        const pair = [stands(source), stands(target)];
        if (pair[0] && pair[1] && pair[0] !== pair[1]) links.add(pair.join(" "));
      }
    }
    return { ...within(null), links: [...links].map((pair) => pair.split(" ")) };
  };
  graph.inside = (key, group) => {
    for (let around = graph.table.around.get(key); around; around = graph.table.around.get(around)) if (around === group) return true;
    return false;
  };

  graph.dot = function dot() {
    const quote = (text) => `"${text.replace(/\\/g, "\\\\").replace(/"/g, '\\"')}"`;
    const { links, ...all } = shown();
    const rows = [`digraph ${quote(graph.scene.title || "graph")} {`, "  node [shape=box, fontname=\"sans-serif\"];"];
    let clusters = 0;
    const write = (part, margin) => {
      for (const { name, lines, kind } of part.boxes) {
        const label = lines.map((line) => quote(line).slice(1, -1)).join("\\n");
        rows.push(`${margin}${name} [label="${label}", shape=${DOT_SHAPES[kind] || "box"}];`);
      }
      for (const group of part.groups) {
        rows.push(`${margin}subgraph cluster_${clusters++} {`, `${margin}  label=${quote(group.title)};`);
        write(group, `${margin}  `);
        rows.push(`${margin}}`);
      }
    };
    write(all, "  ");
    rows.push(...links.map(([source, target]) => `  ${source} -> ${target};`), "}", "");
    return rows.join("\n");
  };

  graph.mermaid = function mermaid() {
    const safe = (text) => [...text].map((c) => (/[\p{L}\p{N} .,+*/=:()[\]-]/u.test(c) ? c : `#${c.codePointAt(0)};`)).join("");
    const { links, ...all } = shown();
    const rows = ["flowchart TD"];
    let groups = 0;
    const write = (part, margin) => {
      for (const { name, lines, kind } of part.boxes) {
        const [left, right] = MERMAID_SHAPES[kind] || ["[", "]"];
        rows.push(`${margin}${name}${left}"${lines.map(safe).join("<br>")}"${right}`);
      }
      for (const group of part.groups) {
        rows.push(`${margin}subgraph g${groups++}["${safe(group.title)}"]`);
        write(group, `${margin}  `);
        rows.push(`${margin}end`);
      }
    };
    write(all, "  ");
    rows.push(...links.map(([source, target]) => `  ${source} --> ${target}`), "");
    return rows.join("\n");
  };
}
