/** The bar of a stepped cell: what can be done now, where it stands, and who stands where several do. */
import { useLook, type Desk } from "../store.ts";
import { Alert, useLate } from "../edit/widgets.tsx";
import { many } from "../format.ts";
import type { StepState, StepStrand } from "../protocol.ts";
import { able, COMMANDS, run, type Command } from "./keys.ts";
import { useStepper, type Stepper } from "./stepper.ts";
import { says } from "./labels.ts";

export interface StepProps { desk: Desk; stepper: Stepper; narrow: boolean }

export function StepBar({ desk, stepper }: StepProps) {
  const { active, session } = useLook(desk);
  const { state, at, wrong, told } = useStepper(stepper);
  // Between two stops the cell runs for a moment: nothing blinks.
  const moving = useLate(state?.state === "running" || state?.state === "rewinding");
  if (!state) return <div class="step-bar"><p class="step-says" role="status">{told}</p><Alert text={wrong} /><button onClick={() => stepper.dismiss()}>Close</button></div>;
  const over = state.state === "over";
  return <div class={`step-bar step-${state.state}`} role="group" aria-label="Step">
    {!over && <div class="step-does">
      {COMMANDS.map((command) => <Does key={command.word} command={command} on={able(command, stepper, active)} primary={command.word === "over"} onDo={() => run(command, stepper, active)} />)}
    </div>}
    <p class="step-says" role="status">{!at && !moving && !over ? "" : <Says state={state} at={at} />}</p>
    {state.take && <p class="step-take">✎ {many(state.edits, "edit")} in take {over && session && session.take !== state.take
      ? <button class="tape-link" onClick={() => void desk.change("open", { cassette: state.cassette, take: state.take })}>{state.take}</button> : <b>{state.take}</b>}</p>}
    {!state.take && state.plays && <p class="tape-dim">take: <b>{state.plays}</b></p>}
    {!over && state.breaks.length > 0 && <p class="tape-dim">stops at {state.breaks.map((each) => <code key={each}>{each}</code>)}</p>}
    {!over && state.note && <p class="tape-dim">{state.note}</p>}
    {over && <button onClick={() => stepper.dismiss()}>Close</button>}
    <Alert text={wrong} />
    {state.state === "stopped" && state.strands.length > 1 && <Strands stepper={stepper} strands={state.strands} at={at} />}
  </div>;
}

function Does({ command, on, primary, onDo }: { command: Command; on: boolean; primary: boolean; onDo: () => void }) {
  const { word, key, name, says: what, sign } = command;
  // Not `disabled`: the focus would be lost at each step.
  return <button class={`step-${word}${primary ? " tape-primary" : ""}`} title={`${what}  ${key}`} aria-keyshortcuts={key} aria-disabled={!on} onClick={() => on && onDo()}>
    {sign && <span class="step-sign" aria-hidden="true">{sign}</span>}<span>{name}</span><kbd aria-hidden="true">{key}</kbd>
  </button>;
}

function Says({ state, at }: { state: StepState; at: StepStrand | null }) {
  return <><b>{says(state, at)}</b>{at && <span class="step-title">{at.call.title}</span>}</>;
}

/** Each stands at a call of its own; what is done is done to the one in front. */
function Strands({ stepper, strands, at }: { stepper: Stepper; strands: readonly StepStrand[]; at: StepStrand | null }) {
  const onKeyDown = (event: KeyboardEvent): void => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    const next = (strands.findIndex((each) => each === at) + by + strands.length) % strands.length;
    stepper.choose(strands[next]?.strand ?? "");
    ((event.currentTarget as Element).children[next] as HTMLElement | undefined)?.focus();
  };
  return <div class="step-strands" role="tablist" aria-label={`${many(strands.length, "strand")} stopped`} onKeyDown={onKeyDown}>
    {strands.map((each) => <button key={each.strand} role="tab" aria-selected={each === at} tabIndex={each === at ? 0 : -1} onClick={() => stepper.choose(each.strand)}>
      <b>{each.strand ? each.name : "cell"}</b> <span class="step-title">{each.call.title}</span></button>)}
  </div>;
}
