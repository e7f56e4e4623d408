import type { Price } from '../config/price-types.ts'
import type { EndpointName, ProtocolName } from '../protocols/endpoint/protocol.ts'
import type { Usage } from '../protocols/usage/usage.ts'

/** `interrupted`: the process ended first. */
export type EndReason = 'complete' | 'client_gone' | 'upstream_cut' | 'timeout' | 'refused' | 'error' | 'interrupted'

/** Who counted the tokens: the upstream, the gateway's tokenizer, both, or neither. */
export type UsageSource = 'reported' | 'estimated' | 'mixed' | 'none'

/** Outcome of an attempt that was cancelled because another one responded first. */
export const HEDGE_LOST = 'hedge_lost'

export interface AttemptRecord {
  readonly upstream: string
  /** The model's name at the upstream; null = none was sent. */
  readonly model: string | null
  /** Protocols of client and upstream: `messages->chat`; absent = not translated. */
  readonly translated?: string
  /** Client fields that the translated request does not have. */
  readonly dropped?: readonly string[]
  /** `ok`, a code of the gateway, `error_answer` for an error from the upstream, or `hedge_lost`. */
  readonly outcome: string
  readonly ms: number
  /** ms from the start of the request to that of the attempt. */
  readonly atMs?: number
  /** HTTP status of the upstream, if it responded. */
  readonly status?: number
  /** The upstream's name of the error: `rate_limit_exceeded`. */
  readonly said?: string
  /** The first kilobyte of the upstream's error, without the operator's secrets. */
  readonly errorText?: string
  /** If several attempts made the response: usage and USD of this one; absent = unknown. */
  readonly inputTokens?: number
  readonly outputTokens?: number
  readonly costUsd?: string
  /** The client's own credential was sent, so the client pays; absent = the operator pays. */
  readonly billed?: 'client'
}

/** What a rule did with a request. */
export interface PolicyAction {
  readonly rule: string
  readonly action: string
  readonly count: number
}

/** A request. null = unknown or absent; never replaced by 0. */
export interface LedgerRow {
  readonly requestId: string
  /** ms since 1970. Unique together with requestId. */
  readonly startedAt: number
  /** ms from the start to the first byte of the response's body. */
  readonly firstByteMs: number | null
  readonly durationMs: number | null
  readonly key: string | null
  readonly protocol: ProtocolName | null
  readonly endpoint: EndpointName | null
  /** As the client sent it. */
  readonly model: string | null
  /** The upstream of the last attempt. */
  readonly upstream: string | null
  readonly upstreamModel: string | null
  /** Differs from the client's protocol if the request was translated; null = no upstream got the request. */
  readonly upstreamProtocol: ProtocolName | null
  readonly attempts: readonly AttemptRecord[]
  /** HTTP status that the client got; null = none. */
  readonly status: number | null
  readonly end: EndReason
  /** The gateway's error code that ended the request. */
  readonly error: string | null
  readonly usage: Usage
  readonly source: UsageSource
  /** Picodollars (1e-12 USD): a price with six decimals is exact for one token. */
  readonly costPico: bigint | null
  readonly price: Price | null
  /** The source of the price, with its version: `config`, `genai-prices 0.0.68`. */
  readonly priceVersion: string | null
  /** Bytes of the request's body. */
  readonly bytesIn: number
  /** Bytes of the response body that were written to the client's connection: the last 128 kB may not have been sent. */
  readonly bytesOut: number
  /** The route at the time of the request: `routes[2], line 41: path /v1/*, model gpt-* -> openai (ordered)`. */
  readonly route: string | null
  /** The trace id, if a collector got the trace. */
  readonly traceId: string | null
  /** Group and owner of the key at the time of the request. */
  readonly group: string | null
  readonly owner: string | null
  /** The end user, and the tags by name, as the `attribution` of the configuration finds them. */
  readonly user: string | null
  readonly tags: Readonly<Record<string, string>> | null
  /** Who pays the upstream: `client` = the client sent its own credential; null = the operator. */
  readonly billed: string | null
  /** ms that the request waited in queues; absent = it did not wait. */
  readonly queuedMs?: number
  /** What the operator's rules did with the request; absent = nothing. Never the text that matched. */
  readonly policy?: readonly PolicyAction[]
  /** Columns whose stored value is unreadable. */
  readonly unreadable?: readonly string[]
}
