/** How high the view of an output is, and when its controls are seen: while it is pointed at or has the focus. */
import { countOf, type Saved } from "./saved.ts";

const HIGHEST = 460;
/** As soon as a call was opened: a few rows leave no room for its detail. */
const OPEN = 400;
const ROW = 24;
/** What is above and below the rows on a wide page, until it is drawn; the border. */
const AROUND = 90;
const BORDER = 2;
/** Stands above or below the rows. */
const PARTS = ".app > :not(.split), .head, .sums";

/** Their place is kept: nothing moves under the pointer. They take the focus unseen, and are then seen. */
const QUIET = new CSSStyleSheet();
QUIET.replaceSync(`@media (hover: hover) {
  .tape-view:not(:hover, :focus-within) { .bar > :not(.title), .bar > .menu { opacity: 0 } }
}`);

export class Frame {
  readonly #place: HTMLElement;
  readonly #sized = new ResizeObserver(() => this.#fit());
  readonly #changed = new MutationObserver(() => this.#watch());
  #rows = 0;
  #least = 0;

  constructor(place: HTMLElement, saved: Saved) {
    this.#place = place;
    this.show(saved);
  }

  show(saved: Saved): void {
    this.#rows = Math.max(this.#rows, saved.page?.id.length ?? countOf(saved.calls ?? []) + 1); // it never shrinks under a person
    this.#fit();
  }

  /** A call is open. */
  open(): void {
    this.#least = OPEN;
    this.#fit();
  }

  /** The view is drawn: its parts are measured from now on. */
  follow(): void {
    const root = this.#place.shadowRoot;
    if (!root) return;
    root.adoptedStyleSheets = [...root.adoptedStyleSheets, QUIET];
    for (const place of root.querySelectorAll(".app, .list, .list > .tree")) this.#changed.observe(place, { childList: true });
    this.#watch();
  }

  close(): void {
    this.#sized.disconnect();
    this.#changed.disconnect();
  }

  #watch(): void {
    this.#sized.disconnect();
    for (const part of this.#parts()) this.#sized.observe(part);
    this.#fit();
  }

  #parts(): Element[] {
    return [...(this.#place.shadowRoot?.querySelectorAll(PARTS) ?? [])];
  }

  /** A list as high as its rows virtualises nothing. */
  #fit(): void {
    const parts = this.#parts().reduce((all, part) => all + part.getBoundingClientRect().height, 0);
    if (!parts && this.#place.shadowRoot) return; // it is not in sight
    this.#place.style.height = `${Math.max(this.#least, Math.min(HIGHEST, BORDER + (parts || AROUND) + ROW * this.#rows))}px`;
  }
}
