import { useEffect, useRef, useState } from "preact/hooks";

/** Drawn between list and detail; its place is a share of the width. */
export function Divider() {
  const node = useRef<HTMLDivElement>(null);
  const [share, set] = useState(52);
  const split = (): HTMLElement | null | undefined => node.current?.closest<HTMLElement>(".split");
  useEffect(() => split()?.style.setProperty("--share", `${share}%`), [share]);
  const move = (to: number): void => set(Math.min(Math.max(to, 20), 80));
  const onKeyDown = (event: KeyboardEvent): void => {
    const by = { ArrowLeft: -4, ArrowRight: 4 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    move(share + by);
  };
  return <div ref={node} class="divider" role="separator" aria-orientation="vertical" aria-label="Width of the list" aria-valuenow={Math.round(share)} aria-valuemin={20} aria-valuemax={80}
    tabIndex={0} onKeyDown={onKeyDown} onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
    onPointerMove={(event) => {
      const box = split()?.getBoundingClientRect();
      if (box && event.currentTarget.hasPointerCapture(event.pointerId)) move((100 * (event.clientX - box.left)) / box.width);
    }} />;
}
