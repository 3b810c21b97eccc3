// What every page needs. A page's own module goes into {% block scripts %} and imports from here what it uses.
import "./keys.js";
import "./actions.js";
import { toast } from "./toast.js";

// A failed htmx request never fails silently: the server's sentence (or ours) is shown.
// The server answers errors of htmx requests as core/_error.html, whose sentence carries data-error.
const sentence = (xhr) => {
  const type = xhr.getResponseHeader("Content-Type") ?? "";
  if (type.includes("json")) return JSON.parse(xhr.responseText).detail;
  const page = new DOMParser().parseFromString(xhr.responseText, "text/html");
  return page.querySelector("[data-error]")?.textContent.trim().replace(/\s+/g, " ");
};
document.addEventListener("htmx:responseError", (event) => {
  const { xhr } = event.detail;
  toast(sentence(xhr) ?? `The server answered ${xhr.status}. Reload the page and try again.`, "error");
});
document.addEventListener("htmx:sendError", () => {
  toast("The server cannot be reached. Nothing was saved; check the connection and try again.", "error");
});
document.addEventListener("htmx:timeout", () => {
  toast("The server took too long to answer. Reload the page to see what happened.", "error");
});

// The server says something beside what it sends: HX-Trigger: {"toast": {"words": ...}}.
document.addEventListener("toast", (event) => toast(event.detail.words));

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
