/** What is saved below a taped cell: which calls it was, and where they lie. */
import type { Page, Session } from "../view/protocol.ts";
import { isRecord } from "./model.ts";

/** Finds a file beside the notebook; `path` is the notebook's own. */
export interface Resolver {
  readonly path?: string;
  resolveUrl(url: string): Promise<string>;
}

/** The JSON of the mime type `application/vnd.tape.spans+json`. */
export interface Saved {
  version: number;
  title: string;
  cell: string;
  mode: Session["mode"];
  /** The cassette's file, relative to the notebook. */
  path: string;
  cassette: string;
  take: string;
  /** Which calls, and the digest of their records as of saving. */
  calls?: Places;
  sha256: string;
  /** Of version 1: its rows themselves; `sha256` is that of the cassette's first so many bytes. */
  page?: Page;
  session?: Session;
  bytes?: number;
}

/** What was saved; a sentence where it is nothing that this version can show. */
export function savedOf(data: unknown): Saved | string {
  if (!isRecord(data)) return "Tape: this output holds no calls.";
  if (data.version !== 1 && data.version !== 2) return "Tape: this output was saved by a newer version of tape-jupyter.";
  const rows = isRecord(data.page) && Array.isArray(data.page.id) && isRecord(data.session);
  const named = Array.isArray(data.calls) && data.calls.every((each) => Array.isArray(each) && each.length === 2 && each.every((word) => typeof word === "string"));
  const whole = (data.version === 1 ? rows : named) && typeof data.path === "string";
  return whole ? (data as unknown as Saved) : "Tape: this output is damaged; run its cell again.";
}

/** Calls as a saved output names them: a run, and `0-4,7`, their places among its calls. */
export type Places = [run: string, places: string][];

/** First and last of each stretch. */
export function bounds(places: string): [number, number][] {
  return [...places.matchAll(/(\d{1,9})(?:-(\d{1,9}))?/g)].map(([, low = "", high = low]): [number, number] => [Number(low), Number(high)]).filter(([low, high]) => low <= high);
}

/** How many calls that are. */
export function countOf(calls: Places): number {
  return calls.flatMap(([, places]) => bounds(places)).reduce((all, [low, high]) => all + high - low + 1, 0);
}
