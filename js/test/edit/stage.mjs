// Builds a stage into a folder: node test/edit/stage.mjs OUTDIR [test/edit/stage.tsx]
import * as esbuild from "esbuild";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { argv } from "node:process";
import { common } from "../../build.mjs";

const out = argv[2] ?? "dist";
await esbuild.build({ ...common, entryPoints: [argv[3] ?? "test/edit/stage.tsx"], format: "iife", outfile: join(out, "stage.js") });
const look = ":root{color-scheme:light dark} html,body{margin:0;height:100%;background:light-dark(#fff,#111)} #stage{height:100%}";
writeFileSync(join(out, "stage.html"), `<!doctype html><html lang="en"><meta charset="utf-8"><title>stage</title><style>${look}</style><main id="stage"></main><script src="stage.js"></script></html>`);
