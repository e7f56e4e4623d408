import { isUtf8 } from 'node:buffer'
import { isoTime } from '../base/clock.ts'
import type { CapturedBody, Transcript } from '../transcripts/transcript.ts'
import type { Body, Bodies } from './api/bodies.ts'
import { ConsoleProblem } from './http/console-problem.ts'
import { ownKey, requireSession, type Context, type Operations } from './context.ts'

/**
 * Operations on the kept bodies of requests. Only users who may read bodies learn whether bodies exist. Reading a body of another key is
 * recorded as an audit event.
 */
export function bodyOperations({ host, reports, store, clock }: Context): Pick<Operations, 'GET /logs/:id' | 'GET /logs/:id/bodies'> {
  const kept = async (id: string, own: string | null): Promise<readonly Transcript[]> => {
    const found = await host.current().sharedState.archive?.find(id) ?? []
    return found.filter(({ key }) => own === null || key === own)
  }
  return {
    'GET /logs/:id': async asked => {
      const own = ownKey(asked)
      const { id } = asked.params
      const stories = await reports.requestDetails(id, own)
      const mayLook = requireSession(asked).role !== 'viewer'
      // If the bodies cannot be read, return only the details.
      const transcripts = mayLook ? await kept(id, own).catch(() => []) : []
      return { ...stories, has_bodies: transcripts.length > 0, trace_url: own === null ? host.current().config.telemetry.traceUrl : null }
    },

    'GET /logs/:id/bodies': async asked => {
      const own = ownKey(asked)
      const { id } = asked.params
      const transcripts = await kept(id, own)
      if (transcripts.length === 0) throw new ConsoleProblem('not_found', 'No bodies of this request are stored.')
      if (own === null) {
        const { name } = requireSession(asked)
        for (const subject of new Set(transcripts.map(({ key }) => key))) {
          const entry = { at: clock.wall(), actor: `console: ${name}`, address: asked.caller.address, subject }
          await store.call('note', { ...entry, action: 'bodies.read', detail: id })
        }
      }
      return { transcripts: transcripts.map(toTranscript) }
    },
  }
}

function toTranscript({ requestId, startedAt, key, expiresAt, request, response }: Transcript): Bodies['transcripts'][number] {
  return {
    request_id: requestId, started_at: isoTime(startedAt), key, expires_at: isoTime(expiresAt),
    request: toBody(request), answer: toBody(response),
  }
}

/** Converts a body to text. If the body was cut inside a character, the text ends before this character. */
function toBody({ contentType, bytes, total }: CapturedBody): Body {
  const body = { content_type: contentType, bytes: total, is_cut: bytes.length < total }
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  for (let cut = 0; cut < 4 && (cut === 0 || body.is_cut); cut++) {
    const whole = buffer.subarray(0, buffer.length - cut)
    if (isUtf8(whole)) return { ...body, coding: 'text', content: whole.toString('utf8') }
  }
  return { ...body, coding: 'base64', content: buffer.toString('base64') }
}
