(() => {
  "use strict";
  const previews = JSON.parse(document.getElementById("previews").textContent);
  const made = new Map();
  const address = (key, type, base64) => {
    if (!made.has(key)) {
      const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
      made.set(key, URL.createObjectURL(new Blob([bytes], { type })));
    }
    return made.get(key);
  };
  const players = [];
  for (const place of document.querySelectorAll("[data-preview]")) {
    const number = place.dataset.preview;
    const [type, media, picture] = previews[number];
    const still = picture && address(number + "p", "image/jpeg", picture);
    if (place.tagName === "IMG") { place.src = still; continue; }
    const player = place.tagName === "AUDIO" ? place : place.querySelector("video");
    players.push(player);
    if (still && player !== place) player.poster = still;
    player.src = address(number + "m", type, media);
    player.addEventListener("play", () => players.forEach((other) => { if (other !== player) other.pause(); }));
    if (player === place) continue;
    const show = () => {
      place.classList.toggle("playing", !player.paused && !player.ended);
      place.setAttribute("aria-pressed", String(!player.paused && !player.ended));
    };
    for (const event of ["play", "pause", "ended"]) player.addEventListener(event, show);
    player.addEventListener("error", () => place.classList.add("broken"));
    place.addEventListener("click", () => { if (player.paused) player.play().catch(() => {}); else player.pause(); });
  }
})();
