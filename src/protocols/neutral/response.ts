import type { OpaqueValue } from './opaque.ts'

/**
 * A response is a sequence of events, which a reader makes from the upstream's stream or body, and from which a writer makes the
 * client's. Readers keep these rules, and writers rely on them:
 *
 * - `start` comes first, and once. `stop` comes once, after the last part has ended; `usage` may follow. `end` comes last.
 * - Parts are numbered from 0 in the order of their start. Several can be open at once; `PartSequencer` puts them in sequence.
 * - Nothing follows `error`.
 * - A stream that breaks has no `end`, so the client's stream gets none either.
 */
export type ResponseEvent =
  | StartEvent | PartStartEvent | PartEndEvent | StopEvent | ErrorEvent
  /** More content of a part: text, or the arguments of a tool call as JSON text. */
  | { readonly type: 'delta', readonly index: number, readonly text: string }
  /** Counts so far; a later event replaces an earlier one. */
  | { readonly type: 'usage', readonly usage: TokenUsage }
  /** `ping`: the upstream is alive but has no content. */
  | { readonly type: 'end' | 'ping' }

export interface EventOutput {
  push(event: ResponseEvent): unknown
}

export interface StartEvent {
  readonly type: 'start'
  /** The upstream's id; null = none. */
  readonly id: string | null
  readonly model: string | null
  /** The usage known at the start. */
  readonly usage: TokenUsage | null
}

/** Maximum characters of an id or a model's name, because some protocols repeat both in each event. */
const MAX_NAME = 256

/** Drops an empty or too long id or model name. */
export function startEvent(id: string | null, model: string | null, usage: TokenUsage | null): StartEvent {
  const fitting = (name: string | null): string | null => name !== null && name !== '' && name.length <= MAX_NAME ? name : null
  return { type: 'start', id: fitting(id), model: fitting(model), usage }
}

export type ResponsePart =
  | { readonly type: 'text' }
  | { readonly type: 'thinking' }
  | { readonly type: 'redacted_thinking', readonly opaque: OpaqueValue }
  | { readonly type: 'refusal' }
  | {
    readonly type: 'tool_call'
    /** The upstream's id; empty = none, so the writer makes an id. */
    readonly id: string
    readonly name: string
    readonly isFreeform: boolean
    readonly opaque: OpaqueValue | null
  }
  | { readonly type: 'image' | 'audio', readonly mediaType: string, readonly data: string }

export interface PartStartEvent {
  readonly type: 'part_start'
  readonly index: number
  readonly part: ResponsePart
}

export interface PartEndEvent {
  readonly type: 'part_end'
  readonly index: number
  readonly opaque: OpaqueValue | null
}

export type StopReason =
  | 'end' | 'max_tokens' | 'context_window' | 'stop_sequence' | 'tool_calls' | 'refusal' | 'content_filter'
  /** The provider pauses a long turn, which the client continues by sending the conversation again. */
  | 'pause'

export interface StopEvent {
  readonly type: 'stop'
  readonly reason: StopReason
  /** The matched stop sequence; null = none, or not named by the upstream. */
  readonly sequence: string | null
  /** The provider's reason for a refusal or a filter. */
  readonly explanation: string | null
}

/** Tokens; null = not reported. */
export interface TokenUsage {
  /** All input, including tokens read from and written to the cache. */
  readonly input: number | null
  readonly cachedInput: number | null
  /** For both lifetimes. */
  readonly cacheWrite: number | null
  /** The part of `cacheWrite` that is cached for an hour. */
  readonly cacheWrite1h: number | null
  /** All output, including reasoning. */
  readonly output: number | null
  readonly reasoning: number | null
}

export const NO_USAGE: TokenUsage = { input: null, cachedInput: null, cacheWrite: null, cacheWrite1h: null, output: null, reasoning: null }

export function isReported({ input, output }: TokenUsage): boolean {
  return input !== null || output !== null
}

export interface ErrorEvent {
  readonly type: 'error'
  readonly error: NeutralError
}

export type ErrorKind =
  | 'invalid_request' | 'authentication' | 'billing' | 'permission' | 'not_found' | 'too_large' | 'rate_limit'
  | 'server' | 'overloaded' | 'timeout'

export interface NeutralError {
  readonly kind: ErrorKind
  /** HTTP status. */
  readonly status: number
  readonly message: string
  /** The upstream's code: `context_length_exceeded`; null = none. */
  readonly code: string | null
  /** The path of the wrong field; null = not named. */
  readonly param: string | null
}

/** A whole response, collected from events. */
export interface NeutralResponse {
  readonly id: string | null
  readonly model: string | null
  readonly parts: readonly CollectedPart[]
  readonly stop: StopEvent | null
  readonly usage: TokenUsage | null
}

export interface CollectedPart {
  readonly part: ResponsePart
  /** All deltas, joined. */
  readonly text: string
  readonly opaque: OpaqueValue | null
}
