import { useEffect, useState } from "preact/hooks";
import type { Desk, Look } from "./store.ts";
import { arrows } from "./edit/widgets.tsx";
import { sums } from "./filter.ts";
import { dollars, duration, exact, many, short } from "./format.ts";
import type { Running, Totals } from "./protocol.ts";
import { CELL } from "./spans.ts";

/** One line of sums: of all, or of what a filter leaves. */
export function Foot({ desk, look }: { desk: Desk; look: Look }) {
  const { session, running } = look;
  const { spans, keep } = desk;
  if (!session) return null;
  // An output is of one cell's run, of which no sums are told: those of its rows.
  const live = running !== null || keep !== null || (desk.door === "output" && !session.totals.calls);
  const text = live ? summed(desk) : totals(session.totals);
  const some = spans.count > 0 && spans.count < spans.total;
  return <footer class="sums">
    <span>{text}</span>
    {some && <span role="status">{exact(spans.count)} of {exact(spans.total)} spans{desk.feed.loading ? "…" : " are saved here"}</span>}
    {look.finding && <span role="status">{look.finding}</span>}
    {session.notes.length > 0 && <Notes notes={session.notes} />}
  </footer>;
}

function totals({ calls, errors, tokens_in, tokens_out, cost, partial, seconds }: Totals): string {
  const tokens = tokens_in === null && tokens_out === null ? "" : `${short(tokens_in ?? 0)} → ${short(tokens_out ?? 0)} tok`;
  return listed(many(calls, "call"), errors ? many(errors, "error") : "", tokens, cost === null ? "" : `${partial ? "≥ " : ""}${dollars(cost)}`, duration(seconds));
}

/** Those that are not empty, beside each other; a number stays beside its unit. */
function listed(...parts: string[]): string {
  return parts.filter(Boolean).map((text) => text.replaceAll(" ", "\u00a0")).join(" · ");
}

function summed(desk: Desk): string {
  const { spans, calls, tokens, cost } = sums(desk.spans, desk.keep);
  const of = desk.keep ? `${exact(spans)} of ${exact(desk.spans.count)} spans` : "";
  return listed(of, many(calls, "call"), tokens ? `${short(tokens)} tok` : "", cost ? dollars(cost) : "");
}

function Notes({ notes }: { notes: readonly string[] }) {
  return <details class="notes"><summary>⚠ {notes[1] === undefined ? arrows(notes[0] ?? "") : many(notes.length, "note")}</summary>
    <ul>{notes.map((note) => <li key={note}>{arrows(note)}</li>)}</ul></details>;
}

/** A cell is being taped: which, how many calls, for how long. Screen readers hear of each call. */
export function Live({ desk, running }: { desk: Desk; running: Running }) {
  const [since] = useState(() => performance.now() - running.seconds * 1000);
  const [now, tick] = useState(() => performance.now());
  useEffect(() => {
    const timer = setInterval(() => tick(performance.now()), 200);
    return () => clearInterval(timer);
  }, []);
  const { spans } = desk;
  const row = spans.cell.lastIndexOf(running.cell);
  const name = row < 0 ? "" : (spans.name[spans.root(row)] ?? "");
  const known = row >= 0 && spans.kind[spans.root(row)] === CELL ? ` ${name}` : "";
  const doing = running.mode === "replay" ? "replaying" : running.mode === "live" ? "running" : "recording";
  return <div class={`live live-${running.mode}`}>
    <span aria-hidden="true">● {doing}{known} · {many(running.calls, "call")} · {duration(Math.max(running.seconds, (now - since) / 1000))}</span>
    <span class="tape-hidden" role="status">{doing}{known}, {many(running.calls, "call")}</span>
  </div>;
}
