// Strips, profiles and overlays.
const data = JSON.parse(document.getElementById("data").textContent);
const COLOURS = { observed: PALETTE[0], null: PALETTE[1], ideal: PALETTE[2], ceiling: PALETTE[4], context: "var(--soft)" };

// A fixed sequence, not random numbers, so that the same page looks the same every time.
const jitter = (k) => ((k * 0.618034) % 1) - 0.5;

function axis(target, horizontal, ticks, place, left, bottom, width) {
  for (const tick of ticks) {
    const at = place(tick);
    target.append(horizontal
      ? svg("line", { class: "grid", x1: at, x2: at, y1: 6, y2: bottom })
      : svg("line", { class: "grid", x1: left, x2: width - 8, y1: at, y2: at }));
    target.append(horizontal
      ? svg("text", { class: "soft", x: at, y: bottom + 14, "text-anchor": "middle" }, ticked(tick))
      : svg("text", { class: "soft", x: left - 6, y: at + 4, "text-anchor": "end" }, ticked(tick)));
  }
}

// Values of very different size need a logarithmic scale.
function spreadsWide(strip) {
  const observed = strip.rows.find((row) => row.kind === "observed")?.points ?? [];
  const all = strip.rows.flatMap((row) => row.points);
  return all.length > 0 && Math.min(...all) > 0 && observed.at(-1) / observed[0] > 1000;
}

function stripFigure(strip) {
  // Some references are measured on a few of the inputs only.
  const named = (row) => words(row.reference) + (row.inputs && row.inputs < strip.rows[0].inputs ? `, ${row.inputs} input${row.inputs > 1 ? "s" : ""}` : "");
  const width = 420, longest = Math.max(8, ...strip.rows.map((row) => named(row).length));
  const left = 14 + 6.2 * longest, each = 26, bottom = 8 + each * Math.max(1, strip.rows.length);
  const logarithmic = spreadsWide(strip);
  const title = titled(words(strip.measure), strip.theory) + (logarithmic ? ", log scale" : "");
  const lost = strip.unidentifiable ? ` Heads with too few tokens to decide are left out (${strip.unidentifiable.toLocaleString("en")} values).` : "";
  const counts = strip.rows.map((row) => `${named(row)} ${shown(row.mean)}${row.missing ? ` (missing: ${row.missing.toLocaleString("en")} values)` : ""}`);
  const role = strip.decides ? "" : " Decides nothing.";
  const caption = `${counted(strip.heads, "head")} on ${counted(strip.rows[0].inputs, "input")}.` + role + lost;
  const drawing = canvas(width, bottom + 36, `${title}, means: ${counts.join(", ")}`);
  const points = strip.rows.flatMap((row) => row.points);
  // Measures from 0 to 1 are all drawn from 0.
  const from = !logarithmic && Math.min(...points) > 0 && Math.max(...points) <= 1 ? [0] : [];
  const across = scale([...from, ...points], left, width - 8, logarithmic);
  axis(drawing, true, across.ticks, across.place, left, bottom, width);
  drawing.append(svg("text", { class: "soft", x: width - 8, y: bottom + 30, "text-anchor": "end" }, directed(strip.measure, strip.closer)));
  strip.rows.forEach((row, place) => {
    const middle = 8 + each * (place + 0.5), group = svg("g", { fill: COLOURS[row.kind] });
    drawing.append(svg("text", { x: left - 8, y: middle + 4, "text-anchor": "end", "font-weight": row.kind === "observed" ? 700 : 400 }, named(row)));
    row.points.forEach((value, k) => group.append(svg("circle", { class: "dot", cx: across.place(value).toFixed(1), cy: (middle + jitter(k) * each * 0.66).toFixed(1), r: 2 })));
    tipped(group, `${named(row)}\nmean ${shown(row.mean)} of ${row.counted.toLocaleString("en")} values, one for each head and input\nmissing: ${row.missing.toLocaleString("en")}`);
    drawing.append(group);
    if (!row.points.length) drawing.append(svg("text", { class: "soft", x: left + 8, y: middle + 4 }, `missing, ${row.missing.toLocaleString("en")} values`));
    if (isNumber(row.mean)) drawing.append(svg("line", { class: "mean", x1: across.place(row.mean), x2: across.place(row.mean), y1: middle - 10, y2: middle + 10 }));
  });
  const rows = () => strip.rows.flatMap((row) => row.points.map((value) => ({ measure: strip.measure, theory: strip.theory, reference: row.reference, value, mean: row.mean, values: row.counted, inputs: row.inputs, missing: row.missing })));
  return figure(title, caption, drawing, rows);
}

