import type { Client } from "./client.ts";
import { sentence } from "./format.ts";
import type { Page, Running } from "./protocol.ts";
import { Spans } from "./spans.ts";

/** Rows a page; the first one is painted while the others come. */
export const PAGE = 5000;

export interface Changed { revision: number; total: number; running: Running | null; page?: Page | null }

/**
 * Brings the rows of one cassette and take, page after page, and keeps up with what the door tells of changes. On a
 * new revision the rows on show stay until as many new ones are there: nothing jumps.
 */
export class Feed {
  spans = new Spans();
  error: string | null = null;
  loading = false;
  readonly #client: Client;
  readonly #changed: () => void;
  #what = { cassette: "", take: "" };
  /** Grows with each start from row 0: an answer to an older question is dropped. */
  #turn = 0;

  constructor(client: Client, changed: () => void) {
    this.#client = client;
    this.#changed = changed;
  }

  /** Bring a cassette and take from its first row on. */
  load(cassette: string, take: string): Promise<void> {
    if (cassette !== this.#what.cassette || take !== this.#what.take) this.spans = new Spans();
    this.#what = { cassette, take };
    return this.#bring(new Spans());
  }

  /** The door told of a change: a page of new rows with it, or "ask again". */
  async hear({ revision, page }: Changed): Promise<void> {
    if (!page) {
      if (revision !== this.spans.revision || this.error) await this.#bring(new Spans());
      return;
    }
    if (page.from > this.spans.count) {
      if (!this.loading) await this.#bring(new Spans());
      return;
    }
    this.#turn++; // what is on its way was asked before this
    this.loading = false;
    this.spans.truncate(page.from);
    this.spans.append(page);
    if (!this.spans.complete) await this.#bring(this.spans);
    else this.#changed();
  }

  async #bring(into: Spans): Promise<void> {
    const turn = ++this.#turn;
    this.loading = true;
    this.error = null;
    this.#changed();
    try {
      let fresh = into;
      do {
        const page = await this.#client.ask<Page>("spans", { ...this.#what, from: fresh.count, limit: PAGE });
        if (turn !== this.#turn) return;
        if (page.from !== fresh.count) throw new Error(`rows from ${page.from} came where those from ${fresh.count} were asked for`);
        if (fresh.count && page.revision !== fresh.revision) {
          fresh = new Spans();
          continue;
        }
        fresh.append(page);
        if (fresh.complete || fresh.count >= this.spans.count) this.spans = fresh;
        if (!page.id.length) break;
        this.#changed();
      } while (!fresh.complete);
      this.spans = fresh;
    } catch (error) {
      if (turn !== this.#turn) return;
      this.error = sentence(error);
    }
    this.loading = false;
    this.#changed();
  }
}
