import type { Behaviour } from './behaviour.ts'
import type { EventSink } from './event-sink.ts'
import type { EventStream } from './simulated-response.ts'

/** Events are sent together up to so many characters if nothing happens between them. */
const BATCH = 16 * 1024

type Ending = 'stall' | 'error' | 'cut' | 'close' | 'reset'

/**
 * Plays a script to an event sink, with the behaviours that concern its course: the
 * pace of the events, which one is malformed, and after which one the stream fails.
 *
 * @returns stops it at once; nothing is made or sent after that
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

/** Does something count the events, or change one of them? */
function needsSingleEvents(behaviour: Behaviour): boolean {
  const { malformed_after, split, comments, gzip } = behaviour
  return malformed_after !== undefined || split !== undefined || comments === true || gzip === true
}

/** The earliest failure; of several after the same event, the first one of this list. */
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
    // Buffers are not joined: their maker has chosen their size.
    if (typeof event !== 'string') return event
    text += event
  }
  return text
}

/**
 * Half of an event, framed as a complete one. It is malformed in its protocol: the
 * half of a body is not JSON, wherever it is cut.
 */
function garble(event: string | Buffer): string | Buffer {
  if (typeof event !== 'string') {
    return Buffer.concat([event.subarray(0, event.length / 2), Buffer.from('"}{"')])
  }
  const start = Math.max(event.indexOf('{'), 0)
  const half = event.slice(0, start + Math.ceil((event.length - start) / 2))
  return event.endsWith('\n\n') ? `${half.trimEnd()}\n\n` : `${half}"}{"`
}
