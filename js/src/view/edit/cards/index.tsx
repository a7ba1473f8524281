/** The bundle of the cards: see ../island.tsx. */
import { render, type ComponentChild } from "preact";
import { Detail } from "../../detail.tsx";
import detailCss from "../../detail.css";
import type { CardsModule } from "../island.tsx";
import css from "./cards.css";
import { Front } from "./front.tsx";
import { EditPane } from "./pane.tsx";
import { Takes } from "./takes.tsx";

const sheet = new CSSStyleSheet();
sheet.replaceSync(detailCss + css);

export const { drawCards, drawDetail, drawTakes, clear }: CardsModule = {
  drawCards: (place, props) => draw(place, <Front {...props} />),
  drawDetail: (place, props) => draw(place, <Detail {...props} Pane={EditPane} />),
  drawTakes: (place, props) => draw(place, <Takes {...props} />),
  clear: (place) => render(null, place),
};

function draw(place: HTMLElement, child: ComponentChild): void {
  const root = place.getRootNode() as Document | ShadowRoot;
  if (!root.adoptedStyleSheets.includes(sheet)) root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
  render(child, place);
}
