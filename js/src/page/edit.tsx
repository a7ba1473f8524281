/** What stands in for view/edit/index.ts on a saved page, where nothing is changed and nothing runs again. */
import type { Able, Session } from "../view/protocol.ts";
import type { CardsModule, State, WorkOptions } from "../view/edit/index.ts";

export const editCss = "";

export class Work {
  readonly state: State = { phase: "idle" };
  readonly cards: () => Promise<CardsModule>;

  constructor(_client: unknown, { loadCards }: WorkOptions) {
    this.cards = loadCards ?? (() => Promise.reject(new Error("This page has no details.")));
  }

  plan(): Promise<void> {
    return Promise.resolve();
  }

  listen(_listener: () => void): () => void {
    return () => undefined;
  }

  close(): void {
    // Nothing is under way.
  }
}

export function useWork(_work: Work): State {
  return { phase: "idle" };
}

export function WorkCards(_props: { work: Work; able: Able }): null {
  return null;
}

/** Which take it is; the others are not in the page. */
export function TakeMenu({ session }: { session: Session }) {
  return session.take ? <span class="tape-dim">take: {session.take}</span> : null;
}
