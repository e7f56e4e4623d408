import type { OpaqueValue } from './opaque.ts'

/**
 * What a response says, one after the other. A reader makes these events of the upstream's stream or body, and a writer
 * makes the client's of them. The rules, which readers keep and writers rely on:
 *
 *   - `start` comes first, and once. `stop` comes once, after the last part has ended; `usage` may follow it. `end` is the
 *     last: the response is whole.
 *   - Parts are numbered from 0 in the order of their start. Several can be open at once: a writer whose protocol
 *     allows one at a time uses `PartSequencer`.
 *   - After `error` nothing comes.
 *   - A stream that breaks off has no `end`: a writer then writes no end of its own protocol.
 */
export type ResponseEvent =
  | StartEvent | PartStartEvent | DeltaEvent | PartEndEvent | StopEvent | UsageEvent | EndEvent | ErrorEvent | PingEvent

export interface StartEvent {
  readonly type: 'start'
  /** As the upstream has it; null = it gives none. */
  readonly id: string | null
  readonly model: string | null
  /** What is known by now; null = nothing. */
  readonly usage: TokenUsage | null
}

/** Characters of an id, or of a model's name: some protocols repeat both in each event. */
const MAX_NAME = 256

/** @param id and model: of a longer one nothing is passed on */
export function startEvent(id: string | null, model: string | null, usage: TokenUsage | null): StartEvent {
  const fitting = (name: string | null): string | null => name !== null && name.length <= MAX_NAME ? name : null
  return { type: 'start', id: fitting(id), model: fitting(model), usage }
}

/** What is generated. */
export type ResponsePart =
  | { readonly type: 'text' }
  | { readonly type: 'thinking' }
  | { readonly type: 'redacted_thinking', readonly opaque: OpaqueValue }
  | { readonly type: 'refusal' }
  | {
    readonly type: 'tool_call'
    /** As the upstream made it; empty = it gives none, and the writer makes one. */
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

/** More of a part: of text, thinking or a refusal the text, of a tool call its arguments as JSON text. */
export interface DeltaEvent {
  readonly type: 'delta'
  readonly index: number
  readonly text: string
}

export interface PartEndEvent {
  readonly type: 'part_end'
  readonly index: number
  /** Of thinking or text, which its provider tells at the end. */
  readonly opaque: OpaqueValue | null
}

export type StopReason =
  | 'end' | 'max_tokens' | 'context_window' | 'stop_sequence' | 'tool_calls' | 'refusal' | 'content_filter'
  /** The provider pauses a long turn: the client sends the conversation again to go on. */
  | 'pause'

export interface StopEvent {
  readonly type: 'stop'
  readonly reason: StopReason
  /** The sequence that was met, where the upstream says so. */
  readonly sequence: string | null
  /** Why it was refused or filtered, in the provider's words. */
  readonly explanation: string | null
}

/** Counts so far; each event replaces the one before. */
export interface UsageEvent {
  readonly type: 'usage'
  readonly usage: TokenUsage
}

/** Tokens. null = the upstream does not say, which is not 0. */
export interface TokenUsage {
  /** All input, cached and written to the cache included. */
  readonly input: number | null
  readonly cachedInput: number | null
  /** Input that was written to the cache, with both lifetimes. */
  readonly cacheWrite: number | null
  /** The part of `cacheWrite` that is kept for an hour. */
  readonly cacheWrite1h: number | null
  /** All output, reasoning included. */
  readonly output: number | null
  readonly reasoning: number | null
}

export const NO_USAGE: TokenUsage = {
  input: null, cachedInput: null, cacheWrite: null, cacheWrite1h: null, output: null, reasoning: null,
}

/** Did the upstream say anything? A client whose protocol can leave usage out gets none otherwise. */
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

/** The upstream is alive and says nothing. */
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
  /** As the upstream names it: `context_length_exceeded`; null = it does not. */
  readonly code: string | null
  /** The field at fault; null = it names none. */
  readonly param: string | null
}

/** A whole response: its events, collected. */
export interface NeutralResponse {
  readonly id: string | null
  readonly model: string | null
  readonly parts: readonly CollectedPart[]
  readonly stop: StopEvent | null
  readonly usage: TokenUsage | null
}

export interface CollectedPart {
  readonly part: ResponsePart
  /** All its deltas. */
  readonly text: string
  /** Told at its end; null = none. */
  readonly opaque: OpaqueValue | null
}
