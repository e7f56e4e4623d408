import type * as http from 'node:http'
import type { Test } from 'tap'
import { chunkFrame, signatureFault } from './aws.ts'
import type { AwsKeys } from './aws.ts'
import { setEnvironment } from './environment.ts'
import { bodyOf, startUpstream } from './upstream.ts'

export interface SeenRequest {
  readonly url: string
  readonly headers: http.IncomingHttpHeaders
  readonly body: string
  /** Why the signature is refused; null = it is valid. */
  readonly fault: string | null
}

export interface TestBedrock {
  readonly url: string
  readonly seen: SeenRequest[]
  /** The access key whose signatures are accepted. */
  keys: AwsKeys
  /** Responds to a request with a valid signature; null = with a message, or the stream of a message. */
  respond: ((res: http.ServerResponse, request: SeenRequest) => void) | null
  /** ms by which its clock is ahead. */
  clockOffset: number
}

export const KEYS: AwsKeys = { accessKeyId: 'AKIATESTTESTTESTTEST', secretAccessKey: 'secret-access-key-0123456789' }

export const MESSAGE = {
  id: 'msg_bdrk_1', type: 'message', role: 'assistant', model: 'claude', content: [{ type: 'text', text: 'Hello' }],
  stop_reason: 'end_turn', stop_sequence: null, usage: { input_tokens: 7, output_tokens: 3, cache_read_input_tokens: 2 },
}

/** The events of a stream with the text `Hello`. */
export const EVENTS = [
  { type: 'message_start', message: { ...MESSAGE, content: [], stop_reason: null, usage: { input_tokens: 7, output_tokens: 1 } } },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hel' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'lo\n\u2028ü' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 3 } },
  { type: 'message_stop', 'amazon-bedrock-invocationMetrics': { inputTokenCount: 7, outputTokenCount: 3, invocationLatency: 5 } },
]

/** Bedrock's runtime API for one model of Anthropic: it verifies signatures. */
export async function startBedrock(t: Test): Promise<TestBedrock> {
  const { url } = await startUpstream(t, (req, res) => {
    void bodyOf(req).then(body => {
      res.setHeader('date', new Date(Date.now() + bedrock.clockOffset).toUTCString())
      res.setHeader('x-amzn-requestid', 'aws-request-1')
      const fault = signatureFault(req, body, bedrock.keys, 'us-east-1/bedrock', Date.now() + bedrock.clockOffset)
      const request = { url: req.url ?? '', headers: req.headers, body: body.toString(), fault }
      bedrock.seen.push(request)
      if (fault !== null) sendException(res, 403, 'InvalidSignatureException', fault)
      else if (bedrock.respond !== null) bedrock.respond(res, request)
      else if (request.url.endsWith('/invoke-with-response-stream')) sendFrames(res, EVENTS.map(chunkFrame))
      else if (request.url.endsWith('/count-tokens')) sendBody(res, { inputTokens: 42 })
      else sendBody(res, MESSAGE)
    })
  })
  const bedrock: TestBedrock = { url, seen: [], keys: KEYS, respond: null, clockOffset: 0 }
  return bedrock
}

export function sendBody(res: http.ServerResponse, body: object): void {
  res.writeHead(200, { 'content-type': 'application/json', 'x-amzn-bedrock-input-token-count': '7' }).end(JSON.stringify(body))
}

export function sendException(res: http.ServerResponse, status: number, name: string, message: string): void {
  res.writeHead(status, { 'content-type': 'application/json', 'x-amzn-errortype': `${name}:http://internal.amazon.com/` })
  res.end(JSON.stringify({ message }))
}

export function startFrames(res: http.ServerResponse): void {
  res.writeHead(200, { 'content-type': 'application/vnd.amazon.eventstream' })
}

export function sendFrames(res: http.ServerResponse, frames: readonly Buffer[]): void {
  startFrames(res)
  res.end(Buffer.concat(frames))
}

/** Sets AWS credentials in the environment, and hides the other sources of the AWS library. */
export function setAwsEnvironment(t: Test, values: Record<string, string>): void {
  const inherited = Object.keys(process.env).filter(name => name.startsWith('AWS_')).map(name => [name, undefined] as const)
  const none = { AWS_CONFIG_FILE: '/does/not/exist', AWS_SHARED_CREDENTIALS_FILE: '/does/not/exist', AWS_EC2_METADATA_DISABLED: 'true' }
  setEnvironment(t, { ...Object.fromEntries(inherited), ...none, ...values })
}

export const KEY_ENVIRONMENT = { AWS_ACCESS_KEY_ID: KEYS.accessKeyId, AWS_SECRET_ACCESS_KEY: KEYS.secretAccessKey }
