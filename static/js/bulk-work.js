// Ratings of many items: keys go to the current card, an answer is sent immediately and moves on.
import { shortcutKeys } from "./shortcut.js";

const MOST_SECONDS = 120; // a pause is no work
const cards = () => [...document.querySelectorAll("[data-bulk-card]")];
const current = () => document.querySelector("[data-bulk-card].is-current");
let since = Date.now();

function choose(card) {
  for (const one of cards()) {
    one.classList.toggle("is-current", one === card);
    one.toggleAttribute("data-keys-first", one === card);
    for (const question of one.querySelectorAll(".work-question")) question.classList.toggle("is-asked", one === card);
  }
  card?.scrollIntoView({ block: "nearest" });
}
const isOpen = (card) => !card.classList.contains("is-done") && !card.classList.contains("is-sent");

document.addEventListener("change", (event) => {
  const card = event.target instanceof Element && event.target.closest("[data-bulk-card]");
  if (!card || event.target.type !== "radio") return;
  event.target.form.elements.active_seconds.value = Math.min(MOST_SECONDS, (Date.now() - since) / 1000);
  since = Date.now();
  event.target.form.requestSubmit();
  card.classList.add("is-sent");
  const all = cards();
  const after = [...all.slice(all.indexOf(card) + 1), ...all].find(isOpen);
  choose(after);
});
document.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.successful) return;
  const card = event.detail.elt.closest?.("[data-bulk-card]");
  card?.classList.remove("is-sent"); // it was not saved: the card is open again
});
document.addEventListener("htmx:afterSwap", () => {
  if (!current() && cards().some(isOpen)) choose(cards().find(isOpen));
});
document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.target.matches?.("textarea, select, input:not([type=radio])") || document.querySelector("dialog[open]")) return;
  const keys = shortcutKeys(event);
  const step = keys.includes("j") || event.key === "ArrowRight" ? 1 : keys.includes("k") || event.key === "ArrowLeft" ? -1 : 0;
  if (!step || event.target.matches?.("input")) return;
  const all = cards();
  const next = all[all.indexOf(current()) + step];
  if (!next) return;
  event.preventDefault();
  choose(next);
});
for (const element of document.querySelectorAll(".needs-script")) element.hidden = false;
choose(cards().find(isOpen));
