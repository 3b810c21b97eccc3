// Several files or a folder for one upload: dropped on the form, or chosen; their paths go along in the field `names`.

const form = document.getElementById("upload-form");
const input = form.querySelector('input[name="file"]');
const names = form.querySelector('input[name="names"]');
const MOST_FILES = 1000;

function take(found) {
  const chosen = found.filter(([file]) => !file.name.startsWith("."));
  const tooMany = chosen.length > MOST_FILES;
  input.setCustomValidity(tooMany ? `These are ${chosen.length} files; pack more than ${MOST_FILES} as one .zip or .tar.` : "");
  if (tooMany) {
    input.reportValidity();
    return;
  }
  const files = new DataTransfer();
  for (const [file] of chosen) files.items.add(file);
  input.files = files.files;
  names.value = JSON.stringify(chosen.map(([, path]) => path));
}

function entriesOf(reader) {
  return new Promise((resolve, reject) => reader.readEntries(resolve, reject));
}

async function filesOf(entry) {
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    return [[file, entry.fullPath.slice(1)]];
  }
  const found = [];
  const reader = entry.createReader();
  for (let some = await entriesOf(reader); some.length; some = await entriesOf(reader)) {
    for (const inner of some) found.push(...(await filesOf(inner)));
  }
  return found;
}

input.addEventListener("change", () => {
  names.value = "";
  input.setCustomValidity("");
});

form.querySelector("#folder-input").addEventListener("change", (event) => {
  take([...event.target.files].map((file) => [file, file.webkitRelativePath]));
});

form.addEventListener("dragover", (event) => {
  event.preventDefault();
  form.classList.add("is-over");
});

form.addEventListener("dragleave", () => form.classList.remove("is-over"));

form.addEventListener("drop", async (event) => {
  event.preventDefault();
  form.classList.remove("is-over");
  const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean);
  const found = [];
  for (const entry of entries) found.push(...(await filesOf(entry)));
  take(found);
});
