// Marks on agent steps: j and k move a cursor, the keys of the marks press them; the same mark again takes it away.
import { shortcutKeys } from "./shortcut.js";

let form = null;
let justBad = null; // the step just marked bad: w corrects it, though the cursor is on the next
const cells = () => [...document.querySelectorAll("#work .work-cell:has(.step-mark)")];
const current = () => document.querySelector("#work .work-cell.is-current-step");
const AHEAD = 8; // cards
let goOn = false; // the last card is done, and the next ones are on their way
let meant = []; // keys pressed meanwhile, for the next cards

function move(direction) {
  justBad = null;
  const all = cells().filter((cell) => cell.checkVisibility());
  if (!all.length) return;
  const at = all.indexOf(current());
  const next = at < 0 ? (direction > 0 ? all.findIndex((cell) => cell.getBoundingClientRect().bottom > 160) : all.length - 1) : at + direction;
  const more = document.querySelector("#work .steps-more");
  if (more && next > all.length - AHEAD) htmx.trigger(more, "intersect"); // brought before it is needed
  if (next >= all.length && more) {
    goOn = true;
    return;
  }
  if (!all[next]) return;
  current()?.classList.remove("is-current-step");
  all[next].classList.add("is-current-step");
  all[next].scrollIntoView({ block: "nearest" });
}
document.addEventListener("htmx:afterSettle", () => {
  if (!goOn) return;
  goOn = false;
  move(1);
  const keys = meant;
  meant = [];
  keys.forEach(press);
});
document.addEventListener("htmx:afterRequest", (event) => {
  if (!event.detail.successful) [goOn, meant] = [false, []];
});

function press(key) {
  if (!current()) move(1);
  const mark = current()?.querySelector(`[data-mark="${key}"]`);
  if (!mark) return false;
  if (goOn) {
    meant.push(key);
    return true;
  }
  const taken = mark.checked;
  if (taken) {
    const none = current().querySelector('[data-mark=""]');
    if (none) none.checked = true;
    else mark.checked = false;
  } else mark.checked = true;
  mark.dispatchEvent(new Event("change", { bubbles: true }));
  const marked = current();
  if (!taken && key !== "e") move(1);
  if (!taken && key === "b") justBad = marked;
  return true;
}

// Whether the key does something here.
function act(key) {
  if (key === "j" || key === "k") move(key === "j" ? 1 : -1);
  else if (key === "w") {
    const correction = (justBad?.isConnected ? justBad : current())?.querySelector(".step-correction");
    if (!correction?.checkVisibility()) return false;
    correction.open = true;
    correction.querySelector("textarea").focus();
  } else return ["g", "m", "b", "e"].includes(key) && press(key);
  return true;
}

document.addEventListener("keydown", (event) => {
  if (!form?.isConnected || event.defaultPrevented) return;
  if (event.target.matches?.("textarea, select, input:not([type=radio], [type=checkbox])") || document.querySelector("dialog[open]") || !cells().length) return;
  if (shortcutKeys(event).some(act)) event.preventDefault();
});
// A tool that is chosen shows its parameters, and its required arguments to fill in, unless some were written.
const NO_ARGUMENTS = /^(\{\s*\})?$/;
function toolOf(select) {
  const side = select.closest("[data-side]")?.dataset.side;
  const groups = [...document.querySelectorAll("#work [data-tools]")];
  const group = groups.find(({ dataset }) => dataset.tools === "all" || dataset.tools === (side === "both" ? "left" : side));
  return select.value && group?.querySelector(`[data-tool="${CSS.escape(select.value)}"]`);
}
function showParameters(select) {
  const tool = toolOf(select);
  const place = select.parentElement.querySelector(".correction-call-parameters");
  if ((place.dataset.of ?? "") !== select.value) { // what stays is not read out once more
    place.dataset.of = select.value;
    place.replaceChildren(...(tool ? [...tool.cloneNode(true).children] : []));
  }
  return tool;
}
document.addEventListener("change", (event) => {
  if (!event.target.matches?.(".correction-call > select")) return;
  const select = event.target;
  const written = select.parentElement.querySelector("textarea");
  const templates = [...document.querySelectorAll("#work [data-template]")].map(({ dataset }) => dataset.template);
  const tool = showParameters(select);
  if (!NO_ARGUMENTS.test(written.value.trim()) && !templates.includes(written.value)) return;
  written.value = tool?.dataset.template ?? "";
  written.dispatchEvent(new Event("input", { bubbles: true }));
});
export const showAllParameters = () => document.querySelectorAll("#work .correction-call > select").forEach(showParameters);

// A mistake in a correction is where it was written.
export function showMistake(name) {
  const field = name && document.querySelector(`#work .work-cell [name="${CSS.escape(name)}"]:not([type=radio])`);
  if (!field) return;
  field.closest(".step-correction")?.setAttribute("open", "");
  field.setAttribute("aria-invalid", "true");
  field.classList.add("is-invalid");
  field.scrollIntoView({ block: "center" });
  field.focus({ preventScroll: true });
}
function forgetMistake({ target }) {
  for (const field of target.closest?.(".work-cell")?.querySelectorAll(".is-invalid") ?? []) {
    field.removeAttribute("aria-invalid");
    field.classList.remove("is-invalid");
  }
}
for (const type of ["input", "change"]) document.addEventListener(type, forgetMistake);

// A radio button that is pressed once more is let go: the first error can be taken back.
let wasChecked = null;
document.addEventListener("pointerdown", (event) => {
  const radio = event.target instanceof Element && event.target.closest(".step-mark-choice")?.querySelector('[data-mark="e"]');
  wasChecked = radio?.checked ? radio : null;
});
document.addEventListener("click", (event) => {
  if (!wasChecked || event.target !== wasChecked) return;
  wasChecked.checked = false;
  wasChecked.dispatchEvent(new Event("change", { bubbles: true }));
  wasChecked = null;
});

function count() {
  const place = form?.querySelector(".work-marked-count");
  if (!place) return;
  const said = [...new FormData(form)].filter(([name, value]) => /^step-\w+-\d+$/.test(name) && value);
  const names = new Set(said.map(([name]) => name));
  if (form.querySelector("[data-mark], [name^=first-]") === null || names.size) place.textContent = `${names.size} of ${place.dataset.total} steps marked`;
}
document.addEventListener("change", (event) => {
  if (form && event.target.form === form) count();
});

export function startMarks(next) {
  form = next;
  count();
  showAllParameters();
}
