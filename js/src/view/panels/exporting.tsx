/** The session as one file: begun, watched and ended here; the kernel does it in a process of its own (viewer_export.py). */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Exporting } from "../protocol.ts";
import { Alert, useDoing } from "../edit/widgets.tsx";
import type { Work } from "../edit/store.ts";

const PAUSE = 400;

export function Export({ work }: { work: Work }) {
  const [now, set] = useState<Exporting | null>(null);
  const { busy, wrong, go } = useDoing();
  const here = useRef(true);
  useEffect(() => () => void (here.current = false), []);
  const look = useCallback(async (): Promise<void> => {
    const told = await work.ask<Exporting>("export", { look: true });
    if (here.current) set(told);
  }, [work]);
  useEffect(() => void look().catch(() => undefined), [look]);
  const running = now?.state === "running";
  useEffect(() => {
    if (!running) return;
    const timer = setInterval(() => void look().catch(() => undefined), PAUSE);
    return () => clearInterval(timer);
  }, [running, look]);
  const start = (more: Record<string, boolean> = {}) => go(async () => set(await work.ask<Exporting>("export", more)));
  if (now && running) {
    return <div class="tape-export" role="group" aria-label="Export">
      <progress aria-label="Steps of the export" max={now.total || 1} value={now.total ? now.done : undefined} />
      <p role="status">{now.step}{now.total ? ` (${now.done} of ${now.total})` : ""}</p>
      <div class="tape-actions tape-end"><button disabled={busy} onClick={() => go(() => work.ask("export.stop"))}>Stop</button></div>
      <Alert text={wrong} />
    </div>;
  }
  return <div class="tape-export" role="group" aria-label="Export">
    {now?.state === "done" && <p role="status"><b>{now.differs ? "Exported, with differences" : "Exported and proven"}</b></p>}
    {now?.text && <Said text={now.text} wrong={now.state === "failed"} />}
    <div class="tape-actions">
      <button class="tape-primary" disabled={busy} title="One file that replays this session anywhere, and proves it" onClick={() => start()}>{now?.text ? "Export again" : "Export…"}</button>
      {now?.secret && <button disabled={busy} onClick={() => start({ redact: true })}>Mask the secrets</button>}
      {now?.state === "failed" && now.differs && <button disabled={busy} onClick={() => start({ allow_differences: true })}>Export all the same</button>}
    </div>
    <Alert text={wrong} />
  </div>;
}

/** What became of it: in words its first line, below it the lines that show it (paths, digests, differences). */
function Said({ text, wrong }: { text: string; wrong: boolean }) {
  const [first, ...more] = text.split("\n");
  return <><p class={wrong ? "tape-wrong" : ""}>{first}</p>{more.length > 0 && <pre tabIndex={0}>{more.join("\n")}</pre>}</>;
}
