/** What a person writes in a call's place: its reply, or the request that goes out. */
import { useEffect, useRef, useState } from "preact/hooks";
import { faultOf } from "../panels/draft.ts";
import { Faults } from "../panels/faults.tsx";
import { wrongJson } from "../panels/json.ts";
import { Code, free, Text, useFocusBack } from "../panels/controls.tsx";
import { Alert, escape, useDoing, useName } from "../edit/widgets.tsx";
import type { Draft } from "../panels/draft.ts";
import type { Work } from "../edit/store.ts";
import type { StepCall } from "../protocol.ts";
import type { Stepper } from "./stepper.ts";

interface WriteProps { work: Work; stepper: Stepper; call: StepCall; what: "hand" | "request"; onClose: () => void }

export function Write({ work, stepper, call, what, onClose }: WriteProps) {
  const value = call.kind === "tool" || call.kind === "retrieval";
  const { label, does, before, json } = what === "request"
    ? { label: value ? "Arguments as JSON" : "The request's body", does: "Change the request", before: call.request_edit ?? "", json: wrongJson(call.request_edit ?? "") === "" }
    : { label: value ? "The value it returns, as JSON" : "The text of the reply", does: "Answer with this", before: "", json: value };
  const [text, set] = useState(before);
  const { busy, wrong, go } = useDoing();
  const place = useRef<HTMLFormElement>(null);
  const id = useName();
  useFocusBack(place, what === "request" ? "request" : "edit");
  useEffect(() => {
    const field = place.current?.querySelector<HTMLElement>("textarea");
    if (field && free(field)) field.focus({ preventScroll: true });
  }, []);
  const bad = json && wrongJson(text) !== "";
  const able = !busy && !bad && (what === "hand" || text !== before);
  const give = (): void => go(() => stepper.do(what === "request" ? "request" : "answer", { text }));
  return <form ref={place} class="tape-edit" aria-label={label} onKeyDown={(event) => escape(event, onClose)} onSubmit={(event) => { event.preventDefault(); if (able) give(); }}>
    <div class="tape-fields"><div class="tape-field">
      {json ? <><span class="tape-label">{label}</span><Code work={work} value={text} recorded={before || null} json label={label} invalid={bad} onChange={set} /></>
        : <><label class="tape-label" for={id}>{label}</label><Text id={id} rows={5} value={text} onChange={set} /></>}
      <p class="tape-wrong" role="status">{bad && text ? "✕ Not JSON yet." : ""}</p>
    </div></div>
    <footer class="tape-foot">
      <Alert text={wrong} />
      <div class="tape-actions">
        <button type="submit" class="tape-primary" disabled={!able}>{does}</button>
        <button type="button" onClick={onClose}>Cancel</button>
        <span class="tape-dim">{what === "request" ? "the call stays stopped" : "the cell goes on to its next call"}</span>
      </div>
    </footer>
  </form>;
}

/** A fault for a call that is not on the tape. */
export function Fail({ stepper, call: { faults }, onClose }: Pick<WriteProps, "stepper" | "call" | "onClose">) {
  const [fault, set] = useState<Draft["fault"]>({ name: faults[0]?.name ?? "", options: {} });
  const { busy, wrong, go } = useDoing();
  const place = useRef<HTMLFormElement>(null);
  useFocusBack(place, "edit");
  useEffect(() => place.current?.querySelector<HTMLElement>("input")?.focus({ preventScroll: true }), []);
  const give = (): void => go(() => stepper.do("fault", faultOf(fault, faults)));
  return <form ref={place} class="tape-edit" aria-label="Fault" onKeyDown={(event) => escape(event, onClose)} onSubmit={(event) => { event.preventDefault(); give(); }}>
    <div class="tape-fields"><Faults faults={faults} fault={fault} onType={set} /></div>
    <footer class="tape-foot">
      <Alert text={wrong} />
      <div class="tape-actions">
        <button type="submit" class="tape-primary" disabled={busy}>Make it fail</button>
        <button type="button" onClick={onClose}>Cancel</button>
        <span class="tape-dim">nothing is sent</span>
      </div>
    </footer>
  </form>;
}
