import type * as http from 'node:http'
import type { Test } from 'tap'
import { bodyOf, startUpstream } from './upstream.ts'

export interface TokenServer {
  readonly url: string
  /** What it was sent, in order. */
  readonly requests: { readonly headers: http.IncomingHttpHeaders, readonly body: URLSearchParams }[]
  /** Tokens that it has given. */
  readonly tokens: string[]
  /** Seconds that new tokens hold. */
  lifetime: number
  /** What it does instead; null = it gives tokens. */
  fault: ((res: http.ServerResponse) => void) | null
  /** Decides on each request whether it gets a token; null = all do. */
  answer: ((res: http.ServerResponse, giveToken: () => void) => void) | null
}

/** A token server, which a test can make slow, wrong or silent. It gives `token-1`, `token-2`, ... */
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
