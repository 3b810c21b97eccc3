// The builder of an endpoint's spec: components and transforms as cards. The JSON in the text field stays what is sent;
// cards are made of it, and each change of a card is written back. Without this script, people write the JSON.
const root = document.getElementById("builder");
const text = document.getElementById("id_spec");
const schemas = JSON.parse(document.getElementById("part-schemas").textContent);
const offered = JSON.parse(document.getElementById("part-choices").textContent);

const guardSchema = JSON.parse(document.getElementById("guard-schema").textContent);

const make = (tag, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

function read() {
  try {
    const spec = JSON.parse(text.value);
    return spec && typeof spec === "object" && Array.isArray(spec.components) ? { transforms: [], ...spec } : null;
  } catch {
    return null;
  }
}

function write(spec) {
  text.value = JSON.stringify(spec, null, 2);
  text.dispatchEvent(new Event("change", { bubbles: true }));
}

const schemaOf = (list, type) => schemas[list].find((schema) => schema.type === type);

function control(field, value, spec, id) {
  const own = spec.components.map((part) => part.name);
  if (field.kind === "components") {
    const select = make("select", { className: "form-select", id, multiple: true, size: Math.min(own.length, 6) });
    select.append(...own.map((name) => make("option", { value: name, textContent: name, selected: (value ?? []).includes(name) })));
    return select;
  }
  const names = { ...offered, component: own }[field.kind] ?? field.choices;
  if (names) {
    const select = make("select", { className: "form-select", id });
    const known = value === undefined || names.includes(value) ? names : [value, ...names];
    if (!field.required && field.default === null) select.append(make("option", { value: "", textContent: "none" }));
    select.append(...known.map((name) => make("option", { value: name, textContent: name, selected: name === (value ?? field.default) })));
    return select;
  }
  if (field.kind === "flag") return make("input", { className: "form-check-input d-block", id, type: "checkbox", checked: value ?? field.default ?? false });
  if (field.kind === "code") {
    const area = make("textarea", { className: "form-control font-monospace", id, rows: 8, value: value ?? "" });
    area.spellcheck = false;
    return area;
  }
  if (field.kind === "json") {
    const area = make("textarea", { className: "form-control font-monospace", id, rows: 3, value: JSON.stringify(value ?? field.default ?? []) });
    area.spellcheck = false;
    return area;
  }
  const input = make("input", { className: "form-control", id, type: field.kind === "number" ? "number" : "text" });
  if (field.kind === "number") input.step = field.whole ? "1" : "any";
  if (field.default !== null) input.placeholder = `${field.default}`;
  input.value = value ?? "";
  return input;
}

function setValue(part, field, given) {
  if (field.kind === "components") part[field.name] = given;
  else if (given === "") delete part[field.name];
  else if (field.kind === "json") part[field.name] = JSON.parse(given);
  else part[field.name] = field.kind === "number" ? Number(given) : given;
}

function fieldRow(spec, part, field, id) {
  const input = control(field, part[field.name], spec, id);
  input.addEventListener("change", () => {
    const before = part[field.name];
    input.setCustomValidity?.("");
    try {
      const chosen = input.multiple ? [...input.selectedOptions].map((option) => option.value) : input.value;
      setValue(part, field, field.kind === "flag" ? input.checked : chosen);
    } catch (error) { // a list that is no JSON stays in its field until it is corrected
      input.setCustomValidity(`Not JSON: ${error.message}`);
      input.reportValidity();
      return;
    }
    if (field.name === "name") // what looks at the component goes on doing so
      for (const other of [...spec.components, ...spec.transforms]) {
        if (other.component === before) other.component = part.name;
        if (other.components) other.components = other.components.map((name) => (name === before ? part.name : name));
      }
    write(spec);
  });
  const optional = field.required ? [] : [make("span", { className: "caption fw-normal", textContent: " optional" })];
  const help = make("div", { className: "form-text", id: `${id}-help`, textContent: field.help });
  if (field.help) input.setAttribute("aria-describedby", help.id);
  return make("div", {}, make("label", { className: "form-label", htmlFor: id }, field.label, ...optional), input, ...(field.help ? [help] : []));
}

function moveButton(words, disabled, act) {
  const made = make("button", { type: "button", className: "btn btn-sm btn-secondary", textContent: words, disabled });
  made.addEventListener("click", act);
  return made;
}

function card(spec, list, place) {
  const part = spec[list][place];
  const schema = schemaOf(list, part.type);
  if (!schema) return make("div", { className: "card card-body", textContent: `Unknown type: ${part.type}. Edit the JSON.` });
  const change = (edit) => () => { edit(spec[list]); write(spec); show(); };
  const first = list === "transforms" && spec.transforms[0]?.type === "normalise" ? 1 : 0;
  const buttons = schema.fixed ? "" : make("div", { className: "d-flex gap-1" },
    moveButton("Up", place <= first, change((parts) => parts.splice(place - 1, 0, ...parts.splice(place, 1)))),
    moveButton("Down", place === spec[list].length - 1, change((parts) => parts.splice(place + 1, 0, ...parts.splice(place, 1)))),
    moveButton("Remove", (list === "components" && spec.components.length === 1), change((parts) => parts.splice(place, 1))));
  const head = make("div", { className: "d-flex flex-wrap justify-content-between gap-2" }, make("strong", { textContent: schema.title }), buttons);
  const fields = make("div", { className: "part-fields" }, ...schema.fields.map((field) => fieldRow(spec, part, field, `part-${list}-${place}-${field.name}`)));
  const help = make("p", { className: `caption mt-1 ${schema.fields.length ? "mb-2" : "mb-0"}`, textContent: schema.help });
  const box = make("section", { className: "part-card" }, head, help, ...(schema.fields.length ? [fields] : []));
  box.setAttribute("aria-label", `${schema.title} ${place + 1}`);
  return box;
}

function newPart(spec, list, schema) {
  const part = { type: schema.type };
  for (const field of schema.fields) {
    if (field.name === "name") {
      const taken = spec.components.map((component) => component.name);
      part.name = [schema.type, ...taken.map((_, n) => `${schema.type}_${n + 2}`)].find((name) => !taken.includes(name));
    } else if (field.required) {
      const own = spec.components.map((component) => component.name);
      const names = { ...offered, component: own }[field.kind];
      part[field.name] = { json: [], components: own }[field.kind] ?? names?.[0] ?? "";
    }
  }
  return part;
}

function adder(spec, list, label) {
  const select = make("select", { className: "form-select", id: `add-${list}` });
  const kinds = schemas[list].filter((schema) => !schema.fixed);
  select.append(...kinds.map((schema) => make("option", { value: schema.type, textContent: schema.title })));
  const add = make("button", { type: "button", className: "btn btn-secondary text-nowrap", textContent: label });
  add.addEventListener("click", () => {
    spec[list].push(newPart(spec, list, schemaOf(list, select.value)));
    write(spec);
    show();
  });
  select.setAttribute("aria-label", `Type of the new ${list === "components" ? "component" : "transform"}`);
  const help = make("p", { className: "caption mt-1 mb-0", id: `add-${list}-help` });
  const describe = () => { help.textContent = schemaOf(list, select.value).help; };
  select.setAttribute("aria-describedby", help.id);
  select.addEventListener("change", describe);
  describe();
  return make("div", {}, make("div", { className: "d-flex gap-2" }, select, add), help);
}

function guardCard(spec) {
  const change = (edit) => () => { edit(); write(spec); show(); };
  if (!spec.guard) {
    const add = make("button", { type: "button", className: "btn btn-secondary align-self-start", textContent: "Add guard settings" });
    add.addEventListener("click", change(() => { spec.guard = {}; }));
    return add;
  }
  const remove = moveButton("Remove", false, change(() => { delete spec.guard; }));
  const head = make("div", { className: "d-flex flex-wrap justify-content-between gap-2" }, make("strong", { textContent: guardSchema.title }), remove);
  const help = make("p", { className: "caption mt-1 mb-2", textContent: guardSchema.help });
  const fields = make("div", { className: "part-fields" }, ...guardSchema.fields.map((field) => fieldRow(spec, spec.guard, field, `guard-${field.name}`)));
  const box = make("section", { className: "part-card" }, head, help, fields);
  box.setAttribute("aria-label", guardSchema.title);
  return box;
}

function show() {
  const spec = read();
  if (!spec) {
    root.replaceChildren(make("p", { className: "text-subdued mb-0", textContent: "The JSON cannot be read; correct it in its tab." }));
    return;
  }
  const list = (name, heading, label) => [
    make("h2", { textContent: heading }), ...spec[name].map((_, place) => card(spec, name, place)), adder(spec, name, label),
  ];
  root.replaceChildren(
    ...list("components", "Components: a weighted sum", "Add component"), ...list("transforms", "Transforms, in order", "Add transform"),
    make("h2", { textContent: "Guard" }), guardCard(spec),
  );
}

document.getElementById("spec-tabs").hidden = false;
const isWrong = document.querySelector("#pane-json .invalid-feedback") !== null; // the error is shown where it is
document.getElementById("tab-cards").addEventListener("shown.bs.tab", show);
if (isWrong) window.addEventListener("load", () => document.getElementById("tab-json").click());
document.getElementById("pane-json").classList.remove("show", "active");
document.getElementById("pane-cards").classList.add("show", "active");
show();
