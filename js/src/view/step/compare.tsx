/** The notebook's variables at an earlier stop, beside those of now. */
import { useState } from "preact/hooks";
import type { Desk } from "../store.ts";
import { Alert } from "../edit/widgets.tsx";
import { useAsked } from "../hooks.ts";
import type { StepCall, StepCompared } from "../protocol.ts";
import type { Stepper } from "./stepper.ts";
import { Beside } from "../panels/changedFields.tsx";

export function Compare({ desk, stepper, call }: { desk: Desk; stepper: Stepper; call: StepCall }) {
  const [with_, set] = useState("");
  const others = stepper.stood.filter(({ place }) => place !== call.place);
  if (!others.length) return null;
  return <div class="step-compare">
    <label class="tape-dim">changed since <select value={with_} onChange={(event) => set(event.currentTarget.value)}>
      <option value="">…</option>
      {others.toReversed().map(({ place, nth, title }) => <option key={place} value={place}>{`call ${nth}: ${title}`.slice(0, 60)}</option>)}
    </select></label>
    {with_ && <Compared desk={desk} a={with_} b={call.place} />}
  </div>;
}

function Compared({ desk, a, b }: { desk: Desk; a: string; b: string }) {
  const { value, error } = useAsked(() => desk.client.ask<StepCompared>("step.compare", { a, b }), [desk, a, b]);
  if (error) return <Alert text={error} />;
  if (!value) return null;
  return <>
    {value.variables.length === 0 && <p role="status">No variable of the notebook differs.</p>}
    {value.variables.length > 0 && <Beside label="Variables" look="tape-code" heads={["variable", "then", "now"]} rows={value.variables.map(({ name, before, after }) => [name, before, after])} />}
    {value.note && <p class="tape-dim">{value.note}</p>}
  </>;
}
