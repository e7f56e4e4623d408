import { createHmac, timingSafeEqual } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import type { CapsuleKey, CapsuleKeys } from '../../base/secrets/capsule-keys.ts'
import { asList, asText } from './json.ts'
import type { OpaqueValue } from './opaque.ts'
import type { TranslationReport } from './report.ts'
import { fittingToolId, type ToolIdRule } from './tool-ids.ts'

/** Thinking inside a capsule. */
export interface CarriedThinking {
  /** The text of the thinking; null = only the provider can read it. */
  readonly text: string | null
  readonly opaque: OpaqueValue | null
}

/** Values that a client stores and sends back. A capsule is in an opaque field of the client's protocol, or in the id of a tool call. */
export interface Capsule {
  /** The upstream's id of the tool call; null = the capsule is not an id. */
  readonly id: string | null
  readonly opaque: OpaqueValue | null
  /** The thinking before the part. Empty if the client's protocol has a field for thinking. */
  readonly thinking: readonly CarriedThinking[]
}

/** Where a capsule is. A capsule that is moved to the other place is invalid. */
export type CapsulePlace = 'tool_id' | 'opaque_value'

export interface CapsuleAccess {
  readonly keys: CapsuleKeys
  /** Reserves memory before content is decompressed. @throws GatewayError if the capsules of the request together contain too much */
  reserve(bytes: number): void
}

/*
 * The text of a capsule: `MARK`, the id of the key, the MAC and the payload. Each has whole groups of base64url without padding. Google's
 * SDKs require base64 in a thought signature, and Anthropic's pattern of tool ids allows these characters.
 */
const MARK = 'Gateway1'
const KEY_END = MARK.length + 8
const MAC_BYTES = 24
const MAC_END = KEY_END + MAC_BYTES / 3 * 4
/**
 * Bytes of the payload's head, which contains the lengths of the id and the content. The id and the content follow the head. Long content
 * is deflated.
 */
const HEAD_BYTES = 8
/** Minimum bytes of content that is deflated: each start of deflate is slow, and a response can have thousands of capsules. */
const DEFLATED_FROM = 512
/** Maximum characters of a capsule, because the client sends the capsule again with each turn. */
const MAX_LENGTH = 128 * 1024
/** Maximum ratio of decompressed to compressed bytes, because a client can repeat a capsule many times. */
const MAX_RATIO = 4

/** No id fits this rule, so `fittingToolId` always derives a new id. */
const MADE_ID: ToolIdRule = { pattern: /^$/, maxLength: 64, prefix: 'call_' }

/** Tells whether the body may contain a capsule, before the body is parsed. */
export function mayHoldCapsule(body: Buffer): boolean {
  return body.includes(MARK)
}

/** Tells whether the text looks like a capsule. Only the MAC proves that a gateway made it. */
export function isMarked(text: string): boolean {
  return text.startsWith(MARK)
}

/** @returns null = the values are too long for a capsule */
export function seal(keys: CapsuleKeys, place: CapsulePlace, { id, opaque, thinking }: Capsule): string | null {
  const content = Buffer.from(JSON.stringify([packed(opaque), thinking.map(({ text, opaque: value }) => [text, packed(value)])]))
  const name = Buffer.from(id ?? '')
  const head = Buffer.alloc(HEAD_BYTES)
  head.writeUInt32BE(name.length, 0)
  head.writeUInt32BE(content.length, 4)
  const bytes = Buffer.concat([head, name, content.length < DEFLATED_FROM ? content : deflateRawSync(content)])
  // The capsule is padded: readers of deflate ignore bytes after the end.
  const length = Math.ceil(Math.max(bytes.length, content.length / MAX_RATIO) / 3) * 3
  const payload = Buffer.concat([bytes], length).toString('base64url')
  const key = keys.newest
  const capsule = MARK + key.id + macOf(key, place, payload).toString('base64url') + payload
  return capsule.length > MAX_LENGTH ? null : capsule
}

/** Opens the capsules of one request. Content is read only after its MAC is verified. */
export class CapsuleReader {
  readonly #access: CapsuleAccess
  readonly #report: Pick<TranslationReport, 'drop'>

  /** @param report gets the fields whose capsule has a wrong MAC or an unknown key */
  constructor(access: CapsuleAccess, report: Pick<TranslationReport, 'drop'>) {
    this.#access = access
    this.#report = report
  }

  /**
   * @param field path of the text: `messages[].tool_calls[].id`
   * @returns null = the text is no capsule; an empty capsule if the MAC is wrong
   */
  open(place: CapsulePlace, text: string, field: string): Capsule | null {
    if (!isMarked(text)) return null
    const payload = this.#payload(place, text, field)
    if (payload === null) return { id: place === 'tool_id' ? madeId(text) : null, opaque: null, thinking: [] }
    const { id, packedContent, contentLength } = payload
    this.#access.reserve(contentLength)
    const content = contentLength < DEFLATED_FROM
      ? packedContent.subarray(0, contentLength)
      : inflateRawSync(packedContent, { maxOutputLength: contentLength })
    const [opaque, thinking] = JSON.parse(content.toString('utf8')) as unknown[]
    return {
      id,
      opaque: unpacked(opaque),
      thinking: asList(thinking).map(item => ({ text: asText(asList(item)[0]), opaque: unpacked(asList(item)[1]) })),
    }
  }

  /** Reads only the id of a capsule. @returns the text itself if it is no capsule; an id derived from the text if the MAC is wrong */
  toolId(text: string, field: string): string {
    return isMarked(text) ? this.#payload('tool_id', text, field)?.id ?? madeId(text) : text
  }

  /** @returns null = the MAC is wrong or the key is unknown */
  #payload(place: CapsulePlace, text: string, field: string): Payload | null {
    const key = text.length > MAX_LENGTH ? null : this.#access.keys.find(text.slice(MARK.length, KEY_END))
    const encoded = text.slice(MAC_END)
    const mac = Buffer.from(text.slice(KEY_END, MAC_END), 'base64url')
    if (key === null || mac.length !== MAC_BYTES || !timingSafeEqual(mac, macOf(key, place, encoded))) {
      this.#report.drop(field)
      return null
    }
    const bytes = Buffer.from(encoded, 'base64url')
    const idEnd = HEAD_BYTES + bytes.readUInt32BE(0)
    const id = bytes.toString('utf8', HEAD_BYTES, idEnd)
    return { id: id === '' ? null : id, packedContent: bytes.subarray(idEnd), contentLength: bytes.readUInt32BE(4) }
  }
}

interface Payload {
  readonly id: string | null
  /** The content, which may be deflated, and padding after it. */
  readonly packedContent: Buffer
  /** Bytes of the decompressed content. */
  readonly contentLength: number
}

/** An id derived from the text, so that a call and its result get the same id. */
function madeId(text: string): string {
  return fittingToolId(text, MADE_ID)
}

function macOf({ secret }: CapsuleKey, place: CapsulePlace, payload: string): Buffer {
  return createHmac('sha256', secret).update(`${place}\n${payload}`).digest().subarray(0, MAC_BYTES)
}

function packed(opaque: OpaqueValue | null): unknown {
  return opaque === null ? null : [opaque.provider, opaque.value]
}

function unpacked(value: unknown): OpaqueValue | null {
  const [provider, content] = asList(value)
  return typeof content === 'string' ? { provider: asText(provider), value: content } : null
}
