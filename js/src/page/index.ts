/** The view on a page of its own (`tape show NOTEBOOK --html`): no kernel, no network; all it shows stands in the page. */
import type { CardsModule } from "../view/edit/index.ts";
import { mount } from "../view/mount.tsx";
import { PageDoor } from "./model.ts";
import type { Side } from "./sidebar.tsx";

/** The second script lies in the page as text; it runs when the first span is opened. The page's CSP knows its hash. */
function loadSide(): Promise<CardsModule> {
  if (!("tapeSide" in globalThis)) {
    const script = document.createElement("script");
    script.textContent = document.getElementById("tape-side")?.textContent ?? "";
    document.head.append(script);
  }
  const { tapeSide } = globalThis as { tapeSide?: Side };
  return tapeSide ? Promise.resolve(tapeSide as CardsModule) : Promise.reject(new Error("This page has no details."));
}

const home = document.getElementById("tape");
if (home) mount(home, new PageDoor(document), { loadCards: loadSide });
