/** Before and after a re-run: per cell, per span, per variable, and whether a fresh kernel agrees. */
import { useState } from "preact/hooks";
import type { CellChange, Comparison, OutputChange } from "../protocol.ts";
import { align, type Cell } from "./csv.ts";
import { Alert, arrows, Prose, Runs, useDoing } from "../edit/widgets.tsx";
import { FindCause } from "./cause.tsx";
import { Beside } from "./changedFields.tsx";
import { Card } from "./controls.tsx";
import { TakeActions } from "./takes.tsx";
import { lines, type Run } from "../edit/labels.ts";
import type { Work } from "../edit/store.ts";
import { many } from "../format.ts";
import { Wide } from "./wide.tsx";

const MARKS = { same: ["", "the same"], changed: ["≠", "changed"], added: ["+", "new"], gone: ["−", "gone"] } as const;
const MOST = 200; // rows of a table or list that are drawn

export function ComparisonView({ work, comparison, overridable }: { work: Work; comparison: Comparison; overridable: boolean }) {
  const { take, ran, skipped, stopped, cells, spans, variables } = comparison;
  const [aside, put] = useState(false); // the take: neither proved nor shown any more
  const differ = cells.filter((cell) => !cell.same);
  const same = cells.filter((cell) => cell.same);
  return <Card kind="comparison" title={`${many(ran, "cell")} ran, ${differ.length} changed`} onEscape={() => work.dismiss()}>
    {stopped && <p class="tape-wrong" role="alert">Stopped: {stopped}</p>}
    {!aside && <Proof work={work} comparison={comparison} />}
    {comparison.note && <p class="tape-dim"><Prose text={comparison.note} /></p>}
    {skipped.map((text) => <p key={text} class="tape-dim">Not run: <Prose text={text} /></p>)}
    <div class="tape-changes">
      {differ.map((cell) => <Change key={cell.cell} cell={cell} />)}
      {same.length > 0 && <p class="tape-dim">The same as before: {same.map(label).join(", ")}.</p>}
    </div>
    {spans.length > 0 && <Spans work={work} spans={spans} />}
    {variables.length > 0 && <Variables variables={variables} />}
    {overridable && take && !aside && <FindCause work={work} takes={[take]} good={take} />}
    <footer class="tape-foot">
      {overridable && take && <TakeActions work={work} take={take} isDefault={false} onAside={put} onDone={() => work.dismiss()} />}
      {!aside && <div class="tape-actions">{take && <Original work={work} take={take} />}
        <button class="tape-link" onClick={() => work.dismiss()}>close</button></div>}
    </footer>
  </Card>;
}

/** The list above shows the recording, or the take again. */
function Original({ work, take }: { work: Work; take: string }) {
  const [shown, show] = useState(false);
  const { busy, wrong, go } = useDoing();
  const turn = () => go(async () => {
    await work.take("open", { take: shown ? take : "" });
    show(!shown);
  });
  return <><button class="tape-link" disabled={busy} onClick={turn}>{shown ? `show ${take} again` : "show the original"}</button><Alert text={wrong} /></>;
}

function label({ number, title }: CellChange): string {
  return number === null ? title : `[${number}] ${title}`;
}

function Proof({ work, comparison: { take, proof } }: { work: Work; comparison: Comparison }) {
  const { wrong, go } = useDoing();
  const label = { running: "proving in a fresh kernel…", proved: "proved in a fresh kernel ✓", differs: "a fresh kernel differs", "not provable": "not provable" }[proof.state];
  const adopt = () => go(() => work.adopt(take, proof.adopt));
  return <p class={`tape-proof tape-${proof.state.replace(" ", "-")}`} role="status">{label}{proof.text && (proof.state === "differs" || proof.state === "not provable") ? <>: <Prose text={proof.text} /></> : ""}
    {proof.adopt.length > 0 && <> <button onClick={adopt}>Plan with it</button></>}<Alert text={wrong} /></p>;
}

function Change({ cell }: { cell: CellChange }) {
  return <details open class="tape-change">
    <summary><span class="tape-sign" role="img" aria-label="changed">≠</span> <b>{label(cell)}</b></summary>
    {cell.outputs.some(({ kind }) => kind !== "table") && <div class="tape-two tape-heads" aria-hidden="true"><span>before</span><span>after</span></div>}
    {cell.outputs.map((output, at) => <Output key={at} output={output} />)}
  </details>;
}

function Output({ output: { kind, before, after } }: { output: OutputChange }) {
  if (kind === "image") return <div class="tape-two"><Picture url={before} name="before" /><Picture url={after} name="after" /></div>;
  if (kind === "table" && before !== null && after !== null) return <TableChange before={before} after={after} />;
  const bad = kind === "error" ? " tape-error-text" : "";
  if (before === null || after === null) {
    return <div class="tape-two">{[before, after].map((text, at) => text === null ? <p key={at} class="tape-dim">{at ? "nothing now" : "nothing before"}</p> : <pre key={at} class={`tape-code${bad}`}>{text}</pre>)}</div>;
  }
  return <TextChange before={before} after={after} bad={bad} />;
}

