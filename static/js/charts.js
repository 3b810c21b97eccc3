// Draws every [data-chart] of the page by ECharts, which is loaded here and only here. touchstone.js imports this module
// after the first paint, where a page has a chart. In a template: {% load charts %}{% chart spec "loss" "in words" %};
// what a spec has is described in apps/core/charts.py.
// Colours are the theme's Okabe-Ito tokens: by `style` where a series has one (a model has the same on every page),
// else in order. The drawing follows the theme and the width of its box.
// A fragment that brings new data by htmx redraws: {% chart_data spec "loss" %}.
import { addTools } from "./chart-tools.js";

const drawn = new Map(); // element -> {chart, smoothing, observer}
let library = null;
const load = () => (library ??= import("../vendor/echarts/echarts.min.js"));

export function tokens() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  return {
    ink: read("--ts-ink"), quiet: read("--ts-ink-3"), line: read("--ts-line"), surface: read("--ts-surface"),
    accent: read("--ts-accent"), series: [1, 2, 3, 4, 5, 6, 7, 8].map((n) => read(`--ts-c${n}`)),
  };
}

const DASHES = ["solid", "dashed", "dotted", [8, 3, 2, 3]]; // so that colour is never alone
const SHAPES = ["circle", "triangle", "rect", "diamond"];

// The number of a series in the palette: its first eight in solid lines, then dashed, dotted, dash-dot.
const look = (series, index, t) => {
  const style = series.style ?? index;
  const round = Math.floor(style / t.series.length) % DASHES.length;
  return { color: t.series[style % t.series.length], dash: DASHES[round], shape: SHAPES[(series.style === undefined ? index : round) % SHAPES.length] };
};

const grouped = (value, places) => value.toLocaleString("en", { maximumFractionDigits: places }).replace("-", "\u2212");
export function shown(axis, value) {
  if (value === null || value === undefined) return "no data";
  if (typeof value !== "number") return String(value);
  if (axis?.share) return `${(100 * value).toFixed(1)} %`.replace("-", "\u2212");
  const text = grouped(value, Math.abs(value) >= 100 ? 1 : 3);
  return axis?.unit ? `${text} ${axis.unit}` : text;
}
const title = (axis) => (axis?.unit || axis?.share ? `${axis.name} (${axis.share ? "%" : axis.unit})` : axis?.name ?? "");

function axis(spec, t, isValue, fromZero) {
  const { labels, share, count, unit, name, ...rest } = spec ?? {};
  return {
    type: labels ? "category" : "value", data: labels, scale: !fromZero, name: title(spec),
    nameLocation: isValue ? "end" : "middle", nameGap: isValue ? 12 : 28, minInterval: count ? 1 : undefined,
    nameTextStyle: { color: t.quiet, align: isValue ? "left" : "center" },
    axisLine: { show: !isValue, lineStyle: { color: t.line } }, axisTick: { show: false },
    axisLabel: { color: t.quiet, hideOverlap: true, ...(share ? { formatter: (value) => grouped(100 * value, 1) } : {}) },
    splitLine: { show: isValue, lineStyle: { color: t.line } }, ...rest,
  };
}

// A band is one filled outline: stacked lines would add up the other axis where both are numbers.
function band(series, color) {
  const upper = series.band.map(([x, , hi]) => [x, hi]);
  const lower = series.band.map(([x, lo]) => [x, lo]).reverse();
  return {
    type: "custom", name: `${series.name} range`, silent: true, tooltip: { show: false }, z: 1, clip: true,
    encode: { x: 0, y: [1, 2] }, data: series.band,
    renderItem: (item, api) => (item.dataIndex ? null : {
      type: "polygon", shape: { points: [...upper, ...lower].map((point) => api.coord(point)) }, style: { fill: color, opacity: 0.16 },
    }),
  };
}

// Intervals as lines with ends. place, of: where the bar of this series is within its category.
function intervals(series, color, place, of) {
  return {
    type: "custom", name: `${series.name} interval`, silent: true, tooltip: { show: false }, z: 4, clip: true,
    encode: { x: 0, y: [1, 2] }, data: series.intervals,
    renderItem: (item, api) => {
      const [x, lo] = api.coord([api.value(0), api.value(1)]);
      const hi = api.coord([api.value(0), api.value(2)])[1];
      const wide = of > 1 ? Math.min(36, (0.8 * api.size([1, 0])[0]) / of) : 0;
      const middle = x + wide * (place - (of - 1) / 2);
      const line = (x1, y1, x2, y2) => ({ type: "line", shape: { x1, y1, x2, y2 }, style: { stroke: color, lineWidth: 1.5 } });
      return { type: "group", children: [line(middle, lo, middle, hi), line(middle - 4, lo, middle + 4, lo), line(middle - 4, hi, middle + 4, hi)] };
    },
  };
}

// Exponential moving average without the bias to its beginning, as TensorBoard and W&B smooth curves. Gaps stay gaps.
export function smoothed(points, weight) {
  let last = 0, known = 0;
  return points.map(([x, y]) => {
    if (y === null) return [x, null];
    known += 1;
    last = last * weight + (1 - weight) * y;
    return [x, last / (1 - weight ** known)];
  });
}

// Of the legend at this width in pixels, so that long names do not lie over the chart.
function legendLines(data, width) {
  const names = data.series.length > 1 ? data.series.map((series) => series.name) : [];
  let lines = 1, used = 0;
  for (const name of names) {
    const needed = 30 + 6 * name.length;
    if (used && used + needed > width) { lines += 1; used = 0; }
    used += needed;
  }
  return lines;
}

