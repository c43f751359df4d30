// What comes later: asked of Python where there is a kernel, or found in the page where it was written down.
const PATIENCE = 20000; // milliseconds

function addAsking(graph, stop) {
  const known = new Map((graph.scene.parts || []).map(([asked, content]) => [JSON.stringify(asked), content]));
  const waiting = new Map();

  graph.ask = function ask(asked, then) {
    const name = JSON.stringify(asked);
    if (known.has(name)) { then(known.get(name)); return; }
    if (!graph.model.send) { graph.say("This page does not hold that: open the graph in the notebook."); return; }
    if (waiting.has(name)) { waiting.get(name).push(then); return; }
    waiting.set(name, [then]);
    graph.main.setAttribute("aria-busy", "true");
    graph.model.send({ ask: asked });
    setTimeout(() => {
      if (!waiting.delete(name)) return;
      graph.main.removeAttribute("aria-busy");
      graph.say("The kernel does not answer: is it running?");
    }, PATIENCE);
  };
  const hear = (reply) => {
    if (!reply || !reply.part) return;
    const name = JSON.stringify(reply.part), calls = waiting.get(name);
    waiting.delete(name);
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
  const picture = content && (content.boxes ? content : content.picture);
  for (const box of (picture && picture.boxes) || []) {
    if (box.v !== undefined) box.v += vertices;
    if (box.s !== undefined) box.s += shapes;
    if (box.g) renumber(box.g, vertices, shapes);
  }
}
