"use strict";
// The theme is set before the page is painted. Without a choice, it is that of the system.
(() => {
  const theme = {
    get: () => { try { return localStorage.getItem("theme"); } catch { return null; } },
    set: (value) => { try { localStorage.setItem("theme", value); } catch { /* it holds for this page */ } },
  };
  const chosen = theme.get();
  if (chosen) document.documentElement.dataset.theme = chosen;

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelector(".theme").addEventListener("click", () => {
      const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
      const next = (document.documentElement.dataset.theme || system) === "dark" ? "light" : "dark";
      document.documentElement.dataset.theme = next;
      theme.set(next);
    });
    const menu = document.querySelector(".menu");
    if (matchMedia("(max-width: 50rem)").matches) menu.open = false;
    setUpSearch(document.querySelector(".search"));
  });

  function setUpSearch(form) {
    const input = form.querySelector("input"), list = form.querySelector("ol");
    let loading;
    const load = () => loading ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = input.dataset.index;
      script.onload = () => resolve(window.searchIndex);
      script.onerror = () => { loading = undefined; reject(new Error("the index cannot be loaded")); };
      document.head.append(script);
    });
    const show = async () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      if (!words.length) { list.hidden = true; return; }
      let found;
      try { found = search(await load(), words); } catch (error) { list.replaceChildren(message(error.message)); list.hidden = false; return; }
      list.replaceChildren(...found.slice(0, 20).map((hit) => result(hit, words, input.dataset.base)));
      if (!found.length) list.replaceChildren(message("No page has all these words"));
      list.hidden = false;
    };
    input.addEventListener("input", show);
    input.addEventListener("focus", show);
    form.addEventListener("submit", (event) => { event.preventDefault(); list.querySelector("a")?.click(); });
    form.addEventListener("keydown", (event) => {
      const links = [...list.querySelectorAll("a")], at = links.indexOf(document.activeElement);
      if (event.key === "Escape") { list.hidden = true; input.focus(); }
      if (event.key === "ArrowDown") { links[Math.min(at + 1, links.length - 1)]?.focus(); event.preventDefault(); }
      if (event.key === "ArrowUp") { (links[at - 1] ?? input).focus(); event.preventDefault(); }
    });
    document.addEventListener("click", (event) => { if (!form.contains(event.target)) list.hidden = true; });
    document.addEventListener("keydown", (event) => {
      if (event.key === "/" && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) { input.focus(); event.preventDefault(); }
    });
  }

  // search returns the pages that have all words; words in titles and headings count more.
  function search(index, words) {
    const hits = [];
    for (const page of index) {
      const title = page.title.toLowerCase(), text = page.text.toLowerCase();
      let score = 0, heading;
      const all = words.every((word) => {
        const inHeading = page.headings.find((h) => h.title.toLowerCase().includes(word));
        const s = (title.includes(word) ? 20 : 0) + (inHeading ? 8 : 0) + Math.min(text.split(word).length - 1, 5);
        heading ??= inHeading;
        score += s;
        return s > 0;
      });
      if (all) hits.push({ page, score, heading });
    }
    return hits.sort((a, b) => b.score - a.score);
  }

  function result(hit, words, base) {
    const item = document.createElement("li"), link = document.createElement("a"), excerpt = document.createElement("small");
    link.href = base + hit.page.url + (hit.heading ? "#" + hit.heading.id : "");
    link.textContent = hit.page.title + (hit.heading && hit.heading.title !== hit.page.title ? " – " + hit.heading.title : "");
    const at = Math.max(hit.page.text.toLowerCase().indexOf(words[0]) - 40, 0);
    const part = hit.page.text.slice(at, at + 160).replace(/\s+/g, " ");
    const found = part.toLowerCase().indexOf(words[0]);
    if (found < 0) {
      excerpt.textContent = part;
    } else {
      const mark = document.createElement("mark");
      mark.textContent = part.slice(found, found + words[0].length);
      excerpt.append("…" + part.slice(0, found), mark, part.slice(found + words[0].length) + "…");
    }
    item.append(link, excerpt);
    return item;
  }

  function message(text) {
    const item = document.createElement("li");
    item.textContent = text;
    return item;
  }
})();
