import { useState } from "preact/hooks";
import type { Desk, Look } from "./store.ts";
import { EVERYTHING } from "./filter.ts";
import { useLate } from "./edit/widgets.tsx";

/** What stands in the list's place while there are no rows to draw. */
export function Nothing({ desk, look }: { desk: Desk; look: Look }) {
  const late = useLate(!look.session || desk.feed.loading);
  if (look.error) return <Failed text={look.error} again={() => void desk.start()} />;
  if (!look.session || desk.feed.loading) return <p class="nothing" role="status">{late ? "Asking the kernel…" : ""}</p>;
  if (desk.spans.count) {
    return <div class="nothing" role="status"><p>No span matches.</p>
      <button onClick={() => desk.filter(EVERYTHING)}>Show all</button></div>;
  }
  if (look.running) return null;
  if (desk.door === "page") return <div class="nothing"><p>Nothing is recorded here.</p></div>;
  return <div class="nothing">
    <p>Nothing recorded yet. Put this on top of a cell and run it:</p>
    <p><code>%%tape record</code> <Copy text="%%tape record" /></p>
  </div>;
}

export function Failed({ text, again }: { text: string; again?: () => void }) {
  return <div class="failed" role="alert"><p>{text}</p>{again && <button onClick={again}>Try again</button>}</div>;
}

/** Puts a text on the clipboard; where that is not allowed, it says so. */
export function Copy({ text }: { text: string }) {
  const [said, say] = useState("Copy");
  const copy = (): void => {
    const done = (word: string) => (): void => {
      say(word);
      setTimeout(() => say("Copy"), 1500);
    };
    const board = navigator.clipboard as Clipboard | undefined;
    (board ? board.writeText(text) : Promise.reject(new Error("no clipboard"))).then(done("Copied"), done("Not allowed here"));
  };
  return <button class="copy" onClick={copy}>{said}</button>;
}
