// Replaces the sections of the page as the server sends them. Without this script the page is complete, but stands still.
"use strict";

const live = document.getElementById("live");
const opened = new Map(); // id of a <details> -> whether the reader opened or closed it

document.addEventListener("toggle", (event) => {
  const details = event.target;
  if (details.dataset.restored) delete details.dataset.restored;
  else if (details.id) opened.set(details.id, details.open);
}, true);

// The keyboard focus stays where it was: on the <summary> of the same card, or on the same link.
function focusOf(section) {
  const at = document.activeElement;
  if (!at || !section.contains(at)) return () => {};
  const card = at.closest("details[id]");
  const index = [...section.querySelectorAll("a, summary")].indexOf(at);
  return () => {
    const same = card && document.getElementById(card.id);
    const next = same ? same.querySelector("summary") : section.querySelectorAll("a, summary")[index];
    if (next) next.focus({ preventScroll: true });
  };
}

function replace(name, html) {
  const section = document.getElementById(name);
  const refocus = focusOf(section);
  section.innerHTML = html; // made and escaped by the server
  for (const details of section.querySelectorAll("details[id]")) {
    const wanted = opened.get(details.id);
    if (wanted !== undefined && wanted !== details.open) {
      details.dataset.restored = "1";
      details.open = wanted;
    }
  }
  refocus();
}

function connection(text, state) {
  live.textContent = text;
  live.dataset.state = state;
}

const events = new EventSource("events" + location.search);
events.onopen = () => connection("live", "on");
events.onerror = () => connection("connection lost", "off");
for (const section of document.querySelectorAll("[data-section]")) {
  events.addEventListener(section.id, (event) => replace(section.id, JSON.parse(event.data)));
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, textarea, select");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    document.getElementById("q").focus();
  }
});
