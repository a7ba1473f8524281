import type { ComponentChildren, ComponentType } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { DiffTab } from "./compare.tsx";
import { Conversation } from "./conversation.tsx";
import { useLook, type Desk, type Look } from "./store.ts";
import type { DetailProps, PaneProps, Work } from "./edit/store.ts";
import { useLate } from "./edit/widgets.tsx";
import { Facts, Headers, Timing } from "./metadata.tsx";
import { useAsked, useSize } from "./hooks.ts";
import { dollars, duration, short } from "./format.ts";
import { Text } from "./json.tsx";
import type { Detail as Details } from "./protocol.ts";
import { focusRow } from "./keys.ts";
import { RawTab } from "./raw.tsx";
import { GLYPH } from "./row.tsx";
import { Failed } from "./placeholders.tsx";
import { MARKS } from "./protocol.ts";

interface Tab { name: string; word: string; there: (detail: Details) => boolean }
const CALL = (detail: Details): boolean => detail.kind !== "cell" && detail.kind !== "span";
const TABS: readonly Tab[] = [
  { name: "conversation", word: "Conversation", there: ({ turns }) => turns.length > 0 },
  { name: "summary", word: "Summary", there: (detail) => detail.turns.length === 0 && CALL(detail) },
  { name: "source", word: "Source", there: ({ source }) => source !== null && source !== "" },
  { name: "request", word: "Request", there: (detail) => CALL(detail) && detail.request.text !== "" },
  { name: "reply", word: "Reply", there: (detail) => CALL(detail) && detail.reply.text !== "" },
  { name: "raw", word: "Raw", there: ({ raw }) => raw.request + raw.reply > 0 },
  { name: "headers", word: "Headers", there: ({ headers }) => headers.request.length + headers.reply.length > 0 },
  { name: "timing", word: "Timing", there: () => true },
  { name: "kit", word: "Kit", there: ({ kit }) => kit.length > 0 },
  { name: "diff", word: "Diff", there: CALL },
];
/** Pane width in px from which all tabs stand side by side. */
const ALL_TABS = 520;

/** All about one span; what went wrong stands above everything. */
/** `Pane` edits a reply; a door that cannot has none. */
export function Detail({ desk, work, narrow, Pane }: DetailProps & { Pane: ComponentType<PaneProps> | null }) {
  const look = useLook(desk);
  const span = look.open ?? "";
  const node = useRef<HTMLElement>(null);
  const { width } = useSize(node, { width: 460, height: 400 });
  const row = desk.spans.row(span);
  const mark = MARKS[desk.spans.mark[row] ?? 0];
  const { value: detail, error, again } = useAsked(() => desk.detail(span), [desk, span, mark, desk.spans.revision]);
  const current = detail?.id === span ? detail : null;
  const late = useLate(!current && !error);
  const name = desk.spans.name[row] ?? current?.title ?? "";
  useEffect(() => {
    // The list is out of reach now; the focus is never taken from outside of the view.
    const root = node.current?.getRootNode();
    if (narrow && root instanceof ShadowRoot && root.activeElement) root.querySelector<HTMLElement>(".back")?.focus();
  }, [narrow, span]);
  const close = (): void => {
    desk.close();
    focusRow(node.current?.getRootNode() as ShadowRoot | undefined);
  };
  return <aside class="detail" ref={node} aria-label={`Detail of ${name}`}>
    <header class="detail-head">
      {narrow && <button class="back" aria-label="Back to the list" onClick={close}>←</button>}
      <h2>{mark && GLYPH[mark] ? `${GLYPH[mark]} ` : ""}{name}</h2>
      {current && <small>{facts(current, desk.spans.note[row] ?? "")}</small>}
      {!narrow && <button class="close" aria-label="Close detail" title="Close  Esc" onClick={close}>✕</button>}
    </header>
    {error ? <Failed text={error} again={again} /> : !current ? <p class="nothing" role="status">{late ? "Reading…" : ""}</p>
      : look.editing && Pane ? <Pane work={work} span={span} start={look.editing === "fault" ? "fault" : undefined} onClose={() => desk.set({ editing: null })} />
      : <Tabbed desk={desk} look={look} work={work} detail={current} few={width < ALL_TABS} />}
  </aside>;
}

function facts({ usage, timing, status, kind }: Details, note: string): string {
  const tokens = usage.tokens_in === null && usage.tokens_out === null ? "" : `${short(usage.tokens_in ?? 0)} → ${short(usage.tokens_out ?? 0)} tok`;
  return [usage.model || note, status !== null && kind !== "tool" ? String(status) : "", duration(timing.seconds), tokens, dollars(usage.cost)].filter(Boolean).join(" · ");
}

interface TabbedProps { desk: Desk; look: Look; work: Work; detail: Details; few: boolean }

