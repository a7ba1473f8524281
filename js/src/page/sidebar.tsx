/** The page's second script: all about one span. The page keeps it as text until a span is opened. */
import { render } from "preact";
import css from "../view/detail.css";
import { Detail } from "../view/detail.tsx";
import { Divider } from "../view/divider.tsx";
import type { ChoicesProps, DetailProps } from "../view/edit/store.ts";
import { Choices } from "../view/panels/choices.tsx";
import { find } from "../view/search.ts";

const sheet = new CSSStyleSheet();
sheet.replaceSync(css);

const side = {
  drawDetail(place: HTMLElement, props: DetailProps): void {
    const root = place.getRootNode() as ShadowRoot;
    if (!root.adoptedStyleSheets.includes(sheet)) root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
    render(<Detail {...props} Pane={null} />, place);
  },
  drawChoices(place: HTMLElement, props: ChoicesProps): void {
    render(<Choices {...props} />, place);
  },
  drawDivider: (place: HTMLElement): void => render(<Divider />, place),
  find,
  clear: (place: HTMLElement): void => render(null, place),
};

export type Side = typeof side;
Object.assign(globalThis, { tapeSide: side });
