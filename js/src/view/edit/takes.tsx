/** The button of the takes; what it opens is a card. */
import { Menu } from "../menu.tsx";
import type { Able, Session } from "../protocol.ts";
import { Island } from "../lazyPanel.tsx";
import type { Work } from "./store.ts";

export function TakeMenu({ work, session, able }: { work: Work; session: Session; able: Able }) {
  return <Menu look={session.take ? "tape-taken" : ""} title="The recording and its takes" word={session.take ? `take: ${session.take}` : "the recording"}>{(onClose) =>
    <Island work={work} draw={(cards, place) => cards.drawTakes(place, { work, session, able, onClose })} />}</Menu>;
}
