import type { OpaqueValue } from './opaque.ts'

/**
 * The content of a response as a sequence of events. A reader makes these events from the upstream's stream or body,
 * and a writer makes the client's from them. Rules that readers keep and writers rely on:
 *
 * - `start` comes first, and once. `stop` comes once, after the last part has ended; `usage` may follow it. `end` is
 *   last: the response is complete.
 * - Parts are numbered from 0 in the order of their start. Several can be open at once: a writer whose protocol
 *   allows only one uses `PartSequencer`.
 * - Nothing follows `error`.
 * - A stream that breaks has no `end`: the writer then writes no end of its own protocol.
 */
export type ResponseEvent =
  | StartEvent | PartStartEvent | DeltaEvent | PartEndEvent | StopEvent | UsageEvent | EndEvent | ErrorEvent | PingEvent

/** Where a reader puts its events. */
export interface EventOutput {
  push(event: ResponseEvent): unknown
}

export interface StartEvent {
  readonly type: 'start'
  /** The upstream's id; null = none. */
  readonly id: string | null
  readonly model: string | null
  /** The usage known so far; null = none. */
  readonly usage: TokenUsage | null
}

/** Maximum characters of an id or a model's name: some protocols repeat both in each event. */
const MAX_NAME = 256

/** @param id and model: an empty or longer one is not passed on */
export function startEvent(id: string | null, model: string | null, usage: TokenUsage | null): StartEvent {
  const fitting = (name: string | null): string | null => name !== null && name !== '' && name.length <= MAX_NAME ? name : null
  return { type: 'start', id: fitting(id), model: fitting(model), usage }
}

/** A kind of generated content. */
export type ResponsePart =
  | { readonly type: 'text' }
  | { readonly type: 'thinking' }
  | { readonly type: 'redacted_thinking', readonly opaque: OpaqueValue }
  | { readonly type: 'refusal' }
  | {
    readonly type: 'tool_call'
    /** The upstream's id; empty = none, so the writer makes one. */
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

/** More content of a part: text, or the arguments of a tool call as JSON text. */
export interface DeltaEvent {
  readonly type: 'delta'
  readonly index: number
  readonly text: string
}

export interface PartEndEvent {
  readonly type: 'part_end'
  readonly index: number
  /** An opaque value of thinking or text, which the provider sends at the end. */
  readonly opaque: OpaqueValue | null
}

export type StopReason =
  | 'end' | 'max_tokens' | 'context_window' | 'stop_sequence' | 'tool_calls' | 'refusal' | 'content_filter'
  /** The provider pauses a long turn: the client continues by sending the conversation again. */
  | 'pause'

export interface StopEvent {
  readonly type: 'stop'
  readonly reason: StopReason
  /** The stop sequence that was matched, if the upstream names it. */
  readonly sequence: string | null
  /** The provider's explanation of a refusal or a filter. */
  readonly explanation: string | null
}

/** Counts so far; each event replaces the previous one. */
export interface UsageEvent {
  readonly type: 'usage'
  readonly usage: TokenUsage
}

/** Tokens. null = not reported, which is not 0. */
export interface TokenUsage {
  /** All input, including tokens read from and written to the cache. */
  readonly input: number | null
  readonly cachedInput: number | null
  /** Input written to the cache, for both lifetimes. */
  readonly cacheWrite: number | null
  /** The part of `cacheWrite` that is cached for an hour. */
  readonly cacheWrite1h: number | null
  /** All output, including reasoning. */
  readonly output: number | null
  readonly reasoning: number | null
}

export const NO_USAGE: TokenUsage = {
  input: null, cachedInput: null, cacheWrite: null, cacheWrite1h: null, output: null, reasoning: null,
}

/** Did the upstream report usage? If not, a client whose protocol can omit usage gets none. */
export function isReported({ input, output }: TokenUsage): boolean {
  return input !== null || output !== null
}

/** The protocol's own end: nothing is missing. */
export interface EndEvent {
  readonly type: 'end'
}

export interface ErrorEvent {
  readonly type: 'error'
  readonly error: NeutralError
}

/** The upstream is alive but has no content. */
export interface PingEvent {
  readonly type: 'ping'
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
  /** The field at fault; null = not named. */
  readonly param: string | null
}

/** A whole response: its collected events. */
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
  /** From its end; null = none. */
  readonly opaque: OpaqueValue | null
}
