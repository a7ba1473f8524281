import { useEffect, useLayoutEffect, useReducer, useState } from "preact/hooks";
import { sentence } from "./format.ts";

/** What tells those who listen of each change. */
export class Told {
  readonly #listeners = new Set<() => void>();

  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  protected tell(): void {
    for (const listener of this.#listeners) listener();
  }

  protected tellNobody(): void {
    this.#listeners.clear();
  }
}

/** What is read of it; draws anew at each change. */
export function useTold<T>(told: Told, read: () => T): T {
  const [, draw] = useReducer((count: number) => count + 1, 0);
  const drawn = read();
  useLayoutEffect(() => {
    if (read() !== drawn) draw(undefined); // it changed while this was being drawn
    return told.listen(() => draw(undefined));
    // eslint-disable-next-line react-hooks/exhaustive-deps -- only before the first listening
  }, [told]);
  return drawn;
}

/** Width and height of an element, kept up to date; `begin` until it is measured. */
export function useSize(node: { readonly current: Element | null }, begin: { width: number; height: number }): { width: number; height: number } {
  const [size, set] = useState(begin);
  useLayoutEffect(() => {
    if (!node.current) return;
    const watch = new ResizeObserver(([entry]) => {
      if (entry) set({ width: entry.contentRect.width, height: entry.contentRect.height });
    });
    watch.observe(node.current);
    return () => watch.disconnect();
  }, [node]);
  return size;
}

export interface Asked<T> { value: T | null; error: string | null; again: () => void }

/** What a question answers; asked anew when `parts` change. The last answer stays until the new one is there. */
export function useAsked<T>(ask: () => Promise<T>, parts: readonly unknown[]): Asked<T> {
  const [state, set] = useState<{ value: T | null; error: string | null }>({ value: null, error: null });
  const [count, again] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    let gone = false;
    ask().then(
      (value) => gone || set({ value, error: null }),
      (error: unknown) => gone || set({ value: null, error: sentence(error) }),
    );
    return () => void (gone = true);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the caller names what the question hangs on
  }, [...parts, count]);
  return { ...state, again: () => again(undefined) };
}

/**
 * The focus never falls to the page's body, where keys do nothing: where what had it is gone, out of reach or disabled,
 * what is open below the bar has it, else what stands over the list, else the list's row.
 */
export function useFocusKept(place: { readonly current: HTMLElement | null }): void {
  useEffect(() => {
    const root = place.current;
    if (!root) return;
    const tree = root.getRootNode() as Document | ShadowRoot;
    let had: HTMLElement | null = null;
    const turned = (event: Event): void => {
      const [inner] = event.composedPath();
      had = inner instanceof HTMLElement && root.contains(inner) ? inner : null;
    };
    const look = (): void => {
      if (!had || root.contains(tree.activeElement)) return;
      if (had.isConnected && !had.closest("[inert], :disabled")) return;
      root.querySelector<HTMLElement>(`.tape-popup button,.list:not([inert]) [tabindex="0"],.side`)?.focus();
    };
    const watch = new MutationObserver(look);
    watch.observe(root, { subtree: true, childList: true, attributeFilter: ["inert", "disabled"] });
    // A move within a shadow root is heard in there alone, one away from it outside.
    const each = (act: "addEventListener" | "removeEventListener"): void => {
      for (const place of [window, tree]) for (const kind of ["focusin", "pointerdown"]) place[act](kind, turned, true);
    };
    each("addEventListener");
    return () => {
      watch.disconnect();
      each("removeEventListener");
    };
  }, [place]);
}
