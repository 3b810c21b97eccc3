// The command palette: Ctrl+K (Cmd+K on a Mac) or a click on [data-palette] opens it. The server finds; this chooses.
import { isComposing } from "./shortcut.js";

const dialog = document.getElementById("palette");
const input = dialog?.querySelector("[role=combobox]");
const list = dialog?.querySelector("[role=listbox]");
const options = () => [...list.querySelectorAll("[role=option]")];

function choose(option) {
  for (const each of options()) each.setAttribute("aria-selected", String(each === option));
  if (option) {
    input.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  } else input.removeAttribute("aria-activedescendant");
}

function move(steps) {
  const all = options();
  const place = all.findIndex((option) => option.getAttribute("aria-selected") === "true");
  if (all.length) choose(all[(place + steps + all.length) % all.length]);
}

export function openPalette() {
  if (dialog.open || document.querySelector("dialog[open]")) return;
  dialog.showModal();
  input.select();
  input.dispatchEvent(new Event("palette"));
}

if (dialog) {
  document.addEventListener("keydown", (event) => {
    const isOpening = (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === "k";
    if (!isOpening) return;
    event.preventDefault();
    if (dialog.open) dialog.close();
    else openPalette();
  });
  document.addEventListener("click", (event) => {
    if (!(event.target instanceof Element)) return;
    if (event.target.closest("[data-palette]")) {
      event.preventDefault();
      openPalette();
    } else if (event.target === dialog) dialog.close(); // a click outside the content, on the backdrop
  });
  input.addEventListener("keydown", (event) => {
    if (isComposing(event)) return;
    const steps = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (steps) {
      event.preventDefault();
      move(steps);
    } else if (event.key === "Enter") {
      // The options are those of what was typed; while newer ones are on their way, the search page answers.
      const chosen = options().find((option) => option.getAttribute("aria-selected") === "true");
      if (chosen && list.dataset.text === input.value) {
        event.preventDefault();
        chosen.click();
      }
    }
  });
  list.addEventListener("pointermove", (event) => {
    const option = event.target.closest("[role=option]");
    if (option && option.getAttribute("aria-selected") !== "true") choose(option);
  });
  list.addEventListener("htmx:afterSwap", (event) => {
    list.dataset.text = new URL(event.detail.xhr.responseURL).searchParams.get("q") ?? "";
    const all = options();
    choose(all[0]);
    document.getElementById("palette-count").textContent = all.length === 1 ? "1 result" : `${all.length} results`;
  });
}
