/** What would run, in which cells and why, before anything does. */
import { useState } from "preact/hooks";
import type { Able, Plan, PlanCell } from "../protocol.ts";
import { Alert, Prose, useDoing, useName } from "../edit/widgets.tsx";
import { dollars, many } from "../format.ts";
import { Card } from "./controls.tsx";
import type { Policy, Work } from "../edit/store.ts";

const ROLES: Record<PlanCell["role"], [string, string]> = {
  changed: ["✎", "begins here"], downstream: ["↓", "depends on it"], restores: ["↺", "runs to put values back"],
};
const POLICIES: readonly [Policy, string][] = [["stop", "stop and ask"], ["live", "go live"], ["stale", "keep the recorded reply, stale"]];

/** What followed from an edit by itself. */
export function Notes({ notes }: { notes: readonly string[] }) {
  return <>{notes.map((text) => <p key={text} class="tape-dim"><Prose text={text} /></p>)}</>;
}

export function PlanCard({ work, plan, notes, able }: { work: Work; plan: Plan; notes: readonly string[]; able: Able }) {
  const [ticked, tick] = useState<ReadonlySet<number>>(() => new Set(plan.cells.filter((cell) => cell.ticked).map(({ entry }) => entry)));
  const [fresh, setFresh] = useState(plan.hermetic !== null);
  const [policy, setPolicy] = useState<Policy>("stop");
  const { busy, wrong, go } = useDoing();
  const id = useName();
  const chosen = plan.cells.filter(({ entry }) => ticked.has(entry));
  const entries = chosen.map(({ entry }) => entry);
  const count = fresh ? plan.total : chosen.length;
  const toggle = (entry: number) => {
    const next = new Set(ticked);
    if (!next.delete(entry)) next.add(entry);
    tick(next);
  };
  return <Card kind="plan" title={`Re-run ${count} of ${plan.total} ${plan.counted}`} onEscape={() => work.dismiss()}>
    <Notes notes={notes} />
    <p class="tape-counts">{counts(plan, policy)}</p>
    {plan.hermetic && <p class="tape-warn">⚠ <Prose text={plan.hermetic} /></p>}
    {plan.warnings.map((text) => <p key={text} class="tape-warn">⚠ <Prose text={text} /></p>)}
    {!plan.cells.length && <p>No other cell depends on this.</p>}
    <ul class="tape-plan">{plan.cells.map((cell) => <PlanRow key={cell.entry} cell={cell} ticked={fresh || ticked.has(cell.entry)} fixed={fresh}
      missed={fresh || ticked.has(cell.entry) ? "" : missed(plan.cells, cell, ticked)} onTick={() => toggle(cell.entry)} />)}</ul>
    <label class="tape-tick"><input type="checkbox" checked={fresh} disabled={plan.hermetic !== null} onChange={(event) => setFresh(event.currentTarget.checked)} /> run everything fresh in a new kernel</label>
    <label class="tape-tick" for={id}>where a request has changed <select id={id} value={policy} onChange={(event) => setPolicy(event.currentTarget.value as Policy)}>
      {POLICIES.map(([value, label]) => <option key={value} value={value}>{label}</option>)}</select></label>
    <Alert text={wrong} />
    {!able.rerun && <p class="tape-dim">To run it: <code>%tape rerun {plan.take}</code> in the notebook.</p>}
    <footer class="tape-actions tape-end">
      <button onClick={() => work.dismiss()}>Cancel</button>
      <button class="tape-primary" disabled={busy || !able.rerun || count === 0} onClick={() => go(() => work.rerun(plan.take, entries, fresh, policy))}>Re-run</button>
    </footer>
  </Card>;
}

function PlanRow({ cell, ticked, fixed, missed, onTick }: { cell: PlanCell; ticked: boolean; fixed: boolean; missed: string; onTick: () => void }) {
  const id = useName();
  const [sign, role] = ROLES[cell.role];
  return <li class={`tape-role-${cell.role}`}>
    <label><input type="checkbox" checked={ticked} disabled={fixed} aria-describedby={id} onChange={onTick} />
      <span class="tape-sign" role="img" aria-label={role} title={role}>{sign}</span>
      <b>{cell.number === null ? "" : `[${cell.number}] `}{cell.title}</b></label>
    <small id={id}><Prose text={cell.reasons.join("; ")} />{missed && <span class="tape-warn" role="status"> ⚠ {missed}</span>}</small>
    {ticked && !!cell.asks && <small>may go live: {cell.asks} ({dollars(cell.cost ?? null) || "price not known"})</small>}
  </li>;
}

/** Who still runs and needs this cell, which does not: they will read what is there now. */
function missed(cells: readonly PlanCell[], cell: PlanCell, ticked: ReadonlySet<number>): string {
  const who = cells.filter((other) => other.entry !== cell.entry && ticked.has(other.entry) && needs(other, cell)).map(name);
  return who.length ? `${who.join(", ")} need${who.length === 1 ? "s" : ""} it, and will read what is there now.` : "";
}

function needs(cell: PlanCell, other: PlanCell): boolean {
  if (cell.needs) return cell.needs.includes(other.entry);
  return other.number !== null && cell.reasons.some((reason) => reason.includes(`[${other.number}]`));
}

function name({ number, title }: PlanCell): string {
  return number === null ? title : `[${number}]`;
}

function counts({ from_tape, maybe_live, seconds }: Plan, policy: Policy): string {
  const then = { stop: "asks first", live: "goes live", stale: "keeps the recorded reply" }[policy];
  return [`recorded: ${many(from_tape, "call")}`, `may go live: ${maybe_live}${maybe_live ? ` (${then})` : ""}`,
    seconds === null ? "" : `took ${seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(1)} s`} when recorded`].filter(Boolean).join(" · ");
}
