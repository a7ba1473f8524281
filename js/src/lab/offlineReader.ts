/** What a saved output tells without a kernel: read from the cassette beside the notebook, when it is first asked for. */
import type { Contents } from "@jupyterlab/services";

import { Cassette } from "./cassette.ts";
import type { Ask } from "./model.ts";
import type { Resolver } from "./mime.ts";
import type { Saved } from "./output.ts";
import { detail, raw, unchanged } from "./savedSpans.ts";

const MOST_BYTES = 64 * 1024 * 1024;
const CHANGED = "the cassette was changed since this output was saved: what you see of a call may not be what the cell got";
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
    const { path, bytes, sha256 } = this.#saved;
    if (!this.#contents || !this.#resolver) throw new Error(`${path} cannot be read from here`);
    if (path.startsWith("/") || /(^|[\\/])\.\.([\\/]|$)|^[a-z]+:/i.test(path)) throw new Error(`${path} lies outside the notebook's folder: it is not opened`);
    const url = await this.#resolver.resolveUrl(path);
    const { size } = await this.#contents.get(url, { content: false });
    if (size !== undefined && size > MOST_BYTES) throw new Error(`${path} is too large to be read here: run %load_ext tape_jupyter`);
    const { content } = await this.#contents.get(url, { type: "file", format: "text", content: true });
    const text = String(content);
    if ((await unchanged(text, bytes, sha256)) === false) this.#note(CHANGED);
    return new Cassette(text);
  }
}
