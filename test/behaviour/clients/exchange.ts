import { once } from 'node:events'
import { request } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Test } from 'tap'
import { bodyOf, startUpstream } from '../../support/upstream.ts'

/** A request with only the headers that the test names and the framing headers. */
export interface Sent {
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body: Buffer | string
}

/** A response without decoding. */
export interface Came {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

/** Posts bytes and reads the bytes of the response. Rejects if the response is cut. */
export async function post(url: string, { path, headers = {}, body }: Sent): Promise<Came> {
  const sent = request(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers, 'content-length': Buffer.byteLength(body) },
  })
  sent.end(body)
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  return { status: answer.statusCode ?? 0, headers: answer.headers, body: await bodyOf(answer) }
}

/** A request to an upstream. */
export interface Arrived {
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

/** An upstream that keeps its requests in order, and responds as the test says. */
export async function startKeepingUpstream(
  t: Test, answer: (res: ServerResponse, arrived: Arrived) => unknown = res => res.end('{}'),
): Promise<{ url: string; arrived: Arrived[] }> {
  const arrived: Arrived[] = []
  const { url } = await startUpstream(t, async (req, res) => {
    const one = { url: req.url ?? '', headers: req.headers, body: await bodyOf(req) }
    arrived.push(one)
    res.setHeader('content-type', 'application/json')
    await answer(res, one)
  })
  return { url, arrived }
}
