/** The recording and its takes: which one is open, what each is made from, and what to do with it. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Session, Take } from "../protocol.ts";
import { many } from "../format.ts";
import type { TakesProps, Work } from "../edit/store.ts";
import { Alert, useDoing } from "../edit/widgets.tsx";
import { FindCause } from "./cause.tsx";
import { Export } from "./exporting.tsx";
import { Import } from "./importing.tsx";

export function Takes({ work, session, able, onClose }: TakesProps) {
  const list = useRef<HTMLDivElement>(null);
  const { busy, wrong, go } = useDoing();
  useEffect(() => list.current?.querySelector<HTMLElement>("[aria-current] button, button")?.focus(), []);
  const show = (take: string) => go(async () => {
    await work.take("open", { cassette: session.cassette, take });
    onClose();
  });
  const [now] = useState(session.take); // what is said of it stays, when it is put aside
  return <div ref={list} role="group" aria-label="Takes">
    <ul class="tape-chain">
      <li aria-current={session.take === "" ? "true" : undefined}>
        <button class="tape-row-button" disabled={busy} onClick={() => show("")}>
          <b>{session.take === "" ? "● " : "○ "}the recording</b><small>the original, never changed{session.default_take === "" ? " · default" : ""}</small></button>
      </li>
      {chain(session.takes).map(({ take, depth }) => <li key={take.name} aria-current={session.take === take.name ? "true" : undefined}>
        <button class="tape-row-button" style={{ paddingInlineStart: `${6 + 14 * depth}px` }} disabled={busy} onClick={() => show(take.name)}>
          <b>{session.take === take.name ? "● " : "○ "}{take.name}</b><small>{about(take)}{session.default_take === take.name ? " · default" : ""}</small></button>
      </li>)}
    </ul>
    {!session.takes.length && <p class="tape-dim">No takes yet: edit a reply, and its change becomes one.</p>}
    {now && able.override && <TakeActions work={work} take={now} isDefault={session.default_take === now} onPlan={able.rerun ? onClose : undefined} />}
    <Alert text={wrong} />
    {able.override && <FindCause work={work} cassette={session.cassette} takes={session.takes.map(({ name }) => name)} bad={session.take} />}
    {able.override && <Export work={work} />}
    {able.override && <Import work={work} />}
  </div>;
}

interface ActionsProps { work: Work; take: string; isDefault: boolean; onPlan?: (() => void) | undefined; onDone?: (() => void) | undefined; onAside?: ((aside: boolean) => void) | undefined }

/** What can be done with a take; also the foot of the comparison. */
export function TakeActions({ work, take, isDefault, onPlan, onDone, onAside }: ActionsProps) {
  const { busy, wrong, go } = useDoing();
  /** What is there once the take was put aside. */
  const [aside, put] = useState<Session | null>(null);
  const [asked, ask] = useState(false);
  const run = (about: "keep" | "discard" | "default" | "undo", body = take) => go(async () => {
    const session = await work.take(about, { take: body });
    put(about === "discard" ? session : null);
    onAside?.(about === "discard");
    ask(false);
    if (about === "keep" || about === "default") onDone?.();
  });
  if (aside) {
    const cells = aside.cells ?? [];
    return <p class="tape-actions" role="status"><span>{take} is moved aside; the recording is as it was.{cells.length > 0 && " The cells of the notebook still show what the take gave."}</span>
      {cells.length > 0 && <button class="tape-primary" onClick={() => { onPlan?.(); void work.plan(aside.cassette, cells); }}>Re-run them on the recording…</button>}
      <button disabled={busy} onClick={() => run("undo")}>Undo</button>
      {onDone && <button onClick={onDone}>Close</button>}<Alert text={wrong} /></p>;
  }
  if (asked) {
    return <p class="tape-actions" role="status"><span>From now on {take} is replayed when no take is named. The recording stays; <i>Not the default</i>, among the takes, takes it back.</span>
      <button class="tape-primary" disabled={busy} onClick={() => run("default")}>Make it the default</button><button onClick={() => ask(false)}>Leave it</button><Alert text={wrong} /></p>;
  }
  return <div class="tape-actions">
    {onDone && <button class="tape-primary" disabled={busy} onClick={() => run("keep")}>Keep</button>}
    {onPlan && <button class="tape-primary" disabled={busy} onClick={() => { onPlan(); void work.plan(take); }}>Re-run…</button>}
    <button disabled={busy} onClick={() => run("discard")}>{onDone ? "Discard" : "Put aside"}</button>
    {isDefault ? <button disabled={busy} onClick={() => run("default", "")}>Not the default</button>
      : <button disabled={busy} onClick={() => ask(true)} title="replayed when no take is named">Make default…</button>}
    {!onDone && <button disabled={busy} onClick={() => run("undo")}>Undo last change</button>}
    <Alert text={wrong} />
  </div>;
}

/** Takes after what they were made from, each with how far it is from the recording. */
export function chain(takes: readonly Take[]): { take: Take; depth: number }[] {
  const names = new Set(takes.map(({ name }) => name));
  const below = (of: string | null, depth: number): { take: Take; depth: number }[] => depth > takes.length ? [] : takes
    .filter((take) => (names.has(take.of) && take.of !== take.name ? take.of : null) === of)
    .flatMap((take) => [{ take, depth }, ...below(take.name, depth + 1)]);
  return below(null, 1);
}

function about({ overrides, calls, stale, of }: Take): string {
  return [many(overrides, "change"), calls ? many(calls, "new call") : "", stale ? `${stale} stale` : "", of ? `of ${of}` : ""].filter(Boolean).join(" · ");
}
