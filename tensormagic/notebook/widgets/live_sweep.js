// The sweep that Python computed: read once, then interpolated at any point. Nothing here touches the page.
// A grid holds values and slopes at all its points; a star at points along a line in each direction through its centre.

function bytesOf(text) {
  return new DataView(Uint8Array.from(atob(text), (character) => character.charCodeAt(0)).buffer);
}

function numbersOf(text, short = false) {
  const view = bytesOf(text), size = short ? 4 : 8;
  const read = short ? (at) => view.getFloat32(at, true) : (at) => view.getFloat64(at, true);
  return Array.from({ length: view.byteLength / size }, (_, k) => read(k * size));
}

function readSweep(picture, text) {
  const elements = picture.shape.reduce((product, count) => product * count, 1);
  const all = numbersOf(text, picture.kind === "star" && elements > 1), dimensions = picture.counts.length;
  let start = 0;
  const take = (count) => all.slice(start, (start += count));
  const centre = picture.kind === "star" ? take(dimensions) : null;
  const axes = picture.counts.map(take);
  if (centre) {
    const points = picture.counts.reduce((sum, count) => sum + count, 0), rest = all.length - start - points * elements;
    return { centre, axes, elements, values: take(points * elements), slopes: rest ? take(points * dimensions) : null };
  }
  const size = picture.counts.reduce((product, count) => product * count, 1);
  return { centre, axes, elements, values: take(size), slopes: picture.slopes ? axes.map(() => take(size)) : null };
}

// the interval of an axis that holds x, and how far x is in it, from 0 to 1
function cellOf(axis, x) {
  let low = 0, high = axis.length - 1;
  if (high === 0) return { index: 0, share: 0 };
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (axis[middle] <= x) low = middle; else high = middle;
  }
  return { index: low, share: Math.min(Math.max((x - axis[low]) / (axis[high] - axis[low]), 0), 1) };
}

function corners(sweep, point) {
  let found = [{ place: 0, weight: 1 }];
  point.forEach((x, k) => {
    const { index, share } = cellOf(sweep.axes[k], x), count = sweep.axes[k].length;
    found = found.flatMap(({ place, weight }) => [[index, 1 - share], [index + 1, share]]
      .filter(([, part]) => part > 0).map(([at, part]) => ({ place: place * count + at, weight: weight * part })));
  });
  return found;
}

// the values and, for each direction, the slopes of the elements: as far as the sweep tells
function valueAt(sweep, point) {
  if (sweep.centre) return sweep.slopes ? quadric(sweep, point) : sum(sweep, point);
  const near = corners(sweep, point);
  const mean = (table) => near.reduce((total, { place, weight }) => total + weight * table[place], 0);
  const slopes = sweep.slopes ? sweep.slopes.map((table) => [mean(table)]) : null;
  return { values: [slopes && point.length === 1 ? cubic(sweep, point[0]) : mean(sweep.values)], slopes };
}

// Hermite's cubic: it has the values and the slopes at both ends of the interval
function cubic(sweep, x) {
  const axis = sweep.axes[0], { index: k, share: t } = cellOf(axis, x), h = axis[k + 1] - axis[k];
  return hermite(t, sweep.values[k], sweep.values[k + 1], h * sweep.slopes[0][k], h * sweep.slopes[0][k + 1]);
}

function hermite(t, a, b, s, e) {
  if (t === 0 || t === 1) return t ? b : a;
  return a + t * (s + t * (3 * (b - a) - 2 * s - e + t * (2 * (a - b) + s + e)));
}

// Along one direction the star has the function itself. Where several numbers have moved, what each move adds is added
// up, with what the slopes say of pairs: with no other error for functions of degree two.
function quadric(sweep, point) {
  const d = point.length, base = at(sweep, 0, sweep.centre[0]);
  const moved = point.map((x, k) => k).filter((k) => point[k] !== sweep.centre[k]);
  const ends = new Map(moved.map((k) => [k, at(sweep, k, point[k])]));
  let value = base.value;
  const slopes = base.slopes.slice();
  for (const [k, end] of ends) {
    value += end.value - base.value;
    for (let j = 0; j < d; j += 1) slopes[j] += end.slopes[j] - base.slopes[j];
    for (const [j] of ends) {
      if (j !== k) value += ((point[j] - sweep.centre[j]) * (end.slopes[j] - base.slopes[j])) / 2;
    }
  }
  return { values: [value], slopes: slopes.map((slope) => [slope]) };
}

// value and gradient at a point of one of the lines
function at(sweep, k, x) {
  const d = sweep.axes.length, axis = sweep.axes[k], { index, share } = cellOf(axis, x), h = axis[index + 1] - axis[index];
  const first = beginOf(sweep, k) + index, slope = (row, j) => sweep.slopes[row * d + j];
  const value = hermite(share, sweep.values[first], sweep.values[first + 1], h * slope(first, k), h * slope(first + 1, k));
  const mix = (a, b) => (share === 0 ? a : share === 1 ? b : a + share * (b - a));
  return { value, slopes: sweep.axes.map((_, j) => mix(slope(first, j), slope(first + 1, j))) };
}

function beginOf(sweep, k) {
  return sweep.axes.slice(0, k).reduce((total, axis) => total + axis.length, 0);
}

// arrays: what each move adds is added up; the slope along a line is that of the piece where the point is
function sum(sweep, point) {
  const n = sweep.elements, row = (k, index, i) => sweep.values[(beginOf(sweep, k) + index) * n + i];
  const base = cellOf(sweep.axes[0], sweep.centre[0]);
  const home = Array.from({ length: n }, (_, i) => mixed(row(0, base.index, i), row(0, base.index + 1, i), base.share));
  const values = home.slice();
  const slopes = point.map((x, k) => {
    const { index, share } = cellOf(sweep.axes[k], x), h = sweep.axes[k][index + 1] - sweep.axes[k][index];
    return Array.from({ length: n }, (_, i) => {
      const [a, b] = [row(k, index, i), row(k, index + 1, i)];
      if (point[k] !== sweep.centre[k]) values[i] += mixed(a, b, share) - home[i];
      return (b - a) / h;
    });
  });
  return { values, slopes };
}

function mixed(a, b, share) {
  return share === 0 ? a : share === 1 ? b : a + share * (b - a);
}

function told(x) {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "nan" : x > 0 ? "inf" : "-inf";
  return Number(x.toPrecision(6)).toString();
}
