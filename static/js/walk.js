// Trajectories side by side, inside [data-walks]: differences to walk (data-walk="1|-1"), everything folded or unfolded
// (data-fold="0|1"). The next rows are brought when the last difference that is there was passed.
let walkOn = null;

function walk(root, direction) {
  const rows = [...root.querySelectorAll(".work-row.is-different")];
  const current = rows.findIndex((row) => row.classList.contains("is-current"));
  const next = current < 0 ? (direction > 0 ? 0 : -1) : current + direction;
  const more = root.querySelector(".steps-more");
  if (next >= rows.length && more) {
    walkOn = root;
    more.scrollIntoView();
    return;
  }
  if (!rows[next]) return;
  rows[current]?.classList.remove("is-current");
  rows[next].classList.add("is-current");
  rows[next].focus({ preventScroll: true });
  rows[next].scrollIntoView({ block: "start" });
  const count = root.querySelector(".work-walk-count");
  count.textContent = `difference ${next + 1} of ${count.dataset.total}`;
}

document.addEventListener("click", (event) => {
  if (!(event.target instanceof Element)) return;
  const walker = event.target.closest("[data-walk]");
  if (walker) walk(walker.closest("[data-walks]"), Number(walker.dataset.walk));
  const folder = event.target.closest("[data-fold]");
  for (const fold of folder?.closest("[data-walks]").querySelectorAll(".work-prefix, .work-rows details, .steps > .step details") ?? []) fold.open = folder.dataset.fold === "1";
});
document.addEventListener("htmx:afterSettle", () => {
  const root = walkOn;
  walkOn = null;
  if (root?.isConnected) walk(root, 1);
});
for (const element of document.querySelectorAll("[data-walks] .work-walk")) element.hidden = false;
