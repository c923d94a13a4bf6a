// Gallery, counts by column, and map of the whole index.
import { answer, button, card, count, make } from "./cards.js";

const at = (id) => document.getElementById(id);
const PAGE = 24, COLORS = 8, SHOWN = 12;
const quoted = (text, mark) => mark + text.replaceAll(mark, mark + mark) + mark;

// SQLite reads a quoted name as a text if no column has this name, but refuses a qualified name. A label may join several
// classes, so classes are compared once with each such label, and LIMIT keeps SQLite from comparing them with each clip.
const LABELS = "SELECT label, '|' || label || '|' AS l FROM item WHERE instr(label, '|') GROUP BY label LIMIT -1";
const among = (column, texts) => {
  const name = `${["label", "split"].includes(column) ? "item" : "extra"}.${quoted(column, '"')}`;
  const same = texts.map((text) => quoted(text, "'"));
  if (column !== "label") return `${name} IN (${same.join(", ")})`;
  const classes = texts.map((text) => `instr(l, ${quoted(`|${text}|`, "'")})`).join(" OR ");
  return `${name} IN (VALUES (${same.join("), (")}) UNION ALL SELECT label FROM (${LABELS}) WHERE ${classes})`;
};
// The SQL condition that joins chosen values ({column: [value, ...]}) and a typed condition.
export const condition = (values, typed) => [
  ...Object.entries(values).map(([column, texts]) => among(column, texts)),
  ...(typed ? [`(${typed}\n)`] : []),
].join(" AND ");

export const showCounts = (counts, values, toggle, opened) => {
  const open = new Set([...document.querySelectorAll("#facets details[open]")].map((details) => details.dataset.column));
  const columns = { ...Object.fromEntries(Object.keys(values).map((column) => [column, { values: [] }])), ...counts };
  at("facets").replaceChildren(...Object.entries(columns).map(([column, { values: found, of }], n) => {
    const details = make("details"), row = make("div", "", "values"), chosen = values[column] ?? [];
    details.dataset.column = column;
    details.open = open.has(column) || (opened && n === 0 && window.innerWidth > 500);
    const name = column === "label" ? "class" : column;
    details.append(make("summary", chosen.length ? `${name}: ${chosen.join(", ")}` : name), row);
    const rest = chosen.filter((text) => !found.some(([name]) => name === text)).map((text) => [text, 0]);
    const pills = [...rest, ...found].map(([text, number]) => {
      const pill = button(text, () => toggle(column, text));
      pill.append(make("small", count(number)));
      pill.setAttribute("aria-pressed", String(chosen.includes(text)));
      return pill;
    });
    row.append(...pills.slice(0, SHOWN));
    if (pills.length > SHOWN) row.append(button(`${pills.length - SHOWN} more`, (more) => more.replaceWith(...pills.slice(SHOWN))));
    if (of > found.length) row.append(make("small", `the ${found.length} most frequent of ${count(of)} classes`));
    return details;
  }));
};

export const showClips = (page, actions, turn) => {
  const last = page.offset + page.clips.length;
  at("clips").replaceChildren(...page.clips.map((clip) => card(clip, actions(clip))));
  at("all-title").textContent = page.total > PAGE ? `Clips ${count(page.offset + 1)} to ${count(last)} of ${count(page.total)}` : `Clips (${page.total})`;
  for (const [id, offset, absent] of [["less", Math.max(0, page.offset - PAGE), !page.offset], ["more", last, last >= page.total]]) {
    at(id).hidden = absent;
    at(id).onclick = () => turn(offset);
  }
};

const color = (n, classes) => (classes > COLORS ? `hsl(${Math.round(360 * n / classes)} 60% ${n % 2 ? 42 : 58}%)`
  : getComputedStyle(document.documentElement).getPropertyValue(`--c${n}`));

export const showMap = async (of, actions) => {
  const canvas = at("map"), pen = canvas.getContext("2d"), edge = 14;
  const { points, classes } = await answer(`map?of=${of}`);
  const place = ([, x, y]) => [edge + x / 1000 * (canvas.width - 2 * edge), edge + (1000 - y) / 1000 * (canvas.height - 2 * edge)];
  const size = points.length > 2000 ? 2 : 4, full = 2 * Math.PI;
  const parts = classes.map((label) => (label ? label.split("|").filter(Boolean) : [""]));
  const names = [...new Set(parts.flat())].sort();
  const colors = new Map(names.map((name, n) => [name, color(n, names.length)]));
  const draw = (chosen) => {
    pen.clearRect(0, 0, canvas.width, canvas.height);
    for (const point of points) {
      const [x, y] = place(point);
      parts[point[3]].forEach((name, n, { length }) => {
        pen.fillStyle = colors.get(name);
        pen.beginPath();
        pen.moveTo(x, y);
        pen.arc(x, y, point === chosen ? 9 : size, full * n / length, full * (n + 1) / length);
        pen.fill();
      });
    }
  };
  draw();
  const by = names.length > 1 ? ` by class${parts.some((some) => some.length > 1) ? " (several colors: several classes)" : ""}` : "";
  at("map-note").textContent = `${count(points.length)} points${by}; click a point to play its clip.`;
  at("legend").replaceChildren(...(names.length > 1 && names.length <= 24 ? names : []).map((name) => {
    const item = make("li"), dot = make("i");
    dot.style.background = colors.get(name);
    item.append(dot, name || "no class");
    return item;
  }));
  canvas.onclick = async (event) => {
    const box = canvas.getBoundingClientRect(), scale = canvas.width / box.width;
    const [x, y] = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
    const far = (point) => { const [left, top] = place(point); return (left - x) ** 2 + (top - y) ** 2; };
    const nearest = points.reduce((best, point) => (far(point) < far(best) ? point : best), points[0]);
    draw(nearest);
    const clip = await answer(`clip?number=${nearest[0]}`);
    at("picked").replaceChildren(card(clip, actions(clip), { tag: "div" }));
    at("picked").querySelector(".player")?.click();
  };
};

export const pageOf = async (where, offset, limit = PAGE) =>
  ({ offset, ...await answer(`clips?${new URLSearchParams({ where, offset, limit })}`) });

// The counts of a chosen column ignore its chosen values, so that further values can be chosen.
export const countsOf = async (page, values, typed) => {
  const others = await Promise.all(Object.keys(values).map(async (column) => {
    const rest = Object.fromEntries(Object.entries(values).filter(([name]) => name !== column));
    return [column, (await pageOf(condition(rest, typed), 0, 0)).counts[column] ?? { values: [] }];
  }));
  return { ...page.counts, ...Object.fromEntries(others) };
};
