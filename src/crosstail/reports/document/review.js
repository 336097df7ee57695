const data = JSON.parse(document.getElementById("data").textContent), SIZE = 48;
const parts = [...document.querySelectorAll(".pictures")], pictures = {};
const $ = id => document.getElementById(id), make = (tag, about = {}) => Object.assign(document.createElement(tag), about);
const key = `crosstail ${data.key}`, classes = data.classes, photos = data.photos;
const said = photo => classes[photo.classes[0]], tiles = document.querySelector(".tiles");
let labels = {}, shown = [], page = 0, last = [];
try { labels = JSON.parse(localStorage[key] ?? "{}"); } catch { }  // path → class, or null if it is left out
const keep = () => { try { localStorage[key] = JSON.stringify(labels); } catch { } };

function picture(i) {  // thumbnails are parsed some at a time, when they are needed
  const n = Math.floor(i / data.part);
  pictures[n] ??= JSON.parse(parts[n].textContent);
  return pictures[n][i % data.part];
}
const label = i => labels[photos[i].path];
const state = i => label(i) === undefined ? "" : label(i) === null ? "out" : label(i) === said(photos[i]) ? "right" : "changed";
const SHOWS = {"all": () => true, "not looked at": i => !state(i), "looked at": i => state(i),
  "changed": i => state(i) === "changed", "left out": i => state(i) === "out"};
for (const flag of data.flags) SHOWS[flag] = i => photos[i].flags.includes(flag);
function menu(id, names) { $(id).append(...names.map(name => make("option", {textContent: name, value: name}))); }
menu("class", ["all", ...classes.filter((_, c) => photos.some(photo => photo.classes[0] === c))]);
menu("site", ["all", ...new Set(photos.map(photo => photo.site ?? "unknown"))]);
menu("flag", Object.keys(SHOWS));
$("classes").append(...classes.map(name => make("option", {value: name})));
$("unnamed").hidden = photos.every(photo => photo.site !== null);

