// The keys of a recipe as a form. The TOML in the text field stays what is sent: a changed field rewrites its line, and a
// changed text fills the fields. Without this script, people write the TOML.
const text = document.getElementById("id_toml");
const recipe = document.getElementById("id_recipe");
const fields = [...document.querySelectorAll("[data-recipe-key]")];
const LINE = /^\s*([a-z_]+)\s*=\s*(.*?)\s*$/;

function values() {
  const found = new Map();
  for (const line of text.value.split("\n")) {
    const parts = LINE.exec(line);
    if (parts) found.set(parts[1], parts[2]);
  }
  return found;
}

const plain = (field, written) => (field.dataset.recipeKind === "text" ? written.replace(/^(["'])(.*)\1$/, "$2") : written);
const written = (field) => {
  if (field.dataset.recipeKind === "text" || (field.dataset.recipeKind === "choice")) return JSON.stringify(field.value);
  return field.value;
};

function fill() {
  const known = values();
  for (const field of fields) {
    const value = known.get(field.dataset.recipeKey);
    field.value = value === undefined ? "" : field.dataset.recipeKind === "choice" ? value.replace(/^(["'])(.*)\1$/, "$2") : plain(field, value);
    field.closest(".recipe-field").classList.toggle("is-changed", value !== undefined);
  }
}

function put(field) {
  const key = field.dataset.recipeKey;
  const lines = text.value.split("\n").filter((line) => LINE.exec(line)?.[1] !== key && line.trim() !== "");
  if (field.value !== "") lines.push(`${key} = ${written(field)}`);
  text.value = lines.length ? `${lines.join("\n")}\n` : "";
  field.closest(".recipe-field").classList.toggle("is-changed", field.value !== "");
  if (recipe.value !== "own") recipe.value = "own";
  text.dispatchEvent(new Event("change", { bubbles: true }));
}

for (const field of fields) field.addEventListener("change", () => put(field));
text.addEventListener("input", fill);
document.getElementById("recipe-tabs").hidden = false;
const isWrong = document.querySelector("#pane-toml .invalid-feedback") !== null; // the error is shown where it is
if (isWrong) window.addEventListener("load", () => document.getElementById("tab-toml").click());
document.getElementById("pane-toml").classList.remove("show", "active");
document.getElementById("pane-recipe").classList.add("show", "active");
fill();
