import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { escape } from "./edit/widgets.tsx";

interface MenuProps { word: string; title?: string; label?: string; look?: string; popup?: string; off?: boolean; children: (close: () => void) => ComponentChildren }

/** A button that opens something below it; a click elsewhere closes it, and Escape gives the focus back. */
export function Menu({ word, title, label, look, popup = "", off, children }: MenuProps) {
  const [open, set] = useState(false);
  const menu = useRef<HTMLDivElement>(null);
  const close = () => {
    set(false);
    menu.current?.querySelector("button")?.focus();
  };
  useEffect(() => {
    if (!open) return;
    const outside = (event: Event) => menu.current && !event.composedPath().includes(menu.current) && set(false);
    window.addEventListener("pointerdown", outside, true);
    return () => window.removeEventListener("pointerdown", outside, true);
  }, [open]);
  return <div ref={menu} class="menu" onKeyDown={(event) => escape(event, open ? close : undefined)}>
    <button class={look} aria-expanded={open} aria-label={label} title={title ?? label} disabled={off} onClick={() => set(!open)}><span>{word}</span>▾</button>
    {open && <div class={`tape-popup ${popup}`}>{children(close)}</div>}
  </div>;
}
