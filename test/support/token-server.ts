import type * as http from 'node:http'
import type { Test } from 'tap'
import { bodyOf, startUpstream } from './upstream.ts'

export interface TokenServer {
  readonly url: string
  /** All requests, in order. */
  readonly requests: { readonly headers: http.IncomingHttpHeaders, readonly body: URLSearchParams }[]
  /** All issued tokens. */
  readonly tokens: string[]
  /** Lifetime of new tokens, s. */
  lifetime: number
  /** Replaces each response; null = none. */
  fault: ((res: http.ServerResponse) => void) | null
  /** Decides for each request whether it gets a token; null = each request gets one. */
  answer: ((res: http.ServerResponse, giveToken: () => void) => void) | null
}

/** A token server that issues `token-1`, `token-2`, ... A test can make it slow, wrong or silent. */
export async function startTokenServer(t: Test): Promise<TokenServer> {
  const { url } = await startUpstream(t, (req, res) => {
    void bodyOf(req).then(body => {
      server.requests.push({ headers: req.headers, body: new URLSearchParams(body.toString()) })
      if (server.fault !== null) {
        server.fault(res)
        return
      }
      const giveToken = (): void => {
        const token = `token-${server.tokens.length + 1}`
        server.tokens.push(token)
        sendJson(res, 200, { access_token: token, token_type: 'Bearer', expires_in: server.lifetime })
      }
      if (server.answer === null) giveToken()
      else server.answer(res, giveToken)
    })
  })
  const server: TokenServer = { url: `${url}/token`, requests: [], tokens: [], lifetime: 3_600, fault: null, answer: null }
  return server
}

export function sendJson(res: http.ServerResponse, status: number, body: unknown): void {
  res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
