// Small tools for SVG and the DOM. Text is inserted only as textContent, so that no name can become markup.
const SVG = "http://www.w3.org/2000/svg";
const PALETTE = ["observed", "negative", "positive", "fourth", "fifth", "sixth"].map((name) => `var(--${name})`);

function make(space, name, attributes, children) {
  const node = space ? document.createElementNS(space, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) if (value !== null && value !== undefined) node.setAttribute(key, value);
  for (const child of [].concat(children ?? [])) node.append(child);
  return node;
}
const html = (name, attributes, children) => make(null, name, attributes, children);
const svg = (name, attributes, children) => make(SVG, name, attributes, children);
const canvas = (width, height, label) => svg("svg", { class: "figure", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label });
const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const words = (name) => name.replaceAll("_", " ");

// The name of a measure, with its theory unless that is kernel PCA.
const titled = (name, theory) => name + (theory === "kpca" ? "" : ` (${theory})`);
const counted = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
// The title of an axis: the measure, and which end of it is closer to the claim.
const directed = (name, closer) => ({ higher: `${words(name)}, closer to the claim →`, lower: `← closer to the claim, ${words(name)}` })[closer] ?? words(name);
// A name that may break at its underscores.
const breakable = (name) => name.split("_").flatMap((part, k) => (k ? ["_", html("wbr"), part] : [part]));

function shown(value) {
  if (!isNumber(value)) return "missing";
  if (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e5)) return value.toExponential(2);
  return String(Number(value.toPrecision(3)));
}

// Ticks are round numbers, without trailing digits.
const ticked = (value) => (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e5) ? value.toExponential().replace("+", "") : shown(value));

// A scale from values to positions, linear or logarithmic, with round ticks.
function scale(values, from, to, logarithmic) {
  const usable = values.filter((value) => isNumber(value) && (!logarithmic || value > 0));
  let low = Math.min(...usable), high = Math.max(...usable);
  if (!usable.length) [low, high] = logarithmic ? [0.1, 1] : [0, 1];
  const on = logarithmic ? Math.log10 : (value) => value;
  let [start, end] = [on(low), on(high)];
  const margin = (end - start) * 0.04 || Math.abs(start) * 0.1 || 0.5;
  [start, end] = [start - margin, end + margin];
  const place = (value) => (logarithmic && value <= 0 ? NaN : from + ((on(value) - start) / (end - start)) * (to - from));
  return { place, ticks: logarithmic ? powers(start, end) : rounds(start, end) };
}

function rounds(start, end) {
  const rough = (end - start) / 4, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const ticks = [];
  for (let k = Math.ceil(start / step); k * step <= end; k++) ticks.push(Number((k * step).toPrecision(10)));
  return ticks;
}

function powers(start, end) {
  const first = Math.ceil(start), last = Math.floor(end), every = Math.max(1, Math.ceil((last - first) / 5));
  const ticks = [];
  for (let k = first; k <= last; k += every) ticks.push(10 ** k);
  return ticks.length > 1 ? ticks : rounds(10 ** start, 10 ** end).filter((value) => value > 0);
}

const tip = document.getElementById("tip");
function tipped(node, text) {
  const show = () => {
    const box = node.getBoundingClientRect();
    tip.textContent = text;
    tip.hidden = false;
    tip.style.left = `${Math.max(4, Math.min(box.right + 6, innerWidth - tip.offsetWidth - 8)) + scrollX}px`;
    tip.style.top = `${box.bottom + 4 + scrollY}px`;
  };
  const hide = () => { tip.hidden = true; };
  node.addEventListener("pointerenter", show);
  node.addEventListener("focus", show);
  node.addEventListener("pointerleave", hide);
  node.addEventListener("blur", hide);
}

// Download a file made in the page itself.
function saved(name, type, content) {
  const link = html("a", { download: name, href: URL.createObjectURL(new Blob([content], { type })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function csv(rows) {
  // A spreadsheet would run a text that begins like a formula.
  const cell = (value) => (isNumber(value) ? String(value) : `"${String(value ?? "").replace(/^([=+\-@\t\r])/, "'$1").replaceAll('"', '""')}"`);
  const names = Object.keys(rows[0] || {});
  return [names.map(cell).join(","), ...rows.map((row) => names.map((name) => cell(row[name])).join(","))].join("\n") + "\n";
}

function button(text, label, action) {
  const node = html("button", { type: "button", "aria-label": label }, text);
  node.addEventListener("click", action);
  return node;
}

// A drawing with its caption and download buttons.
function figure(title, caption, drawing, rows) {
  const name = title.replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 60);
  const asSvg = () => {
    const copy = drawing.cloneNode(true);
    copy.prepend(svg("style", {}, document.getElementById("figure-style").textContent));
    saved(`${name}.svg`, "image/svg+xml", new XMLSerializer().serializeToString(copy));
  };
  return html("figure", {}, [
    html("figcaption", {}, [html("strong", {}, title), caption]),
    drawing,
    html("div", { class: "tools" }, [
      button("SVG", `Download ${title} as SVG`, asSvg),
      button("CSV", `Download the data of ${title} as CSV`, () => saved(`${name}.csv`, "text/csv", csv(rows()))),
    ]),
  ]);
}
