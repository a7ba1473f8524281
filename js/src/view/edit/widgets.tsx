/** Small parts that the bar and the cards share. */
import type { ComponentChild } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Run } from "./labels.ts";

let named = 0;
const BUNDLE = crypto.getRandomValues(new Uint16Array(1)).join("");

/** An element's id. Preact's own begin anew in every root and every bundle, and several of them share a shadow root. */
export function useName(): string {
  return useState(() => `tape-${BUNDLE}-${++named}`)[0];
}

/** Calls `then` at an Escape that nothing inside took. */
export function escape(event: KeyboardEvent, then: (() => void) | undefined): void {
  if (event.key !== "Escape" || event.defaultPrevented || !then) return;
  event.preventDefault();
  event.stopPropagation();
  then();
}

/** True after `ms` of `on`: what is done sooner is never drawn, so nothing flickers. */
export function useLate(on: boolean, ms = 200): boolean {
  const [late, set] = useState(false);
  useEffect(() => {
    if (!on) return;
    const timer = setTimeout(() => set(true), ms);
    return () => {
      clearTimeout(timer);
      set(false);
    };
  }, [on, ms]);
  return on && late;
}

/** Runs what a button starts, one at a time; says what went wrong. */
export function useDoing(): { busy: boolean; wrong: string; go: (what: () => Promise<unknown>) => void } {
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState("");
  const here = useRef(true);
  useEffect(() => () => void (here.current = false), []);
  const go = (what: () => Promise<unknown>) => {
    setBusy(true);
    setWrong("");
    what()
      .catch((error: unknown) => here.current && setWrong((error as Error).message))
      .finally(() => here.current && setBusy(false));
  };
  return { busy, wrong, go };
}

export function Alert({ text }: { text: string }) {
  return text ? <p class="tape-wrong" role="alert">{text}</p> : null;
}

/** A marked text: what is gone, what is new. */
export function Runs({ runs }: { runs: readonly Run[] }) {
  return <>{runs.map(({ text, mark }, at) => mark === "gone" ? <del key={at}>{text}</del> : mark === "new" ? <ins key={at}>{text}</ins> : text)}</>;
}

/** A sentence in which names stand in backticks. */
export function Prose({ text }: { text: string }) {
  return <span class="tape-prose">{text.split("`").map((part, at) => (at % 2 ? <code key={at}>{part}</code> : arrows(part)))}</span>;
}

/** A text whose arrows end no line between their two characters. */
export function arrows(text: string): ComponentChild {
  return text.split(/(->)/).map((part, at) => (at % 2 ? <span key={at} style="white-space:nowrap">{part}</span> : part));
}
