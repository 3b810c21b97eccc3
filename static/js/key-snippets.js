// Fills an API key into the commands of an endpoint's page. A key that was just created in this tab is remembered until
// the tab is closed, so that the commands can be copied as they are; the server shows it once and never again.
const name = (element) => `api-key:${element.dataset.keyProject}`;

const created = document.querySelector("#secret[data-key-project]");
if (created) sessionStorage.setItem(name(created), created.textContent.trim());

const input = document.getElementById("snippet-key");
if (input) {
  const snippets = [...document.querySelectorAll("[id^=snippet-]")].filter((element) => element.matches("code"));
  const originals = snippets.map((snippet) => snippet.textContent);
  const fill = () => {
    const key = input.value.trim() || "KEY";
    snippets.forEach((snippet, place) => { snippet.textContent = originals[place].replaceAll(/\bKEY\b/g, () => key); });
  };
  input.value = sessionStorage.getItem(name(input)) ?? "";
  input.addEventListener("input", fill);
  fill();
}
