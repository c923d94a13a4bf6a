// The address after # holds the question, so that links and the back button reopen it: a clip of the index (clip, from),
// words (text) or a file (file, one of the latest of this page), then to, k, where, f.COLUMN for chosen values, and offset.
import { answer, button, card, count, make, percent, scoreOf } from "./cards.js";
import { condition, countsOf, pageOf, showClips, showCounts, showMap } from "./browse.js";

const at = (id) => document.getElementById(id);
const files = new Map(), FILES = 20;
let facts = null, running = null, results = null, question = "", dropped = 0, turned = false, shownFile = "";

const say = (words, kind = "") => { at("said").textContent = words; at("said").className = kind; };
const allowed = (kind, to) => facts.questions.some(([from, other]) => from === kind && other === to);
const kinds = () => [...new Set(facts.questions.map(([kind]) => kind))];
const targets = (kind) => {
  const names = facts.modalities.filter((to) => allowed(kind, to));
  return kind === "text" && names.length > 1 ? [...names, "all"] : names;
};
// The other modality, if the index compares both.
const across = (kind) => (kind === "text" && targets(kind).includes("all") ? "all" : targets(kind).find((to) => to !== kind) ?? targets(kind)[0]);
const choose = (select, names, wanted) => {
  select.replaceChildren(...names.map((name) => make("option", name)));
  if (names.includes(wanted)) select.value = wanted;
};

const state = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
const go = (values) => {
  const next = `#${new URLSearchParams(Object.entries(values).filter(([, value]) => value))}`;
  if (next === (location.hash || "#")) open(); else location.hash = next;
};
const subject = ({ clip, text, file }) => clip || text || file;
const chosen = (values) => Object.fromEntries(Object.entries(values).filter(([name]) => name.startsWith("f."))
  .map(([name, texts]) => [name.slice(2), JSON.parse(texts)]));
const filters = () => Object.fromEntries(Object.entries(state()).filter(([name]) => name.startsWith("f.") || ["where", "k"].includes(name)));

const toggle = (column, text) => {
  const values = state(), before = chosen(values)[column] ?? [];
  const after = before.includes(text) ? before.filter((other) => other !== text) : [...before, text];
  go({ ...values, offset: "", [`f.${column}`]: after.length ? JSON.stringify(after) : "" });
};

const asks = (clip) => clip.vectors.filter((from) => from !== "text" && kinds().includes(from));

const ways = (clip) => asks(clip).flatMap((from) => {
  const names = { audio: ["Sounds like this", "Sounds for this picture"], visual: ["Looks like this", "Pictures for this sound"] };
  return targets(from).filter((to) => names[to]).map((to) => {
    const words = names[to][from === to ? 0 : 1];
    return button(words, () => go({ ...filters(), clip: clip.clip ?? clip.id, from, to }), `${words}: ${clip.id}`);
  });
});

const likes = (clip) => {
  const names = asks(clip);
  if (!names.length) return [];
  const from = names.includes(results?.to) && subject(state()) ? results.to : names[0], details = make("details");
  details.append(make("summary", "other ways"), ...ways(clip));
  return [button("More like this", () => go({ ...filters(), clip: clip.clip ?? clip.id, from, to: across(from) }), `More like this: ${clip.id}`), details];
};

// Only clips of the index have ids that `aadml evaluate --relevance` knows.
const judge = (hit) => {
  if (!question) return [];
  const record = (grade) => async (pressed) => {
    try {
      const { judgments } = await answer(`judge?${new URLSearchParams({ query: question, item: hit.clip, grade })}`, { method: "POST" });
      pressed.parentElement.querySelectorAll("[data-grade]").forEach((other) => other.setAttribute("aria-pressed", String(other === pressed)));
      say(`Noted as judgment ${judgments} in ${facts.judgments}.`);
    } catch (error) { say(error.message, "wrong"); }
  };
  return [["Fits", 1], ["Does not fit", 0]].map(([words, grade]) => {
    const element = button(words, record(grade), `${words}: ${hit.id}`);
    element.dataset.grade = grade;
    element.setAttribute("aria-pressed", "false");
    return element;
  });
};

const summary = (found) => {
  const items = found.to === "text" && found.hits.some((hit) => hit.caption) ? "captions" : "clips";
  const many = `${found.hits.length} of ${count(found.among)} ${items}, compared by ${found.asked.join(" and ")}`;
  if (!found.hits.length) return "Nothing here: no clip meets the filter.";
  if (found.nothing_fits) {
    const { threshold, precision } = found.calibration;
    return `No hit is certain: none reaches the threshold of ${percent(threshold)}, above which ${percent(precision)} of the best hits fit. `
      + `The nearest clips are shown. (${many})`;
  }
  return !found.uncalibrated ? many : `${many}; no probabilities: ${found.uncalibrated}`;
};

