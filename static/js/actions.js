// Small behaviours by attribute, on any page, also for what htmx brings in later:
//   data-copy="text" or data-copy-from="#id"   a button that copies, and says so
//   data-confirm="Sentence?"                   on a <form>: asks before it is sent
//   data-submit-on-change                      on a <select>: sends its form
//   data-dialog="#id"                          opens a <dialog>;  data-close closes the one it is in
//   data-local-time                            on a <time datetime>: shown in the reader's own time zone, on hover
import { toast } from "./toast.js";

document.addEventListener("click", async (event) => {
  const at = (selector) => event.target instanceof Element && event.target.closest(selector);
  const copy = at("[data-copy], [data-copy-from]");
  if (copy) {
    const from = copy.dataset.copyFrom && document.querySelector(copy.dataset.copyFrom);
    const text = from ? (from.value ?? from.textContent).trim() : copy.dataset.copy;
    try {
      await navigator.clipboard.writeText(text);
      toast("Copied.", "success");
    } catch {
      toast("The browser does not let this page copy. Select the text and copy it by hand.", "error");
    }
  }
  const opener = at("[data-dialog]");
  if (opener) document.querySelector(opener.dataset.dialog).showModal();
  if (at("[data-close]")) at("dialog")?.close();
});

document.addEventListener("submit", (event) => {
  const question = event.submitter?.dataset.confirm ?? event.target.dataset.confirm;
  if (question && !confirm(question)) event.preventDefault();
});

document.addEventListener("change", (event) => {
  if (event.target instanceof Element && event.target.matches("[data-submit-on-change]")) event.target.form.requestSubmit();
});

const localTimes = (root) => {
  for (const time of root.querySelectorAll("time[data-local-time]")) {
    time.title = new Date(time.dateTime).toLocaleString(undefined, { dateStyle: "full", timeStyle: "long" });
  }
};
localTimes(document);
document.addEventListener("htmx:load", (event) => localTimes(event.target));
