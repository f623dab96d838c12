// One head: what it attends to, its numbers between chance and the claim, its spectrum, its values beside the predicted ones.
const NOT_KEPT = "What it attends to, its eigenvalues and its value columns were not kept: repeat the command with --keep-maps (in Python: keep_maps=2), which computes nothing else anew.";

// Rows of numbers that were stored as bytes, a function of the row.
function rowsOf(kept) {
  const codes = Uint8Array.from(atob(kept.codes), (character) => character.charCodeAt(0)), width = codes.length / kept.low.length;
  return (row) => Array.from(codes.subarray(row * width, (row + 1) * width), (code) => kept.low[row] + ((kept.high[row] - kept.low[row]) * code) / 255);
}

const viewOf = (subject, layer, head, state) => subject.views[state.input]?.heads.find((own) => own.layer === layer && own.head === head);
const percent = (share) => `${shown(100 * share)} %`;

// Beside the map: the choice of an input, and attention on it.
function headLook(subject, layer, head, state, again) {
  const parts = [];
  const input = subject.views[state.input];
  if (!input) parts.push(html("p", { class: "note" }, NOT_KEPT));
  if (subject.views.length > 1) parts.push(chosen("Input", subject.views.map((own) => own.input), state, "input", again));
  const view = viewOf(subject, layer, head, state);
  if (view) parts.push(...(view.grid ? [pictureFigure(input, view)] : textParts(input, view, state, again)));
  if (input?.note) parts.push(html("p", { class: "note" }, `${input.input}: ${input.note}.`));
  else if (input && !view) parts.push(html("p", { class: "note" }, "Of this head no map was kept: its layer has no softmax attention that was captured on this input."));
  return parts;
}

function chosen(label, names, state, key, again) {
  const choice = html("select", {}, names.map((name, k) => html("option", { value: k }, name)));
  choice.value = String(state[key]);
  choice.addEventListener("change", () => {
    state[key] = Number(choice.value);
    const around = choice.closest(".detail");
    again();
    around.querySelector(`[data-choice="${key}"] select`)?.focus();
  });
  return html("p", { "data-choice": key }, html("label", {}, [`${label}: `, choice]));
}

// What was simplified to show one picture of a head.
function simplified(input, view) {
  return (input.picture && !view.grid ? " Its tokens are no grid of patches: their numbers are shown." : "")
    + (view.windows > 1 ? ` Attention runs in ${view.windows.toLocaleString("en")} windows: this is the first, whose place in the picture is not known.` : "")
    + (view.query_heads > 1 ? ` ${view.query_heads} heads share these keys and are taken together.` : "")
    + (view.causal ? " Causal: no token sees a later one, and the mean is over the queries that see a token." : "");
}

// Tiles over the picture, coloured like the heat map; square roots, because one token often has most of the attention.
function pictureFigure(input, view) {
  const row = rowsOf(view.attention), [high, wide] = view.grid, others = view.tokens - high * wide;
  const side = 150, height = (side * high) / wide, gap = 10, framed = input.picture && view.windows === 1;
  const names = view.one_query === null ? ["all tokens, mean"] : ["all tokens, mean", "class token"];
  const drawing = canvas(3 * (side + gap) - gap, height + 18, `Attention of layer ${view.layer}, head ${view.head}, on ${input.input}`);
  const place = (k) => k * (side + gap);
  const picture = (k) => svg("image", { href: `data:image/jpeg;base64,${input.picture}`, x: place(k), y: 16, width: side, height, preserveAspectRatio: "none" });
  if (framed) drawing.append(svg("text", { x: 0, y: 11 }, "the input"), picture(0));
  const sentences = names.map((name, k) => {
    const all = row(k), patches = all.slice(others), most = Math.max(...patches), tile = k + (framed ? 1 : 0), group = svg("g");
    drawing.append(svg("text", { x: place(tile), y: 11 }, name));
    if (framed) drawing.append(svg("g", { class: "grey" }, picture(tile)));
    patches.forEach((share, at) => group.append(svg("rect", { x: (place(tile) + ((at % wide) * side) / wide).toFixed(2), y: (16 + (Math.floor(at / wide) * height) / high).toFixed(2), width: (side / wide + 0.1).toFixed(2), height: (height / high + 0.1).toFixed(2), fill: heat(Math.sqrt(share / most)) })));
    if (framed) group.setAttribute("opacity", 0.62);
    const rest = all.slice(0, others).reduce((sum, share) => sum + share, 0);
    const text = `${k ? name : "All tokens, mean"}: at most ${percent(most)} on one patch (${percent(1 / view.tokens)} if even)` + (others ? `, ${percent(rest)} on ${others === 1 ? "the class token" : `the ${others} tokens before the patches`}` : "");
    tipped(group, text);
    drawing.append(group);
    return text;
  });
  const rows = () => names.flatMap((name, k) => row(k).map((share, token) => ({ query: name, token, attention: share })));
  return figure("What it attends to", ` ${sentences.join("; ")}. Yellow is the most, violet none; colours go by square roots.${simplified(input, view)}`, drawing, rows);
}

