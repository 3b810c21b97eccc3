// Forms with data-passkey ask the browser for a passkey and send what it answers.
// data-passkey: "create", "get" (their options are on the page, #passkey-options), or "login" (options from the form's
// own address, when asked). The hidden field `credential` takes the answer.
const toBytes = (text) =>
  Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
const toText = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
const withBytes = (list) => list?.map((each) => ({ ...each, id: toBytes(each.id) }));

const toJson = (credential) => {
  const response = { clientDataJSON: toText(credential.response.clientDataJSON) };
  for (const name of ["attestationObject", "authenticatorData", "signature", "userHandle"]) {
    if (credential.response[name]) response[name] = toText(credential.response[name]);
  }
  const { id, type } = credential;
  const clientExtensionResults = credential.getClientExtensionResults();
  return { id, rawId: toText(credential.rawId), type, response, clientExtensionResults };
};

const create = (options, form) => {
  const alone = form.querySelector("[name=passwordless]")?.checked ?? false;
  const authenticatorSelection = {
    ...options.authenticatorSelection,
    residentKey: alone ? "required" : "discouraged",
    requireResidentKey: alone,
    ...(alone ? { userVerification: "required" } : {}),
  };
  return navigator.credentials.create({
    publicKey: {
      ...options,
      authenticatorSelection,
      challenge: toBytes(options.challenge),
      user: { ...options.user, id: toBytes(options.user.id) },
      excludeCredentials: withBytes(options.excludeCredentials),
    },
  });
};

const get = (options) =>
  navigator.credentials.get({
    publicKey: {
      ...options,
      challenge: toBytes(options.challenge),
      allowCredentials: withBytes(options.allowCredentials),
    },
  });

const ask = async (form) => {
  const onPage = document.querySelector("#passkey-options");
  if (form.dataset.passkey === "create") return create(JSON.parse(onPage.textContent).creation_options.publicKey, form);
  if (form.dataset.passkey === "get") return get(JSON.parse(onPage.textContent).request_options.publicKey);
  const answer = await fetch(form.action, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error(`The server answered ${answer.status}.`);
  return get((await answer.json()).request_options.publicKey);
};

const words = (error) =>
  error.name === "NotAllowedError" || error.name === "AbortError"
    ? "No passkey was used. Try again, or use something else."
    : error.name === "InvalidStateError"
      ? "This device is added already."
      : `The passkey did not work: ${error.message}`;

for (const form of document.querySelectorAll("form[data-passkey]")) {
  const place = form.querySelector("[data-passkey-error]");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    place.classList.remove("d-block");
    try {
      if (!window.PublicKeyCredential) throw new Error("this browser has none, or the address is not https.");
      form.querySelector("[name=credential]").value = JSON.stringify(toJson(await ask(form)));
      form.submit();
    } catch (error) {
      place.textContent = words(error);
      place.classList.add("d-block");
    }
  });
}
