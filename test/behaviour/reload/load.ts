import { once } from 'node:events'
import * as http from 'node:http'
import * as http2 from 'node:http2'
import { text } from 'node:stream/consumers'

/** How requests are sent: over kept connections, each over a new connection, or over HTTP/2 sessions. */
export type Way = 'kept' | 'fresh' | 'http2'

export interface Tally {
  answers: number
  streams: number
  /**
   * Refused unprocessed by a session that was about to end,
   * and sent again (RFC 9113 section 8.7).
   */
  again: number
  readonly failures: string[]
}

export interface Load {
  readonly tally: Tally
  /** Resolves after `requests` more requests have ended. */
  more(requests: number): Promise<void>
  /** Waits for the running requests. */
  stop(): Promise<Tally>
}

export interface LoadOptions {
  /** Such as `http://127.0.0.1:8080`. */
  readonly base: string
  readonly key: string
  /** Number of clients of each way; half of them stream. */
  readonly clients: number
  readonly ways: readonly Way[]
}

const WORDS = 8

/**
 * Clients that send the next request after each response. A response that is not complete
 * is a failure; only requests that HTTP/2 marks as unprocessed are
 * sent again.
 */
export function startLoad({ base, key, clients, ways }: LoadOptions): Load {
  const tally: Tally = { answers: 0, streams: 0, again: 0, failures: [] }
  const waiting: { at: number; resolve: () => void }[] = []
  let stopping = false
  const ended = () => tally.answers + tally.streams + tally.failures.length
  const closers: (() => void)[] = []
  const run = async (ask: Ask, stream: boolean, way: Way): Promise<void> => {
    while (!stopping) {
      try {
        check(await ask(bodyOf(stream)), stream)
        tally[stream ? 'streams' : 'answers']++
      } catch (error) {
        tally.failures.push(`${way}${stream ? ' stream' : ''}: ${String(error)}`)
      }
      for (const { at, resolve } of waiting) if (ended() >= at) resolve()
    }
  }
  const running = ways.flatMap(way => Array.from({ length: clients }, (_, index) => {
    const asker = way === 'http2' ? http2Asker(base, key, tally) : http1Asker(base, key, way)
    closers.push(asker.close)
    return run(asker.ask, index % 2 === 1, way)
  }))
  return {
    tally,
    more: requests => {
      const at = ended() + requests
      return new Promise(resolve => waiting.push({ at, resolve }))
    },
    stop: async () => {
      stopping = true
      await Promise.all(running)
      for (const close of closers) close()
      return tally
    },
  }
}

type Ask = (body: string) => Promise<string>

interface Asker {
  readonly ask: Ask
  close(): void
}

function bodyOf(stream: boolean): string {
  const model = stream ? `sim,tokens=${WORDS},pace=10ms` : `sim,tokens=${WORDS},first_delay=5ms`
  return JSON.stringify({ model, stream, messages: [{ role: 'user', content: 'hello' }] })
}

function check(answer: string, stream: boolean): void {
  if (stream) {
    const words = answer.match(/"content":"[^"]+"/g)?.length ?? 0
    const isWhole = words === WORDS && answer.endsWith('data: [DONE]\n\n')
    if (!isWhole) throw new Error(`a stream of ${words} words: ${answer}`)
  } else {
    const { choices } = JSON.parse(answer) as { choices: { finish_reason: string }[] }
    if (choices[0]?.finish_reason !== 'stop') throw new Error(`unexpected response: ${answer}`)
  }
}

const PATH = '/v1/chat/completions'

function http1Asker(base: string, key: string, way: Way): Asker {
  const agent = new http.Agent({ keepAlive: way === 'kept', maxSockets: 1 })
  return {
    ask: async body => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
      const request = http.request(base + PATH, { method: 'POST', agent, headers })
      request.end(body)
      const [response] = await once(request, 'response') as [http.IncomingMessage]
      const answer = await text(response)
      if (response.statusCode !== 200) throw new Error(`${response.statusCode}: ${answer}`)
      return answer
    },
    close: () => agent.destroy(),
  }
}

function http2Asker(base: string, key: string, tally: Tally): Asker {
  let session: http2.ClientHttp2Session | null = null
  const open = (): http2.ClientHttp2Session => {
    if (session !== null && !session.closed && !session.destroyed) return session
    session = http2.connect(base)
    // The streams report the error.
    session.on('error', () => {})
    return session
  }
  const ask: Ask = async body => {
    const stream = open().request({
      ':method': 'POST', ':path': PATH, authorization: `Bearer ${key}`, 'content-type': 'application/json',
    })
    stream.end(body)
    try {
      const [headers] =
        await once(stream, 'response') as [http2.IncomingHttpHeaders & http2.IncomingHttpStatusHeader]
      const answer = await text(stream)
      if (headers[':status'] !== 200) throw new Error(`${headers[':status']}: ${answer}`)
      return answer
    } catch (error) {
      if (stream.rstCode !== http2.constants.NGHTTP2_REFUSED_STREAM) throw error
      tally.again++
      return ask(body)
    }
  }
  return { ask, close: () => session?.close() }
}
