// A heat map by layer and head for a chosen measure; a head that is chosen opens beside and below it.
const STOPS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

// Viridis: perceptually uniform, also in print and for colour-blind readers.
function heat(share) {
  const at = Math.min(Math.max(share, 0), 1) * (STOPS.length - 1), k = Math.min(Math.floor(at), STOPS.length - 2);
  return `rgb(${STOPS[k].map((from, i) => Math.round(from + (STOPS[k + 1][i] - from) * (at - k))).join(",")})`;
}

const cellOf = (cells, row, column) => (Array.isArray(cells) ? cells[row]?.[column] : cells);
const titleOf = (measure) => titled(measure.name, measure.theory);

function heatmap(root, subject) {
  const measures = subject.measures;
  const choice = html("select", {}, measures.map((measure, k) => html("option", { value: k }, titleOf(measure) + (measure.decides ? " ★" : ""))));
  const starting = measures.findIndex((measure) => measure.decides);
  choice.value = String(Math.max(starting, 0));
  const place = html("div", { class: "scroll" });
  const detail = html("div", { class: "detail" }, html("p", {}, "Choose a head to open it: what it attends to, and its numbers against the theory."));
  const opened = html("div", { class: "opened" }), said = html("p", { class: "hidden", role: "status" });
  const state = { row: null, column: null, input: 0, query: 0 };
  const redraw = () => place.replaceChildren(mapFigure(measures[Number(choice.value)], state, choose));
  const choose = (row, column) => {
    [state.row, state.column] = [row, column];
    const current = measures[Number(choice.value)], layer = current.map.layers[row];
    said.textContent = `Layer ${layer}, head ${column} is open below the map.`;
    detail.replaceChildren(html("h3", {}, `Layer ${layer}, head ${column}`), highlights(measures, layer, column), ...headLook(subject, layer, column, state, () => choose(row, column)));
    opened.replaceChildren(headFigures(subject, layer, column, state), numbersTable(measures, current, row, column));
    const title = detail.firstChild; // on a phone it is below the map
    if (title.getBoundingClientRect().bottom > innerHeight) title.scrollIntoView({ block: "center", behavior: "instant" });
  };
  choice.addEventListener("change", () => {
    redraw();
    if (state.row !== null) choose(state.row, state.column);
  });
  root.append(html("p", {}, html("label", {}, ["Measure (★ decides a claim): ", choice])), html("div", { class: "heat" }, [place, detail]), opened, said);
  redraw();
}

function mapFigure(measure, state, choose) {
  const map = measure.map, columns = Math.max(0, ...map.mean.map((row) => row.length));
  const size = Math.max(9, Math.min(48, Math.floor(620 / Math.max(columns, 1)))), high = Math.max(12, Math.min(size, 34, Math.floor(400 / map.layers.length))), left = 46, top = 34;
  const values = map.mean.flat().filter(isNumber), low = Math.min(...values), range = Math.max(...values) - low || 1;
  const drawing = canvas(left + Math.max(columns * size, 124) + 4, top + map.layers.length * high + 48, `${titleOf(measure)} by layer and head`);
  drawing.setAttribute("role", "grid");
  const every = Math.ceil(24 / size);
  drawing.append(svg("text", { class: "soft", x: left, y: 12 }, "head →"), svg("text", { class: "soft", x: left - 6, y: top - 6, "text-anchor": "end" }, "layer ↓"));
  for (let column = 0; column < columns; column += every) drawing.append(svg("text", { class: "soft", x: left + (column + 0.5) * size, y: top - 6, "text-anchor": "middle" }, column));
  map.layers.forEach((layer, row) => {
    const group = svg("g", { role: "row" });
    if (row % Math.ceil(14 / high) === 0) drawing.append(svg("text", { class: "soft", x: left - 6, y: top + (row + 0.5) * high + 4, "text-anchor": "end" }, layer));
    map.mean[row].forEach((mean, column) => {
      const counted = cellOf(map.counted, row, column), missing = cellOf(map.missing, row, column);
      if (!isNumber(mean) && !missing) return;
      const text = `layer ${layer}, head ${column}\n${titleOf(measure)} ${shown(mean)}` + (isNumber(map.spread[row][column]) ? ` ± ${shown(map.spread[row][column])}` : "") + `\n${counted} inputs` + (missing ? `, missing: ${missing}` : "");
      const cell = svg("rect", { class: isNumber(mean) ? "cell" : "cell empty", role: "gridcell", tabindex: -1, "aria-label": text.replaceAll("\n", ", "), "aria-selected": state.row === row && state.column === column, "data-row": row, "data-column": column, x: left + column * size, y: top + row * high, width: size - 1, height: high - 1, fill: isNumber(mean) ? heat((mean - low) / range) : "transparent" });
      tipped(cell, text);
      group.append(cell);
    });
    drawing.append(group);
  });
  const base = top + map.layers.length * high + 12;
  for (let k = 0; k < 40; k++) drawing.append(svg("rect", { x: left + k * 3, y: base, width: 3.2, height: 8, fill: heat(k / 39) }));
  drawing.append(svg("text", { class: "soft", x: left, y: base + 20 }, shown(low)), svg("text", { class: "soft", x: left + 120, y: base + 20, "text-anchor": "end" }, shown(low + range)), svg("text", { class: "soft", x: left, y: base + 34 }, { higher: "closer to the claim →", lower: "← closer to the claim" }[measure.closer] ?? ""));
  chosenByKeyboardOrPointer(drawing, choose);
  const rows = () => map.mean.flatMap((line, row) => line.map((mean, column) => ({ measure: measure.name, theory: measure.theory, layer: map.layers[row], head: column, mean: mean ?? "", deviation: map.spread[row][column] ?? "", inputs: cellOf(map.counted, row, column), missing: cellOf(map.missing, row, column) })));
  return figure(titleOf(measure), measure.text + ". Mean over inputs; rows are layers, columns heads.", drawing, rows);
}

