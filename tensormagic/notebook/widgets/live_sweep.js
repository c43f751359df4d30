// The sweep that Python computed: read once, then interpolated at any point. Nothing here touches the page.

function numbersOf(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Array.from({ length: bytes.length / 8 }, (_, k) => view.getFloat64(8 * k, true));
}

function readSweep(scene, text) {
  const all = numbersOf(text);
  let start = 0;
  const take = (count) => all.slice(start, (start += count));
  const axes = scene.counts.map(take);
  const size = scene.counts.reduce((product, count) => product * count, 1);
  const values = take(size);
  return { axes, values, slopes: scene.slopes ? axes.map(() => take(size)) : null };
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

function valueAt(sweep, point) {
  const near = corners(sweep, point);
  const mean = (table) => near.reduce((sum, { place, weight }) => sum + weight * table[place], 0);
  const slopes = sweep.slopes ? sweep.slopes.map(mean) : null;
  return { value: slopes && point.length === 1 ? cubic(sweep, point[0]) : mean(sweep.values), slopes };
}

// Hermite's cubic: it has the values and the slopes at both ends of the interval
function cubic(sweep, x) {
  const axis = sweep.axes[0], { index: k, share: t } = cellOf(axis, x), h = axis[k + 1] - axis[k];
  if (t === 0) return sweep.values[k];
  if (t === 1) return sweep.values[k + 1];
  const [a, b, s, e] = [sweep.values[k], sweep.values[k + 1], h * sweep.slopes[0][k], h * sweep.slopes[0][k + 1]];
  return a + t * (s + t * (3 * (b - a) - 2 * s - e + t * (2 * (a - b) + s + e)));
}

function told(x) {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "nan" : x > 0 ? "inf" : "\u2212inf";
  return Number(x.toPrecision(6)).toString().replace("-", "\u2212");
}
