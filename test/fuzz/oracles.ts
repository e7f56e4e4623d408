import type { Received } from './client.ts'
import { MAX_MEMORY } from './gateway.ts'
import type { Report } from './probe.ts'
import type { RequestSeed } from './requests.ts'
import { endsTooSoon, errorFault, translatedFault } from './shapes.ts'
import type { Exchange } from './upstream.ts'

/** What happened in one case. */
export interface Outcome {
  readonly seed: RequestSeed
  readonly path: string
  readonly target: string
  /** Bytes of the request's body, without its content coding. */
  readonly size: number
  readonly burst: number
  readonly received: readonly Received[]
  readonly exchanges: readonly Exchange[]
  /** null = the gateway has ended. */
  readonly report: Report | null
  /** What it logged as errors. */
  readonly errors: readonly string[]
  readonly lastWords: string
}

/** Bytes: a turn of the event loop has a bound for bodies below. */
const SMALL_BODY = 1_000_000
/** Bytes of one name of an error that tells of a fault of the gateway itself. */
const INTERNAL = Buffer.from('"internal"')

/**
 * Google's embeddings, whose responses have no usage. The gateway counts their text when it settles, and dense text has
 * more tokens than the estimate that is reserved: a quarter of its bytes.
 */
const COUNTED_HERE = /:(?:batchE|e)mbedContents?\b/i

/** @returns all that is wrong; each begins with a word for its kind */
export function faultsOf(outcome: Outcome, maxTurnMs: number): string[] {
  const { report, path, exchanges, errors, size, burst, received, lastWords } = outcome
  if (report === null) return [`dies: ${lastWords}`]
  const isSmall = size < SMALL_BODY && burst === 1 && exchanges.every(({ bytes }) => bytes.length < SMALL_BODY)
  return [
    ...isSmall && report.turnMs > maxTurnMs ? [`blocks: ${Math.round(report.turnMs)} ms`] : [],
    ...report.peak > MAX_MEMORY ? [`grows: to ${Math.round(report.peak / 2 ** 20)} MB`] : [],
    ...COUNTED_HERE.test(path) ? [] : report.overspent.map(text => `overspends: ${text}`), ...errors.map(text => `logs: ${text}`),
    ...new Set(received.flatMap(one => responseFaults(one, outcome))),
  ]
}

function responseFaults(received: Received, { seed, path, target, exchanges }: Outcome): string[] {
  const { status, headers, isWhole, hangs } = received
  if (hangs) return ['hangs: no end of the response']
  if (seed.form === 'socket') return []
  const isTranslated = headers['x-gateway-translated'] !== undefined
  const isOwn = exchanges.length === 0
  // The second upstream speaks the client's protocol: what is odd in its events is its own.
  const isContinued = target === 'continued' && exchanges.length > 1
  if (status >= 500 && received.body?.includes(INTERNAL)) return [`internal: ${String(received.body).slice(0, 300)}`]
  if (status === 0) return isOwn ? ['shape: no response'] : []
  if (isUnreadable(received)) return isTranslated || isOwn ? ['shape: a coding that cannot be read'] : []
  const faults: string[] = []
  if (status >= 400 && isWhole && (isTranslated || isOwn)) faults.push(errorFault(seed.protocol, received) ?? '')
  else if (status === 200 && isTranslated && !isContinued) faults.push(translatedFault(seed.protocol, path, received) ?? '')
  const last = exchanges.at(-1)
  if (endsTooSoon(seed.protocol, path, received) && (last?.response.status ?? 0) < 400) faults.push('ends: a stream ends in order without its last event')
  if (target === 'plain' && last !== undefined && exchanges.length === 1 && !isTranslated) faults.push(passedFault(received, last, path))
  return faults.filter(fault => fault !== '').map(fault => fault.startsWith('ends') || fault.startsWith('passes') ? fault : `shape: ${fault}`)
}

/** A response of an upstream that speaks the client's protocol stays as it is, and is cut where it was cut. */
function passedFault({ status, body, isWhole, headers }: Received, { response: { wire, status: sent, framing }, bytes }: Exchange, path: string): string {
  if (sent !== status || status !== 200) return ''
  if (wire.cut !== null && isWhole && framing === 'whole' && wire.cut < 1000) return `passes: a response that is cut at ${wire.cut} as a whole one`
  // What the gateway asked for itself, the usage of a chat stream, stays behind.
  if (wire.cut !== null || !isWhole || /completions/.test(path) && framing === 'sse') return ''
  return body?.equals(bytes) ? '' : `passes: ${body?.length} bytes of ${bytes.length}, ${headers['content-type']}`
}

/** In a coding that the client does not know, or not in the one that it says. */
function isUnreadable({ headers, body }: Received): boolean {
  return body === null || headers['content-encoding'] === 'x-unknown'
}
