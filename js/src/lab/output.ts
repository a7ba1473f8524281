/**
 * What stands behind a saved output's view: its own rows; details from the cassette beside the notebook, read here;
 * and where the notebook's kernel has the extension loaded, that kernel for everything else.
 */
import type { NotebookPanel } from "@jupyterlab/notebook";
import type { Contents } from "@jupyterlab/services";

import type { Page, Session, Totals } from "../view/protocol.ts";
import { type Ask, Door, isRecord } from "./model.ts";
import { Alone } from "./offlineReader.ts";
import type { Link, Wire } from "./kernelConnection.ts";
import type { showCell } from "./cells.ts";
import { Frame } from "./outputFrame.ts";
import type { Resolver, Saved } from "./saved.ts";

/** What of the page an output needs: this is a bundle of its own, loaded when the first one is opened. */
export interface Around {
  hub: { contents: Contents | null; panels: ReadonlyMap<NotebookPanel, Link> };
  loadLate: () => Promise<{ showCell: typeof showCell }>;
  panelOf: (node: Node, path?: string) => NotebookPanel | undefined;
}

const NO_TOTALS: Totals = { spans: 0, calls: 0, errors: 0, seconds: 0, tokens_in: null, tokens_out: null, cost: null, partial: false };

/** The session as a saved output tells it by itself. */
function sessionOf({ session, mode, cassette, take }: Saved): Session {
  return session ?? { mode, cassettes: [cassette], cassette, take, takes: [], default_take: "", totals: NO_TOTALS, running: null, notes: [] };
}

export class Output {
  readonly door: Door;
  readonly #frame: Frame;
  readonly #node: HTMLElement;
  readonly #around: Around;
  #resolver: Resolver | null;
  #saved: Saved;
  /** What was saved of the runs before, while a person compares. */
  readonly #before: Saved[] = [];
  #reader: Alone | null = null;
  #notes: string[] = [];
  #line: { link: Link; wire: Wire } | null = null;
  /** Counts the runs of the cell, so that a view asks for its rows anew. */
  #revision = 1;

  constructor(node: HTMLElement, resolver: Resolver | null, saved: Saved, around: Around) {
    this.#node = node;
    this.#frame = new Frame(node, saved);
    this.#around = around;
    this.#resolver = resolver;
    this.#saved = saved;
    const able = { modes: false, override: true, rerun: true, step: false, cells: true };
    this.door = new Door({ door: "output", able, title: saved.title }, (ask) => this.#behind(ask));
  }

  /** The view is drawn. */
  mounted(): void {
    this.#frame.follow();
  }

  /** Rows of a newer run of the same cell. */
  turn(saved: Saved, resolver: Resolver | null): void {
    this.#frame.show(saved);
    this.#before.push(this.#saved);
    this.#resolver = resolver;
    this.#saved = saved;
    this.#revision++;
    this.#reader = null;
    this.#notes = [];
    this.#wakes();
  }

  close(): void {
    this.#frame.close();
    this.#hangUp();
  }

  #hangUp(): void {
    this.#line?.wire.close();
    this.#line = null;
  }

  #behind(ask: Ask): void {
    const session = sessionOf(this.#saved);
    if (ask.about === "detail") this.#frame.open();
    if (ask.about === "session" && !this.#kernel()) { this.door.answer(ask, { ...session, notes: [...session.notes, ...this.#notes] }); return; }
    if (ask.about === "select") { this.#select(ask); return; }
    const { page, calls, mode } = this.#of(ask.take);
    if (ask.about === "spans" && page) { this.door.answer(ask, { ...pageFrom(page, Number(ask.from)), revision: this.#revision }); return; }
    const wire = this.#kernel();
    if (wire) { wire.send(ask.about === "spans" ? { ...ask, about: "spans of calls", calls, mode } : ask); return; }
    void this.#alone().answer(ask).then(
      (answer) => this.door.answer(ask, ask.about === "spans" ? { ...pageFrom(answer as Page, Number(ask.from)), revision: this.#revision } : answer),
      (error: unknown) => this.door.refuse(ask, message(error)),
    );
  }

  /** The run of the take that is asked for, where it was saved; else the newest. */
  #of(take: unknown): Saved {
    return [...this.#before, this.#saved].findLast((each) => each.take === take) ?? this.#saved;
  }

  #select(ask: Ask): void {
    const panel = this.#around.panelOf(this.#node, this.#resolver?.path);
    if (panel && !panel.content.node.contains(this.#node)) void this.#around.loadLate().then(({ showCell }) => showCell(panel, this.#saved.cell)); // else it is the cell we are in
    this.door.answer(ask, {});
  }

  /** The line to the kernel, where it has the extension loaded: looked up when it is used, since outputs move. */
  #kernel(): Wire | null {
    const panel = this.#around.panelOf(this.#node, this.#resolver?.path);
    const link = panel && this.#around.hub.panels.get(panel);
    if (this.#line && (this.#line.link !== link || !link.connected)) this.#hangUp();
    if (!link?.connected) return null;
    this.#line ??= { link, wire: this.#open(link) };
    return this.#line.wire;
  }

  #open(link: Link): Wire {
    const wire = link.open((message) => {
      if (message.type !== "tell" || message.about !== "changed") this.door.hear(this.#ours(message)); // our rows are those that were saved
    });
    const { cassette, take } = this.#saved;
    wire.send({ type: "ask", id: "output-open", about: "open", cassette, take });
    return wire;
  }

  /** The kernel's session is of the whole cassette, and its rows count from its own start: here it is one cell's run, which is over. */
  #ours(message: Record<string, unknown>): Record<string, unknown> {
    const { totals } = sessionOf(this.#saved);
    const session = (value: Record<string, unknown>) => ("totals" in value ? { ...value, totals, running: null } : value);
    if (!isRecord(message.answer)) return message;
    const answer = session(message.answer);
    if (Array.isArray(answer.depth)) return { ...message, answer: { ...answer, revision: this.#revision } };
    return { ...message, answer: isRecord(answer.session) ? { ...answer, session: session(answer.session) } : answer };
  }

  /** What can be told without a kernel. */
  #alone(): Alone {
    return (this.#reader ??= new Alone(this.#saved, this.#resolver, this.#around.hub.contents, (text) => this.#note(text)));
  }

  /** Say something below the rows: the view asks for the session anew. */
  #note(text: string): void {
    this.#notes = [text];
    this.#wakes();
  }

  #wakes(): void {
    this.door.tell("changed", { revision: this.#revision, total: 0, running: null, page: null });
  }
}

/** What of a saved page stands from a row on. */
function pageFrom(page: Page, from: number): Page {
  if (from === page.from) return page;
  const columns = Object.entries(page).map(([name, value]: [string, unknown]) => [name, Array.isArray(value) ? value.slice(from - page.from) : value] as const);
  return { ...(Object.fromEntries(columns) as unknown as Page), from };
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
