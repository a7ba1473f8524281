/** Which card is in front. */
import { useRef } from "preact/hooks";
import type { CardsProps } from "../edit/store.ts";
import { useLate } from "../edit/widgets.tsx";
import { useWork, type State } from "../edit/store.ts";
import { ComparisonView } from "./comparison.tsx";
import { Card, useFocusBack } from "./controls.tsx";
import { Notes, PlanCard } from "./plan.tsx";
import { DivergenceCard, ProgressBar } from "./running.tsx";

export function Front(props: CardsProps) {
  const state = useWork(props.work);
  const place = useRef<HTMLDivElement>(null);
  useFocusBack(place, "edit");
  return <div ref={place} class="tape-cards">{card(props, state)}</div>;
}

function card({ work, able }: CardsProps, state: State) {
  switch (state.phase) {
    case "idle": return null;
    case "planning": return <Planning />;
    case "plan": return <PlanCard key={`${state.plan.take} ${state.plan.cells.map(({ entry }) => entry).join(" ")}`} work={work} plan={state.plan} notes={state.notes} able={able} />;
    case "running": return state.divergence
      ? <DivergenceCard key={state.divergence.id} work={work} divergence={state.divergence} />
      : <ProgressBar work={work} progress={state.progress} canceling={state.canceling} />;
    case "done": return <ComparisonView key={state.comparison.take} work={work} comparison={state.comparison} overridable={able.override} />;
    case "failed": return <Card kind="failed" title={state.title} onEscape={() => work.dismiss()}>
      <Notes notes={state.notes} />
      <p class="tape-wrong" role="alert">{state.text}</p>
      <div class="tape-actions tape-end"><button onClick={() => work.dismiss()}>Close</button></div></Card>;
  }
}

function Planning() {
  return useLate(true) ? <Card kind="planning" title="Finding what depends on it"><p role="status">…</p></Card> : null;
}
