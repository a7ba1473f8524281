/** A command that the kernel runs in a process of its own: begun, watched and ended here. */
import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { LongTask } from "../protocol.ts";
import { Alert, useDoing } from "../edit/widgets.tsx";
import type { Work } from "../edit/store.ts";

const PAUSE = 400;

export interface Watched<T extends LongTask> {
  now: T | null;
  busy: boolean;
  wrong: string;
  start: (fields: Record<string, unknown>) => void;
  stop: () => void;
}

/** How the last one stands; looked at again and again while one runs. */
export function useLongTask<T extends LongTask>(work: Work, about: string): Watched<T> {
  const [now, set] = useState<T | null>(null);
  const { busy, wrong, go } = useDoing();
  const here = useRef(true);
  useEffect(() => () => void (here.current = false), []);
  const look = useCallback(async (): Promise<void> => {
    const told = await work.ask<T>(about, { look: true });
    if (here.current) set(told);
  }, [work, about]);
  useEffect(() => void look().catch(() => undefined), [look]);
  const running = now?.state === "running";
  useEffect(() => {
    if (!running) return;
    const timer = setInterval(() => void look().catch(() => undefined), PAUSE);
    return () => clearInterval(timer);
  }, [running, look]);
  return {
    now, busy, wrong,
    start: (fields) => go(async () => set(await work.ask<T>(about, fields))),
    stop: () => go(() => work.ask(`${about}.stop`)),
  };
}

/** How far it is. `name` as in "Steps of the export". */
export function Steps({ task, name }: { task: Watched<LongTask>; name: string }) {
  const { now, busy, wrong, stop } = task;
  if (!now) return null;
  return <>
    <progress aria-label={`Steps of the ${name}`} max={now.total || 1} value={now.total ? now.done : undefined} />
    <p role="status">{now.step}{now.total ? ` (${now.done} of ${now.total})` : now.done ? ` ${now.done}` : ""}</p>
    <div class="tape-actions tape-end"><button disabled={busy} onClick={stop}>Stop</button></div>
    <Alert text={wrong} />
  </>;
}

interface TaskFormProps {
  task: Watched<LongTask>;
  /** What the button and the group are called. */
  label: string;
  title: string;
  /** As in "Steps of the export". */
  name: string;
  /** There is nothing that could be asked. */
  blocked?: boolean;
  /** What is asked besides what the fields hold. */
  more?: Record<string, unknown>;
  fields: ComponentChildren;
  /** What became of the last one. */
  children: ComponentChildren;
}

/** A button that opens a form, whose fields begin a long task; it is watched in the form's place. */
export function TaskForm({ task, label, title, name, blocked, more, fields, children }: TaskFormProps) {
  const [asking, ask] = useState(false);
  const group = useRef<HTMLDivElement>(null);
  const { now, busy, wrong, start } = task;
  // What had the focus goes away with the form: the keyboard stays in the group, not at the page's start.
  const close = () => {
    group.current?.focus();
    ask(false);
  };
  const send = (form: HTMLFormElement) => {
    start({ ...more, ...Object.fromEntries(new FormData(form)) });
    close();
  };
  return <div class="tape-export" role="group" aria-label={label} tabIndex={-1} ref={group}>
    {now?.state === "running" ? <Steps task={task} name={name} /> : <>
      {children}
      {asking ? <form onSubmit={(event) => { event.preventDefault(); send(event.currentTarget); }}>
        {fields}
        <div class="tape-actions"><button class="tape-primary">{label}</button><button type="button" onClick={close}>Cancel</button></div>
      </form> : <>
        <div class="tape-actions"><button disabled={busy || blocked} title={title} onClick={() => ask(true)}>{label}…</button></div>
        <Alert text={wrong} />
      </>}
    </>}
  </div>;
}

/** The first field of a form has the focus when it opens. */
export const focused = (field: HTMLInputElement | null): void => field?.focus();

/** What became of it: in words its first line, below it the lines that show it (paths, digests, differences). */
export function Said({ text, wrong }: { text: string; wrong: boolean }) {
  const [first, ...more] = text.split("\n");
  return <><p class={wrong ? "tape-wrong" : ""} role={wrong ? "alert" : undefined}>{first}</p>{more.length > 0 && <pre tabIndex={0}>{more.join("\n")}</pre>}</>;
}
