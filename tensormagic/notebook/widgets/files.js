// The view as a file: SVG, PNG, a page, DOT or Mermaid.
function addFiles(graph) {
  graph.file = function file() {
    const pad = 16, wide = Math.ceil(graph.layout.width + 2 * pad), tall = Math.ceil(graph.layout.height + 2 * pad);
    const root = svgNode("svg", { xmlns: NS, width: wide, height: tall, viewBox: `0 0 ${wide} ${tall}`, role: "img", class: "tm-still" });
    svgNode("title", {}, root).textContent = `${graph.scene.title} ${graph.view.name}`;
    svgNode("style", {}, root).textContent = graph.scene.style;
    svgNode("rect", { class: "ground", width: wide, height: tall, fill: "#ffffff" }, root);
    const world = svgNode("g", { transform: `translate(${pad - graph.layout.left} ${pad})` }, root);
    graph.drawing(layersIn(world), new Map());
    for (const each of world.querySelectorAll("*")) {
      each.classList.remove("tm-new");
      if (each.style.transform) each.setAttribute("transform", each.style.transform.replaceAll("px", ""));
      each.removeAttribute("style");
      for (const name of Object.keys(each.dataset)) delete each.dataset[name];
    }
    return { text: new XMLSerializer().serializeToString(root), wide, tall };
  };
  const safe = (text) => text.replace(/[^\w-]+/g, "_");
  graph.download = function download(blob, ending) {
    const link = node("a", { download: `${safe(graph.scene.title || "graph").slice(0, 60)}_${safe(graph.view.name).slice(0, 60)}.${ending}` });
    link.href = URL.createObjectURL(blob);
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    graph.say(`saved ${link.download}`);
  };
  const saveText = (text, type, ending) => graph.download(new Blob([text], { type }), ending);
  const savePng = () => {
    const { text, wide, tall } = graph.file();
    const image = new Image();
    const scale = Math.min(2, 16000 / Math.max(wide, tall));
    image.onload = () => {
      const canvas = node("canvas", { width: Math.round(wide * scale), height: Math.round(tall * scale) });
      const pen = canvas.getContext("2d");
      pen.scale(scale, scale);
      pen.drawImage(image, 0, 0, wide, tall);
      canvas.toBlob((blob) => (blob ? graph.download(blob, "png") : graph.say("The picture is too large for PNG: save it as SVG.")), "image/png");
    };
    image.onerror = () => graph.say("This browser cannot turn the picture into PNG: save it as SVG.");
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  };
  const kinds = {
    SVG: () => saveText(graph.file().text, "image/svg+xml", "svg"),
    PNG: savePng,
    // without a kernel this is a page already
    HTML: () => (graph.model.send ? graph.ask(["html"], (text) => saveText(text, "text/html", "html"))
      : saveText(`<!doctype html>\n${graph.model.whole}`, "text/html", "html")),
    DOT: () => saveText(graph.dot(), "text/vnd.graphviz", "dot"),
    Mermaid: () => saveText(graph.mermaid(), "text/vnd.mermaid", "mmd"),
  };
  graph.save = (kind) => kinds[kind]();
}
