// Elements of the page. Text from the user is only ever set as textContent.
const NS = "http://www.w3.org/2000/svg";
const KEYED = ["button", "input", "select", "summary"];
const HELP = "Arrows follow links, Enter opens or closes a group, / searches, + and - zoom, 0 fits, [ and ] step through rewriting, digits choose the view.";

function svgNode(tag, attributes = {}, parent) {
  const node = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (parent) parent.appendChild(node);
  return node;
}

function node(tag, attributes = {}, text) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  // JupyterLab listens before us, and leaves alone what carries this mark itself
  if (KEYED.includes(tag) || "tabindex" in attributes) made.setAttribute("data-lm-suppress-shortcuts", "true");
  return made;
}

// a text in which no line ends within the arrow of a rule
function arrowed(tag, text) {
  const made = node(tag);
  for (const part of String(text).split(/(->)/)) made.append(part === "->" ? node("span", { class: "tm-arrow" }, part) : part);
  return made;
}

// shades the sides at which a picture goes on, and says what to do
function markEdges(cover, beyond, told) {
  for (const [side, on] of Object.entries(beyond)) cover.classList.toggle(`tm-${side}`, on);
  const said = Object.values(beyond).some(Boolean) ? told : "";
  if (cover.firstChild.textContent !== said) cover.firstChild.textContent = said;
}

function coverOf(stage) {
  const cover = node("div", { class: "tm-beyond" });
  cover.appendChild(node("span"));
  stage.appendChild(cover);
  return cover;
}

function button(text, title, action) {
  const made = node("button", { type: "button", ...(title ? { title } : {}) }, text);
  if (title) made.setAttribute("aria-label", title);
  made.addEventListener("click", action);
  return made;
}
