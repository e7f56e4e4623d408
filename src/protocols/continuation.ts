import type { EndpointName } from './shared/names.ts'
import { STREAMS } from './stream-protocols.ts'
import { Resumption } from './shared/resumable-stream.ts'
import { wishesIn } from './shared/request-options.ts'

export { endingOf } from './missing-end.ts'
export type { Before, Joiner, Standing } from './shared/resumable-stream.ts'
export { Resumption } from './shared/resumable-stream.ts'

/**
 * Prepares for the case that a stream breaks after some of it was sent, so that
 * another upstream can be asked for the rest (`resume: continue`):
 *
 *   1. `sent` is given every byte that goes to the client, in whole events;
 *   2. when the stream breaks, `standing` tells what can be done;
 *   3. `edits` are those that make the client's request one for the rest;
 *   4. `join` translates the events of the other answer, however often it takes.
 *
 * No overlap is looked for: what the second upstream says again is said twice.
 *
 * @param body the request's, decompressed JSON
 * @returns the reason where the request cannot be continued, whatever comes
 */
export function resumption(endpoint: EndpointName, body: Buffer): Resumption | string {
  const wishes = wishesIn(body)
  if (typeof wishes === 'string') return wishes
  const known = STREAMS[endpoint]
  if (known === undefined) return 'answers of this endpoint cannot be continued'
  return known.obstacle(wishes) ?? new Resumption(known.dialect(wishes), known.text)
}
