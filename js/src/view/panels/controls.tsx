/** Small parts that several cards are made of. */
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { EditorHandle } from "../../editor/types.ts";
import type { Problem } from "../protocol.ts";
import { escape, Runs, useName } from "../edit/widgets.tsx";
import { words, type Run } from "../edit/labels.ts";
import type { Work } from "../edit/store.ts";

/** A region with a heading, into which the focus moves when it opens, unless the person is at work elsewhere. */
export function Card({ title, kind, children, onEscape }: { title: string; kind: string; children: ComponentChildren; onEscape?: () => void }) {
  const heading = useRef<HTMLHeadingElement>(null);
  const id = useName();
  useEffect(() => {
    if (heading.current && free(heading.current)) heading.current.focus();
  }, []);
  return <section class={`tape-card tape-card-${kind}`} aria-labelledby={id} onKeyDown={(event) => escape(event, onEscape)}>
    <h2 id={id} ref={heading} tabIndex={-1}>{title}</h2>
    {children}
  </section>;
}

type Root = Document | ShadowRoot;

/** Whether the focus is in this view or nowhere: never taken from a cell that somebody types in. */
export function free(node: Node): boolean {
  const root = node.getRootNode() as Root;
  const at = document.activeElement;
  return !at || at === document.body || (root instanceof ShadowRoot ? root.activeElement !== null : node.contains(at));
}

/** When what uses it goes, the focus returns to where it came from, or to what stands there now. */
export function useFocusBack(place: { readonly current: Node | null }, name: string): void {
  useLayoutEffect(() => {
    const node = place.current;
    if (!node) return;
    const root = node.getRootNode() as Root;
    const from = root.activeElement as HTMLElement | null;
    return () => {
      if (free(node)) queueMicrotask(() => back(root, from, name));
    };
  }, [place, name]);
}

/** What stands there now may take some frames to be drawn; where it never comes, the list has the focus. */
function back(root: Root, from: HTMLElement | null, name: string, frames = 20): void {
  if (root.activeElement && root.activeElement !== document.body) return;
  const to = from?.isConnected && from !== document.body ? from : root.querySelector<HTMLElement>(`[data-back="${name}"]`);
  if (to) to.focus();
  else if (frames) requestAnimationFrame(() => back(root, from, name, frames - 1));
  else root.querySelector<HTMLElement>('[role="tree"] [tabindex="0"]')?.focus();
}

/** Problems that belong to one place, said beside it. */
export function Said({ problems, at, id }: { problems: readonly Problem[]; at: string; id?: string }) {
  const here = problems.filter((problem) => problem.path === at);
  return <div class="tape-said" id={id} role="status">
    {here.map(({ level, text }) => <p key={text} class={level === "error" ? "tape-wrong" : "tape-warn"}>{level === "error" ? "✕ " : "⚠ "}{text}</p>)}
  </div>;
}

/** What differs from the recorded text, as one reads. */
export function Marks({ before, after }: { before: string; after: string }) {
  return before === after ? null : <p class="tape-marks"><span class="tape-dim">changed: </span><Runs runs={near(words(before, after))} /></p>;
}

/** Long stretches that are the same, cut to what stands near a change. */
function near(runs: readonly Run[]): Run[] {
  const keep = 60;
  return runs.map((run, at) => {
    if (run.mark !== "same" || run.text.length <= 2 * keep) return run;
    const head = at === 0 ? "" : run.text.slice(0, keep);
    const tail = at === runs.length - 1 ? "" : run.text.slice(-keep);
    return { ...run, text: `${head} … ${tail}` };
  });
}

interface TextProps { value: string; label?: string; id?: string; describedBy?: string; invalid?: boolean; code?: boolean; rows?: number; onChange: (text: string) => void }

/** A textarea as high as its text, up to the height where it scrolls. */
export function Text({ value, label, id, describedBy, invalid, code, rows = 1, onChange }: TextProps) {
  const area = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    const node = area.current;
    if (!node || CSS.supports("field-sizing", "content")) return;
    node.style.height = "auto";
    node.style.height = `${node.scrollHeight + 2}px`;
  }, [value]);
  return <textarea ref={area} id={id} rows={rows} value={value} spellcheck={false} class={code ? "tape-code" : ""} aria-label={label}
    aria-describedby={describedBy} aria-invalid={invalid} onInput={(event) => onChange(event.currentTarget.value)} />;
}

interface CodeProps { work: Work; value: string; recorded: string | null; json: boolean; label: string; invalid?: boolean; onChange: (text: string) => void }

/** The editor where it is loaded, a textarea until then and where it cannot be. */
export function Code({ work, value, recorded, json, label, invalid, onChange }: CodeProps) {
  const place = useRef<HTMLDivElement>(null);
  const handle = useRef<EditorHandle | null>(null);
  const latest = useRef({ value, onChange });
  const known = useRef(value); // what the editor holds, as far as we know
  const [state, set] = useState<"loading" | "open" | "plain">("loading");
  latest.current = { value, onChange };
  useEffect(() => {
    let gone = false;
    work.editor().then((open) => {
      const node = place.current;
      if (gone || !node) return;
      const field = (node.getRootNode() as Root).activeElement as HTMLTextAreaElement | null;
      const chosen = field && node.contains(field) && [field.selectionStart, field.selectionEnd] as const;
      const changed = (text: string) => {
        known.current = text;
        latest.current.onChange(text);
      };
      set("open");
      handle.current = open(node, { text: latest.current.value, recorded, json, label, changed });
      if (chosen) handle.current.focus(...chosen);
    }).catch(() => gone || set("plain"));
    return () => {
      gone = true;
      handle.current?.close();
      handle.current = null;
    };
  }, [work, recorded, json, label]);
  // At once and not after the paint, by when the person has typed on: their letters would be taken back.
  useLayoutEffect(() => {
    if (value !== known.current) handle.current?.set(value);
    known.current = value;
  }, [value]);
  return <>
    <div ref={place} class="tape-editor">{state !== "open" && <Text code value={value} label={label} invalid={invalid ?? false} rows={4} onChange={onChange} />}</div>
    {state === "plain" && <p class="tape-dim">The editor could not be loaded; this is a plain text field, and saves the same way.</p>}
    {state !== "open" && recorded !== null && <Marks before={recorded} after={value} />}
  </>;
}
