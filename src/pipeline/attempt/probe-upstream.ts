import { randomUUID } from 'node:crypto'
import { pino } from 'pino'
import type { Clock } from '../../base/clock.ts'
import { GatewayError, causeOf } from '../../base/errors.ts'
import type { Config, Upstream } from '../../config/types.ts'
import { Attempt } from '../../upstreams/attempt.ts'
import { liveUpstreams, type LiveUpstream } from '../../upstreams/live-upstreams.ts'
import { classifyPath } from '../../protocols/classify-path.ts'
import { errorIdentifier } from '../../protocols/endpoint/refusal-reason.ts'
import { PROBE_HEADERS, probeOf, type Probe } from '../../providers/probe.ts'
import { Deadlines } from '../../proxy/http/deadlines.ts'
import { createProxy } from '../../proxy/upstream/http-proxy.ts'
import { ReadTurns } from '../../proxy/http/read-turns.ts'
import type { ResponseHead } from '../../proxy/upstream/response-head.ts'
import { upstreamPath } from '../../proxy/upstream/upstream-address.ts'
import { UpstreamCall, type ResponseSink } from '../../proxy/upstream/upstream-call.ts'
import { providerRequest } from './outgoing-request.ts'
import { credentialReason } from './recorder.ts'

export interface ProbeResult {
  /** `unclear`: the response does not show whether the upstream accepts the credential. */
  readonly verdict: 'ok' | 'unclear' | 'failed'
  /** Milliseconds until the response was complete, including the time to fetch a token. */
  readonly ms: number
  /** The request and its result, as text without secrets. */
  readonly detail: string
}

/** Milliseconds in total to fetch a token, connect and get the response. */
const DEADLINE = 15_000
/** Timeouts that never apply, because DEADLINE ends the whole probe earlier. */
const NO_TIMEOUTS = { connect: 2 * DEADLINE, firstByte: 2 * DEADLINE, idle: 2 * DEADLINE, total: 2 * DEADLINE }
const MAX_READ = 64 * 1024

/** Sends a request that costs nothing, with the operator's credential. @param model a model of the upstream; null = none is known */
export async function probeUpstream(config: Config, upstream: Upstream, model: string | null, clock: Clock): Promise<ProbeResult> {
  const { name } = upstream
  const live = liveUpstreams({ ...config, upstreams: new Map([[name, upstream]]) }, { clock, log: pino({ enabled: false }) }, null)
    .get(name) as LiveUpstream
  try {
    return await probe(live, model, clock)
  } finally {
    live.credential?.credential.close()
    void live.transport.destroy()
  }
}

async function probe(upstream: LiveUpstream, model: string | null, clock: Clock): Promise<ProbeResult> {
  const startedAt = clock.monotonic()
  const { config } = upstream
  const asked = probeOf(config, model)
  const stop = (error: GatewayError): void => {
    call.abort(error)
    sink.broken(error)
  }
  const sink = new BodySink(() => stop(READ))
  const deadlines = new Deadlines(clock, NO_TIMEOUTS, startedAt, stop)
  const call = new UpstreamCall({
    upstream,
    ...probeRequest(upstream, asked),
    credential: new Attempt(upstream, { purpose: ['check'], key: null, choosesAccount: false, own: null }),
    client: null,
    deadlines,
    readTurns: new ReadTurns(),
    decompresses: true,
    sink,
  })
  const timer = clock.setTimeout(() => stop(new GatewayError('total_timeout', `no response within ${DEADLINE / 1000} s`)), DEADLINE)
  const failure = await call.run(createProxy()) ?? await sink.ended
  timer.cancel()
  deadlines.stop()
  const result = failure === null || failure === READ ? judge(asked, sink.status, sink.body) : failed(failure)
  return { ...result, ms: clock.monotonic() - startedAt }
}

function probeRequest(upstream: LiveUpstream, { method, path, body, model }: Probe): ReturnType<typeof providerRequest> {
  const { config } = upstream
  const bytes = body && Buffer.from(JSON.stringify(body))
  const raw = [...bytes ? ['content-type', 'application/json'] : [], ...PROBE_HEADERS]
  const request = {
    method, path: upstreamPath(config, path), headers: [], body: bytes, source: { raw, requestId: randomUUID(), uncompressed: true },
  }
  return providerRequest(upstream, request, { endpoint: classifyPath(path).endpoint, model, stream: false })
}

function judge(probe: Probe, status: number, body: Buffer): Omit<ProbeResult, 'ms'> {
  const asked = probe.model === null ? 'list of models' : `token count of ${probe.model}`
  if (status >= 200 && status < 300) return { verdict: 'ok', detail: asked }
  const word = errorIdentifier(body)
  const said = `${asked}: ${status}${word === null ? '' : ` ${word}`}`
  if (status === 401 || status === 403) return { verdict: 'failed', detail: `${said}: the credential is refused` }
  if (status === 429) return { verdict: 'ok', detail: `${said}: the credential is at its rate limit` }
  // Some upstreams list no models, and some models support no token counting.
  const isMissing = probe.model === null ? status === 404 || status === 405 : status === 400
  return isMissing ? { verdict: 'unclear', detail: `${said}: nothing is known of the credential` } : { verdict: 'failed', detail: said }
}

function failed(error: GatewayError): Omit<ProbeResult, 'ms'> {
  if (error.code === 'credential_unavailable') return { verdict: 'failed', detail: credentialReason(error) }
  const cause = causeOf(error)
  return { verdict: 'failed', detail: cause === undefined ? error.message : `${error.message}: ${cause}` }
}

const READ = new GatewayError('internal', 'the check is done')

class BodySink implements ResponseSink {
  status = 0
  readonly #chunks: Buffer[] = []
  #size = 0
  readonly #end = Promise.withResolvers<GatewayError | null>()
  readonly #onFull: () => void

  /** @param onFull called when more than MAX_READ bytes have arrived */
  constructor(onFull: () => void) {
    this.#onFull = onFull
  }

  /** Resolves when the response ends: to null if it is complete, otherwise to the reason. */
  get ended(): Promise<GatewayError | null> {
    return this.#end.promise
  }

  get body(): Buffer {
    return Buffer.concat(this.#chunks)
  }

  head({ status }: ResponseHead): null {
    this.status = status
    return null
  }

  data(chunk: Buffer): boolean {
    this.#chunks.push(chunk)
    this.#size += chunk.length
    if (this.#size > MAX_READ) this.#onFull()
    return true
  }

  end(): void {
    this.#end.resolve(null)
  }

  broken(error: GatewayError): void {
    this.#end.resolve(error)
  }
}
