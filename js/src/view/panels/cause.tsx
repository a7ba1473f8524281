/** Which difference between two recordings makes a check fail: asked here, searched for by the kernel (`tape why`). */
import type { Causing } from "../protocol.ts";
import { arrows, useName } from "../edit/widgets.tsx";
import type { Work } from "../edit/store.ts";
import { focused, Said, TaskForm, useLongTask } from "./longTask.tsx";
import { Wide } from "./wide.tsx";

/** `good`, `bad`: what is proposed; "" is the recording itself. `cassette` "": the one that is shown. */
export function FindCause({ work, takes, cassette = "", good = "", bad = "" }: { work: Work; takes: readonly string[]; cassette?: string; good?: string; bad?: string }) {
  const task = useLongTask<Causing>(work, "why");
  const { now } = task;
  const hint = useName();
  const sides = ["", ...takes];
  const alone = sides.length < 2;
  const other = sides.find((name) => name !== bad && name !== good) ?? "";
  const side = (name: string, label: string, chosen: string) => <label>{label}<select name={name} defaultValue={chosen}>
    {sides.map((each) => <option key={each} value={each} selected={each === chosen}>{each || "the recording"}</option>)}</select></label>;
  const fields = <>
    {side("good", "It passes with", good === bad ? other : good)}
    {side("bad", "It fails with", bad)}
    <label>What must hold<input name="check" aria-describedby={hint} placeholder={'decision == "refund"'} spellcheck={false} ref={focused} /></label>
    <p id={hint} class="tape-dim">Python over the notebook's variables; or cell:4 (does not raise), output:4 (as saved), a pytest file</p>
  </>;
  const title = alone ? "There is one recording only: nothing to compare it with" : "Which difference between two takes makes a check fail: found by offline replays";
  return <TaskForm task={task} label="Find the cause" title={title} name="search" blocked={alone} more={{ cassette }} fields={fields}>
    {now?.state === "done" && <Found work={work} now={now} />}
    {now?.state === "failed" && <Said text={now.text} wrong />}
  </TaskForm>;
}

function Found({ work, now: { words, layers, tree, text } }: { work: Work; now: Causing }) {
  const [first, ...more] = words;
  return <>
    <p role="status"><b>{first}</b></p>
    <pre tabIndex={0}>{more.join("\n")}</pre>
    <Wide label="Layers"><table class="tape-table"><thead><tr><th scope="col">layer</th><th scope="col">all of it from the good one</th></tr></thead>
      <tbody>{layers.map(([layer, told]) => <tr key={layer}><th scope="row">{layer}</th><td>{SAID[told] ?? told}</td></tr>)}</tbody></table></Wide>
    <ul class="tape-aligned">{tree.map(({ id, span, title, depth, differs, culprit }, at) => <li key={`${at} ${id}`} class={culprit ? "tape-culprit" : ""} style={{ paddingInlineStart: `${14 * depth}px` }}>
      <span class="tape-sign" role="img" aria-label={culprit ? "the cause" : differs ? "differs" : "the same"}>{culprit ? "▶" : differs ? "≠" : ""}</span>
      {span ? <button class="tape-row-button" onClick={() => work.openSpan(span)}>{arrows(title)}</button> : <span>{arrows(title)}</span>}</li>)}</ul>
    <p class="tape-dim">{text}</p>
  </>;
}

const SAID: Record<string, string> = { flips: "the check holds", stays: "it still fails", unresolved: "unknown", "not swapped": "differs; cannot be swapped offline" };