const tokenNames = (input, view) => input.tokens ?? Array.from({ length: view.tokens }, (_, k) => String(k));
const visibleToken = (text) => (text.trim() === "" ? "␣" : text.trim());

// The text coloured by attention.
function textParts(input, view, state, again) {
  const names = tokenNames(input, view), row = rowsOf(view.attention);
  const queries = ["all tokens, mean"].concat(view.one_query === null ? [] : [`the ${view.causal ? "last" : "first"} token, ${visibleToken(names[view.one_query] ?? "")}`]);
  const query = Math.min(state.query, queries.length - 1), shares = row(query), most = Math.max(...shares);
  const text = html("p", { class: "tokens", tabindex: 0, role: "region", "aria-label": "The text, coloured by attention" }, shares.flatMap((share, k) => {
    const token = html("span", { style: `--share: ${Math.sqrt(share / most).toFixed(2)}` }, visibleToken(names[k]));
    tipped(token, `token ${k}: ${percent(share)}`);
    return [token, " "];
  }));
  const top = shares.indexOf(most);
  const caption = html("p", { class: "caption" }, [html("strong", {}, "What it attends to"), ` Most on ${visibleToken(names[top])} (token ${top}): ${percent(most)}, ${percent(1 / view.tokens)} if even. Colours go by square roots.${simplified(input, view)}`]);
  return [queries.length > 1 ? chosen("Attention of", queries, state, "query", again) : "", caption, text];
}

// A small map of its first tokens among themselves.
function blockFigure(view, names) {
  const row = rowsOf(view.block), count = view.block.low.length, cell = 10, left = 62, top = 62, size = Math.min(count, view.tokens);
  const short = (k) => { const name = visibleToken(names[k] ?? String(k)); return name.length > 10 ? `${name.slice(0, 9)}…` : name; };
  const drawing = canvas(left + size * cell + 4, top + count * cell + 4, "Attention among the first tokens");
  for (let k = 0; k < size; k++) drawing.append(svg("text", { class: "soft tiny", transform: `translate(${left + (k + 0.75) * cell} ${top - 4}) rotate(-60)` }, short(k)));
  for (let k = 0; k < count; k++) {
    drawing.append(svg("text", { class: "soft tiny", x: left - 4, y: top + (k + 0.8) * cell, "text-anchor": "end" }, short(k)));
    row(k).forEach((share, at) => {
      const square = svg("rect", { x: left + at * cell, y: top + k * cell, width: cell - 0.5, height: cell - 0.5, fill: heat(share / (view.block.high[k] || 1)) });
      tipped(square, `${visibleToken(names[k] ?? "")} → ${visibleToken(names[at] ?? "")}: ${percent(share)}`);
      drawing.append(square);
    });
  }
  const rows = () => view.block.low.flatMap((_, k) => row(k).map((share, at) => ({ query: names[k], key: names[at], attention: share })));
  return figure(`Among the first ${count} tokens`, " A row per query, coloured from 0 to its largest share.", drawing, rows);
}

// Every deciding measure of the head on one scale: 0 is chance, 1 is the claim.
function scaleFigure(subject, layer, head) {
  const found = subject.scales.flatMap((own) => {
    const of = (kind) => { const means = own.means.find((each) => each.kind === kind); return means?.mean[means.layers.indexOf(layer)]?.[head]; };
    const [value, chance, claim, best] = ["observed", "null", "ideal", "ceiling"].map(of);
    if (![value, chance, claim].every(isNumber) || claim === chance) return [];
    return [{ name: titled(words(own.measure), own.theory), value, chance, claim, best, score: (value - chance) / (claim - chance), reach: isNumber(best) ? (best - chance) / (claim - chance) : null }];
  });
  if (!found.length) return html("p", { class: "note" }, "No measure of this head can be placed between chance and a claim: its value is missing, or chance or the claim were not measured.");
  const width = 330, each = 40, at = (score) => 16 + ((Math.min(Math.max(score, -0.1), 1.1) + 0.1) / 1.2) * (width - 32);
  const drawing = canvas(width, found.length * each + 22, found.map((own) => `${own.name} ${shown(own.value)}, score ${shown(own.score)}`).join("; "));
  found.forEach((own, k) => {
    const y = k * each + 26;
    drawing.append(svg("text", { x: 0, y: y - 13 }, own.name), svg("text", { x: width, y: y - 13, "text-anchor": "end" }, `${shown(own.value)}, chance ${shown(own.chance)}`));
    drawing.append(svg("line", { class: "grid", x1: 8, x2: width - 8, y1: y, y2: y }));
    for (const end of [0, 1]) drawing.append(svg("line", { class: "mean", x1: at(end), x2: at(end), y1: y - 5, y2: y + 5, opacity: 0.5 }));
    if (isNumber(own.reach)) drawing.append(svg("path", { d: `M${at(own.reach)} ${y - 6}l6 6l-6 6l-6 -6z`, fill: "none", stroke: PALETTE[4], "stroke-width": 1.6 }));
    const beyond = own.score < -0.1 ? "◀" : own.score > 1.1 ? "▶" : "";
    const mark = beyond ? svg("text", { x: at(own.score), y: y + 4, "text-anchor": "middle", style: "fill: var(--observed)" }, beyond) : svg("circle", { cx: at(own.score), cy: y, r: 5, fill: PALETTE[0] });
    tipped(mark, `${own.name}: ${shown(own.value)}\nchance ${shown(own.chance)}, the claim ${shown(own.claim)}` + (isNumber(own.best) ? `\nbest projection ${shown(own.best)}` : "") + `\nscore ${shown(own.score)}`);
    drawing.append(mark);
  });
  const base = found.length * each + 14;
  drawing.append(svg("text", { class: "soft", x: at(0), y: base, "text-anchor": "middle" }, "0 chance"), svg("text", { class: "soft", x: at(1), y: base, "text-anchor": "middle" }, "1 the claim"));
  const rows = () => found.map(({ name, value, chance, claim, best, score }) => ({ measure: name, value, chance, claim, "best projection": best ?? "", score }));
  return figure("Between chance and the claim", " The head (●) and the best value projection (◇), means over all inputs; ◀ ▶ beyond the scale.", drawing, rows);
}

