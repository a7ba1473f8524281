import { useMemo, useState } from "preact/hooks";
import type { Desk } from "./store.ts";
import { lines, type Hunk, type Run } from "./edit/labels.ts";
import { useAsked } from "./hooks.ts";
import { many } from "./format.ts";
import type { Detail, Diff } from "./protocol.ts";
import { Failed } from "./placeholders.tsx";

interface Candidates { spans: { id: string; name: string }[] }

/** This call beside another, or beside itself as it was recorded: unchanged lines are folded. */
export function DiffTab({ desk, detail, based }: { desk: Desk; detail: Detail; based: boolean }) {
  const candidates = useAsked(() => desk.client.ask<Candidates>("candidates", { span: detail.id }), [detail.id]);
  const [chosen, choose] = useState<string | null>(null);
  const others = candidates.value?.spans ?? [];
  const other = chosen ?? (based ? "base" : (others[0]?.id ?? null));
  if (candidates.error) return <Failed text={candidates.error} again={candidates.again} />;
  if (candidates.value && other === null) return <p class="tape-dim">There is no other call to compare with.</p>;
  return <div>
    <div class="tape-actions"><label>Compare with <select value={other ?? ""} onChange={(event) => choose(event.currentTarget.value)}>
      {based && <option value="base">the recording</option>}
      {others.map(({ id, name }) => <option key={id} value={id}>{name}</option>)}
    </select></label></div>
    {other !== null && <Difference key={other} desk={desk} span={detail.id} other={other} />}
  </div>;
}

function Difference({ desk, span, other }: { desk: Desk; span: string; other: string }) {
  const { value, error, again } = useAsked(() => desk.client.ask<Diff>("diff", { span, other }), [span, other]);
  const hunks = useMemo(() => (value ? lines(value.left, value.right) : []), [value]);
  if (error) return <Failed text={error} again={again} />;
  if (!value) return null;
  if (hunks.every(({ same }) => same)) return <p role="status">No difference.</p>;
  return <table class="diff"><thead><tr><th scope="col">{value.left_name}</th><th scope="col">{value.right_name}</th></tr></thead>
    <tbody>{hunks.map((hunk, at) => hunk.same ? <Same key={at} hunk={hunk} ends={(at === 0 ? 1 : 0) + (at === hunks.length - 1 ? 2 : 0)} /> : <tr key={at} class="diff-changed"><Side runs={hunk.before} /><Side runs={hunk.after} /></tr>)}</tbody>
  </table>;
}

const NEAR = 3;

/** Lines that are the same: those next to a change, the others behind a button. `ends`: 1 nothing before, 2 nothing after. */
function Same({ hunk, ends }: { hunk: Hunk; ends: number }) {
  const [open, show] = useState(false);
  const [old, now] = [hunk.before, hunk.after].map((runs) => runs.map(({ text }) => text).join("").split("\n")) as [string[], string[]];
  const head = ends & 1 ? 0 : NEAR;
  const tail = ends & 2 ? 0 : NEAR;
  if (open || old.length <= head + tail + 1) return <tr><Side runs={hunk.before} /><Side runs={hunk.after} /></tr>;
  const part = (from: number, to: number) => from < to && <tr><td>{old.slice(from, to).join("\n")}</td><td>{now.slice(from, to).join("\n")}</td></tr>;
  return <>{part(0, head)}
    <tr><td colSpan={2}><button class="earlier" onClick={() => show(true)}>{many(old.length - head - tail, "line")} the same</button></td></tr>
    {part(old.length - tail, old.length)}</>;
}

function Side({ runs }: { runs: readonly Run[] }) {
  return <td>{runs.map(({ text, mark }, at) => (mark === "gone" ? <del key={at}>{text}</del> : mark === "new" ? <ins key={at}>{text}</ins> : text))}</td>;
}
