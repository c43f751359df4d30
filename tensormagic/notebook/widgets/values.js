// What was measured of a node: its size, its time, and its values as numbers, bars or a heat map.
const RAMP = [[0, 32, 76], [60, 77, 110], [124, 123, 120], [186, 175, 104], [255, 234, 70]]; // cividis

function rampColour(share) {
  const at = share * (RAMP.length - 1), k = Math.min(Math.floor(at), RAMP.length - 2);
  return `rgb(${RAMP[k].map((low, c) => Math.round(low + (RAMP[k + 1][c] - low) * (at - k))).join(",")})`;
}

function barsOf(told) {
  const most = Math.max(...told.bars), wide = 10 * told.bars.length;
  const text = `histogram from ${told.min} to ${told.max}: ${told.bars.join(", ")}`;
  const picture = svgNode("svg", { class: "tm-bars", preserveAspectRatio: "none", viewBox: `0 0 ${wide} 48`, role: "img", "aria-label": text });
  told.bars.forEach((count, k) => {
    const height = count ? Math.max(1, (46 * count) / most) : 0;
    svgNode("rect", { x: 10 * k + 0.5, y: 48 - height, width: 9, height }, picture);
  });
  const ends = node("div", { class: "tm-ends", "aria-hidden": "true" });
  ends.append(node("span", {}, told.min), node("span", {}, told.max));
  return [caption(`how many values lie where: ${most} in the highest bar`), picture, ends];
}

function heatOf(told) {
  const [rows, columns, digits] = told.heat, size = Math.max(2, Math.min(16, Math.floor(208 / columns), Math.floor(160 / rows)));
  const text = `heat map of ${rows} by ${columns} values from ${told.min} to ${told.max}${told.nan ? ", those that are nan crossed out" : ""}`;
  const tall = rows === 1 ? Math.max(size, 14) : size;
  const picture = svgNode("svg", { class: "tm-heat", width: columns * size, height: rows * tall, role: "img", "aria-label": text });
  for (let k = 0; k < rows * columns; k++) {
    const digit = digits.slice(2 * k, 2 * k + 2), x = (k % columns) * size, y = Math.floor(k / columns) * tall;
    if (digit !== "..") svgNode("rect", { x, y, width: size, height: tall, fill: rampColour(parseInt(digit, 16) / 255) }, picture);
    else svgNode("path", { class: "none", d: `M${x + 1} ${y + 1}L${x + size - 1} ${y + tall - 1}M${x + size - 1} ${y + 1}L${x + 1} ${y + tall - 1}` }, picture);
  }
  return [caption(`${rows === 1 ? "each value, in order" : "each value, in its place"}; dark: least, bright: greatest`), picture];
}

const caption = (words) => node("p", { class: "tm-hint", "aria-hidden": "true" }, words);

// `iteration 15 of 20` as the variable of the loop has it, where the line says how: `k = 14 (15th of 20)`
function counted(source, vertex, iteration) {
  const parts = iteration.split(", ").map((part) => /^iteration\s(\d+)\sof\s(\d+)$/.exec(part)), loops = [];
  let inner = vertex.line === undefined ? -1 : indent(source[vertex.line - 1] || "");
  for (let k = vertex.line - 2; k >= 0 && inner > 0; k--) {
    const text = source[k], own = indent(text);
    if (!text.trim() || own >= inner) continue;
    inner = own;
    if (/^\s*(for|while|def)\b/.test(text)) loops.unshift(/^\s*for\s(\w+)\sin\srange\((\d+)\):/.exec(text));
  }
  if (loops.length !== parts.length || parts.some((part, k) => !part || !loops[k] || loops[k][2] !== part[2])) return iteration;
  return parts.map(([, now, all], k) => `${loops[k][1]} = ${now - 1} (${nth(now)} of ${all})`).join(", ");
}
const indent = (text) => text.length - text.trimStart().length;
const nth = (k) => k + (/1[123]$/.test(k) ? "th" : ["th", "st", "nd", "rd"][k % 10] || "th");

function addValues(graph) {
  // inside a loop, of one of the iterations that were looked at: the last one, or where the slider is
  graph.iteration = Infinity;
  graph.told = (vertex) => {
    const told = (graph.details && vertex && graph.details.measured[vertex.number]) || {}, { iterations } = told;
    if (!iterations) return told;
    const [iteration, values] = iterations[Math.min(graph.iteration, iterations.length - 1)];
    return { ...told, ...values, iteration: counted(graph.scene.source, vertex, iteration) };
  };
  const slider = graph.iterations.lastChild;
  slider.addEventListener("input", () => {
    graph.iteration = slider.value === slider.max ? Infinity : slider.valueAsNumber;
    graph.panel();
    graph.say(graph.told(graph.vertexOf(graph.selected)).iteration, true);
  });
  graph.turned = function turned({ iterations = [], iteration }) {
    graph.tip.dataset.key = ""; // what the pointer tells is told anew
    graph.iterations.hidden = iterations.length < 2;
    slider.max = iterations.length - 1;
    slider.value = Math.min(graph.iteration, slider.max);
    slider.setAttribute("aria-valuetext", iteration);
  };
  graph.extremes = (told) => (told.min === undefined ? "" : told.same ? `${told.same} ${told.min}` : `min ${told.min}, max ${told.max}, mean ${told.mean}`);
  graph.missing = (told) => [told.nan ? `${told.nan} nan` : "", told.inf ? `${told.inf} infinite` : ""].filter(Boolean).join(", ");
  // the rows that tell it
  graph.measures = function measures(vertex) {
    const told = graph.told(vertex);
    const some = told.of ? ` (of ${told.of} of them)` : "", many = (told.iterations || []).length > 1;
    return [["ran", told.ran], ["time", told.seconds && `${told.seconds} in NumPy${many ? ", all together" : ""}`], ["all iterations", told.over], ["when", told.iteration],
      ["memory", told.bytes && told.bytes + (many ? " each" : "")], ["values", told.value || vertex.preview || ""], ["range", graph.extremes(told) && graph.extremes(told) + some],
      ["nan or inf", told.nan === undefined || told.value === undefined ? "" : graph.missing(told) || "none"]];
  };
  graph.pictures = (vertex) => {
    const told = graph.told(vertex);
    return [...(told.heat ? heatOf(told) : []), ...(told.bars ? barsOf(told) : [])];
  };
  // the rewrites that had a part in it, up to the step that is shown
  graph.history = function history(key) {
    const steps = graph.steps();
    return steps.slice(1, (graph.step === null ? steps.length : graph.step + 1)).flatMap((step, k) =>
      (step.made.includes(key.replace(/~\d+$/, "")) ? step.rewrites.map((rewrite) => [k + 1, ...rewrite]) : []));
  };
}
