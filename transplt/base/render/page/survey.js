(() => {
  const table = document.getElementById("rows");
  if (!table) return;
  const body = table.tBodies[0];
  const key = (row, at) => row.cells[at].dataset.value ?? row.cells[at].textContent;
  table.querySelectorAll("th button").forEach((button) => {
    const head = button.parentElement;
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      table.querySelectorAll("th").forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const at = head.cellIndex;
      const number = head.classList.contains("number");
      const order = (one, other) => number ? key(one, at) - key(other, at) : key(one, at).localeCompare(key(other, at));
      body.append(...[...body.rows].sort((one, other) => up ? order(one, other) : order(other, one)));
    });
  });
})();
(() => {
  const show = () => {
    const named = location.hash && document.getElementById(location.hash.slice(1));
    if (named instanceof HTMLDetailsElement) {
      named.open = true;
      named.scrollIntoView();
    }
  };
  addEventListener("hashchange", show);
  show();
})();
