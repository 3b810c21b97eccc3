// Tables (templates/components/table/): j and k move through the rows, x selects, Enter opens; what is selected is
// counted. Selection itself is of check boxes and forms, and works without this.
import { shortcutKeys } from "./shortcut.js";

const typing = (element) => element.isContentEditable || element.matches("input:not([type=checkbox], [type=radio]), textarea, select");
const boxes = (table) => [...table.querySelectorAll("input[name=selected]")];

// The table that has the focus, else the first of the page.
const currentTable = () => document.activeElement?.closest("[data-table]") ?? document.querySelector("[data-table]");
const currentRow = (table) => document.activeElement?.closest("[data-row]") ?? table.querySelector("[data-row].is-current");

function goTo(table, row) {
  for (const other of table.querySelectorAll("[data-row].is-current")) other.classList.remove("is-current");
  row.classList.add("is-current");
  row.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
}

function move(table, direction) {
  const rows = [...table.querySelectorAll("[data-row]")];
  const at = rows.indexOf(currentRow(table));
  const next = rows[at < 0 ? (direction > 0 ? 0 : rows.length - 1) : at + direction];
  if (next) goTo(table, next);
}

const actions = {
  j: (table) => move(table, 1),
  k: (table) => move(table, -1),
  x: (table) => currentRow(table)?.querySelector("input[name=selected]")?.click(),
  Enter(table) {
    const address = currentRow(table)?.dataset.href;
    if (address) window.location.assign(address);
    return Boolean(address);
  },
};

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || !(event.target instanceof Element) || typing(event.target) || document.querySelector("dialog[open]")) return;
  if (event.key === "Enter" && event.target.closest("a, button, summary, input")) return;
  const table = currentTable();
  const key = table && shortcutKeys(event).find((name) => Object.hasOwn(actions, name));
  if (key && actions[key](table) !== false) event.preventDefault();
});

function count(table) {
  const all = boxes(table);
  const chosen = all.filter((box) => box.checked).length;
  const page = table.querySelector("[data-select-page]");
  const everything = table.querySelector("[data-select-all]");
  if (page) {
    page.checked = chosen === all.length && chosen > 0;
    page.indeterminate = chosen > 0 && chosen < all.length;
  }
  // All that match is offered once the page is selected, and is no longer meant when a row is left out.
  if (everything) {
    if (chosen < all.length) everything.checked = false;
    everything.closest("label").hidden = chosen < all.length;
  }
  const label = table.querySelector("[data-selected-count]");
  if (label) label.textContent = everything?.checked ? "All that match are selected" : `${chosen} selected`;
  for (const button of table.querySelectorAll("[data-takes-rows]")) button.disabled = Boolean(everything?.checked);
}

document.addEventListener("change", (event) => {
  const table = event.target instanceof Element && event.target.closest("[data-table]");
  if (!table || !event.target.matches("[name=selected], [data-select-page], [data-select-all]")) return;
  if (event.target.matches("[data-select-page]")) for (const box of boxes(table)) box.checked = event.target.checked;
  count(table);
});

document.addEventListener("click", (event) => {
  if (!(event.target instanceof Element)) return;
  const clear = event.target.closest("[data-clear-selection]");
  if (clear) {
    event.preventDefault();
    const table = clear.closest("[data-table]");
    for (const box of boxes(table)) box.checked = false;
    count(table);
  }
  for (const open of document.querySelectorAll("details[data-popover][open]")) if (!open.contains(event.target)) open.open = false;
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") for (const open of document.querySelectorAll("details[data-popover][open]")) open.open = false;
});

function set(root) {
  for (const table of root.querySelectorAll("[data-table]")) {
    for (const element of table.querySelectorAll("[data-select-page], [data-clear-selection]")) element.hidden = false;
    for (const element of table.querySelectorAll("[data-unscripted]")) element.hidden = true;
    count(table);
  }
}
set(document);
document.addEventListener("htmx:afterSwap", () => set(document));
window.addEventListener("pageshow", () => set(document));
