import { readResponse, readEvent, problemMessage, type ParsedOutput, type ToolCallPart } from './parse-response.ts'
import { EventReader, type ServerEvent } from './events.ts'
import type { Call, Protocol } from './prompt.ts'

/** The state of a playground request, and the part of the response that has arrived. */
export interface Progress {
  readonly phase: 'waiting' | 'reading' | 'complete' | 'failed' | 'stopped'
  readonly status: number | null
  /** The request ID, by which the ledger finds the request. */
  readonly requestId: string | null
  readonly text: string
  readonly reasoning: string
  /** The tool calls that have arrived, which may be incomplete. */
  readonly toolCalls: readonly ToolCallPart[]
  readonly usage: Readonly<Record<string, number>> | null
  /** The finish reason in the protocol's words. */
  readonly finish: string | null
  readonly error: string | null
  /** ms from the start to the first byte of the body, and to the end. */
  readonly firstByteMs: number | null
  readonly totalMs: number | null
  /** The events of the stream. While the stream is read, this array grows. */
  readonly events: readonly ServerEvent[]
  readonly eventCount: number
  /** Body of a response that is not an event stream. */
  readonly body: string
}

export interface RunOptions {
  readonly protocol: Protocol
  readonly signal: AbortSignal
  /** Sends the request as the user of the console. */
  readonly send: (call: Call, signal: AbortSignal) => Promise<Response>
  /** Returns the time in ms. */
  readonly now: () => number
  readonly onProgress: (progress: Progress) => void
}

const INITIAL_PROGRESS: Progress = {
  phase: 'waiting', status: null, requestId: null, text: '', reasoning: '', toolCalls: [], usage: null, finish: null,
  error: null, firstByteMs: null, totalMs: null, events: [], eventCount: 0, body: '',
}

/** Sends a request, and reports its progress. An error is reported as progress, and not thrown. */
export async function run(
  call: Call, { protocol, signal, send, now, onProgress }: RunOptions,
): Promise<void> {
  const start = now()
  let progress = INITIAL_PROGRESS
  const update = (changes: Partial<Progress>): void => onProgress(progress = { ...progress, ...changes })
  const finish = (changes: Partial<Progress>): void => update({ ...changes, totalMs: now() - start })
  update({})
  try {
    const response = await send(call, signal)
    update({
      phase: 'reading', status: response.status, requestId: response.headers.get('x-gateway-request-id'),
    })
    const isStream = /^text\/event-stream\b/i.test(response.headers.get('content-type') ?? '')
    const reader = new EventReader()
    const events: ServerEvent[] = []
    let sawLast = false
    for await (const piece of pieces(response)) {
      const firstByteMs = progress.firstByteMs ?? now() - start
      if (!isStream) {
        update({ firstByteMs, body: progress.body + piece })
        continue
      }
      const newEvents = reader.push(piece)
      const parts = newEvents.map(({ data }) => readEvent(protocol, data))
      events.push(...newEvents)
      sawLast ||= parts.some(({ isLast }) => isLast)
      update({ ...withParts(progress, parts), firstByteMs, events, eventCount: events.length })
    }
    if (isStream) return finish(endOfStream(progress, sawLast))
    const part = readResponse(protocol, progress.body)
    const failed = part.error !== null || !response.ok
    const error = !failed ? null
      : part.error ?? problemMessage(progress.body) ?? `The response has status ${response.status}.`
    finish({ ...withParts(progress, [part]), error, phase: failed ? 'failed' : 'complete' })
  } catch {
    // fetch does not report why the connection failed.
    if (signal.aborted) return finish({ phase: 'stopped' })
    finish({ phase: 'failed', error: 'The connection closed before the response was complete.' })
  }
}

function endOfStream({ error }: Progress, sawLast: boolean): Partial<Progress> {
  if (error !== null) return { phase: 'failed' }
  return sawLast ? { phase: 'complete' }
    : { phase: 'failed', error: 'The stream ended before the response was complete.' }
}

function withParts(progress: Progress, parts: readonly ParsedOutput[]): Partial<Progress> {
  // Merge usage, because some protocols report input and output in different events.
  const figures = parts.flatMap(({ usage }) => (usage === null ? [] : [usage]))
  return {
    text: progress.text + parts.map(({ text }) => text).join(''),
    reasoning: progress.reasoning + parts.map(({ reasoning }) => reasoning).join(''),
    toolCalls: joinedCalls([...progress.toolCalls, ...parts.flatMap(({ toolCalls }) => toolCalls)]),
    usage: figures.length === 0 ? progress.usage
      : Object.assign({}, progress.usage, ...figures) as Record<string, number>,
    finish: parts.findLast(({ finish }) => finish !== null)?.finish ?? progress.finish,
    error: parts.findLast(({ error }) => error !== null)?.error ?? progress.error,
  }
}

/** Joins the pieces of each tool call. */
function joinedCalls(parts: readonly ToolCallPart[]): ToolCallPart[] {
  const calls: ToolCallPart[] = []
  for (const part of parts) {
    const at = part.index === null ? -1 : calls.findIndex(({ index }) => index === part.index)
    const call = calls[at]
    if (call === undefined) calls.push(part)
    else calls[at] = { ...call, name: call.name || part.name, input: call.input + part.input }
  }
  return calls
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
