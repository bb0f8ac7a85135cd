// What a reader points at: the nearest point, or all lines and bars at one place of the x axis.

const NEAR = 26; // how far, in units of the SVG, a point reaches

// The nearest point of a series of points: {series, index, far}.
function nearestPoint(drawing, at) {
  let best = null;
  for (const series of drawing.series) {
    if (series.kind !== "points") continue;
    for (let i = 0; i < series.x.length; i++) {
      if (series.x[i] === null || series.y[i] === null) continue;
      const point = { x: drawing.place("x", series.x[i]), y: drawing.place("y", series.y[i]) };
      if (!drawing.inside(point, 1)) continue;
      const far = Math.hypot(point.x - at.x, point.y - at.y);
      if (best === null || far < best.far) best = { series, index: i, far };
    }
  }
  return best;
}

// The place of each line and bar that is nearest along x.
function nearestAlong(drawing, at) {
  const found = [];
  for (const series of drawing.series) {
    if (series.kind === "points") continue;
    let index = -1, least = Infinity;
    for (let i = 0; i < series.x.length; i++) {
      if (series.x[i] === null || series.y[i] === null) continue;
      const far = Math.abs(drawing.place("x", series.x[i]) - at.x);
      if (far < least) [least, index] = [far, i];
    }
    if (index >= 0) found.push({ series, index, far: least });
  }
  const least = Math.min(...found.map((one) => one.far));
  return found.filter((one) => one.far <= least + 3); // lines may start and end at different places
}

function nearest(drawing, at) {
  const point = nearestPoint(drawing, at), along = nearestAlong(drawing, at);
  if (point !== null && (point.far <= NEAR || along.length === 0)) return [point];
  return along;
}

// The read-out: lines of {name, text, colour}.
function readout(drawing, picked) {
  const { series, index } = picked[0], lines = [];
  const x = { name: drawing.x.label, text: told(drawing.x, series.x[index]) };
  const y = { name: drawing.y.label, text: told(drawing.y, series.y[index]) };
  if (picked.length === 1 && series.kind === "points") {
    if (series.name) lines.push({ name: series.name, text: "", colour: series.colour });
    lines.push(...(drawing.y.kind === "labels" ? [y, x] : [x, y]));
    lines.push(...aboutOf(picked[0]));
  } else {
    lines.push(series.kind === "bars" ? { name: x.name, text: binText(drawing, series, index) } : x);
    for (const one of picked.slice(0, 12)) {
      const text = told(drawing.y, one.series.y[one.index]);
      lines.push({ name: one.series.name || drawing.y.label, text, colour: one.series.colour }, ...aboutOf(one));
    }
    if (picked.length > 12) lines.push({ name: `and ${picked.length - 12} more`, text: "" });
  }
  return lines.filter((line) => line.name || line.text);
}

function aboutOf({ series, index }) {
  return (series.about || []).map(([name, texts]) => ({ name, text: texts[index] }));
}

// A bar stands for a whole number, or for a bin between two edges.
function binText(drawing, series, index) {
  const { x } = series, width = x.length > 1 ? x[1] - x[0] : 0;
  if (!width || x.every((v) => Number.isInteger(v))) return told(drawing.x, x[index]);
  return `${told(drawing.x, x[index] - width / 2)} to ${told(drawing.x, x[index] + width / 2)}`;
}
