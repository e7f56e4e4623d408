import type { JsonObject } from './json.ts'
import type { OpaqueValue } from './opaque.ts'

/**
 * A request for text, independent of the protocol. A reader creates it from the client's body, and a writer creates the upstream's body
 * from it. null always means that the client did not send the field, so the writer omits the field.
 */
export interface NeutralRequest {
  readonly stream: boolean
  /** Includes system and developer instructions in the client's order. Instructions from a separate field come first. */
  readonly messages: readonly Message[]
  readonly tools: readonly Tool[]
  readonly toolChoice: ToolChoice | null
  /** Whether the model may call several tools at once. */
  readonly parallelToolCalls: boolean | null
  readonly outputFormat: OutputFormat | null
  /** Maximum number of output tokens, including reasoning. */
  readonly maxOutputTokens: number | null
  readonly stopSequences: readonly string[]
  readonly temperature: number | null
  readonly topP: number | null
  readonly topK: number | null
  readonly presencePenalty: number | null
  readonly frequencyPenalty: number | null
  readonly seed: number | null
  readonly reasoning: Reasoning | null
  readonly serviceTier: ServiceTier | null
  /** The length of the response: `low`, `medium` or `high`. */
  readonly verbosity: string | null
  /** The user of the client's application. */
  readonly user: string | null
  /** Names and values for the provider's records. */
  readonly metadata: Readonly<Record<string, string>> | null
  /** Whether the client asks for usage in a stream; null = the client's protocol always reports usage. */
  readonly includeUsage: boolean | null
  /** Requests with the same key and the same beginning are routed to the same cache. */
  readonly cacheKey: string | null
}

/** The fields of a request. `FieldTable` maps a client's fields to these fields; `SupportTable` says what an upstream does with each. */
export const NEUTRAL_FIELDS = [
  'model', 'stream', 'messages', 'tools', 'toolChoice', 'parallelToolCalls', 'outputFormat', 'maxOutputTokens',
  'stopSequences', 'temperature', 'topP', 'topK', 'presencePenalty', 'frequencyPenalty', 'seed', 'reasoning',
  'serviceTier', 'verbosity', 'user', 'metadata', 'includeUsage', 'cacheKey',
] as const

export type NeutralField = typeof NEUTRAL_FIELDS[number]

/** Tool results have no role of their own: they are parts of a user message. */
export type Role = 'system' | 'developer' | 'user' | 'assistant'

export interface Message {
  readonly role: Role
  readonly parts: readonly Part[]
  /** The name of the speaker. */
  readonly name: string | null
}

export type Part =
  | TextPart | ImagePart | DocumentPart | AudioPart | ThinkingPart | ToolCallPart | ToolResultPart
  | PartBase & { readonly type: 'refusal', readonly text: string }
  /** Thinking that only the provider can read. */
  | PartBase & { readonly type: 'redacted_thinking', readonly opaque: OpaqueValue }

interface PartBase {
  /** Path of the part in the client's body, for reports: `messages[3].content[0]`. */
  readonly path: string
  /** The mark up to which the provider caches the prompt; null = no mark. */
  readonly cache: CacheMark | null
}

export interface CacheMark {
  /** The lifetime that the client requests: `5m`, `1h`; null = the provider's default. */
  readonly ttl: string | null
}

export interface TextPart extends PartBase {
  readonly type: 'text'
  readonly text: string
  readonly opaque: OpaqueValue | null
}

export type MediaSource =
  | { readonly kind: 'base64', readonly mediaType: string, readonly data: string }
  | { readonly kind: 'url', readonly url: string, readonly mediaType: string | null }
  /** A file that was uploaded to one provider. No other provider has it. */
  | { readonly kind: 'file', readonly id: string, readonly mediaType: string | null }

export interface ImagePart extends PartBase {
  readonly type: 'image'
  readonly source: MediaSource
  /** The detail of the image: `low`, `high` or `auto`. */
  readonly detail: string | null
}

export interface DocumentPart extends PartBase {
  readonly type: 'document'
  readonly source: MediaSource | { readonly kind: 'text', readonly text: string }
  readonly name: string | null
}

export interface AudioPart extends PartBase {
  readonly type: 'audio'
  readonly source: MediaSource
}

export interface ThinkingPart extends PartBase {
  readonly type: 'thinking'
  /** The thinking itself, or the provider's summary of it. */
  readonly text: string
  /** A signature of the thinking, or the encrypted thinking. */
  readonly opaque: OpaqueValue | null
}

export interface ToolCallPart extends PartBase {
  readonly type: 'tool_call'
  /** The client's id, or the upstream's id from a capsule. */
  readonly id: string
  readonly name: string
  /** Text that the model generated: usually JSON, which may be invalid. `{}` replaces empty text. */
  readonly arguments: string
  /** true if the tool takes plain text: then `arguments` is that text. */
  readonly isFreeform: boolean
  readonly opaque: OpaqueValue | null
}

export interface ToolResultPart extends PartBase {
  readonly type: 'tool_result'
  /** The id of the call. If the client sends results without an id, the reader pairs them with calls by name and order. */
  readonly callId: string
  /** The name of the tool, which the reader takes from the call; empty = no call has the id. */
  readonly name: string
  readonly isFreeform: boolean
  readonly parts: readonly (TextPart | ImagePart | DocumentPart | AudioPart)[]
  readonly isError: boolean
}

export interface Tool {
  readonly name: string
  /** Namespace and name, for protocols with namespaces; `name` combines both. null = no namespace. */
  readonly namespaced: NamespacedName | null
  /** true if the client runs this tool to find more tools. The client's protocol has special items for calls of such a tool. */
  readonly isToolSearch: boolean
  readonly description: string | null
  /** JSON Schema; null = the tool has no schema, or takes plain text. */
  readonly parameters: JsonObject | null
  readonly strict: boolean | null
  /** Set if the tool takes plain text, possibly with a grammar; null = the tool takes JSON. */
  readonly freeform: { readonly format: JsonObject | null } | null
  readonly cache: CacheMark | null
  readonly path: string
}

export interface NamespacedName {
  readonly namespace: string
  readonly name: string
}

export type ToolChoice =
  | { readonly type: 'auto' | 'none' | 'required' }
  /** The only tools that the model may call. `isForced`: the model must call one of these tools. */
  | { readonly type: 'tools', readonly names: readonly string[], readonly isForced: boolean }

export type OutputFormat =
  | { readonly type: 'text' }
  /** Any JSON object. */
  | { readonly type: 'json' }
  | {
    readonly type: 'json_schema', readonly name: string | null, readonly description: string | null
    readonly schema: JsonObject, readonly strict: boolean | null
  }

/** Efforts of reasoning, ascending. */
export const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const

export interface Reasoning {
  readonly enabled: boolean | null
  /** One of `EFFORTS`, except `none`; null = the client did not send an effort. */
  readonly effort: string | null
  readonly budgetTokens: number | null
  /** Whether the client wants the text, or a summary, of the reasoning. */
  readonly showText: boolean | null
}

/** `standard` means no priority. `default` means the setting of the account. */
export type ServiceTier = 'auto' | 'default' | 'standard' | 'priority' | 'flex'

export const EMPTY_REQUEST: NeutralRequest = {
  stream: false, messages: [], tools: [], toolChoice: null, parallelToolCalls: null, outputFormat: null,
  maxOutputTokens: null, stopSequences: [], temperature: null, topP: null, topK: null, presencePenalty: null,
  frequencyPenalty: null, seed: null, reasoning: null, serviceTier: null, verbosity: null, user: null, metadata: null,
  includeUsage: null, cacheKey: null,
}
