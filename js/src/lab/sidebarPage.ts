/** What stands in the sidebar for one notebook. Loaded when somebody first looks at it. */
import type { NotebookPanel } from "@jupyterlab/notebook";

import type { Able } from "../view/protocol.ts";
import { LookedAt } from "./lookedAt.ts";
import { type Ask, Door } from "./model.ts";
import type { Link, Wire } from "./kernelConnection.ts";
import type { showCell, sourceHash } from "./cells.ts";

const ABLE: Able = { modes: true, override: true, rerun: true, step: true, cells: true };

export type Step = (how: object) => Promise<void>;
/** What of the page it needs. */
interface Around {
  loadLate: () => Promise<{ showCell: typeof showCell; sourceHash: typeof sourceHash }>;
  mountLate: (place: HTMLElement, model: Door, late: { mounted: () => void }) => () => void;
}

/** One notebook's view, or what to do to get one. */
export class SidebarPage {
  readonly #host: HTMLElement;
  readonly #panel: NotebookPanel;
  readonly #link: Link;
  readonly #step: Step;
  readonly #unwatch: () => void;
  readonly #shown: () => boolean;
  readonly #around: Around;
  readonly #looked: LookedAt;
  #door: Door | null = null;
  #ready = false;
  /** What to tell the view as soon as it is there. */
  #notify: (() => void) | null = null;
  #leave: () => void = () => undefined;

  constructor(host: HTMLElement, panel: NotebookPanel, link: Link, step: Step, shown: () => boolean, around: Around) {
    this.#host = host;
    this.#around = around;
    this.#panel = panel;
    this.#link = link;
    this.#step = step;
    this.#shown = shown;
    this.#looked = new LookedAt(() => panel.context.path);
    window.addEventListener("pagehide", this.#left);
    panel.content.node.addEventListener("click", this.#clicked);
    this.#unwatch = link.watch(() => this.draw());
    this.draw();
  }

  tell(about: string, body: Record<string, unknown>): void {
    const tell = () => this.#door?.tell(about, body);
    if (this.#ready) tell();
    else this.#notify = tell;
  }

  dispose(): void {
    this.#unwatch();
    window.removeEventListener("pagehide", this.#left);
    this.#panel.content.node.removeEventListener("click", this.#clicked);
    this.#leave();
  }

  draw(): void {
    if (this.#link.connected && !this.#door && !this.#shown()) return;
    if (this.#link.connected === (this.#door !== null) && this.#host.childElementCount) return;
    this.#leave();
    const place = document.createElement("div"); // a fresh one: its shadow root goes with it
    place.className = "tape-door";
    this.#host.replaceChildren(place);
    if (this.#link.connected) this.#mount(place);
    else place.append(hint());
  }

  #mount(place: HTMLElement): void {
    const { cassette, take, span } = this.#looked.begin();
    const state = { door: "sidebar" as const, able: ABLE, title: this.#panel.context.localPath || this.#panel.context.path, span: span || null };
    const hear = (message: Record<string, unknown>) => {
      this.#looked.answered(message);
      door.hear(message);
    };
    const wire: Wire = this.#link.open(hear, true);
    if (cassette) wire.send({ type: "ask", id: "as-before", about: "open", cassette, take }); // before the view asks for anything
    const door = new Door(state, (ask) => this.#behind(ask, door, wire));
    this.#door = door;
    const mounted = () => {
      this.#ready = true;
      this.#notify?.();
      this.#notify = null;
    };
    const unmount = this.#around.mountLate(place, door, { mounted });
    this.#leave = () => {
      this.#door = null;
      this.#ready = false;
      this.#notify = null;
      this.#leave = () => undefined;
      unmount();
      wire.close();
    };
  }

  /** The page is left, or loaded anew. */
  readonly #left = (): void => {
    const shown = this.#host.querySelector(".tape-door")?.shadowRoot;
    this.#looked.keep(shown ? shown.querySelector(".side .detail") !== null : true);
  };

  #behind(ask: Ask, door: Door, wire: Wire): void {
    this.#looked.asked(ask.about, ask.span);
    if (ask.about === "step.cell") {
      this.#step({ breaks: ask.breaks, record: ask.record }).then(() => door.answer(ask, {}), (error: unknown) => door.refuse(ask, (error as Error).message));
      return;
    }
    if (ask.about === "export" && !ask.look) { this.#panel.context.save().then(() => wire.send(ask), (error: unknown) => door.refuse(ask, (error as Error).message)); return; }
    if (ask.about !== "select") { wire.send(ask); return; }
    const { cell } = ask;
    if (typeof cell === "string") void this.#around.loadLate().then(({ showCell }) => showCell(this.#panel, cell));
    door.answer(ask, {});
  }

  /** A clicked cell filters its spans; a click beside the cells shows all again. */
  readonly #clicked = (event: MouseEvent): void => {
    const path = event.composedPath();
    if (!this.#door || path.some((each) => each instanceof Element && each.matches(".tape-output"))) return;
    const cell = this.#panel.content.widgets.find(({ node }) => path.includes(node));
    if (!cell) this.#door.tell("focus", { cell: "", source: "" });
    else void this.#around.loadLate().then(({ sourceHash }) => sourceHash(cell)).then((source) => this.#door?.tell("focus", { cell: cell.model.id, source }));
  };
}

function hint(): HTMLElement {
  const box = document.createElement("div");
  box.className = "tape-hint";
  const code = document.createElement("code");
  code.textContent = "%load_ext tape_jupyter";
  const more = document.createElement("code");
  more.textContent = "%%tape record";
  box.append("Not loaded in this notebook's kernel. Run ", code, " in a cell, and put ", more, " on top of one that calls a model.");
  return box;
}
