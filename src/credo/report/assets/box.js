// The box that shows what is read, beside the place that is read.

class Box {
  constructor(frame, svg) {
    this.frame = frame;
    this.svg = svg;
    this.node = document.createElement("div");
    this.node.className = "readout";
    this.node.setAttribute("role", "status"); // read aloud, too
    frame.append(this.node);
  }

  // Lines of {name, text, colour} beside a place of the SVG; `middle` is the height of the middle of its axes.
  show(lines, place, middle) {
    this.node.replaceChildren(...lines.map(lineOf));
    this.node.classList.add("shown");
    const frame = this.frame.getBoundingClientRect(), matrix = this.svg.getScreenCTM();
    const at = new DOMPoint(place.x, place.y).matrixTransform(matrix);
    const low = at.y > new DOMPoint(0, middle).matrixTransform(matrix).y;
    const { offsetWidth: width, offsetHeight: height } = this.node, x = at.x - frame.left, y = at.y - frame.top;
    let left = x + 14;
    if (left + width > frame.width) left = x - 14 - width;
    const beside = left >= 0;
    if (!beside) left = Math.max(0, Math.min(frame.width - width, x - width / 2));
    const top = beside ? y - height / 2 : low ? y - height - 14 : y + 14;
    this.node.style.left = `${left}px`;
    this.node.style.top = `${Math.max(-40, top)}px`;
  }

  hide() {
    this.node.classList.remove("shown");
  }
}

// Texts are set as text, never as HTML: names come from tables.
function lineOf({ name, text, colour }) {
  const line = document.createElement("div"), head = document.createElement("span"), value = document.createElement("b");
  head.textContent = name + (name && text ? ": " : "");
  value.textContent = text;
  if (colour) line.style.setProperty("--mark", colour);
  line.className = colour ? "marked" : "";
  line.append(head, value);
  return line;
}
