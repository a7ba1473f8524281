/** A re-run under way: cell by cell, and the question where a request has changed. */
import { useState } from "preact/hooks";
import type { Divergence, Progress, Section } from "../protocol.ts";
import { Alert, useDoing, useLate, useName } from "../edit/widgets.tsx";
import { wrongJson } from "./json.ts";
import { Card, Code } from "./controls.tsx";
import type { Work } from "../edit/store.ts";
import { ChangedFields } from "./changedFields.tsx";

const DOING = { running: "running", restoring: "putting values back for", proving: "proving in a fresh kernel:" } as const;

export function ProgressBar({ work, progress, canceling }: { work: Work; progress: Progress | null; canceling: boolean }) {
  const late = useLate(true);
  const { busy, wrong, go } = useDoing();
  if (!late) return null;
  const doing = canceling ? "putting everything back" : progress ? `${DOING[progress.state]} ${progress.title}` : "starting";
  return <Card kind="progress" title={progress ? `Re-running: ${progress.done} of ${progress.total}` : "Re-running"}>
    <progress aria-label="Cells that ran" max={progress?.total ?? 1} value={progress?.done ?? 0} />
    <p role="status">{doing}</p>
    <Alert text={wrong} />
    <div class="tape-actions tape-end"><button disabled={busy || canceling} onClick={() => go(() => work.cancel())}>Cancel</button></div>
  </Card>;
}

export function DivergenceCard({ work, divergence }: { work: Work; divergence: Divergence }) {
  const [reply, write] = useState<string | null>(null);
  const [rest, all] = useState(false);
  const { busy, wrong, go } = useDoing();
  const { choices, cost, fields } = divergence;
  const start = divergence.reply ?? { text: "", json: false };
  const choose = (choice: Divergence["choices"][number], text?: string) => go(() => work.resolve(divergence.id, choice, text, rest && choice !== "write"));
  const price = cost === null ? "cost unknown" : `about $${cost < 0.01 ? cost.toPrecision(1) : cost.toFixed(2)}`;
  const labels = { live: `Go live (${price})`, write: "Write the reply…", stale: "Keep the recorded one (stale)", skip: "Skip" };
  return <Card kind="divergence" title={`${divergence.title}: the request has changed`}>
    <p>It is not on the tape. Nothing was sent.</p>
    <ChangedFields fields={fields} />
    <Whole name="Whole request now" section={divergence.asked} />
    {divergence.recorded && <Whole name="Whole recorded request" section={divergence.recorded} />}
    {reply !== null && <Write work={work} start={start} value={reply} onType={write} />}
    <Alert text={wrong} />
    <div class="tape-actions tape-stay">{reply === null
      ? choices.map((choice, at) => <button key={choice} class={at === 0 ? "tape-primary" : ""} disabled={busy} onClick={() => (choice === "write" ? write(start.text) : choose(choice))}>{labels[choice]}</button>)
      : <><button class="tape-primary" disabled={busy || (start.json && wrongJson(reply) !== "")} onClick={() => choose("write", reply)}>Give this reply</button>
        <button onClick={() => write(null)}>Back</button></>}
      <button onClick={() => go(() => work.cancel())}>Cancel the re-run</button>
      {reply === null && <label class="tape-tick"><input type="checkbox" checked={rest} onChange={(event) => all(event.currentTarget.checked)} /> the same for the rest of this re-run</label>}
    </div>
  </Card>;
}

function Write({ work, start, value, onType }: { work: Work; start: { text: string; json: boolean }; value: string; onType: (text: string) => void }) {
  const id = useName();
  const wrong = start.json && wrongJson(value) !== "";
  return <div class="tape-field">
    <span class="tape-label" id={id}>The reply</span>
    <Code work={work} value={value} recorded={start.text || null} json={start.json} label="The reply" invalid={wrong} onChange={onType} />
    <p class="tape-wrong" role="status">{wrong ? "✕ Not JSON yet." : ""}</p>
  </div>;
}

function Whole({ name, section }: { name: string; section: Section }) {
  return <details><summary>{name}</summary><pre class="tape-code">{section.text}{section.whole ? "" : "\n…"}</pre></details>;
}
