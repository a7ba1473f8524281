/** The session as one file. */
import type { Exporting } from "../protocol.ts";
import { Alert } from "../edit/widgets.tsx";
import type { Work } from "../edit/store.ts";
import { Said, Steps, useLongTask } from "./longTask.tsx";

export function Export({ work }: { work: Work }) {
  const task = useLongTask<Exporting>(work, "export");
  const { now, busy, wrong, start } = task;
  if (now?.state === "running") return <div class="tape-export" role="group" aria-label="Export"><Steps task={task} name="export" /></div>;
  return <div class="tape-export" role="group" aria-label="Export">
    {now?.state === "done" && <p role="status"><b>{now.differs ? "Exported, with differences" : "Exported and checked"}</b></p>}
    {now?.text && <Said text={now.text} wrong={now.state === "failed"} />}
    <div class="tape-actions">
      <button disabled={busy} title="This session as one file, for somebody else; checked by a replay" onClick={() => start({})}>{now?.text ? "Export again" : "Export…"}</button>
      {now?.secret && <button disabled={busy} onClick={() => start({ redact: true })}>Mask the secrets</button>}
      {now?.state === "failed" && now.differs && <button disabled={busy} onClick={() => start({ allow_differences: true })}>Export anyway</button>}
    </div>
    <Alert text={wrong} />
  </div>;
}
