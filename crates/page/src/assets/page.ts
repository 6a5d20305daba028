// The one script of the pages, which are complete without it: they are loaded again when the store has changed,
// and the picture of a matrix has a cursor for mouse and keyboard.

/** Shows the page anew where it stands, unless something in it is being read or copied. */
async function refresh(version: string): Promise<void> {
  const selected = String(getSelection() ?? "") !== "";
  const answer = selected ? undefined : await fetch(location.href).catch(() => undefined);
  const live = document.getElementById("live");
  if (!answer?.ok) {
    if (live) live.textContent = "There is newer data: load the page again.";
    return;
  }
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const [old, main] = [document.querySelector("main"), page.querySelector("main")];
  if (!old || !main) return;
  // What was opened stays open.
  const names = [...old.querySelectorAll("details[open] > summary")].map((e) => e.textContent);
  for (const e of main.querySelectorAll("details > summary")) {
    if (names.includes(e.textContent)) e.parentElement?.setAttribute("open", "");
  }
  old.replaceWith(main);
  document.title = page.title;
  document.body.dataset.version = version;
  if (live) live.textContent = "Updated " + new Date().toLocaleTimeString();
  pictures();
}

/** Events come while the page is seen: a browser has few connections for all its tabs. */
function follow(): void {
  let events: EventSource | undefined;
  const turn = (): void => {
    events?.close();
    if (document.hidden) return;
    events = new EventSource("/events");
    events.addEventListener("version", (event: MessageEvent<string>) => {
      if (event.data !== document.body.dataset.version) void refresh(event.data);
    });
  };
  document.addEventListener("visibilitychange", turn);
  addEventListener("pagehide", () => events?.close());
  turn();
}

/** A cursor on the picture of a matrix: arrows move it, Enter opens the pair, its text is read aloud. */
function pictures(): void {
  const link = document.querySelector<HTMLAnchorElement>("a.picture");
  const image = link?.querySelector("img");
  const text = document.getElementById("cell");
  if (!link || !image || !text) return;
  const hosts = Number(link.dataset.hosts);
  const size = image.width / hosts;
  const target = link.getAttribute("href") ?? "";
  const mark = document.createElement("span");
  mark.className = "mark";
  let [column, row, waiting] = [0, 0, 0];
  const show = (): void => {
    const side = Math.max(size, 7);
    Object.assign(mark.style, {
      left: `${column * size + (size - side) / 2}px`,
      top: `${row * size + (size - side) / 2}px`,
      width: `${side}px`,
      height: `${side}px`,
    });
    link.append(mark);
    const point = `${Math.floor((column + 0.5) * size)},${Math.floor((row + 0.5) * size)}`;
    link.href = target + point;
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      const answer = await fetch((link.dataset.cell ?? "") + point).catch(() => undefined);
      if (answer?.ok) text.textContent = await answer.text();
    }, 80);
  };
  image.removeAttribute("ismap");
  image.addEventListener("mousemove", (event: MouseEvent) => {
    const within = (at: number): number => Math.min(Math.max(Math.floor(at / size), 0), hosts - 1);
    [column, row] = [within(event.offsetX), within(event.offsetY)];
    show();
  });
  link.addEventListener("focus", show);
  link.addEventListener("keydown", (event: KeyboardEvent) => {
    const step = event.shiftKey ? 10 : 1;
    const moves: Record<string, [number, number]> = {
      ArrowLeft: [-step, 0],
      ArrowRight: [step, 0],
      ArrowUp: [0, -step],
      ArrowDown: [0, step],
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    column = Math.min(Math.max(column + move[0], 0), hosts - 1);
    row = Math.min(Math.max(row + move[1], 0), hosts - 1);
    show();
  });
}

follow();
pictures();
