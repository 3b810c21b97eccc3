// Active seconds: they pass only while the page is seen and something moved on it within the last half minute.
const IDLE_AFTER = 30_000;
let last = Date.now();
let input = null;
let seconds = 0;

for (const type of ["keydown", "pointermove", "pointerdown", "scroll", "wheel"]) {
  document.addEventListener(type, () => { last = Date.now(); }, { passive: true, capture: true });
}
export const isActive = () => document.visibilityState === "visible" && Date.now() - last < IDLE_AFTER;

export function startClock(form) {
  input = form.elements.active_seconds;
  seconds = Number(input.dataset.start) || 0;
  last = Date.now();
  input.value = seconds;
}
setInterval(() => {
  if (!input?.isConnected || !isActive()) return;
  seconds += 1;
  input.value = seconds;
}, 1000);