function Tabbed({ desk, look, work, detail, few }: TabbedProps) {
  const list = useRef<HTMLDivElement>(null);
  const tabs = TABS.filter(({ there }) => there(detail));
  const usual = desk.able.recorded && detail.overridden !== null ? "diff" : ""; // of a take's page: what it is about
  const now = tabs.find(({ name }) => name === (look.tab || usual)) ?? tabs[0];
  const shown = few ? tabs.slice(0, 3) : tabs;
  const more = few ? tabs.slice(3) : [];
  const go = (name: string): void => desk.set({ tab: name });
  const onKeyDown = (event: KeyboardEvent): void => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    const at = (shown.findIndex((tab) => tab === now) + by + shown.length) % shown.length;
    go(shown[at]?.name ?? "");
    (list.current?.children[at] as HTMLElement | undefined)?.focus();
  };
  const selected = now !== undefined && shown.includes(now);
  return <>
    <Wrong detail={detail} />
    <div class="tabs">
      <div role="tablist" aria-label="Detail" ref={list} onKeyDown={onKeyDown}>
        {shown.map((tab, at) => <button key={tab.name} role="tab" id={`tab-${tab.name}`} aria-controls="panel" aria-selected={tab === now}
          tabIndex={tab === now || (!selected && at === 0) ? 0 : -1} onClick={() => go(tab.name)}>{tab.word}</button>)}
      </div>
      {more.length > 0 && <select class={selected ? "more" : "more more-on"} aria-label="More about it" value={selected ? "" : now?.name} onChange={(event) => go(event.currentTarget.value)}>
        <option value="" hidden>More</option>{more.map(({ name, word }) => <option key={name} value={name}>{word}</option>)}
      </select>}
    </div>
    <div class="panel" id="panel" role="tabpanel" aria-label={now?.word} tabIndex={0} key={`${detail.id} ${now?.name ?? ""}`}>
      <Panel desk={desk} detail={detail} name={now?.name ?? ""} />
    </div>
    <Actions desk={desk} work={work} detail={detail} />
  </>;
}

function Wrong({ detail }: { detail: Details }) {
  const { overridden, error } = detail;
  return <>
    {overridden && <p class="banner">✎ changed in take <b>{overridden.take}</b>{overridden.stale && " · stale: its request is another now"}{overridden.note && ` · ${overridden.note}`}</p>}
    {error !== null && error !== "" && <pre class="error" role="note">{error}</pre>}
  </>;
}

function Panel({ desk, detail, name }: { desk: Desk; detail: Details; name: string }): ComponentChildren {
  const look = desk.look.session;
  const hasRecorded = desk.door !== "page" || Boolean(desk.able.recorded);
  const based = hasRecorded && (detail.overridden !== null || (desk.door !== "page" && Boolean(look?.take)));
  return useMemo(() => {
    switch (name) {
      case "conversation": return <Conversation turns={detail.turns} changed={detail.overridden !== null} />;
      case "summary": return <Summary detail={detail} />;
      case "source": return <Source desk={desk} detail={detail} />;
      case "request": return <Text section={detail.request} label="Request" />;
      case "reply": return <Text section={detail.reply} label="Reply" />;
      case "raw": return <RawTab desk={desk} detail={detail} />;
      case "headers": return <Headers detail={detail} />;
      case "kit": return <Facts facts={detail.kit} />;
      case "diff": return <DiffTab desk={desk} detail={detail} based={based} />;
      default: return <Timing detail={detail} />;
    }
  }, [desk, detail, name, based]);
}

/** What went in and what came out, of what is no conversation. */
function Summary({ detail }: { detail: Details }) {
  const tool = detail.kind === "tool" || detail.kind === "retrieval";
  const [asked, got] = tool ? ["Arguments", "Result"] : ["Request", "Reply"];
  return <><h3>{asked}</h3><Text section={detail.request} label={asked} /><h3>{got}</h3><Text section={detail.reply} label={got} /></>;
}

function Source({ desk, detail }: { desk: Desk; detail: Details }) {
  return <>
    <pre class="tape-code source">{detail.source}</pre>
    {desk.able.cells && <p><button class="tape-link" onClick={() => desk.focusCell(detail.cell)}>only this cell</button></p>}
  </>;
}

function Actions({ desk, work, detail }: { desk: Desk; work: Work; detail: Details }) {
  const edits = desk.able.override && detail.editable !== "no";
  const take = desk.look.session?.take ?? "";
  if (!edits && !desk.able.rerun) return null;
  return <footer class="acts">
    {edits && <button class="tape-primary" data-back="edit" title="Edit reply  e" onClick={() => desk.set({ editing: "reply" })}>Edit reply</button>}
    {edits && detail.kind !== "tool" && detail.kind !== "retrieval" && <button title="Make it fail: 429, a reset, a timeout" onClick={() => desk.set({ editing: "fault" })}>Fault…</button>}
    {desk.able.rerun && <button title="Re-run what depends on it  r" onClick={() => void work.plan(take, [detail.id])}>Re-run below</button>}
  </footer>;
}
