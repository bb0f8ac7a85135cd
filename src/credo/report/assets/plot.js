// Figures that answer: pointing reads values, dragging and the wheel zoom, a double click shows all again.
// Without this script the same figures stand still.

const DEEPEST = 1 / 50; // the smallest window: places in the drawing are rounded

class Plot {
  constructor(figure, svg, data) {
    this.svg = svg;
    const groups = svg.querySelectorAll("g.axes");
    this.drawings = data.axes.map((axes, i) => new Drawing(svg, groups[i], axes));
    this.overlay = make("g", { class: "overlay" }, svg);
    this.back = document.createElement("button");
    Object.assign(this.back, { type: "button", className: "back idle", textContent: "Show all" });
    this.back.addEventListener("click", () => this.reset());
    this.box = new Box(figure.querySelector(".plot"), svg);
    figure.querySelector("figcaption").prepend(this.back); // hidden, it keeps its room: nothing jumps
    svg.setAttribute("tabindex", "0");
    svg.setAttribute("aria-label", `${svg.getAttribute("aria-label")} Arrow keys read values.`);
    this.listen();
  }

  listen() {
    const on = (name, act, options) => this.svg.addEventListener(name, act, options);
    const mouse = (act) => (event) => event.pointerType !== "touch" && act(event);
    on("pointerdown", mouse((event) => this.press(event)));
    on("pointermove", mouse((event) => this.move(event)));
    on("pointerup", mouse((event) => this.release(event)));
    on("pointercancel", () => this.clear());
    on("pointerleave", mouse(() => this.drag || this.clear()));
    on("dblclick", () => this.reset());
    on("wheel", (event) => this.wheel(event), { passive: false });
    on("keydown", (event) => this.key(event));
    on("blur", () => this.clear());
    new Touches(this);
  }

  at(event) {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
    return { x: point.x, y: point.y };
  }

  under(point) {
    return this.drawings.find((d) => d.series.length + d.zoom.length && d.inside(point, 4)) || null;
  }

  // ---- zoom

  // Show the parts [from, to] of the first window, in all axes that share a direction with these.
  show(drawing, wanted) {
    for (const [w, way] of ["x", "y"].entries()) {
      if (!wanted[way] || !drawing.zoom.includes(way)) continue;
      let [from, to] = wanted[way];
      const size = Math.min(1, Math.max(DEEPEST, to - from)), middle = (from + to) / 2;
      from = Math.min(1 - size, Math.max(0, middle - size / 2));
      const window = size === 1 ? [0, 1] : [from, from + size];
      for (const other of this.drawings) {
        if (other.groups[w] === drawing.groups[w] && other.zoom.includes(way)) other.window[way] = window;
      }
    }
    this.clear();
    for (const one of this.drawings) if (one.zoom) one.redraw();
    const zoomed = this.drawings.some((d) => d.zoomed);
    this.back.classList.toggle("idle", !zoomed);
    this.svg.classList.toggle("zoomed", zoomed);
  }

  reset() {
    for (const one of this.drawings) this.show(one, { x: [0, 1], y: [0, 1] });
  }

  // Make the window `factor` as large, with `point` where it is.
  scale(drawing, point, factor) {
    const wanted = {};
    for (const way of ["x", "y"]) {
      const here = drawing.part(way, point[way]), [from, to] = drawing.window[way];
      wanted[way] = [here - (here - from) * factor, here + (to - here) * factor];
    }
    this.show(drawing, wanted);
  }

  pan(drawing, start, from, to) {
    const wanted = {};
    for (const way of ["x", "y"]) {
      const [low, high] = start[way], by = ((to[way] - from[way]) / drawing.length[way]) * (high - low);
      wanted[way] = [low - by, high - by];
    }
    this.show(drawing, wanted);
  }

