// The viewer: every step can be gone to, brought or not. Steps come in chunks that keep their room (.steps-chunk).
import "./walk.js";
import { isComposing } from "./shortcut.js";

const viewer = document.querySelector(".viewer");
const prefix = `t${viewer.dataset.trajectory}-s`;
const minimap = viewer.querySelector(".minimap");
let current = null;
let wanted = null; // the step somebody went to: held in view while what is around it still comes, till she moves on

const card = (index) => document.getElementById(`${prefix}${index}`);
const chunkOf = (index) =>
  [...viewer.querySelectorAll(".steps-chunk")].find((chunk) => Number(chunk.dataset.first) <= index && index <= Number(chunk.dataset.last));

function go(index) {
  const step = card(index);
  if (!step) {
    const chunk = chunkOf(index);
    if (!chunk) return;
    wanted = index;
    chunk.scrollIntoView({ behavior: "instant" }); // smoothly it would bring every chunk in between
    htmx.trigger(chunk, "bring");
    return;
  }
  wanted = index;
  show(index);
  step.scrollIntoView({ block: "start", behavior: "instant" });
  history.replaceState(null, "", `#${prefix}${index}`);
}

// The current step is marked on its card and in the minimap.
function show(index) {
  card(current)?.classList.remove("is-current");
  minimap.querySelector(".is-current")?.classList.remove("is-current");
  current = index;
  card(index)?.classList.add("is-current");
  const marks = [...minimap.children];
  const mark = marks.findLast((one) => Number(one.dataset.mark) <= index);
  mark?.classList.add("is-current");
}

const marked = (selector) => [...minimap.querySelectorAll(selector)].map((mark) => Number(mark.dataset.mark));
function move(places, direction) {
  const at = current ?? (direction > 0 ? -1 : Infinity);
  const next = direction > 0 ? places.find((place) => place > at) : places.findLast((place) => place < at);
  if (next !== undefined) go(next);
}

document.addEventListener("click", (event) => {
  if (!(event.target instanceof Element)) return;
  const link = event.target.closest(`a[href^="#${prefix}"]`);
  if (link) {
    event.preventDefault();
    go(Number(link.getAttribute("href").slice(prefix.length + 1))); // of a drawing's links too, which have no hash
  }
  const step = event.target.closest("[data-step-move]");
  if (step) {
    const last = Number(document.getElementById("jump").max);
    const next = Math.min(last, Math.max(0, (current ?? -Number(step.dataset.stepMove)) + Number(step.dataset.stepMove)));
    go(current === null ? 0 : next);
  }
  const failed = event.target.closest("[data-failed-move]");
  if (failed) move(marked(".mark-failed"), Number(failed.dataset.failedMove));
});
document.getElementById("jump").addEventListener("change", (event) => {
  if (event.target.checkValidity() && event.target.value !== "") go(Number(event.target.value));
});
document.getElementById("jump").addEventListener("keydown", (event) => {
  if (!isComposing(event) && (event.key === "Enter" || event.key === "Escape")) event.target.blur();
});
document.addEventListener("htmx:afterSettle", () => {
  if (wanted !== null && card(wanted)) go(wanted);
});
for (const moved of ["wheel", "touchmove", "pointerdown", "keydown"]) document.addEventListener(moved, () => (wanted = null), { passive: true, capture: true });

viewer.querySelector(".viewer-keys").hidden = false;
const hash = location.hash.startsWith(`#${prefix}`) ? Number(location.hash.slice(prefix.length + 1)) : NaN;
if (Number.isInteger(hash)) go(hash);
