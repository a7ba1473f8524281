/** How a request differs from the recorded one: what was recorded beside what is asked now. */
import { words } from "../edit/labels.ts";
import { Runs } from "../edit/widgets.tsx";
import type { ChangedField } from "../protocol.ts";
import { Wide } from "./wide.tsx";

export function ChangedFields({ fields }: { fields: readonly ChangedField[] }) {
  return <Wide label="Fields that differ"><table class="tape-fields-table"><thead><tr><th scope="col">field</th><th scope="col">recorded</th><th scope="col">now</th></tr></thead>
    <tbody>{fields.map(({ path, recorded, now }) => {
      const runs = words(recorded, now);
      return <tr key={path}><th scope="row"><code>{path}</code></th>
        <td><Runs runs={runs.filter(({ mark }) => mark !== "new")} /></td><td><Runs runs={runs.filter(({ mark }) => mark !== "gone")} /></td></tr>;
    })}</tbody></table></Wide>;
}
