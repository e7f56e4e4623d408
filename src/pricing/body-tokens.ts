import { isObject } from '../base/is-object.ts'
import type { PromptText } from '../protocols/endpoint/protocol.ts'
import { MEDIA_FROM, MEDIA_MARKS, MEDIA_TOKENS, isBase64 } from '../protocols/request/request-estimate.ts'

type Count = (text: string) => number

// Tokens that a chat template adds. Source: OpenAI's cookbook, "How to count tokens with tiktoken".
const TOKENS_PER_MESSAGE = 4
const TOKENS_BEFORE_RESPONSE = 3
const MAX_DEPTH = 64

/** Members that the model gets as JSON, including their keys. */
const SCHEMA_MEMBERS = ['tools', 'functions', 'response_format']

// Members that contain no text of the conversation.
const METADATA_MEMBERS = new Set([
  'type', 'role', 'id', 'index', 'object', 'status', 'model', 'detail', 'finish_reason', 'finishReason',
  'stop_reason', 'tool_call_id', 'tool_use_id', 'call_id', 'item_id', 'cache_control', 'signature', 'phase',
  'thoughtSignature', 'thought_signature', 'encrypted_content', 'media_type', 'mimeType', 'mime_type',
  'format',
  'taskType', 'outputDimensionality', 'logprobs', 'annotations', 'citations', 'citationMetadata',
  'safetyRatings', 'reasoning_details',
])
const RESPONSE_METADATA_MEMBERS = new Set([...METADATA_MEMBERS, 'name'])
// Input and output of tools, which the model gets as JSON.
const JSON_MEMBERS = new Set(['args', 'response', 'input', 'input_schema'])
const MEDIA_TYPES: ReadonlySet<string> = new Set(MEDIA_MARKS.types)
// Members with the text of a document, or with media as base64.
const DATA_MEMBERS = new Set(['data', 'b64_json'])

interface Walk {
  readonly count: Count
  /** Tokens that the chat template adds to each message. */
  readonly perMessage: number
  readonly skippedMembers: ReadonlySet<string>
}

/**
 * Counts the tokens of texts, of a usual chat template, and of tools and schemas as JSON. Each image, recording or file counts as a fixed
 * number. @param prompt null = the endpoint's input is not text, so that the result is null
 */
export function promptTokens(prompt: PromptText | null, body: unknown, count: Count): number | null {
  if (prompt === null || !isObject(body)) return null
  let tokens = body.messages || body.contents || prompt.hasTemplate ? TOKENS_BEFORE_RESPONSE : 0
  const walk: Walk = { count, perMessage: TOKENS_PER_MESSAGE, skippedMembers: METADATA_MEMBERS }
  for (const name of prompt.members) tokens += textTokens(body[name], walk, 0)
  for (const name of SCHEMA_MEMBERS) {
    const schema = body[name]
    if (typeof schema === 'object' && schema !== null) tokens += count(JSON.stringify(schema))
  }
  return tokens
}

/** Counts the tokens of text, visible reasoning and tool calls. @returns null = the response is not text */
export function responseTokens(members: readonly string[] | null, body: unknown, count: Count): number | null {
  if (members === null || !isObject(body)) return null
  const walk: Walk = { count, perMessage: 0, skippedMembers: RESPONSE_METADATA_MEMBERS }
  return members.reduce((sum, name) => sum + textTokens(body[name], walk, 0), 0)
}

function textTokens(value: unknown, walk: Walk, depth: number): number {
  const { count, perMessage, skippedMembers: marks } = walk
  if (typeof value === 'string') return count(value)
  if (depth > MAX_DEPTH) return 0
  if (Array.isArray(value)) {
    // A list of numbers is a prompt as token ids.
    if (typeof value[0] === 'number') return value.length
    return value.reduce<number>((sum, item) => sum + textTokens(item, walk, depth + 1), 0)
  }
  if (!isObject(value)) return 0
  if (MEDIA_TYPES.has(String(value.type)) || MEDIA_MARKS.members.some(name => name in value)) return MEDIA_TOKENS
  let tokens = typeof value.role === 'string' ? perMessage : 0
  for (const [name, member] of Object.entries(value)) {
    if (marks.has(name)) continue
    if (JSON_MEMBERS.has(name) && isObject(member)) tokens += count(JSON.stringify(member))
    else if (DATA_MEMBERS.has(name) && isMedia(member)) tokens += MEDIA_TOKENS
    else tokens += textTokens(member, walk, depth + 1)
  }
  return tokens
}

function isMedia(value: unknown): boolean {
  return typeof value === 'string' && value.length >= MEDIA_FROM && isBase64(Buffer.from(value), 0, Buffer.byteLength(value))
}
