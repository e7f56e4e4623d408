import { formatUsd } from '../base/decimal.ts'
import { formatNumber, escapeControlCharacters } from '../base/text-table.ts'
import type { AttemptRecord, EndReason, LedgerRow, UsageSource } from './row.ts'

export const END_DESCRIPTIONS: Readonly<Record<EndReason, string>> = {
  complete: 'the whole response was sent',
  client_gone: 'the client disconnected before the response was complete',
  upstream_cut: 'the upstream disconnected before the response was complete',
  timeout: 'a timeout expired',
  refused: 'the gateway refused the request and sent it to no upstream',
  error: 'the request failed',
  interrupted: 'the gateway process ended while the request ran; the values are from its last checkpoint',
}

export const SOURCE_DESCRIPTIONS: Readonly<Record<UsageSource, string>> = {
  reported: 'reported by the upstream',
  estimated: 'estimated by the gateway, because the upstream reported none',
  mixed: 'partly reported by the upstream, partly estimated by the gateway',
  none: 'none',
}

/** The text for an unknown cost although there is a price. */
const COST_UNKNOWN_REASON = 'part of the usage is unknown or has no price'

/** A line of a bill: quantity x price / per = cost. */
export interface CostLine {
  readonly item: string
  readonly quantity: number
  /** USD for `per` units. */
  readonly price: string
  readonly per: number
  /** USD. */
  readonly cost: string
}

/** @returns all that the ledger has about one request, as text @param running true = the row is a checkpoint @param bill empty = unknown */
export function requestReport(row: LedgerRow, running: boolean, bill: readonly CostLine[]): string {
  return [
    section(`Request ${row.requestId}`, [
      ['started', new Date(row.startedAt).toISOString()],
      ['key', row.key ?? 'none'],
      ...row.user === null ? [] : [['user', row.user] as const],
      ...row.tags === null ? [] : [['tags', tagText(row.tags)] as const],
      ...row.queuedMs === undefined ? [] : [['queued', `${row.queuedMs} ms`] as const],
      ...row.policy === undefined ? [] : [['policy', row.policy.map(({ rule, action, count }) => `${rule}: ${action} (${count})`).join(', ')] as const],
      ...row.billed === null ? [] : [['billed', row.billed] as const],
      ['endpoint', row.endpoint ?? 'unknown'],
      ['protocol', row.protocol ?? 'unknown'],
      ['model', row.model ?? 'none'],
      ['route', row.route ?? 'none took it'],
      ...row.traceId === null ? [] : [['trace', row.traceId] as const],
      ['upstream', respondingUpstream(row)],
      ['status', row.status === null ? 'none sent' : String(row.status)],
      ...row.error === null ? [] : [['error', row.error] as const],
      ['end', running ? 'it is still running: what follows is provisional' : `${row.end}: ${END_DESCRIPTIONS[row.end]}`],
      ['bytes', `${formatNumber(row.bytesIn)} in, ${formatNumber(row.bytesOut)} out`],
      ...row.unreadable === undefined ? [] : [['unreadable', row.unreadable.join(', ')] as const],
    ]),
    timeline(row, running),
    section(`Usage (${SOURCE_DESCRIPTIONS[row.source]})`, countLines(row)),
    costs(row, bill),
  ].join('\n')
}

function tagText(tags: Readonly<Record<string, string>>): string {
  return Object.entries(tags).map(([name, value]) => `${name}=${value}`).join(', ')
}

type Line = readonly [label: string, text: string]

function section(title: string, lines: readonly Line[]): string {
  const width = Math.max(...lines.map(([label]) => label.length))
  const text = lines.map(([label, value]) => `  ${label.padEnd(width)}  ${escapeControlCharacters(value)}\n`)
  return `${escapeControlCharacters(title)}\n${text.join('')}`
}

function respondingUpstream({ upstream, upstreamModel }: LedgerRow): string {
  if (upstream === null) return 'none'
  return upstreamModel === null ? upstream : `${upstream}, as ${upstreamModel}`
}