/** Only the forms that are pictures and nothing else. */
function Picture({ url, name }: { url: string | null; name: string }) {
  if (url === null) return <p class="tape-dim">no picture {name}</p>;
  return /^data:image\/(?:png|jpeg);base64,[A-Za-z0-9+/]+={0,2}$/.test(url)
    ? <figure><img src={url} alt={`picture ${name}`} /></figure>
    : <p class="tape-dim">a picture that cannot be shown</p>;
}

function TextChange({ before, after, bad }: { before: string; after: string; bad: string }) {
  const [all, showAll] = useState(false);
  return <div class={`tape-hunks tape-code${bad}`}>{lines(before, after).map((hunk, at) => hunk.same
    ? <Same key={at} runs={hunk.before} all={all} onAll={() => showAll(true)} />
    : <div key={at} class="tape-two"><pre><Runs runs={hunk.before} /></pre><pre><Runs runs={hunk.after} /></pre></div>)}</div>;
}

/** Lines that are the same: both columns, the middle of a long stretch folded. */
function Same({ runs, all, onAll }: { runs: readonly Run[]; all: boolean; onAll: () => void }) {
  const text = runs.map((run) => run.text).join("").split("\n");
  const hidden = text.length - 6;
  const block = (part: string[]) => <div class="tape-two tape-both"><pre>{part.join("\n")}</pre><pre aria-hidden="true">{part.join("\n")}</pre></div>;
  if (all || hidden < 3) return block(text);
  return <>{block(text.slice(0, 3))}<button class="tape-link" onClick={onAll}>… {hidden} lines that are the same</button>{block(text.slice(-3))}</>;
}

function TableChange({ before, after }: { before: string; after: string }) {
  const [all, showAll] = useState(false);
  const { columns, rows } = align(before, after);
  const shown = (all ? rows : rows.filter((row) => row.mark !== "same")).slice(0, MOST);
  const differ = [columns, ...rows.flatMap(({ mark, cells }) => (mark === "changed" ? [cells] : []))];
  // The first column says which row it is. Where rows only came or went, every column is theirs.
  const changed = columns.flatMap((_, at) => (at && differ.some((cells) => cells[at]?.before !== cells[at]?.after) ? [at] : []));
  const places = all || !changed.length ? [...columns.keys()] : [0, ...changed];
  const left = [[rows.length - shown.length, "more row"], [columns.length - places.length, "more column"]] as const;
  const more = left.flatMap(([count, name]) => (count ? [many(count, name)] : [])).join(", ");
  const number = columns.map((_, place) => rows.every(({ cells }) => numeric(cells[place])));
  return <Wide label="Rows"><table class="tape-table">
    <thead><tr><th scope="col"><span class="tape-hidden">change</span></th>{places.map((at) => <th key={at} scope="col" class={number[at] ? "tape-number" : ""}><Both cell={columns[at]} /></th>)}</tr></thead>
    <tbody>{shown.map((row, at) => <tr key={at} class={`tape-${row.mark}`}><td class="tape-sign" aria-label={MARKS[row.mark][1]}>{MARKS[row.mark][0]}</td>
      {places.map((place) => <td key={place} class={number[place] ? "tape-number" : ""}><Both cell={row.cells[place]} /></td>)}</tr>)}</tbody>
  </table>{more && <p class="tape-dim">{more}{all ? "" : <>; <button class="tape-link" onClick={() => showAll(true)}>show those that are the same</button></>}</p>}</Wide>;
}

function Both({ cell }: { cell: Cell | undefined }) {
  const [before, after] = [cell?.before, cell?.after];
  return before === after ? <>{before}</> : <>{before && <del>{before}</del>} {after != null && <ins>{after}</ins>}</>;
}

function numeric(cell: Cell | undefined): boolean {
  return [cell?.before ?? null, cell?.after ?? null].every((text) => text === null || /^[-+]?[\d.,]*(?:e[-+]?\d+)?$/i.test(text));
}

function Spans({ work, spans }: { work: Work; spans: Comparison["spans"] }) {
  const [all, showAll] = useState(spans.length <= 12);
  const shown = (all ? spans : spans.filter(({ mark }) => mark !== "same")).slice(0, MOST);
  return <details open class="tape-change"><summary><b>Calls</b> <small>{spans.filter(({ mark }) => mark !== "same").length} of {spans.length} differ</small></summary>
    <ul class="tape-aligned">{shown.map(({ before, after, name, mark, note }, at) => {
      const id = after ?? before;
      return <li key={at} class={`tape-${mark}`}><span class="tape-sign" role="img" aria-label={MARKS[mark][1]}>{MARKS[mark][0]}</span>
        <button class="tape-row-button" disabled={id === null} onClick={() => id !== null && work.openSpan(id)}>{name} <small>{arrows(note)}</small></button></li>;
    })}</ul>
    {!all && <button class="tape-link" onClick={() => showAll(true)}>show those that are the same</button>}
  </details>;
}

function Variables({ variables }: { variables: Comparison["variables"] }) {
  return <details open class="tape-change"><summary><b>Variables</b> <small>{variables.length} changed</small></summary>
    <Beside label="Variables" look="tape-code" heads={["name", "before", "after"]} rows={variables.slice(0, MOST).map(({ name, before, after }) => [name, before, after])} /></details>;
}
