import { sentence } from "../view/format.ts";
import type { Diff, Found, Model, Page, Raw, Session, State } from "../view/protocol.ts";
import { Blocks, unfolded, type Folded, type Known } from "./blocks.ts";

/** What the first block of a page holds; `tape_jupyter/reports/page.py` writes them. */
interface Head { state: Partial<State>; session: Session }
interface Asked { id: string; about: string; span?: string; other?: string; words?: string; side?: "request" | "reply"; from?: number; size?: number }
interface Message { type: "answer"; id: string; answer?: unknown; error?: string }

/** Rows a block of details, and blocks that are kept. */
const BLOCK = 200;
const KEPT = 8;
/** Other calls that a diff offers, nearest first. */
const CANDIDATES = 200;
const TOO_LARGE = "Too large for this page. Open it in the notebook.";

/** Answers the view from the blocks of its page. */
export class PageDoor implements Model {
  readonly #blocks: Blocks;
  readonly #head: Head;
  readonly #handlers = new Set<(message: Message) => void>();
  readonly #pages: Page[] = [];
  readonly #rows = new Map<string, number>();
  readonly #known = new Map<number, Promise<Map<string, Known>>>();

  constructor(page: Document) {
    this.#blocks = new Blocks(page);
    this.#head = this.#blocks.now<Head>("tape-state") ?? { state: {}, session: EMPTY };
  }

  get(key: string): unknown {
    return key === "door" ? "page" : this.#head.state[key as keyof State];
  }

  on(event: string, handler: (...args: never[]) => void): void {
    if (event === "msg:custom") this.#handlers.add(handler as (message: Message) => void);
  }

  off(_event: string, handler: (...args: never[]) => void): void {
    this.#handlers.delete(handler as (message: Message) => void);
  }

  /** Answers come later than the question, as through any other door: rows of a long run are painted page by page. */
  send(message: unknown): void {
    void this.#say(message as Asked);
  }

  async #say(asked: Asked): Promise<void> {
    let message: Message;
    try {
      message = { type: "answer", id: asked.id, answer: await this.#answer(asked) };
    } catch (error) {
      message = { type: "answer", id: asked.id, error: sentence(error) };
    }
    for (const handler of this.#handlers) handler(message);
  }

  async #answer(asked: Asked): Promise<unknown> {
    const { about, span = "", other = "" } = asked;
    switch (about) {
      case "session": return this.#head.session;
      case "spans": return this.#spans(asked.from ?? 0);
      case "detail": return (await this.#span(span)).detail;
      case "raw": return cut((await this.#span(span)).raw[asked.side ?? "reply"], asked.from ?? 0, asked.size ?? Infinity);
      case "candidates": return { spans: await this.#others(span) };
      case "find": return this.#find(asked.words ?? "", asked.from ?? 0);
      case "diff": return this.#diff(span, other);
      default: throw new Error("A saved page cannot do that. Open the notebook.");
    }
  }

  /** The page of rows that begins at `from`: the blocks hold one after the other, the first of them unpacked. */
  async #spans(from: number): Promise<Page> {
    if (from) await new Promise((painted) => setTimeout(painted));
    for (let at = 0; ; at++) {
      const page = this.#pages[at] ?? (at ? await this.#blocks.packed<Page>(`tape-rows-${at}`) : this.#blocks.now<Page>("tape-rows")) ?? EMPTY_PAGE;
      if (!this.#pages[at]) {
        this.#pages[at] = page;
        page.id.forEach((name, row) => this.#rows.set(name, page.from + row));
      }
      if (!page.id.length || page.from === from) return { ...page, from };
    }
  }

  async #span(span: string): Promise<Known> {
    const block = Math.floor((await this.#row(span)) / BLOCK);
    const known = this.#known.get(block) ?? this.#details(block);
    this.#known.delete(block); // the one that was asked for last is the last to go
    this.#known.set(block, known);
    for (const old of this.#known.keys()) if (this.#known.size > KEPT) this.#known.delete(old);
    const found = (await known).get(span);
    if (!found) throw new Error(TOO_LARGE);
    return found;
  }

  async #details(block: number): Promise<Map<string, Known>> {
    return unfolded((await this.#blocks.packed<Folded[]>(`tape-details-${block}`)) ?? []);
  }

  async #row(span: string): Promise<number> {
    const total = (await this.#spans(0)).total;
    while (this.#rows.size < total && !this.#rows.has(span) && (await this.#spans(this.#rows.size)).id.length);
    return this.#rows.get(span) ?? -1;
  }

  /** Calls of the same kind, nearest first. */
  async #others(span: string): Promise<{ id: string; name: string }[]> {
    await this.#row(""); // brings all rows
    const row = this.#rows.get(span) ?? -1;
    const all = this.#pages.flatMap(({ id, kind, name, from }) => id.map((one, at) => ({ id: one, kind: kind[at], name: name[at] ?? "", row: from + at })));
    return all.filter((one) => one.kind === all[row]?.kind && one.id !== span)
      .sort((a, b) => Math.abs(a.row - row) - Math.abs(b.row - row)).slice(0, CANDIDATES).map(({ id, name }) => ({ id, name }));
  }

  /** Calls of one block that hold all words. What a call repeats of the one before it is found there. */
  async #find(words: string, from: number): Promise<Found> {
    const { total } = await this.#spans(0);
    const wanted = words.toLowerCase().split(/\s+/).map((word) => [word, JSON.stringify(word).slice(1, -1)]);
    const block = (await this.#blocks.packed<Folded[]>(`tape-details-${Math.floor(from / BLOCK)}`)) ?? [];
    const spans = block.filter(({ texts: [asked, said] }) => {
      const text = `${asked?.[2] ?? ""}\n${said?.[2] ?? ""}`.toLowerCase();
      return wanted.every((ways) => ways.some((word) => text.includes(word)));
    }).map(({ detail }) => detail.id);
    const next = (Math.floor(from / BLOCK) + 1) * BLOCK;
    return { spans, next: next < total ? next : null, total };
  }

  async #diff(span: string, other: string): Promise<Diff> {
    if (other === "base") {
      const recorded = (await this.#blocks.packed<Record<string, Diff>>("tape-base"))?.[span];
      if (!recorded) throw new Error("This page lacks the recorded version. Open the notebook.");
      return recorded;
    }
    const [left, right] = [(await this.#span(other)).detail, (await this.#span(span)).detail];
    return { left: whole(left), right: whole(right), left_name: left.title, right_name: right.title };
  }
}

function whole({ request, reply }: Known["detail"]): string {
  return `request\n${request.text}\n\nreply\n${reply.text}`;
}

function cut(raw: Raw, from: number, size: number): Raw {
  return { ...raw, text: raw.text.slice(from, from + size), from };
}

const EMPTY_PAGE: Page = {
  revision: 0, from: 0, total: 0, id: [], depth: [], kind: [], mark: [], start: [], first: [], end: [], name: [], note: [], tokens: [], cost: [], cell: [],
};
const EMPTY: Session = {
  mode: "off", cassettes: [], cassette: "", take: "", takes: [], default_take: "", running: null, notes: [],
  totals: { spans: 0, calls: 0, errors: 0, seconds: 0, tokens_in: null, tokens_out: null, cost: null, partial: false },
};