  wheel(event) {
    const point = this.at(event), drawing = this.under(point);
    // A page that scrolls must not stop at every figure: the wheel zooms where a reader has clicked, or with Ctrl.
    if (!drawing || !drawing.zoom || !(event.ctrlKey || event.metaKey || document.activeElement === this.svg)) return;
    if (event.deltaY > 0 && !drawing.zoomed) return;
    event.preventDefault();
    this.scale(drawing, point, Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.005));
  }

  press(event) {
    const from = this.at(event), drawing = this.under(from);
    this.svg.focus({ preventScroll: true });
    if (event.button !== 0 || !drawing || !drawing.zoom) return;
    event.preventDefault(); // no selection of the words in the figure
    const start = { x: drawing.window.x, y: drawing.window.y };
    this.drag = { drawing, from, start, pan: event.shiftKey && drawing.zoomed };
    this.svg.setPointerCapture(event.pointerId);
  }

  move(event) {
    const to = this.at(event);
    if (!this.drag) return this.read(to);
    const { drawing, from, start, pan } = this.drag;
    if (pan) return this.pan(drawing, start, from, to);
    this.clear();
    const [x0, y0, x1, y1] = this.band(to);
    make("rect", { class: "band", x: x0, y: y0, width: x1 - x0, height: y1 - y0 }, this.overlay);
  }

  // The dragged rectangle; the whole height (or width) where it is very flat, or where only one axis can zoom.
  band(to) {
    const { drawing, from } = this.drag, [bx0, by0, bx1, by1] = drawing.box;
    let [x0, x1] = [from.x, to.x].sort((a, b) => a - b), [y0, y1] = [from.y, to.y].sort((a, b) => a - b);
    if (!drawing.zoom.includes("y") || (y1 - y0 < 10 && x1 - x0 >= 10)) [y0, y1] = [by0, by1];
    if (!drawing.zoom.includes("x") || (x1 - x0 < 10 && y1 - y0 >= 10)) [x0, x1] = [bx0, bx1];
    return [Math.max(x0, bx0), Math.max(y0, by0), Math.min(x1, bx1), Math.min(y1, by1)];
  }

  release(event) {
    if (!this.drag) return;
    const { drawing, from, pan } = this.drag, to = this.at(event);
    const [x0, y0, x1, y1] = this.band(to), far = Math.max(Math.abs(to.x - from.x), Math.abs(to.y - from.y));
    this.drag = null;
    if (pan || far < 6) return this.read(to);
    const x = [drawing.part("x", x0), drawing.part("x", x1)], y = [drawing.part("y", y1), drawing.part("y", y0)];
    this.show(drawing, { x, y });
  }

  // ---- reading

  read(point) {
    const drawing = this.under(point), picked = drawing ? nearest(drawing, point) : [];
    if (picked.length) this.tell(drawing, picked);
    else this.clear();
  }

  tell(drawing, picked) {
    this.clear();
    this.picked = { drawing, series: picked[0].series, index: picked[0].index };
    const [x0, y0, x1, y1] = drawing.box, places = [];
    for (const { series, index } of picked) {
      const place = { x: drawing.place("x", series.x[index]), y: drawing.place("y", series.y[index]) };
      places.push(place);
      if (drawing.inside(place, 1)) make("circle", { cx: place.x, cy: place.y, r: 5, stroke: series.colour }, this.overlay);
    }
    const { x, y } = places[0];
    make("path", { d: `M ${x} ${y0} L ${x} ${y1}` }, this.overlay);
    if (picked.length === 1 && drawing.inside(places[0], 1)) make("path", { d: `M ${x0} ${y} L ${x1} ${y}` }, this.overlay);
    const seen = { x, y: Math.min(y1, Math.max(y0, y)) }; // a line may run outside of the window
    this.box.show(readout(drawing, picked), seen, (y0 + y1) / 2);
  }

  clear() {
    this.overlay.replaceChildren();
    this.box.hide();
  }

  // Arrows go along a series and from one to the next; + and − zoom where one is; Escape shows all.
  key(event) {
    const all = this.drawings.flatMap((drawing) => drawing.series.map((series) => ({ drawing, series })));
    const now = this.picked || { ...all[0], index: -1 };
    const step = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
    if (event.key === "Escape") this.reset();
    else if (event.key === "+" || event.key === "-") {
      const { x, y } = now.series, i = Math.max(0, now.index);
      const point = { x: now.drawing.place("x", x[i]), y: now.drawing.place("y", y[i]) };
      this.scale(now.drawing, point, event.key === "+" ? 0.7 : 1 / 0.7);
    } else if (step && all.length) {
      const which = all.findIndex((one) => one.series === now.series) + step[1];
      const next = all[(which + all.length) % all.length];
      const order = next.series.x.map((v, i) => i).filter((i) => next.series.x[i] !== null && next.series.y[i] !== null);
      order.sort((a, b) => next.series.x[a] - next.series.x[b]);
      const place = step[1] ? 0 : order.indexOf(now.index) + step[0];
      const index = order[Math.min(order.length - 1, Math.max(0, place))];
      this.tell(next.drawing, [{ series: next.series, index }]);
    } else return;
    event.preventDefault();
  }
}

for (const hint of document.querySelectorAll(".hint[hidden]")) hint.hidden = false;
for (const data of document.querySelectorAll('figure script[type="application/json"]')) {
  const figure = data.closest("figure");
  new Plot(figure, figure.querySelector("svg"), JSON.parse(data.textContent));
}
