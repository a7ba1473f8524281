/**
 * The module-federation container that JupyterLab loads: a script that leaves `init` and `get` under its name. Written
 * by hand, so that esbuild is the only bundler. Modules that the page shares are fetched before ours are evaluated.
 */

import type * as door from "./index.ts";

type Modules = Record<string, unknown>;
interface Version { get(): Promise<() => unknown>; loaded?: number | boolean }
type Scope = Record<string, Record<string, Version> | undefined>;

const NAME = "tape-jupyter";
const KEY = Symbol.for("tape-jupyter.shared");
const WANTED = [
  "@codemirror/language", "@codemirror/state", "@codemirror/view", "@jupyterlab/apputils", "@jupyterlab/coreutils",
  "@jupyterlab/notebook", "@jupyterlab/statusbar", "@jupyterlab/ui-components", "@lezer/common", "@lezer/highlight",
  "@lumino/coreutils", "@lumino/widgets",
];
/** Where this script came from: the chunks lie beside it. */
const base = document.currentScript instanceof HTMLScriptElement ? document.currentScript.src : location.href;
const byNumber = new Intl.Collator("en", { numeric: true });

async function shared(scope: Scope, name: string): Promise<unknown> {
  const versions = Object.entries(scope[name] ?? {});
  const [, chosen] = versions.sort(([a, x], [b, y]) => Number(Boolean(y.loaded)) - Number(Boolean(x.loaded)) || byNumber.compare(b, a))[0] ?? [];
  return chosen ? (await chosen.get())() : {}; // Notebook 7 may not share all: the module that needs it says so
}

let scope: Scope = {};
let ready: Promise<void> | undefined;

async function gather(): Promise<void> {
  const found = await Promise.all(WANTED.map(async (name) => [name, await shared(scope, name)] as const));
  (globalThis as unknown as Record<symbol, Modules>)[KEY] = Object.fromEntries(found);
}

const containers = ((globalThis as unknown as { _JUPYTERLAB?: Modules })._JUPYTERLAB ??= {});
containers[NAME] = {
  init(given: Scope) {
    scope = given;
  },
  async get(name: string): Promise<() => unknown> {
    await (ready ??= gather());
    const { mime, plugin } = (await import(/* @vite-ignore */ new URL(TAPE_DOOR, base).href)) as typeof door;
    return () => ({ __esModule: true, default: name === "./mimeExtension" ? mime : plugin }); // JupyterLab looks for the mark
  },
};
