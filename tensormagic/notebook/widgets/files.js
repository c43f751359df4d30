// The view as a file: SVG or PNG.
function addFiles(graph) {
  graph.file = function file() {
    const pad = 16, wide = Math.ceil(graph.layout.width + 2 * pad), tall = Math.ceil(graph.layout.height + 2 * pad);
    const root = svgNode("svg", { xmlns: NS, width: wide, height: tall, viewBox: `0 0 ${wide} ${tall}`, role: "img" });
    svgNode("title", {}, root).textContent = `${graph.scene.title} ${graph.view.name}`;
    svgNode("style", {}, root).textContent = graph.scene.style;
    svgNode("rect", { class: "ground", width: wide, height: tall, fill: "#ffffff" }, root);
    const copy = graph.world.cloneNode(true);
    copy.setAttribute("transform", `translate(${pad - graph.layout.left} ${pad})`);
    for (const each of copy.querySelectorAll("*")) {
      each.classList.remove("on", "tm-new", "tm-dim");
      if (each.style.transform) each.setAttribute("transform", each.style.transform.replaceAll("px", ""));
      each.removeAttribute("style");
      for (const name of Object.keys(each.dataset)) delete each.dataset[name];
    }
    root.appendChild(copy);
    return { text: new XMLSerializer().serializeToString(root), wide, tall };
  };
  graph.download = function download(blob, ending) {
    const link = node("a", { download: `${(graph.scene.title || "graph").replace(/[^\w-]+/g, "_").slice(0, 60)}_${graph.view.name.replace(/[^\w-]+/g, "_")}.${ending}` });
    link.href = URL.createObjectURL(blob);
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    graph.say(`saved ${link.download}`);
  };
  graph.save = function save(ending) {
    const { text, wide, tall } = graph.file();
    if (ending === "svg") { graph.download(new Blob([text], { type: "image/svg+xml" }), "svg"); return; }
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
}
