import type { Endpoint } from './protocol.ts'
import { readRequestOptions } from './request-options.ts'
import { ResumableStream } from '../events/resumable-stream.ts'

/**
 * Prepares a response so that another upstream can continue it if its stream breaks (`resume: continue`).
 * Overlaps are not detected: text that the second upstream repeats reaches the client twice.
 * @param body of the request: JSON, decompressed
 * @returns a string is the reason why the response cannot be continued
 */
export function createResumableStream({ streams }: Endpoint, body: Buffer): ResumableStream | string {
  const wishes = readRequestOptions(body)
  if (typeof wishes === 'string') return wishes
  if (streams === null) return 'answers of this endpoint cannot be continued'
  return streams.obstacle(wishes) ?? new ResumableStream(streams.createProtocol(wishes), streams.text)
}
