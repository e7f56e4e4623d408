import { isUtf8 } from 'node:buffer'
import type { Text, Transcript } from '../../transcripts/transcript.ts'
import type { Body, Bodies } from '../api/bodies.ts'
import { ownKey, sessionIn } from '../context.ts'
import type { Context, Operations } from '../context.ts'
import { ConsoleProblem } from '../problem.ts'
import { isoTime } from '../texts.ts'

/**
 * Whether there is something to see is told those who may see it;
 * who looks at somebody else's is written down.
 */
export function bodyOperations(
  { host, reports, desk, clock }: Context,
): Pick<Operations, 'GET /logs/:id' | 'GET /logs/:id/bodies'> {
  const kept = async (id: string, own: string | null): Promise<readonly Transcript[]> => {
    const found = await host.current().lasting.archive?.find(id) ?? []
    return found.filter(({ key }) => own === null || key === own)
  }
  return {
    'GET /logs/:id': async asked => {
      const own = ownKey(asked)
      const { id } = asked.params
      const stories = await reports.stories(id, own)
      const mayLook = sessionIn(asked).role !== 'viewer'
      // The story is worth telling where the bodies cannot be read.
      const transcripts = mayLook ? await kept(id, own).catch(() => []) : []
      return { ...stories, has_bodies: transcripts.length > 0 }
    },

    'GET /logs/:id/bodies': async asked => {
      const own = ownKey(asked)
      const { id } = asked.params
      const transcripts = await kept(id, own)
      if (transcripts.length === 0) {
        throw new ConsoleProblem('not_found', 'no bodies of this request are kept')
      }
      if (own === null) {
        const { name } = sessionIn(asked)
        for (const subject of new Set(transcripts.map(({ key }) => key))) {
          const entry = {
            at: clock.wall(), actor: `console: ${name}`, address: asked.caller.address, subject,
          }
          await desk.ask('note', { ...entry, action: 'bodies.read', detail: id })
        }
      }
      return { transcripts: transcripts.map(told) }
    },
  }
}

function told(
  { requestId, startedAt, key, expiresAt, request, answer }: Transcript,
): Bodies['transcripts'][number] {
  return {
    request_id: requestId,
    started_at: isoTime(startedAt),
    key,
    expires_at: isoTime(expiresAt),
    request: bodyTold(request),
    answer: bodyTold(answer),
  }
}

/** A text that was cut in the middle of a character ends before that character. */
function bodyTold({ contentType, bytes, total }: Text): Body {
  const body = { content_type: contentType, bytes: total, is_cut: bytes.length < total }
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  for (let cut = 0; cut < 4 && (cut === 0 || body.is_cut); cut++) {
    const whole = buffer.subarray(0, buffer.length - cut)
    if (isUtf8(whole)) return { ...body, coding: 'text', content: whole.toString('utf8') }
  }
  return { ...body, coding: 'base64', content: buffer.toString('base64') }
}
