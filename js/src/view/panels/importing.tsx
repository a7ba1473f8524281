/** What another system recorded becomes a notebook that replays it, beside this one. */
import type { Importing } from "../protocol.ts";
import type { Work } from "../edit/store.ts";
import { focused, Said, TaskForm, useLongTask } from "./longTask.tsx";

export function Import({ work }: { work: Work }) {
  const task = useLongTask<Importing>(work, "import");
  const { now } = task;
  const fields = <>
    <label>File or folder (its path, from this notebook's folder)<input name="file" list="tape-files" placeholder="trace.json" spellcheck={false} ref={focused} /></label>
    <datalist id="tape-files">{now?.files?.map((each) => <option key={each} value={each} />)}</datalist>
  </>;
  return <TaskForm task={task} label="Import" title="A trace, log or HTTP recording of another system, as a notebook that replays it" name="import" fields={fields}>
    {now?.state === "done" && <p role="status"><b>{now.path ? `Imported: open ${now.path}` : "Nothing to import"}</b></p>}
    {now?.text && <Said text={now.text} wrong={now.state === "failed"} />}
  </TaskForm>;
}
