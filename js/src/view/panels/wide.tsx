import type { ComponentChildren } from "preact";

/** What may be wider than its place: it scrolls there, by keys too. */
export function Wide({ label, children }: { label: string; children: ComponentChildren }) {
  return <div class="tape-scroll-x" role="group" aria-label={label} tabIndex={0}>{children}</div>;
}
