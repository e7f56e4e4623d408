import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Behaviour } from './behaviour.ts'
import { Refusal, type Family } from './error.ts'
import { record, string, type Json } from './json.ts'

/** A request whose body has arrived. */
export interface SimulatedRequest {
  readonly method: string
  /** The request target as the client sent it. */
  readonly target: string
  /** The path as the client sent it, without the query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  /** A flat list of names and values, as the client sent them. */
  readonly rawHeaders: readonly string[]
  readonly family: Family
  readonly body: Buffer
  /** The JSON body; empty = the request has no JSON body. */
  readonly json: Json
  /** The multipart form; null = the body is not a form. */
  readonly form: FormData | null
  /** The model as the client wrote it, including behaviours; '' = the request names no model. */
  readonly model: string
  readonly behaviour: Behaviour
  /** Time of the request, in seconds since 1970. */
  readonly now: number
  /** The id in the response's request id header. */
  readonly requestId: string
  /** Creates an identifier with the prefix. */
  readonly id: (prefix: string) => string
}

/** The body, raw and parsed. */
export interface ParsedBody {
  readonly body: Buffer
  readonly json: Json
  readonly form: FormData | null
  readonly model: string
}

const BODY_LIMIT = 256 * 1024 * 1024
const NO_BODY: Buffer = Buffer.alloc(0)

/** The result for a request without a body, or with a body that is not read. */
export const EMPTY_BODY: ParsedBody = Object.freeze({ body: NO_BODY, json: {}, form: null, model: '' })

/**
 * Reads the whole body.
 *
 * @returns null = the client disconnected before the end of the body
 * @throws Refusal 413 above 256 MiB
 */
export function readBody(incoming: IncomingMessage): Promise<Buffer | null> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    incoming.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes <= BODY_LIMIT) chunks.push(chunk)
      else {
        incoming.removeAllListeners('data').resume()
        reject(new Refusal(413, 'The request body is above 256 MiB.', { connection: 'close' }))
      }
    })
    incoming.on('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
    incoming.on('close', () => resolve(null))
    // Ignore the error, because the event `close` follows and is handled.
    incoming.on('error', () => {})
  })
}

/**
 * Parses the body.
 *
 * @param bodyKind whether the endpoint accepts only JSON, JSON or a form, or any body
 * @throws Refusal 400 if the endpoint does not accept the body
 */
export async function parseBody(
  body: Buffer,
  contentType: string,
  bodyKind: 'json' | 'form' | 'any',
): Promise<ParsedBody> {
  if (bodyKind !== 'json' && contentType.startsWith('multipart/')) {
    const form = await parseForm(body, contentType)
    return { body, json: EMPTY_BODY.json, form, model: string(form.get('model')) }
  }
  if (bodyKind === 'form' && !contentType.startsWith('application/json')) {
    throw new Refusal(400, 'The request body is not a multipart form.')
  }
  const json = parseJson(body, bodyKind !== 'any')
  return { body, json, form: null, model: string(json['model']) }
}

function parseJson(body: Buffer, required: boolean): Json {
  let value: unknown
  try {
    value = JSON.parse(body.toString('utf8'))
  } catch {
    if (!required) return EMPTY_BODY.json
    throw new Refusal(400, 'We could not parse the JSON body of your request.')
  }
  if (required && (typeof value !== 'object' || value === null || Array.isArray(value))) {
    throw new Refusal(400, 'The JSON body of your request is not an object.')
  }
  return record(value)
}

async function parseForm(body: Buffer, contentType: string): Promise<FormData> {
  try {
    return await new Response(new Uint8Array(body), { headers: { 'content-type': contentType } }).formData()
  } catch {
    throw new Refusal(400, 'The multipart form cannot be read.')
  }
}
