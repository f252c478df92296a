"use strict";
(() => {
  const ABSENT = "–";
  const PAPER_WIDTH = 680; // CSS pixels between the margins of A4 and of US Letter
  const root = document.documentElement;

  const unpack = async (id) => {
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  };

  const make = (name, attributes = {}, text = "") => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    return element;
  };

  const breakable = (text) => text.split(/(?<=[_/-])(?=\w)|(?<=\w{16})(?=\w)/).flatMap((part, k) => (k ? [make("wbr"), part] : [part]));

  const save = (blob, name) => {
    const link = make("a", { download: name });
    link.href = URL.createObjectURL(blob);
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  const sayFor = (button, words) => { // for a while
    button.dataset.label ??= button.textContent;
    button.textContent = words;
    setTimeout(() => { button.textContent = button.dataset.label; }, 2500);
  };

  /* ---- cells, as itembank.pages.render writes them ---- */
  const fixed = (value, digits) => (+value.toFixed(digits) || 0).toFixed(digits).replace("-", "−");
  const written = {
    number: (v, d) => fixed(v, d),
    score: (v, d) => fixed(100 * v, d),
    percent: (v, d) => `${fixed(100 * v, d)} %`,
    points: (v, d) => (v >= 0 ? "+" : "") + fixed(100 * v, d),
    count: (v) => Math.round(v).toLocaleString("en-US"),
    flag: (v) => (v ? "yes" : "no"),
    response: (v) => ({ 1: "right", 0: "wrong" })[v] ?? fixed(v, 2),
  };
  const isNumber = (column) => column.kind in written && !["flag", "response"].includes(column.kind);
  const cell = (value, column) =>
    value === null || value === undefined ? ABSENT : (written[column.kind] ?? String)(value, column.digits);

  /* ---- tables ---- */
  const MENU_MOST = 60;
  class Table {
    constructor(place, spec, data) {
      Object.assign(this, { place, spec, data, page: 0, sorted: null, down: false, words: "", chosen: {}, within: null });
      this.n = data[spec.columns[0].name].length;
      // rows of a narrow page are cards
      this.shown = matchMedia("(max-width: 36rem)").matches && this.n > spec.shown ? Math.ceil(spec.shown / 3) : spec.shown;
      this.rows = Array.from({ length: this.n }, (_, k) => k);
      this.body = place.querySelector("tbody");
      this.rest = place.querySelector(".rest");
      this.labels = [...place.querySelectorAll("thead th")].map((head) => head.textContent);
      if (this.n > 1) this.addHeads();
      if (this.n > spec.shown) this.addTools();
      else if (this.n > 1) this.addDownload();
    }
    addHeads() {
      this.heads = [...this.place.querySelectorAll("thead th")];
      this.heads.forEach((head, j) => {
        const button = make("button", { type: "button" });
        button.append(...head.childNodes);
        if (head.title) button.title = head.title;
        head.removeAttribute("title");
        button.addEventListener("click", () => this.sortBy(j));
        head.replaceChildren(button);
      });
    }
    addTools() {
      const tools = this.place.querySelector(".tools");
      const search = make("input", { type: "search", placeholder: "Search", "aria-label": `Search: ${this.spec.caption}` });
      search.addEventListener("input", () => { this.words = search.value.toLowerCase(); this.choose(); });
      tools.append(search);
      for (const column of this.spec.columns.filter((one) => one.menu)) this.addMenu(tools, column);
      this.back = make("button", { type: "button", "aria-label": "Previous rows" }, "‹");
      this.on = make("button", { type: "button", "aria-label": "Next rows" }, "›");
      this.back.addEventListener("click", () => this.turn(-1));
      this.on.addEventListener("click", () => this.turn(1));
      const turn = make("span", { class: "turn" });
      turn.append(this.back, this.on);
      tools.append(turn);
      this.addDownload();
      this.rest?.setAttribute("role", "status");
      this.show();
    }
    addMenu(tools, column) {
      const values = [...new Set(this.data[column.name])].filter((v) => v !== null).sort();
      if (values.length < 2 || values.length > MENU_MOST) return;
      const menu = make("select", { "aria-label": column.title });
      menu.append(make("option", { value: "" }, `${column.title}: all`));
      values.forEach((value, k) => menu.append(make("option", { value: String(k + 1) }, cell(value, column))));
      menu.addEventListener("change", () => {
        if (menu.value) this.chosen[column.name] = values[Number(menu.value) - 1];
        else delete this.chosen[column.name];
        this.choose();
      });
      tools.append(menu);
    }
    addDownload() {
      const button = make("button", { type: "button", "aria-label": `Download: ${this.spec.caption}` }, "Download CSV");
      button.addEventListener("click", () => this.download());
      this.place.querySelector(".tools").append(button);
    }
    sortBy(j) {
      const column = this.spec.columns[j];
      this.down = this.sorted === j ? !this.down : isNumber(column);
      this.sorted = j;
      this.heads.forEach((head, k) =>
        k === j ? head.setAttribute("aria-sort", this.down ? "descending" : "ascending") : head.removeAttribute("aria-sort"));
      this.choose();
    }
    limit(within) { // rows inside the brush of a chart: {column: [low, high]}
      this.within = within && Object.keys(within).length ? within : null;
      this.choose();
    }
    holds(k) {
      for (const [name, value] of Object.entries(this.chosen)) if (this.data[name][k] !== value) return false;
      for (const [name, [low, high]] of Object.entries(this.within ?? {})) {
        const value = this.data[name][k];
        if (value === null || value < low || value > high) return false;
      }
      return !this.words || this.spec.columns.some((one) => cell(this.data[one.name][k], one).toLowerCase().includes(this.words));
    }
    choose() {
      this.rows = [];
      for (let k = 0; k < this.n; k++) if (this.holds(k)) this.rows.push(k);
      if (this.sorted !== null) {
        const values = this.data[this.spec.columns[this.sorted].name];
        const sign = this.down ? -1 : 1;
        const order = (a, b) => (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
        this.rows.sort((a, b) => {
          const [x, y] = [values[a], values[b]];
          return x === null ? (y === null ? a - b : 1) : y === null ? -1 : sign * order(x, y) || a - b;
        });
      }
      this.page = 0;
      this.show();
    }
    turn(step) { this.page += step; this.show(); }
    show() {
      const first = this.page * this.shown;
      const shown = this.rows.slice(first, first + this.shown);
      this.body.replaceChildren(...shown.map((k) => {
        const row = make("tr");
        for (const [j, one] of this.spec.columns.entries()) {
          const text = cell(this.data[one.name][k], one);
          const place = make("td", { "data-label": this.labels[j], class: one.kind + (isNumber(one) ? " number" : "") });
          const leads = one.kind === "id" && k < this.spec.entries;
          const link = make("a", { href: `#${this.spec.data}-${k + 1}` });
          if (leads) place.append(link);
          (leads ? link : place).append(...(["id", "text"].includes(one.kind) ? breakable(text) : [text]));
          row.append(place);
        }
        return row;
      }));
      if (this.back) {
        this.back.disabled = this.page === 0;
        this.on.disabled = first + this.shown >= this.rows.length;
      }
      if (this.rest) {
        const of = this.rows.length.toLocaleString("en-US");
        const all = this.rows.length === this.n ? "" : ` that fit, of ${this.n.toLocaleString("en-US")}`;
        this.rest.textContent = shown.length ? `Rows ${first + 1} to ${first + shown.length} of ${of}${all}.` : "No row fits.";
      }
    }
    download() {
      // a leading = + - @ would be a formula to a spreadsheet; numbers are none
      const safe = (v) => (typeof v === "string" && /^[=+\-@\t\r]/.test(v) ? `'${v}` : v);
      const quoted = (v) => (v === null ? "" : `"${String(safe(v)).replaceAll('"', '""')}"`);
      const lines = [this.spec.columns.map((one) => quoted(one.name)).join(",")];
      for (const k of this.rows) lines.push(this.spec.columns.map((one) => quoted(this.data[one.name][k])).join(","));
      save(new Blob([lines.join("\r\n") + "\r\n"], { type: "text/csv" }), `${this.spec.data}.csv`);
    }
  }

  /* ---- charts ---- */
  const coloured = (value, colours, key = "") => {
    if (Array.isArray(value)) return value.map((one) => coloured(one, colours, key));
    if (value && typeof value === "object")
      return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, coloured(one, colours, name)]));
    return typeof value === "string" && value.startsWith("@") && value.slice(1) in colours ? colours[value.slice(1)] : value;
  };
  const records = (columns) => {
    const names = Object.keys(columns);
    return columns[names[0]].map((_, k) => Object.fromEntries(names.map((name) => [name, columns[name][k]])));
  };
  const NARROW = 520; // CSS pixels below which a legend above a picture has one entry a line, and titles of axes wrap
  const LINE = 30; // letters of such a title
  const wrapped = (text) =>
    text.split(" ").reduce((lines, word) => {
      const last = lines[lines.length - 1];
      if (last && last.length + word.length < LINE) return [...lines.slice(0, -1), `${last} ${word}`];
      return [...lines, word];
    }, []);
  const fitNarrow = (part, width) => {
    if (!part || typeof part !== "object") return;
    if (part.legend?.orient === "top") part.legend.columns = 1;
    if (typeof part.axis?.title === "string" && part.axis.title.length > LINE) part.axis.title = wrapped(part.axis.title);
    if (part.axis?.orient === "top") part.axis.labelAngle = -45;
    if (part.axis?.labelLimit) {
      const ratio = Math.min(1, (0.36 * width) / part.axis.labelLimit);
      const fewer = (text) => text.replace(/\d+/g, (n) => Math.round(n * ratio));
      part.axis.labelLimit = Math.round(part.axis.labelLimit * ratio);
      if (part.axis.labelExpr) {
        part.axis.labelExpr = fewer(part.axis.labelExpr);
        part.axis.labelBaseline.condition.test = fewer(part.axis.labelBaseline.condition.test);
      }
    }
    for (const one of Object.values(part)) fitNarrow(one, width);
  };
  const fitPanels = (spec, width) => {
    // labels: pixels at the left of a row; aside: beside each panel
    const { widthOf, least = 240, labels = 56, aside = 30, ...panel } = spec.spec;
    const n = Math.max(1, Math.min(widthOf, Math.floor(width / least)));
    if (spec.columns) spec.columns = n;
    spec.spec = { ...panel, width: Math.max(90, Math.floor((width - labels) / n - aside)) };
    spec.facet.header.labelLimit = spec.spec.width;
  };
  class Chart {
    constructor(place, given, page) {
      Object.assign(this, { place, given, page, width: 0, looks: -1 });
    }
    async draw(isDark, width = this.place.clientWidth) {
      if (!width || (this.width === width && this.looks === Number(isDark))) return;
      [this.width, this.looks] = [width, Number(isDark)];
      const { config, colours } = this.page.looks[this.looks];
      const spec = coloured(this.given.spec, colours);
      if (spec.width === "container") spec.width = width;
      if (spec.spec?.widthOf) fitPanels(spec, width);
      for (const part of [spec, ...(spec.vconcat ?? [])]) if (part?.widthOf) part.width = Math.max(90, width / part.widthOf - (part.aside ?? 60));
      if (width < NARROW) fitNarrow(spec, width);
      const datasets = Object.fromEntries(this.given.data.map((name) => [name, this.page.rows(name)]));
      const drawing = make("div");
      const autosize = spec.spec ? "pad" : { type: "fit-x", contains: "padding" };
      const { view } = await vegaEmbed(drawing, { autosize, ...spec, datasets }, {
        actions: false, ast: true, config, defaultStyle: false, mode: "vega-lite",
        renderer: this.given.data.some((name) => this.page.size(name) > 3000) ? "canvas" : "svg",
        tooltip: { disableDefaultStyle: true, theme: isDark ? "dark" : "light" },
        loader: { load: () => Promise.reject(new Error("this page loads nothing")), sanitize: () => Promise.reject(new Error("no links")) },
      });
      // what menus of the chart were set to outlives a change of width or looks
      const chosen = (spec.params ?? []).filter((one) => one.bind && this.view).map((one) => [one.name, this.view.signal(one.name)]);
      for (const [name, value] of chosen) view.signal(name, value);
      if (chosen.length) await view.runAsync();
      this.view?.finalize();
      this.view = view;
      // the picture as a whole has a text alternative; its parts are none to a screen reader
      drawing.querySelector("svg, canvas")?.setAttribute("aria-hidden", "true");
      for (const part of drawing.querySelectorAll("svg [role], svg [aria-label]"))
        for (const name of ["role", "aria-label", "aria-roledescription"]) part.removeAttribute(name);
      // menus of the chart stand above it: a picture to a screen reader holds nothing that can be operated
      this.menus?.remove();
      this.menus = drawing.querySelector(".vega-bindings");
      if (this.menus) this.place.before(this.menus);
      this.place.replaceChildren(drawing);
      this.place.classList.add("drawn");
      this.offerCopy();
      this.failed?.remove();
      this.failed = null;
      if (this.given.filters !== null) {
        view.addSignalListener("brush", (_, value) => this.page.tables[this.given.filters].limit(value));
      }
    }
    offerCopy() {
      const button = this.place.closest("figure").querySelector("button.copy");
      if (!button.hidden) return;
      button.hidden = false;
      button.addEventListener("click", async () => {
        const blob = this.picture();
        try {
          await navigator.clipboard.write([new ClipboardItem({ "image/png": blob })]);
          sayFor(button, "Copied");
        } catch { // a browser that has no clipboard for pictures, or refuses it
          save(await blob, `${this.given.data[0]}.png`);
          sayFor(button, "Downloaded");
        }
      });
    }
    async picture() { // with its title, on paper of the page's colour
      const { paper, ink } = this.page.looks[this.looks].colours;
      const scale = 2, edge = 16, line = 22;
      const drawn = await this.view.toCanvas(scale);
      const whole = make("canvas"), pen = whole.getContext("2d");
      const font = `600 15px ${getComputedStyle(document.body).fontFamily}`;
      pen.font = font;
      const width = drawn.width / scale, lines = [""];
      const menus = (this.given.spec.params ?? []).filter((one) => one.bind);
      const chosen = menus.map((one) => ` (${one.bind.name}: ${this.view.signal(one.name)})`).join("");
      const title = this.place.closest("figure").querySelector("figcaption").textContent.trim() + chosen;
      for (const word of title.split(/\s+/)) {
        const longer = `${lines.at(-1)} ${word}`.trim();
        if (pen.measureText(longer).width > width && lines.at(-1)) lines.push(word);
        else lines[lines.length - 1] = longer;
      }
      whole.width = (width + 2 * edge) * scale;
      whole.height = drawn.height + (lines.length * line + 2 * edge) * scale;
      pen.scale(scale, scale);
      pen.fillStyle = paper;
      pen.fillRect(0, 0, whole.width, whole.height);
      Object.assign(pen, { fillStyle: ink, font });
      lines.forEach((text, k) => pen.fillText(text, edge, edge + 14 + k * line));
      pen.drawImage(drawn, edge, edge + lines.length * line, width, drawn.height / scale);
      return new Promise((done) => whole.toBlob(done, "image/png"));
    }
    sayFailed(error) { // the other charts are drawn all the same
      this.width = 0;
      if (this.failed) return;
      console.error(error);
      const name = this.place.closest("figure").querySelector("figcaption").textContent.trim();
      this.failed = make("p", { class: "caution" }, `This chart could not be drawn (${error.message}): ${name}`);
      this.place.before(this.failed);
    }
  }

  /* ---- the page ---- */
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.looks ? root.dataset.looks === "dark" : system.matches);

  const offerLooks = (redraw) => {
    const button = document.getElementById("looks");
    const say = () => { button.textContent = isDark() ? "Light" : "Dark"; };
    button.hidden = false;
    button.addEventListener("click", () => { root.dataset.looks = isDark() ? "light" : "dark"; say(); redraw(); });
    system.addEventListener("change", () => { say(); redraw(); });
    say();
  };

  const offerCopies = () => {
    for (const button of document.querySelectorAll("[data-copy]")) {
      button.hidden = false;
      button.addEventListener("click", async () => {
        try {
          await navigator.clipboard.writeText(button.dataset.copy);
          sayFor(button, "Copied");
        } catch {
          const field = make("textarea", { readonly: "", "aria-label": "Copy this", rows: "2", cols: "60" });
          field.value = button.dataset.copy;
          button.after(field);
          field.select();
          sayFor(button, "Copy the marked text");
        }
      });
    }
  };

  const start = async () => {
    const page = JSON.parse(await unpack("page-data"));
    const kept = {};
    page.rows = (name) => (kept[name] ??= records(page.data[name]));
    page.size = (name) => Object.values(page.data[name])[0].length;
    const places = [...document.querySelectorAll("[data-table]")];
    const specs = page.tables;
    page.tables = [];
    for (const place of places) {
      const number = Number(place.dataset.table);
      page.tables[number] = new Table(place, specs[number], page.data[specs[number].data]);
    }
    if (document.getElementById("page-library")) {
      const script = make("script", {}, await unpack("page-library"));
      document.head.append(script);
      script.remove();
      kept.charts = [...document.querySelectorAll("[data-chart]")].map((place) => new Chart(place, page.charts[place.dataset.chart], page));
    }
    const charts = kept.charts ?? [];
    delete kept.charts;
    const draw = (chart, ...how) => chart.draw(...how).catch((error) => chart.sayFailed(error));
    const redraw = async () => { for (const chart of charts) await draw(chart, isDark()); };
    offerLooks(redraw);
    await redraw();
    let waiting = 0;
    addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(redraw, 150); });
    for (const fold of document.querySelectorAll("details")) fold.addEventListener("toggle", redraw);
    matchMedia("print").addEventListener("change", (event) => {
      for (const chart of charts) if (chart.place.clientWidth) draw(chart, event.matches ? false : isDark(), event.matches ? PAPER_WIDTH : undefined);
    });
    root.dataset.ready = "yes";
  };

  offerCopies();
  start().catch((error) => {
    root.dataset.ready = "failed";
    console.error(error);
    const note = make("p", { class: "caution" }, "Charts could not be drawn: this browser is too old, or the file is cut. Words and tables are complete.");
    document.querySelector("main").prepend(note);
  });
})();
