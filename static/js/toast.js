// toast("Saved.") or toast("Request failed.", "error"): one line at the lower right, read out by screen readers.
// Errors stay until closed; the rest leaves after six seconds.
export function toast(words, kind = "info") {
  const line = document.createElement("div");
  line.className = `toast-line is-${kind}`;
  line.setAttribute("role", kind === "error" ? "alert" : "status");
  const text = document.createElement("p");
  text.textContent = words;
  const close = document.createElement("button");
  close.type = "button";
  close.className = "btn-close";
  close.setAttribute("aria-label", "Close");
  close.addEventListener("click", () => line.remove());
  line.append(text, close);
  document.getElementById("toasts").append(line);
  if (kind !== "error") setTimeout(() => line.remove(), 6000);
}
