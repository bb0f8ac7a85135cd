// One set of axes in a figure's SVG: moves what matplotlib drew when the window changes, and draws new ticks.

function make(tag, attributes, parent) {
  const node = document.createElementNS(parent.namespaceURI, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  parent.append(node);
  return node;
}

class Drawing {
  constructor(svg, group, data) {
    Object.assign(this, data);
    for (const series of this.series) if (typeof series.x === "number") series.x = this.series[series.x].x;
    const [x0, y0, x1, y1] = data.box;
    this.svg = svg;
    this.group = group;
    this.origin = { x: x0, y: y1 };
    this.length = { x: x1 - x0, y: y0 - y1 }; // upwards is negative in SVG
    this.window = { x: [0, 1], y: [0, 1] };
    this.pieces = null;
    this.own = make("g", {}, group);
  }

  get zoomed() {
    return ["x", "y"].some((w) => this.window[w][0] !== 0 || this.window[w][1] !== 1);
  }

  inside(point, slack = 0) {
    const [x0, y0, x1, y1] = this.box;
    return point.x >= x0 - slack && point.x <= x1 + slack && point.y >= y0 - slack && point.y <= y1 + slack;
  }

  // Where a value lies in the SVG, and which part of the first window lies at a place of the SVG.
  place(way, value) {
    const [from, to] = this.window[way];
    return this.origin[way] + ((fraction(this[way], value) - from) / (to - from)) * this.length[way];
  }

  part(way, place) {
    const [from, to] = this.window[way];
    return from + ((place - this.origin[way]) / this.length[way]) * (to - from);
  }

  // Where a place of the first drawing is now.
  moved(way, place) {
    const [from, to] = this.window[way], start = (place - this.origin[way]) / this.length[way];
    return this.origin[way] + ((start - from) / (to - from)) * this.length[way];
  }

  // Everything that follows the data, with the places that matplotlib gave it.
  collect() {
    this.pieces = [];
    for (const mark of this.group.querySelectorAll("g.x, g.y, g.xy")) {
      const ways = { x: /x/.test(mark.classList[0]), y: /y/.test(mark.classList[0]) };
      const shape = mark.classList.contains("shape");
      for (const node of mark.querySelectorAll("path, use, text")) {
        const inDefs = node.closest("defs") !== null;
        if (node.tagName === "path" && inDefs && !shape) continue; // the form of a marker
        if (node.tagName === "use" && shape) continue; // its path moves
        const piece = { node, ways, shift: { x: 0, y: 0 } };
        if (node.tagName === "path") {
          const use = inDefs && mark.querySelector(`use[*|href="#${node.id}"]`);
          if (use) piece.shift = { x: +use.getAttribute("x"), y: +use.getAttribute("y") };
          piece.path = node.getAttribute("d").split(/\s+/).map((t) => (/^[-\d.]/.test(t) ? +t : t));
        } else {
          piece.at = { x: +node.getAttribute("x"), y: +node.getAttribute("y") };
        }
        this.pieces.push(piece);
      }
    }
    const ticks = this.group.querySelectorAll("g.xtick, g.ytick");
    ticks[0].parentNode.parentNode.insertBefore(this.own, ticks[0].parentNode);
  }

  redraw() {
    if (this.pieces === null) this.collect();
    for (const { node, ways, shift, path, at } of this.pieces) {
      if (path) {
        let way = "y";
        const next = path.map((t) => {
          if (typeof t === "string") return t;
          way = way === "y" ? "x" : "y";
          return ways[way] ? (this.moved(way, t + shift[way]) - shift[way]).toFixed(2) : t;
        });
        node.setAttribute("d", next.join(" "));
        continue;
      }
      const now = { x: ways.x ? this.moved("x", at.x) : at.x, y: ways.y ? this.moved("y", at.y) : at.y };
      for (const way of ["x", "y"]) if (ways[way]) node.setAttribute(way, now[way].toFixed(2));
      // Words are not clipped as lines are.
      if (node.tagName === "text") {
        const seen = this.inside({ x: ways.x ? now.x : this.box[0], y: ways.y ? now.y : this.box[1] }, 1);
        node.style.display = seen ? "" : "none";
      }
    }
    this.own.replaceChildren();
    for (const way of ["x", "y"]) this.ticks(way);
  }

  // matplotlib's ticks at first, our own within a smaller window.
  ticks(way) {
    const first = this.group.querySelectorAll(`g.${way}tick`);
    const changed = this.window[way][0] !== 0 || this.window[way][1] !== 1;
    for (const tick of first) tick.style.display = changed ? "none" : "";
    if (!changed) return;
    const [x0, y0, x1, y1] = this.box, across = way === "x";
    const labelled = [...first].some((tick) => tick.querySelector("text"));
    const count = Math.max(2, Math.round(Math.abs(this.length[way]) / (across ? 62 : 38)));
    const labels = [];
    for (const [value, text] of ticksOf(this[way], ...this.window[way], count)) {
      const at = this.place(way, value);
      const line = make("path", { d: across ? `M ${at} ${y1} L ${at} ${y0}` : `M ${x0} ${at} L ${x1} ${at}` }, this.own);
      line.setAttribute("class", "grid");
      if (!labelled) continue; // an inner panel, whose neighbour has the numbers
      const where = across ? { x: at, y: y1 + 13.7, class: "number middle" } : { x: x0 - 6.5, y: at + 3.5, class: "number end" };
      const label = make("text", where, this.own);
      label.textContent = text;
      labels.push(label);
    }
    if (!across) this.fit(labels);
  }

  // Numbers of a small window are long: make them smaller rather than write over the axis' name.
  fit(labels) {
    const widest = Math.max(0, ...labels.map((label) => label.getBBox().width));
    const room = this.room === undefined ? (this.room = this.free()) : this.room;
    if (widest <= room) return;
    for (const label of labels) label.style.fontSize = `${Math.max(7, (9.5 * room) / widest)}px`;
  }

  free() {
    let left = 0;
    const end = this.box[0] - 6;
    for (const text of this.group.querySelectorAll("text")) {
      if (text.closest("g.ytick, g.xtick, g.x, g.y, g.xy") || this.own.contains(text)) continue;
      const box = text.getBBox(), turned = /rotate\(-90/.test(text.getAttribute("transform") || "");
      if (turned) left = Math.max(left, +text.getAttribute("x") + 0.25 * box.height);
    }
    return end - left - 2;
  }
}
