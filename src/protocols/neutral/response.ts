import type { OpaqueValue } from './opaque.ts'

/**
 * A response is a sequence of events. A reader creates the events from the upstream's stream or body, and a writer creates the client's
 * stream or body from them. Readers keep these rules, and writers rely on them:
 *
 * - `start` comes first, and once. `stop` comes once, after the last part has ended; `usage` may follow. `end` comes last.
 * - Parts are numbered from 0 in the order of their start. Several parts can be open at once; `PartSequencer` puts them in sequence.
 * - Nothing follows `error`.
 * - If the upstream's stream breaks, there is no `end`, and the client's stream gets no end either.
 */
export type ResponseEvent =
  | StartEvent | PartStartEvent | PartEndEvent | StopEvent | ErrorEvent
  /** More content of a part: text, or the arguments of a tool call as JSON text. */
  | { readonly type: 'delta', readonly index: number, readonly text: string }
  /** Usage so far. A later event replaces the usage of an earlier event. */
  | { readonly type: 'usage', readonly usage: TokenUsage }
  /** `ping`: the upstream is alive but sends no content. */
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

/** Creates the event. An id or a model's name that is empty or too long becomes null. */
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
    /** The upstream's id; empty = the upstream sent none, so the writer creates an id. */
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
  /** The provider pauses a long turn. The client continues the turn by sending the conversation again. */
  | 'pause'

export interface StopEvent {
  readonly type: 'stop'
  readonly reason: StopReason
  /** The stop sequence that ended the response; null = none, or the upstream did not report it. */
  readonly sequence: string | null
  /** The reason that the provider gives for a refusal or a filter. */
  readonly explanation: string | null
}

/** Tokens; null = not reported. */
export interface TokenUsage {
  /** All input, including tokens that are read from the cache or written to it. */
  readonly input: number | null
  readonly cachedInput: number | null
  /** Tokens written to the cache, with either lifetime. */
  readonly cacheWrite: number | null
  /** The part of `cacheWrite` with a lifetime of one hour. */
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
  /** The path of the wrong field; null = the upstream does not name it. */
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
  /** The texts of all deltas, joined. */
  readonly text: string
  readonly opaque: OpaqueValue | null
}
