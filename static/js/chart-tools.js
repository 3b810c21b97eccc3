// The controls below a chart: zoom, smoothing, and downloads as a picture (PNG) or a table (CSV).

function button(words, act) {
  const made = document.createElement("button");
  Object.assign(made, { type: "button", className: "btn btn-link btn-sm", textContent: words });
  made.addEventListener("click", act);
  return made;
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// What a spreadsheet would take for a formula begins with an apostrophe.
const cell = (value) => {
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value ?? "");
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

// One line for each point: series, point, x, y, low, high, n.
export function asCsv(data) {
  const lines = [["series", "point", data.x?.name || "x", data.y?.name || "y", "low", "high", "n"]];
  for (const series of data.series) {
    const spans = new Map((series.intervals ?? series.band ?? []).map(([x, low, high]) => [x, [low, high]]));
    series.points.forEach((point, index) => {
      const [x, y] = Array.isArray(point) ? point : point && typeof point === "object" ? point.value : [index, point];
      const time = data.x?.type === "time" ? new Date(x).toISOString() : (data.x?.labels?.[x] ?? x);
      lines.push([series.name, point?.name, time, y, ...(spans.get(x) ?? ["", ""]), series.counts?.[index]]);
    });
  }
  return `${lines.map((line) => line.map(cell).join(",")).join("\r\n")}\r\n`;
}

async function savePicture(element, chart, background) {
  const drawing = new XMLSerializer().serializeToString(element.querySelector("svg"));
  const picture = new Image();
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(drawing)}`;
  await picture.decode();
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: 2 * chart.getWidth(), height: 2 * chart.getHeight() });
  const pen = canvas.getContext("2d");
  pen.fillStyle = background;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(picture, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => save(blob, `${element.id}.png`), "image/png");
}

function zoomBy(chart, factor) {
  const { start = 0, end = 100 } = chart.getOption().dataZoom[0] ?? {};
  const half = Math.min(50, (factor * (end - start)) / 2);
  const middle = Math.min(Math.max((start + end) / 2, half), 100 - half);
  chart.dispatchAction({ type: "dataZoom", start: middle - half, end: middle + half });
}

function smoothingControl(state, redraw) {
  const label = document.createElement("label");
  label.className = "chart-smoothing";
  const input = document.createElement("input");
  Object.assign(input, { type: "range", min: 0, max: 0.98, step: 0.02, value: state.smoothing });
  input.title = "Weight of the exponential moving average; the curve as it was measured stays, in pale";
  input.addEventListener("input", () => {
    state.smoothing = Number(input.value);
    redraw();
  });
  label.append("Smoothing", input);
  return label;
}

export function addTools(element, state, { data, redraw, tokens }) {
  const tools = element.closest("figure")?.querySelector(".chart-tools");
  if (!tools) return;
  const spec = data();
  tools.replaceChildren();
  const isCurve = spec.series.some((series) => series.points.length > 1);
  if (spec.smooth && isCurve) tools.append(smoothingControl(state, redraw));
  if (spec.zoom && isCurve) {
    const zoom = button("Zoom in", () => zoomBy(state.chart, 0.5));
    zoom.title = "Or turn the wheel with Ctrl; drag to move";
    tools.append(zoom, button("Zoom out", () => zoomBy(state.chart, 2)));
  }
  tools.append(
    button("PNG", () => savePicture(element, state.chart, tokens().surface)),
    button("CSV", () => save(new Blob([asCsv(data())], { type: "text/csv" }), `${element.id}.csv`)),
  );
}
