// Tables sort; fields can be hidden, and the bars count only the models that are shown.
document.querySelectorAll("table.sortable").forEach(sortable);

const boxes = [...document.querySelectorAll('.filter input[name="field"]')];
const rows = [...document.querySelectorAll("tbody tr[data-field]")];

function tallied(tally) {
  const cells = rows.filter((row) => !row.hidden).flatMap((row) => [...row.cells]).filter((cell) => cell.dataset.claim === tally.dataset.claim);
  const parts = [...tally.querySelectorAll(".bar i")];
  for (const piece of parts) {
    const count = cells.filter((cell) => cell.dataset.kind === piece.dataset.kind).length;
    piece.style.flexGrow = count;
    piece.hidden = count === 0;
    piece.textContent = count;
  }
  tally.querySelector(".bar").setAttribute("aria-label", parts.map((piece) => `${piece.textContent} ${piece.dataset.kind}`).join(", "));
}

function filtered() {
  const shownFields = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
  for (const row of rows) row.hidden = !shownFields.has(row.dataset.field);
  document.querySelectorAll(".tally").forEach(tallied);
  const models = document.querySelectorAll('table[data-name="heads"] tbody tr:not([hidden])').length;
  document.querySelector("[data-count]").textContent = counted(models, "model");
}

if (boxes.length) {
  boxes.forEach((box) => box.addEventListener("change", filtered));
  // A double click on a field shows it alone.
  boxes.forEach((box) => box.parentElement.addEventListener("dblclick", () => {
    boxes.forEach((other) => { other.checked = other === box; });
    filtered();
  }));
  document.querySelector("[data-all]").addEventListener("click", () => {
    boxes.forEach((box) => { box.checked = true; });
    filtered();
  });
  filtered();
}
document.documentElement.dataset.ready = "true";
