// Keys for any page, declared where the thing is:
//   <button data-key="s" data-key-label="Skip">        pressing s clicks it
//   <input data-key="/" data-key-label="Search">       inputs, selects and textareas are focused instead
//   <a data-key="Enter" data-key-label="Continue" href>
//   <span data-key="j k" data-key-label="Move" data-key-doc>   only listed in the help: a module of its own handles it
// Where several things have one key, the one inside [data-keys-first] gets it.
// Several keys for one thing are separated by spaces; names are those of KeyboardEvent.key ("ArrowLeft", "Escape", "Enter").
// Nothing happens while somebody types, with Ctrl/Alt/Meta held, under an open dialog, or on a disabled or hidden element.
// Keys are those of any keyboard layout (shortcut.js).
// Enter on a focused link or button does what the browser does. `?` lists what the page has.

import { shortcutKeys } from "./shortcut.js";

const typing = (element) =>
  element instanceof HTMLElement &&
  (element.isContentEditable || (element.matches("input, textarea, select") && !element.matches("[type=radio], [type=checkbox], [type=button], [type=submit]")));

const keysOf = (element) => element.dataset.key.split(" ");
const usable = (element) => !element.matches(":disabled") && element.checkVisibility();

export function pressKey(key) {
  const found = [...document.querySelectorAll("[data-key]:not([data-key-doc])")].filter((element) => keysOf(element).includes(key) && usable(element));
  const element = found.find((one) => one.closest("[data-keys-first]")) ?? found[0];
  if (!element) return false;
  if (typing(element)) element.focus();
  else element.click();
  return true;
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented) return;
  const keys = shortcutKeys(event);
  if (!keys.length) return;
  if (typing(event.target) || document.querySelector("dialog[open]")) return;
  if (event.key === "Enter" && event.target.closest?.("a, button, summary, [role=button]")) return;
  if (event.key === "?") {
    openHelp();
    event.preventDefault();
  } else if (keys.some(pressKey)) event.preventDefault();
});

const NAMES = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc", " ": "Space" };

function openHelp() {
  const dialog = document.getElementById("key-help");
  const list = dialog.querySelector("dl");
  const seen = new Set();
  const rows = [];
  for (const element of document.querySelectorAll("[data-key][data-key-label]")) {
    const keys = keysOf(element).filter((key) => !seen.has(key));
    if (!keys.length || element.matches(":disabled")) continue;
    keys.forEach((key) => seen.add(key));
    const term = document.createElement("dt");
    for (const key of keys) {
      const cap = document.createElement("kbd");
      cap.textContent = NAMES[key] ?? key;
      term.append(cap, " ");
    }
    const label = document.createElement("dd");
    label.textContent = element.dataset.keyLabel;
    rows.push(term, label);
  }
  list.replaceChildren(...rows);
  dialog.showModal();
}
document.addEventListener("click", (event) => {
  if (event.target instanceof Element && event.target.closest("[data-key-help]")) openHelp();
});
