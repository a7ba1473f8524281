/** Where a person changes something and sees what follows. The cards themselves are loaded when the first one opens. */
export { default as editCss } from "./edit.css";
export { WorkCards } from "../lazyPanel.tsx";
export { TakeMenu } from "./takes.tsx";
export { useWork, Work, type CardsModule, type Policy, type State, type WorkOptions } from "./store.ts";
export type { EditorHandle, EditorOptions, OpenEditor } from "../../editor/types.ts";
