/** The bundle of the cards: see ../island.tsx. */
import { render, type ComponentChild } from "preact";
import { Detail } from "../detail.tsx";
import { Divider } from "../divider.tsx";
import { find as findIn } from "../search.ts";
import detailCss from "../detail.css";
import type { CardsModule } from "../edit/store.ts";
import { Stepper } from "../step/stepper.ts";
import { StepBar } from "../step/bar.tsx";
import { StopPane } from "../step/pane.tsx";
import { StepStart } from "../step/start.tsx";
import stepCss from "../step/step.css";
import css from "./cards.css";
import { Choices } from "./choices.tsx";
import { Front } from "./panelSwitch.tsx";
import { EditPane } from "./pane.tsx";
import { Takes } from "./takes.tsx";

const sheet = new CSSStyleSheet();
sheet.replaceSync(detailCss + css + stepCss);

export const { drawCards, drawDetail, drawDivider, drawTakes, drawChoices, drawStepBar, drawStop, drawStepStart, newStepper, find, clear }: CardsModule = {
  drawCards: (place, props) => draw(place, <Front {...props} />),
  drawDetail: (place, props) => draw(place, <Detail {...props} Pane={EditPane} />),
  drawDivider: (place) => draw(place, <Divider />),
  drawTakes: (place, props) => draw(place, <Takes {...props} />),
  drawChoices: (place, props) => draw(place, <Choices {...props} />),
  drawStepBar: (place, props) => draw(place, <StepBar {...props} />),
  drawStop: (place, props) => draw(place, <StopPane {...props} />),
  drawStepStart: (place, props) => draw(place, <StepStart {...props} />),
  newStepper: (desk) => new Stepper(desk),
  find: findIn,
  clear: (place) => render(null, place),
};

function draw(place: HTMLElement, child: ComponentChild): void {
  const root = place.getRootNode() as Document | ShadowRoot;
  if (!root.adoptedStyleSheets.includes(sheet)) root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
  render(child, place);
}
