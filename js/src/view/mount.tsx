import { render } from "preact";
import { Client } from "./client.ts";
import type { Model } from "./protocol.ts";
import css from "./view.css";

/** Mount the view into `el`; the answer takes it away again. */
export function mount(el: HTMLElement, model: Model): () => void {
  const home = el.shadowRoot ?? el.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  home.adoptedStyleSheets = [sheet];
  const root = document.createElement("div");
  root.className = "tape-view";
  home.replaceChildren(root);
  const client = new Client(model);
  render(<p>Tape</p>, root);
  return () => {
    client.close();
    render(null, root);
    home.replaceChildren();
  };
}
