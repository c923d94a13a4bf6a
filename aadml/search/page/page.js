"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const make = (tag, words = "", kind = "") => {
    const one = document.createElement(tag);
    one.textContent = words;
    if (kind) one.className = kind;
    return one;
  };
  let facts = null, asked = null, running = null, addresses = [], players = [];

  const say = (words, kind = "") => { at("said").textContent = words; at("said").className = kind; };
  const answer = async (address, options) => {
    const reply = await fetch(address, options);
    const content = await reply.json().catch(() => ({ error: "the server sent no valid response; try again" }));
    if (content.error) throw new Error(content.error);
    return content;
  };
  const allowed = (kind, to) => facts.questions.some(([one, other]) => one === kind && other === to);
  const choose = (select, names, wanted) => {
    select.replaceChildren(...names.map((name) => make("option", name)));
    if (names.includes(wanted)) select.value = wanted;
  };
  const kinds = () => [...new Set(facts.questions.map(([kind]) => kind))];
  const targets = () => {
    const kind = at("words").value.trim() ? "text" : at("kind").value;
    const names = facts.modalities.filter((to) => allowed(kind, to));
    choose(at("to"), kind === "text" && names.length > 1 ? [...names, "all"] : names, at("to").value);
  };

  const kindOf = (file) => {
    const type = file.type.split("/")[0];
    const wanted = { audio: "audio", image: "visual", video: "clip" }[type] || at("kind").value;
    return kinds().includes(wanted) ? wanted : at("kind").value;
  };
  const limits = () => `to=${at("to").value}&k=${at("k").value}&where=${encodeURIComponent(at("where").value.trim())}`;

  const ask = async () => {
    const words = at("words").value.trim();
    if (!asked && !words) { say("Drop or choose a file first."); return; }
    if (running) running.abort();
    const own = running = new AbortController();
    say("Searching ...");
    try {
      let found;
      const { signal } = own;
      if (asked && asked.like) {
        found = await answer(`/like?number=${asked.like}&from=${asked.from}&${limits()}`, { signal });
      } else if (asked && asked.file) {
        if (asked.file.size > facts.most_bytes) throw new Error(`the file is larger than ${facts.most_bytes / 1e6} MB; choose a smaller file`);
        found = await answer(`/search?kind=${at("kind").value}&${limits()}`,
          { method: "POST", body: asked.file, signal, headers: { "X-Name": encodeURIComponent(asked.file.name) } });
      } else {
        found = await answer(`/search?kind=text&text=${encodeURIComponent(words)}&${limits()}`, { method: "POST", signal });
      }
      show(found);
    } catch (error) {
      if (own === running && error.name !== "AbortError") say(error.message, "wrong");
    }
  };

  const summary = (found) => {
    const name = asked && asked.name ? `${asked.name}: ` : "";
    const many = `${name}${found.hits.length} of ${found.among} clips, compared by ${found.asked.join(" and ")}`;
    if (!found.hits.length) return "Nothing here: no clip meets the filter.";
    if (found.nothing_fits) {
      const { threshold, precision } = found.calibration;
      return `Nothing here fits. No hit reaches the threshold ${percent(threshold)} (above it, ${percent(precision)} of the best hits fit). `
        + `The nearest clips are shown. (${many})`;
    }
    return !found.uncalibrated ? many : `${many}; no probabilities: ${found.uncalibrated}`;
  };
  const percent = (chance) => `${Math.round(100 * chance)} %`;

  const show = (found) => {
    addresses.forEach((address) => URL.revokeObjectURL(address));
    addresses = []; players = [];
    at("hits").replaceChildren(...found.hits.map((hit) => card(hit, found.to)));
    at("found").hidden = !found.hits.length;
    say(summary(found), found.nothing_fits ? "none" : "");
    const own = running;
    (async () => {
      for (let begin = 0; begin < found.hits.length && own === running; begin += 4) {
        const part = found.hits.slice(begin, begin + 4);
        const previews = await answer(`/previews?numbers=${part.map((hit) => hit.number).join(",")}`).catch(() => []);
        if (own !== running) return;
        part.forEach((hit, n) => preview(hit, previews[n] || {}));
      }
    })();
  };

  const card = (hit, target) => {
    const ranks = Object.entries(hit.ranks);
    const to = ranks.length ? ranks[0][0] : target;
    const item = make("li");
    item.dataset.number = hit.number;
    const figure = make("figure");
    figure.append(make("p", "loading preview ...", "absent note"));
    const id = make("span", `${hit.rank}. ${hit.id}`, "id");
    const chance = hit.probability === null ? `score ${hit.score.toFixed(4)}`
      : `probability ${percent(hit.probability)} (score ${hit.score.toFixed(4)})`;
    const when = hit.moment ? `best at ${hit.moment.seconds.toFixed(1)} s` : "";
    const range = hit.range ? `${hit.range[0]}-${hit.range[1] ?? ""} s` : "";
    const words = hit.caption ? [make("p", hit.caption.text || `caption ${hit.caption.number}`)] : [];
    item.append(figure, id, ...words, make("p", [chance, hit.label, range, when, ...ranks.map(([name, rank]) => `${name} ${rank}`)].filter(Boolean).join(" · "), "facts"));
    const columns = Object.entries(hit.columns);
    if (columns.length) {
      const details = make("details", "", "facts");
      details.append(make("summary", "columns"), ...columns.map(([name, value]) => make("div", `${name}: ${value}`)));
      item.append(details);
    }
    const more = make("p", "", "more");
    for (const from of hit.has) {
      if (!allowed(from, to)) continue;
      const button = make("button", from === "audio" ? "Sounds like this" : "Looks like this");
      button.type = "button";
      button.setAttribute("aria-label", `${button.textContent}: ${hit.id}`);
      button.addEventListener("click", () => {
        asked = { like: hit.number, from, name: hit.id };
        at("words").value = "";
        at("kind").value = from;
        targets();
        at("to").value = to;
        ask();
      });
      more.append(button);
    }
    item.append(more);
    return item;
  };

  const blob = (base64, type) => {
    const address = URL.createObjectURL(new Blob([Uint8Array.from(atob(base64), (one) => one.charCodeAt(0))], { type }));
    addresses.push(address);
    return address;
  };
  const preview = (hit, one) => {
    const figure = document.querySelector(`li[data-number="${hit.number}"] figure`);
    if (!figure) return;
    if (!one.type) {
      const still = make("img", "", "still");
      if (one.picture) { still.src = blob(one.picture, "image/jpeg"); still.alt = `A frame of ${hit.id}`; }
      figure.replaceChildren(one.picture ? still : make("p", one.words || "no preview", "absent note"));
      return;
    }
    const player = document.createElement(one.type.startsWith("video/") ? "video" : "audio");
    const button = make("button", "", "player");
    button.type = "button";
    button.setAttribute("aria-label", `Play ${hit.id}`);
    button.setAttribute("aria-pressed", "false");
    player.preload = "auto";
    player.playsInline = true;
    if (one.picture && player.tagName === "VIDEO") player.poster = blob(one.picture, "image/jpeg");
    player.src = blob(one.media, one.type);
    button.append(player);
    if (player.tagName === "AUDIO") { const picture = make("canvas"); button.append(picture); wave(picture, one.media); }
    players.push(player);
    player.addEventListener("play", () => players.forEach((other) => { if (other !== player) other.pause(); }));
    for (const event of ["play", "pause", "ended"]) {
      player.addEventListener(event, () => {
        const playing = !player.paused && !player.ended;
        button.classList.toggle("playing", playing);
        button.setAttribute("aria-pressed", String(playing));
      });
    }
    button.addEventListener("click", () => { if (player.paused) player.play().catch(() => {}); else player.pause(); });
    if (hit.moment) {
      player.addEventListener("loadedmetadata", () => {
        if (hit.moment.seconds < player.duration - 0.2) player.currentTime = hit.moment.seconds;
      });
    }
    figure.replaceChildren(button);
  };

  const wave = async (canvas, base64) => {
    canvas.width = 400; canvas.height = 300;
    try {
      const bytes = Uint8Array.from(atob(base64), (one) => one.charCodeAt(0));
      const sound = await new OfflineAudioContext(1, 8000, 8000).decodeAudioData(bytes.buffer);
      const samples = sound.getChannelData(0), pen = canvas.getContext("2d"), step = Math.max(1, samples.length / 200);
      pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--accent");
      for (let bar = 0; bar < 200; bar += 1) {
        let peak = 0;
        for (let n = Math.floor(bar * step); n < Math.min((bar + 1) * step, samples.length); n += 1) {
          peak = Math.max(peak, Math.abs(samples[n]));
        }
        pen.fillRect(bar * 2, 150 - 140 * peak, 1.5, Math.max(2, 280 * peak));
      }
    } catch { canvas.hidden = true; }
  };

  const take = (file) => {
    if (!file) return;
    asked = { file, name: file.name };
    at("words").value = "";
    at("kind").value = kindOf(file);
    targets();
    ask();
  };
  const drop = at("drop");
  for (const event of ["dragenter", "dragover"]) {
    drop.addEventListener(event, (one) => { one.preventDefault(); drop.classList.add("over"); });
  }
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (one) => { one.preventDefault(); drop.classList.remove("over"); take(one.dataTransfer.files[0]); });
  for (const event of ["dragover", "drop"]) window.addEventListener(event, (one) => one.preventDefault());
  at("file").addEventListener("keydown", (one) => {
    if (one.key === "Enter") { one.preventDefault(); at("file").click(); }
  });
  at("file").addEventListener("change", () => { take(at("file").files[0]); at("file").value = ""; });
  at("kind").addEventListener("change", targets);
  at("words").addEventListener("input", () => { if (at("words").value) asked = null; targets(); });
  at("question").addEventListener("submit", (one) => { one.preventDefault(); ask(); });

  answer("/facts").then((found) => {
    facts = found;
    at("name").textContent = document.title = facts.name;
    const vectors = Object.entries(facts.vectors).map(([name, count]) => `${count} with ${name}`).join(", ");
    at("about").textContent = `${facts.items} clips (${vectors}); ${facts.model}`;
    at("columns").textContent = `Columns to filter by: ${facts.columns.join(", ")}; for example ${facts.example}`;
    at("words-row").hidden = !kinds().includes("text");
    choose(at("kind"), kinds().filter((kind) => kind !== "text"));
    targets();
  }).catch((error) => say(error.message, "wrong"));
})();
