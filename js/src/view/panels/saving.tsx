/** Checking an edit as it is made, and the line that saves it as a take. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Edit, Problem } from "../protocol.ts";
import { TAKE } from "./draft.ts";
import { Alert, useDoing, useName } from "../edit/widgets.tsx";
import type { PaneProps, Work } from "../edit/store.ts";

const PAUSE = 250; // ms after the last key until the kernel is asked

/** What the kernel says of an edit, asked when the typing pauses; `now` asks at once. */
export function useCheck(work: Work, span: string, edit: Edit | null): { problems: readonly Problem[]; now: () => Promise<readonly Problem[]> } {
  const [answer, set] = useState<{ of: string; problems: readonly Problem[] }>({ of: "", problems: [] });
  const wanted = edit ? JSON.stringify(edit) : "";
  const latest = useRef(wanted);
  latest.current = wanted;
  const ask = async () => {
    if (!wanted) return [];
    const { problems } = await work.ask<{ problems: Problem[] }>("check", { span, edit: JSON.parse(wanted) as Edit });
    if (latest.current === wanted) set({ of: wanted, problems });
    return problems;
  };
  const run = useRef(ask);
  run.current = ask;
  useEffect(() => {
    if (!wanted) return;
    const timer = setTimeout(() => void run.current().catch(() => undefined), PAUSE); // saving asks again, and says what fails
    return () => clearTimeout(timer);
  }, [wanted, span]);
  return { problems: wanted ? answer.problems : [], now: async () => (answer.of === wanted ? answer.problems : ask()) };
}

interface SaveProps {
  work: Work; span: string; serve: PaneProps["serve"]; edit: Edit | null; take: string; accept: boolean; problems: readonly Problem[];
  /** The last look before saving. */
  check: () => Promise<readonly Problem[]>;
  onTake: (take: string) => void; onAccept: (accept: boolean) => void; onSaved: () => void; onCancel: () => void;
}

/** Name of the take, Save, Cancel; where a cell waits for the answer, no name. Errors hold Save back; warnings want a tick. */
export function SaveBar({ work, span, serve, edit, take, accept, problems, check, onTake, onAccept, onSaved, onCancel }: SaveProps) {
  const { busy, wrong, go } = useDoing();
  const id = useName();
  const named = serve !== undefined || TAKE.test(take);
  const errors = problems.some(({ level }) => level === "error");
  const warnings = problems.some(({ level }) => level === "warning");
  const able = edit !== null && named && !errors && (!warnings || accept) && !busy;
  const save = () => go(async () => {
    if (!edit) return;
    const found = await check();
    if (found.some(({ level }) => level === "error" || !accept)) return;
    if (serve) {
      await serve(edit, accept);
      work.drafts.delete(span);
    } else await work.override(span, edit, take, accept);
    onSaved();
  });
  return <form class="tape-save" onSubmit={(event) => { event.preventDefault(); if (able) save(); }}>
    {warnings && <label class="tape-tick"><input type="checkbox" checked={accept} onChange={(event) => onAccept(event.currentTarget.checked)} /> keep it as it is</label>}
    <div class="tape-actions">
      {!serve && <label class="tape-grow">as take <input type="text" value={take} maxLength={64} spellcheck={false} autocomplete="off"
        aria-invalid={!named} aria-describedby={id} onInput={(event) => onTake(event.currentTarget.value)} /></label>}
      <button type="submit" class="tape-primary" disabled={!able}>{busy ? "Saving…" : serve ? "Save and go on" : "Save"}</button>
      <button type="button" onClick={onCancel}>Cancel</button>
    </div>
    <p id={id} class="tape-wrong" role="status">{named ? "" : "A take's name is of a-z, 0-9 and -, at most 64."}</p>
    <Alert text={wrong} />
  </form>;
}
