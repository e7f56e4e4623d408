import { readResponse, readEvent, problemMessage } from './answer.ts'
import type { ParsedOutput } from './answer.ts'
import { EventReader } from './events.ts'
import type { ServerEvent } from './events.ts'
import type { Call, Protocol } from './prompt.ts'

/** How far a request of the playground has come, and what it has brought. */
export interface Progress {
  readonly phase: 'waiting' | 'reading' | 'complete' | 'failed' | 'stopped'
  readonly status: number | null
  /** The gateway's id of it, for its row in the ledger. */
  readonly requestId: string | null
  readonly text: string
  readonly reasoning: string
  readonly usage: Readonly<Record<string, number>> | null
  /** Why it ended, in the protocol's word. */
  readonly finish: string | null
  readonly error: string | null
  /** Milliseconds from the start, to the first byte of the body and to the end. */
  readonly firstByteMs: number | null
  readonly totalMs: number | null
  /** The stream's events; the same list grows while it is read. */
  readonly events: readonly ServerEvent[]
  readonly eventCount: number
  /** An answer that is no stream of events, as it came. */
  readonly body: string
}

export interface RunOptions {
  readonly protocol: Protocol
  readonly signal: AbortSignal
  /** Sends it as the user of the console. */
  readonly send: (call: Call, signal: AbortSignal) => Promise<Response>
  /** Milliseconds. */
  readonly now: () => number
  readonly onProgress: (progress: Progress) => void
}

export const INITIAL_PROGRESS: Progress = {
  phase: 'waiting', status: null, requestId: null, text: '', reasoning: '', usage: null, finish: null,
    error: null,
  firstByteMs: null, totalMs: null, events: [], eventCount: 0, body: '',
}

/** Sends a request and tells of its answer as it comes. Whatever goes wrong is told, not thrown. */
export async function run(call: Call,
  { protocol, signal, send, now, onProgress }: RunOptions): Promise<void> {
  const start = now()
  let progress = INITIAL_PROGRESS
  const tell = (news: Partial<Progress>): void => onProgress(progress = { ...progress, ...news })
  const finish = (news: Partial<Progress>): void => tell({ ...news, totalMs: now() - start })
  tell({})
  try {
    const response = await send(call, signal)
    tell({ phase: 'reading', status: response.status,
      requestId: response.headers.get('x-gateway-request-id') })
    const isStream = /^text\/event-stream\b/i.test(response.headers.get('content-type') ?? '')
    const reader = new EventReader()
    const events: ServerEvent[] = []
    let last = false
    for await (const piece of pieces(response)) {
      const firstByteMs = progress.firstByteMs ?? now() - start
      if (!isStream) {
        tell({ firstByteMs, body: progress.body + piece })
        continue
      }
      const fresh = reader.push(piece)
      const said = fresh.map(({ data }) => readEvent(protocol, data))
      events.push(...fresh)
      last ||= said.some(({ isLast }) => isLast)
      tell({ ...added(progress, said), firstByteMs, events, eventCount: events.length })
    }
    if (isStream) return finish(endOfStream(progress, last))
    const said = readResponse(protocol, progress.body)
    const failed = said.error !== null || !response.ok
    const error = !failed ? null
      : said.error ?? problemMessage(progress.body) ?? `The answer's status is ${response.status}.`
    finish({ ...added(progress, [said]), error, phase: failed ? 'failed' : 'complete' })
  } catch {
    // Browsers tell no more than that it broke.
    if (signal.aborted) return finish({ phase: 'stopped' })
    finish({ phase: 'failed', error: 'The connection broke before the answer was complete.' })
  }
}

function endOfStream({ error }: Progress, last: boolean): Partial<Progress> {
  if (error !== null) return { phase: 'failed' }
  return last ? { phase: 'complete' }
    : { phase: 'failed', error: 'The stream ended before the answer was complete.' }
}

function added(progress: Progress, said: readonly ParsedOutput[]): Partial<Progress> {
  // Some protocols tell input and output apart, in different events.
  const figures = said.flatMap(({ usage }) => (usage === null ? [] : [usage]))
  return {
    text: progress.text + said.map(({ text }) => text).join(''),
    reasoning: progress.reasoning + said.map(({ reasoning }) => reasoning).join(''),
    usage: figures.length === 0 ? progress.usage
      : Object.assign({}, progress.usage, ...figures) as Record<string, number>,
    finish: said.findLast(({ finish }) => finish !== null)?.finish ?? progress.finish,
    error: said.findLast(({ error }) => error !== null)?.error ?? progress.error,
  }
}

async function* pieces({ body }: Response): AsyncGenerator<string> {
  if (body === null) return
  const decoder = new TextDecoder()
  const reader = body.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      const piece = decoder.decode(value, { stream: !done })
      if (piece !== '') yield piece
      if (done) return
    }
  } finally {
    reader.releaseLock()
  }
}