// One tab stop, arrow keys from there, Enter or Space to choose.
function chosenByKeyboardOrPointer(drawing, choose) {
  const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  const cellAt = (row, column) => drawing.querySelector(`[data-row="${row}"][data-column="${column}"]`);
  const first = drawing.querySelector('.cell[aria-selected="true"]') || drawing.querySelector(".cell");
  first?.setAttribute("tabindex", 0);
  const pick = (cell) => {
    drawing.querySelectorAll('.cell[aria-selected="true"]').forEach((other) => other.setAttribute("aria-selected", false));
    cell.setAttribute("aria-selected", true);
    choose(Number(cell.dataset.row), Number(cell.dataset.column));
  };
  drawing.addEventListener("click", (event) => event.target.closest(".cell") && pick(event.target.closest(".cell")));
  drawing.addEventListener("keydown", (event) => {
    const cell = event.target.closest(".cell");
    if (!cell) return;
    if (event.key === "Enter" || event.key === " ") pick(cell);
    const step = steps[event.key];
    const next = step && cellAt(Number(cell.dataset.row) + step[0], Number(cell.dataset.column) + step[1]);
    if (next) {
      drawing.querySelectorAll('.cell[tabindex="0"]').forEach((other) => other.setAttribute("tabindex", -1));
      next.setAttribute("tabindex", 0);
      next.focus();
    }
    if (step || event.key === " ") event.preventDefault();
  });
}

// Every measure of the head, with the mean of its layer and its rank there.
function numbersTable(measures, current, row, column) {
  const layer = current.map.layers[row];
  const body = html("tbody");
  for (const measure of measures) {
    const place = measure.map.layers.indexOf(layer), line = measure.map.mean[place] || [], mean = line[column];
    if (place < 0 || mean === undefined) continue;
    const others = line.filter(isNumber), lost = cellOf(measure.map.missing, place, column);
    const rank = isNumber(mean) ? `${1 + others.filter((other) => other > mean).length} of ${others.length}` : "–";
    const spread = measure.map.spread[place][column];
    const value = isNumber(mean) ? shown(mean) + (isNumber(spread) ? ` ± ${shown(spread)}` : "") : `missing, ${lost} inputs`;
    const average = others.length ? others.reduce((sum, other) => sum + other, 0) / others.length : null;
    body.append(html("tr", measure === current ? { "aria-current": "true", style: "font-weight:700" } : {}, [html("th", { scope: "row", title: measure.text }, breakable(titleOf(measure))), html("td", { class: "number" }, value), html("td", { class: "number" }, shown(average)), html("td", { class: "number" }, rank)]));
  }
  const head = html("thead", {}, html("tr", {}, ["measure", "this head", "its layer", "rank"].map((name, k) => html("th", { scope: "col", class: k ? "number" : null }, name))));
  const table = html("table", {}, [html("caption", {}, "Mean ± deviation over inputs; the mean of the layer; rank from the largest."), head, body]);
  return html("details", {}, [html("summary", {}, "All measures of this head"), amongLayer(current, row, column), html("div", { class: "scroll" }, table)]);
}

// The main numbers of a head: its spectrum and its match, if the run measured them.
const HIGHLIGHTS = { eigenvalue_max: "largest eigenvalue", eigenvalue_bound_ratio: "largest over its bound", eigenvalue_min: "smallest kept", kernel_rank: "rank", gamma_rel: "relative γ differences", column_cosine_matched: "matched columns" };

function highlights(measures, layer, column) {
  const known = measures.filter((measure) => HIGHLIGHTS[measure.name] && measure.theory === measures[0].theory);
  return html("dl", { class: "facts" }, known.map((measure) => {
    const value = measure.map.mean[measure.map.layers.indexOf(layer)]?.[column];
    return html("div", {}, [html("dt", {}, HIGHLIGHTS[measure.name]), html("dd", {}, shown(value))]);
  }));
}

// The position of the head within its layer, for the measure of the map.
function amongLayer(measure, row, column) {
  const line = measure.map.mean[row] || [], drawing = canvas(300, 46, `${titleOf(measure)}: this head among its layer`);
  const across = scale(line, 12, 288, false);
  axis(drawing, true, across.ticks, across.place, 12, 28, 300);
  line.forEach((value, k) => isNumber(value) && k !== column && drawing.append(svg("circle", { cx: across.place(value), cy: 17, r: 4, fill: PALETTE[1], opacity: 0.45 })));
  if (isNumber(line[column])) drawing.append(svg("circle", { cx: across.place(line[column]), cy: 17, r: 6, fill: PALETTE[0] }));
  return drawing;
}
