// The list of sentences: searched, ordered, walked through by the arrow keys.
nmtflex.SentenceList = (() => {
  "use strict";

  const { element } = nmtflex.dom;
  const { counted, fold } = nmtflex.text;
  const { ordersOf, sorted } = nmtflex.orders;

  const PAGE = 10; // sentences that Page Up and Page Down go

  function optionId(place) {
    return `sentence-${place}`;
  }

  // All rows exist at once: a browser lays out only those in view (content-visibility).
  function buildRow(sentence, place, language) {
    return element(
      "li",
      { role: "option", id: optionId(place), "aria-selected": "false" },
      element("span", { class: "index" }, String(sentence.index)),
      element(
        "span",
        { class: "text", dir: "auto", lang: language },
        sentence.source.trim() === "" ? "(empty)" : sentence.source,
      ),
      element("span", { class: "measure" }),
    );
  }

  function searchable({ source, reference, hypotheses }) {
    return fold([source, reference, ...hypotheses.map((one) => one.text)].join("\n"));
  }

  function buildOrderChoice(orders, change) {
    const groups = new Map();
    orders.forEach(({ group, label }, number) => {
      if (!groups.has(group)) groups.set(group, element("optgroup", { label: group }));
      groups.get(group).append(element("option", { value: number }, label));
    });
    return element("select", { id: "order", change }, ...groups.values());
  }

  class SentenceList {
    #sentences;
    #texts; // what is searched
    #rows;
    #orders;
    #ordered; // places of all sentences in the order
    #listed; // those that the search leaves
    #chosen = null;
    #onChoose;
    #search;
    #found;
    #list;

    /** `onChoose` takes the place of a sentence in the report. */
    constructor({ sentences, runs, language, onChoose }) {
      this.#sentences = sentences;
      this.#texts = sentences.map(searchable);
      this.#rows = sentences.map((one, place) => buildRow(one, place, language));
      this.#orders = ordersOf(runs);
      this.#onChoose = onChoose;
      this.node = this.#build();
      this.#arrange(this.#orders[0]);
    }

    #build() {
      this.#search = element("input", {
        type: "search",
        id: "search",
        input: () => this.#filter(),
        keydown: (event) => this.#enter(event),
      });
      this.#found = element("p", { class: "found", role: "status" });
      this.#list = element("ul", {
        class: "sentence-list",
        role: "listbox",
        tabindex: "0",
        "aria-label": "Sentences",
        keydown: (event) => this.#walk(event),
        click: (event) => this.#pick(event),
      });
      return element(
        "div",
        { class: "browse" },
        element("label", { for: "search" }, "Search source, reference and translations"),
        this.#search,
        element("label", { for: "order" }, "Order"),
        buildOrderChoice(this.#orders, (event) =>
          this.#arrange(this.#orders[Number(event.target.value)]),
        ),
        this.#found,
        this.#list,
      );
    }

    /** Mark the chosen sentence and bring it into view. */
    mark(place) {
      if (this.#chosen !== null) this.#rows[this.#chosen].setAttribute("aria-selected", "false");
      this.#chosen = place;
      this.#rows[place].setAttribute("aria-selected", "true");
      this.#activate();
      this.#reveal(this.#rows[place]);
    }

    /** Choose a sentence so many further down the list. */
    move(steps) {
      if (!this.#listed.length) return;
      const here = this.#listed.indexOf(this.#chosen);
      const next = here < 0 ? 0 : Math.min(this.#listed.length - 1, Math.max(0, here + steps));
      this.#onChoose(this.#listed[next]);
    }

    #arrange(order) {
      this.#ordered = sorted(this.#sentences, order);
      this.#rows.forEach((row, place) => {
        row.lastChild.textContent = order.shown(order.of(this.#sentences[place]));
      });
      this.#filter();
      this.#list.scrollTop = 0;
    }

    #filter() {
      const wanted = fold(this.#search.value.trim());
      this.#listed = wanted
        ? this.#ordered.filter((place) => this.#texts[place].includes(wanted))
        : this.#ordered;
      this.#list.replaceChildren(...this.#listed.map((place) => this.#rows[place]));
      const all = counted(this.#sentences.length, "sentence");
      this.#found.textContent = wanted ? `${this.#listed.length} of ${all}` : all;
      this.#activate();
    }

    #activate() {
      if (this.#chosen !== null && this.#rows[this.#chosen].parentNode) {
        this.#list.setAttribute("aria-activedescendant", optionId(this.#chosen));
      } else {
        this.#list.removeAttribute("aria-activedescendant");
      }
    }

    // Not scrollIntoView, which would scroll the page too.
    #reveal(row) {
      if (!row.parentNode) return;
      const list = this.#list;
      const top = row.offsetTop;
      const bottom = top + row.offsetHeight;
      if (top < list.scrollTop) list.scrollTop = top;
      else if (bottom > list.scrollTop + list.clientHeight) {
        list.scrollTop = bottom - list.clientHeight;
      }
    }

    #walk(event) {
      const all = this.#listed.length;
      const keys = {
        ArrowDown: 1,
        ArrowUp: -1,
        PageDown: PAGE,
        PageUp: -PAGE,
        Home: -all,
        End: all,
      };
      if (!(event.key in keys)) return;
      event.preventDefault();
      this.move(keys[event.key]);
    }

    /** Go from the search to what it found. */
    #enter(event) {
      if (event.key !== "ArrowDown" && event.key !== "Enter") return;
      event.preventDefault();
      if (!this.#listed.length) return;
      if (!this.#listed.includes(this.#chosen)) this.#onChoose(this.#listed[0]);
      this.#list.focus();
    }

    #pick(event) {
      const row = event.target.closest("[role=option]");
      if (row) this.#onChoose(this.#rows.indexOf(row));
    }
  }

  return SentenceList;
})();
