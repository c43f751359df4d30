// The numbers of a run: read from base64, interpolated along the rays, and told as text and as squares.

function floatsOf(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Array.from({ length: bytes.length / 8 }, (_, k) => view.getFloat64(8 * k, true));
}

// rays: frames along each slider, while the others stand at the base
function readStar(star, size) {
  if (!star.counts || !star.counts.length) return null;
  const all = floatsOf(star.data);
  let start = 0;
  const take = (count) => all.slice(start, (start += count));
  return { base: star.base, rays: star.counts.map((count) => {
    const axis = take(count);
    return { axis, frames: Array.from({ length: count }, () => take(size)) };
  }) };
}

// the frame at a point that differs from the base in one slider at most; null for any other
function frameOnStar(star, point) {
  if (!star) return null;
  const moved = point.map((x, k) => k).filter((k) => point[k] !== star.base[k]);
  if (moved.length > 1) return null;
  const k = moved.length ? moved[0] : 0, { axis, frames } = star.rays[k], x = point[k];
  let low = 0, high = axis.length - 1;
  if (high === 0) return frames[0];
  while (high - low > 1) { const middle = (low + high) >> 1; if (axis[middle] <= x) low = middle; else high = middle; }
  const share = Math.min(Math.max((x - axis[low]) / (axis[high] - axis[low]), 0), 1);
  if (share === 0) return frames[low];
  if (share === 1) return frames[high];
  return frames[low].map((left, place) => left + share * (frames[high][place] - left));
}

const MINUS = "-"; // that Python reads

// five digits, as the picture has them without a script
function numberText(x, digits = 5) {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "nan" : x > 0 ? "inf" : `${MINUS}inf`;
  const shown = Number(x.toPrecision(digits));
  if (shown === 0) return "0";
  let text;
  if (Math.abs(shown) >= 1e-5 && Math.abs(shown) < 1e7) text = Math.abs(shown) < 1e-6 ? shown.toFixed(10) : String(shown);
  else {
    const [mantissa, exponent] = shown.toExponential(digits - 1).split("e");
    text = `${mantissa.includes(".") ? mantissa.replace(/0+$/, "").replace(/\.$/, "") : mantissa}e${Number(exponent)}`;
  }
  return text;
}

const HEAD = 4; // norm, least, largest, how many are not finite

function cellsOf(slot, frame) { return frame.slice(slot.at + HEAD, slot.at + HEAD + slot.rows * slot.columns); }

function slotText(slot, frame, digits = 5) {
  const at = slot.at;
  if (slot.kind === "number") return numberText(frame[at], digits);
  if (slot.kind === "bool") return Number.isNaN(frame[at]) ? "nan" : frame[at] >= 0.5 ? "True" : "False";
  if (slot.kind === "complex") {
    const imaginary = numberText(frame[at + 1], digits);
    return `${numberText(frame[at], digits)}${imaginary.startsWith(MINUS) ? "" : "+"}${imaginary}j`;
  }
  if (slot.few) return `[${cellsOf(slot, frame).map((x) => numberText(x, 4)).join(", ")}]`;
  return slot.kind === "array" ? `${slot.shape}, norm ${numberText(frame[at], digits)}` : slot.shape;
}

function localText(use, frame) {
  if (use.inWords) return use.formula;
  if (use.kind === "matrix") {
    const norm = use.local ? ` norm ${numberText(frame[use.local.at])}` : "";
    return `\u00d7 J (${use.sizes.join(", ")})${norm}`;
  }
  if (use.local) return `\u00d7 ${slotText(use.local, frame)}`;
  return use.part && !use.kind && !use.why ? "\u00d7 1, one result of several" : "";
}

// as a card has it: with the adjoint that it is times, where it is no formula
function cardText(use, frame) {
  const text = localText(use, frame);
  if (!text || use.inWords) return text;
  return use.kind === "column" ? `sum(adjoint ${text})` : `adjoint ${text}`;
}

// what flows back there: of an array that is told by its norm, no equation
function partText(slot, frame) {
  return slot.kind === "array" && !slot.few ? slotText(slot, frame) : `= ${slotText(slot, frame)}`;
}

// the terms of a sum, those that have come and a sign for those that are still to come
function sumText(texts, waiting) {
  const told = texts.slice(0, 3);
  const more = texts.length > 3 || waiting ? " + \u2026" : "";
  const count = texts.length > 3 ? ` (${texts.length + waiting})` : "";
  return `= ${told.join(" + ")}${more}${count}`.replaceAll(`+ ${MINUS}`, `${MINUS} `);
}

// adjoint and local derivative, and what they make: of matrices and of many elements the formula
function productText(use, adjoint, frame) {
  const made = partText(use.part, frame).replace(/^(?!= )/, "\u2192 ");
  if (use.kind === "matrix" || use.inWords) return `${use.formula || "adjoint \u00d7 J"} ${made}`;
  const times = `${adjoint} ${localText(use, frame)}`;
  return `${use.kind === "column" ? `sum(${times})` : times}${use.kind === "elements" ? ", element by element," : ""} ${made}`;
}

// why a sum goes back: what is broadcast has a part in several elements
function whySum(use, source) {
  if (!use.repeats) return "";
  return `, a sum, since ${use.sizes[1] > 1 ? `each element of ${source}` : source} goes into ${use.repeats} elements`;
}

// squares as in the picture without a script: the fuller the larger, negative ones half as wide
const SIDE = 7;

function drawCells(group, slot, frame) {
  const cells = cellsOf(slot, frame), left = Number(group.dataset.x), top = Number(group.dataset.y);
  const most = Math.max(...cells.filter(Number.isFinite).map(Math.abs), 0) || 1;
  [...group.children].forEach((rect, k) => {
    const share = cells[k] / most, side = share < 0 ? SIDE / 2 : SIDE - 1, inset = (SIDE - side) / 2;
    const values = { class: share < 0 ? "below" : "above", x: (left + SIDE * (k % slot.columns) + inset).toFixed(1),
      y: (top + SIDE * Math.floor(k / slot.columns) + inset).toFixed(1), width: side.toFixed(1), height: side.toFixed(1),
      "fill-opacity": Number.isFinite(share) ? (0.12 + 0.88 * Math.abs(share)).toFixed(2) : "0" };
    for (const [name, value] of Object.entries(values)) if (rect.getAttribute(name) !== value) rect.setAttribute(name, value);
  });
}
