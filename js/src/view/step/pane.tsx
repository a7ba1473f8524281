/** The call that the cell stands at: what it will get, what it asks, and where in the code it stands. */
import { useEffect, useRef } from "preact/hooks";
import { Conversation } from "../conversation.tsx";
import { ChangedFields } from "../panels/changedFields.tsx";
import { EditPane } from "../panels/pane.tsx";
import type { StopProps } from "../edit/store.ts";
import { useLook } from "../store.ts";
import { useAsked } from "../hooks.ts";
import { Text } from "../json.tsx";
import type { Detail, Edit, StepCall, StepStrand, Turn } from "../protocol.ts";
import { Frames } from "./frames.tsx";
import { Fail, Write } from "./manualAnswer.tsx";
import { useStepper, type Stepper } from "./stepper.ts";
import { fate, kind } from "./labels.ts";

export function StopPane(props: StopProps) {
  const { desk, stepper, narrow } = props;
  const { at, state, shown } = useStepper(stepper);
  useLook(desk);
  const node = useRef<HTMLElement>(null);
  useTop(node, shown?.call.place);
  if (!shown) return null;
  const { call } = shown;
  return <aside ref={node} class={`step-pane${at ? "" : " step-left"}`} aria-label={`The stop: ${call.title}`} aria-busy={!at}>
    <header class="step-head">
      {narrow && <button class="back" aria-label="Show the list" onClick={() => { stepper.show(false); desk.close(); }}>←</button>}
      <h2>{call.title}</h2>
      <small>{[`call ${call.nth}`, kind(call), fate(call)].join(" · ")}</small>
    </header>
    {at && stepper.writing ? <Writes {...props} at={at} /> : <div class="step-body" tabIndex={-1}>
      <Said {...props} call={call} record={state?.mode === "record"} />
      <Frames key={`${shown.strand} ${call.place}`} desk={desk} stepper={stepper} at={shown} />
    </div>}
  </aside>;
}

/** A new stop is read from its top. */
function useTop(node: { readonly current: HTMLElement | null }, place: string | undefined): void {
  useEffect(() => {
    const body = node.current?.querySelector(".step-body");
    if (body) body.scrollTop = 0;
  }, [node, place]);
}

function Writes({ work, stepper, at }: StopProps & { at: StepStrand }) {
  const close = (): void => stepper.open(null);
  const { writing } = stepper;
  if (writing === "hand" || writing === "request") return <Write key={writing} work={work} stepper={stepper} call={at.call} what={writing} onClose={close} />;
  if (writing === "fault" && !at.call.span) return <Fail key="fail" stepper={stepper} call={at.call} onClose={close} />;
  const serve = (edit: Edit, accept: boolean): Promise<void> =>
    edit.form === "fault" ? stepper.do("fault", { name: edit.name, options: edit.options }) : stepper.do("edit", { edit, accept });
  return <EditPane work={work} span={at.call.span} start={writing === "fault" ? "fault" : undefined} serve={serve} onClose={close} />;
}

/** Request and reply; of a model call as they were said. What counts most stands first. */
function Said({ desk, stepper, call, record }: StopProps & { call: StepCall; record: boolean }) {
  const { value: detail } = useAsked<Detail | null>(() => (call.span ? desk.detail(call.span).catch(() => null) : Promise.resolve(null)), [desk, call.span, call.edited, desk.spans.revision]);
  const known = detail?.id === call.span && (!call.edited || detail.overridden !== null) ? detail.turns : [];
  const answers = known.at(-1)?.role === "assistant" ? known.slice(-1) : [];
  const asks = answers.length ? known.slice(0, -1) : [];
  const reply = <Reply key="reply" stepper={stepper} call={call} turns={answers} />;
  const request = <Request key="request" stepper={stepper} call={call} turns={asks} open={record || call.would !== "play"} />;
  return <>{record || call.would === "live" ? [request, reply] : [reply, request]}</>;
}

function Reply({ stepper, call, turns }: { stepper: Stepper; call: StepCall; turns: readonly Turn[] }) {
  const tool = call.kind === "tool" || call.kind === "retrieval";
  const name = call.would === "refuse" ? "Not on the tape" : tool ? "The result it will get" : "The reply it will get";
  return <section class="step-reply" aria-label={name}>
    <h3>{call.edited ? "✎ " : ""}{name}</h3>
    <div class={call.edited ? "step-said step-edited" : "step-said"}>
      {turns.length ? <Conversation turns={turns} changed={call.edited} /> : call.fields.length ? <ChangedFields fields={call.fields} /> : call.reply ? <Text section={call.reply} label={name} /> : <p class="tape-dim">{none(call)}</p>}
    </div>
    <div class="tape-actions">
      {stepper.can("edit") && <button class="tape-primary" data-back="edit" title="Edit reply  e" aria-keyshortcuts="e" onClick={() => stepper.open("reply")}>Edit reply</button>}
      {stepper.can("answer") && <button onClick={() => stepper.open("hand")}>Answer by hand…</button>}
      {stepper.can("fault") && (call.span || call.faults.length > 0) && <button title="Make it fail: 429, a reset, a timeout" onClick={() => stepper.open("fault")}>Fault…</button>}
      {stepper.can("live") && call.would !== "live" && <button title="Send this one call; it may cost money" onClick={() => void stepper.do("live")}>Let it go live</button>}
      {stepper.can("refuse") && <button title="Nothing is sent; the program sees an error" onClick={() => void stepper.do("refuse")}>Refuse</button>}
    </div>
  </section>;
}

function none({ would }: StepCall): string {
  if (would === "live") return "What the server answers.";
  return would === "refuse" ? "None." : "Not shown.";
}

function Request({ stepper, call, turns, open }: { stepper: Stepper; call: StepCall; turns: readonly Turn[]; open: boolean }) {
  const tool = call.kind === "tool" || call.kind === "retrieval";
  return <details class="step-request" open={open}>
    <summary>{tool ? "Its arguments" : "What it asks"}</summary>
    <div class="step-said">{turns.length ? <Conversation turns={turns} changed={false} /> : <Text section={call.request} label="Request" />}</div>
    {stepper.can("request") && call.request_edit !== null && <div class="tape-actions">
      <button data-back="request" onClick={() => stepper.open("request")}>{tool ? "Change the arguments…" : "Change the request…"}</button></div>}
    {call.unchangeable && <p class="tape-dim">{call.unchangeable}</p>}
  </details>;
}
