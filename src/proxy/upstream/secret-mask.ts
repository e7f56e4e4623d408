import { decompressed } from '../../protocols/http/decompress.ts'
import type { RawHeaders } from '../http/raw-headers.ts'

/** Bytes. A shorter secret is not masked, because its text can occur by chance. */
const MIN_LENGTH = 8
/** Headers of a signed request whose values are not secret. */
const PUBLIC_HEADERS = /^(?:host|content-|x-amz-(?!security-token))/i
/** An authentication scheme and its credential. */
const SCHEME = /^[a-z][\w-]* +(\S+)$/i
const ASTERISK = 0x2a

/** The secrets to mask in an upstream's responses: those of the credential and of configured headers. */
export class UpstreamSecrets {
  readonly #configured: RawHeaders
  #headers: RawHeaders | null = null
  #secrets: readonly string[] = []

  /** @param configured headers with secrets that the configuration adds; flat */
  constructor(configured: RawHeaders) {
    this.#configured = configured
  }

  /** @param headers of the credential; flat. The result for the last list is kept, because the list rarely changes */
  of(headers: RawHeaders): readonly string[] {
    if (headers !== this.#headers) {
      this.#headers = headers
      this.#secrets = secretsOf([...headers, ...this.#configured])
    }
    return this.#secrets
  }
}

/** @param headers flat */
export function secretsOf(headers: RawHeaders): string[] {
  const secrets: string[] = []
  for (let i = 0; i < headers.length; i += 2) {
    const value = headers[i + 1] as string
    if (PUBLIC_HEADERS.test(headers[i] as string)) continue
    const secret = SCHEME.exec(value)?.[1] ?? value
    if (secret.length >= MIN_LENGTH) secrets.push(secret)
  }
  return secrets
}

/** Replaces secrets in the values by asterisks. @returns `headers` itself if no value contains a secret */
export function maskHeaders(headers: RawHeaders, secrets: readonly string[]): RawHeaders {
  const isLeaking = (secret: string) => headers.some(part => part.length >= secret.length && holds(part, secret))
  return secrets.some(isLeaking) ? headers.map((part, i) => (i % 2 === 0 ? part : maskText(part, secrets))) : headers
}

function holds(text: string, secret: string): boolean {
  return text.includes(secret) || (text.includes('%') && text.includes(encodeURIComponent(secret)))
}

function maskText(text: string, secrets: readonly string[]): string {
  return maskBytes(Buffer.from(text, 'latin1'), spellings(secrets)).toString('latin1')
}

/** @returns each secret in all spellings: unchanged, with JSON's escaped slashes, and URL-encoded */
function spellings(secrets: readonly string[]): Buffer[] {
  const texts = secrets.flatMap(secret => [secret, secret.replaceAll('/', '\\/'), encodeURIComponent(secret)])
  return [...new Set(texts)].map(text => Buffer.from(text, 'latin1'))
}

/** @returns `bytes` itself if it contains no secret */
function maskBytes(bytes: Buffer, needles: readonly Buffer[]): Buffer {
  let masked = bytes
  for (const needle of needles) {
    for (let at = masked.indexOf(needle); at !== -1; at = masked.indexOf(needle, at + needle.length)) {
      if (masked === bytes) masked = Buffer.from(bytes)
      masked.fill(ASTERISK, at, at + needle.length)
    }
  }
  return masked
}

/** @param coding null = not compressed @returns the whole body, decompressed and masked; null = no secret found, or not decompressible */
export function maskBody(body: Buffer, coding: string | null, secrets: readonly string[]): Buffer | null {
  const plain = decompressed(body, coding)
  if (plain === null || plain === 'broken') return null
  const masked = maskBytes(plain, spellings(secrets))
  return masked === plain ? null : masked
}

/** Masks a body as it arrives, without changing its length. Holds bytes that can be the beginning of a secret. */
export class StreamMask {
  readonly #needles: readonly Buffer[]
  readonly #longest: number
  #held: Buffer = Buffer.alloc(0)

  constructor(secrets: readonly string[]) {
    this.#needles = spellings(secrets)
    this.#longest = Math.max(...this.#needles.map(({ length }) => length))
  }

  push(chunk: Buffer): Buffer {
    const bytes = maskBytes(this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]), this.#needles)
    const end = bytes.length - this.#openLength(bytes)
    this.#held = Buffer.from(bytes.subarray(end))
    return bytes.subarray(0, end)
  }

  /** @returns the held bytes; call this when the body has ended */
  rest(): Buffer {
    const bytes = this.#held
    this.#held = Buffer.alloc(0)
    return bytes
  }

  /** @returns the number of bytes at the end of `bytes` that can be the beginning of a secret */
  #openLength(bytes: Buffer): number {
    for (let length = Math.min(this.#longest - 1, bytes.length); length > 0; length--) {
      const tail = bytes.subarray(bytes.length - length)
      if (this.#needles.some(needle => needle.length > length && tail.equals(needle.subarray(0, length)))) return length
    }
    return 0
  }
}
