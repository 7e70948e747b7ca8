"use strict";
(() => {
  const theme = document.getElementById("theme");
  const setTheme = (dark) => {
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    theme.textContent = dark ? theme.dataset.light || "Light" : theme.dataset.dark || "Dark";
    theme.setAttribute("aria-pressed", String(dark));
  };
  theme.hidden = false;
  setTheme(matchMedia("(prefers-color-scheme: dark)").matches);
  theme.addEventListener("click", () => setTheme(document.documentElement.dataset.theme !== "dark"));
})();
