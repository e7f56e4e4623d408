import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { asList, asText, parseObject } from './json.ts'
import type { OpaqueValue } from './opaque.ts'

/** Thinking that a client gets in a place that its protocol has for something else. */
export interface CarriedThinking {
  /** null = it cannot be read. */
  readonly text: string | null
  readonly opaque: OpaqueValue | null
}

/**
 * What travels through a client inside one opaque field of its own protocol, or inside the id of a tool call where
 * that has none: the client sends it back, and the reader learns whose values these are.
 */
export interface Capsule {
  /** Of the tool call, as the upstream made it; null = the capsule is no id. */
  readonly id: string | null
  readonly opaque: OpaqueValue | null
  /** Thinking before the part, for which the client's protocol has no place. */
  readonly thinking: readonly CarriedThinking[]
}

/**
 * What every capsule begins with. With the rest it is valid base64, as Google's SDKs require of a thought signature,
 * and fits the pattern of Anthropic's tool ids.
 */
const MARK = 'Gateway1'
/** Characters of the longest capsule: a client sends it with each turn. */
const MAX_LENGTH = 128 * 1024
/** Bytes of what a capsule holds, against one that inflates without end. */
const MAX_CONTENT = 1024 * 1024

/** Has the text a capsule in it? For a body, before it is parsed. */
export function mayHoldCapsule(body: Buffer): boolean {
  return body.includes(MARK)
}

/** @returns null = it would be too long, and the client has to do without */
export function seal({ id, opaque, thinking }: Capsule): string | null {
  const content = JSON.stringify([id, packed(opaque), thinking.map(({ text, opaque: value }) => [text, packed(value)])])
  const bytes = deflateRawSync(content)
  // Base64 of whole groups needs no padding, and the readers of deflate stop at its end.
  const padded = Buffer.concat([bytes, Buffer.alloc((3 - bytes.length % 3) % 3)])
  const capsule = MARK + padded.toString('base64url')
  return capsule.length > MAX_LENGTH ? null : capsule
}

/** @returns null = it is no capsule */
export function unseal(text: string): Capsule | null {
  if (!text.startsWith(MARK) || text.length > MAX_LENGTH) return null
  let content: string
  try {
    const bytes = Buffer.from(text.slice(MARK.length), 'base64url')
    content = inflateRawSync(bytes, { maxOutputLength: MAX_CONTENT }).toString('utf8')
  } catch {
    // Something else that begins so.
    return null
  }
  const fields = asList(parseObject(`{"capsule":${content}}`)?.['capsule'])
  return {
    id: asText(fields[0]),
    opaque: unpacked(fields[1]),
    thinking: asList(fields[2]).map(item => ({ text: asText(asList(item)[0]), opaque: unpacked(asList(item)[1]) })),
  }
}

function packed(opaque: OpaqueValue | null): unknown {
  return opaque === null ? null : [opaque.provider, opaque.value]
}

function unpacked(value: unknown): OpaqueValue | null {
  const [provider, content] = asList(value)
  return typeof content === 'string' ? { provider: asText(provider), value: content } : null
}
