// Elements. Nothing else makes them, so that data enters the page as text and never as markup.
nmtflex.dom = (() => {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const SEEN = "0px 0px 300px 0px"; // what is a little below the window counts as seen

  /**
   * Make an element. Of its attributes, a function listens to the event of that name, "style" holds
   * properties, and what is null is left out.
   */
  function element(name, attributes, ...children) {
    return fill(document.createElement(name), attributes, children);
  }

  /** Make an element of SVG, as `element` does. */
  function shape(name, attributes, ...children) {
    return fill(document.createElementNS(SVG, name), attributes, children);
  }

  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes ?? {})) {
      if (value === null || value === undefined) continue;
      if (typeof value === "function") node.addEventListener(name, value);
      else if (name === "style") setStyle(node, value);
      else node.setAttribute(name, String(value));
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  }

  // Property by property: the page's policy forbids the attribute.
  function setStyle(node, properties) {
    for (const [name, value] of Object.entries(properties)) node.style.setProperty(name, value);
  }

  /** Make a table whose first column names the rows; a cell is a text or a node. */
  function table({ label, head, rows, name = "numbers" }) {
    const cell = (tag, scope) => (content) => element(tag, { scope }, content);
    return element(
      "table",
      { class: name, "aria-label": label },
      element("thead", {}, element("tr", {}, ...head.map(cell("th", "col")))),
      element(
        "tbody",
        {},
        ...rows.map(([first, ...rest]) =>
          element("tr", {}, cell("th", "row")(first), ...rest.map(cell("td"))),
        ),
      ),
    );
  }

  /** Put something wide into a box that scrolls; the keyboard reaches it where there is need. */
  function scrollBox(label, child) {
    const box = element("div", { class: "scroll" }, child);
    new ResizeObserver(() => {
      const overflows = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight;
      const attributes = { tabindex: "0", role: "region", "aria-label": label };
      for (const [name, value] of Object.entries(attributes)) {
        if (overflows) box.setAttribute(name, value);
        else box.removeAttribute(name);
      }
    }).observe(box);
    return box;
  }

  /** Make a closed details element whose content is built when it is first opened. */
  function details(summary, build) {
    const node = element("details", {}, element("summary", {}, summary));
    node.addEventListener("toggle", () => node.append(build()), { once: true });
    return node;
  }

  /** Do something once, when a node comes near the window. */
  function whenSeen(node, action) {
    const observer = new IntersectionObserver(
      (entries) => {
        if (!entries.some((entry) => entry.isIntersecting)) return;
        observer.disconnect();
        action();
      },
      { rootMargin: SEEN },
    );
    observer.observe(node);
  }

  /** Say something in a section that has nothing else to show. */
  function note(...content) {
    return element("p", { class: "note" }, ...content);
  }

  return { details, element, note, scrollBox, setStyle, shape, table, whenSeen };
})();
