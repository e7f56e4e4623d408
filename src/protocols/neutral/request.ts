import type { JsonObject } from './json.ts'
import type { OpaqueValue } from './opaque.ts'

/**
 * A request for text, without a wire protocol. A reader makes it of the client's body, and a writer makes the body for
 * the upstream of it. null always means that the client said nothing: a writer then writes nothing.
 */
export interface NeutralRequest {
  readonly stream: boolean
  /**
   * The conversation in its order. System and developer instructions are messages too, at the place where the client
   * put them; where its protocol has a field for them, they come first.
   */
  readonly messages: readonly Message[]
  readonly tools: readonly Tool[]
  readonly toolChoice: ToolChoice | null
  /** May the model call several tools at once? */
  readonly parallelToolCalls: boolean | null
  readonly outputFormat: OutputFormat | null
  /** Tokens of the response, reasoning included. */
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
  /** Verbosity of the text: `low`, `medium`, `high`. */
  readonly verbosity: string | null
  /** Who uses the application, as the client names them. */
  readonly user: string | null
  /** Names and values for the provider's records. */
  readonly metadata: Readonly<Record<string, string>> | null
  /** A client that streams asked for the usage; null = its protocol always reports it. */
  readonly includeUsage: boolean | null
  /** Keeps requests with a common beginning on one cache. */
  readonly cacheKey: string | null
}

/**
 * The fields of a request that a writer supports or not. `FieldTable` of a reader names the client's field for each, and
 * `SupportTable` of a writer says what becomes of it.
 */
export const NEUTRAL_FIELDS = [
  'model', 'stream', 'messages', 'tools', 'toolChoice', 'parallelToolCalls', 'outputFormat', 'maxOutputTokens',
  'stopSequences', 'temperature', 'topP', 'topK', 'presencePenalty', 'frequencyPenalty', 'seed', 'reasoning',
  'serviceTier', 'verbosity', 'user', 'metadata', 'includeUsage', 'cacheKey',
] as const

export type NeutralField = typeof NEUTRAL_FIELDS[number]

/** Tool results are parts of a user message. */
export type Role = 'system' | 'developer' | 'user' | 'assistant'

export interface Message {
  readonly role: Role
  readonly parts: readonly Part[]
  /** Who of several speaks, where the client says so. */
  readonly name: string | null
}

export type Part =
  | TextPart | ImagePart | DocumentPart | AudioPart | ThinkingPart | RedactedThinkingPart
  | ToolCallPart | ToolResultPart | RefusalPart

interface PartBase {
  /** Where the client's body has it, for reports: `messages[3].content[0]`. */
  readonly path: string
  /** The provider keeps the prompt up to here in its cache; null = no mark. */
  readonly cache: CacheMark | null
}

export interface CacheMark {
  /** As the client wrote it: `5m`, `1h`; null = the provider's default. */
  readonly ttl: string | null
}

export interface TextPart extends PartBase {
  readonly type: 'text'
  readonly text: string
  /** Of the assistant's text, where its provider attached one. */
  readonly opaque: OpaqueValue | null
}

/** Where the bytes of a medium are. */
export type MediaSource =
  | { readonly kind: 'base64', readonly mediaType: string, readonly data: string }
  | { readonly kind: 'url', readonly url: string, readonly mediaType: string | null }
  /** Uploaded to one provider before: no other provider has it. */
  | { readonly kind: 'file', readonly id: string, readonly mediaType: string | null }

export interface ImagePart extends PartBase {
  readonly type: 'image'
  readonly source: MediaSource
  /** `low`, `high`, `auto`. */
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
  /** The text, or the summary that the provider gives of it. */
  readonly text: string
  /** Proves to its provider that the text is unchanged, or is the reasoning itself, encrypted; null = there is none. */
  readonly opaque: OpaqueValue | null
}

/** Thinking of which nothing can be read. */
export interface RedactedThinkingPart extends PartBase {
  readonly type: 'redacted_thinking'
  readonly opaque: OpaqueValue
}

export interface ToolCallPart extends PartBase {
  readonly type: 'tool_call'
  /** As the client has it, or as its provider made it, where the client's id held that. */
  readonly id: string
  readonly name: string
  /** JSON text as the model generated it; `{}` where it is empty. It may be broken. */
  readonly arguments: string
  /** The tool takes plain text, which `arguments` then is. */
  readonly isFreeform: boolean
  readonly opaque: OpaqueValue | null
}

export interface ToolResultPart extends PartBase {
  readonly type: 'tool_result'
  /** The id of the call that it belongs to; a reader pairs results that have no id by name and order. */
  readonly callId: string
  /** Of the tool; a reader looks it up in the calls before it. Empty = no call has the id. */
  readonly name: string
  readonly isFreeform: boolean
  readonly parts: readonly (TextPart | ImagePart | DocumentPart | AudioPart)[]
  readonly isError: boolean
}

export interface RefusalPart extends PartBase {
  readonly type: 'refusal'
  readonly text: string
}

export interface Tool {
  readonly name: string
  /** How the client calls it, where its protocol has namespaces, and `name` is made of both; null = by `name`. */
  readonly namespaced: NamespacedName | null
  /** The client runs it to find more tools, and its protocol has calls and results of a form of their own for it. */
  readonly isToolSearch: boolean
  readonly description: string | null
  /** JSON Schema of the arguments; null = none, or the tool takes plain text. */
  readonly parameters: JsonObject | null
  readonly strict: boolean | null
  /** The tool takes plain text instead of JSON, maybe of a grammar. */
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
  /** The model must call one of these; with `isForced` false it may also call none. */
  | { readonly type: 'tools', readonly names: readonly string[], readonly isForced: boolean }

export type OutputFormat =
  | { readonly type: 'text' }
  /** Any JSON object. */
  | { readonly type: 'json' }
  | {
    readonly type: 'json_schema', readonly name: string | null, readonly description: string | null
    readonly schema: JsonObject, readonly strict: boolean | null
  }

/** Efforts of reasoning, from the least to the most. */
export const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const

export interface Reasoning {
  /** false = the client turns it off; null = it does not say. */
  readonly enabled: boolean | null
  /** `minimal`, `low`, `medium`, `high`, `xhigh`, `max`. */
  readonly effort: string | null
  /** Tokens; null = none is given. */
  readonly budgetTokens: number | null
  /** Does the client get the text, or a summary of it? */
  readonly showText: boolean | null
}

/** `standard`: without precedence. `default` is what the account has. */
export type ServiceTier = 'auto' | 'default' | 'standard' | 'priority' | 'flex'

/** A request that says nothing: readers begin with it. */
export const EMPTY_REQUEST: NeutralRequest = {
  stream: false, messages: [], tools: [], toolChoice: null, parallelToolCalls: null, outputFormat: null,
  maxOutputTokens: null, stopSequences: [], temperature: null, topP: null, topK: null, presencePenalty: null,
  frequencyPenalty: null, seed: null, reasoning: null, serviceTier: null, verbosity: null, user: null, metadata: null,
  includeUsage: null, cacheKey: null,
}
