import { createHmac, hash } from 'node:crypto'
import type { SignatureV4 } from '@smithy/signature-v4'
import type { Authorization, HeaderList, UnauthorizedRequest } from './credential.ts'
import type { ServerClock } from './server-clock.ts'

const SIGNATURE_HEADERS = ['authorization', 'x-amz-date', 'x-amz-security-token'] as const

/** Signs the method, path, body and required headers of each request (AWS Signature Version 4). */
export class AwsAuthorization implements Authorization {
  readonly #signer: SignatureV4
  readonly #clock: ServerClock

  constructor(signer: SignatureV4, clock: ServerClock) {
    this.#signer = signer
    this.#clock = clock
  }

  async headersFor({ method, path, headers, body }: UnauthorizedRequest, upstream: URL): Promise<HeaderList> {
    const [pathname, query] = path.split('?', 2) as [string, string?]
    const signed = await this.#signer.sign({
      method,
      protocol: upstream.protocol,
      hostname: upstream.hostname,
      path: pathname,
      query: query === undefined ? {} : Object.fromEntries(new URLSearchParams(query)),
      headers: signedHeaders(headers, upstream.host),
      ...body !== null && { body },
    }, { signingDate: new Date(this.#clock.now) })
    return SIGNATURE_HEADERS.flatMap(name => {
      const value = signed.headers[name]
      return value === undefined ? [] : [name, value]
    })
  }
}

/** The headers that AWS requires in the signature. Other headers are not signed, because proxies may change them. */
function signedHeaders(headers: HeaderList, host: string): Record<string, string> {
  const signed: Record<string, string> = { host }
  for (let i = 0; i < headers.length; i += 2) {
    const name = (headers[i] as string).toLowerCase()
    if (name === 'content-type' || name.startsWith('x-amz')) signed[name] = headers[i + 1] as string
  }
  return signed
}

/**
 * Creates a hash class for the signer that uses node's crypto, because the class of AWS's library is slower JavaScript. The signer derives
 * its key for each request. The first step of the derivation, whose secret is a text, has the same result all day and is cached.
 */
export function createSha256() {
  let derived: { readonly secret: string, readonly data: string, readonly digest: Uint8Array } | null = null
  return class {
    readonly #secret: string | NodeJS.ArrayBufferView | undefined
    #data: Uint8Array = NOTHING

    constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
      this.#secret = secret as string | NodeJS.ArrayBufferView | undefined
    }

    update(data: Uint8Array): void {
      this.#data = this.#data === NOTHING ? data : Buffer.concat([this.#data, data])
    }

    async digest(): Promise<Uint8Array> {
      const secret = this.#secret
      if (secret === undefined) return hash('sha256', this.#data, 'buffer')
      if (typeof secret !== 'string') return createHmac('sha256', secret).update(this.#data).digest()
      const data = Buffer.from(this.#data).toString('latin1')
      if (derived?.secret !== secret || derived.data !== data) {
        derived = { secret, data, digest: createHmac('sha256', secret).update(this.#data).digest() }
      }
      return derived.digest
    }

    reset(): void {
      this.#data = NOTHING
    }
  }
}

const NOTHING = new Uint8Array()
