/**
 * CodeMirror for replies: JSON with its mistakes underlined, and marks of what differs from the recorded text. A bundle
 * of its own, because it is six times the view. Tab is not trapped and Escape is left to the card around it. What is
 * wrong is said beside the field by the card: @codemirror/lint would say it again in tooltips, for 32 KB.
 */
import { history, historyKeymap, standardKeymap } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting, syntaxTree } from "@codemirror/language";
import { unifiedMergeView } from "@codemirror/merge";
import { Annotation, EditorState, type Extension } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, keymap, lineNumbers, ViewPlugin, type ViewUpdate } from "@codemirror/view";
import { tags } from "@lezer/highlight";

import type { EditorHandle, EditorOptions, OpenEditor } from "./types.ts";

/** Marks a text that was set from outside, which `changed` is not told of. */
const fromOutside = Annotation.define<boolean>();

// JupyterLab's own editor variables, so that every theme fits without asking which one is on.
const look = EditorView.theme({
  "&": {
    backgroundColor: "var(--jp-cell-editor-background, var(--tape-bg2))",
    color: "var(--jp-mirror-editor-variable-color, var(--tape-fg))",
    fontSize: "var(--jp-code-font-size, 13px)",
    border: "1px solid var(--tape-line)",
    maxHeight: "60cqh",
  },
  "&.cm-focused": { outline: "2px solid var(--tape-run)", outlineOffset: "-1px" },
  ".cm-scroller": { overflow: "auto", fontFamily: "var(--tape-code-font)" },
  ".cm-content": { fontFamily: "var(--tape-code-font)", caretColor: "var(--jp-editor-cursor-color, currentColor)" },
  ".cm-content:focus-visible": { outline: "none" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--tape-dim)", border: "none" },
  ".tape-mistake": { textDecoration: "underline wavy var(--tape-wrong)", textDecorationSkipInk: "none" },
  "&.cm-merge-b .cm-changedText, .cm-insertedLine .cm-changedText": {
    background: "color-mix(in srgb, var(--tape-changed) 35%, transparent)",
  },
  "&.cm-merge-b .cm-changedLine, .cm-insertedLine": { background: "color-mix(in srgb, var(--tape-changed) 12%, transparent)" },
  ".cm-deletedChunk": { background: "color-mix(in srgb, var(--tape-dim) 14%, transparent)" },
  ".cm-deletedChunk .cm-deletedText": { background: "color-mix(in srgb, var(--tape-dim) 26%, transparent)" },
  "&.cm-merge-b .cm-changedLineGutter": { background: "var(--tape-changed)" },
  ".cm-deletedLineGutter": { background: "var(--tape-dim)" },
});

const colours = HighlightStyle.define([
  { tag: tags.propertyName, color: "var(--jp-mirror-editor-property-color, light-dark(#05a, #7fb2e5))" },
  { tag: tags.string, color: "var(--jp-mirror-editor-string-color, light-dark(#a11, #e39a8a))" },
  { tag: tags.number, color: "var(--jp-mirror-editor-number-color, light-dark(#07641f, #8fce9b))" },
  { tag: [tags.bool, tags.null], color: "var(--jp-mirror-editor-atom-color, light-dark(#5b3cc4, #b7a2f5))" },
]);

/** Underlines where a text stops being JSON. */
class Mistakes {
  marks: DecorationSet;

  constructor(view: EditorView) {
    this.marks = Mistakes.#of(view);
  }

  update({ startState, state, view }: ViewUpdate): void {
    if (syntaxTree(startState) !== syntaxTree(state)) this.marks = Mistakes.#of(view);
  }

  static #of({ state }: EditorView): DecorationSet {
    const at = syntaxTree(state).cursor();
    while (!at.type.isError) if (!at.next()) return Decoration.none;
    const from = Math.max(0, Math.min(at.from, state.doc.length - 1)); // a text that ends too early: under its last letter
    if (!state.doc.length) return Decoration.none;
    return Decoration.set(Decoration.mark({ class: "tape-mistake" }).range(from, from + 1));
  }
}

const mistakes = ViewPlugin.fromClass(Mistakes, { decorations: ({ marks }) => marks });

function extensions(options: EditorOptions): Extension[] {
  const { recorded, label, changed } = options;
  const forJson = [lineNumbers(), bracketMatching(), indentOnInput(), json(), mistakes, syntaxHighlighting(colours)];
  return [
    history(),
    options.json ? forJson : [],
    look,
    keymap.of([...standardKeymap, ...historyKeymap]),
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false" }),
    EditorView.updateListener.of((update) => {
      if (update.docChanged && !update.transactions.some((each) => each.annotation(fromOutside))) changed(update.state.doc.toString());
    }),
    recorded === null ? [] : unifiedMergeView({ original: recorded, mergeControls: false, syntaxHighlightDeletions: false }),
  ];
}

export const openEditor: OpenEditor = (place, options): EditorHandle => {
  const root = place.getRootNode();
  const view = new EditorView({
    state: EditorState.create({ doc: options.text, extensions: extensions(options) }),
    parent: place,
    ...(root instanceof ShadowRoot ? { root } : {}),
  });
  return {
    set: (text) => {
      if (text === view.state.doc.toString()) return;
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, annotations: fromOutside.of(true) });
    },
    focus: (anchor, head) => {
      view.dispatch({ selection: { anchor, head } });
      view.focus();
    },
    close: () => view.destroy(),
  };
};
