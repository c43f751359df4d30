// A strip with words and a button; it writes into the notebook's metadata whether cells are captured by default.

function remember(model) {
  const notebook = model.widget_manager?.context?.model;
  if (typeof notebook?.setMetadata !== "function") {
    return; // a page without a notebook
  }
  const known = notebook.getMetadata?.("tensormagic") ?? {};
  if ((known.default ?? false) !== model.get("on")) {
    notebook.setMetadata("tensormagic", { ...known, default: model.get("on") });
  }
}

function render({ model, el }) {
  const strip = document.createElement("div");
  strip.className = "tm-strip tm-banner";
  strip.setAttribute("role", "status");
  const mark = document.createElement("span");
  mark.className = "tm-banner-mark";
  mark.setAttribute("aria-hidden", "true");
  const words = document.createElement("span");
  words.className = "tm-banner-words";
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Turn off";
  button.setAttribute("aria-label", "Turn %tensor_default off");
  button.addEventListener("click", () => model.send("end"));
  strip.append(mark, words, button);
  el.append(strip);

  const draw = () => {
    words.textContent = model.get("words");
    mark.textContent = model.get("on") ? "● on" : "○ off";
    strip.classList.toggle("tm-banner-on", model.get("on"));
    button.hidden = !model.get("on");
    remember(model);
  };
  model.on("change:words change:on", draw);
  draw();
  return () => model.off("change:words change:on", draw);
}

export default { render };
