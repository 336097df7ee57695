const places = [...document.querySelectorAll("[data-chart]")], waiting = new Set(places);
// Text and lines take the colour of the page, so charts follow the colour scheme, also on paper, without being redrawn.
const ink = "currentColor", faint = {domainOpacity: .35, tickOpacity: .35, gridOpacity: .13};
const label = {labelColor: ink, titleColor: ink, labelFontSize: 12, titleFontSize: 12};
const config = {background: "transparent", font: "system-ui, sans-serif", view: {stroke: "transparent"},
  axis: {...label, ...faint, titleFontWeight: "normal", domainColor: ink, tickColor: ink, gridColor: ink},
  legend: {...label, titleFontWeight: "normal"}, header: {...label, labelFontSize: 13}, title: {color: ink, fontSize: 14},
  text: {color: ink}, rule: {color: ink}, tick: {color: ink}};
async function draw(place) {
  waiting.delete(place);
  const spec = JSON.parse(document.getElementById(place.dataset.chart).textContent);
  const room = place.parentElement.clientWidth;
  if (spec.columns && room < 640) {  // on a phone, panels are below each other and no wider than the page
    spec.columns = 1;
    for (const panel of spec.concat ?? []) if (panel.width > room)
      [panel.width, panel.height] = [room, panel.height * room / panel.width];
  }
  const stacked = {legend: {...config.legend, layout: {bottom: {direction: "vertical", anchor: "start"}}}};
  const fitting = room < 640 ? {...config, ...stacked} : config;  // legends side by side would be cut off
  const {view} = await vegaEmbed(place, spec, {actions: false, renderer: "svg", config: fitting});
  for (const button of place.parentElement.nextElementSibling.querySelectorAll("[data-save]"))
    button.onclick = async () => Object.assign(document.createElement("a"), {download: place.dataset.name + "." +
      button.dataset.save, href: await view.toImageURL(button.dataset.save, 2)}).click();
}
// Charts near the window are drawn first, so that a page with many opens at once; the others follow when the browser is
// idle, without being scrolled to. The page counts as loading until then (an open document in a frame holds back the
// load event), so that a screenshot or a PDF made on loading has all charts. Printing draws what is left.
const hidden = place => place.closest("details:not([open])");
const near = new IntersectionObserver(found => { for (const one of found) if (one.isIntersecting) {
  near.unobserve(one.target); if (waiting.has(one.target)) draw(one.target); } }, {rootMargin: "600px"});
places.forEach(place => near.observe(place));
const frame = document.body.appendChild(Object.assign(document.createElement("iframe"), {hidden: true}));
frame.contentDocument.open();
const idle = window.requestIdleCallback ?? (then => setTimeout(then, 50));
function next(done) {  // charts in a closed section follow when it is opened
  const place = [...waiting].find(place => !hidden(place));
  if (place) draw(place).finally(() => idle(() => next(done))); else done?.();
}
idle(() => next(() => { frame.contentDocument.close(); frame.remove(); }));
for (const section of document.querySelectorAll("main details")) section.ontoggle = () => idle(() => next());
addEventListener("beforeprint", () => {
  for (const section of document.querySelectorAll("main details")) section.open = true;
  [...waiting].forEach(draw);
});
const reveal = () => {
  const at = document.getElementById(location.hash.slice(1)), section = at?.closest("details");
  if (section) { section.open = true; at.scrollIntoView(); }
};
addEventListener("hashchange", reveal);
reveal();

for (const field of document.querySelectorAll("[data-rows]")) field.oninput = () => {
  for (const row of field.parentElement.nextElementSibling.querySelectorAll("tbody tr"))
    row.hidden = !row.textContent.toLowerCase().includes(field.value.toLowerCase());
};
for (const slider of document.querySelectorAll(".slider")) slider.oninput = () => {
  const range = slider.querySelector("input"), parts = [...slider.querySelectorAll("[data-at]")];
  const chosen = parts[slider.querySelector("select").selectedIndex * slider.dataset.places + +range.value];
  for (const part of parts) part.hidden = part !== chosen;
  slider.querySelector("output").value = range.ariaValueText = chosen.dataset.at;
};
for (const code of document.querySelectorAll("pre span"))  // so that lines break before an --option, not in it or after
  code.innerHTML = code.innerHTML.replace(/--\S+ (?!--)\S+|[^ \n]+/g, "<i>$&</i>");
const words = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
while (words.nextNode())  // "95 %" and "p < 0.05" stay on one line
  if (!words.currentNode.parentElement.closest("table, pre, script"))
    words.currentNode.data = words.currentNode.data.replace(/(?<=\d) (?=%)|(?<=\bp) (?=[<=])|(?<=\bp [<=]) /g, "\u00a0");
for (const button of document.querySelectorAll("pre button")) button.onclick = async () => {
  await navigator.clipboard.writeText(button.previousElementSibling.textContent);
  button.textContent = "Copied";
};
const contents = document.querySelector(".toc details");
if (contents) {
  const beside = matchMedia("(min-width: 1200px)"), open = () => { contents.open = beside.matches; };
  beside.addEventListener("change", open);
  open();
  const links = [...contents.querySelectorAll("a")], heads = links.map(a => document.getElementById(a.hash.slice(1)));
  const mark = () => {
    const at = heads.findLastIndex(head => !(hidden(head) && !head.closest("summary")) && head.getBoundingClientRect().top < 120);
    links.forEach((link, i) => link.classList.toggle("here", i === Math.max(at, 0)));
  };
  addEventListener("scroll", mark, {passive: true});
  mark();
}
