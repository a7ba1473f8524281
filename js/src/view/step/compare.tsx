/** The notebook's variables at an earlier stop, beside those of now. */
import { useState } from "preact/hooks";
import type { Desk } from "../store.ts";
import { Alert, Runs } from "../edit/widgets.tsx";
import { words } from "../edit/labels.ts";
import { useAsked } from "../hooks.ts";
import type { StepCall, StepCompared } from "../protocol.ts";
import type { Stepper } from "./stepper.ts";
import { Wide } from "../panels/wide.tsx";

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
    {value.variables.length > 0 && <Wide label="Variables"><table class="tape-fields-table">
      <thead><tr><th scope="col">variable</th><th scope="col">then</th><th scope="col">now</th></tr></thead>
      <tbody>{value.variables.map(({ name, before, after }) => {
        const runs = words(before, after);
        return <tr key={name}><th scope="row"><code>{name}</code></th>
          <td class="tape-code"><Runs runs={runs.filter(({ mark }) => mark !== "new")} /></td><td class="tape-code"><Runs runs={runs.filter(({ mark }) => mark !== "gone")} /></td></tr>;
      })}</tbody></table></Wide>}
    {value.note && <p class="tape-dim">{value.note}</p>}
  </>;
}