function pointOf(series, index) {
  const point = series.points[index];
  if (Array.isArray(point)) return point;
  return point && typeof point === "object" ? point.value : [index, point];
}

// Drawn as text, not HTML: the page allows no inline styles, and what people wrote stays text.
function tooltipText(data, items) {
  const lines = [];
  for (const item of items) {
    const series = data.series.find((each) => each.name === item.seriesName);
    if (!series) continue;
    const [x, y] = pointOf(series, item.dataIndex);
    if (!lines.length) lines.push(data.x?.labels ? String(data.x.labels[x]) : data.x?.type === "time" ? item.axisValueLabel ?? "" : `${data.x?.name ?? ""} ${shown(data.x, x)}`.trim());
    const span = (series.intervals ?? series.band ?? []).find((each) => each[0] === x);
    const range = span ? ` [${shown(data.y, span[1])}, ${shown(data.y, span[2])}]` : "";
    const n = series.counts ? `, n ${grouped(series.counts[item.dataIndex], 0)}` : "";
    const named = series.points[item.dataIndex]?.name;
    lines.push(`${named ? `${named}\n` : ""}${item.seriesName}: ${shown(data.y, y)}${range}${n}`);
  }
  return lines.join("\n");
}

function option(data, t, width, smoothing) {
  const bars = data.series.filter((series) => (series.kind ?? data.kind) === "bar");
  const used = new Map(); // two series of one model keep its colour and differ in the dash
  const series = data.series.flatMap((one, index) => {
    const again = one.style === undefined ? 0 : (used.get(one.style) ?? 0);
    used.set(one.style, again + 1);
    const { color, dash, shape } = look(again ? { ...one, style: one.style + again * t.series.length } : one, index, t);
    const kind = one.kind ?? data.kind;
    const line = {
      name: one.name, type: kind, data: one.points, symbolSize: 7, color, symbol: shape, barMaxWidth: 36,
      showSymbol: !one.kind && (one.sparse || data.kind === "scatter" || one.points.length < 3), connectNulls: Boolean(one.sparse),
      itemStyle: kind === "bar" ? { borderRadius: [3, 3, 0, 0] } : {}, lineStyle: { width: 2, type: one.dashed ? "dashed" : dash },
    };
    const extras = [
      ...(one.band ? [band(one, color)] : []),
      ...(one.intervals ? [intervals(one, kind === "bar" ? t.ink : color, bars.indexOf(one), kind === "bar" ? bars.length : 1)] : []),
    ];
    if (!smoothing || kind !== "line" || !Array.isArray(one.points[0])) return [line, ...extras];
    const raw = { ...line, name: `${one.name} raw`, silent: true, tooltip: { show: false }, lineStyle: { width: 1, opacity: 0.3 }, z: 1 };
    return [raw, { ...line, data: smoothed(one.points, smoothing) }, ...extras];
  });
  return {
    color: t.series, textStyle: { fontFamily: getComputedStyle(document.body).fontFamily, color: t.ink }, animation: false,
    grid: { left: 8, right: 16, top: 22 + (data.series.length > 1 ? 20 * legendLines(data, width) : 12), bottom: data.x?.name ? 36 : 12, containLabel: true },
    tooltip: {
      renderMode: "richText", trigger: data.kind === "scatter" ? "item" : "axis", confine: true, backgroundColor: t.surface, borderColor: t.line,
      textStyle: { color: t.ink, fontSize: 12 }, formatter: (items) => tooltipText(data, [items].flat()),
    },
    legend: {
      top: 0, right: 0, icon: "roundRect", itemWidth: 14, itemHeight: 3, textStyle: { color: t.quiet },
      show: data.series.length > 1, data: data.series.map((one) => one.name),
    },
    dataZoom: data.zoom ? [{ type: "inside", zoomOnMouseWheel: "ctrl", moveOnMouseMove: true, filterMode: "none" }] : [],
    xAxis: axis(data.x, t, false), yAxis: axis(data.y, t, true, bars.length > 0), series,
  };
}

export const dataOf = (element) => JSON.parse(document.getElementById(element.dataset.chart).textContent);

export async function draw(element) {
  const { init } = await load();
  if (!element.isConnected) return;
  let state = drawn.get(element);
  if (!state) {
    state = { chart: init(element, null, { renderer: "svg" }), smoothing: 0, observer: new ResizeObserver(() => redraw(element)) };
    drawn.set(element, state);
    addTools(element, state, { data: () => dataOf(element), redraw: () => redraw(element), tokens });
    state.observer.observe(element);
  }
  redraw(element);
}

function redraw(element) {
  const { chart, smoothing } = drawn.get(element);
  const zoom = chart.getOption()?.dataZoom?.[0];
  chart.resize();
  chart.setOption(option(dataOf(element), tokens(), element.clientWidth, smoothing), true);
  if (zoom && (zoom.start > 0 || zoom.end < 100)) chart.dispatchAction({ type: "dataZoom", start: zoom.start, end: zoom.end });
}

function drawAll() {
  for (const [element, { chart, observer }] of drawn) {
    if (element.isConnected) continue;
    observer.disconnect();
    chart.dispose();
    drawn.delete(element);
  }
  document.querySelectorAll("[data-chart]").forEach(draw);
}
drawAll();
document.addEventListener("themechange", drawAll);
document.addEventListener("htmx:load", drawAll);
