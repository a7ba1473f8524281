/** Change one reply: opens in place of the detail's panel. What was typed is kept until it is saved or taken back. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Editable, Field, Problem } from "../protocol.ts";
import { begin, bytes, changed, changedIn, edit, part, PARTS, recorded, settled, shown, tabs, tooLong, wrong, type Draft, type Tab } from "./draft.ts";
import { Alert, escape, useName } from "../edit/widgets.tsx";
import { Code, free, Marks, Said, Text, useFocusBack } from "./controls.tsx";
import { Faults } from "./faults.tsx";
import { SaveBar, useCheck } from "./saving.tsx";
import type { PaneProps, Work } from "../edit/store.ts";

const NAMES: Record<Tab, string> = { message: "Message", json: "JSON", value: "Value", raw: "Raw", fault: "Fault" };

export function EditPane({ work, span, start, serve, onClose }: PaneProps) {
  const place = useRef<HTMLDivElement>(null);
  const [of, set] = useState<Editable | null>(null);
  const [failed, fail] = useState("");
  useFocusBack(place, "edit");
  useEffect(() => {
    let gone = false;
    set(null);
    work.ask<Editable>("edit", { span }).then((answer) => gone || set(answer), (error: unknown) => gone || fail((error as Error).message));
    return () => void (gone = true);
  }, [work, span]);
  return <div ref={place} class="tape-edit" role="region" aria-label="Edit reply" onKeyDown={(event) => escape(event, onClose)}>
    {of ? <Form key={span} work={work} span={span} of={of} start={start} serve={serve} onClose={onClose} /> : <Alert text={failed} />}
    {failed && <button onClick={onClose}>Close</button>}
  </div>;
}

function Form({ work, span, of, start, serve, onClose }: PaneProps & { of: Editable }) {
  const form = useRef<HTMLDivElement>(null);
  const [draft, set] = useState<Draft>(() => opened(work.drafts.get(span) ?? begin(of), of, start));
  const [refused, refuse] = useState("");
  const dirty = changed(draft, of);
  const mine = wrong(draft, of);
  const touched = draft.tab === "fault" || changedIn(draft, of, part(draft.tab));
  const what = touched && mine.length === 0 ? edit(draft, of) : null;
  const { problems: theirs, now } = useCheck(work, span, what);
  const problems = touched || mine.length ? [...mine, ...theirs] : [];
  const id = useName();

  const update = (part: Partial<Draft>) => {
    const next = { ...draft, ...part };
    set(next);
    refuse("");
    if (changed(next, of)) work.drafts.set(span, next);
    else work.drafts.delete(span);
  };
  const typed = (part: Partial<Draft>) => update({ ...part, accept: false });
  const revert = () => {
    set({ ...begin(of), tab: draft.tab });
    work.drafts.delete(span);
  };
  useEffect(() => {
    const first = form.current?.querySelector<HTMLElement>("textarea, select, input");
    if (first && free(first)) first.focus({ preventScroll: true });
  }, []);

  const paste = (event: Event, text: string) => {
    const size = bytes(text);
    if (size <= of.limit) return;
    event.preventDefault();
    event.stopPropagation();
    refuse(`${tooLong("What you pasted", size, of.limit)} Nothing was pasted.`);
  };
  const also = PARTS.find((other) => other !== part(draft.tab) && changedIn(draft, of, other));
  return <>
    <Tabs names={tabs(of)} tab={draft.tab} id={id} onTab={(tab) => update({ ...(tab === "json" ? settled(draft, of) : draft), tab })} />
    <div ref={form} class="tape-fields" role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${draft.tab}`}
        onPasteCapture={(event) => paste(event, event.clipboardData?.getData("text/plain") ?? "")}
        onDropCapture={(event) => paste(event, event.dataTransfer?.getData("text/plain") ?? "")}>
      {draft.tab === "message" && <Fields work={work} of={of} draft={draft} problems={problems} onType={typed} />}
      {draft.tab === "json" && <Whole work={work} label="Whole message as JSON" at="json" value={draft.message} before={of.recorded} problems={problems} onType={(message) => typed({ message, fields: {} })} />}
      {draft.tab === "value" && <Whole work={work} label="Returned value as JSON" at="value" value={draft.value} before={of.recorded} problems={problems} onType={(value) => typed({ value })} />}
      {draft.tab === "fault" && <Faults faults={of.faults} fault={draft.fault} onType={(fault) => typed({ fault })} />}
      {draft.tab === "raw" && <Raw work={work} of={of} draft={draft} problems={problems} onType={typed} />}
    </div>
    <footer class="tape-foot">
      <Said problems={problems.filter(({ path }) => !placed(path, of, draft.tab)).map((problem) => ({ ...problem, path: "" }))} at="" />
      <Alert text={refused} />
      {also && <p class="tape-dim">Save takes this tab only; what you changed on the {NAMES[also]} tab is kept here, unsaved.</p>}
      {dirty && <p class="tape-dim">Kept here while the viewer is open. <button class="tape-link" onClick={revert}>undo all changes</button></p>}
      <SaveBar work={work} span={span} serve={serve} edit={what} take={draft.take} accept={draft.accept} problems={problems} check={now}
        onTake={(take) => update({ take })} onAccept={(accept) => update({ accept })} onSaved={onClose} onCancel={onClose} />
    </footer>
  </>;
}

/** The tab asked for; a fault is chosen anew each time. */
function opened(draft: Draft, of: Editable, start: PaneProps["start"]): Draft {
  const first = tabs(of)[0] ?? "raw";
  return { ...draft, tab: start ?? (draft.tab === "fault" ? first : draft.tab) };
}