function lineFigure(title, caption, lines, options) {
  const width = 420, left = 62, bottom = 190;
  const drawing = canvas(width, bottom + 34 + 15 * Math.ceil(lines.length / 2), `${title}: ${caption}`);
  const bounds = isNumber(options.bound) ? [options.bound] : [];
  const across = scale(lines.flatMap((line) => line.x), left, width - 8, false);
  const up = scale([...lines.flatMap((line) => [...line.y, ...line.lower, ...line.upper]), ...bounds], bottom, 8, options.logarithmic);
  axis(drawing, true, across.ticks.filter((tick) => !options.whole || Number.isInteger(tick)), across.place, left, bottom, width);
  axis(drawing, false, up.ticks, up.place, left, bottom, width);
  drawing.append(svg("text", { class: "soft", x: (left + width) / 2, y: bottom + 28, "text-anchor": "middle" }, options.x));
  drawing.append(svg("text", { class: "soft", transform: `translate(10 ${bottom / 2 + 8}) rotate(-90)`, "text-anchor": "middle" }, options.y));
  lines.forEach((line, k) => {
    const colour = PALETTE[k % PALETTE.length];
    const at = (values) => line.x.map((x, i) => [across.place(x), up.place(values[i])]).filter(([, y]) => isNumber(y));
    const path = (points) => points.map((point) => point.map((value) => value.toFixed(1)).join(",")).join(" ");
    if (line.lower.length) drawing.append(svg("polygon", { class: "band", fill: colour, points: path([...at(line.lower), ...at(line.upper).reverse()]) }));
    const points = at(line.y);
    drawing.append(svg("polyline", { class: "curve", stroke: colour, points: path(points), "stroke-dasharray": k < PALETTE.length ? null : "5 3" }));
    if (options.dots) points.forEach(([x, y]) => drawing.append(svg("circle", { cx: x.toFixed(1), cy: y.toFixed(1), r: 2.4, fill: colour })));
    const [x, y] = [left + (k % 2) * 175, bottom + 46 + 15 * Math.floor(k / 2)];
    drawing.append(svg("line", { x1: x, x2: x + 16, y1: y - 4, y2: y - 4, stroke: colour, "stroke-width": 3 }), svg("text", { x: x + 21, y }, line.name.length > 26 ? `${line.name.slice(0, 13)}…${line.name.slice(-12)}` : line.name));
  });
  for (const bound of bounds) drawing.append(svg("line", { class: "bound", x1: left, x2: width - 8, y1: up.place(bound), y2: up.place(bound) }), svg("text", { x: width - 10, y: up.place(bound) + 13, "text-anchor": "end" }, options.boundName ?? "provable bound"));
  const rows = () => lines.flatMap((line) => line.x.map((x, i) => ({ series: line.name, [options.x]: x, value: line.y[i], lower: line.lower[i] ?? "", upper: line.upper[i] ?? "" })));
  return figure(title, caption, drawing, rows);
}

function profileFigure(profile) {
  const lines = profile.lines.map((line) => ({ name: words(line.name), x: line.layers, y: line.middle, lower: line.lower, upper: line.upper }));
  return lineFigure(profile.title, profile.caption, lines, { x: "layer", y: profile.axis, whole: true, dots: true, logarithmic: profile.logarithmic, bound: profile.bound });
}

// The distribution of the observed heads of every subject, for one measure.
function overlayFigures() {
  const keys = new Map();
  for (const subject of data.subjects) for (const strip of subject.strips) keys.set(`${strip.measure} ${strip.theory}`, strip);
  return [...keys.values()].flatMap(({ measure, theory, closer }) => {
    const lines = data.subjects.flatMap((subject) => {
      const own = subject.strips.find((strip) => strip.measure === measure && strip.theory === theory);
      const row = own?.rows.find((each) => each.kind === "observed");
      return row?.points.length ? [{ name: subject.label, x: row.points, y: row.points.map((_, k) => (k + 1) / row.points.length), lower: [], upper: [] }] : [];
    });
    if (!lines.length) return [];
    return lineFigure(titled(words(measure), theory), "", lines, { x: directed(measure, closer), y: "share of values" });
  });
}
