/** The stack of the user's code at a stop, innermost first; source around each line, and its variables as they are now. */
import { useState } from "preact/hooks";
import type { Desk } from "../store.ts";
import { Alert, useLate } from "../edit/widgets.tsx";
import { useAsked } from "../hooks.ts";
import { exact, many } from "../format.ts";
import type { StepFrame, StepStrand, StepVariables } from "../protocol.ts";
import { Compare } from "./compare.tsx";
import type { Stepper } from "./stepper.ts";
import { place } from "./labels.ts";

interface FramesProps { desk: Desk; stepper: Stepper; at: StepStrand }

export function Frames({ desk, stepper, at }: FramesProps) {
  const { strand, call } = at;
  const { value: frames, error } = useAsked(() => desk.client.ask<StepFrame[]>("step.frames", { strand }), [desk, strand, call.place]);
  const [chosen, choose] = useState(0);
  const late = useLate(!frames && !error);
  const frame = frames?.find(({ index }) => index === chosen) ?? frames?.[0];
  return <section class="step-where" aria-label="Where it stopped">
    <h3>Where</h3>
    {error && <Alert text={error} />}
    {late && <p class="tape-dim" role="status">Reading the stack…</p>}
    {frames?.length === 0 && <p class="tape-dim">No frame of the notebook's code is on this stack.</p>}
    {frames && frame && <div class="step-columns">
      <div>
        <List frames={frames} frame={frame} onFrame={({ index, cell }) => {
          choose(index);
          if (cell && desk.able.cells) void desk.client.ask("select", { span: "", cell }).catch(() => undefined);
        }} />
        <Source frame={frame} />
      </div>
      <div>
        <Variables key={frame.index} desk={desk} strand={strand} frame={frame} />
        <Compare desk={desk} stepper={stepper} call={call} />
      </div>
    </div>}
  </section>;
}

function List({ frames, frame, onFrame }: { frames: readonly StepFrame[]; frame: StepFrame; onFrame: (frame: StepFrame) => void }) {
  const onKeyDown = (event: KeyboardEvent): void => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const next = by && frames[frames.indexOf(frame) + by];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    if (!next) return;
    onFrame(next);
    (event.currentTarget as Element).querySelectorAll<HTMLElement>("[role=option]")[frames.indexOf(next)]?.focus();
  };
  return <div class="step-frames" role="listbox" aria-label="Frames, innermost first" onKeyDown={onKeyDown}>
    {frames.map((each) => <div key={each.index} role="option" aria-selected={each === frame} tabIndex={each === frame ? 0 : -1} onClick={() => onFrame(each)}>
      {place(each)}{each.left_out > 0 && <small> · {many(each.left_out, "frame")} of libraries above</small>}</div>)}
  </div>;
}

function Source({ frame: { source, first, line } }: { frame: StepFrame }) {
  if (!source.length) return <p class="tape-dim">Its source is not at hand.</p>;
  const wide = String(first + source.length).length;
  return <pre class="tape-code step-source" role="group" aria-label="Source" tabIndex={0}>{source.map((text, at) => {
    const here = first + at === line;
    return <div key={at} class={here ? "step-line step-here" : "step-line"} {...(here ? { "aria-current": "step" } : {})}><i aria-hidden="true">{String(first + at).padStart(wide)} </i>{text || " "}</div>;
  })}</pre>;
}

function Variables({ desk, strand, frame }: { desk: Desk; strand: string; frame: StepFrame }) {
  const { value, error } = useAsked(() => desk.client.ask<StepVariables>("step.variables", { strand, frame: frame.index }), [desk, strand, frame.index]);
  const late = useLate(!value && !error);
  if (error) return <Alert text={error} />;
  if (!value) return <p class="tape-dim" role="status">{late ? "Reading the variables…" : ""}</p>;
  const { variables, total } = value;
  if (!variables.length) return <p class="tape-dim">No variables here.</p>;
  return <>
    <dl class="step-variables" aria-label={`Variables of ${place(frame)}`}>
      {variables.map(({ name, type, text, whole }) => <div key={name}><dt><b>{name}</b> <small>{type}</small></dt><dd class="tape-code">{text}{whole ? "" : " …"}</dd></div>)}
    </dl>
    {total > variables.length && <p class="tape-dim">{exact(total - variables.length)} more are not shown.</p>}
  </>;
}
