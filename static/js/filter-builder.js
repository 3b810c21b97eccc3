// The filter of trajectories in a form: fields, saved views and a count. The text field stays what is sent; it is folded
// away once the fields are there. Without this script, or where the server does not answer, people write the text.

function build(text) {
  const box = document.createElement("div");
  box.className = "filter-box";
  const help = document.getElementById(`${text.id}_helptext`);
  let turn = 0;

  async function ask(parameters) {
    const url = new URL(text.dataset.filterUrl, location.href);
    url.search = new URLSearchParams({ filter: text.value, ...parameters });
    const current = ++turn;
    const response = await fetch(url, { headers: { "HX-Request": "true" } }).catch(() => null);
    // Only the newest answer counts; one that is a page to sign in at is none.
    if (current !== turn || !response?.ok || response.redirected) return null;
    const made = document.createElement("template");
    made.innerHTML = await response.text();
    return current === turn ? made.content : null;
  }

  async function showAll() {
    const found = await ask({});
    if (!found) return;
    const open = [...box.querySelectorAll("details")].map((details) => details.open);
    for (const control of found.querySelectorAll("[name]")) { // not sent with the form around it
      control.dataset.condition = control.name;
      control.removeAttribute("name");
    }
    box.replaceChildren(found);
    box.querySelectorAll("details").forEach((details, place) => { details.open ||= open[place] ?? false; });
    if (!box.isConnected) foldText();
  }

  function foldText() {
    const folded = document.createElement("details");
    folded.className = "filter-as-text";
    folded.append(Object.assign(document.createElement("summary"), { textContent: "As text" }));
    text.before(box, folded);
    folded.append(text, ...(help ? [help] : []));
    text.setAttribute("aria-label", `${text.labels[0]?.firstChild.textContent.trim() ?? "Filter"}, as text`);
  }

  async function showMatches() {
    const found = await ask({ matches: "1" });
    if (found) box.querySelector(".filter-matches").replaceWith(found.querySelector(".filter-matches"));
  }

  function write(query) {
    text.value = query;
    text.dispatchEvent(new Event("change", { bubbles: true }));
  }

  const ofFields = () => new URLSearchParams(
    [...box.querySelectorAll("[data-condition]")].filter((control) => control.value.trim()).map((control) => [control.dataset.condition, control.value.trim()]),
  ).toString();

  box.addEventListener("change", (event) => {
    event.stopPropagation(); // the text's own event says it
    text.dataset.fromFields = "1";
    write(ofFields());
    delete text.dataset.fromFields;
    showMatches();
  });
  box.addEventListener("keydown", (event) => { // else Enter sends the form around it
    if (event.key !== "Enter" || event.target.dataset.condition === undefined) return;
    event.preventDefault();
    event.target.dispatchEvent(new Event("change", { bubbles: true }));
  });
  box.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-filter]");
    if (!button) return;
    write(button.dataset.filter);
  });
  text.addEventListener("change", () => { if (!text.dataset.fromFields) showAll(); });
  showAll();
}

document.querySelectorAll("input[data-filter-url]").forEach(build);
