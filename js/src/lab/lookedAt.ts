/**
 * What a person looked at in a notebook's sidebar: kept over a reload of the page, in this tab. The cassette and take
 * only where the person opened them: else the view follows the cell that runs.
 */
import { isRecord } from "./model.ts";

interface Place { cassette: string; take: string; span: string }

const OPENS = new Set(["open", "override", "undo", "keep", "discard"]);
const NOTHING: Place = { cassette: "", take: "", span: "" };

export class LookedAt {
  readonly #key: () => string;
  #place: Place;
  #opened: boolean;
  #begun = false;

  /** `key` names the notebook as it is called now. */
  constructor(key: () => string) {
    this.#key = () => `tape-jupyter:${key()}`;
    this.#place = this.#read();
    this.#opened = this.#place.cassette !== "";
  }

  /** What there was before the reload; nothing where it is another kernel's turn. */
  begin(): Place {
    if (this.#begun) {
      this.#place = { ...NOTHING };
      this.#opened = false;
    }
    this.#begun = true;
    return this.#place;
  }

  /** The view asks for this. */
  asked(about: string, span: unknown): void {
    if (OPENS.has(about)) this.#opened = true;
    if (about === "select" && typeof span === "string") this.#place.span = span;
  }

  /** The kernel's answer. */
  answered({ answer }: Record<string, unknown>): void {
    const session = isRecord(answer) && isRecord(answer.session) ? answer.session : answer;
    if (!this.#opened || !isRecord(session) || typeof session.cassette !== "string" || typeof session.take !== "string") return;
    Object.assign(this.#place, { cassette: session.cassette, take: session.take });
  }

  /** `isOpen`: whether the last span is still looked at. */
  keep(isOpen: boolean): void {
    try {
      sessionStorage.setItem(this.#key(), JSON.stringify({ ...this.#place, span: isOpen ? this.#place.span : "" }));
    } catch { /* the browser keeps nothing: a reload begins anew */ }
  }

  #read(): Place {
    try {
      const kept: unknown = JSON.parse(sessionStorage.getItem(this.#key()) ?? "null");
      const whole = isRecord(kept) && Object.keys(NOTHING).every((name) => typeof kept[name] === "string");
      return whole ? { ...NOTHING, ...kept } : { ...NOTHING };
    } catch {
      return { ...NOTHING };
    }
  }
}
