// A strip with a button that puts other text into cells of the notebook, and takes it back. A page without a notebook copies the text.

// the notebook's cells that are meant: by what the kernel knows them by, or by their text
function cellsOf(model) {
  const shared = model.widget_manager?.context?.model?.sharedModel;
  const all = shared?.cells ?? [];
  const found = model.get("cells").map((each) => ({
    ...each,
    at: all.find((cell) => (cell.id ?? cell.getId?.()) === each.cell) ?? all.find((cell) => cell.getSource() === each.now),
  }));
  return found.length && found.every((each) => typeof each.at?.setSource === "function") ? found : null;
}

function render({ model, el }) {
  const strip = document.createElement("div");
  strip.className = "tm-strip tm-rewrite";
  const words = document.createElement("span");
  words.setAttribute("role", "status");
  const button = document.createElement("button");
  button.type = "button";
  strip.append(button, words);
  el.append(strip);

  const cells = cellsOf(model);
  const several = model.get("cells").length > 1;
  const told = several ? "the cells" : "the cell";
  let done = false;
  const draw = (said) => {
    button.textContent = !cells ? "Copy" : done ? "Undo" : `Rewrite ${told}`;
    button.setAttribute("aria-label", cells ? button.textContent : `Copy ${told}, rewritten`);
    words.textContent = said;
  };
  const rewrite = () => {
    for (const each of cells) {
      if (!done) each.before = each.at.getSource();
      each.at.setSource(done ? each.before : each.better.replace(/\n$/, ""));
    }
    done = !done;
    draw(done ? `Rewritten. ${model.get("after")}` : model.get("words"));
  };
  const copy = async () => {
    const text = model.get("cells").map((each) => each.better).join("\n\n");
    try {
      await navigator.clipboard.writeText(text);
      draw("Copied.");
    } catch {
      draw("This page may not copy: select the lines above.");
    }
  };
  button.addEventListener("click", cells ? rewrite : copy);
  draw(model.get("words"));
}

export default { render };
