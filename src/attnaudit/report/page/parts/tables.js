// Tables sort by a click on a heading, and can be downloaded.
function sortable(table) {
  const headings = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  const key = (cell) => {
    const value = cell.dataset.value;
    if (value === undefined) return cell.textContent.trim();
    return value === "" ? null : Number(value);
  };
  headings.forEach((heading, column) => heading.querySelector("button").addEventListener("click", () => {
    const falling = heading.getAttribute("aria-sort") === "ascending";
    headings.forEach((other) => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", falling ? "descending" : "ascending");
    const compare = (a, b) => {
      if (a === null || b === null) return (a === null) - (b === null); // missing last, whichever way
      const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en");
      return falling ? -order : order;
    };
    body.append(...[...body.rows].sort((a, b) => compare(key(a.cells[column]), key(b.cells[column]))));
  }));
  // On a phone every number stands below the name of its column.
  for (const row of body.rows) [...row.cells].forEach((cell, k) => { cell.dataset.label = headings[k].textContent; });
  const rows = () => [...body.rows].map((row) => Object.fromEntries([...row.cells].map((cell, k) => [headings[k].textContent, cell.textContent.trim()])));
  table.parentElement.after(html("div", { class: "tools" }, button("CSV", `Download the table ${table.dataset.name} as CSV`, () => saved(`${table.dataset.name}.csv`, "text/csv", csv(rows())))));
}
