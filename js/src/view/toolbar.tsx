import { useEffect, useRef } from "preact/hooks";
import type { Desk, Look } from "./store.ts";
import { TakeMenu, type Work } from "./edit/index.ts";
import { facets, type Filter } from "./filter.ts";
import { exact, many } from "./format.ts";
import { Menu } from "./menu.tsx";
import { KINDS, type Session } from "./protocol.ts";
import { StepButton, type Slot } from "./step/index.tsx";

type Mode = Session["mode"];
const MODES: { mode: Mode; word: string; says: string }[] = [
  { mode: "live", word: "Live", says: "calls go out, and are not written down" },
  { mode: "record", word: "Record", says: "calls go out, and are written down" },
  { mode: "replay", word: "Replay", says: "nothing goes out: the tape answers" },
];
const MORE: { mode: Mode; word: string; says: string }[] = [
  { mode: "once", word: "Once", says: "replay what was recorded, record the other cells" },
  { mode: "new_episodes", word: "New episodes", says: "replay known calls, record new ones" },
  { mode: "off", word: "Off", says: "not taped" },
];

/** Modes, cassette, take, search: what stands above everything. */
export function Bar({ desk, look, work, slot, narrow }: { desk: Desk; look: Look; work: Work; slot: Slot; narrow: boolean }) {
  const { session } = look;
  return <div class="bar" role="toolbar" aria-label="Tape">
    {desk.able.modes && session ? <Modes desk={desk} mode={session.mode} narrow={narrow} /> : desk.title && <b class="title">{desk.title}</b>}
    {desk.able.step && <StepButton desk={desk} work={work} slot={slot} />}
    {session && session.cassettes.length > 1 && <Cassettes desk={desk} session={session} />}
    {session && <TakeMenu work={work} session={session} able={desk.able} />}
    <Search desk={desk} look={look} work={work} />
  </div>;
}

function Modes({ desk, mode, narrow }: { desk: Desk; mode: Mode; narrow: boolean }) {
  const go = (to: string): void => void desk.change("mode", { mode: to });
  const others = MORE.filter((one) => one.mode === mode);
  if (narrow) {
    return <select class={`mode mode-${mode}`} aria-label="Mode" value={mode} onChange={(event) => go(event.currentTarget.value)}>
      {[...MODES, ...MORE].map(({ mode: one, word }) => <option key={one} value={one}>{word}</option>)}
    </select>;
  }
  return <span class="modes" role="group" aria-label="Mode">
    {[...MODES, ...others].map(({ mode: one, word, says }) =>
      <button key={one} class={`mode-${one}`} aria-pressed={one === mode} title={says} onClick={() => go(one)}>{word}</button>)}
  </span>;
}

function Cassettes({ desk, session }: { desk: Desk; session: Session }) {
  return <select aria-label="Cassette" value={session.cassette} onChange={(event) => void desk.change("open", { cassette: event.currentTarget.value, take: "" })}>
    {session.cassettes.map((name) => <option key={name}>{name}</option>)}
  </select>;
}

function Search({ desk, look, work }: { desk: Desk; look: Look; work: Work }) {
  const { filter } = look;
  return <span class="search">
    <input type="search" data-search placeholder="search  /" title="Enter: in requests and replies too" aria-label="Search spans" value={filter.words} spellcheck={false} autocomplete="off"
      onInput={(event) => desk.filter({ words: event.currentTarget.value })}
      onKeyDown={(event) => {
        if (event.key === "Enter") void work.cards().then(({ find }) => find(desk));
        if (event.key !== "Escape" || !filter.words) return;
        event.stopPropagation();
        desk.filter({ words: "" });
      }} />
    <Filters desk={desk} look={look} />
    <button aria-pressed={filter.errors} title="Errors only" onClick={() => desk.filter({ errors: !filter.errors })}>errors</button>
  </span>;
}

function Filters({ desk, look }: { desk: Desk; look: Look }) {
  const { kinds, notes } = look.filter;
  return <Menu word={`${words(kinds.size + notes.size)} `} popup="choices">{() => <Choices desk={desk} filter={look.filter} />}</Menu>;
}

function words(chosen: number): string {
  return chosen ? many(chosen, "filter") : "all kinds";
}

function Choices({ desk, filter }: { desk: Desk; filter: Filter }) {
  const { kinds, notes } = facets(desk.spans);
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => list.current?.querySelector("input")?.focus(), []);
  return <div ref={list} role="group" aria-label="Show only">
    <fieldset><legend>Kind</legend>
      {kinds.map(({ kind, count }) => <Choice key={kind} text={KINDS[kind] ?? ""} count={count} on={filter.kinds.has(kind)} onTurn={() => desk.filter({ kinds: turned(filter.kinds, kind) })} />)}
    </fieldset>
    {notes.length > 0 && <fieldset><legend>Model, tool, host</legend>
      {notes.map(({ note, count }) => <Choice key={note} text={note} count={count} on={filter.notes.has(note)} onTurn={() => desk.filter({ notes: turned(filter.notes, note) })} />)}
    </fieldset>}
  </div>;
}

function Choice({ text, count, on, onTurn }: { text: string; count: number; on: boolean; onTurn: () => void }) {
  return <label class="choice"><input type="checkbox" checked={on} onChange={onTurn} /><span>{text}</span><small>{exact(count)}</small></label>;
}

function turned<T>(set: ReadonlySet<T>, value: T): ReadonlySet<T> {
  const next = new Set(set);
  if (!next.delete(value)) next.add(value);
  return next;
}

/** What the list is narrowed to, each with its way out. */
export function Chips({ desk, look }: { desk: Desk; look: Look }) {
  const { cell, kinds, notes } = look.filter;
  const chips = [
    ...(cell ? [{ text: `cell ${cellName(desk, cell)}`, off: () => desk.filter({ cell: "" }) }] : []),
    ...[...kinds].map((kind) => ({ text: KINDS[kind] ?? "", off: () => desk.filter({ kinds: turned(kinds, kind) }) })),
    ...[...notes].map((note) => ({ text: note, off: () => desk.filter({ notes: turned(notes, note) }) })),
  ];
  if (!chips.length) return null;
  return <div class="chips">
    {chips.map(({ text, off }) => <button key={text} class="chip" aria-label={`Show more than ${text}`} onClick={off}><span>{text}</span> ✕</button>)}
  </div>;
}

function cellName(desk: Desk, cell: string): string {
  const row = desk.spans.cell.indexOf(cell);
  return desk.spans.name[row < 0 ? -1 : desk.spans.root(row)] ?? cell;
}
