/** How a cell is stepped: at which calls it stops, and whether it is recorded meanwhile. */
import { useEffect, useRef, useState } from "preact/hooks";
import { escape, useName } from "../edit/widgets.tsx";
import type { StepHow } from "./stepper.ts";

export interface StartProps { cells: boolean; onBegin: (how: StepHow) => void; onClose: () => void }

export function StepStart({ cells, onBegin, onClose }: StartProps) {
  const [breaks, set] = useState("");
  const [record, live] = useState(false);
  const place = useRef<HTMLFormElement>(null);
  const id = useName();
  useEffect(() => place.current?.querySelector<HTMLElement>("textarea")?.focus(), []);
  const begin = (): void => {
    onClose();
    onBegin({ breaks: breaks.split("\n").map((each) => each.trim()).filter(Boolean), record });
  };
  return <form ref={place} class="step-start" aria-label="How to step" onKeyDown={(event) => escape(event, onClose)} onSubmit={(event) => { event.preventDefault(); begin(); }}>
    <label for={`${id}-at`}>Stop only at</label>
    <textarea id={`${id}-at`} class="tape-code" rows={2} value={breaks} placeholder="every call" spellcheck={false} aria-describedby={`${id}-how`} onInput={(event) => set(event.currentTarget.value)} />
    <p class="tape-dim" id={`${id}-how`}>one a line: <code>model</code> <code>tool=lookup_*</code> <code>error</code> <code>nth=3</code> <code>kind=http</code></p>
    <label class="tape-tick"><input type="checkbox" checked={record} onChange={(event) => live(event.currentTarget.checked)} /> record: each call goes out when you step over it</label>
    <div class="tape-actions tape-end"><button type="button" onClick={onClose}>Cancel</button><button type="submit" class="tape-primary">{cells ? "Step the selected cell" : "Step the next cell"}</button></div>
  </form>;
}
