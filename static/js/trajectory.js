// The viewer: every step can be gone to, brought or not. The page has the steps around the one it opens at; the others
// come in chunks that keep their room (.steps-chunk), made here of what the page only names (.steps-rest).
import "./walk.js";
import { isComposing } from "./shortcut.js";
import { toast } from "./toast.js";

const CHUNK = 20; // steps brought at a time, as the server does
const viewer = document.querySelector(".viewer");
const prefix = `t${viewer.dataset.trajectory}-s`;
const minimap = () => viewer.querySelector(".minimap");
let current = null;
let wanted = null; // the step to keep in view while rows around it load, until the reader scrolls

const card = (index) => document.getElementById(`${prefix}${index}`);
const chunkOf = (index) =>
  [...viewer.querySelectorAll(".steps-chunk")].find((chunk) => Number(chunk.dataset.first) <= index && index <= Number(chunk.dataset.last));

function bring(chunk) {
  observer.unobserve(chunk);
  if (chunk.dataset.isBrought) return;
  chunk.dataset.isBrought = "1";
  htmx.ajax("GET", `${viewer.dataset.stepsUrl}&start=${chunk.dataset.first}&alone=1`, { source: chunk, target: chunk, swap: "innerHTML" });
}
const observer = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) bring(entry.target);
}, { rootMargin: "600px 0px" });

for (const rest of viewer.querySelectorAll(".steps-rest")) {
  const chunks = [];
  const last = Number(rest.dataset.last);
  for (let first = Number(rest.dataset.first); first <= last; first += CHUNK) {
    const chunk = document.createElement("div");
    chunk.className = "steps steps-chunk";
    chunk.dataset.first = first;
    chunk.dataset.last = Math.min(first + CHUNK - 1, last);
    chunk.style.setProperty("--step-count", Number(chunk.dataset.last) - first + 1);
    const words = document.createElement("p");
    words.className = "steps-more caption";
    words.textContent = `Steps ${first} to ${chunk.dataset.last}`;
    chunk.append(words);
    chunks.push(chunk);
  }
  rest.replaceWith(...chunks);
  for (const chunk of chunks) observer.observe(chunk);
}

function go(index) {
  const step = card(index);
  if (!step) {
    const chunk = chunkOf(index);
    if (!chunk) return;
    wanted = index;
    chunk.scrollIntoView({ behavior: "instant" }); // smoothly it would bring every chunk in between
    bring(chunk);
    return;
  }
  wanted = index;
  show(index);
  step.scrollIntoView({ block: "start", behavior: "instant" });
  const address = new URL(location.href); // so that a reload, or a copy of it, opens the page at this step
  address.searchParams.set("step", index);
  address.hash = `${prefix}${index}`;
  history.replaceState(null, "", address);
}

// The current step is marked on its card and in the minimap.
function show(index) {
  card(current)?.classList.remove("is-current");
  minimap()?.querySelector(".is-current")?.classList.remove("is-current");
  current = index;
  card(index)?.classList.add("is-current");
  const mark = [...(minimap()?.children ?? [])].findLast((one) => Number(one.dataset.mark) <= index);
  mark?.classList.add("is-current");
}

const failures = () => (minimap()?.dataset.failures ?? "").split(" ").filter(Boolean).map(Number);
function move(places, direction) {
  const at = current ?? (direction > 0 ? -1 : Infinity);
  const next = direction > 0 ? places.find((place) => place > at) : places.findLast((place) => place < at);
  if (next !== undefined) go(next);
}

document.addEventListener("click", (event) => {
  if (!(event.target instanceof Element)) return;
  const link = event.target.closest(`a[href*="#${prefix}"]`);
  const href = link?.getAttribute("href") ?? ""; // of a drawing's links too, which have no hash
  const isHere = link && new URL(href, location.href).pathname === location.pathname && viewer.querySelector(".steps");
  if (isHere && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    go(Number(href.slice(href.indexOf("#") + prefix.length + 1)));
  }
  const commented = event.target.closest("[data-comment-step]");
  if (commented) {
    event.preventDefault();
    document.getElementById("rail-comments").open = true;
    document.getElementById("new-comment-step").value = commented.dataset.commentStep;
    document.getElementById("new-comment-text").focus();
  }
  const copied = event.target.closest("[data-copy-link]");
  if (copied) copyLink(copied.dataset.copyLink);
  const step = event.target.closest("[data-step-move]");
  if (step) {
    const last = Number(document.getElementById("jump").max);
    const next = Math.min(last, Math.max(0, (current ?? -Number(step.dataset.stepMove)) + Number(step.dataset.stepMove)));
    go(current === null ? 0 : next);
  }
  const failed = event.target.closest("[data-failed-move]");
  if (failed) move(failures(), Number(failed.dataset.failedMove));
});

