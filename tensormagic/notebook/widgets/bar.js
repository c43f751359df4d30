// A bar with words, and a button that cancels what is shown, or interrupts the kernel where the page can do that.

function kernelOf(model) {
  return model.widget_manager?.context?.sessionContext?.session?.kernel;
}

function render({ model, el }) {
  const row = document.createElement("div");
  row.className = "tm-strip tm-bar";
  const bar = document.createElement("progress");
  bar.max = 1;
  bar.setAttribute("aria-label", "Computation");
  const words = document.createElement("span");
  words.className = "tm-bar-words";
  words.setAttribute("role", "status");
  const button = document.createElement("button");
  button.type = "button";
  if (model.get("cancels")) {
    button.textContent = "Cancel";
    button.addEventListener("click", () => model.send("cancel"));
  } else {
    button.textContent = "Interrupt";
    button.hidden = typeof kernelOf(model)?.interrupt !== "function";
    button.addEventListener("click", () => kernelOf(model)?.interrupt());
  }
  row.append(bar, words, button);
  el.append(row);

  const draw = () => {
    const fraction = model.get("fraction");
    if (fraction < 0) {
      bar.removeAttribute("value");
    } else {
      bar.value = fraction;
    }
    words.textContent = model.get("words");
  };
  model.on("change:words change:fraction", draw);
  draw();
  return () => model.off("change:words change:fraction", draw);
}

export default { render };
