// Where boxes, frames and links lie, whatever is open.

// The message holds the places of the first state. A group that was opened or closed since pushes the rest of its row
// aside by half the difference, and the rows below down. Groups hold groups.
function place(picture, open, head) {
  const inners = picture.boxes.map((box) => (box.g && box.g.picture && open.has(box.k) ? place(box.g.picture, open, head) : null));
  const sizes = picture.boxes.map((box, k) => (inners[k] ? [Math.max(inners[k].width + 24, box.g.n), inners[k].height + box.g.f] : [box.w, box.h]));
  const heights = new Array(picture.gaps.length + 1).fill(0);
  const pushes = heights.map(() => []);
  picture.boxes.forEach((box, k) => {
    heights[box.r] = Math.max(heights[box.r], sizes[k][1]);
    const change = sizes[k][0] - (box.g && box.g.open ? box.g.w : box.w);
    if (change) pushes[box.r].push([box.x, change / 2]);
  });
  const rows = [];
  let top = 0;
  heights.forEach((height, row) => {
    rows.push([top, top + height]);
    top += height + (picture.gaps[row] || 0);
  });
  const across = (row, x) => pushes[row].reduce((sum, [at, by]) => sum + Math.sign(Math.round(x - at)) * by, x);
  const ports = new Map();
  const placed = picture.boxes.map((box, k) => {
    const [above, below] = rows[box.r], x = across(box.r, box.x);
    if (box.s === undefined) ports.set(box.k, x);
    return { box, key: box.k, x, y: (above + below) / 2, w: sizes[k][0], h: sizes[k][1], row: box.r, inner: inners[k],
      open: inners[k] !== null, closed: Boolean(box.g) && inners[k] === null, group: null };
  });
  // where a link touches: at its port inside, where the group is open and has one
  const touch = (spot, offset, port) => {
    const { box, inner } = spot;
    if (!box.g) return offset;
    if (inner && inner.ports.has(port)) return inner.ports.get(port) - (inner.left + inner.right) / 2;
    const drawn = box.g.open ? box.g.w : box.w;
    return drawn === spot.w ? offset : (offset * 0.9 * spot.w) / drawn;
  };
  const count = new Map();
  for (const [s, t] of picture.routes) count.set(`${s} ${t}`, (count.get(`${s} ${t}`) || 0) + 1);
  const edges = [];
  const seen = new Set();
  for (const [s, t, leaves, enters, bends, carries] of picture.routes) {
    const source = placed[s], target = placed[t], pair = `${s} ${t}`;
    const many = source.closed && target.closed && count.get(pair) > 1;
    if (many && seen.has(pair)) continue;
    seen.add(pair);
    const port = source.box.s === undefined && !source.box.g;
    const from = carries || (port ? source.key.slice(0, -1) : source.key);
    const into = target.open && target.box.v === undefined; // to what is inside; a region takes its operands at its border
    const x = source.x + (many ? 0 : touch(source, leaves, `${from}<`)), y = source.y + source.h / 2;
    const endX = target.x + (many ? 0 : touch(target, enters, `${from}>`)), endY = target.y - target.h / 2 + (into ? head : 0);
    const arrow = into || target.box.s === undefined ? "" : "m-3.5 -5.5l3.5 5.5l3.5 -5.5";
    let d, kind = many ? "edge many" : "edge";
    if (target.row - source.row !== bends.length + 1) {
      const middle = (y + endY) / 2;
      d = `M${x} ${y}C${x} ${middle} ${endX} ${middle} ${endX} ${endY}`;
      kind = "edge far";
    } else {
      const way = [x, ...bends.map((bend, k) => across(source.row + k + 1, bend)), endX];
      d = `M${x} ${y}V${rows[source.row][1]}`;
      for (let k = 0; k + 1 < way.length; k++) {
        const row = source.row + k, middle = (rows[row][1] + rows[row + 1][0]) / 2;
        d += `C${way[k]} ${middle} ${way[k + 1]} ${middle} ${way[k + 1]} ${rows[row + 1][0]}`;
        d += `V${row + 1 < target.row ? rows[row + 1][1] : endY}`;
      }
    }
    edges.push({ d: d + arrow, kind, from, to: target.key });
  }
  let left = 0, right = 0;
  for (const spot of placed) { left = Math.min(left, spot.x - spot.w / 2); right = Math.max(right, spot.x + spot.w / 2); }
  for (const route of picture.routes) for (const x of route[4]) right = Math.max(right, x);
  // ways back beside all boxes, from what an iteration gives to the input of the next one
  const edge = right;
  (picture.returns || []).forEach(([s, t], k) => {
    const source = placed[s], target = placed[t], lane = edge + 10 + 7 * k, x = source.x, endX = target.x;
    const low = rows[source.row][1] + 6, high = rows[target.row][0] - 11;
    right = lane + 1;
    edges.push({ kind: "edge back", from: source.key, to: target.key, d: `M${x} ${source.y + source.h / 2}V${low - 5}Q${x} ${low} ${x + 5} ${low}`
      + `H${lane - 5}Q${lane} ${low} ${lane} ${low - 5}V${high + 5}Q${lane} ${high} ${lane - 5} ${high}`
      + `H${endX + 5}Q${endX} ${high} ${endX} ${high + 5}V${target.y - target.h / 2}m-3.5 -5.5l3.5 5.5l3.5 -5.5` });
  });
  return { placed, edges, ports, left, right, width: right - left, height: rows.length ? rows[rows.length - 1][1] : 0 };
}

// One flat list of boxes, frames of open groups (the outer ones first) and edges.
function arrange(picture, open, head) {
  const outer = place(picture, open, head);
  const boxes = [], frames = [], edges = [];
  const walk = (laid, dx, dy, group) => {
    for (const edge of laid.edges) edges.push({ ...edge, dx, dy, group });
    for (const spot of laid.placed) {
      const at = { ...spot, x: spot.x + dx, y: spot.y + dy, group };
      if (spot.open) {
        frames.push(at);
        walk(spot.inner, at.x - (spot.inner.left + spot.inner.right) / 2, at.y - at.h / 2 + head, spot.key);
      } else if (spot.box.s !== undefined) boxes.push(at);
    }
  };
  walk(outer, 0, 0, null);
  return { boxes, frames, edges, left: outer.left, width: outer.width, height: outer.height };
}

// What the picture holds whatever is open: every vertex and group with the group around it, and who feeds whom.
function index(picture) {
  const leaves = new Map(), groups = new Map(), feeds = new Map(), fed = new Map(), around = new Map();
  const link = (source, target) => {
    for (const [table, one, other] of [[feeds, source, target], [fed, target, source]]) {
      if (!table.has(one)) table.set(one, []);
      if (!table.get(one).includes(other)) table.get(one).push(other);
    }
  };
  const walk = (part, group) => {
    for (const box of part.boxes) {
      if (box.s === undefined && !box.g) continue;
      around.set(box.k, group);
      if (box.v !== undefined) leaves.set(box.k, { box, group });
      if (!box.g) continue;
      groups.set(box.k, box);
      if (box.g.picture) walk(box.g.picture, box.k);
    }
    for (const [s, t, , , , carries] of part.routes) {
      const source = part.boxes[s], target = part.boxes[t];
      if ((target.s === undefined && !target.g) || (target.g && target.g.picture && target.v === undefined)) continue;
      const port = source.s === undefined && !source.g;
      link(carries && source.g && source.g.picture ? carries : port ? source.k.slice(0, -1) : source.k, target.k);
    }
  };
  walk(picture, null);
  return { leaves, groups, feeds, fed, around };
}