/** Whether a problem's path has a place of its own on this tab. */
function placed(path: string, of: Editable, tab: Tab): boolean {
  if (tab === "message") return of.fields.some((field) => field.path === path);
  return tab === "raw" ? ["status", "headers", "body"].includes(path) : path === tab;
}

function Tabs({ names, tab, id, onTab }: { names: readonly Tab[]; tab: Tab; id: string; onTab: (tab: Tab) => void }) {
  const list = useRef<HTMLDivElement>(null);
  const key = (event: KeyboardEvent) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const at = (names.indexOf(tab) + by + names.length) % names.length;
    onTab(names[at] ?? tab);
    (list.current?.children[at] as HTMLElement | undefined)?.focus();
  };
  return <div ref={list} class="tape-etabs" role="tablist" aria-label="What to edit" onKeyDown={key}>
    {names.map((name) => <button key={name} role="tab" id={`${id}-${name}`} aria-selected={name === tab} aria-controls={`${id}-panel`}
      tabIndex={name === tab ? 0 : -1} onClick={() => onTab(name)}>{NAMES[name]}</button>)}
  </div>;
}

interface PartProps { work: Work; of: Editable; draft: Draft; problems: readonly Problem[]; onType: (part: Partial<Draft>) => void }

function Fields({ work, of, draft, problems, onType }: PartProps) {
  if (!of.fields.length) return <p class="tape-dim">No text and no tool call in this message: use the JSON tab.</p>;
  return <>{of.fields.map((field) => <OneField key={field.path} work={work} field={field} value={shown(draft, of, field)} before={recorded(of, field)}
    problems={problems} onType={(text) => onType({ fields: { ...draft.fields, [field.path]: text } })} />)}</>;
}

interface FieldProps { work: Work; field: Field; value: string | null; before: string | null; problems: readonly Problem[]; onType: (text: string) => void }

function OneField({ work, field, value, before, problems, onType }: FieldProps) {
  const id = useName();
  const invalid = problems.some(({ path, level }) => path === field.path && level === "error");
  if (value === null) return <Row id={id} field={field}><p class="tape-dim">No longer in the message (see the JSON tab).</p></Row>;
  const common = { value, id, describedBy: `${id}-said`, invalid };
  const back = before !== null && value !== before && <button class="tape-link" onClick={() => onType(before)}>as recorded</button>;
  return <Row id={id} field={field} beside={back}>
    {field.kind === "json" ? <Code work={work} value={value} recorded={before} json label={field.label} invalid={invalid} onChange={onType} />
      : field.kind === "text" ? <Text {...common} onChange={onType} />
      : <Line {...common} choices={field.choices} onChange={onType} />}
    {field.kind !== "json" && before !== null && <Marks before={before} after={value} />}
    <Said problems={problems} at={field.path} id={`${id}-said`} />
  </Row>;
}

function Row({ id, field, beside, children }: { id: string; field: Field; beside?: ComponentChildren; children: ComponentChildren }) {
  return <div class="tape-field">
    <div class="tape-label">{field.kind === "json" ? <span>{field.label}</span> : <label for={id}>{field.label}</label>}{beside}</div>
    {children}
  </div>;
}

interface LineProps { value: string; id: string; describedBy: string; invalid: boolean; choices?: string[] | undefined; onChange: (text: string) => void }

/** A name, or one of some words; a recorded word that is none of them stays one. */
function Line({ value, id, describedBy, invalid, choices, onChange }: LineProps) {
  if (!choices) {
    return <input type="text" id={id} class="tape-code" value={value} spellcheck={false} aria-describedby={describedBy} aria-invalid={invalid} onInput={(event) => onChange(event.currentTarget.value)} />;
  }
  const all = choices.includes(value) ? choices : [value, ...choices];
  return <select id={id} value={value} aria-describedby={describedBy} aria-invalid={invalid} onChange={(event) => onChange(event.currentTarget.value)}>
    {all.map((choice) => <option key={choice} value={choice}>{choice || "(none)"}</option>)}
  </select>;
}

interface WholeProps { work: Work; label: string; at: string; value: string; before: string; problems: readonly Problem[]; onType: (text: string) => void }

function Whole({ work, label, at, value, before, problems, onType }: WholeProps) {
  return <>
    <Code work={work} value={value} recorded={before} json label={label} invalid={problems.some(({ path }) => path === at)} onChange={onType} />
    <Said problems={problems} at={at} />
  </>;
}

function Raw({ work, of, draft, problems, onType }: PartProps) {
  const id = useName();
  const raw = (part: Partial<Draft["raw"]>) => onType({ raw: { ...draft.raw, ...part } });
  const invalid = (at: string) => problems.some(({ path, level }) => path === at && level === "error");
  return <>
    <div class="tape-field"><label for={`${id}-status`}>Status</label>
      <input type="text" inputMode="numeric" id={`${id}-status`} class="tape-code tape-short" value={draft.raw.status} aria-invalid={invalid("status")} aria-describedby={`${id}-1`} onInput={(event) => raw({ status: event.currentTarget.value.trim() })} />
      <Said problems={problems} at="status" id={`${id}-1`} /></div>
    <div class="tape-field"><label for={`${id}-headers`}>Headers</label>
      <Text code id={`${id}-headers`} rows={2} value={draft.raw.headers} invalid={invalid("headers")} describedBy={`${id}-2`} onChange={(headers) => raw({ headers })} />
      <Said problems={problems} at="headers" id={`${id}-2`} /></div>
    <div class="tape-field"><span class="tape-label">Body</span>
      <Code work={work} value={draft.raw.body} recorded={of.raw.body} json={of.raw.json} label="Body" invalid={invalid("body")} onChange={(body) => raw({ body })} />
      <Said problems={problems} at="body" /></div>
  </>;
}
