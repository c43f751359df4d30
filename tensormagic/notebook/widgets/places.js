// Where boxes, frames and links lie, whatever is open.

// The message holds the places of the first state. A group that was opened or closed since pushes the rest of its row
// aside by half the difference, and the rows below down.
function place(picture, open, head) {
  const isOpen = (box) => Boolean(box.g && box.g.picture && open.has(box.k));
  const wide = (box) => (isOpen(box) ? box.g.w : box.w);
  const tall = (box) => (isOpen(box) ? box.g.h : box.h);
  const heights = new Array(picture.gaps.length + 1).fill(0);
  const pushes = heights.map(() => []);
  for (const box of picture.boxes) {
    heights[box.r] = Math.max(heights[box.r], tall(box));
    const change = wide(box) - (box.g && box.g.open ? box.g.w : box.w);
    if (change) pushes[box.r].push([box.x, change / 2]);
  }
  const rows = [];
  let top = 0;
  heights.forEach((height, row) => {
    rows.push([top, top + height]);
    top += height + (picture.gaps[row] || 0);
  });
  const across = (row, x) => pushes[row].reduce((sum, [at, by]) => sum + Math.sign(Math.round(x - at)) * by, x);
  const placed = picture.boxes.map((box) => {
    const [above, below] = rows[box.r];
    return { box, key: box.k, x: across(box.r, box.x), y: (above + below) / 2, w: wide(box), h: tall(box),
      row: box.r, open: isOpen(box), closed: Boolean(box.g) && !isOpen(box), group: null };
  });
  const touch = (spot, offset) => (spot.closed && spot.box.g.picture ? (offset * 0.9 * spot.box.w) / spot.box.g.w : offset);
  const count = new Map();
  for (const [s, t] of picture.routes) count.set(`${s} ${t}`, (count.get(`${s} ${t}`) || 0) + 1);
  const edges = [];
  const seen = new Set();
  for (const [s, t, leaves, enters, bends, carries] of picture.routes) {
    const source = placed[s], target = placed[t], pair = `${s} ${t}`;
    const many = source.closed && target.closed && count.get(pair) > 1;
    if (many && seen.has(pair)) continue;
    seen.add(pair);
    const x = source.x + (many ? 0 : touch(source, leaves)), y = source.y + source.h / 2;
    const endX = target.x + (many ? 0 : touch(target, enters)), endY = target.y - target.h / 2 + (target.open ? head : 0);
    const arrow = target.open || target.box.s === undefined ? "" : "m-3.5 -5.5l3.5 5.5l3.5 -5.5";
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
    const port = source.box.s === undefined && !source.box.g;
    edges.push({ d: d + arrow, kind, from: carries || (port ? source.key.slice(0, -1) : source.key), to: target.key });
  }
  const left = Math.min(0, ...placed.map((spot) => spot.x - spot.w / 2));
  const right = Math.max(0, ...placed.map((spot) => spot.x + spot.w / 2), ...picture.routes.flatMap((route) => route[4]));
  return { placed, edges, left, right, height: rows.length ? rows[rows.length - 1][1] : 0 };
}

// One flat list of boxes, frames of open groups and edges.
function arrange(view, open, head) {
  const outer = place(view.picture, open, head);
  const boxes = [], frames = [], edges = [...outer.edges];
  for (const spot of outer.placed) {
    if (!spot.open) {
      if (spot.box.s !== undefined) boxes.push(spot);
      continue;
    }
    frames.push(spot);
    const inner = place(spot.box.g.picture, open, head);
    const dx = spot.x - (inner.right + inner.left) / 2, dy = spot.y - spot.h / 2 + head;
    for (const member of inner.placed) {
      if (member.box.s !== undefined) boxes.push({ ...member, x: member.x + dx, y: member.y + dy, group: spot.key });
    }
    for (const edge of inner.edges) edges.push({ ...edge, dx, dy, group: spot.key });
  }
  return { boxes, frames, edges, left: outer.left, width: outer.right - outer.left, height: outer.height };
}

// What the view holds whatever is open: every leaf with its group, and who feeds whom.
function index(view) {
  const leaves = new Map(), groups = new Map(), feeds = new Map(), fed = new Map();
  const link = (source, target) => {
    for (const [table, one, other] of [[feeds, source, target], [fed, target, source]]) {
      if (!table.has(one)) table.set(one, []);
      if (!table.get(one).includes(other)) table.get(one).push(other);
    }
  };
  const walk = (picture, group) => {
    for (const box of picture.boxes) {
      if (box.g) {
        groups.set(box.k, box);
        if (box.g.picture) walk(box.g.picture, box.k);
      } else if (box.s !== undefined) leaves.set(box.k, { box, group });
    }
    for (const [s, t, , , , carries] of picture.routes) {
      const source = picture.boxes[s], target = picture.boxes[t];
      if (target.s === undefined || (target.g && target.g.picture)) continue;
      const port = source.s === undefined;
      link(carries && source.g.picture ? carries : port ? source.k.slice(0, -1) : source.k, target.k);
    }
  };
  walk(view.picture, null);
  return { leaves, groups, feeds, fed };
}
