// Questions of the panel: keys go to the one that is asked now; an answer asks the next. Ranks can be dragged.
import { isComposing } from "./shortcut.js";

let form = null;
const questions = () => [...(form?.querySelectorAll(".work-question") ?? [])];
const isAnswered = (question) => question.querySelector("input:checked") !== null;

export function askQuestion(question) {
  for (const one of questions()) {
    one.classList.toggle("is-asked", one === question);
    one.toggleAttribute("data-keys-first", one === question);
  }
  question?.scrollIntoView({ block: "nearest" });
}

const asked = () => questions().find((one) => one.classList.contains("is-asked"));

// "None of these" and "?" exclude the categories of their question, and the other way round.
document.addEventListener("change", (event) => {
  const question = event.target instanceof Element && event.target.checked && event.target.closest(".work-question");
  if (!question || !form?.contains(question)) return;
  const other = event.target.type === "radio" ? "checkbox" : "radio";
  for (const input of question.querySelectorAll(`input[type=${other}]`)) input.checked = false;
});
document.addEventListener("change", (event) => {
  const question = event.target instanceof Element && event.target.type === "radio" && event.target.closest(".work-question");
  if (!question || !form?.contains(question)) return;
  const all = questions();
  const after = all.slice(all.indexOf(question) + 1);
  askQuestion(after.find((one) => !isAnswered(one)) ?? all.find((one) => !isAnswered(one)) ?? question);
  placeChips();
});
document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || !["ArrowDown", "ArrowUp"].includes(event.key) || event.ctrlKey || event.metaKey || event.altKey || isComposing(event)) return;
  if (questions().length < 2 || event.target.matches?.("input, textarea, select, summary") || document.querySelector("dialog[open]")) return;
  const all = questions();
  const next = all[all.indexOf(asked()) + (event.key === "ArrowDown" ? 1 : -1)];
  if (!next) return;
  event.preventDefault();
  askQuestion(next);
});

// Ranking by dragging: a chip for each run, a bin for each rank. The radio buttons stay the truth.
function placeChips() {
  for (const chip of form?.querySelectorAll(".work-chip") ?? []) {
    const rank = form.querySelector(`[name="${chip.dataset.name}"]:checked`)?.value ?? "";
    form.querySelector(`.work-bin[data-rank="${rank}"]`).append(chip);
  }
}
let dragged = null;
document.addEventListener("pointerdown", (event) => {
  dragged = event.target instanceof Element ? event.target.closest(".work-chip") : null;
  if (!dragged) return;
  event.preventDefault();
  dragged.setPointerCapture(event.pointerId);
  dragged.classList.add("is-dragged");
  dragged.dataset.x = event.clientX;
  dragged.dataset.y = event.clientY;
});
document.addEventListener("pointermove", (event) => {
  if (dragged) dragged.style.transform = `translate(${event.clientX - dragged.dataset.x}px, ${event.clientY - dragged.dataset.y}px)`;
});
document.addEventListener("pointerup", (event) => {
  if (!dragged) return;
  const chip = dragged;
  dragged = null;
  chip.style.transform = "";
  chip.classList.remove("is-dragged");
  const bin = document.elementsFromPoint(event.clientX, event.clientY).find((one) => one.classList.contains("work-bin"));
  if (!bin) return;
  const radio = form.querySelector(`[name="${chip.dataset.name}"]${bin.dataset.rank ? `[value="${bin.dataset.rank}"]` : ":checked"}`);
  if (!radio) return;
  radio.checked = bin.dataset.rank !== "";
  radio.dispatchEvent(new Event("change", { bubbles: true }));
});

export function startQuestions(next) {
  form = next;
  askQuestion(questions().find((one) => !isAnswered(one)) ?? questions()[0]);
  placeChips();
}
