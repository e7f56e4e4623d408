import type { EndpointName } from '../protocols/names.ts'
import { STREAMS } from './dialects.ts'
import { Resumption } from './resumption.ts'
import { wishesIn } from './wishes.ts'

export { endingOf } from './ending.ts'
export type { Before, Joiner, Standing } from './resumption.ts'
export { Resumption } from './resumption.ts'

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
