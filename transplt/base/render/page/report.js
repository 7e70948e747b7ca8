"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const get = (id) => document.getElementById(id);
  const PAGE = 100, FILE_PAGE = 100, SHOWN = 300;
  const FINDINGS = 0, LINES = 1;
  const LINE = 0, COLUMN = 1, CODE = 2, STATE = 3, EFFORT = 4, MESSAGE = 5, HELP = 6, IGNORED = 7;
  const text = (index) => data.texts[index];
  const say = (name, values = {}) => data.says[name].replace(/\{(\w+)\}/g, (_, key) => values[key]);

  const element = (name, className, content) => {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (content !== undefined) made.textContent = content;
    return made;
  };

  // The boxes of the files, which stand in the page with their diffs as text.
  const fileBoxes = [...get("file-list").children];
  const paths = fileBoxes.map((box) => box.querySelector("a, b").textContent);

  // One record a finding, with the text that the search looks at made when it is needed first.
  const rows = [];
  data.files.forEach((file, index) => {
    for (const finding of file[FINDINGS]) rows.push({ file: index, finding, words: null });
  });
  const words = (row) => {
    if (row.words === null) {
      const f = row.finding;
      row.words = `${paths[row.file]} ${f[CODE]} ${text(f[MESSAGE])} ${text(f[HELP])}`.toLowerCase();
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
      && (path === null || paths[row.file] === path)
      && search.value.toLowerCase().split(/\s+/).every((word) => !word || words(row).includes(word));
  };

  // The source line of a finding: kept with the file where it is open, in the diff where it was edited.
  const sources = new Map();
  const sourceOf = (row) => {
    if (!sources.has(row.file)) {
      const file = data.files[row.file], lines = new Map(file[LINES]);
      for (const [number, old] of diffRows(row.file)) if (number !== null) lines.set(number, old);
      sources.set(row.file, lines);
    }
    return sources.get(row.file).get(row.finding[LINE]);
  };

  const addressOf = (index, line) => {
    const page = fileBoxes[index].querySelector("a");
    return page ? `${page.getAttribute("href")}#L${line}` : `#${fileBoxes[index].lastElementChild.id}-${line}`;
  };

  const link = (className, content, address) => {
    const made = element("a", className, content);
    made.href = address;
    return made;
  };

  const item = (row) => {
    const f = row.finding, made = element("li"), box = element("details"), head = element("summary");
    const state_ = f[STATE] === "left" && f[EFFORT] ? `left_${f[EFFORT]}` : f[STATE];
    head.append(
      element("span", "place", `${paths[row.file]}:${f[LINE]}:${f[COLUMN]}`), " ", element("span", "code", f[CODE]), " ",
      element("span", `badge ${f[STATE]}`, say(state_)), " ", element("span", "", text(f[MESSAGE])),
    );
    box.append(head);
    const fill = () => {
      if (box.children.length > 1) return;
      const inside = element("div", "inside"), last = element("p", "quiet");
      const more = f[STATE] === "ignored" ? text(f[IGNORED]) : text(f[HELP]);
      if (more) inside.append(element("p", "help", more));
      const source = sourceOf(row);
      if (source && source.trim()) inside.append(element("pre", "source", source.trim().slice(0, SHOWN)));
      last.append(link("in-diff", say("in_diff"), addressOf(row.file, f[LINE])));
      if (get(f[CODE])) last.append(" ", link("code", say("page", { code: f[CODE] }), `#${f[CODE]}`));
      inside.append(last);
      box.append(inside);
    };
    box.addEventListener("toggle", fill);
    box.fill = fill;
    made.append(box);
    return made;
  };

  const more = () => {
    const next = shown.slice(listed, listed + PAGE);
    get("list").append(...next.map(item));
    listed += next.length;
    get("more").hidden = listed >= shown.length;
  };

  const moreFiles = () => {
    for (const index of files.slice(listedFiles, listedFiles + FILE_PAGE)) fileBoxes[index].hidden = false;
    listedFiles = Math.min(listedFiles + FILE_PAGE, files.length);
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
    for (const box of fileBoxes) box.hidden = true;
    moreFiles();
    get("count").textContent = say(path === null ? "count" : "count_in", { shown: shown.length, all: rows.length, path });
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

  // An address leads into what is folded: browsers unfold what is around it, and the older ones are helped here.
  const unfold = (element_) => {
    for (let at = element_; at; at = at.parentElement) {
      if (at instanceof HTMLDetailsElement) at.open = true;
      if (at.parentElement === get("file-list")) at.hidden = false;
    }
  };

  const goThere = () => {
    const name = decodeURIComponent(location.hash.slice(1));
    if (!name) return;
    const target = get(name);
    if (target) {
      unfold(target);
      (target.parentElement instanceof HTMLDetailsElement ? target.parentElement : target).scrollIntoView();
      return;
    }
    const place = /^(f-[0-9a-f]{8})-(\d+)$/.exec(name), inside = place && get(place[1]);
    if (!inside) return;
    unfold(inside);
    const box = inside.closest("#file-list > *");
    draw(box);
    const row = box.querySelector(`[data-line="${place[2]}"]`) || inside;
    row.scrollIntoView({ block: "center" });
    const summary = box.querySelector("summary");
    if (summary) summary.focus({ preventScroll: true });
  };

  // The diff as text becomes two columns when somebody looks at it.
  const draw = (box) => {
    const patch = box.querySelector("pre");
    if (patch && !patch.hidden) {
      patch.after(drawFile(fileBoxes.indexOf(box)));
      patch.hidden = true;
    }
  };
  for (const box of fileBoxes) box.addEventListener("toggle", () => box.open && draw(box));

  // The patch as rows [old number, old text, new number, new text, same]; lines of findings outside of it are added.
  const diffRows = (index) => {
    const patch = fileBoxes[index].querySelector("pre"), quoted = data.files[index][LINES];
    const made = [];
    let oldNumber = 0, newNumber = 0, removed = [], added = [];
    const flush = () => {
      for (let at = 0; at < Math.max(removed.length, added.length); at++) {
        made.push([...(removed[at] || [null, null]), ...(added[at] || [null, null]), false]);
      }
      removed = [];
      added = [];
    };
    for (const line of (patch ? patch.textContent : "").split("\n")) {
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
    const context = quoted.filter(([number]) => !there.has(number)).map(([number, source]) => [number, source]);
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
    const words = { count: cause[COUNT], verdict: cause[VERDICT], doubt: cause[DOUBT], words: cause[WORDS] };
    head.append(element("span", "code", cause[NAME]), " ", say(cause[DOUBT] ? "doubted" : "cause", words));
    box.append(head);
    box.addEventListener("toggle", () => {
      if (!box.open || box.children.length > 1) return;
      const list = element("ol", "findings"), rest = tokensOf(index), button = element("button", "", say("more"));
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

  const drawFile = (index) => {
    const file = data.files[index], box = element("div", "diff");
    const byLine = new Map();
    for (const finding of file[FINDINGS]) {
      if (!byLine.has(finding[LINE])) byLine.set(finding[LINE], []);
      byLine.get(finding[LINE]).push(finding);
    }
    let last = null;
    for (const [oldNumber, oldText, newNumber, newText, same] of diffRows(index)) {
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
        const gap = element("div", "gap", `${say("line", { line })} `);
        gap.append(note(finding));
        box.append(gap);
      }
    }
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
    if (get("ticked")) get("ticked").textContent = done ? say("ticked", { done, all: boxes.length }) : "";
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

  // What is pasted is copied by a button.
  for (const block of document.querySelectorAll("pre.paste")) {
    const around = element("div", "with-copy"), button = element("button", "", say("copy"));
    button.type = "button";
    block.replaceWith(around);
    around.append(block, button);
    button.addEventListener("click", async () => {
      getSelection().selectAllChildren(block);
      try {
        await navigator.clipboard.writeText(block.textContent);
        button.textContent = say("copied");
      } catch {
        // It is selected, at least.
      }
    });
  }

  // On paper nothing is folded but the long lists that nobody unfolded; afterwards it is as it was.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")].filter((box) => !box.closest(".on-screen, .further"));
    for (const box of opened) box.open = true;
    for (const box of document.querySelectorAll("#list details")) box.fill();
  });
  addEventListener("afterprint", () => {
    for (const box of opened) box.open = false;
  });

  const showFindings = () => {
    unfold(get("findings"));
    get("findings").scrollIntoView();
    get("findings").focus({ preventScroll: true });
  };

  for (const button of document.querySelectorAll("[data-filter]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const kind = button.dataset.filter, value = button.dataset.value;
      get("filters").reset();
      path = kind === "path" ? value : null;
      if (kind === "code") code.value = value;
      if (kind === "effort") effort.value = value;
      update();
      showFindings();
    });
  }
  get("unfold").addEventListener("click", () => {
    for (const box of document.querySelectorAll("#list details")) box.open = true;
  });

  // The section that is read is marked in the contents.
  const entries = new Map([...document.querySelectorAll(".contents a")].map((each) => [each.hash.slice(1), each]));
  let marked = null;
  const mark = () => {
    let found = null;
    for (const each of document.querySelectorAll("main > section > details > .inside")) {
      if (each.parentElement.getBoundingClientRect().top < 150) found = entries.get(each.id);
    }
    if (found === marked) return;
    if (marked) marked.removeAttribute("aria-current");
    marked = found;
    if (!found) return;
    found.setAttribute("aria-current", "true");
    const bar = found.closest("nav");
    if (bar.scrollWidth > bar.clientWidth) bar.scrollTo({ left: found.offsetLeft - 24 });
  };
  let asked = false;
  const later = () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      mark();
    });
  };
  addEventListener("scroll", later, { passive: true });
  addEventListener("resize", later);

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
      unfold(search);
      search.focus();
    }
    if (event.key === "Escape" && document.activeElement === search) {
      search.value = "";
      update();
    }
  });

  get("token-list").append(...data.tokens.causes.map(tokenBox));
  get("filters").hidden = false;
  addEventListener("hashchange", () => {
    if (!readAddress()) goThere();
    else {
      update();
      unfold(get("findings"));
    }
  });
  // A link to where the address already is brings no event.
  document.addEventListener("click", (event) => {
    const followed = event.target.closest("a[href^='#']");
    if (followed && followed.hash === location.hash) goThere();
  });
  const filtered = readAddress();
  update();
  if (filtered) showFindings();
  else goThere();
  mark();
})();