// A link to a section of the page: without a script it leads to a page of its own.
document.addEventListener("click", (event) => {
  const opener = event.target instanceof Element && event.target.closest("[data-opens]");
  const section = opener && document.getElementById(opener.dataset.opens);
  if (!section) return;
  event.preventDefault();
  section.open = true;
  section.scrollIntoView({ block: "nearest" });
  section.querySelector("summary").focus();
});

// The rewards of steps by what scored the trajectory last, on the cards that are there.
function showStepRewards(root) {
  const curve = document.getElementById("reward-curve");
  const rewards = new Map((curve?.dataset.stepRewards ?? "").split(" ").filter(Boolean).map((entry) => entry.split(":")));
  for (const step of root.querySelectorAll(".step[data-agent-step]")) {
    step.querySelector(".step-score")?.remove();
    const reward = Number(rewards.get(step.dataset.step));
    if (!rewards.has(step.dataset.step)) continue;
    const score = document.createElement("span");
    score.className = "step-score";
    score.title = `Reward of the step by ${curve.dataset.scorer}`;
    score.textContent = `${reward < 0 ? "\u2212" : "+"}${Math.abs(reward).toFixed(2)}`;
    step.querySelector(".step-head").append(score);
  }
}
document.addEventListener("htmx:afterSettle", () => showStepRewards(viewer));

// The address that opens the page at the step, without what belongs to this visit, such as the list it was opened from.
async function copyLink(index) {
  const address = `${location.origin}${location.pathname}?step=${index}#${prefix}${index}`;
  try {
    await navigator.clipboard.writeText(address);
    toast(`Link to step ${index} copied.`, "success");
  } catch {
    toast(`The browser does not let this page copy. The link is ${address}`, "error");
  }
}
const copyButtons = (root) => {
  for (const button of root.querySelectorAll("[data-copy-link]")) button.hidden = false;
};
copyButtons(viewer);
document.addEventListener("htmx:load", (event) => copyButtons(event.target));

const jump = document.getElementById("jump");
jump?.addEventListener("change", (event) => {
  if (event.target.checkValidity() && event.target.value !== "") go(Number(event.target.value));
});
jump?.addEventListener("keydown", (event) => {
  if (!isComposing(event) && (event.key === "Enter" || event.key === "Escape")) event.target.blur();
});
document.addEventListener("htmx:afterSettle", () => {
  if (current !== null) show(current); // the minimap of a long trajectory comes later
  if (wanted !== null && card(wanted)) go(wanted);
});
// Cards get their true height when they are drawn: the wanted step stays where it is until the reader moves on.
new ResizeObserver(() => {
  if (wanted !== null) card(wanted)?.scrollIntoView({ block: "start", behavior: "instant" });
}).observe(viewer.querySelector(".viewer-steps"));
for (const moved of ["wheel", "touchmove", "pointerdown", "keydown"]) document.addEventListener(moved, () => (wanted = null), { passive: true, capture: true });

// On a narrow screen the sections stand above the steps, closed.
if (matchMedia("(max-width: 62rem)").matches) for (const section of viewer.querySelectorAll(".rail-section")) section.open = section.contains(document.querySelector(":target"));

const keys = viewer.querySelector(".viewer-keys");
if (keys) keys.hidden = false;
const hash = location.hash.startsWith(`#${prefix}`) ? location.hash.slice(prefix.length + 1) : null;
const asked = hash ?? new URLSearchParams(location.search).get("step");
if (asked && /^\d+$/.test(asked) && keys) go(Number(asked));

// A text that is selected in a step is what its key node is proposed from.
viewer.addEventListener("htmx:configRequest", (event) => {
  if (!event.target.matches("[data-key-node]")) return;
  const selection = window.getSelection();
  const text = selection.toString().trim();
  const card = event.target.closest(".step");
  if (text && card && card.contains(selection.anchorNode) && card.contains(selection.focusNode)) event.detail.parameters.quote = text.slice(0, 1000);
});

// Who types an address or a text means it.
viewer.addEventListener("input", (event) => {
  const pattern = event.target.closest(".key-node-pattern");
  if (pattern && event.target.matches(".form-control")) pattern.querySelector("input[type=radio]").checked = true;
});
