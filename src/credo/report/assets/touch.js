// Fingers: a tap reads, two fingers zoom, one finger moves a plot that is zoomed, a double tap shows all again.
// Elsewhere one finger scrolls the page as it always does.

class Touches {
  constructor(plot) {
    this.plot = plot;
    this.last = 0;
    for (const name of ["touchstart", "touchmove", "touchend"]) {
      plot.svg.addEventListener(name, (event) => this[name](event), { passive: false });
    }
  }

  middle(touches) {
    const points = [...touches].map((touch) => this.plot.at(touch));
    const x = points.reduce((sum, p) => sum + p.x, 0) / points.length;
    const y = points.reduce((sum, p) => sum + p.y, 0) / points.length;
    return { x, y, far: points.length > 1 ? Math.hypot(points[0].x - points[1].x, points[0].y - points[1].y) : 0 };
  }

  touchstart(event) {
    const from = this.middle(event.touches), drawing = this.plot.under(from);
    this.moved = false;
    this.begun = drawing && { drawing, from, start: { x: drawing.window.x, y: drawing.window.y } };
    if (this.begun && event.touches.length === 2) event.preventDefault();
  }

  touchmove(event) {
    this.moved = true;
    if (!this.begun) return;
    const { drawing, from, start } = this.begun, to = this.middle(event.touches);
    if (event.touches.length === 2 && drawing.zoom) {
      event.preventDefault();
      this.plot.scale(drawing, to, Math.max(0.5, Math.min(2, from.far / Math.max(to.far, 1))));
      this.begun.from = to;
    } else if (event.touches.length === 1 && drawing.zoomed) {
      event.preventDefault();
      this.plot.pan(drawing, start, from, to);
    }
  }

  touchend(event) {
    if (this.moved || !this.begun || event.touches.length) return;
    event.preventDefault(); // no mouse events after it
    const now = event.timeStamp;
    if (now - this.last < 350) this.plot.reset();
    else this.plot.read(this.begun.from);
    this.last = now;
  }
}
