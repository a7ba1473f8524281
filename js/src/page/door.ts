import type { Detail, Diff, Model, Page, Raw, Session, State } from "../view/protocol.ts";

/** What the blocks of a page hold; `tape_jupyter/page.py` writes them. A block is parsed when first asked for. */
interface Head { state: Partial<State>; session: Session }
interface Known { detail: Detail; raw: { request: Raw; reply: Raw } }
interface Asked { id: string; about: string; span?: string; other?: string; side?: "request" | "reply"; from?: number; size?: number }
interface Message { type: "answer"; id: string; answer?: unknown; error?: string }

/** Rows a block of details. */
const BLOCK = 200;
/** Other calls that a diff offers, nearest first. */
const CANDIDATES = 200;
const TOO_LARGE = "Too large for this page. Open it in the notebook.";

/** Answers the view from the JSON blocks of its page. */
export class PageDoor implements Model {
  readonly #page: Document;
  readonly #head: Head;
  readonly #handlers = new Set<(message: Message) => void>();
  readonly #pages: Page[] = [];
  readonly #blocks = new Map<number, Record<string, Known>>();
  #rows: Map<string, number> | null = null;

  constructor(page: Document) {
    this.#page = page;
    this.#head = this.#read<Head>("tape-state") ?? { state: {}, session: EMPTY };
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
    const asked = message as Asked;
    const first = asked.about === "session" || (asked.about === "spans" && !asked.from);
    const answer = (): void => this.#say(asked);
    if (first) queueMicrotask(answer);
    else setTimeout(answer);
  }

  #say(asked: Asked): void {
    let message: Message;
    try {
      message = { type: "answer", id: asked.id, answer: this.#answer(asked) };
    } catch (error) {
      message = { type: "answer", id: asked.id, error: error instanceof Error ? error.message : String(error) };
    }
    for (const handler of this.#handlers) handler(message);
  }

  #answer(asked: Asked): unknown {
    const { about, span = "", other = "" } = asked;
    switch (about) {
      case "session": return this.#head.session;
      case "spans": return this.#spans(asked.from ?? 0);
      case "detail": return this.#known(span).detail;
      case "raw": return cut(this.#known(span).raw[asked.side ?? "reply"], asked.from ?? 0, asked.size ?? Infinity);
      case "candidates": return { spans: this.#others(span) };
      case "diff": return this.#diff(span, other);
      default: throw new Error("A saved page cannot do that. Open the notebook.");
    }
  }

  /** The page of rows that begins at `from`: the blocks hold one after the other. */
  #spans(from: number): Page {
    for (let at = 0; ; at++) {
      const page = (this.#pages[at] ??= this.#read<Page>(at === 0 ? "tape-rows" : `tape-rows-${at}`) ?? EMPTY_PAGE);
      if (!page.id.length || page.from === from) return { ...page, from };
    }
  }

  #known(span: string): Known {
    const row = this.#row(span);
    const block = this.#blocks.get(Math.floor(row / BLOCK)) ?? this.#read<Record<string, Known>>(`tape-details-${Math.floor(row / BLOCK)}`) ?? {};
    this.#blocks.set(Math.floor(row / BLOCK), block);
    const known = Object.hasOwn(block, span) ? block[span] : undefined;
    if (!known) throw new Error(TOO_LARGE);
    return known;
  }

  #row(span: string): number {
    const total = this.#spans(0).total;
    if (!this.#rows || this.#rows.size < total) {
      for (let from = this.#rows?.size ?? 0; from < total; ) {
        const length = this.#spans(from).id.length;
        if (!length) break;
        from += length;
      }
      this.#rows = new Map(this.#pages.flatMap(({ id, from }) => id.map((name, at) => [name, from + at] as const)));
    }
    return this.#rows.get(span) ?? -1;
  }

  /** Calls of the same kind, nearest first. */
  #others(span: string): { id: string; name: string }[] {
    const row = this.#row(span);
    const all = this.#pages.flatMap(({ id, kind, name, from }) => id.map((one, at) => ({ id: one, kind: kind[at], name: name[at] ?? "", row: from + at })));
    return all.filter((one) => one.kind === all[row]?.kind && one.id !== span)
      .sort((a, b) => Math.abs(a.row - row) - Math.abs(b.row - row)).slice(0, CANDIDATES).map(({ id, name }) => ({ id, name }));
  }

  #diff(span: string, other: string): Diff {
    if (other === "base") throw new Error("A saved page does not hold the recording beside the take. Open the notebook.");
    const [left, right] = [this.#known(other).detail, this.#known(span).detail];
    return { left: whole(left), right: whole(right), left_name: left.title, right_name: right.title };
  }

  #read<T>(id: string): T | null {
    const text = this.#page.getElementById(id)?.textContent;
    return text ? (JSON.parse(text) as T) : null;
  }
}

function whole({ request, reply }: Detail): string {
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
