import type { Desk, Look } from "./store.ts";
import { TakeMenu, type Work } from "./edit/index.ts";
import { turned } from "./filter.ts";
import { many } from "./format.ts";
import { Island } from "./lazyPanel.tsx";
import { Menu } from "./menu.tsx";
import { KINDS, type Session } from "./protocol.ts";
import { StepButton, type Slot } from "./step/index.tsx";

type Mode = Session["mode"];
const MODES: { mode: Mode; word: string; says: string }[] = [
  { mode: "record", word: "Record", says: "calls go out, and are written down" },
  { mode: "replay", word: "Replay", says: "nothing goes out: the tape answers" },
];
/** Met when they are needed: one menu deeper. */
const MORE: { mode: Mode; word: string }[] = [
  { mode: "off", word: "Off" },
  { mode: "live", word: "Live, not written" },
  { mode: "once", word: "Once: replay, or record" },
  { mode: "new_episodes", word: "New episodes" },
];

/** Modes, cassette, take, search: what stands above everything. */
export function Bar({ desk, look, work, slot, narrow }: { desk: Desk; look: Look; work: Work; slot: Slot; narrow: boolean }) {
  const { session } = look;
  return <div class="bar" role="toolbar" aria-label="Tape">
    {desk.able.modes && session ? <Modes desk={desk} mode={look.running?.mode ?? session.mode} narrow={narrow} /> : desk.title && <b class="title">{desk.title}</b>}
    {desk.able.step && <StepButton desk={desk} work={work} slot={slot} />}
    {session && session.cassettes.length > 1 && <Cassettes desk={desk} session={session} />}
    {session && <TakeMenu work={work} session={session} able={desk.able} />}
    <Search desk={desk} look={look} work={work} />
  </div>;
}

function Modes({ desk, mode, narrow }: { desk: Desk; mode: string; narrow: boolean }) {
  const go = (to: string): void => void desk.change("mode", { mode: to });
  const option = ({ mode: one, word }: (typeof MORE)[number]) => <option key={one} value={one}>{word}</option>;
  const more = MORE.map(option);
  if (narrow) {
    return <select class={`mode mode-${mode}`} aria-label="Mode" value={mode} onChange={(event) => go(event.currentTarget.value)}>
      {MODES.map(option)}<optgroup label="More">{more}</optgroup>
    </select>;
  }
  const other = MORE.some((one) => one.mode === mode);
  return <span class="modes" role="group" aria-label="Mode">
    {MODES.map(({ mode: one, word, says }) =>
      <button key={one} class={`mode-${one}`} aria-pressed={one === mode} title={says} onClick={() => go(one)}>{word}</button>)}
    <select class={other ? "more more-on" : "more"} aria-label="Other modes" value={other ? mode : ""} onChange={(event) => go(event.currentTarget.value)}>
      <option value="" hidden>…</option>{more}
    </select>
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
    <Filters desk={desk} look={look} work={work} />
    <span class="find"><input type="search" data-search placeholder="search  /" title="Enter: search requests and replies too" aria-label="Search spans" value={filter.words} spellcheck={false} autocomplete="off"
      onInput={(event) => desk.filter({ words: event.currentTarget.value })}
      onKeyDown={(event) => {
        if (event.key === "Enter") void work.cards().then(({ find }) => find(desk));
        if (event.key !== "Escape" || !filter.words) return;
        event.stopPropagation();
        desk.filter({ words: "" });
      }} />
    <button aria-pressed={filter.errors} title="Errors only" onClick={() => desk.filter({ errors: !filter.errors })}>errors</button></span>
  </span>;
}

function Filters({ desk, look, work }: { desk: Desk; look: Look; work: Work }) {
  const chosen = look.filter.kinds.size + look.filter.notes.size;
  return <Menu word={chosen ? many(chosen, "filter") : "all kinds"} popup="choices">{() => <Island flat work={work} draw={(cards, place) => cards.drawChoices(place, { desk, filter: look.filter })} />}</Menu>;
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
    {chips.map(({ text, off }) => <button key={text} class="chip" aria-label={`No longer only ${text}`} onClick={off}><span>{text}</span> ✕</button>)}
  </div>;
}

function cellName(desk: Desk, cell: string): string {
  const row = desk.spans.cell.indexOf(cell);
  return desk.spans.name[row < 0 ? -1 : desk.spans.root(row)] ?? cell;
}
