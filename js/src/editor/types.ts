/** What the view asks of an editor; the code behind it is loaded on the first Edit (see index.ts). */
export type OpenEditor = (place: HTMLElement, options: EditorOptions) => EditorHandle;

export interface EditorOptions {
  text: string;
  /** The recorded text: what differs from it is marked as one types. */
  recorded: string | null;
  json: boolean;
  /** What a screen reader calls it. */
  label: string;
  changed: (text: string) => void;
}

export interface EditorHandle {
  /** Replaces the text without telling `changed`. */
  set: (text: string) => void;
  /** With what was chosen in the field that it replaces. */
  focus: (from: number, to: number) => void;
  close: () => void;
}
