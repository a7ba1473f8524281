import { Client } from "./client.ts";
import { Feed, type Changed } from "./rowLoader.ts";
import { asks, EVERYTHING, matches, type Filter } from "./filter.ts";
import { sentence } from "./format.ts";
import { Told, useTold } from "./hooks.ts";
import type { Able, Detail, Model, Running, Session, State } from "./protocol.ts";
import { ERROR, RETRIED, type Spans } from "./spans.ts";
import { Timeline, type Window } from "./timeline.ts";

/** What part of the time is drawn: all of it, that of the rows on show, or a stretch the person chose. */
export type Zoom = "all" | "follow" | Window;

/** What the person has set, and what the door said. Rows are named by id: a refresh moves them. */
export interface Look {
  session: Session | null;
  error: string | null;
  running: Running | null;
  filter: Filter;
  folded: ReadonlySet<string>;
  active: string | null;
  open: string | null;
  tab: string;
  zoom: Zoom;
  editing: "reply" | "fault" | null;
  /** Calls at which a stepped cell stands. */
  stops: ReadonlySet<string>;
  /** Calls in whose bodies the words of the filter stand; while they are looked for, how far that is. */
  found: ReadonlySet<string>;
  finding: string;
  /** Counts changes of the rows. */
  rows: number;
}

/** Longer runs begin with the time of the rows on show: all of it would make slivers of the bars. */
const FOLLOW_FROM = 150;
const DETAILS_KEPT = 40;
const NONE: ReadonlySet<string> = new Set();
const NOTHING_ABLE: Able = { modes: false, override: false, rerun: false, step: false, cells: false };

/** One mounted view: its state, and what can be done to it. Components draw `look` and call these methods. */
export class Desk extends Told {
  readonly client: Client;
  readonly able: Able;
  readonly door: State["door"];
  readonly title: string;
  readonly feed: Feed;
  look: Look;
  readonly #details = new Map<string, Promise<Detail>>();
  readonly #derived = { keep: cached<Uint8Array | null>(), visible: cached<Uint32Array>(), timeline: cached<Timeline>() };
  /** Calls below which retries have been folded: once. */
  readonly #retried = new Set<string>();
  #greeted = false;

