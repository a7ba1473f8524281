/** A command that the kernel runs in a process of its own: begun, watched and ended here. */
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

/** What became of it: in words its first line, below it the lines that show it (paths, digests, differences). */
export function Said({ text, wrong }: { text: string; wrong: boolean }) {
  const [first, ...more] = text.split("\n");
  return <><p class={wrong ? "tape-wrong" : ""}>{first}</p>{more.length > 0 && <pre tabIndex={0}>{more.join("\n")}</pre>}</>;
}
