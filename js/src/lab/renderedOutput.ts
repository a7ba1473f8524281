/**
 * Below a taped cell: one line that says what happened, and behind it, when it is opened, a view. A re-run that is asked for in it runs the very cell that it
 * stands below, and clears its output: so while a person works in it (an edit, a plan, a question, a comparison) it
 * waits beside the output, at its place and with its focus, and goes into the cell's next one.
 */
import { hub, loadLate, loadSaved, mountLate, panelOf } from "./registry.ts";
import type { Output } from "./output.ts";
import type { Resolver, Saved } from "./saved.ts";

/** By the part of a cell that holds its outputs. */
const waiting = new Map<Element, Shown>();
const KEPT = "tape-jupyter:open";
/** Cells whose view a person opened: it is open again when the cell ran again, and after a reload of the page. */
const unfolded = new Set(kept());

function kept(): string[] {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT) ?? "[]") as string[];
  } catch {
    return [];
  }
}

/** The output as plain text: what happened, and below it what is to be said of it. */
export interface Line { head: string; remarks: string[] }

/** Of `text/plain`: its first line, and the lines below it that draw no waterfall. */
export function lineOf(plain: unknown): Line {
  const text = Array.isArray(plain) ? plain.join("") : typeof plain === "string" ? plain : "";
  const [head = "", ...rest] = text.split("\n");
  while (rest[0]?.startsWith("▕")) rest.shift();
  return { head: head.trim() || "● taped", remarks: rest.join("\n").split(/\n(?= {2}[✗!·] )/).map((each) => each.trim()).filter(Boolean) };
}

/** What moving an element in the page takes from it. */
interface Position { focus: HTMLElement | null; scrolled: [HTMLElement, number][] }

export class Shown {
  readonly #root = document.createElement("div");
  readonly #button = document.createElement("button");
  readonly #remarks = document.createElement("div");
  readonly #place = document.createElement("div");
  #output: Output | null = null;
  #resolver: Resolver | null;
  #saved: Saved;
  #loading = false;
  #unmount: (() => void) | null = null;
  #closed = false;
  #working = false;
  #home: Element | null = null;
  #position: Position = { focus: null, scrolled: [] };
  #beside: HTMLElement | null = null;

  /** Draws what was saved in an output that is attached: in the view that waits beside it, where one does. */
  static into(host: HTMLElement, resolver: Resolver | null, saved: Saved, line: Line): Shown {
    const home = homeOf(host);
    const kept = home && waiting.get(home);
    if (!kept) return new Shown(host, resolver, saved, line);
    kept.#enter(host);
    kept.turn(saved, resolver, line);
    return kept;
  }

  private constructor(host: HTMLElement, resolver: Resolver | null, saved: Saved, line: Line) {
    this.#saved = saved;
    this.#resolver = resolver;
    this.#place.className = "tape-door";
    this.#place.hidden = true;
    this.#button.className = "tape-line";
    this.#button.type = "button";
    this.#button.addEventListener("click", () => this.#turned());
    this.#remarks.className = "tape-said";
    this.#root.append(this.#button, this.#remarks, this.#place);
    this.#says(line);
    host.replaceChildren(this.#root);
    if (unfolded.has(this.#key)) this.#open();
  }

  get #key(): string {
    return `${this.#resolver?.path ?? ""} ${this.#saved.cell}`;
  }

  /** Whether it holds what nobody else does. */
  get working(): boolean {
    return this.#working;
  }

  /** The cell ran again. */
  turn(saved: Saved, resolver: Resolver | null, line: Line): void {
    this.#saved = saved;
    this.#resolver = resolver;
    this.#says(line);
    this.#output?.turn(saved, resolver);
  }

  #says({ head, remarks }: Line): void {
    this.#button.textContent = head;
    this.#button.title = head;
    this.#button.setAttribute("aria-expanded", String(!this.#place.hidden));
    this.#remarks.replaceChildren(...remarks.map((each) => {
      const remark = Object.assign(document.createElement("div"), { textContent: each });
      remark.dataset.mark = each.slice(0, 1);
      return remark;
    }));
  }

  #turned(): void {
    const opens = this.#place.hidden;
    if (opens) this.#open();
    else this.#place.hidden = true;
    this.#button.setAttribute("aria-expanded", String(opens));
    unfolded[opens ? "add" : "delete"](this.#key);
    try {
      sessionStorage.setItem(KEPT, JSON.stringify([...unfolded]));
    } catch { /* the browser keeps nothing */ }
  }

  #open(): void {
    this.#place.hidden = false;
    this.#button.setAttribute("aria-expanded", "true");
    if (this.#loading) return;
    this.#loading = true;
    loadSaved().then(
      ({ Output }) => this.#mount(new Output(this.#place, this.#resolver, this.#saved, { hub, loadLate, panelOf })),
      (error: unknown) => (this.#place.textContent = `Tape: the view could not be loaded (${String(error)}). Reload the page.`),
    );
  }

  #mount(output: Output): void {
    if (this.#closed) return;
    this.#output = output;
    this.#unmount = mountLate(this.#place, output.door, { mounted: () => output.mounted(), onWork: (working) => this.#works(working) });
  }

  /** The output is about to leave the page; it may come back, or be disposed. */
  leaving(): void {
    this.#home = homeOf(this.#root);
    const root = this.#place.shadowRoot;
    const all = [...(root?.querySelectorAll<HTMLElement>("*") ?? [])];
    const focus = root?.activeElement instanceof HTMLElement ? root.activeElement : null;
    this.#position = { focus, scrolled: all.filter(({ scrollTop }) => scrollTop > 0).map((node) => [node, node.scrollTop]) };
  }

  back(): void {
    const { focus, scrolled } = this.#position;
    for (const [node, top] of scrolled) node.scrollTop = top;
    focus?.focus({ preventScroll: true });
    this.#position = { focus: null, scrolled: [] };
  }

  /** The output is gone. */
  gone(): void {
    const home = this.#home;
    const panel = home?.isConnected === true ? panelOf(home) : undefined;
    const cell = panel?.content.widgets.find(({ node }) => node.contains(home));
    if (!this.#working || !home || !cell) { this.close(); return; }
    waiting.set(home, this);
    this.#beside = document.createElement("div");
    this.#beside.className = "tape-output tape-beside";
    this.#beside.append(this.#root);
    home.after(this.#beside);
    this.back();
    cell.disposed.connect(() => this.#close(home)); // also with its notebook
  }

  close(): void {
    this.#closed = true;
    this.#unmount?.();
    this.#output?.close();
  }

  #close(home: Element): void {
    if (waiting.get(home) !== this) return;
    waiting.delete(home);
    this.#beside?.remove();
    this.#beside = null;
    this.close();
  }

  #enter(host: HTMLElement): void {
    if (this.#home) waiting.delete(this.#home);
    this.leaving();
    host.replaceChildren(this.#root);
    this.#beside?.remove();
    this.#beside = null;
    this.back();
  }

  #works(working: boolean): void {
    this.#working = working;
    if (!working && this.#beside && this.#home) this.#close(this.#home);
  }
}

/** What lies around an output and stays when it is cleared. */
function homeOf(node: Node): Element | null {
  const element = node instanceof Element ? node : node.parentElement;
  return element?.closest(".jp-Cell-outputWrapper") ?? null;
}
