"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const get = (id) => document.getElementById(id);
  const PAGE = 200, FILE_PAGE = 100, SHOWN = 300;
  const LINE = 0, COLUMN = 1, CODE = 2, STATE = 3, EFFORT = 4, MESSAGE = 5, HELP = 6, IGNORED = 7;
  const text = (index) => data.texts[index];

  const element = (name, className, content) => {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (content !== undefined) made.textContent = content;
    return made;
  };

  // One record a finding, with the text that the search looks at made when it is needed first.
  const rows = [];
  data.files.forEach((file, index) => {
    for (const finding of file[2]) rows.push({ file: index, finding, words: null });
  });
  const words = (row) => {
    if (row.words === null) {
      const f = row.finding;
      row.words = `${data.files[row.file][0]} ${f[CODE]} ${text(f[MESSAGE])} ${text(f[HELP])}`.toLowerCase();
    }
    return row.words;
  };

  const search = get("search"), state = get("state"), code = get("code"), effort = get("effort");
  let path = null, shown = [], listed = 0, files = [], listedFiles = 0;

  for (const [name, title] of Object.entries(data.codes)) {
    const option = element("option", "", `${name} ${title}`);
    option.value = name;
    code.append(option);
  }

  const matches = (row) => {
    const f = row.finding;
    return (!state.value || f[STATE] === state.value || (state.value === "done" && f[STATE] === "unsafe"))
      && (!code.value || f[CODE] === code.value)
      && (!effort.value || f[EFFORT] === effort.value)
      && (path === null || data.files[row.file][0] === path)
      && search.value.toLowerCase().split(/\s+/).every((word) => !word || words(row).includes(word));
  };

  // The source line of a finding: kept with the file where it is open, in the diff where it was edited.
  const sources = new Map();
  const sourceOf = (row) => {
    if (!sources.has(row.file)) {
      const file = data.files[row.file], lines = new Map(file[3]);
      for (const [number, old] of diffRows(file)) if (number !== null) lines.set(number, old);
      sources.set(row.file, lines);
    }
    return sources.get(row.file).get(row.finding[LINE]);
  };

  const codeLink = (name) => {
    const page = get(name);
    if (!page || !page.classList.contains("page")) return element("span", "code", name);
    const made = element("a", "code", name);
    made.href = `#${name}`;
    return made;
  };

  const item = (row) => {
    const f = row.finding, file = data.files[row.file], made = element("li");
    const place = element("button", "link place", `${file[0]}:${f[LINE]}:${f[COLUMN]}`);
    place.type = "button";
    place.addEventListener("click", () => openFile(row.file, f[LINE]));
    const head = element("div");
    const said = f[STATE] === "unsafe" ? "done, unsafe" : f[STATE];
    const badge = f[STATE] === "left" && f[EFFORT] ? `left, ${f[EFFORT]}` : said;
    head.append(place, " ", codeLink(f[CODE]), " ", element("span", `badge ${f[STATE]}`, badge));
    made.append(head, element("div", "", text(f[MESSAGE])));
    const more = f[STATE] === "ignored" ? text(f[IGNORED]) : text(f[HELP]);
    if (more) made.append(element("div", "help", more));
    const source = sourceOf(row);
    if (source && source.trim()) made.append(element("pre", "source", source.trim().slice(0, SHOWN)));
    return made;
  };

  const more = () => {
    const next = shown.slice(listed, listed + PAGE);
    get("list").append(...next.map(item));
    listed += next.length;
    get("more").hidden = listed >= shown.length;
  };

  const moreFiles = () => {
    const next = files.slice(listedFiles, listedFiles + FILE_PAGE);
    get("files").append(...next.map(fileBox));
    listedFiles += next.length;
    get("more-files").hidden = listedFiles >= files.length;
  };

  const update = () => {
    shown = rows.filter(matches);
    listed = 0;
    get("list").replaceChildren();
    more();
    const filtered = search.value || code.value || effort.value || path !== null || state.value !== "left";
    const with_ = new Set(shown.map((row) => row.file));
    files = data.files.map((_, index) => index).filter((index) => !filtered || with_.has(index));
    listedFiles = 0;
    get("files").replaceChildren();
    moreFiles();
    const where = path === null ? "" : ` in ${path}`;
    get("count").textContent = `${shown.length} of ${rows.length} findings${where}`;
    writeAddress();
  };

  // The filters stand in the address (#code=NPU201&file=train.py), so that a view can be sent to somebody.
  const controls = { q: search, state, code, effort };
  const PLAIN = { q: "", state: "left", code: "", effort: "" };
  const writeAddress = () => {
    const said = new URLSearchParams();
    for (const [name, control] of Object.entries(controls)) {
      if (control.value !== PLAIN[name]) said.set(name, control.value || "all");
    }
    if (path !== null) said.set("file", path);
    const wanted = said.toString();
    if (!wanted && !location.hash.includes("=")) return;
    try {
      history.replaceState(null, "", `#${wanted}`);
    } catch {
      // A page in a frame of another origin keeps its address.
    }
  };

  const readAddress = () => {
    if (!location.hash.includes("=")) return false;
    const said = new URLSearchParams(location.hash.slice(1));
    for (const [name, control] of Object.entries(controls)) {
      const asked = said.get(name);
      control.value = asked === null ? PLAIN[name] : asked === "all" && name !== "q" ? "" : asked;
      if (control.selectedIndex === -1) control.value = PLAIN[name];
    }
    path = said.get("file");
    return true;
  };

  const openPage = () => {
    const page = location.hash.length > 1 ? get(location.hash.slice(1)) : null;
    if (!page || !page.classList.contains("page")) return;
    page.open = true;
    page.scrollIntoView();
  };

  const fileBox = (index) => {
    const file = data.files[index], box = element("details");
    const left = file[2].filter((f) => f[STATE] === "left").length;
    const done = file[2].filter((f) => f[STATE] === "done" || f[STATE] === "unsafe").length;
    const head = element("summary");
    head.append(element("span", "place", file[0]), ` ${left} left, ${done} done`);
    box.append(head);
    box.dataset.file = index;
    box.addEventListener("toggle", () => {
      if (box.open && box.children.length === 1) box.append(drawFile(file));
    });
    return box;
  };

  const openFile = (index, line) => {
    let box = get("files").querySelector(`details[data-file="${index}"]`);
    while (!box && listedFiles < files.length) {
      moreFiles();
      box = get("files").querySelector(`details[data-file="${index}"]`);
    }
    if (!box) return;
    box.open = true;
    if (box.children.length === 1) box.append(drawFile(data.files[index]));
    const target = box.querySelector(`[data-line="${line}"]`) || box;
    target.scrollIntoView({ block: "center" });
    box.querySelector("summary").focus({ preventScroll: true });
  };

  // The patch as rows [old number, old text, new number, new text, same]; lines of findings outside of it are added.
  const diffRows = (file) => {
    const made = [];
    let oldNumber = 0, newNumber = 0, removed = [], added = [];
    const flush = () => {
      for (let at = 0; at < Math.max(removed.length, added.length); at++) {
        made.push([...(removed[at] || [null, null]), ...(added[at] || [null, null]), false]);
      }
      removed = [];
      added = [];
    };
    for (const line of file[1].split("\n")) {
      const start = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(line);
      const body = line.slice(1).replace(/\r$/, "");
      if (start) {
        flush();
        oldNumber = Number(start[1]) + (start[2] === "0" ? 1 : 0);
        newNumber = Number(start[3]) + (start[4] === "0" ? 1 : 0);
      } else if (line[0] === "-") {
        if (added.length) flush();
        removed.push([oldNumber++, body]);
      } else if (line[0] === "+") {
        added.push([newNumber++, body]);
      } else if (line[0] === " ") {
        flush();
        made.push([oldNumber++, body, newNumber++, body, true]);
      }
    }
    flush();
    const there = new Set(made.map((row) => row[0]));
    const context = file[3].filter(([number]) => !there.has(number)).map(([number, source]) => [number, source]);
    const all = [];
    let shift = 0;
    for (const row of made) {
      while (context.length && row[0] !== null && context[0][0] < row[0]) {
        const [number, source] = context.shift();
        all.push([number, source, number + shift, source, true]);
      }
      if (row[0] !== null && row[2] !== null) shift = row[2] - row[0];
      else shift += row[0] === null ? 1 : -1;
      all.push(row);
    }
    for (const [number, source] of context) all.push([number, source, number + shift, source, true]);
    return all;
  };

  // The tokens of one cause: [file, place of the token in its flat list].
  const TOKEN_PAGE = 200, VERDICT = 0, NAME = 1, WORDS = 2, DOUBT = 3, COUNT = 4;
  const tokensOf = (cause) => {
    const found = [];
    data.tokens.files.forEach(([, flat], file) => {
      for (let at = 0; at < flat.length; at += 4) if (flat[at + 3] === cause) found.push([file, at]);
    });
    return found;
  };

  const tokenItem = ([file, at]) => {
    const [path, flat, lines] = data.tokens.files[file], made = element("li");
    const line = lines.find(([number]) => number === flat[at]);
    made.append(
      element("span", "place", `${path}:${flat[at]}:${flat[at + 1]}`), " ",
      element("span", "code", data.tokens.words[flat[at + 2]]),
    );
    if (line) made.append(element("div", "help", line[1]));
    return made;
  };

  const tokenBox = (cause, index) => {
    const box = element("details"), head = element("summary");
    const doubt = cause[DOUBT] ? `, doubt ${cause[DOUBT]}` : "";
    head.append(element("span", "code", cause[NAME]), ` ${cause[COUNT]} ${cause[VERDICT]}${doubt}: ${cause[WORDS]}`);
    box.append(head);
    box.addEventListener("toggle", () => {
      if (!box.open || box.children.length > 1) return;
      const list = element("ol", "findings"), rest = tokensOf(index), button = element("button", "", "Show more");
      button.type = "button";
      const next = () => {
        list.append(...rest.splice(0, TOKEN_PAGE).map(tokenItem));
        button.hidden = !rest.length;
      };
      button.addEventListener("click", next);
      next();
      box.append(list, button);
    });
    return box;
  };

  const note = (finding) => {
    const made = element("span", finding[STATE], `${finding[CODE]} ${text(finding[MESSAGE])}`);
    if (finding[STATE] === "left" && text(finding[HELP])) made.title = text(finding[HELP]);
    return made;
  };

  const drawFile = (file) => {
    const box = element("div", "diff");
    const byLine = new Map();
    for (const finding of file[2]) {
      if (!byLine.has(finding[LINE])) byLine.set(finding[LINE], []);
      byLine.get(finding[LINE]).push(finding);
    }
    let last = null;
    for (const [oldNumber, oldText, newNumber, newText, same] of diffRows(file)) {
      if (oldNumber !== null && last !== null && oldNumber > last + 1) box.append(element("div", "gap", "..."));
      const row = element("div", same ? "row same" : "row");
      const cut = same ? "" : " cut";
      row.append(
        element("span", oldNumber === null ? "no empty" : "no", oldNumber === null ? "" : oldNumber),
        element("span", oldNumber === null ? "old empty" : `old${cut}`, oldText === null ? "" : oldText),
        element("span", newNumber === null ? "no right empty" : "no right", newNumber === null ? "" : newNumber),
        element("span", newNumber === null ? "new empty" : `new${cut}`, newText === null ? "" : newText),
      );
      const margin = element("span", "margin");
      if (oldNumber !== null) {
        row.dataset.line = oldNumber;
        last = oldNumber;
        for (const finding of byLine.get(oldNumber) || []) margin.append(note(finding));
        byLine.delete(oldNumber);
      }
      row.append(margin);
      box.append(row);
    }
    for (const [line, findings] of byLine) {
      for (const finding of findings) {
        const gap = element("div", "gap", `line ${line}: `);
        gap.append(note(finding));
        box.append(gap);
      }
    }
    if (file[4]) box.append(element("div", "gap", "the diff goes on; it is cut in this page"));
    return box;
  };

  // What was ticked is kept in this browser, by project and title: a later report of the project shows it, too.
  const boxes = [...document.querySelectorAll("[data-tick]")], KEY = `transplt ticked ${data.name}`;
  const remembered = () => {
    try {
      const kept = JSON.parse(localStorage.getItem(KEY));
      return new Set(Array.isArray(kept) ? kept : []);
    } catch {
      return new Set();
    }
  };
  const showTicks = () => {
    for (const box of boxes) box.closest("li").classList.toggle("ticked", box.checked);
    const done = boxes.filter((box) => box.checked).length;
    if (get("ticked")) get("ticked").textContent = done ? `${done} of ${boxes.length} ticked off in this browser.` : "";
  };
  const ticked = remembered();
  for (const box of boxes) {
    box.hidden = false;
    box.checked = ticked.has(box.dataset.tick);
    box.addEventListener("change", () => {
      const kept = remembered();
      kept[box.checked ? "add" : "delete"](box.dataset.tick);
      try {
        localStorage.setItem(KEY, JSON.stringify([...kept]));
      } catch {
        // A browser that keeps nothing still ticks.
      }
      showTicks();
    });
  }
  showTicks();

  // On paper the actions say how and where; what was closed is closed again afterwards.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("#h-do ~ * details, #h-do ~ details")].filter((box) => !box.open);
    for (const box of opened) box.open = true;
  });
  addEventListener("afterprint", () => {
    for (const box of opened) box.open = false;
  });

  for (const button of document.querySelectorAll("[data-filter]")) {
    button.addEventListener("click", () => {
      const kind = button.dataset.filter, value = button.dataset.value;
      get("filters").reset();
      path = kind === "path" ? value : null;
      if (kind === "code") code.value = value;
      if (kind === "effort") effort.value = value;
      update();
      get("findings").scrollIntoView();
      get("findings").focus({ preventScroll: true });
    });
  }

  let waiting = 0;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(update, 120);
  });
  for (const control of [state, code, effort]) control.addEventListener("change", update);
  get("filters").addEventListener("submit", (event) => event.preventDefault());
  get("filters").addEventListener("reset", () => {
    path = null;
    setTimeout(update, 0);
  });
  get("more").addEventListener("click", more);
  get("more-files").addEventListener("click", moreFiles);
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      search.focus();
    }
    if (event.key === "Escape" && document.activeElement === search) {
      search.value = "";
      update();
    }
  });

  get("tokens").append(...data.tokens.causes.map(tokenBox));
  get("filters").hidden = false;
  addEventListener("hashchange", () => {
    if (readAddress()) update();
    else openPage();
  });
  readAddress();
  update();
  openPage();
})();
