// Drawings by ECharts, loaded only where one is wanted. In a template:
//   <div class="chart" id="loss" data-chart="loss-data" role="img" aria-label="Training loss falls from 0.7 to 0.4"></div>
//   {{ data|json_script:"loss-data" }}
//   {% block scripts %}<script type="module" src="{% static 'js/charts.js' %}"></script>{% endblock %}
// The JSON is either a plain ECharts option, or the short form for lines, bars and points:
//   {"kind": "line" | "bar" | "scatter", "x": {"name": "step", "labels": [..]?}, "y": {"name": "loss", "min": 0?, "max": 1?},
//    "series": [{"name": "train", "points": [[x, y], ..] or [y, ..], "band": [[x, lo, hi], ..]?, "dashed": true?, "kind": "line"?}]}
// The length of a bar is its value, so the axis of bars has the zero on it.
// Colours come from the theme's Okabe-Ito tokens, in order; the drawing follows the theme and its box. Give every drawing
// an aria-label that says in words what it shows, and a table or sentence beside it.
// A fragment that brings new data by htmx redraws: same element id, new JSON. It brings it in a hidden element, since htmx
// is told to drop script tags: <div id="loss-data" hidden>{{ json }}</div>

const source = new URL("../vendor/echarts/echarts.min.js", import.meta.url);
const drawn = new Map(); // element -> chart
let loading = null;

function load() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = source;
    script.onload = () => resolve(window.echarts);
    script.onerror = () => reject(new Error(`${source} did not load`));
    document.head.append(script);
  });
  return loading;
}

export function tokens() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  return {
    ink: read("--ts-ink"), quiet: read("--ts-ink-3"), line: read("--ts-line"), surface: read("--ts-surface"),
    accent: read("--ts-accent"), series: [1, 2, 3, 4, 5, 6, 7, 8].map((n) => read(`--ts-c${n}`)),
  };
}

function axis(spec, t, value, fromZero) {
  const { labels, ...rest } = spec ?? {};
  return {
    type: labels ? "category" : "value", data: labels, scale: !fromZero,
    nameLocation: value ? "end" : "middle", nameGap: value ? 12 : 28,
    nameTextStyle: { color: t.quiet, align: value ? "left" : "center" },
    axisLine: { show: !value, lineStyle: { color: t.line } }, axisTick: { show: false },
    axisLabel: { color: t.quiet }, splitLine: { show: value, lineStyle: { color: t.line } }, ...rest,
  };
}

// A band is one filled outline: stacked lines would add up the other axis where both are numbers.
function band(series, color) {
  const upper = series.band.map(([x, , hi]) => [x, hi]);
  const lower = series.band.map(([x, lo]) => [x, lo]).reverse();
  return [{
    type: "custom", name: `${series.name} range`, silent: true, tooltip: { show: false }, z: 1,
    encode: { x: 0, y: [1, 2] }, data: series.band,
    renderItem: (item, api) => (item.dataIndex ? null : {
      type: "polygon",
      shape: { points: [...upper, ...lower].map((point) => api.coord(point)) },
      style: { fill: color, opacity: 0.16 },
    }),
  }];
}

const DASHES = ["solid", "dashed", "dotted", [8, 3, 2, 3]]; // so that colour is never alone
const SHAPES = ["circle", "triangle", "rect", "diamond"];

// Of the legend at this width in pixels, so that long names do not lie over the chart.
function legendLines(data, width) {
  const names = data.kind && data.series.length > 1 ? data.series.map((one) => one.name) : [];
  let lines = 1, used = 0;
  for (const name of names) {
    const needed = 30 + 6 * name.length;
    if (used && used + needed > width) { lines += 1; used = 0; }
    used += needed;
  }
  return lines;
}

function option(data, t, width) {
  const shared = {
    color: t.series, textStyle: { fontFamily: getComputedStyle(document.body).fontFamily, color: t.ink }, animationDuration: 250,
    grid: { left: 8, right: 16, top: 19 + 17 * legendLines(data, width), bottom: data.x?.name ? 36 : 12, containLabel: true },
    // Drawn, not HTML: the page allows no inline styles, and what people wrote stays text.
    tooltip: { renderMode: "richText", trigger: data.kind === "scatter" ? "item" : "axis", backgroundColor: t.surface, borderColor: t.line, textStyle: { color: t.ink, fontSize: 12 }, confine: true },
    legend: { top: 0, right: 0, icon: "roundRect", itemWidth: 14, itemHeight: 3, textStyle: { color: t.quiet } },
  };
  if (!data.kind) return { ...shared, ...data };
  const series = data.series.flatMap((one, index) => [
    {
      name: one.name, type: one.kind ?? data.kind, data: one.points, symbolSize: 7, color: t.series[index % t.series.length],
      showSymbol: !one.kind && (one.sparse || data.kind === "scatter" || one.points.length < 3), connectNulls: one.sparse,
      symbol: SHAPES[index % SHAPES.length], barMaxWidth: 36, itemStyle: data.kind === "bar" ? { borderRadius: [3, 3, 0, 0] } : {},
      lineStyle: { width: 2, type: one.dashed ? "dashed" : DASHES[Math.floor(index / 4) % DASHES.length] },
    },
    ...(one.band ? band(one, t.series[index % t.series.length]) : []),
  ]);
  return {
    ...shared, xAxis: axis(data.x, t, false), yAxis: axis(data.y, t, true, series.some((one) => one.type === "bar")), series,
    legend: { ...shared.legend, show: data.series.length > 1, data: data.series.map((one) => one.name) },
  };
}

export async function draw(element) {
  const echarts = await load();
  const data = JSON.parse(document.getElementById(element.dataset.chart).textContent);
  let chart = drawn.get(element);
  if (!chart) {
    chart = echarts.init(element, null, { renderer: "svg" });
    drawn.set(element, chart);
    new ResizeObserver(() => {
      chart.resize();
      draw(element);
    }).observe(element);
  }
  chart.setOption(option(data, tokens(), element.clientWidth), true);
}

function drawAll() {
  for (const [element, chart] of drawn) {
    if (element.isConnected) continue;
    chart.dispose();
    drawn.delete(element);
  }
  document.querySelectorAll("[data-chart]").forEach(draw);
}
drawAll();
document.addEventListener("themechange", drawAll);
document.addEventListener("htmx:load", drawAll);