const showQuestion = async (values, file, own) => {
  const parts = [];
  if (values.clip) {
    const clip = await answer(`clip?${new URLSearchParams({ clip: values.clip })}`, { signal: own.signal });
    parts.push(card(clip, likes(clip), { tag: "div" }));
  } else if (file) {
    const type = file.type.split("/")[0], shown = document.createElement({ audio: "audio", video: "video" }[type] ?? "img");
    URL.revokeObjectURL(shownFile);
    shown.src = shownFile = URL.createObjectURL(file);
    if (type === "image") shown.alt = file.name; else { shown.controls = true; shown.setAttribute("aria-label", file.name); }
    if (["audio", "video", "image"].includes(type)) parts.push(shown);
    parts.push(make("p", file.name));
  } else parts.push(make("p", `“${values.text}”`));
  const from = values.clip ? `${values.from} of this clip, ` : "";
  if (own === running) at("query").replaceChildren(...parts, make("p", `${from}searching ${values.to}`, "note"));
};

const show = (found, values) => {
  results = found;
  const tie = (hit) => hit.second_key !== null && found.hits.some((other) => other !== hit && scoreOf(other) === scoreOf(hit));
  const shared = new Set(found.hits.filter(tie));
  at("hits").replaceChildren(...found.hits.map((hit) =>
    card(hit, [...likes(hit), ...judge(hit)], { hit, own: hit.clip === values.clip, tied: shared.has(hit) })));
  at("found").hidden = !found.hits.length;
  say(summary(found), found.nothing_fits ? "none" : "");
};

const asked = (values, where, signal) => {
  const limits = { to: values.to, k: values.k || "12", where };
  if (values.clip) return answer(`like?${new URLSearchParams({ clip: values.clip, from: values.from, ...limits })}`, { signal });
  if (values.text) return answer(`search?${new URLSearchParams({ kind: "text", text: values.text, ...limits })}`, { method: "POST", signal });
  const file = files.get(values.file);
  if (!file) throw new Error("the file of this link is gone; drop the file again");
  if (file.size > facts.most_bytes) throw new Error(`the file is larger than ${facts.most_bytes / 1e6} MB; choose a smaller file`);
  return answer(`search?${new URLSearchParams({ kind: values.kind, ...limits })}`,
    { method: "POST", body: file, signal, headers: { "X-Name": encodeURIComponent(file.name) } });
};

const complete = (values) => {
  const kind = values.clip ? values.from || kinds().find((name) => allowed(name, values.to)) : values.text ? "text" : values.kind;
  return { ...values, from: values.clip ? kind : "", to: values.to || across(kind) };
};

// Show the results of the question in the address, or the gallery.
const open = async () => {
  running?.abort();
  const own = running = new AbortController();
  let values = state();
  const file = files.get(values.file), asking = Boolean(subject(values));
  at("where").value = values.where ?? "";
  if (values.k) at("k").value = values.k;
  at("asked").hidden = !asking;
  at("all").hidden = at("map-part").hidden = asking;
  at("examples").hidden = asking;
  at("found").hidden = true;
  at("hits").replaceChildren();
  say(asking ? "Searching ..." : "");
  try {
    const where = condition(chosen(values), values.where);
    if (asking) {
      values = complete(values);
      question = values.clip || "";
      const search = asked(values, where, own.signal);
      showQuestion(values, file, own).catch((error) => { if (own === running) say(error.message, "wrong"); });
      const found = await search;
      if (own !== running) return;
      show(found, values);
      at("hits-title").focus({ preventScroll: true });
      at("asked").scrollIntoView();
    }
    const page = asking ? await pageOf(where, 0, 0) : await pageOf(where, Number(values.offset) || 0);
    const counts = await countsOf(page, chosen(values), values.where);
    if (own !== running) return;
    showCounts(counts, chosen(values), toggle, !asking);
    if (asking) return;
    showClips(page, likes, (offset) => { turned = true; go({ ...state(), offset: offset || "" }); });
    if (turned) { at("all-title").focus({ preventScroll: true }); at("all-title").scrollIntoView(); }
    turned = false;
    showExamples(page.examples);
    if (!at("map").dataset.of) drawMap();
  } catch (error) {
    if (own === running && error.name !== "AbortError") say(error.message, "wrong");
  }
};

const showExamples = (examples) => {
  const [from, to] = facts.questions.find(([kind, other]) => kind === "audio" && other === "visual") ?? facts.questions[0] ?? [];
  const names = { audio: "sound", visual: "picture", text: "words", clip: "clip" };
  const known = examples.filter((clip) => clip.vectors.includes(from));
  at("examples").replaceChildren(...known.map((clip) => button(
    `${names[to][0].toUpperCase()}${names[to].slice(1)}s for the ${names[from]} of ${clip.label || clip.id}`,
    () => go({ clip: clip.id, from, to }))));
};

const drawMap = () => {
  at("map").dataset.of = at("map-of").value;
  showMap(at("map-of").value, likes).catch((error) => { at("map-note").textContent = error.message; });
};

