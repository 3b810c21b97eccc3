// Sets the theme before the first paint. A classic script in <head>, so that nothing flashes.
// Kept: "light" or "dark" in localStorage.theme; nothing kept means: as the system has it.
(() => {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const kept = () => {
    const value = localStorage.getItem("theme");
    return value === "light" || value === "dark" ? value : null;
  };
  const apply = () => {
    document.documentElement.dataset.bsTheme = kept() ?? (system.matches ? "dark" : "light");
    document.dispatchEvent(new CustomEvent("themechange"));
  };
  apply();
  system.addEventListener("change", apply);
  addEventListener("storage", apply); // another tab switched

  document.addEventListener("click", (event) => {
    if (!(event.target instanceof Element) || !event.target.closest("[data-theme-toggle]")) return;
    const next = document.documentElement.dataset.bsTheme === "dark" ? "light" : "dark";
    if (next === (system.matches ? "dark" : "light")) localStorage.removeItem("theme");
    else localStorage.setItem("theme", next);
    apply();
  });
})();
