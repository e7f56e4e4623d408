import { createHash, createHmac } from 'node:crypto'
import type { Hash, Hmac } from 'node:crypto'
import type { SignatureV4 } from '@smithy/signature-v4'
import type { Authorization, HeaderList, UnauthorizedRequest } from './credential.ts'
import type { ServerClock } from './server-clock.ts'

const SIGNATURE_HEADERS = new Set(['authorization', 'x-amz-date', 'x-amz-security-token', 'x-amz-content-sha256'])

/** Signs each request (AWS Signature Version 4): its method, path, body and those headers that AWS asks for. */
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
      query: Object.fromEntries(new URLSearchParams(query)),
      headers: signedHeaders(headers, upstream.host),
      ...body !== null && { body },
    }, { signingDate: new Date(this.#clock.now) })
    return Object.entries(signed.headers).filter(([name]) => SIGNATURE_HEADERS.has(name)).flat()
  }
}

/** AWS wants these signed; others may change on the way. */
function signedHeaders(headers: HeaderList, host: string): Record<string, string> {
  const signed: Record<string, string> = { host }
  for (let i = 0; i < headers.length; i += 2) {
    const name = (headers[i] as string).toLowerCase()
    if (name === 'content-type' || name.startsWith('x-amz')) signed[name] = headers[i + 1] as string
  }
  return signed
}

/** A hash as the signer takes it; the one of AWS's library is written in JavaScript. */
export class Sha256 {
  readonly #hash: Hash | Hmac

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', secret as NodeJS.ArrayBufferView | string)
  }

  update(data: Uint8Array): void {
    this.#hash.update(data)
  }

  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest())
  }

  reset(): void {
    throw new TypeError('a hash is made for each use')
  }
}
