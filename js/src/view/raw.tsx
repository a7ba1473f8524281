import { useState } from "preact/hooks";
import type { Desk } from "./store.ts";
import { useAsked } from "./hooks.ts";
import { bytes } from "./format.ts";
import type { Detail, Raw } from "./protocol.ts";
import { Failed } from "./placeholders.tsx";

const SIZE = 16_384;

/** The bytes as they went over the wire, page by page. */
export function RawTab({ desk, detail }: { desk: Desk; detail: Detail }) {
  const [side, turn] = useState<"request" | "reply">(detail.raw.reply ? "reply" : "request");
  const [from, go] = useState(0);
  const { value, error, again } = useAsked(() => desk.client.ask<Raw>("raw", { span: detail.id, side, from, size: SIZE }), [detail.id, side, from]);
  const pick = (to: "request" | "reply"): void => {
    turn(to);
    go(0);
  };
  return <div>
    <div class="tape-actions">
      <span class="modes" role="group" aria-label="Side">
        {(["request", "reply"] as const).map((name) => <button key={name} aria-pressed={side === name} onClick={() => pick(name)}>{name} {bytes(detail.raw[name])}</button>)}
      </span>
      {value && value.total > SIZE && <span class="pager">
        <button disabled={from === 0} aria-label="Previous page" onClick={() => go(Math.max(0, from - SIZE))}>‹</button>
        <span role="status">{bytes(from)} – {bytes(Math.min(from + SIZE, value.total))} of {bytes(value.total)}</span>
        <button disabled={from + SIZE >= value.total} aria-label="Next page" onClick={() => go(from + SIZE)}>›</button>
      </span>}
    </div>
    {error ? <Failed text={error} again={again} /> : value && <pre class="tape-code raw">{value.text || "(empty)"}</pre>}
  </div>;
}
