/**
 * A view below a taped cell, with what stands behind it. A re-run that is asked for in it runs the very cell that it
 * stands below, and clears its output: so while a person works in it (an edit, a plan, a question, a comparison) it
 * waits beside the output, at its place and with its focus, and goes into the cell's next one.
 */
import { mountLate, panelOf } from "./registry.ts";
import { Output, type Saved } from "./output.ts";
import type { Resolver } from "./mime.ts";

const HIGHEST = 460;
/** As soon as a call was opened. */
const OPEN = 400;
const ROW = 24;
/** The bar, the axis above the rows and the foot below them. */
const AROUND = 112;

/** By the part of a cell that holds its outputs. */
const waiting = new Map<Element, Shown>();

/** What moving an element in the page takes from it. */
interface Held { focus: HTMLElement | null; scrolled: [HTMLElement, number][] }

export class Shown {
  readonly #place = document.createElement("div");
  readonly #output: Output;
  readonly #unmount: () => void;
  #working = false;
  #height = 0;
  #home: Element | null = null;
  #held: Held = { focus: null, scrolled: [] };
  #beside: HTMLElement | null = null;

  /** Draws saved rows in an output that is attached: in the view that waits beside it, where one does. */
  static into(host: HTMLElement, resolver: Resolver | null, saved: Saved): Shown {
    const home = homeOf(host);
    const kept = home && waiting.get(home);
    if (!kept) return new Shown(host, resolver, saved);
    kept.#enter(host);
    kept.turn(saved, resolver);
    return kept;
  }

  private constructor(host: HTMLElement, resolver: Resolver | null, saved: Saved) {
    this.#place.className = "tape-door";
    this.#output = new Output(this.#place, resolver, saved);
    this.#output.opened = () => this.#grow(OPEN);
    this.#grow(low(saved));
    host.replaceChildren(this.#place);
    this.#unmount = mountLate(this.#place, this.#output.door, { onWork: (working) => this.#works(working) });
  }

  /** Whether it holds what nobody else does. */
  get working(): boolean {
    return this.#working;
  }

  /** Other rows: the cell ran again. */
  turn(saved: Saved, resolver: Resolver | null): void {
    this.#grow(low(saved));
    this.#output.turn(saved, resolver);
  }

  /** The output is about to leave the page; it may come back, or be disposed. */
  leaving(): void {
    this.#home = homeOf(this.#place);
    const root = this.#place.shadowRoot;
    const all = [...(root?.querySelectorAll<HTMLElement>("*") ?? [])];
    const focus = root?.activeElement instanceof HTMLElement ? root.activeElement : null;
    this.#held = { focus, scrolled: all.filter(({ scrollTop }) => scrollTop > 0).map((node) => [node, node.scrollTop]) };
  }

  back(): void {
    const { focus, scrolled } = this.#held;
    for (const [node, top] of scrolled) node.scrollTop = top;
    focus?.focus({ preventScroll: true });
    this.#held = { focus: null, scrolled: [] };
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
    this.#beside.append(this.#place);
    home.after(this.#beside);
    this.back();
    cell.disposed.connect(() => this.#close(home)); // also with its notebook
  }

  close(): void {
    this.#unmount();
    this.#output.close();
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
    host.replaceChildren(this.#place);
    this.#beside?.remove();
    this.#beside = null;
    this.back();
  }

  #works(working: boolean): void {
    this.#working = working;
    if (!working && this.#beside && this.#home) this.#close(this.#home);
  }

  #grow(height: number): void {
    this.#height = Math.max(this.#height, height);
    this.#place.style.height = `${this.#height}px`;
  }
}

/** A list as high as its rows virtualises nothing. */
function low(saved: Saved): number {
  return Math.min(HIGHEST, AROUND + ROW * Math.max(saved.page.id.length, 3));
}

/** What lies around an output and stays when it is cleared. */
function homeOf(node: Node): Element | null {
  const element = node instanceof Element ? node : node.parentElement;
  return element?.closest(".jp-Cell-outputWrapper") ?? null;
}
