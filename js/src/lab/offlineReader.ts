/** What a saved output tells without a kernel: read from the cassette beside the notebook, when it is first asked for. */
import type { Contents } from "@jupyterlab/services";

import { Cassette } from "./cassette.ts";
import type { Ask } from "./model.ts";
import type { Resolver, Saved } from "./saved.ts";
import { idsAt, pageOf } from "./savedRows.ts";
import { asSaved, detail, raw, unchanged } from "./savedSpans.ts";

const MOST_BYTES = 64 * 1024 * 1024;
const MOST_BASES = 4;
const CHANGED = "the cassette changed after this output was saved: a call shown here may not be what the cell got";
const NEEDS_KERNEL = "this needs the notebook's kernel: run %load_ext tape_jupyter in it";

export class Alone {
  readonly #saved: Saved;
  readonly #resolver: Resolver | null;
  readonly #contents: Contents | null;
  readonly #note: (text: string) => void;
  #cassette: Promise<Cassette> | null = null;

  /** `note` hears what a person should know of the cassette. */
  constructor(saved: Saved, resolver: Resolver | null, contents: Contents | null, note: (text: string) => void) {
    this.#saved = saved;
    this.#resolver = resolver;
    this.#contents = contents;
    this.#note = note;
  }

  async answer(ask: Ask): Promise<unknown> {
    const span = typeof ask.span === "string" ? ask.span : "";
    const number = (value: unknown, otherwise: number) => (typeof value === "number" ? value : otherwise);
    if (ask.about === "spans") return pageOf(await this.#read(), this.#saved.calls ?? [], this.#saved);
    if (ask.about === "detail") return detail(await this.#read(), span, this.#saved.path);
    if (ask.about === "raw") return raw(await this.#read(), span, String(ask.side), number(ask.from, 0), number(ask.size, 65_536));
    if (ask.about === "candidates") return { spans: [] };
    throw new Error(NEEDS_KERNEL);
  }

  #read(): Promise<Cassette> {
    this.#cassette ??= this.#fetch().catch((error: unknown) => {
      this.#cassette = null; // it may be there the next time
      throw error;
    });
    return this.#cassette;
  }

  async #fetch(): Promise<Cassette> {
    const { path, calls, sha256, bytes } = this.#saved;
    const text = await this.#text(path);
    const cassette = await this.#opened(text, path, MOST_BASES);
    const same = calls ? await asSaved(cassette, idsAt(cassette, calls), sha256) : await unchanged(text, bytes ?? 0, sha256);
    if (same === false) this.#note(CHANGED);
    return cassette;
  }

  /** A take is read with the recording that it differs from. */
  async #opened(text: string, path: string, left: number): Promise<Cassette> {
    const { of } = new Cassette(text);
    if (!of || !left) return new Cassette(text);
    const base = new URL(of, `http://here/${path}`).pathname.slice(1);
    return new Cassette(text, await this.#opened(await this.#text(decodeURIComponent(base)), base, left - 1));
  }

  async #text(path: string): Promise<string> {
    if (!this.#contents || !this.#resolver) throw new Error(`${path} cannot be read from here`);
    if (path.startsWith("/") || /(^|[\\/])\.\.([\\/]|$)|^[a-z]+:/i.test(path)) throw new Error(`${path} lies outside the notebook's folder: it is not opened`);
    const url = await this.#resolver.resolveUrl(path);
    const { size } = await this.#contents.get(url, { content: false }).catch((error: unknown) => {
      const missing = (error as { response?: Response }).response?.status === 404;
      throw missing ? new Error(`${path} is not here: the recording belongs beside the notebook, and was not moved along with it`) : error;
    });
    if (size !== undefined && size > MOST_BYTES) throw new Error(`${path} is too large to be read here: run %load_ext tape_jupyter`);
    const { content } = await this.#contents.get(url, { type: "file", format: "text", content: true });
    return String(content);
  }
}
