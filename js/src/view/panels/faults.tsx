/** A fault instead of the reply: which one, with its options. */
import { useName } from "../edit/widgets.tsx";
import type { Fault } from "../protocol.ts";
import type { Draft } from "./draft.ts";

interface FaultsProps { faults: readonly Fault[]; fault: Draft["fault"]; onType: (fault: Draft["fault"]) => void }

export function Faults({ faults, fault, onType }: FaultsProps) {
  const group = useName();
  const key = (option: string) => `${fault.name}.${option}`;
  const type = (option: string, text: string) => onType({ ...fault, options: { ...fault.options, [key(option)]: text } });
  return <fieldset class="tape-faults">
    <legend>Instead of the reply, the program gets</legend>
    {faults.map(({ name, label, options }) => <div key={name} class="tape-fault">
      <label><input type="radio" name={group} checked={name === fault.name} onChange={() => onType({ ...fault, name })} /> {label}</label>
      {name === fault.name && options.map((option) => {
        const text = fault.options[key(option.name)] ?? String(option.value);
        return <label key={option.name} class="tape-option">{typeof option.value === "boolean"
          ? <><input type="checkbox" checked={text === "true"} onChange={(event) => type(option.name, String(event.currentTarget.checked))} /> {option.label}</>
          : <>{option.label} <input type="text" inputMode={typeof option.value === "number" ? "decimal" : "text"} class={typeof option.value === "number" ? "tape-short" : ""}
            value={text} onInput={(event) => type(option.name, event.currentTarget.value)} /></>}</label>;
      })}
    </div>)}
  </fieldset>;
}
