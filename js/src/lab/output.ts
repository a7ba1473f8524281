/**
 * What stands behind a saved output's view: its own rows; details from the cassette beside the notebook, read here;
 * and where the notebook's kernel has the extension loaded, that kernel for everything else.
 */
import type { Page, Session } from "../view/protocol.ts";
import type { Alone } from "./offlineReader.ts";
import { type Ask, Door, isRecord } from "./model.ts";
import { hub, loadLate, loadSaved, panelOf } from "./registry.ts";
import type { Link, Wire } from "./kernelConnection.ts";
import type { Resolver } from "./mime.ts";

/** The JSON of the mime type `application/vnd.tape.spans+json`. */
export interface Saved {
  version: number;
  title: string;
  cell: string;
  run: string;
  /** The cassette's file, relative to the notebook. */
  path: string;
  cassette: string;
  take: string;
  /** The cassette's length and the digest of so many bytes, as of saving: it may have grown since. */
  bytes: number;
  sha256: string;
  session: Session;
  page: Page;
}

/** The saved rows; a sentence where they are none that this version can show. */
export function savedOf(data: unknown): Saved | string {
  if (!isRecord(data)) return "Tape: this output holds no calls.";
  if (data.version !== 1) return "Tape: this output was saved by a newer version of tape-jupyter.";
  const whole = isRecord(data.page) && Array.isArray(data.page.id) && isRecord(data.session) && typeof data.path === "string";
  return whole ? (data as unknown as Saved) : "Tape: this output is damaged; run its cell again.";
}

export class Output {
  readonly door: Door;
  /** Called when the person opens a span: a few rows leave no room for its detail. */
  opened: () => void = () => undefined;
  readonly #node: HTMLElement;
  #resolver: Resolver | null;
  #saved: Saved;
  /** What was saved of the runs before, while a person compares. */
  readonly #before: Saved[] = [];
  #reader: Alone | null = null;
  #notes: string[] = [];
  #line: { link: Link; wire: Wire } | null = null;

  constructor(node: HTMLElement, resolver: Resolver | null, saved: Saved) {
    this.#node = node;
    this.#resolver = resolver;
    this.#saved = saved;
    const able = { modes: false, override: true, rerun: true, step: false, cells: true };
    this.door = new Door({ door: "output", able, title: saved.title }, (ask) => this.#behind(ask));
  }

  /** Rows of a newer run of the same cell. */
  turn(saved: Saved, resolver: Resolver | null): void {
    this.#before.push(this.#saved);
    this.#resolver = resolver;
    this.#saved = { ...saved, page: { ...saved.page, revision: this.#saved.page.revision + 1 } };
    this.#reader = null;
    this.#notes = [];
    this.#wakes();
  }

  close(): void {
    this.#line?.wire.close();
    this.#line = null;
  }

  #behind(ask: Ask): void {
    const { session } = this.#saved;
    if (ask.about === "detail") this.opened();
    if (ask.about === "session" && !this.#kernel()) { this.door.answer(ask, { ...session, notes: [...session.notes, ...this.#notes] }); return; }
    if (ask.about === "spans") { this.door.answer(ask, pageFrom(this.#rows(ask.take), Number(ask.from))); return; }
    if (ask.about === "select") { this.#select(ask); return; }
    const wire = this.#kernel();
    if (wire) { wire.send(ask); return; }
    void this.#alone(ask).then(
      (answer) => this.door.answer(ask, answer),
      (error: unknown) => this.door.refuse(ask, message(error)),
    );
  }

  /** The run of the take that is asked for, where it was saved; else the newest. */
  #rows(take: unknown): Page {
    const { page: newest } = this.#saved;
    const { page } = [...this.#before, this.#saved].findLast((each) => each.take === take) ?? this.#saved;
    return { ...page, revision: newest.revision };
  }

  #select(ask: Ask): void {
    const panel = panelOf(this.#node, this.#resolver?.path);
    if (panel && !panel.content.node.contains(this.#node)) void loadLate().then(({ showCell }) => showCell(panel, this.#saved.cell)); // else it is the cell we are in
    this.door.answer(ask, {});
  }

  /** The line to the kernel, where it has the extension loaded: looked up when it is used, since outputs move. */
  #kernel(): Wire | null {
    const panel = panelOf(this.#node, this.#resolver?.path);
    const link = panel && hub.panels.get(panel);
    if (this.#line && (this.#line.link !== link || !link.connected)) this.close();
    if (!link?.connected) return null;
    this.#line ??= { link, wire: this.#open(link) };
    return this.#line.wire;
  }

  #open(link: Link): Wire {
    const wire = link.open((told) => {
      if (told.type !== "tell" || told.about !== "changed") this.door.hear(this.#ours(told)); // our rows are those that were saved
    });
    const { cassette, take } = this.#saved;
    wire.send({ type: "ask", id: "output-open", about: "open", cassette, take });
    return wire;
  }

  /** The kernel's session is of the whole cassette: the sums here are of this cell's run, which is over. */
  #ours(told: Record<string, unknown>): Record<string, unknown> {
    const { totals } = this.#saved.session;
    const session = (value: Record<string, unknown>) => ("totals" in value ? { ...value, totals, running: null } : value);
    if (!isRecord(told.answer)) return told;
    const answer = session(told.answer);
    return { ...told, answer: isRecord(answer.session) ? { ...answer, session: session(answer.session) } : answer };
  }

  /** What can be told without a kernel. */
  async #alone(ask: Ask): Promise<unknown> {
    const { Alone } = await loadSaved();
    this.#reader ??= new Alone(this.#saved, this.#resolver, hub.contents, (text) => this.#note(text));
    return this.#reader.answer(ask);
  }

  /** Say something below the rows: the view asks for the session anew. */
  #note(text: string): void {
    this.#notes = [text];
    this.#wakes();
  }

  #wakes(): void {
    const { revision, total } = this.#saved.page;
    this.door.tell("changed", { revision, total, running: null, page: null });
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
