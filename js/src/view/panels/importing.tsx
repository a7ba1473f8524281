/** What another system recorded becomes a notebook that replays it, beside this one. */
import { useRef, useState } from "preact/hooks";
import type { Importing } from "../protocol.ts";
import { Alert } from "../edit/widgets.tsx";
import type { Work } from "../edit/store.ts";
import { Said, Steps, useLongTask } from "./longTask.tsx";

const focused = (field: HTMLInputElement | null) => field?.focus();

export function Import({ work }: { work: Work }) {
  const [asking, ask] = useState(false);
  const group = useRef<HTMLDivElement>(null);
  const task = useLongTask<Importing>(work, "import");
  const { now, busy, wrong, start } = task;
  // What had the focus goes away with the form: the keyboard stays in the group, not at the page's start.
  const close = () => {
    group.current?.focus();
    ask(false);
  };
  const send = (form: HTMLFormElement) => {
    start({ file: new FormData(form).get("file") });
    close();
  };
  return <div class="tape-export" role="group" aria-label="Import" tabIndex={-1} ref={group}>
    {now?.state === "running" ? <Steps task={task} name="import" /> : <>
      {now?.state === "done" && <p role="status"><b>{now.path ? `Imported: open ${now.path}` : "Nothing to import"}</b></p>}
      {now?.text && <Said text={now.text} wrong={now.state === "failed"} />}
      {asking ? <form onSubmit={(event) => { event.preventDefault(); send(event.currentTarget); }}>
        <label>File or folder (its path, from this notebook's folder)<input name="file" list="tape-files" placeholder="trace.json" spellcheck={false} ref={focused} /></label>
        <datalist id="tape-files">{now?.files?.map((each) => <option key={each} value={each} />)}</datalist>
        <div class="tape-actions"><button class="tape-primary">Import</button><button type="button" onClick={close}>Cancel</button></div>
      </form> : <>
        <div class="tape-actions"><button disabled={busy} title="A trace, log or HTTP recording of another system, as a notebook that replays it" onClick={() => ask(true)}>Import…</button></div>
        <Alert text={wrong} />
      </>}
    </>}
  </div>;
}
