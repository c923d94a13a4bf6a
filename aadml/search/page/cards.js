// Cards of clips and hits: picture, player, facts, columns, and buttons.
export const make = (tag, words = "", kind = "") => {
  const element = document.createElement(tag);
  element.textContent = words;
  if (kind) element.className = kind;
  return element;
};

export const button = (words, act, label = "") => {
  const element = make("button", words);
  element.type = "button";
  if (label) element.setAttribute("aria-label", label);
  element.addEventListener("click", () => act(element));
  return element;
};

export const answer = async (address, options) => {
  const reply = await fetch(address, options);
  const content = await reply.json().catch(() => ({ error: "the server sent no valid response; try again" }));
  if (content.error) throw new Error(content.error);
  return content;
};

export const count = (number) => number.toLocaleString("en-US");
export const scoreOf = (hit) => hit.score.toFixed(6);
export const percent = (chance) => `${Math.round(100 * chance)} %`;

const WORDS = [[0.9, "fits almost certainly"], [0.7, "probably fits"], [0.4, "may fit"], [0.1, "probably does not fit"], [0, "hardly fits"]];
export const inWords = (chance) => WORDS.find(([least]) => chance >= least)[1];

const clock = (seconds) => {
  const whole = Math.floor(seconds), parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return (parts[0] ? parts : parts.slice(1)).map((part, n) => (n ? String(part).padStart(2, "0") : part)).join(":");
};
const times = ([start, end]) => `${clock(start)} to ${end === null ? "the end" : clock(end)}`;

let playing = null;
const addressOf = (kind, clip) => `${kind}?${new URLSearchParams({ clip: clip.id })}`;  // numbers change with the index

// A picture. With a sound or video it becomes a player after a click, so that only pictures are loaded with the page.
export const figure = (clip, moment = null) => {
  if (!clip.has.length) return make("figure", "no media", "empty");
  const frame = make("figure"), play = make("button", "", "player"), still = make("img");
  still.alt = clip.plays ? "" : clip.id;
  still.loading = "lazy";
  still.addEventListener("error", () => still.replaceWith(make("span", "no picture", "empty absent")));
  still.src = addressOf("picture", clip);
  if (!clip.plays) { frame.append(still); return frame; }
  play.type = "button";
  play.setAttribute("aria-label", `Play ${clip.id}`);
  play.setAttribute("aria-pressed", "false");
  play.append(still);
  play.addEventListener("click", () => {
    const player = play.querySelector("video") || started(play, clip, moment);
    if (player.paused) player.play().catch(() => {}); else player.pause();
  });
  frame.append(play);
  return frame;
};

const started = (play, clip, moment) => {
  const player = document.createElement("video");
  player.playsInline = true;
  player.poster = addressOf("picture", clip);
  player.src = addressOf("media", clip);
  for (const event of ["play", "pause", "ended"]) {
    player.addEventListener(event, () => {
      const plays = !player.paused && !player.ended;
      if (plays && playing !== player) { playing?.pause(); playing = player; }
      play.classList.toggle("playing", plays);
      play.setAttribute("aria-pressed", String(plays));
    });
  }
  player.addEventListener("error", () => play.replaceWith(make("p", "This clip cannot be played.", "absent")));
  if (moment) {
    player.addEventListener("loadedmetadata", () => { if (moment.seconds < player.duration - 0.2) player.currentTime = moment.seconds; });
  }
  play.replaceChildren(player);
  return player;
};

const value = (name, text) => {
  const line = make("div", `${name}: `);
  if (!/^https?:\/\//.test(text)) { line.append(text); return line; }
  const link = make("a", text);
  link.href = text;
  link.rel = "noreferrer noopener";
  link.target = "_blank";
  line.append(link);
  return line;
};

// `actions` are buttons; a hit also has rank, score and probability.
export const card = (clip, actions, { hit = null, own = false, tied = false, tag = "li" } = {}) => {
  const item = make(tag, "", own ? "card own" : "card");
  item.dataset.number = clip.number;
  item.append(figure(clip, hit?.moment), make("span", hit ? `${hit.rank}. ${clip.id}` : clip.id, "id"));
  if (own) item.append(make("span", "the clip of the question", "badge"));
  if (hit?.caption) item.append(make("p", hit.caption.text || `caption ${hit.caption.number}`));
  const ranks = Object.entries(hit?.ranks ?? {}).map(([name, rank]) => `${name} ${rank}`);
  if (hit && hit.probability !== null) {
    const bar = make("meter");
    bar.value = hit.probability;
    bar.setAttribute("aria-label", "probability");
    item.append(bar, make("p", `${inWords(hit.probability)} (${percent(hit.probability)})`, "facts"));
  }
  const second = hit && tied ? `second key ${hit.second_key.toFixed(4)}` : "";
  const moment = hit?.moment ? `best at ${clock(hit.moment.seconds)}` : "";
  const score = hit ? `score ${scoreOf(hit)}` : "";
  const facts = [clip.label, clip.range ? times(clip.range) : "", moment, score, second, ...ranks].filter(Boolean);
  item.append(make("p", facts.join(" · "), "facts"));
  const columns = Object.entries(clip.columns).filter(([, text]) => text);
  if (columns.length) {
    const details = make("details", "", "facts");
    details.append(make("summary", "columns"), ...columns.map(([name, text]) => value(name, text)));
    item.append(details);
  }
  const row = make("div", "", "actions");
  row.append(...actions);
  item.append(row);
  return item;
};
