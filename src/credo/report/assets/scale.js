// Axes: from values to places and back, ticks, and numbers as text.
// A window is a part [from, to] of what the axis shows at first, as fractions of it, whatever its scale is.

function scaled(axis, value) {
  if (axis.kind === "log") return Math.log10(value);
  if (axis.kind !== "symlog") return value;
  // matplotlib's own: linear up to the threshold, then decades.
  const size = Math.abs(value), edge = axis.threshold, stretch = 1 / (1 - 0.1);
  if (size <= edge) return value * stretch;
  return Math.sign(value) * edge * (stretch + Math.log10(size / edge));
}

function unscaled(axis, place) {
  if (axis.kind === "log") return 10 ** place;
  if (axis.kind !== "symlog") return place;
  const size = Math.abs(place), edge = axis.threshold, stretch = 1 / (1 - 0.1);
  if (size <= edge * stretch) return place / stretch;
  return Math.sign(place) * edge * 10 ** (size / edge - stretch);
}

function fraction(axis, value) {
  return (scaled(axis, value) - axis.ends[0]) / (axis.ends[1] - axis.ends[0]);
}

function valueAt(axis, part) {
  return unscaled(axis, axis.ends[0] + part * (axis.ends[1] - axis.ends[0]));
}

function signed(text) {
  return text.replaceAll("-", "−");
}

// A number with `digits` digits that matter, without an exponent where that is readable.
function written(value, digits = 4) {
  if (value === null || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e7 || (size > 0 && size < 1e-4)) return signed(value.toExponential(digits - 2).replace("e+", "e"));
  const short = size >= 10 ** digits ? Math.round(value) : Number(value.toPrecision(digits));
  return signed(size >= 1e4 ? short.toLocaleString("en-US") : String(short));
}

// What a reader sees for a place on an axis.
function told(axis, value) {
  if (axis.kind === "labels") {
    const near = axis.names.reduce((a, b) => (Math.abs(b[0] - value) < Math.abs(a[0] - value) ? b : a));
    return near[1];
  }
  if (axis.kind === "date") return dated(value, 1);
  if (axis.percent) return `${written(100 * value, 3)} %`;
  // Values that lie close together need more digits to be told apart.
  const span = Math.abs(valueAt(axis, 1) - valueAt(axis, 0)), need = Math.ceil(Math.log10((500 * Math.abs(value)) / span)) + 1;
  return written(value, Math.min(6, Math.max(4, need || 4)));
}

function dated(days, step) {
  const text = new Date(days * 864e5).toISOString();
  return step < 1 ? text.slice(5, 16).replace("T", " ") : text.slice(0, 10);
}

// Even steps of 1, 2 or 5 times a power of ten.
function evenTicks(low, high, count) {
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((f) => f * power >= raw);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-12) + 1e-9 * step; i++) ticks.push(i * step + 0); // + 0: no minus before zero
  return { ticks, step };
}

// Ticks of a window: [value, text].
function ticksOf(axis, from, to, count) {
  const [low, high] = [valueAt(axis, from), valueAt(axis, to)].sort((a, b) => a - b);
  if (!(high > low)) return [];
  if (axis.kind === "log" && high / low > 4) return logTicks(low, high, count);
  const { ticks, step } = evenTicks(low, high, count);
  if (axis.kind === "date") return ticks.map((v) => [v, dated(v, step)]);
  const unit = axis.percent ? 100 : 1, suffix = axis.percent ? " %" : "";
  const places = Math.max(0, -Math.floor(Math.log10(step * unit) + 1e-9));
  return ticks.map((v) => [v, textOfTick(v * unit, places) + suffix]);
}

// Powers of ten, with their double and fivefold where there is room.
function logTicks(low, high, count) {
  const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high)), decades = last - first + 1;
  const every = Math.max(1, Math.ceil(decades / count)), between = 3 * decades <= 2 * count ? [1, 2, 5] : [1];
  const found = [];
  for (let p = first; p <= last; p += every) found.push(...between.map((f) => f * 10 ** p));
  return found.filter((v) => v >= low && v <= high).map((v) => [v, written(v)]);
}

function textOfTick(value, places) {
  if (places > 6 || Math.abs(value) >= 1e7) return written(value, 5);
  return signed((Number(value.toFixed(places)) || 0).toLocaleString("en-US", { minimumFractionDigits: places, useGrouping: Math.abs(value) >= 1e4 }));
}
