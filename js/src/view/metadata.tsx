import { dollars, duration, exact } from "./format.ts";
import type { Detail } from "./protocol.ts";

/** Names and values, one a line. */
export function Facts({ facts }: { facts: readonly (readonly [string, string])[] }) {
  return <dl class="facts">{facts.map(([name, value], at) => <div key={at}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>;
}

export function Headers({ detail }: { detail: Detail }) {
  const { request, reply } = detail.headers;
  return <>
    {request.length > 0 && <><h3>Request</h3><Facts facts={request} /></>}
    {reply.length > 0 && <><h3>Reply{detail.status === null ? "" : ` ${detail.status}`}</h3><Facts facts={reply} /></>}
  </>;
}

export function Timing({ detail }: { detail: Detail }) {
  const { at, seconds, first, chunks, rate } = detail.timing;
  const { tokens_in, tokens_out, cost, model } = detail.usage;
  const streamed = first === null ? null : Math.max(seconds - first, 0);
  const facts: [string, string][] = [
    ["started", moment(at)],
    ["took", duration(seconds)],
    ["first token", first === null ? "" : `after ${duration(first)}`],
    ["streaming", streamed === null ? "" : duration(streamed)],
    ["chunks", chunks ? exact(chunks) : ""],
    ["rate", rate === null ? "" : `${rate.toFixed(rate < 10 ? 1 : 0)} tok/s`],
    ["model", model],
    ["tokens in", tokens_in === null ? "" : exact(tokens_in)],
    ["tokens out", tokens_out === null ? "" : exact(tokens_out)],
    ["cost at list price", dollars(cost)],
    ["ended", detail.ending],
    ...detail.tags,
  ];
  return <>
    {first !== null && seconds > 0 && <div class="split-bar" role="img" aria-label={`${duration(first)} waiting, ${duration(streamed ?? 0)} streaming`}>
      <span style={`flex:${first}`}>{duration(first)}</span><span style={`flex:${streamed ?? 0}`}>{duration(streamed ?? NaN)}</span></div>}
    <Facts facts={facts.filter(([, value]) => value)} />
  </>;
}

/** A moment in the reader's own time zone; what is no date stays as it was written. */
function moment(at: string): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? at : date.toLocaleString();
}
