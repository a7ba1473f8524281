/** The mime renderer: a taped cell's saved summary as the view itself, in untrusted notebooks and without a kernel too. */
import { Widget } from "@lumino/widgets";

import { mountLate } from "./hub.ts";
import { Output, type Saved, savedOf } from "./output.ts";

export const MIME = "application/vnd.tape.spans+json";
const HIGHEST = 460;
/** As soon as a call was opened. */
const OPEN = 400;
const ROW = 24;
/** The bar, the axis above the rows and the foot below them. */
const AROUND = 112;

interface Options { resolver?: Resolver | null }
export interface Resolver {
  readonly path?: string;
  resolveUrl(url: string): Promise<string>;
}

class Renderer extends Widget {
  readonly #resolver: Resolver | null;
  #leave: () => void = () => undefined;

  constructor({ resolver }: Options) {
    super();
    this.#resolver = resolver ?? null;
    this.addClass("tape-output");
  }

  renderModel(model: { data: Record<string, unknown> }): Promise<void> {
    this.#leave();
    const saved = savedOf(model.data[MIME]);
    if (typeof saved === "string") this.node.textContent = saved;
    else this.#mount(saved);
    return Promise.resolve();
  }

  override dispose(): void {
    this.#leave();
    super.dispose();
  }

  #mount(saved: Saved): void {
    const place = document.createElement("div");
    place.className = "tape-door";
    this.node.replaceChildren(place);
    const low = Math.min(HIGHEST, AROUND + ROW * Math.max(saved.page.id.length, 3)); // a list as high as its rows virtualises nothing
    this.node.style.height = `${low}px`;
    const output = new Output(this.node, this.#resolver, saved);
    output.opened = () => (this.node.style.height = `${Math.max(low, OPEN)}px`);
    const unmount = mountLate(place, output.door);
    this.#leave = () => {
      this.#leave = () => undefined;
      unmount();
      output.close();
    };
  }
}

export const mime = {
  id: "tape-jupyter:mime",
  description: "Shows the saved calls of a taped cell.",
  rendererFactory: { safe: true, mimeTypes: [MIME], defaultRank: 40, createRenderer: (options: Options) => new Renderer(options) },
  rank: 40,
  dataType: "json",
};
