// Which keys a keydown may mean, as names of KeyboardEvent.key: on any layout, with Caps Lock, and while nothing is composed.
// A shortcut that the key's own name is comes first; then the letter or digit that the key has on a US keyboard, so that
// shortcuts work where it writes "ы" or "&".

// An input method takes keys for itself: the last one of a composition comes as 229 in some browsers.
export const isComposing = (event) => event.isComposing || event.keyCode === 229;

const isMac = /Mac|iPhone|iPad/.test(navigator.platform);
const isSymbol = (key) => key.length === 1 && !/[\p{L}\p{N}\s]/u.test(key);

export function shortcutKeys(event) {
  if (isComposing(event) || event.metaKey || event.key === "Dead") return [];
  // AltGr (Option on a Mac) writes symbols such as [ and ] on many layouts; on Windows it reports Ctrl and Alt.
  const writesSymbol = event.getModifierState("AltGraph") || (isMac && event.altKey && !event.ctrlKey);
  if (event.ctrlKey || event.altKey) return writesSymbol && isSymbol(event.key) ? [event.key] : [];
  const keys = [event.key];
  if (/^[a-z]$/i.test(event.key)) {
    if (event.getModifierState("CapsLock")) keys[0] = event.shiftKey ? event.key.toUpperCase() : event.key.toLowerCase();
    return keys;
  }
  if (event.shiftKey) return keys;
  const [, letter, digit] = /^(?:Key([A-Z])|Digit(\d))$/.exec(event.code) ?? [];
  // A letter of another alphabet. Where the key writes a Latin sign (é on 2, ; on M), only digits are meant by their place.
  if (letter && /\p{L}/u.test(event.key) && !/\p{Script=Latin}/u.test(event.key)) keys.push(letter.toLowerCase());
  if (digit && !/^\d$/.test(event.key)) keys.push(digit);
  return keys;
}
