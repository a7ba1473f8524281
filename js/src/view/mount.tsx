import { render } from "preact";
import { App } from "./app.tsx";
import { Desk } from "./store.ts";
import { editCss, Work, type CardsModule, type OpenEditor } from "./edit/index.ts";
import { guard } from "./keys.ts";
import type { Model } from "./protocol.ts";
import { Slot } from "./step/index.tsx";
import css from "./view.css";

export interface MountOptions {
  /** Loads the editor's code, on the first Edit. Without it a plain field is drawn. */
  loadEditor?: () => Promise<OpenEditor>;
  /** Loads the cards (edit, plan, progress, divergence, comparison), when the first of them opens. */
  loadCards?: () => Promise<CardsModule>;
  /** Hears when the view begins to hold what is nowhere else (an edit, a plan, a re-run's question, a comparison), and when that is over. */
  onWork?: ((working: boolean) => void) | undefined;
}

/**
 * Mount the view into `el`, which needs a height; the answer takes it away again. It lives in a shadow root: the
 * notebook's styles of bare tags stay out, and its keys can be held in. Styles are adopted, which any CSP allows.
 */
export function mount(el: HTMLElement, model: Model, options: MountOptions = {}): () => void {
  const home = el.shadowRoot ?? el.attachShadow({ mode: "open" });
  home.adoptedStyleSheets = [css, editCss].map(sheet);
  const root = document.createElement("div");
    const height = model.get("height");
  if (typeof height === "number" && height > 0) root.style.height = `${height}px`;
  home.replaceChildren(root);

  const desk = new Desk(model);
  root.className = `tape-view door-${desk.door}`;
  const work = new Work(desk.client, {
    loadEditor: options.loadEditor,
    loadCards: options.loadCards,
    onSession: (session) => void desk.enter(session),
    onOpenSpan: (span) => desk.reveal(span),
  });
  desk.client.on<{ changed: string | string[] }>("plan", ({ changed }) => void work.plan(desk.look.session?.take ?? "", [changed].flat()));
  let working = false;
  const look = (): void => {
    const now = work.state.phase !== "idle" || desk.look.editing !== null;
    if (now !== working) options.onWork?.((working = now));
  };
  work.listen(look);
  desk.listen(look);
  const unguard = guard(root);
  const slot = new Slot(desk, work);
  render(<App desk={desk} work={work} slot={slot} />, root);
  void slot.hello();
  void desk.start().then(() => (desk.able.rerun && desk.door !== "output" ? work.resume() : undefined)); // outputs are many
  return () => {
    unguard();
    render(null, root);
    work.close();
    desk.stop();
    home.replaceChildren();
  };
}

function sheet(text: string): CSSStyleSheet {
  const made = new CSSStyleSheet();
  made.replaceSync(text);
  return made;
}
