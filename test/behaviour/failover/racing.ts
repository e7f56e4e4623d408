import type { ServerResponse } from 'node:http'
import type { Test } from 'tap'
import type { LedgerRow } from '../../../src/ledger/row.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { openBooks, priced } from '../billing/books.ts'
import { DIALECTS, WITH_STATUS } from './asking.ts'
import type { Dialect } from './asking.ts'

export const [CHAT] = DIALECTS as [Dialect]

/** A provider of one model, whose responses the test sends. */
export class Provider {
  asked = Promise.withResolvers<ServerResponse>()
  /** Resolves when the gateway closes the connection before the response is complete. */
  readonly cancelled = Promise.withResolvers<void>()
  requests = 0
  url = ''

  /** Resolves with the response object of the next request. */
  askAgain(): Promise<ServerResponse> {
    this.asked = Promise.withResolvers<ServerResponse>()
    return this.asked.promise
  }

  async start(t: Test): Promise<this> {
    const { url } = await startUpstream(t, async (req, res) => {
      this.requests++
      await bodyOf(req)
      res.on('close', () => {
        if (!res.writableFinished) this.cancelled.resolve()
      })
      this.asked.resolve(res)
    })
    this.url = url
    return this
  }
}

/** Sends only the head of a stream, like a model that starts slowly. */
export function openStream(res: ServerResponse): void {
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  res.flushHeaders()
}

export function respond(res: ServerResponse, text: string): void {
  if (!res.headersSent) openStream(res)
  res.end(`data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":"${text}"},"finish_reason":null}]}\n\n`
    + 'data: {"id":"1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    + 'data: {"id":"1","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12}}\n\n'
    + 'data: [DONE]\n\n')
}

export function refuse(res: ServerResponse, status: number): void {
  res.writeHead(status, { 'content-type': 'application/json' }).end('{"error":{"message":"refused","code":"some_code"}}')
}

/** A gateway that hedges with `b` if `a` is slow. @param options lines of YAML */
export async function startPair(t: Test, { after = '50ms', secondUpstream = '', route = '', models = priced('one', 'two'), more = '' } = {}) {
  const first = await new Provider().start(t)
  const second = await new Provider().start(t)
  const books = await openBooks(t, `
${WITH_STATUS}
upstreams: { a: { url: "${first.url}" }, b: { url: "${second.url}"${secondUpstream} } }
routes: [{ to: [{ upstream: a, model: one }, { upstream: b, model: two }], hedge: { after: ${after} }${route} }]
${more}
${models}`)
  return { first, second, books, gateway: books.gateway }
}

export async function onlyRow(close: Promise<Map<string, LedgerRow>>): Promise<LedgerRow> {
  const rows = [...(await close).values()]
  return rows[0] as LedgerRow
}
