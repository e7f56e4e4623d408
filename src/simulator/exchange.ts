import type { IncomingMessage, ServerResponse } from 'node:http'
import { json, type Answer } from './simulated-response.ts'
import { BehaviourError, parseBehaviour, type Behaviour } from './behaviour.ts'
import { familyOf, locate, type Located } from './endpoint.ts'
import { faultyAnswer, refuse, Refusal, type Family } from './error.ts'
import { echo } from './other.ts'
import { prefillOf } from './prompt.ts'
import { parseBody, readBody, UNREAD, type ReadBody, type SimulatedRequest } from './request.ts'
import { send, sendAtOnce } from './send.ts'
import { resetSocket } from './event-sink.ts'
import { behaviourOf, headerList, splitTarget, type Surroundings } from './simulator-context.ts'

/** One request on its way. */
interface Ongoing {
  readonly incoming: IncomingMessage
  readonly res: ServerResponse
  readonly path: string
  readonly query: URLSearchParams
  readonly family: Family
  readonly id: string
  /** '' until it is known. */
  model: string
  /** The connection was ended on purpose: that is no abort. */
  deliberate: boolean
  gone: boolean
  /** Ends whatever is waited for or still being said. */
  stop: () => void
}

/** Answers one request, from its first byte to the end that its behaviours give it. */
export function serveExchange(around: Surroundings, incoming: IncomingMessage, res: ServerResponse): void {
  const [path, query] = splitTarget(incoming.url ?? '/')
  if (path === '/_simulator/stats') return sendAtOnce(res, json(around.counter.stats))
  const end = around.counter.begin()
  const params = new URLSearchParams(query)
  const ongoing: Ongoing = {
    incoming, res, path, query: params,
    family: familyOf(path, params, incoming.headers),
    id: around.id('req_'),
    model: '', deliberate: false, gone: false, stop: () => {},
  }
  res.on('close', () => {
    ongoing.gone = true
    ongoing.stop()
    const complete = ongoing.deliberate || res.writableFinished
    const line = { method: incoming.method ?? '', path, model: ongoing.model }
    end(line, complete ? 'completed' : 'aborted', res.statusCode)
  })
  respond(around, ongoing).catch((thrown: unknown) => fail(ongoing, thrown))
}

async function respond(around: Surroundings, ongoing: Ongoing): Promise<void> {
  const { incoming, res } = ongoing
  const list = headerList(incoming)
  const early = parseBehaviour(list).early === true
  const located = locate(incoming.method ?? '', ongoing.path)
  const read = early ? UNREAD : await arrive(incoming, located)
  if (read === null) return
  ongoing.model = located.model || read.model
  const behaviour = behaviourOf(around, ongoing.model, list)
  if (behaviour.headers_delay) await pause(behaviour.headers_delay, ongoing)
  if (ongoing.gone) return
  if (behaviour.reset || behaviour.close) {
    ongoing.deliberate = true
    return behaviour.reset ? resetSocket(incoming.socket) : void incoming.socket.destroy()
  }
  const request = requestOf(around, ongoing, read, behaviour)
  const answer = withRequestId(ongoing, answerTo(request, located))
  ongoing.stop = send(res, answer, behaviour, () => {
    ongoing.deliberate = true
  })
}

/** The body, when it is there and well-formed; null when the client left before. */
async function arrive(incoming: IncomingMessage, located: Located): Promise<ReadBody | null> {
  const body = await readBody(incoming)
  if (body === null) return null
  return parseBody(body, incoming.headers['content-type'] ?? '', located.endpoint.wants)
}

function requestOf(
  around: Surroundings, ongoing: Ongoing, read: ReadBody, behaviour: Behaviour,
): SimulatedRequest {
  const { incoming, path, query, family, model, id } = ongoing
  return {
    method: incoming.method ?? '',
    target: incoming.url ?? '',
    path, query, family, model, behaviour,
    headers: incoming.headers,
    rawHeaders: incoming.rawHeaders,
    body: read.body,
    json: read.json,
    form: read.form,
    now: Math.floor(around.now() / 1000),
    requestId: id,
    id: around.id,
  }
}

/** What is answered: what the behaviours ask for in its place, or else what the endpoint says. */
function answerTo(request: SimulatedRequest, located: Located): Answer {
  const { behaviour, family, json: body } = request
  if (behaviour.status !== undefined || behaviour.error_200) {
    return faultyAnswer(family, behaviour, request.now, request.requestId)
  }
  if (behaviour.echo) return echo(request)
  if (behaviour.reject_prefill) {
    const prefill = prefillOf(body['messages'], 'assistant') ?? prefillOf(body['contents'], 'model')
    if (prefill !== null) throw new Refusal(400, 'This model does not support assistant message prefill.')
  }
  return located.endpoint.answer(request)
}

/** Each provider names its request id differently; the generate family has none. */
function withRequestId<T extends Answer>(ongoing: Ongoing, answer: T): T {
  if (ongoing.family === 'generate') return answer
  const name = ongoing.family === 'messages' ? 'request-id' : 'x-request-id'
  ongoing.res.setHeader(name, ongoing.id)
  return answer
}

/** Anything but a refusal is a fault of the simulator itself, and is said to be one. */
function fail(ongoing: Ongoing, thrown: unknown): void {
  const { res, family, id } = ongoing
  if (res.headersSent) return void res.destroy()
  const refusal = thrown instanceof Refusal ? thrown
    : thrown instanceof BehaviourError ? new Refusal(400, thrown.message)
    : new Refusal(500, `The simulator failed: ${String(thrown)}`)
  sendAtOnce(res, withRequestId(ongoing, refuse(family, refusal, id)))
}

function pause(ms: number, ongoing: Ongoing): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(resolve, ms)
    ongoing.stop = () => {
      clearTimeout(timer)
      resolve()
    }
  })
}
