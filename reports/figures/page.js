"use strict";
// Tables sort by a click on a heading: numbers as numbers, gaps last. The button switches light and dark.
(function () {
  function number(text) { return /^[-+]?[\d.]/.test(text) ? parseFloat(text) : NaN; }
  function sort(heading) {
    const table = heading.closest("table"), body = table.tBodies[0], column = heading.cellIndex;
    const down = heading.getAttribute("aria-sort") === "ascending";
    const rows = Array.from(body.rows, function (row) {
      const text = row.cells[column].textContent.trim();
      return { row: row, text: text, value: number(text) };
    });
    const numeric = rows.every(function (r) { return r.text === "" || r.text === "-" || !isNaN(r.value); });
    rows.sort(function (a, b) {
      const gapA = a.text === "" || a.text === "-", gapB = b.text === "" || b.text === "-";
      if (gapA || gapB) return gapA - gapB;
      const order = numeric ? a.value - b.value : a.text.localeCompare(b.text, "en", { numeric: true });
      return down ? -order : order;
    });
    for (const r of rows) body.appendChild(r.row);
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  }
  for (const button of document.querySelectorAll("th button"))
    button.addEventListener("click", function () { sort(button.parentNode); });
  const root = document.documentElement, theme = document.getElementById("theme");
  theme.addEventListener("click", function () {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
  addEventListener("beforeprint", function () { for (const d of document.querySelectorAll("details")) d.open = true; });
})();
