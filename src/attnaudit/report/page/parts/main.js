// Each element with data-draw names its figure, which is drawn when the element comes near the screen.
const PLACES = {
  strips: (root, subject) => root.append(...subject.strips.map(stripFigure)),
  profiles: (root, subject) => root.append(...subject.profiles.map(profileFigure)),
  heatmap,
  overlays: (root) => root.append(...overlayFigures()),
};
const pending = new Set(document.querySelectorAll("[data-draw]"));
function draw(root) {
  if (pending.delete(root)) PLACES[root.dataset.draw](root, data.subjects[Number(root.dataset.subject)]);
}
const NEAR = 1500;
for (const root of [...pending]) if (root.getBoundingClientRect().top < innerHeight + NEAR) draw(root);
// A figure that is drawn on the way would move what a link points to.
const drawAll = () => [...pending].forEach(draw);
document.addEventListener("click", (event) => event.target.closest('a[href^="#"]') && drawAll(), true);
function land() {
  if (!location.hash || !pending.size) return;
  drawAll();
  document.getElementById(location.hash.slice(1))?.scrollIntoView({ behavior: "instant" });
}
land();
addEventListener("hashchange", land);
const watcher = new IntersectionObserver((entries) => entries.forEach((entry) => entry.isIntersecting && draw(entry.target)), { rootMargin: `${NEAR}px` });
pending.forEach((root) => watcher.observe(root));
addEventListener("beforeprint", () => {
  drawAll();
  document.querySelectorAll("details").forEach((hidden) => { hidden.open = true; });
});
document.querySelectorAll("table.sortable").forEach(sortable);
document.documentElement.dataset.ready = "true";
