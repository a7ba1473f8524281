// The licences of other people's packages in a bundle, in the form that JupyterLab reports (Help, Licenses).
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const PACKAGE = /^node_modules\/((?:@[^/]+\/)?[^/]+)\//;
const LICENSE = /^licen[cs]e(\.(md|txt))?$/i;

/** The names of the packages that an esbuild metafile's inputs come from. */
export function packagesOf(metafile) {
  return Object.keys(metafile.inputs).flatMap((path) => PACKAGE.exec(path)?.[1] ?? []);
}

/** Writes `third-party-licenses.json` for these packages of `root`/node_modules. Throws where one has no licence file. */
export function writeLicenses(folder, root, names) {
  const packages = [...new Set(names)].sort().map((name) => {
    const place = join(root, "node_modules", name);
    const { version, license } = JSON.parse(readFileSync(join(place, "package.json"), "utf8"));
    const file = readdirSync(place).find((each) => LICENSE.test(each));
    if (file === undefined) throw new Error(`${name} has no licence file`);
    return { name, versionInfo: version, licenseId: license, extractedText: readFileSync(join(place, file), "utf8") };
  });
  writeFileSync(join(folder, "third-party-licenses.json"), JSON.stringify({ packages }, null, 1));
}
