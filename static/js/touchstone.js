// What every page needs. A page's own module goes into {% block scripts %} and imports from here what it uses.
import "./keys.js";
import "./actions.js";
import "./palette.js";
import "./table.js";
import { errorIn, toast } from "./toast.js";

// A failed htmx request never fails silently: the server's sentence (or ours) is shown.
document.addEventListener("htmx:responseError", (event) => {
  if (event.defaultPrevented) return; // the page shows it where the mistake is
  const { xhr } = event.detail;
  toast(errorIn(xhr)?.words ?? `The server answered ${xhr.status}. Reload the page and try again.`, "error");
});
document.addEventListener("htmx:sendError", () => {
  toast("The server cannot be reached. Nothing was saved; check the connection and try again.", "error");
});
document.addEventListener("htmx:timeout", () => {
  toast("The server took too long to answer. Reload the page to see what happened.", "error");
});

// The server says something beside what it sends: HX-Trigger: {"toast": {"words": ...}}.
document.addEventListener("toast", ({ detail }) => toast(detail.words, detail.kind, detail.action));

// Where a row of the navigation is wider than the window, the current page's link is in view.
for (const row of document.querySelectorAll(".bar-nav, .subnav-inner")) {
  const link = row.querySelector("[aria-current]");
  if (link) row.scrollLeft = link.offsetLeft - row.offsetLeft - (row.clientWidth - link.offsetWidth) / 2;
}

// What the reader opened or closed stays so when the server sends it again: <details id="...">.
const chosen = new Map();
document.addEventListener("click", (event) => {
  const details = event.target.closest("details[id] > summary")?.parentElement;
  if (details) chosen.set(details.id, !details.open); // as it will be
});
document.addEventListener("htmx:afterSwap", () => {
  for (const [id, open] of chosen) {
    const details = document.getElementById(id);
    if (details) details.open = open;
  }
});

// Charts and their library come after the first paint, and only where there is something to draw.
const firstPaint = new Promise((resolve) => {
  new PerformanceObserver((list, observer) => {
    if (!list.getEntriesByName("first-contentful-paint").length) return;
    observer.disconnect();
    resolve();
  }).observe({ type: "paint", buffered: true });
});
let charts = null;
function wantCharts() {
  if (charts || !document.querySelector("[data-chart]")) return;
  charts = firstPaint.then(() => import("./charts.js"));
}
wantCharts();
document.addEventListener("htmx:load", wantCharts);
