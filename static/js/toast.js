// toast("Saved.") or toast("Request failed.", "error"): one line at the lower right, read out by screen readers.
// Errors stay until closed; the rest leaves after six seconds. action: {words, url}, a link in the line; or
// {words, key, press}, a button that presses the one that the selector `press` finds.
export function toast(words, kind = "info", action = null) {
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
  line.append(text);
  if (action) {
    for (const earlier of document.querySelectorAll("#toasts .toast-line.has-action")) earlier.remove();
    line.classList.add("has-action");
    line.append(action.press ? pressing(action, line) : linking(action));
  }
  line.append(close);
  document.getElementById("toasts").append(line);
  if (kind !== "error") setTimeout(() => line.remove(), 6000);
}

function linking({ words, url }) {
  return Object.assign(document.createElement("a"), { href: url, textContent: words });
}
function pressing({ words, key, press }, line) {
  const button = Object.assign(document.createElement("button"), { type: "button", className: "btn btn-link btn-sm", textContent: `${words} ` });
  button.append(Object.assign(document.createElement("kbd"), { textContent: key }));
  button.addEventListener("click", () => {
    line.remove();
    document.querySelector(press)?.click();
  });
  return button;
}

// What the server says in its answer to a failed request: {words, pointer}. Answers to htmx are core/_error.html.
export function errorIn(xhr) {
  const type = xhr.getResponseHeader("Content-Type") ?? "";
  if (type.includes("json")) return { words: JSON.parse(xhr.responseText).detail, pointer: "" };
  const place = new DOMParser().parseFromString(xhr.responseText, "text/html").querySelector("[data-error]");
  return place && { words: place.textContent.trim().replace(/\s+/g, " "), pointer: place.dataset.pointer ?? "" };
}
