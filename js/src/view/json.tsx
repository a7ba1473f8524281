import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { Section } from "./protocol.ts";
import { Copy } from "./placeholders.tsx";

/** Longer texts are drawn without colours: a node a token would make the page slow. */
const COLOURED = 60_000;
const TOKEN = /("(?:\\.|[^"\\])*")(\s*:)?|\b(true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** A request, a reply, an argument: pretty where it is JSON, with a button that copies it. */
export function Text({ section, label }: { section: Section; label: string }) {
  const text = useMemo(() => (section.json && section.whole ? pretty(section.text) : section.text), [section]);
  if (!text) return <p class="tape-dim">{label}: empty</p>;
  return <div class="text" role="group" aria-label={label}>
    <Copy text={text} />
    <pre class="tape-code">{section.json ? <Json text={text} /> : text}</pre>
    {!section.whole && <p class="tape-dim">Cut here; all of it is on the Raw tab.</p>}
  </div>;
}

/** JSON text in colours. Every token is a text node. */
export function Json({ text }: { text: string }) {
  return useMemo(() => <>{text.length > COLOURED ? text : tokens(text)}</>, [text]);
}

function tokens(text: string): ComponentChildren[] {
  const out: ComponentChildren[] = [];
  let end = 0;
  for (const match of text.matchAll(TOKEN)) {
    const [all, quoted, colon, word] = match;
    const kind = quoted ? (colon ? "key" : "string") : word ? "word" : "number";
    out.push(text.slice(end, match.index), <span class={`j-${kind}`}>{quoted ?? all}</span>, colon ?? "");
    end = match.index + all.length;
  }
  return [...out, text.slice(end)];
}

/** JSON with two blanks a level; a text that is none stays as it is. */
export function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
