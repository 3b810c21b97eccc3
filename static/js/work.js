// The work page: comments from what is selected. Walking, drafts and active time are modules of their own.
// The page is swapped as a whole after each submission, so everything listens on the document.
import "./walk.js";
import { fill, startDrafts, takeOver } from "./work-draft.js";
import { askQuestion, startQuestions } from "./work-questions.js";
import { showAllParameters, showMistake, startMarks } from "./work-marks.js";
import { startClock } from "./work-clock.js";
import { isComposing } from "./shortcut.js";
import { errorIn } from "./toast.js";

const work = () => document.getElementById("work");
const decision = () => document.getElementById("decision");
const on = (type, selector, handle) =>
  document.addEventListener(type, (event) => {
    const element = event.target instanceof Element && event.target.closest(selector);
    if (element) handle(event, element);
  });

document.addEventListener("htmx:afterSettle", () => {
  if (!decision()) return;
  takeOver();
  showAllParameters();
});

// Links that have a page of their own without a script open a sheet here.
on("click", "a[data-opens]", (event, link) => {
  event.preventDefault();
  document.querySelector(link.dataset.opens).showModal();
});

// Comments. What is selected in a step becomes the quote.
let selected = null;
function selectedNow() {
  const selection = document.getSelection();
  const node = selection.anchorNode;
  const step = (node instanceof Element ? node : node?.parentElement)?.closest(".work [data-step]");
  if (selection.isCollapsed || !step) return null;
  const side = step.closest("[data-side]")?.dataset.side ?? "left";
  return { side, step: step.dataset.step, quote: selection.toString().trim().slice(0, 20000) };
}
document.addEventListener("selectionchange", () => {
  const now = selectedNow();
  if (now || !decision()?.contains(document.activeElement)) selected = now;
});
on("mousedown", ".work-comments summary", (event) => event.preventDefault()); // keeps the selection

const field = (comment, name) => comment.querySelector(`[name$="-${name}"]`);
function addComment() {
  const list = work().querySelector(".work-comment-list");
  const numbers = [...list.children].map((comment) => Number(comment.dataset.number));
  const holder = document.createElement("template");
  holder.innerHTML = document.getElementById("comment-template").innerHTML.replaceAll("NUMBER", Math.max(-1, ...numbers) + 1);
  list.append(holder.content);
  return list.lastElementChild;
}
function writeComment() {
  selected = selectedNow() ?? selected; // the event comes a little later than the selection
  const last = work().querySelector(".work-comment-list").lastElementChild;
  const isFree = last && !field(last, "text").value && !field(last, "quote").value;
  const comment = isFree ? last : addComment();
  if (selected) {
    field(comment, "quote").value = selected.quote;
    field(comment, "on").value = selected.side;
    field(comment, "from").value = field(comment, "to").value = selected.step;
    selected = null;
  }
  comment.scrollIntoView({ block: "nearest" });
  field(comment, "text").focus();
}
on("click", ".work-comments > summary", (event, summary) => {
  const isByKey = event.detail === 0;
  if (summary.parentElement.open && !isByKey) return;
  event.preventDefault();
  summary.parentElement.open = true;
  writeComment();
});
on("click", ".work-comment-add", () => {
  field(addComment(), "text").focus();
});
on("keydown", "#decision :is(textarea, input, select), .step-correction :is(textarea, select)", (event, element) => {
  if (isComposing(event)) return; // Esc and Enter are the input method's
  if (event.key === "Escape") {
    element.blur();
    const comments = element.closest(".work-comments");
    if (comments) comments.open = false;
  } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    decision().requestSubmit(decision().querySelector(".work-submit"));
  } else if (event.key === "Enter" && element.matches("input:not([type=radio])")) event.preventDefault();
});

export function countComments() {
  const count = [...(work()?.querySelectorAll(".work-comment [name$='-text']") ?? [])].filter((text) => text.value.trim()).length;
  const place = work()?.querySelector(".work-comment-count");
  if (place) place.textContent = count ? `(${count})` : "";
}
on("input", "#decision", countComments);

// A mistake is shown at its question, and goes when the answer changes.
document.addEventListener("htmx:responseError", (event) => {
  const found = event.detail.elt === decision() && errorIn(event.detail.xhr);
  if (!found) return;
  event.preventDefault();
  showError(found.words, found.pointer.slice(1));
  showMistake(found.pointer.slice(1));
}, true);
function showError(words, name) {
  const place = decision().querySelector(".work-error");
  const question = name && decision().querySelector(`[data-question="${CSS.escape(name)}"]`);
  place.textContent = words;
  place.hidden = !words;
  if (question) question.before(place);
  else if (words) decision().querySelector(".work-asked").prepend(place);
  if (question) askQuestion(question);
  if (words) place.scrollIntoView({ block: "nearest" });
}
for (const type of ["input", "change"]) {
  document.addEventListener(type, (event) => {
    if (event.target.form === decision() && decision()?.querySelector(".work-error:not([hidden])")) showError("", "");
  });
}

// A suggestion fills in its answers, which stay the annotator's to change; that it was accepted is submitted with them.
on("click", "[data-accept]", (event, button) => {
  const box = button.closest(".work-suggestion");
  box.querySelector("[name=suggestion_accepted]").value = "1";
  for (const [name, value] of Object.entries(JSON.parse(box.dataset.fields))) {
    fill(name, value);
    decision().querySelector(`[name="${CSS.escape(name)}"]:checked`)?.dispatchEvent(new Event("change", { bubbles: true }));
  }
  box.querySelector("input").dispatchEvent(new Event("change", { bubbles: true }));
  box.classList.add("is-accepted");
});
function markSuggestion() {
  const box = decision()?.querySelector(".work-suggestion");
  if (!box) return;
  box.classList.toggle("is-accepted", box.querySelector("input").value === "1");
  for (const [name, value] of Object.entries(JSON.parse(box.dataset.fields))) {
    decision().querySelector(`[name="${CSS.escape(name)}"][value="${CSS.escape(value)}"]`)?.closest(".work-choice")?.classList.add("is-suggested");
  }
}

// On a narrow screen the panel is a sheet with the question that is asked; unfolded it has all of them.
on("click", ".work-unfold", (event, button) => {
  const isOpen = decision().classList.toggle("is-unfolded");
  button.setAttribute("aria-expanded", isOpen);
  button.textContent = isOpen ? "Fold" : "All questions";
});

function begin() {
  for (const element of work()?.querySelectorAll(".needs-script, .work-comment-add, .work-comment-hint") ?? []) element.hidden = false;
  countComments();
  if (!decision()) return;
  startClock(decision());
  if (decision().dataset.draftUrl) startDrafts(decision(), addComment); // a preview saves nothing
  startQuestions(decision()); // what a draft brought back is answered
  startMarks(decision());
  markSuggestion();
  countComments();
}
// The keys that scroll go to the trajectories, and a screen reader says where we are now.
function focusHeading() {
  const heading = work()?.querySelector("h1, h2");
  if (!heading) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
}
begin();
if (document.activeElement === document.body && !location.hash) focusHeading();
document.addEventListener("work:next", () => {
  begin();
  focusHeading();
});
