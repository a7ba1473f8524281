/** The mime renderer: a taped cell's saved summary as the view itself, in untrusted notebooks and without a kernel too. */
import { Widget } from "@lumino/widgets";

import { type Line, lineOf, Shown } from "./renderedOutput.ts";
import { type Resolver, type Saved, savedOf } from "./saved.ts";

export const MIME = "application/vnd.tape.spans+json";

interface Options { resolver?: Resolver | null }

class Renderer extends Widget {
  readonly #resolver: Resolver | null;
  #saved: Saved | null = null;
  #line: Line = lineOf(undefined);
  #shown: Shown | null = null;

  constructor({ resolver }: Options) {
    super();
    this.#resolver = resolver ?? null;
    this.addClass("tape-output");
  }

  renderModel(model: { data: Record<string, unknown> }): Promise<void> {
    const saved = savedOf(model.data[MIME]);
    this.#saved = typeof saved === "string" ? null : saved;
    this.#line = lineOf(model.data["text/plain"]);
    if (this.#saved && this.#shown?.working) this.#shown.turn(this.#saved, this.#resolver, this.#line);
    else {
      this.#leave();
      this.node.textContent = typeof saved === "string" ? saved : "";
      if (this.isAttached) this.#show();
    }
    return Promise.resolve();
  }

  /** Which cell it stands below is known from here on. */
  protected override onAfterAttach(): void {
    if (this.#shown) this.#shown.back();
    else this.#show();
  }

  protected override onBeforeDetach(): void {
    this.#shown?.leaving();
  }

  override dispose(): void {
    this.#leave();
    super.dispose();
  }

  #show(): void {
    if (this.#saved) this.#shown = Shown.into(this.node, this.#resolver, this.#saved, this.#line);
  }

  #leave(): void {
    this.#shown?.gone();
    this.#shown = null;
  }
}

export const mime = {
  id: "tape-jupyter:mime",
  description: "Shows the saved calls of a taped cell.",
  rendererFactory: { safe: true, mimeTypes: [MIME], defaultRank: 40, createRenderer: (options: Options) => new Renderer(options) },
  rank: 40,
  dataType: "json",
};
