import { createHash } from 'node:crypto'
import type { SimulatedRequest } from '../request.ts'
import { json, type SimulatedResponse } from '../simulated-response.ts'

/** Responds at any other path with a description of the request. */
export function otherPath(request: SimulatedRequest): SimulatedResponse {
  return json({
    id: request.id('sim-'),
    object: 'simulated',
    created: request.now,
    method: request.method,
    path: request.path,
    model: request.model || null,
    bytes: request.body.length,
  })
}

/** Maximum bytes of a body in the response to `echo`. For a larger body, the response contains the digest. */
const ECHO_LIMIT = 1024 * 1024

/** The response to `echo`: the whole request, including credentials. `raw_headers` is a flat list of names and values. */
export function echo(request: SimulatedRequest): SimulatedResponse {
  return json({
    object: 'echo',
    method: request.method,
    target: request.target,
    path: request.path,
    model: request.model || null,
    headers: request.headers,
    raw_headers: request.rawHeaders,
    body_bytes: request.body.length,
    body_sha256: createHash('sha256').update(request.body).digest('hex'),
    body_base64: request.body.length > ECHO_LIMIT ? null : request.body.toString('base64'),
  })
}
