"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg", SHOWN = 25, CELLS = 36;
  const data = JSON.parse(document.getElementById("data").textContent);
  const table = document.getElementById("rows");
  for (const part of document.querySelectorAll(".scripted")) part.hidden = false;
  if (!table) return;
  const body = table.tBodies[0], known = new Map(data.rows);
  const rows = Array.from(body.rows), more = document.getElementById("more");
  const filter = document.getElementById("filter"), count = document.getElementById("count");
  const points = new Map();
  for (const point of document.querySelectorAll("circle[data-row]")) points.set(point.dataset.row, point);
  let limit = SHOWN;

  const element = (name, content, css) => {
    const made = document.createElement(name);
    if (content !== undefined) made.textContent = content;
    if (css) made.className = css;
    return made;
  };
  const shape = (name, attributes, content) => {
    const made = document.createElementNS(SVG, name);
    for (const key of Object.keys(attributes)) made.setAttribute(key, attributes[key]);
    if (content !== undefined) made.textContent = content;
    return made;
  };
  const number = value => {
    if (value === null) return "missing";
    if (typeof value !== "number") return String(value);
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-4 || size >= 1e7)) return value.toExponential(2);
    return size >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(4)));
  };
  const percent = part => part >= 0.1 ? (100 * part).toFixed(0) + "%" : (100 * part).toPrecision(2) + "%";
  const sum = list => list.reduce((total, each) => total + each, 0);
  const placeOf = (kind, value) => kind === "time" ? Date.parse(value) / 864e5 : value === "true" ? 1 : value === "false" ? 0 : value;
  const shownEdge = (kind, value) => kind === "time" ? new Date(value * 864e5).toISOString().slice(0, 10) : number(value);

  // Bins hold equal counts; cells have equal width, so that their height says how dense rows are.
  const evenCells = (edges, counts, low, high) => {
    const found = new Array(CELLS).fill(0), span = high - low || 1;
    const cell = value => Math.min(Math.max((value - low) / span * CELLS, 0), CELLS);
    const ends = [edges[0], ...edges, edges[edges.length - 1]];
    for (let n = 0; n + 1 < ends.length; n++) {
      const start = cell(ends[n]), stop = cell(ends[n + 1]);
      if (stop - start < 1e-9) { found[Math.min(Math.floor(start), CELLS - 1)] += counts[n]; continue; }
      for (let c = Math.floor(start); c <= Math.min(Math.floor(stop), CELLS - 1); c++)
        found[c] += counts[n] * Math.max(Math.min(stop, c + 1) - Math.max(start, c), 0) / (stop - start);
    }
    return found;
  };
  const steps = (shares, most, width, height) => {
    const cell = width / shares.length;
    return shares.map((share, n) => {
      const y = (height - share / most * (height - 8)).toFixed(1);
      return `${(n * cell).toFixed(1)} ${y}L${((n + 1) * cell).toFixed(1)} ${y}`;
    }).join("L");
  };
  const below = (column, value) => {
    const counts = column.training.slice(0, -1), total = sum(counts) || 1;
    let under = 0;
    column.edges.forEach((edge, n) => { if (value > edge) under += counts[n]; });
    return under / total;
  };

  const numberChart = (name, column, value) => {
    const width = 220, height = 64, edges = column.edges, at = placeOf(column.kind, value);
    const first = edges[0], last = edges[edges.length - 1], pad = (last - first || 1) * 0.05;
    const known = Number.isFinite(at);
    const low = Math.min(first - pad, known ? at : first), high = Math.max(last + pad, known ? at : last);
    const x = known ? (at - low) / (high - low) * width : 0;
    const training = evenCells(edges, column.training, low, high), total = sum(training) || 1;
    const now = column.now ? evenCells(edges, column.now, low, high) : [], seen = sum(now) || 1;
    const shares = [training.map(n => n / total), now.map(n => n / seen)];
    const most = Math.max(...shares[0], ...shares[1]) || 1;
    const under = known ? below(column, at) : 0;
    const told = !known ? "The value is missing." : under >= 1 - 1e-9 || at > last ? "Above 99% of the training rows."
      : at < first ? "Below 99% of the training rows." : `Above ${percent(under)} of the training rows.`;
    const picture = shape("svg", { viewBox: `0 0 ${width} ${height + 14}`, role: "img", "aria-label": `Distribution of ${name}. ${told}` });
    picture.append(shape("path", { class: "area", d: `M0 ${height}L${steps(shares[0], most, width, height)}L${width} ${height}Z` }));
    if (now.length) picture.append(shape("path", { class: "now", d: "M" + steps(shares[1], most, width, height) }));
    if (known) picture.append(shape("line", { class: "limit", x1: x, x2: x, y1: 2, y2: height }));
    picture.append(shape("text", { class: "tick", x: 0, y: height + 12 }, shownEdge(column.kind, low)));
    picture.append(shape("text", { class: "tick", x: width, y: height + 12, "text-anchor": "end" }, shownEdge(column.kind, high)));
    return [picture, told];
  };
  const categoryChart = (name, column, value) => {
    const names = column.edges, total = sum(column.training) || 1;
    const word = value === null ? "(missing)" : value;
    let place = names.indexOf(word);
    if (place < 0) place = names.indexOf("(others)");
    const share = (column.training[place] || 0) / total;
    const told = names.includes(word) ? `${percent(share)} of the training rows have it.` : `Rare: all ${percent(share)} of the training rows with unusual ones together.`;
    const width = 220, height = 64, cell = width / names.length, most = Math.max(...column.training) || 1;
    const picture = shape("svg", { viewBox: `0 0 ${width} ${height + 14}`, role: "img", "aria-label": `Categories of ${name}. ${told}` });
    column.training.forEach((n, at) => {
      const tall = Math.max(n / most * (height - 6), n ? 1 : 0);
      const mine = shape("rect", { class: at === place ? "bar hot" : "area", x: at * cell + 0.5, width: Math.max(cell - 1, 1), y: height - tall, height: tall });
      mine.append(shape("title", {}, `${names[at]}: ${n.toLocaleString("en")} rows`));
      picture.append(mine);
    });
    picture.append(shape("line", { class: "grid", x1: 0, x2: width, y1: height, y2: height }));
    picture.append(shape("text", { class: "tick", x: 0, y: height + 12 }, names.length ? "most frequent first" : ""));
    return [picture, told];
  };

  const card = ([place, value, contribution, redacted]) => {
    const name = data.names[place], column = data.columns[place], made = element("li");
    made.append(element("b", name), element("span", redacted ? "not shown" : number(value), "value"));
    if (contribution !== null) made.append(element("span", `  raised the score by ${number(contribution)}`, "quiet"));
    if (column && !redacted && column.edges.length) {
      const [picture, told] = (column.kind === "category" ? categoryChart : numberChart)(name, column, value);
      made.append(picture, element("span", told, "quiet"));
    }
    return made;
  };
  const toggle = row => {
    const button = row.querySelector("button.open"), isOpen = button.getAttribute("aria-expanded") === "true";
    const point = points.get(row.dataset.row);
    button.setAttribute("aria-expanded", String(!isOpen));
    if (point) { point.classList.toggle("on", !isOpen); point.setAttribute("r", isOpen ? 3 : 5); point.parentNode.append(point); }
    if (isOpen) { row.nextElementSibling.remove(); return; }
    const detail = element("tr", undefined, "detail"), cell = element("td"), list = element("ul", undefined, "why");
    detail.id = "detail-" + row.dataset.row;
    cell.colSpan = row.cells.length;
    for (const each of known.get(Number(row.dataset.row)) || []) list.append(card(each));
    cell.append(list.childElementCount ? list : element("p", "This model does not say which columns mattered.", "quiet"));
    detail.append(cell);
    row.after(detail);
  };
  const closeAll = () => { for (const row of rows) if (row.querySelector("button[aria-expanded=true]")) toggle(row); };

  const text = new Map();
  for (const row of rows) {
    const extra = (known.get(Number(row.dataset.row)) || []).map(c => data.names[c[0]] + " " + number(c[1])).join(" ");
    text.set(row, (row.textContent + " " + extra).toLowerCase());
    const head = row.cells[0], button = element("button", head.textContent, "open");
    button.type = "button";
    button.setAttribute("aria-expanded", "false");
    head.replaceChildren(button);
    row.addEventListener("click", event => { if (!window.getSelection().toString() || event.target === button) toggle(row); });
  }
  const show = () => {
    const wanted = filter.value.trim().toLowerCase();
    let found = 0;
    for (const row of body.querySelectorAll("tr[data-row]")) {
      const fits = !wanted || text.get(row).includes(wanted);
      if (fits) found += 1;
      row.hidden = !fits || found > limit;
    }
    count.textContent = wanted ? `${found.toLocaleString("en")} of ${rows.length.toLocaleString("en")} rows` : `${rows.length.toLocaleString("en")} rows`;
    more.parentElement.hidden = found <= limit;
  };
  filter.addEventListener("input", () => { closeAll(); limit = SHOWN; show(); });
  more.addEventListener("click", () => { limit += 100; show(); });

  Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
    const button = element("button", head.textContent);
    button.type = "button";
    head.replaceChildren(button);
    if (!head.hasAttribute("aria-sort")) head.setAttribute("aria-sort", "none");
    const isNumber = head.dataset.sort === "number";
    const value = row => row.cells[column].textContent;
    button.addEventListener("click", () => {
      const was = head.getAttribute("aria-sort");
      const sign = was === "descending" || (was === "none" && !isNumber) ? 1 : -1;
      for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
      closeAll();
      const order = (a, b) => isNumber ? Number(value(a)) - Number(value(b)) : value(a).localeCompare(value(b), "en", { numeric: true });
      rows.sort((a, b) => sign * order(a, b));
      body.append(...rows);
      show();
    });
  });
  for (const [row, point] of points) point.addEventListener("click", () => {
    const found = rows.find(each => each.dataset.row === row);
    if (!found) return;
    filter.value = ""; limit = rows.length; show();
    if (!found.querySelector("button[aria-expanded=true]")) toggle(found);
    found.scrollIntoView({ block: "center" });
    found.querySelector("button").focus();
  });
  show();
})();
