// Builds the labextension: tape_jupyter/labextension/. JupyterLab's own builder takes 458 MB of packages for what
// esbuild does here: a hand-written federation container (src/lab/container.ts), and chunks of their own for the view, the cards and the editor.
import * as esbuild from "esbuild";
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { common, here, package_ } from "./build.mjs";
import { packagesOf, writeLicenses } from "./licenses.mjs";

/** Modules of the editor that JupyterLab shares: one CodeMirror on a page, or its facets do not know each other. */
const SHARED = /^@jupyterlab\/|^@lumino\/|^@codemirror\/(state|view|language)$|^@lezer\/(common|highlight)$/;

const shared = {
  name: "shared",
  setup(build) {
    build.onResolve({ filter: SHARED }, ({ path }) => ({ path, namespace: "shared" }));
    build.onLoad({ filter: /.*/, namespace: "shared" }, ({ path }) => ({
      contents: `module.exports = globalThis[Symbol.for("tape-jupyter.shared")][${JSON.stringify(path)}]`,
    }));
  },
};

/** Text of one bundle, and the name it gets: its digest keeps browsers from showing yesterday's. */
export async function bundle(entry, name, options) {
  const plugins = [...common.plugins, shared];
  const made = await esbuild.build({ ...common, ...options, plugins, entryPoints: [entry], write: false, metafile: true });
  const text = made.outputFiles[0].text;
  return { text, packages: packagesOf(made.metafile), file: `${name}.${createHash("sha256").update(text).digest("hex").slice(0, 12)}.js` };
}

/** The container, the door that it loads, and what that one loads when it is first needed: each knows the next one's file. */
export async function bundles() {
  const late = await Promise.all([
    bundle("src/view/mount.tsx", "view", { format: "esm" }),
    bundle("src/editor/index.ts", "editor", { format: "esm" }),
    bundle("src/view/panels/index.tsx", "cards", { format: "esm" }),
    bundle("src/lab/output.ts", "saved", { format: "esm", inject: [] }),
    bundle("src/lab/lazy.ts", "late", { format: "esm", inject: [] }),
  ]);
  const [TAPE_VIEW, TAPE_EDITOR, TAPE_CARDS, TAPE_SAVED, TAPE_LATE] = late.map(({ file }) => JSON.stringify(file));
  const door = await bundle("src/lab/index.ts", "door", { format: "esm", inject: [], define: { TAPE_VIEW, TAPE_EDITOR, TAPE_CARDS, TAPE_SAVED, TAPE_LATE } });
  const container = await bundle("src/lab/container.ts", "remoteEntry", { format: "iife", inject: [], define: { TAPE_DOOR: JSON.stringify(door.file) } });
  return { container, chunks: [door, ...late] };
}

function write(out, { container, chunks }) {
  const { name, version, license } = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));
  const schemas = join(out, "schemas", name);
  rmSync(out, { recursive: true, force: true });
  mkdirSync(join(out, "static"), { recursive: true });
  mkdirSync(schemas, { recursive: true });
  for (const { file, text } of [container, ...chunks]) writeFileSync(join(out, "static", file), text);
  writeLicenses(join(out, "static"), here, [container, ...chunks].flatMap(({ packages }) => packages));
  copyFileSync(join(here, "schema", "plugin.json"), join(schemas, "plugin.json"));
  const _build = { load: `static/${container.file}`, extension: "./extension", mimeExtension: "./mimeExtension" };
  const jupyterlab = { extension: true, mimeExtension: true, schemaDir: "schema", _build };
  const description = "Records, shows, edits and replays the calls of a notebook's cells.";
  const told = JSON.stringify({ name, version, license, description, jupyterlab }, null, 2);
  writeFileSync(join(out, "package.json"), told);
  writeFileSync(join(schemas, "package.json.orig"), told);
  const uninstallInstructions = "pip uninstall tape-jupyter";
  writeFileSync(join(out, "install.json"), JSON.stringify({ packageManager: "python", packageName: name, uninstallInstructions }, null, 2));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) write(join(package_, "labextension"), await bundles());
