import type { Detail, Raw, Turn } from "../view/protocol.ts";

/** One span in full. */
export interface Known { detail: Detail; raw: { request: Raw; reply: Raw } }

/**
 * A span as its block tells it: how many turns are those of the span of its kind before it, and the others; of each long
 * text, how much of its beginning and end it shares with that one's, and what lies between.
 */
interface Folded extends Known { turns: [number, Turn[]]; texts: [number, number, string][] }

/** The blocks of data that stand in a page, as `tape_jupyter/reports/page.py` writes them. */
export class Blocks {
  readonly #page: Document;

  constructor(page: Document) {
    this.#page = page;
  }

  /** A block that is drawn at once; null where there is none. */
  now<T>(name: string): T | null {
    const text = this.#page.getElementById(name)?.textContent;
    return text ? (JSON.parse(text) as T) : null;
  }

  /** A packed block; null where there is none. The page may still be on its way: it is waited for. */
  async packed<T>(name: string): Promise<T | null> {
    const block = await this.#block(name);
    return block?.textContent ? (JSON.parse(await unpacked(block.textContent)) as T) : null;
  }

  /** A block is whole once something follows it. */
  async #block(name: string): Promise<Element | null> {
    for (;;) {
      const block = this.#page.getElementById(name);
      if (this.#page.readyState !== "loading" || block?.nextElementSibling) return block;
      await more(this.#page);
    }
  }
}

/** When more of the page has come. */
function more(page: Document): Promise<void> {
  return new Promise((done) => {
    const come = (): void => {
      watch.disconnect();
      page.removeEventListener("DOMContentLoaded", come);
      done();
    };
    const watch = new MutationObserver(come);
    watch.observe(page.body, { childList: true });
    page.addEventListener("DOMContentLoaded", come);
  });
}

async function unpacked(text: string): Promise<string> {
  if (!("DecompressionStream" in globalThis)) throw new Error("This browser is too old to unpack this page. Open it in a newer one.");
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at++) bytes[at] = letters.charCodeAt(at);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
}

/** The spans of a block, each in full. */
export function unfolded(block: readonly Folded[]): Map<string, Known> {
  const before = new Map<string, { turns: Turn[]; texts: string[] }>();
  const found = new Map<string, Known>();
  for (const { detail, raw, turns: [same, own], texts: told } of block) {
    const old = before.get(detail.kind) ?? { turns: [], texts: [] };
    const turns = [...old.turns.slice(0, same), ...own];
    const texts = told.map(([begin, end, middle], at) => {
      const text = old.texts[at] ?? "";
      return text.slice(0, begin) + middle + text.slice(text.length - end);
    });
    before.set(detail.kind, { turns, texts });
    const [asked = "", answered = "", sent = "", got = ""] = texts;
    found.set(detail.id, {
      detail: { ...detail, turns, request: { ...detail.request, text: asked }, reply: { ...detail.reply, text: answered } },
      raw: { request: { ...raw.request, text: sent }, reply: { ...raw.reply, text: got } },
    });
  }
  return found;
}

export type { Folded };