  constructor(model: Model) {
    super();
    this.client = new Client(model);
    this.able = { ...NOTHING_ABLE, ...(model.get("able") as Partial<Able> | undefined) };
    this.door = (model.get("door") as State["door"] | undefined) ?? "widget";
    this.title = (model.get("title") as string | undefined) ?? "";
    this.feed = new Feed(this.client, () => this.#rowsChanged());
    const span = (model.get("span") as string | null | undefined) ?? null;
    this.look = {
      session: null, error: null, running: null, filter: EVERYTHING, folded: new Set(), active: span, open: span, tab: "",
      zoom: "all", editing: null, stops: new Set(), found: NONE, finding: "", rows: 0,
    };
    this.client.on<Changed>("changed", (changed) => void this.#hear(changed));
    this.client.on<{ cell: string; source?: string }>("focus", ({ cell, source }) => this.focusCell(cell, source ?? ""));
  }

  get spans(): Spans {
    return this.feed.spans;
  }

  /** One mark a row, as `matches` gives it. */
  get keep(): Uint8Array | null {
    const { filter, rows, found } = this.look;
    return this.#derived.keep([filter, rows, found], () => matches(this.spans, filter, found));
  }

  get visible(): Uint32Array {
    const { folded, rows } = this.look;
    return this.#derived.visible([folded, rows, this.keep], () => this.spans.visible(folded, this.keep));
  }

  get timeline(): Timeline {
    return this.#derived.timeline([this.look.rows], () => new Timeline(this.spans));
  }

  set(change: Partial<Look>): void {
    this.look = { ...this.look, ...change };
    this.tell();
  }

  /** Ask what there is, and bring the rows. */
  async start(): Promise<void> {
    try {
      await this.enter(await this.client.ask<Session>("session"));
    } catch (error) {
      this.set({ error: sentence(error) });
    }
  }

  /** Take a session as the door said it; another cassette or take brings other rows. */
  async enter(session: Session): Promise<void> {
    const before = this.look.session;
    this.set({ session, error: null, running: session.running });
    if (before?.cassette === session.cassette && before.take === session.take && this.spans.count) return;
    this.#details.clear();
    await this.feed.load(session.cassette, session.take);
  }

  /** Ask for something whose answer is the new session; what went wrong is said in the bar. */
  async change(about: string, body: Record<string, unknown>): Promise<void> {
    try {
      await this.enter(await this.client.ask<Session>(about, body));
    } catch (error) {
      this.set({ error: sentence(error) });
    }
  }

  /** The detail of a span; asked once, until rows change. */
  detail(span: string): Promise<Detail> {
    const known = this.#details.get(span);
    if (known) return known;
    const asked = this.client.ask<Detail>("detail", { span });
    asked.catch(() => this.#details.delete(span));
    this.#details.set(span, asked);
    for (const old of this.#details.keys()) if (this.#details.size > DETAILS_KEPT) this.#details.delete(old);
    return asked;
  }

  open(id: string, tab = this.look.tab): void {
    this.set({ active: id, open: id, tab, editing: null });
    if (this.able.cells) this.client.ask("select", { span: id, cell: this.spans.cell[this.spans.row(id)] ?? "" }).catch(() => undefined);
  }

  /** Open a span wherever it is: what hides it is taken away. */
  reveal(id: string): void {
    const row = this.spans.row(id);
    if (row < 0) return;
    const folded = new Set(this.look.folded);
    for (let up = this.spans.parent(row); up >= 0; up = this.spans.parent(up)) folded.delete(this.spans.id[up] ?? "");
    const hidden = this.keep !== null && !this.keep[row];
    this.set({ folded, ...(hidden ? { filter: EVERYTHING } : {}) });
    this.open(id);
  }

  /** A cell stands at this call, or at one that is not on the tape (""). */
  stand(span: string): void {
    if (this.spans.row(span) >= 0) this.reveal(span);
    else this.close();
  }

  close(): void {
    this.set({ open: null, editing: null });
  }

  fold(id: string, shut: boolean): void {
    const folded = new Set(this.look.folded);
    if (shut) folded.add(id);
    else folded.delete(id);
    this.set({ folded });
  }

  /** A filter that finds something shows it, folded or not. */
  filter(change: Partial<Filter>): void {
    const filter = { ...this.look.filter, ...change };
    const anew = change.words === undefined ? {} : { found: NONE, finding: "" };
    this.set({ filter, ...anew, ...(asks(filter) ? { folded: new Set<string>() } : {}) });
  }

  /** A cell was clicked: show its spans only; those of all, where it has none or one clicked beside the cells. */
  focusCell(cell: string, source = ""): void {
    const known = [cell, source].find((name) => this.spans.cell.includes(name)) ?? "";
    if (known !== this.look.filter.cell) this.filter({ cell: known });
  }

  stop(): void {
    this.tellNobody();
    this.client.close();
  }

  async #hear(changed: Changed): Promise<void> {
    const ended = this.look.running !== null && changed.running === null;
    this.set({ running: changed.running });
    await this.feed.hear(changed);
    if (changed.running) return;
    try {
      const session = await this.client.ask<Session>("session");
      if (ended) this.#details.clear();
      await this.enter(session);
    } catch (error) {
      this.set({ error: sentence(error) });
    }
  }

  #rowsChanged(): void {
    this.set({ rows: this.look.rows + 1, error: this.feed.error, folded: this.#retriesFolded() });
    const { open } = this.look;
    // Another take may not have the span that was open.
    if (open !== null && !this.feed.loading && this.spans.complete && this.spans.row(open) < 0) this.close();
    if (this.#greeted || !this.spans.count) return;
    this.#greeted = true;
    if (this.spans.total > FOLLOW_FROM) this.set({ zoom: "follow" });
    if (this.look.active === null) this.set({ active: this.spans.id[0] ?? null });
    if (this.look.open === null && !this.look.running) this.#openError();
  }

  /** What failed and was sent again is folded below the call that ended it, until a person opens it. */
  #retriesFolded(): ReadonlySet<string> {
    const { spans, look: { folded } } = this;
    const shut = new Set(folded);
    spans.mark.subarray(0, spans.count).forEach((mark, row) => {
      if (mark !== RETRIED) return;
      const id = spans.id[spans.parent(row)] ?? "";
      if (!this.#retried.has(id)) shut.add(id);
      this.#retried.add(id);
    });
    return shut;
  }

  /** An error opens by itself: the last one. Not while a cell runs: what failed may be sent again. */
  #openError(): void {
    const id = this.spans.id[this.spans.mark.subarray(0, this.spans.count).lastIndexOf(ERROR)];
    if (id) this.set({ active: id, open: id });
  }
}

/** Remembers what was made from the same parts. */
function cached<T>(): (parts: readonly unknown[], make: () => T) => T {
  let last: { parts: readonly unknown[]; made: T } | null = null;
  return (parts, make) => {
    if (!last || last.parts.some((part, at) => part !== parts[at])) last = { parts, made: make() };
    return last.made;
  };
}

/** The desk's state; draws anew when it changes. */
export function useLook(desk: Desk): Look {
  return useTold(desk, () => desk.look);
}
