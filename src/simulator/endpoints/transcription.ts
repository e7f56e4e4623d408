import type { Behaviour } from '../behaviour.ts'
import { errorEvent } from '../error.ts'
import { event, template, TEXT } from '../event.ts'
import { string, type Json } from '../json.ts'
import { planOutput, textOf, words } from '../plan.ts'
import { promptTokens } from '../prompt.ts'
import type { SimulatedRequest } from '../request.ts'
import { json, sse, responseOf, type SimulatedResponse } from '../simulated-response.ts'
import { countUsage, figure } from '../usage.ts'

/** Audio of 128 kbit/s: the size of the file determines the seconds. */
const BYTES_PER_SECOND = 16_000
const TOKENS_PER_SECOND = 10

const PLAIN_TEXT = 'text/plain; charset=utf-8'

/** POST /v1/audio/transcriptions */
export function transcribe(request: SimulatedRequest): SimulatedResponse {
  const heard = planTranscript(request)
  if (request.form?.get('stream') === 'true' && !heard.byDuration) return streamed(heard)
  return render(request, heard, 'transcribe')
}

/** POST /v1/audio/translations */
export function translate(request: SimulatedRequest): SimulatedResponse {
  return render(request, planTranscript(request), 'translate')
}

interface Transcript {
  readonly pieces: () => Iterable<string>
  readonly text: string
  readonly seconds: number
  /** true if the model is billed by the second. Such a model cannot stream. */
  readonly byDuration: boolean
  readonly usage: Json | undefined
}

function planTranscript(request: SimulatedRequest): Transcript {
  const { behaviour, form } = request
  const file = form?.get('file')
  const bytes = file instanceof Blob ? file.size : 0
  const seconds = behaviour.seconds ?? Math.ceil(bytes / BYTES_PER_SECOND)
  const plan = planOutput(behaviour, { limit: null, reasons: false, prefill: null })
  const prompt = promptTokens(form?.get('prompt'))
  const byDuration = request.model.startsWith('whisper')
  const usage = byDuration
    ? durationUsage(seconds, behaviour)
    : tokenUsage(prompt, seconds * TOKENS_PER_SECOND, plan.tokens, behaviour)
  return { pieces: () => words(plan), text: textOf(plan), seconds, byDuration, usage }
}

function render(request: SimulatedRequest, heard: Transcript, task: string): SimulatedResponse {
  const { text, seconds, usage } = heard
  const end = clockTime(seconds)
  switch (string(request.form?.get('response_format'), 'json')) {
    case 'text': return responseOf(PLAIN_TEXT, `${text}\n`)
    case 'srt': return responseOf(PLAIN_TEXT, `1\n00:00:00,000 --> ${end},000\n${text}\n\n`)
    case 'vtt': return responseOf(PLAIN_TEXT, `WEBVTT\n\n00:00:00.000 --> ${end}.000\n${text}\n\n`)
    case 'verbose_json': return json(verbose(request, heard, task))
    case 'diarized_json': {
      const at = { id: 'seg_0', start: 0, end: seconds }
      const segments = [{ type: 'transcript.text.segment', ...at, speaker: 'A', text }]
      return json({ task, duration: seconds, text, segments, usage })
    }
    default: return json({ text, usage })
  }
}

/** Formats seconds as `hh:mm:ss`. */
function clockTime(seconds: number): string {
  return [seconds / 3600, seconds / 60 % 60, seconds % 60]
    .map(part => String(Math.floor(part)).padStart(2, '0'))
    .join(':')
}

function verbose(request: SimulatedRequest, heard: Transcript, task: string): Json {
  const { text, seconds } = heard
  const segment = {
    id: 0, seek: 0, start: 0, end: seconds, text, tokens: [],
    temperature: 0, avg_logprob: -0.1, compression_ratio: 1, no_speech_prob: 0.01,
  }
  const asked = request.form?.getAll('timestamp_granularities[]') ?? []
  const spoken = text.split(' ').filter(word => word !== '')
  const each = seconds / Math.max(spoken.length, 1)
  const timed = spoken.map((word, i) => ({ word, start: i * each, end: (i + 1) * each }))
  return {
    task,
    language: 'english',
    duration: seconds,
    text,
    segments: [segment],
    ...(asked.includes('word') ? { words: timed } : {}),
    usage: durationUsage(seconds, request.behaviour),
  }
}

function streamed(heard: Transcript): SimulatedResponse {
  const fill = template(event({ type: 'transcript.text.delta', delta: TEXT }, 'transcript.text.delta'))
  const events = function* () {
    for (const piece of heard.pieces()) yield fill(piece)
  }
  const last = () =>
    event({ type: 'transcript.text.done', text: heard.text, usage: heard.usage }, 'transcript.text.done')
  return sse(events(), last, () => errorEvent('chat', ''))
}

function durationUsage(seconds: number, behaviour: Behaviour): Json | undefined {
  return behaviour.usage === 'none' ? undefined : { type: 'duration', seconds: figure(behaviour, seconds) }
}

function tokenUsage(text: number, audio: number, output: number, behaviour: Behaviour): Json | undefined {
  if (behaviour.usage === 'none') return undefined
  const counts = countUsage(behaviour, text + audio, output, 0)
  return {
    type: 'tokens',
    input_tokens: figure(behaviour, counts.input),
    input_token_details: { text_tokens: figure(behaviour, text), audio_tokens: figure(behaviour, audio) },
    output_tokens: figure(behaviour, counts.output),
    total_tokens: figure(behaviour, counts.input + counts.output),
  }
}
