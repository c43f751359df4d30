// What comes later: asked of Python where there is a kernel, or found in the page where it was written down.
const PATIENCE = 20000; // milliseconds
const LATE = "The kernel has not answered yet: it computes, or is not running. What you asked for comes when it answers.";

function addAsking(graph, stop) {
  const known = new Map((graph.scene.parts || []).map(([asked, content]) => [JSON.stringify(asked), content]));
  const waiting = new Map(), late = new Set(); // by what was asked; what is late is asked anew by another click

  graph.ask = function ask(asked, then) {
    const name = JSON.stringify(asked);
    if (known.has(name)) { then(known.get(name)); return; }
    if (!graph.model.send) { graph.say("This page does not hold that: open the graph in the notebook."); return; }
    const before = waiting.get(name) || [];
    waiting.set(name, [...before, then]);
    if (before.length && !late.delete(name)) return;
    graph.main.setAttribute("aria-busy", "true");
    graph.model.send({ ask: asked });
    setTimeout(() => {
      if (!waiting.has(name) || late.has(name)) return;
      late.add(name);
      graph.main.removeAttribute("aria-busy");
      graph.say(LATE);
    }, PATIENCE);
  };
  const hear = (reply) => {
    if (!reply || !reply.part) return;
    const name = JSON.stringify(reply.part), calls = waiting.get(name);
    waiting.delete(name);
    late.delete(name);
    if (graph.live.textContent === LATE) graph.say("");
    if (!waiting.size) graph.main.removeAttribute("aria-busy");
    if (reply.error) { graph.say(reply.error); return; }
    if (!calls) return; // another page asked
    renumber(reply.content, graph.scene.vertices.length, graph.scene.shapes.length);
    graph.scene.vertices.push(...(reply.vertices || []));
    graph.scene.shapes.push(...(reply.shapes || []));
    if (reply.part[0] !== "html") known.set(name, reply.content);
    calls.forEach((call) => call(reply.content));
  };
  graph.model.on("msg:custom", hear);
  stop.push(() => graph.model.off("msg:custom", hear));
}

// A reply counts its vertices and outlines from 0.
function renumber(content, vertices, shapes) {
  for (const view of (content && content.views) || []) renumber(view, vertices, shapes);
  const picture = content && (content.boxes ? content : content.picture);
  for (const box of (picture && picture.boxes) || []) {
    if (box.v !== undefined) box.v += vertices;
    if (box.s !== undefined) box.s += shapes;
    if (box.g) renumber(box.g, vertices, shapes);
  }
}
