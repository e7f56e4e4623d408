import { createHash, createHmac } from 'node:crypto'
import type * as http from 'node:http'
import { crc32 } from 'node:zlib'

/** Access key of a user or role in AWS. */
export interface AwsKeys {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
}

/** ms for which a signature is valid. */
const MAX_AGE = 5 * 60_000

/**
 * Verifies the signature of a request as AWS does. Written from "Signature Version 4 signing process" in the AWS General
 * Reference, without the library that signs.
 *
 * @param now ms since 1970
 * @returns why AWS refuses it; null = it does not
 */
export function signatureFault(req: http.IncomingMessage, body: Buffer, keys: AwsKeys, scope: string, now = Date.now()): string | null {
  const authorization = /^AWS4-HMAC-SHA256 Credential=([^,]+), SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(req.headers.authorization ?? '')
  if (authorization === null) return 'MissingAuthenticationTokenException'
  const [, credential = '', signedHeaders = '', signature = ''] = authorization
  const date = String(req.headers['x-amz-date'])
  const day = date.slice(0, 8)
  if (credential !== `${keys.accessKeyId}/${day}/${scope}/aws4_request`) return 'UnrecognizedClientException'
  if (req.headers['x-amz-security-token'] !== keys.sessionToken) return 'UnrecognizedClientException: token'
  const at = Date.parse(date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'))
  if (!(Math.abs(at - now) < MAX_AGE)) return 'InvalidSignatureException: the signature has expired'
  const names = signedHeaders.split(';')
  const missing = ['host', ...Object.keys(req.headers).filter(name => name.startsWith('x-amz-'))].find(name => !names.includes(name))
  if (missing !== undefined) return `InvalidSignatureException: ${missing} is not signed`
  const [path = '', query = ''] = (req.url ?? '').split('?')
  const canonical = [
    req.method,
    path.split('/').map(segment => rfc3986(segment)).join('/'),
    [...new URLSearchParams(query)].map(([name, value]) => `${rfc3986(name)}=${rfc3986(value)}`).sort().join('&'),
    ...names.map(name => `${name}:${String(req.headers[name]).trim().replace(/ +/g, ' ')}`),
    '',
    signedHeaders,
    sha256(body),
  ].join('\n')
  const toSign = ['AWS4-HMAC-SHA256', date, `${day}/${scope}/aws4_request`, sha256(canonical)].join('\n')
  const key = [day, ...scope.split('/'), 'aws4_request'].reduce<string | Buffer>(
    (secret, part) => createHmac('sha256', secret).update(part).digest(), `AWS4${keys.secretAccessKey}`,
  )
  const expected = createHmac('sha256', key).update(toSign).digest('hex')
  return signature === expected ? null : 'InvalidSignatureException: the signature does not match'
}

function sha256(data: string | Buffer): string {
  return createHash('sha256').update(data).digest('hex')
}

function rfc3986(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, c => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
}

/** A frame of AWS's event stream, written from "Event stream encoding". @param headers values of type string */
export function eventFrame(headers: Readonly<Record<string, string>>, payload: string | Buffer): Buffer {
  const encoded = Buffer.concat(Object.entries(headers).map(([name, value]) => {
    const length = Buffer.alloc(2)
    length.writeUInt16BE(Buffer.byteLength(value))
    return Buffer.concat([Buffer.from([name.length]), Buffer.from(name), Buffer.from([7]), length, Buffer.from(value)])
  }))
  const body = Buffer.from(payload)
  const prelude = Buffer.alloc(12)
  prelude.writeUInt32BE(16 + encoded.length + body.length, 0)
  prelude.writeUInt32BE(encoded.length, 4)
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8)
  const whole = Buffer.concat([prelude, encoded, body])
  const checksum = Buffer.alloc(4)
  checksum.writeUInt32BE(crc32(whole))
  return Buffer.concat([whole, checksum])
}

/** An event of a model's own API, as InvokeModelWithResponseStream sends it. */
export function chunkFrame(event: object): Buffer {
  return eventFrame(
    { ':event-type': 'chunk', ':content-type': 'application/json', ':message-type': 'event' },
    JSON.stringify({ bytes: Buffer.from(JSON.stringify(event)).toString('base64'), p: 'abcdefgh' }),
  )
}

/** @param name `throttlingException` */
export function exceptionFrame(name: string, message: string): Buffer {
  return eventFrame(
    { ':exception-type': name, ':content-type': 'application/json', ':message-type': 'exception' }, JSON.stringify({ message }),
  )
}
