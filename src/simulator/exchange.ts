import type { IncomingMessage, ServerResponse } from 'node:http'
import { BehaviourError, parseBehaviour, type Behaviour } from './behaviour.ts'
import { familyOf, locate, type EndpointMatch } from './endpoint.ts'
import { faultyResponse, refusalResponse, Refusal, type Family } from './error.ts'
import { resetSocket } from './event-sink.ts'
import { echo } from './endpoints/other.ts'
import { prefillOf } from './prompt.ts'
import { parseBody, readBody, EMPTY_BODY, type ParsedBody, type SimulatedRequest } from './request.ts'
import { send, sendAtOnce } from './send.ts'
import { json, type SimulatedResponse } from './simulated-response.ts'
import { behaviourOf, behaviourHeader, splitTarget, type SimulatorContext } from './simulator-context.ts'

/** The state of one request. */
interface ExchangeState {
  readonly incoming: IncomingMessage
  readonly res: ServerResponse
  readonly path: string
  readonly query: URLSearchParams
  readonly family: Family
  readonly id: string
  /** The requested model; '' = not known yet. */
  model: string
  /** true if the simulator ended the connection on purpose, so that this is no abort. */
  closedDeliberately: boolean
  clientDisconnected: boolean
  /** Stops the waiting and the sending. */
  stop: () => void
}

/** Responds to one request. The behaviours decide how the response ends. */
export function serveExchange(context: SimulatorContext, incoming: IncomingMessage, res: ServerResponse): void {
  const [path, query] = splitTarget(incoming.url ?? '/')
  if (path === '/_simulator/stats') return sendAtOnce(res, json(context.counter.stats))
  const end = context.counter.begin()
  const params = new URLSearchParams(query)
  const ongoing: ExchangeState = {
    incoming, res, path, query: params,
    family: familyOf(path, params, incoming.headers),
    id: context.id('req_'),
    model: '', closedDeliberately: false, clientDisconnected: false, stop: () => {},
  }
  res.on('close', () => {
    ongoing.clientDisconnected = true
    ongoing.stop()
    const complete = ongoing.closedDeliberately || res.writableFinished
    const line = { method: incoming.method ?? '', path, model: ongoing.model }
    end(line, complete ? 'completed' : 'aborted', res.statusCode)
  })
  respond(context, ongoing).catch((thrown: unknown) => fail(ongoing, thrown))
}

async function respond(context: SimulatorContext, ongoing: ExchangeState): Promise<void> {
  const { incoming, res } = ongoing
  const list = behaviourHeader(incoming)
  const early = parseBehaviour(list).early === true
  const located = locate(incoming.method ?? '', ongoing.path)
  const read = early ? EMPTY_BODY : await receiveBody(incoming, located)
  if (read === null) return
  ongoing.model = located.model || read.model
  const behaviour = behaviourOf(context, ongoing.model, list)
  if (behaviour.headers_delay) await pause(behaviour.headers_delay, ongoing)
  if (ongoing.clientDisconnected) return
  if (behaviour.reset || behaviour.close) {
    ongoing.closedDeliberately = true
    return behaviour.reset ? resetSocket(incoming.socket) : void incoming.socket.destroy()
  }
  const request = requestOf(context, ongoing, read, behaviour)
  const response = withRequestId(ongoing, responseTo(request, located))
  ongoing.stop = send(res, response, behaviour, () => {
    ongoing.closedDeliberately = true
  })
}

/** Reads and parses the body; null = the client disconnected. */
async function receiveBody(incoming: IncomingMessage, located: EndpointMatch): Promise<ParsedBody | null> {
  const body = await readBody(incoming)
  if (body === null) return null
  return parseBody(body, incoming.headers['content-type'] ?? '', located.endpoint.bodyKind)
}

function requestOf(
  context: SimulatorContext, ongoing: ExchangeState, read: ParsedBody, behaviour: Behaviour,
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
    now: Math.floor(context.now() / 1000),
    requestId: id,
    id: context.id,
  }
}

/** The response: the one that behaviours require, or else the response of the endpoint. */
function responseTo(request: SimulatedRequest, located: EndpointMatch): SimulatedResponse {
  const { behaviour, family, json: body } = request
  if (behaviour.status !== undefined || behaviour.error_200) {
    return faultyResponse(family, behaviour, request.now, request.requestId)
  }
  if (behaviour.echo) return echo(request)
  if (behaviour.reject_prefill) {
    const prefill = prefillOf(body['messages'], 'assistant') ?? prefillOf(body['contents'], 'model')
    if (prefill !== null) throw new Refusal(400, 'This model does not support assistant message prefill.')
  }
  return located.endpoint.respond(request)
}

/** Adds the header with the request id, which has another name at each provider. The generate family has none. */
function withRequestId<T extends SimulatedResponse>(ongoing: ExchangeState, response: T): T {
  if (ongoing.family === 'generate') return response
  const name = ongoing.family === 'messages' ? 'request-id' : 'x-request-id'
  ongoing.res.setHeader(name, ongoing.id)
  return response
}

/** Responds to an error. An error that is no refusal is reported as a fault of the simulator. */
function fail(ongoing: ExchangeState, thrown: unknown): void {
  const { res, family, id } = ongoing
  if (res.headersSent) return void res.destroy()
  const refusal = thrown instanceof Refusal ? thrown
    : thrown instanceof BehaviourError ? new Refusal(400, thrown.message)
    : new Refusal(500, `The simulator failed: ${String(thrown)}`)
  sendAtOnce(res, withRequestId(ongoing, refusalResponse(family, refusal, id)))
}

function pause(ms: number, ongoing: ExchangeState): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(resolve, ms)
    ongoing.stop = () => {
      clearTimeout(timer)
      resolve()
    }
  })
}
