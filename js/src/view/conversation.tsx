import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { bytes, many } from "./format.ts";
import { Json } from "./json.tsx";
import type { Part, Turn } from "./protocol.ts";

/** Earlier turns stand folded, and the last one is in sight: what was said now is what one came for. */
const SHOWN = 5;
const LONG = 4000;

export function Conversation({ turns, changed }: { turns: readonly Turn[]; changed: boolean }) {
  const [all, show] = useState(turns.length <= SHOWN + 1);
  const hidden = all ? 0 : turns.length - SHOWN;
  const node = useRef<HTMLDivElement>(null);
  const toEnd = (): void => {
    const panel = node.current?.parentElement;
    if (panel) panel.scrollTop = panel.scrollHeight;
  };
  useLayoutEffect(toEnd, [turns]);
  return <div ref={node} onLoadCapture={toEnd}>
    {hidden > 0 && <button class="earlier" onClick={() => show(true)}>▸ {many(hidden, "earlier message")}</button>}
    {turns.slice(hidden).map((turn, at) => <OneTurn key={hidden + at} turn={turn} changed={changed && hidden + at === turns.length - 1} />)}
  </div>;
}

function OneTurn({ turn, changed }: { turn: Turn; changed: boolean }) {
  return <div class={`turn by-${turn.role}${changed ? " turn-changed" : ""}`}>
    <h3 class="role">{changed && "✎ "}{turn.role}</h3>
    <div class="said-there">{turn.parts.map((part, at) => <OnePart key={at} part={part} />)}</div>
  </div>;
}

function OnePart({ part }: { part: Part }) {
  switch (part.type) {
    case "text": return <Words text={part.text} />;
    case "thinking": return <details class="thinking"><summary>{part.text.slice(0, 160)}</summary><Words text={part.text} /></details>;
    case "tool_use": return <div class="tool-use"><span class="call">→ {part.name}</span><Value value={part.input} /></div>;
    case "tool_result": return <div class={part.error ? "tool-result failed-result" : "tool-result"}><Words text={part.text || "(empty)"} code /></div>;
    case "image": return <Picture media={part.media} size={part.bytes} data={part.data} />;
    case "other": return <div class="tool-use"><span class="call">{part.name}</span><Value value={part.value} /></div>;
  }
}

/** A text as it was said, its end behind a button where it is very long. */
function Words({ text, code }: { text: string; code?: boolean }) {
  const [all, show] = useState(text.length <= LONG * 1.5);
  return <div class={code ? "words tape-code" : "words"}>{all ? text : text.slice(0, LONG)}
    {!all && <button class="tape-link" onClick={() => show(true)}>… {many(text.length - LONG, "more character")}</button>}</div>;
}

function Value({ value }: { value: unknown }) {
  const text = useMemo(() => {
    const line = JSON.stringify(value) as string | undefined;
    return line === undefined || line.length < 60 ? (line ?? "") : JSON.stringify(value, null, 2);
  }, [value]);
  return <pre class={text.includes("\n") ? "tape-code wide" : "tape-code"}><Json text={text} /></pre>;
}

const PICTURES = /^image\/(png|jpeg|gif|webp)$/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** Where an image of a known type may be drawn from; null for all else: no address of a recording is ever fetched. */
export function pictureOf(media: string, data: string | null): string | null {
  const base64 = data?.replace(new RegExp(`^data:${media.replace("/", "\\/")};base64,`), "") ?? null;
  return base64 !== null && base64 !== "" && PICTURES.test(media) && BASE64.test(base64) ? `data:${media};base64,${base64}` : null;
}

function Picture({ media, size, data }: { media: string; size: number; data: string | null }) {
  const source = pictureOf(media, data);
  const says = `${media}, ${bytes(size)}`;
  return <figure class="picture">{source && <img src={source} alt={says} />}<figcaption>{source ? says : `${says}, not drawn`}</figcaption></figure>;
}
