// Live parts, the theme, and lines of the graph. Every page works without it.
"use strict";

// ---- parts that are loaded again when something has changed

const live = document.getElementById("live");
let loading = false;
let again = false;

function isBusy(part) {
  const focus = document.activeElement;
  return part.contains(focus) && ["INPUT", "SELECT", "TEXTAREA"].includes(focus.tagName);
}

function replace(part, fresh) {
  const open = new Set([...part.querySelectorAll("details[open] > summary")].map((each) => each.textContent));
  const focus = part.contains(document.activeElement) ? document.activeElement : null;
  const place = focus ? [...part.querySelectorAll("a[href], button, [tabindex]")].indexOf(focus) : -1;
  const [left, top] = [part.scrollLeft, part.scrollTop];
  part.innerHTML = fresh.innerHTML;
  part.hidden = fresh.hidden;
  for (const summary of part.querySelectorAll("details > summary")) {
    if (open.has(summary.textContent)) summary.parentElement.open = true;
  }
  [part.scrollLeft, part.scrollTop] = [left, top];
  if (place >= 0) {
    const found = part.querySelectorAll("a[href], button, [tabindex]")[place];
    if (found) found.focus({ preventScroll: true });
  }
}

async function refresh() {
  if (loading) { again = true; return; }
  loading = true;
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    if (answer.status === 401 || answer.status === 403 || answer.redirected) { live.textContent = "log in again"; return; }
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of document.querySelectorAll("[data-live]")) {
      const found = fresh.getElementById(part.id);
      if (found && !isBusy(part) && (found.innerHTML !== part.innerHTML || found.hidden !== part.hidden)) replace(part, found);
    }
    const pressed = fresh.getElementById("part-pressed");
    if (pressed && !document.getElementById("part-pressed")) document.getElementById("main").prepend(pressed);
  } catch { live.textContent = "not connected"; }
  finally {
    loading = false;
    if (again) { again = false; setTimeout(refresh, 300); }
  }
}

if (live && document.querySelector("[data-live]")) {
  const events = new EventSource("/live");
  events.addEventListener("open", () => { live.textContent = "live"; });
  events.addEventListener("error", () => { live.textContent = "not connected"; });
  events.addEventListener("changed", () => { if (!document.hidden) refresh(); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
  window.addEventListener("pagehide", () => events.close());
}

// ---- dark and light

const theme = document.getElementById("theme");
const names = { "": "Theme: system", light: "Theme: light", dark: "Theme: dark" };

function show(value) {
  if (value) document.documentElement.dataset.theme = value;
  else delete document.documentElement.dataset.theme;
  if (theme) theme.textContent = names[value];
}

let chosen = "";
try { chosen = localStorage.getItem("headrace-theme") || ""; } catch { /* not allowed to remember */ }
show(chosen in names ? chosen : "");
if (theme) {
  theme.hidden = false;
  theme.addEventListener("click", () => {
    chosen = { "": "light", light: "dark", dark: "" }[chosen];
    try { localStorage.setItem("headrace-theme", chosen); } catch { /* not allowed to remember */ }
    show(chosen);
  });
}

// ---- lines of the graph: which columns are read

const hint = document.getElementById("hint");

function tell(target) {
  const line = target.closest ? target.closest(".edge-group") : null;
  const node = target.closest ? target.closest(".node, .graph a") : null;
  const name = node ? (node.dataset.name || node.querySelector("[data-name]")?.dataset.name) : null;
  for (const each of document.querySelectorAll(".edge-group")) {
    each.classList.toggle("lit", name != null && (each.dataset.from === name || each.dataset.to === name));
  }
  if (!hint) return;
  if (line) hint.textContent = line.querySelector("title").textContent;
  else if (name != null) {
    const read = [...document.querySelectorAll(".edge-group.lit title")].map((each) => each.textContent);
    hint.textContent = read.join(" · ");
  } else hint.textContent = "";
}

for (const graph of document.querySelectorAll("#part-graph")) {
  graph.addEventListener("mouseover", (event) => tell(event.target));
  graph.addEventListener("focusin", (event) => tell(event.target));
}

// ---- buttons that ask first

document.addEventListener("submit", (event) => {
  const question = event.target.dataset ? event.target.dataset.confirm : "";
  if (question && !window.confirm(question)) event.preventDefault();
});
