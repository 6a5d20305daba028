// What a page is like: its size, the boxes of what matters, and what is cut without a hint.
(() => {
  const round = (r) => [r.left, r.top, r.width, r.height].map(Math.round);
  const visible = (e) => e.checkVisibility({ contentVisibilityAuto: true });
  const boxes = {};
  for (const what of ["h1", ".lines", ".cmd", ".state", ".proof", ".legend", ".heat", "aside", ".more"]) {
    const one = document.querySelector(what);
    if (one && visible(one)) boxes[what] = round(one.getBoundingClientRect());
  }
  const cut = [];
  const name = (e) => `${e.tagName.toLowerCase()}.${e.className} "${e.textContent.trim().slice(0, 30)}"`;
  const wide = document.documentElement.clientWidth;
  for (const e of document.querySelectorAll("body *")) {
    if (!visible(e)) continue;
    const style = getComputedStyle(e);
    const scrolls = style.overflowX === "auto" || style.overflowX === "scroll";
    if (e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0) {
      if (style.overflowX === "hidden" || style.textOverflow === "ellipsis") cut.push(name(e));
      if (scrolls && style.backgroundImage === "none") cut.push(`no shadow: ${name(e)}`);
      const hint = e.parentElement.querySelector(".hint");
      if (scrolls && e.querySelector(".heat") && !(hint && visible(hint))) cut.push(`no hint: ${name(e)}`);
    }
    const right = e.getBoundingClientRect().right;
    const box = e.closest(".scroll, pre.wide");
    if (right > wide + 1 && (!box || box === e)) cut.push(`beyond the edge: ${name(e)}`);
  }
  let words = 0;
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    if (!visible(walk.currentNode.parentElement)) continue;
    const range = document.createRange();
    range.selectNodeContents(walk.currentNode);
    const at = range.getBoundingClientRect();
    if (at.height && at.top < 900) words += walk.currentNode.data.split(/\s+/).filter((w) => /\w/.test(w)).length;
  }
  return {
    width: document.documentElement.scrollWidth,
    height: Math.round(document.body.getBoundingClientRect().height),
    words,
    boxes,
    sections: [...document.querySelectorAll("details.section > .content")].map((e) => e.id),
    cut,
    open: document.querySelectorAll("details[open]").length,
    legend: document.querySelectorAll(".legend").length,
  };
})()
