/** The right sidebar: the view of the notebook in front. Each notebook keeps its own, so that nothing is lost on a switch. */
import type { NotebookPanel } from "@jupyterlab/notebook";
import { Widget } from "@lumino/widgets";

import { loadLate, mountLate } from "./registry.ts";
import { icon } from "./icon.ts";
import type { Link } from "./kernelConnection.ts";
import type { SidebarPage, Step } from "./sidebarPage.ts";

export const ID = "tape-jupyter-sidebar";

/** What has the focus in a view: the buttons of a stop, the list of spans. */
export const STOP = ".step-over";
export const ROWS = '[role="tree"] [tabindex="0"]';

/** For how many frames a view is waited for. */
const MOST_FRAMES = 300;

type Notice = [about: string, body: Record<string, unknown>];
/** A notebook's place in the sidebar; its page is made when somebody first looks at it. */
interface Slot { host: HTMLElement; link: Link; step: Step; page: SidebarPage | null; notice: Notice | null }

export class Sidebar extends Widget {
  readonly #slots = new Map<NotebookPanel, Slot>();

  constructor() {
    super();
    this.id = ID;
    this.title.caption = "Tape: the calls of this notebook";
    this.title.icon = icon;
    this.addClass("tape-sidebar");
    this.front(null);
  }

  protected override onAfterAttach(): void {
    this.onAfterShow();
  }

  /** A notebook whose tape nobody looks at costs no view. */
  protected override onAfterShow(): void {
    if (this.isVisible) for (const panel of this.#slots.keys()) void this.#drawn(panel);
  }

  /** `step` runs the notebook's selected cell, and has it stop before its calls. */
  add(panel: NotebookPanel, link: Link, step: Step): void {
    const host = document.createElement("div");
    host.className = "tape-sidebar-page";
    this.#slots.set(panel, { host, link, step, page: null, notice: null });
    this.node.append(host);
    if (this.isVisible) void this.#drawn(panel);
    panel.disposed.connect(() => {
      this.#slots.get(panel)?.page?.dispose();
      this.#slots.delete(panel);
      host.remove();
    });
  }

  /**
   * The keys of what a selector finds (STOP, ROWS) act from now on: as soon as it is drawn, unless the person does
   * something meanwhile. The palette gives the focus back to the notebook when it closes, after its command.
   */
  focusOn(what: string): void {
    const over = new AbortController();
    for (const act of ["keydown", "pointerdown"]) window.addEventListener(act, () => over.abort(), { capture: true, signal: over.signal });
    const look = (frames: number): void => {
      if (over.signal.aborted) return;
      const host = [...this.#slots.values()].find((slot) => !slot.host.hidden)?.host;
      const place = host?.querySelector(".tape-door")?.shadowRoot?.querySelector<HTMLElement>(what);
      const free = !document.activeElement?.closest(".lm-CommandPalette");
      if (place && free) place.focus();
      if ((place && free) || !frames) over.abort();
      else requestAnimationFrame(() => look(frames - 1));
    };
    requestAnimationFrame(() => look(MOST_FRAMES));
  }

  front(panel: NotebookPanel | null): void {
    for (const [each, { host }] of this.#slots) host.hidden = each !== panel;
  }

  tell(panel: NotebookPanel, ...notice: Notice): void {
    const slot = this.#slots.get(panel);
    if (slot?.page) slot.page.tell(...notice);
    else if (slot) slot.notice = notice;
  }

  async #drawn(panel: NotebookPanel): Promise<void> {
    const { SidebarPage } = await loadLate();
    const slot = this.#slots.get(panel); // the notebook may be closed by now
    if (!slot) return;
    slot.page ??= new SidebarPage(slot.host, panel, slot.link, slot.step, () => this.isVisible, { loadLate, mountLate });
    slot.page.draw();
    if (slot.notice) slot.page.tell(...slot.notice);
    slot.notice = null;
  }
}
