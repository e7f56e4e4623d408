import type { Behaviour } from './behaviour.ts'
import type { EventSink } from './event-sink.ts'
import type { EventStream } from './simulated-response.ts'

/** Maximum characters of events that are sent together, if nothing has to happen between them. */
const BATCH = 16 * 1024

type Ending = 'stall' | 'error' | 'cut' | 'close' | 'reset'

/**
 * Sends the events of a script to an event sink. Applies the behaviours of the stream: the pace of the events, which event is malformed,
 * and after which event the stream fails.
 *
 * @returns a function that stops at once: no more events are created or sent
 */
export function play(script: EventStream, behaviour: Behaviour, stage: EventSink): () => void {
  const events = script.events[Symbol.iterator]()
  const ending = endingOf(behaviour, script.error !== null)
  const pace = behaviour.pace ?? 0
  let last = behaviour.no_terminator ? null : script.last
  let timer: NodeJS.Timeout | undefined
  let stopped = false
  let sent = 0

  const pull = (): string | Buffer | null => {
    const { value, done } = events.next()
    if (!done) return value
    const closing = last?.() ?? null
    last = null
    return closing
  }
  const single = !stage.batches || pace > 0 || ending !== null || needsSingleEvents(behaviour)
  const next = single ? pull : () => batch(pull)
  const advance = () => {
    timer = undefined
    for (;;) {
      if (ending !== null && sent === ending.after) return finish(ending.kind)
      const event = next()
      if (event === null) return finish('end')
      const more = stage.send(sent === behaviour.malformed_after ? garble(event) : event, resume)
      sent++
      if (!more) return
      if (pace > 0) return resume()
    }
  }
  const resume = () => {
    if (stopped) return
    if (pace > 0) timer = setTimeout(advance, pace)
    else advance()
  }
  const finish = (kind: Ending | 'end') => {
    stop()
    switch (kind) {
      case 'stall': return
      case 'error': return report(script.error!())
      case 'cut':
      case 'end': return stage.end(kind === 'end')
      case 'close': return stage.close()
      case 'reset': return stage.reset()
    }
  }
  const report = (error: string) => {
    const end = () => stage.end(true)
    if (stage.send(error, end)) end()
  }
  const stop = () => {
    stopped = true
    clearTimeout(timer)
    events.return?.()
  }

  if (behaviour.first_delay) timer = setTimeout(advance, behaviour.first_delay)
  else advance()
  return stop
}

/** Tells whether a behaviour counts events or changes an event, so that events must be sent one by one. */
function needsSingleEvents(behaviour: Behaviour): boolean {
  const { malformed_after, split, comments, gzip } = behaviour
  return malformed_after !== undefined || split !== undefined || comments === true || gzip === true
}

/** The earliest failure. Of several failures after the same event, the first in this list is used. */
function endingOf(behaviour: Behaviour, reports: boolean): { kind: Ending; after: number } | null {
  const error = behaviour.first_event_error ? 0 : behaviour.error_event_after
  const planned: [Ending, number | undefined][] = [
    ['error', reports ? error : undefined],
    ['stall', behaviour.stall_after],
    ['cut', behaviour.cut_after],
    ['close', behaviour.close_after],
    ['reset', behaviour.reset_after],
  ]
  let first: { kind: Ending; after: number } | null = null
  for (const [kind, after] of planned) {
    if (after !== undefined && (first === null || after < first.after)) first = { kind, after }
  }
  return first
}

function batch(pull: () => string | Buffer | null): string | Buffer | null {
  let text = ''
  while (text.length < BATCH) {
    const event = pull()
    if (event === null) return text === '' ? null : text
    // Do not join buffers, because the size of each is intended.
    if (typeof event !== 'string') return event
    text += event
  }
  return text
}

/**
 * Cuts an event in half and frames it as a complete event. The event is malformed in every protocol, because half of a JSON object is no
 * JSON.
 */
function garble(event: string | Buffer): string | Buffer {
  if (typeof event !== 'string') {
    return Buffer.concat([event.subarray(0, event.length / 2), Buffer.from('"}{"')])
  }
  const start = Math.max(event.indexOf('{'), 0)
  const half = event.slice(0, start + Math.ceil((event.length - start) / 2))
  return event.endsWith('\n\n') ? `${half.trimEnd()}\n\n` : `${half}"}{"`
}
