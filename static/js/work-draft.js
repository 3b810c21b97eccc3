// Drafts: kept here at every stroke, sent to the server soon after, and forgotten here once the server has them.
import { isActive } from "./work-clock.js";

const AFTER = 700; // ms without a stroke
const RENEW = 60_000; // ms: somebody who reads keeps her item
let form = null;
let timer = 0;
let savedAt = null;
let sentAt = 0;
let state = "";

const key = () => `touchstone-draft-${form.dataset.assignment}`;
const NOT_SAID = ["csrfmiddlewaretoken", "idempotency_key", "active_seconds", "again"];
const fields = () => Object.fromEntries([...new FormData(form)].filter(([name]) => !NOT_SAID.includes(name)));
const isGone = () => !form?.isConnected;

// The server's clock, whatever this one says. base: the draft of the server that was changed.
const now = () => new Date(Date.now() + ahead).toISOString();
let ahead = 0; // ms
function keep() {
  localStorage.setItem(key(), JSON.stringify({ at: now(), base: form.dataset.draftSaved, fields: fields() }));
}

async function send() {
  clearTimeout(timer);
  if (isGone()) return;
  const sending = form;
  const name = key();
  const kept = localStorage.getItem(name);
  sentAt = Date.now();
  try {
    const body = new URLSearchParams(new FormData(sending)).toString();
    const keepalive = body.length < 60_000; // browsers refuse to keep more alive
    const headers = { "Content-Type": "application/x-www-form-urlencoded" };
    const response = await fetch(sending.dataset.draftUrl, { method: "POST", body, headers, keepalive });
    if (!response.ok || response.redirected) throw new Error(`The server answered ${response.status}.`);
    const { held, at } = await response.json();
    sending.dataset.draftSaved = at;
    if (localStorage.getItem(name) === kept) localStorage.removeItem(name);
    if (sending !== form) return;
    savedAt = Date.now();
    state = held ? "saved" : "late";
  } catch (error) {
    // Nothing is lost: what was written is in this browser, and is sent again when the server answers.
    console.warn("The draft stays in this browser:", error);
    if (sending === form) state = "offline";
  }
  show();
}

function show() {
  if (isGone()) return;
  const place = form.querySelector("#saved");
  place.classList.toggle("is-offline", state === "offline" || state === "late");
  if (state === "offline") place.textContent = "offline: kept here";
  else if (state === "late") place.textContent = "draft saved; the item went to somebody else, what you submit is kept aside";
  else if (savedAt) place.textContent = `saved ${ago(Date.now() - savedAt)}`;
}
function ago(ms) {
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s ago`;
  return `${Math.round(seconds / 60)} min ago`;
}

// What was written on a step is seen.
const unfold = (field) => field.closest?.(".step-correction")?.setAttribute("open", "");

// A field as it was left. What belongs to a step that is not on the page yet waits in a hidden one.
export function fill(name, value) {
  const field = form.elements[name];
  if (field instanceof RadioNodeList) field.value = value;
  else if (["radio", "checkbox"].includes(field?.type)) field.checked = field.value === value;
  else if (field) field.value = value;
  if (field && value) unfold(field);
  if (!value || new FormData(form).getAll(name).at(-1) === value) return;
  const held = Object.assign(document.createElement("input"), { type: "hidden", name, value });
  held.dataset.held = "";
  held.setAttribute("form", form.id);
  form.closest("#work").prepend(held);
}
// Steps that have just been brought take over what waited for them.
export function takeOver() {
  for (const held of document.querySelectorAll("#work [data-held]")) {
    const there = [...form.elements].filter((field) => field !== held && field.name === held.name);
    const field = there.find((one) => one.type !== "radio" || one.value === held.value);
    if (!field) continue;
    if (["radio", "checkbox"].includes(field.type)) field.checked = true;
    else field.value = held.value;
    unfold(field);
    held.remove();
  }
}

function restore(addComment) {
  const kept = localStorage.getItem(key());
  if (!kept) return;
  const { at, base, fields: said } = JSON.parse(kept);
  // Another browser, or another tab, may have sent a later one.
  const isNewer = base === form.dataset.draftSaved || new Date(at) > new Date(form.dataset.draftSaved || 0);
  if (!isNewer) return localStorage.removeItem(key());
  for (const field of form.elements) if (field.type === "checkbox" && field.name !== "again") field.checked = field.name in said;
  for (const [name, value] of Object.entries(said)) {
    while (!form.elements[name] && /^comment-\d{1,3}-/.test(name) && form.querySelectorAll(".work-comment").length < 100) addComment();
    fill(name, value);
  }
  if (Object.entries(said).some(([name, value]) => name.endsWith("-text") && value)) form.querySelector(".work-comments").open = true;
  send();
}

function changed(event) {
  if (!form || event.target.form !== form) return;
  for (const held of document.querySelectorAll("#work [data-held]")) if (held.name === event.target.name) held.remove();
  later();
}
function later() {
  keep();
  clearTimeout(timer);
  timer = setTimeout(send, AFTER);
}
document.addEventListener("input", changed);
document.addEventListener("change", changed);
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "hidden" && !isGone() && localStorage.getItem(key())) send();
});
addEventListener("online", () => { if (state === "offline") send(); });
document.addEventListener("htmx:beforeRequest", (event) => { if (event.detail.elt === form) clearTimeout(timer); });
document.addEventListener("htmx:afterRequest", (event) => {
  const posted = event.detail.elt;
  if (event.detail.successful && posted.dataset?.assignment) localStorage.removeItem(`touchstone-draft-${posted.dataset.assignment}`);
});
setInterval(() => {
  if (isGone()) return;
  if (state === "offline" && Date.now() - sentAt > 5000) send();
  else if (isActive() && Date.now() - sentAt > RENEW) send();
  else show();
}, 1000);

// Whoever answers before this module is ready has a draft too.
const isTouched = (field) =>
  ["radio", "checkbox"].includes(field.type)
    ? field.checked !== field.defaultChecked
    : field.matches("textarea, input:not([type=hidden])") && field.value !== field.defaultValue;

export function startDrafts(next, addComment) {
  form = next;
  ahead = new Date(form.dataset.now) - Date.now();
  state = "";
  savedAt = null;
  sentAt = Date.now();
  if (!localStorage.getItem(key()) && [...form.elements].some(isTouched)) later();
  restore(addComment);
}