// Below the map: scales, eigenvalues and columns.
function headFigures(subject, layer, head, state) {
  const view = viewOf(subject, layer, head, state), input = subject.views[state.input];
  const figures = html("div", { class: "figures" }, scaleFigure(subject, layer, head));
  if (!view) return figures;
  if (view.block) figures.append(blockFigure(view, tokenNames(input, view)));
  if (view.eigenvalues.length) {
    const line = { name: "eigenvalue μ of its keys", x: view.eigenvalues.map((_, k) => k + 1), y: view.eigenvalues, lower: [], upper: [] };
    figures.append(lineFigure("Eigenvalue spectrum", ` Of the centred kernel of its ${counted(view.tokens, "key")} on ${input.input}.`, [line], { x: "component", y: "μ (log scale)", whole: true, logarithmic: true, bound: view.bound }));
  }
  if (view.columns) {
    const mean = view.cosines.reduce((sum, cosine) => sum + cosine, 0) / view.cosines.length;
    const caption = ` The best of ${counted(view.cosines.length, "pair")} of value columns and predicted eigenvector columns (|cosine| ${shown(mean)} on average, 1 in theory).`;
    figures.append(view.grid ? gridColumns(view, caption) : lineColumns(view, caption));
    const line = { name: "|cosine| of a pair", x: view.cosines.map((_, k) => k + 1), y: view.cosines, lower: [], upper: [] };
    figures.append(lineFigure("All columns in the best assignment", " From the best pair to the worst; the theory says 1 for all.", [line], { x: "pair", y: "|cosine|", whole: true, bound: 1, boundName: "the theory" }));
  } else figures.append(html("p", { class: "note" }, `Its values have no prediction to be compared with: ${view.problem}.`));
  return figures;
}

// The largest entry as 1, so that both columns of a pair have one scale.
function columnsOf(view) {
  const row = rowsOf(view.columns);
  return view.columns.low.map((_, k) => { const own = row(k), most = Math.max(...own.map(Math.abs)) || 1; return own.map((value) => value / most); });
}

function gridColumns(view, caption) {
  const [high, wide] = view.grid, others = view.tokens - high * wide, side = 190, height = (side * high) / wide, gap = 14, rows = columnsOf(view);
  const drawing = canvas(2 * side + gap, (rows.length / 2) * (height + 22), "Value columns beside predicted columns, over the patches");
  rows.forEach((values, k) => {
    const [x, y] = [(k % 2) * (side + gap), Math.floor(k / 2) * (height + 22)];
    drawing.append(svg("text", { x, y: y + 11 }, k % 2 ? "predicted eigenvector" : `values, |cosine| ${shown(view.cosines[k / 2])}`));
    values.slice(others).forEach((value, at) => drawing.append(svg("rect", { class: value < 0 ? "below" : "above", x: (x + ((at % wide) * side) / wide).toFixed(2), y: (y + 16 + (Math.floor(at / wide) * height) / high).toFixed(2), width: (side / wide).toFixed(2), height: (height / high).toFixed(2), "fill-opacity": Math.abs(value).toFixed(2) })));
    drawing.append(svg("rect", { class: "frame", x, y: y + 16, width: side, height }));
  });
  return figure("Values beside the theory", `${caption} Over the patches; orange is positive, blue negative.`, drawing, () => columnRows(view, rows));
}

function lineColumns(view, caption) {
  const rows = columnsOf(view), tokens = rows[0].map((_, k) => k);
  const lines = ["values", "predicted eigenvector"].map((name, k) => ({ name, x: tokens, y: rows[k], lower: [], upper: [] }));
  return lineFigure("Values beside the theory", `${caption} Here the best pair, |cosine| ${shown(view.cosines[0])}, over tokens.`, lines, { x: "token", y: "entry, largest as ±1", whole: true });
}

const columnRows = (view, rows) => rows.flatMap((values, k) => values.map((value, token) => ({ pair: Math.floor(k / 2) + 1, column: k % 2 ? "predicted" : "values", cosine: view.cosines[Math.floor(k / 2)], token, value })));
