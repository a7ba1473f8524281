// Builds what ships inside the Python package: tape_jupyter/static/{widget,page,editor}.js. Not in git.
import * as esbuild from "esbuild";
import { existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { packagesOf, writeLicenses } from "./licenses.mjs";

export const here = dirname(fileURLToPath(import.meta.url));
export const package_ = join(here, "..", "tape_jupyter");

/** A custom property: esbuild leaves the spaces in it. */
const CUSTOM = /--[\w-]+:[^;{}]+/g;

/** Stylesheets travel as minified text: views adopt them into their shadow root. */
export const styles = {
  name: "styles",
  setup(build) {
    build.onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const made = await esbuild.build({ entryPoints: [path], minify: true, write: false });
      const text = made.outputFiles[0].text.trim().replace(CUSTOM, (each) => each.replace(/([:,]) /g, "$1"));
      return { contents: text, loader: "text", watchFiles: [path] };
    });
  },
};

/** What every bundle has in common. */
export const common = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  target: "es2022",
  tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } }, // its `jsx` is for the type checker
  jsx: "transform",
  jsxFactory: "h",
  jsxFragment: "Fragment",
  inject: ["h.mjs"],
  legalComments: "none",
  charset: "utf8",
  logLevel: "warning",
  plugins: [styles],
};

/** A saved page changes nothing: what edits stays out of it. */
const unedited = {
  name: "unedited",
  setup(build) {
    build.onResolve({ filter: /\/edit\/index\.ts$/ }, () => ({ path: join(here, "src/page/edit.tsx") }));
    build.onResolve({ filter: /\/step\/index\.tsx$/ }, () => ({ path: join(here, "src/page/step.ts") }));
  },
};

/** The doors that stand alone: entry, file, form. The labextension has a build of its own. */
export const DOORS = [
  { entry: "src/widget/index.ts", file: "widget.js", format: "esm" },
  { entry: "src/page/index.ts", file: "page.js", format: "iife", plugins: [unedited] },
  { entry: "src/page/sidebar.tsx", file: "page-side.js", format: "iife" },
  { entry: "src/view/panels/index.tsx", file: "cards.js", format: "esm" },
  { entry: "src/editor/index.ts", file: "editor.js", format: "esm", inject: [] },
];

/** Bundle one door; without `outdir` nothing is written. Its text comes back. `bundled` gets the packages that are in it. */
export async function build({ entry, file, format, plugins = [], inject = common.inject }, outdir, bundled = []) {
  const made = await esbuild.build({ ...common, inject, plugins: [...common.plugins, ...plugins], entryPoints: [entry], format, write: outdir !== undefined, outfile: join(outdir ?? here, file), metafile: true });
  bundled.push(...packagesOf(made.metafile));
  return made.outputFiles?.[0].text ?? "";
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const outdir = join(package_, "static");
  mkdirSync(outdir, { recursive: true });
  const bundled = [];
  for (const door of DOORS.filter(({ entry }) => existsSync(join(here, entry)))) await build(door, outdir, bundled);
  writeLicenses(outdir, here, bundled);
}
