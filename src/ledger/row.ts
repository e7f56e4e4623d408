import type { Price } from '../config/price-types.ts'
import type { EndpointName, ProtocolName } from '../protocols/shared/protocol.ts'
import type { Usage } from '../protocols/shared/usage.ts'

/**
 * How an exchange ended. `interrupted` is what was in flight in a process that ended.
 */
export type EndReason =
  | 'complete'
  | 'client_gone'
  | 'upstream_cut'
  | 'timeout'
  | 'refused'
  | 'error'
  | 'interrupted'

/** Who counted: the upstream, the gateway's tokenizer, both, or nobody. */
export type UsageSource = 'reported' | 'estimated' | 'mixed' | 'none'

/** Outcome of an attempt that was cancelled because another one beside it responded first. */
export const HEDGE_LOST = 'hedge_lost'

/** One try at one upstream. */
export interface AttemptRecord {
  readonly upstream: string
  /** The model's name there; null where none went up. */
  readonly model: string | null
  /** The client's protocol and the upstream's, where the request was translated: `messages->chat`. */
  readonly translated?: string
  /** The client's fields that a translated request did not have; absent = it had all of them. */
  readonly dropped?: readonly string[]
  /** `ok`, the code of the error that ended it, `error_answer`: an error of the upstream's own, or `hedge_lost`. */
  readonly outcome: string
  /** Milliseconds that it took. */
  readonly ms: number
  /** Milliseconds from the start of the request to its own. */
  readonly atMs?: number
  /** The upstream's HTTP status, where a response came. */
  readonly status?: number
  /** The word with which the upstream's error named itself, where it was one: `rate_limit_exceeded`. */
  readonly said?: string
  /** The first kilobyte of that error, without the operator's secrets. */
  readonly errorText?: string
  /** Where several attempts made up the response: what this one used, and its cost in USD; absent = unknown. */
  readonly inputTokens?: number
  readonly outputTokens?: number
  readonly costUsd?: string
}

/**
 * All that is kept of one request. null means unknown, or that there was none:
 * never 0 in disguise.
 */
export interface LedgerRow {
  readonly requestId: string
  /** Milliseconds since 1970. With requestId, what makes the row unique. */
  readonly startedAt: number
  /** Milliseconds from the start to the first byte of the response's body. */
  readonly firstByteMs: number | null
  /** Milliseconds from the start to the end. */
  readonly durationMs: number | null
  /** The key's name. */
  readonly key: string | null
  readonly protocol: ProtocolName | null
  readonly endpoint: EndpointName | null
  /** As the client asked. */
  readonly model: string | null
  /** Of the last attempt: the one that responded, if one did. */
  readonly upstream: string | null
  readonly upstreamModel: string | null
  /** Another than the client's where the request was translated; null = no upstream got it. */
  readonly upstreamProtocol: ProtocolName | null
  readonly attempts: readonly AttemptRecord[]
  /** The HTTP status that was sent to the client; null when none was. */
  readonly status: number | null
  readonly end: EndReason
  /** The code in the gateway's error table, when an error of that table ended it. */
  readonly error: string | null
  readonly usage: Usage
  readonly source: UsageSource
  /** Millionths of a millionth of a USD, so that a price with six decimals is exact for one token. */
  readonly costPico: bigint | null
  /** The price that was used. */
  readonly price: Price | null
  /** Where it is from, with its version: `config`, `genai-prices 0.0.68`. */
  readonly priceVersion: string | null
  /** Bytes of the request's body. */
  readonly bytesIn: number
  /** Bytes of the body that the client's connection was given: the last 128 kB may not have left. */
  readonly bytesOut: number
  /** Its route, as it read then: `routes[2], line 41: path /v1/*, model gpt-* -> openai (ordered)`. */
  readonly route: string | null
  /** Of its trace, where that was sent to a collector. */
  readonly traceId: string | null
  /** The group and the owner of the key, as they were then. */
  readonly group: string | null
  readonly owner: string | null
  /** Columns that a broken store has no readable value of; absent = all are readable. */
  readonly unreadable?: readonly string[]
}
