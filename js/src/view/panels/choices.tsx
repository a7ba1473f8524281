/** What the list can be narrowed to: kinds of calls; models, tools and hosts. */
import { useEffect, useRef } from "preact/hooks";
import { facets, turned } from "../filter.ts";
import { exact } from "../format.ts";
import type { ChoicesProps } from "../edit/store.ts";
import { KINDS } from "../protocol.ts";

export function Choices({ desk, filter }: ChoicesProps) {
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