const take = (file) => {
  if (!file) return;
  const key = String(dropped += 1), type = file.type.split("/")[0];
  files.set(key, file);
  files.delete(String(dropped - FILES));
  const wanted = { audio: "audio", image: "visual", video: "clip" }[type] || at("kind").value;
  const kind = kinds().includes(wanted) ? wanted : at("kind").value;
  at("kind").value = kind;
  const to = kind === at("kind").dataset.before && targets(kind).includes(at("to").value) ? at("to").value : across(kind);
  choose(at("to"), targets(kind), to);
  go({ ...filters(), file: key, kind, to });
};

const record = async () => {
  const recording = at("record").recording;
  if (recording) { recording.stop(); return; }
  try {
    const stream = await navigator.mediaDevices.getUserMedia({ audio: true }), parts = [];
    const recorder = new MediaRecorder(stream);
    recorder.ondataavailable = (event) => parts.push(event.data);
    recorder.onstop = () => {
      stream.getTracks().forEach((track) => track.stop());
      at("record").recording = null;
      at("record").textContent = "Record a sound";
      at("record").setAttribute("aria-pressed", "false");
      take(new File(parts, "recording.webm", { type: recorder.mimeType.replace("video", "audio") }));
    };
    recorder.start();
    at("record").recording = recorder;
    at("record").textContent = "Stop and search";
    at("record").setAttribute("aria-pressed", "true");
  } catch (error) { say(`the microphone cannot be used (${error.message})`, "wrong"); }
};

const save = () => {
  const cell = (value) => {
    const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value ?? "");  // no formulas
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const columns = [...new Set(results.hits.flatMap((hit) => Object.keys(hit.columns)))];
  const names = ["rank", "id", "label", "score", "second_key", "probability"];
  const lines = [[...names, ...columns], ...results.hits.map((hit) => [...names.map((name) => hit[name]), ...columns.map((name) => hit.columns[name])])];
  const link = make("a");
  link.href = URL.createObjectURL(new Blob([lines.map((line) => `${line.map(cell).join(",")}\r\n`).join("")], { type: "text/csv" }));
  link.download = "hits.csv";
  link.click();
  URL.revokeObjectURL(link.href);
};

const listen = () => {
  const drop = at("drop");
  for (const event of ["dragenter", "dragover"]) drop.addEventListener(event, () => drop.classList.add("over"));
  for (const event of ["dragleave", "drop"]) drop.addEventListener(event, () => drop.classList.remove("over"));
  for (const event of ["dragover", "drop"]) window.addEventListener(event, (one) => one.preventDefault());
  window.addEventListener("drop", (event) => take(event.dataTransfer.files[0]));
  window.addEventListener("paste", (event) => take(event.clipboardData.files[0]));
  at("file").addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); at("file").click(); } });
  at("file").addEventListener("change", () => { take(at("file").files[0]); at("file").value = ""; });
  at("kind").addEventListener("change", () => {
    choose(at("to"), targets(at("kind").value), across(at("kind").value));
    at("kind").dataset.before = at("kind").value;
    if (state().file) go({ ...state(), kind: at("kind").value, to: at("to").value });
  });
  at("to").addEventListener("change", () => {
    at("kind").dataset.before = at("kind").value;
    if (subject(state())) go({ ...state(), to: at("to").value });
  });
  at("k").addEventListener("change", () => go({ ...state(), k: at("k").value }));
  at("words").addEventListener("input", () => choose(at("to"), targets(at("words").value.trim() ? "text" : at("kind").value), at("to").value));
  at("question").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = at("words").value.trim();
    if (text) go({ ...filters(), text, to: targets("text").includes(at("to").value) ? at("to").value : across("text") });
    else say("Drop or choose a file, or type words.");
  });
  at("condition").addEventListener("submit", (event) => { event.preventDefault(); go({ ...state(), offset: "", where: at("where").value.trim() }); });
  at("record").hidden = !(navigator.mediaDevices && window.MediaRecorder && kinds().includes("audio"));
  at("record").addEventListener("click", record);
  at("export").addEventListener("click", save);
  at("map-of").addEventListener("change", drawMap);
  window.addEventListener("hashchange", open);
};

answer("facts").then((found) => {
  facts = found;
  at("name").textContent = document.title = facts.name;
  const names = { audio: "sounds", visual: "pictures", text: "texts" };
  const vectors = Object.entries(facts.vectors).map(([name, number]) => `${count(number)} ${names[name]}`).join(", ");
  at("about").textContent = `${count(facts.items)} clips (${vectors}); ${facts.model}`;
  at("columns").textContent = `Columns: ${facts.columns.join(", ")}; for example id LIKE '%rain%'`;
  at("words-row").hidden = !kinds().includes("text");
  choose(at("kind"), kinds().filter((kind) => kind !== "text"));
  choose(at("to"), targets(at("kind").value), across(at("kind").value));
  choose(at("map-of"), facts.modalities);
  listen();
  return open();
}).catch((error) => say(error.message, "wrong"));
