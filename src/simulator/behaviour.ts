/**
 * The grammar of behaviours. A list of behaviours can be in the header or in the model's name:
 *
 *     x-simulate: status=503, retry_after=2
 *     "model": "sim,status=503,retry_after=2"
 *
 * In a model's name, the list follows the first comma. RFC 3986 (section 3.3) allows a comma and an equals sign in a path segment, so the
 * same names work in the generate protocol, which has the model in the path. If both places set the same key, the header's value is used.
 */

const MB = 1024 * 1024

/** Every behaviour by its name. docs/simulator.md lists the same behaviours (a test compares the lists). */
export const GRAMMAR = {
  // Content of the response.
  tokens: count(0, 10_000_000),
  chunk: size(1, 64 * MB),
  huge: size(1, 256 * MB),
  reasoning: count(0, 10_000_000),
  tool_call: flag,
  reject_prefill: flag,
  echo: flag,
  // Reported usage.
  input: count(0, 1e12),
  output: count(0, 1e12),
  cached: count(0, 1e12),
  cache_write: count(0, 1e12),
  cache_write_1h: count(0, 1e12),
  seconds: count(0, 1e9),
  usage: choice('none', 'null', 'negative', 'fraction', 'huge', 'string'),
  // Timing.
  headers_delay: duration,
  first_delay: duration,
  pace: duration,
  // Form of the bytes that are sent.
  split: count(1, MB),
  crlf: flag,
  comments: flag,
  gzip: flag,
  // Failures.
  status: count(200, 599),
  retry_after: count(0, 1e9),
  retry_after_ms: count(0, 1e12),
  retry_after_date: count(0, 1e9),
  error_200: flag,
  early: flag,
  reset: flag,
  close: flag,
  first_event_error: flag,
  error_event_after: count(0, 1e9),
  malformed_after: count(0, 1e9),
  stall_after: count(0, 1e9),
  cut_after: count(0, 1e9),
  close_after: count(0, 1e9),
  reset_after: count(0, 1e9),
  no_terminator: flag,
  wrong_length: flag,
  // Which requests fail.
  first: count(1, 1e9),
  every: count(1, 1e9),
}

/** The behaviours of a request, by their names in the grammar. Without a behaviour, the response is normal. */
export type Behaviour = { readonly [K in keyof typeof GRAMMAR]?: ReturnType<(typeof GRAMMAR)[K]> }

/** Behaviours that `first` and `every` restrict to some requests. All other behaviours apply to every request. */
const OCCASIONAL: ReadonlySet<string> = new Set<keyof Behaviour>([
  'headers_delay', 'first_delay', 'status', 'retry_after', 'retry_after_ms', 'retry_after_date', 'error_200',
  'reset', 'close', 'first_event_error', 'error_event_after', 'malformed_after', 'stall_after', 'cut_after',
  'close_after', 'reset_after', 'no_terminator', 'wrong_length',
])

const NORMAL: Behaviour = Object.freeze({})

/** Thrown for a list that does not follow the grammar. The message names the key and its possible values. */
export class BehaviourError extends Error {
  override readonly name = 'BehaviourError'
}

/**
 * Reads a list of behaviours; '' = normal behaviour.
 *
 * @throws BehaviourError if a key is unknown, or a value is not allowed for its key
 */
export function parseBehaviour(text: string): Behaviour {
  if (text === '') return NORMAL
  const behaviour: Record<string, unknown> = {}
  for (const item of text.split(',')) {
    const [key = '', ...rest] = item.split('=')
    const name = key.trim()
    if (name === '' && rest.length === 0) continue
    if (!isKey(name)) {
      const known = Object.keys(GRAMMAR).join(', ')
      throw new BehaviourError(`unknown behaviour ${quote(name)}; known are ${known}`)
    }
    behaviour[name] = GRAMMAR[name](name, rest.length === 0 ? null : rest.join('=').trim())
  }
  return behaviour
}

/** The list after the first comma of a model's name; '' = the name has no list. */
export function behaviourOfModel(model: string): string {
  const comma = model.indexOf(',')
  return comma === -1 ? '' : model.slice(comma + 1)
}

/**
 * Removes the failures if `first` or `every` exempts this request.
 *
 * @param turn number of earlier requests with the same list
 */
export function onTurn(behaviour: Behaviour, turn: number): Behaviour {
  const { first, every } = behaviour
  const due = (first === undefined || turn < first) && (every === undefined || (turn + 1) % every === 0)
  if (due) return behaviour
  return Object.fromEntries(Object.entries(behaviour).filter(([key]) => !OCCASIONAL.has(key)))
}

function isKey(name: string): name is keyof typeof GRAMMAR {
  return Object.hasOwn(GRAMMAR, name)
}

function flag(key: string, value: string | null): true {
  if (value !== null) throw new BehaviourError(`${key} takes no value`)
  return true
}

function count(min: number, max: number): (key: string, value: string | null) => number {
  return (key, value) => {
    const number = /^\d{1,15}$/.test(value ?? '') ? Number(value) : Number.NaN
    if (number >= min && number <= max) return number
    throw new BehaviourError(`${key} takes a whole number from ${min} to ${max}, not ${quote(value)}`)
  }
}

/** Parses a size: `512`, `64kb`, `10mb`. @returns bytes */
function size(min: number, max: number): (key: string, value: string | null) => number {
  return (key, value) => {
    const match = /^(\d{1,12})(b|kb|mb)?$/i.exec(value ?? '')
    const unit = { b: 1, kb: 1024, mb: MB }[match?.[2]?.toLowerCase() ?? 'b'] ?? 1
    const bytes = match ? Number(match[1]) * unit : Number.NaN
    if (bytes >= min && bytes <= max) return bytes
    throw new BehaviourError(`${key} takes a size such as 64kb, at most ${max / MB}mb, not ${quote(value)}`)
  }
}

/** Parses a duration: `250ms`, `1.5s`, `10m`. @returns ms */
function duration(key: string, value: string | null): number {
  const match = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m)$/.exec(value ?? '')
  const ms = match ? Number(match[1]) * ({ ms: 1, s: 1000, m: 60_000 }[match[2] ?? ''] ?? 1) : Number.NaN
  // Maximum of one day: longer than any timeout in use, and much shorter than the longest timer of Node.
  if (ms <= 86_400_000) return Math.round(ms)
  throw new BehaviourError(`${key} takes a duration such as 250ms, 10s or 5m, not ${quote(value)}`)
}

function choice<const T extends string>(...known: T[]): (key: string, value: string | null) => T {
  return (key, value) => {
    const found = known.find(name => name === value)
    if (found !== undefined) return found
    throw new BehaviourError(`${key} takes one of ${known.join(', ')}, not ${quote(value)}`)
  }
}

function quote(value: string | null): string {
  return value === null ? 'nothing' : JSON.stringify(value.slice(0, 60))
}