function fill(tile) {
  const i = tile.i, photo = photos[i], chosen = label(i);
  tile.className = `tile ${state(i)}`;
  tile.replaceChildren(make("img", {src: picture(i), alt: `Photo ${photo.name}`, loading: "lazy"}),
    make("a", {href: photo.uri, textContent: photo.name.split("/").pop(), target: "_blank", tabIndex: -1, title: photo.name}),
    make("div", {className: "flags", textContent: [photo.site ?? "unknown site", ...photo.flags].join(" · ")}));
  photo.classes.forEach((c, k) => {
    const button = make("button", {type: "button", tabIndex: -1, onclick: () => decide(tile, classes[c])});
    button.style.setProperty("--p", `${100 * photo.p[k]}%`);
    button.className = `${classes[c] === chosen ? "chosen" : ""} ${photo.inside[k] ? "" : "outside"}`;
    button.append(make("span", {textContent: `${k + 1}  ${classes[c]}`}), `${(100 * photo.p[k]).toFixed(0)} %`);
    tile.append(button);
  });
  if (photo.more) tile.append(make("div", {className: "dim", textContent: `and ${photo.more} more classes in its set`}));
  const listed = photo.classes.some(c => classes[c] === chosen);
  const other = make("input", {placeholder: "another class", value: listed ? "" : chosen ?? "", tabIndex: -1});
  other.setAttribute("list", "classes");
  other.setAttribute("aria-label", "another class");
  other.onchange = () => { if (other.value.trim()) decide(tile, other.value.trim()); };
  tile.append(other, make("button", {type: "button", tabIndex: -1, textContent: "leave out", onclick: () => decide(tile, null)}));
}
function set(i, name) {
  if (name === undefined) delete labels[photos[i].path]; else labels[photos[i].path] = name;
  keep();
  count();
}
function decide(tile, name, move = false) {
  last.push([tile.i, label(tile.i)]);
  set(tile.i, name);
  fill(tile);
  if (move) focus(1, tile); else tile.focus();
}
function focus(by, tile) {
  const all = [...tiles.children], at = all.indexOf(tile) + by;
  if (at >= all.length && turn(1)) return;
  if (at < 0 && turn(-1)) return;
  all[Math.min(Math.max(at, 0), all.length - 1)]?.focus();
}
function count() {
  const n = {"": 0, right: 0, changed: 0, out: 0};
  for (const i of photos.keys()) n[state(i)]++;
  $("done").textContent = `${photos.length - n[""]} of ${photos.length} looked at: ${n.right} right, ${n.changed} ` +
    `changed, ${n.out} left out. ${shown.length} shown.`;
}
function draw() {
  const some = shown.slice(page * SIZE, (page + 1) * SIZE);
  tiles.replaceChildren(...some.map(i => {
    const tile = make("figure", {i, tabIndex: 0});
    tile.style.margin = 0;
    fill(tile);
    return tile;
  }));
  const pages = Math.max(1, Math.ceil(shown.length / SIZE));
  document.querySelector(".pages output").value = `${page + 1} of ${pages}`;
  [$("back").disabled, $("next").disabled] = [page === 0, page >= pages - 1];
  count();
}
function turn(by) {
  if (page + by < 0 || (page + by) * SIZE >= shown.length) return false;
  page += by;
  draw();
  tiles.firstElementChild?.focus();
  return true;
}
function filter() {
  const [c, site, flag, name] = ["class", "site", "flag", "name"].map(id => $(id).value);
  shown = [...photos.keys()].filter(i => (c === "all" || said(photos[i]) === c) && (site === "all" || (photos[i].site ?? "unknown") === site)
    && SHOWS[flag](i) && photos[i].name.toLowerCase().includes(name.toLowerCase()));
  page = 0;
  draw();
}
for (const id of ["class", "site", "flag", "name"]) $(id).oninput = filter;
$("back").onclick = () => turn(-1);
$("next").onclick = () => turn(1);
document.querySelector(".bar").onsubmit = event => event.preventDefault();
addEventListener("keydown", event => {
  const tile = document.activeElement?.closest?.(".tile") ?? (document.activeElement === document.body ? tiles.firstElementChild : null);
  if (!tile || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.tagName === "INPUT") { if (event.key === "Escape") tile.focus(); return; }
  const photo = photos[tile.i], wide = Math.max(1, Math.round(tiles.clientWidth / (tile.clientWidth + 15)));
  const keys = {ArrowRight: () => focus(1, tile), ArrowLeft: () => focus(-1, tile), ArrowDown: () => focus(wide, tile),
    ArrowUp: () => focus(-wide, tile), Enter: () => decide(tile, said(photo), true), x: () => decide(tile, null, true),
    o: () => tile.querySelector("input").focus(), n: () => turn(1), p: () => turn(-1), u: () => {
      const [i, before] = last.pop() ?? [];
      const of = [...tiles.children].find(one => one.i === i);
      if (i !== undefined) set(i, before);
      if (of) { fill(of); of.focus(); }
    }};
  const c = photo.classes[event.key - 1];
  if (!(event.key in keys) && c === undefined) return;
  event.preventDefault();
  if (c === undefined) keys[event.key](); else decide(tile, classes[c], true);
});
$("save").onclick = () => {
  const quoted = text => `"${String(text).replaceAll('"', '""')}"`, rows = [["path", "domain", "label", "predicted"]];
  photos.forEach((photo, i) => {
    if (state(i) && state(i) !== "out")
      rows.push([photo.path, photo.site ?? ($("newsite").value.trim() || "new site"), label(i), said(photo)]);
  });
  if (rows.length === 1) { $("done").textContent = "There is nothing to save: no photo has a label yet."; return; }
  const table = rows.map(row => row.map(quoted).join(",") + "\n").join("");
  make("a", {download: data.file, href: URL.createObjectURL(new Blob([table], {type: "text/csv"}))}).click();
};
filter();