function timeline(row: LedgerRow, running: boolean): string {
  const events: [ms: number | null, what: string][] = [[0, 'the request arrived']]
  row.attempts.forEach((attempt, n) => events.push([attempt.atMs ?? null, attemptText(attempt, n + 1)]))
  if (row.firstByteMs !== null) events.push([row.firstByteMs, 'first byte of the response'])
  if (row.durationMs !== null && !running) events.push([row.durationMs, `the end: ${row.end}`])
  // An attempt without a start time is sorted after the previous attempt.
  let last = 0
  const ordered = events.map(([ms, what], n) => ({ time: formatNumber(ms), what, n, at: last = ms ?? last }))
    .sort((a, b) => a.at - b.at || a.n - b.n)
  const width = Math.max(...ordered.map(({ time }) => time.length))
  const lines = ordered.map(({ time, what }) => `  ${time.padStart(width)}  ${escapeControlCharacters(what)}\n`)
  return `Timeline (ms from the start of the request)\n${lines.join('')}`
}

function attemptText(attempt: AttemptRecord, n: number): string {
  const { upstream, model, translated, dropped = [], outcome, ms, status, said: word } = attempt
  const without = dropped.length === 0 ? '' : ` without ${dropped.join(', ')}`
  const translation = translated === undefined ? without && `,${without}` : `, translated ${translated}${without}`
  const what = `${upstream}${model === null ? '' : `, model ${model}`}${translation}`
  const said = `${status === undefined ? '' : `, status ${status}`}${word === undefined ? '' : ` ${word}`}`
  const text = attempt.errorText === undefined ? '' : `: ${attempt.errorText.replace(/\s+/g, ' ')}`
  return `attempt ${n}: ${what}: ${outcome}${said}, after ${formatNumber(ms)} ms${attemptShare(attempt)}${text}`
}

function attemptShare({ inputTokens, outputTokens, costUsd }: AttemptRecord): string {
  const parts = [
    ...inputTokens === undefined ? [] : [`${formatNumber(inputTokens)} tokens in`],
    ...outputTokens === undefined ? [] : [`${formatNumber(outputTokens)} out`],
    ...costUsd === undefined ? [] : [`${costUsd} USD`],
  ]
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`
}

/** @returns counts with labels; the label of a part of another count is indented below that count */
export function usageCounts({ usage }: LedgerRow): (readonly [label: string, value: number | null])[] {
  return [
    ['input tokens', usage.inputTokens],
    ['  read from cache', usage.cachedInputTokens],
    ['  written to cache, 5m', usage.cacheWrite5mTokens],
    ['  written to cache, 1h', usage.cacheWrite1hTokens],
    ['  audio', usage.inputAudioTokens],
    ['  images', usage.inputImageTokens],
    ['output tokens', usage.outputTokens],
    ['  reasoning', usage.reasoningTokens],
    ['  audio', usage.outputAudioTokens],
    ['  images', usage.outputImageTokens],
    ['seconds', usage.seconds],
    ['characters', usage.characters],
    ['images', usage.images],
  ]
}

function countLines(row: LedgerRow): Line[] {
  return usageCounts(row)
    .filter(([label, value]) => value !== null || /^(in|out)put/.test(label))
    .map(([label, value]) => [label, value === null ? 'unknown' : formatNumber(value)])
}

function costs(row: LedgerRow, bill: readonly CostLine[]): string {
  const { costPico, price, priceVersion, billed } = row
  const title = `Cost (price: ${escapeControlCharacters(priceVersion ?? 'none known')})\n`
  if (costPico === null) return `${title}  unknown: ${price === null ? 'there is no price for this' : COST_UNKNOWN_REASON}\n`
  if (costPico === 0n && billed === null) return `${title}  0 USD: nothing is billed\n`
  const lines = costLines(row, bill)
  return title + alignColumns([...lines, ['total', '', `${formatUsd(costPico)} USD`]])
}

/** If several upstreams generated a response, the lines are the attempts, each with its own cost. */
function costLines({ attempts }: LedgerRow, bill: readonly CostLine[]) {
  const shares = attempts.flatMap(({ costUsd, billed }, n) => (
    costUsd === undefined ? [] : [[`attempt ${n + 1}${billed === undefined ? '' : ', which the client pays'}`, '', costUsd] as const]))
  if (shares.length > 0) return shares
  return bill.map(({ item, quantity, price, per, cost }) => [
    item,
    `${formatNumber(quantity)} x ${price}${per === 1 ? '' : ` / ${formatNumber(per)}`} =`,
    cost,
  ] as const)
}

function alignColumns(lines: readonly (readonly [item: string, sum: string, cost: string])[]): string {
  const [items, sums] = [0, 1].map(at => Math.max(...lines.map(line => line[at]?.length ?? 0)))
  const text = lines.map(([item, sum, cost]) => `  ${item.padEnd(items ?? 0)}  ${sum.padStart(sums ?? 0)} ${cost}\n`)
  return text.join('')
}
