/** What was beside what is: a row for each name, and how a request differs from the recorded one. */
import { words } from "../edit/labels.ts";
import { Runs } from "../edit/widgets.tsx";
import type { ChangedField } from "../protocol.ts";
import { Wide } from "./wide.tsx";

interface BesideProps { label: string; heads: readonly string[]; rows: readonly (readonly [name: string, before: string, after: string])[]; look?: string }

/** Where there is little room, the name stands above the two. */
export function Beside({ label, heads, rows, look }: BesideProps) {
  return <Wide label={label}><table class="tape-fields-table"><thead><tr>{heads.map((head) => <th key={head} scope="col">{head}</th>)}</tr></thead>
    <tbody class={look}>{rows.map(([name, before, after]) => {
      const runs = words(before, after);
      return <tr key={name}><th scope="row"><code>{name}</code></th>
        {["new", "gone"].map((other) => <td key={other}><Runs runs={runs.filter(({ mark }) => mark !== other)} /></td>)}</tr>;
    })}</tbody></table></Wide>;
}

export function ChangedFields({ fields }: { fields: readonly ChangedField[] }) {
  return <Beside label="Fields that differ" heads={["field", "recorded", "now"]} rows={fields.map(({ path, recorded, now }) => [path, recorded, now])} />;
}
