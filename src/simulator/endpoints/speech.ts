import { errorEvent } from '../error.ts'
import { event } from '../event.ts'
import { string } from '../json.ts'
import { DEFAULT_TOKENS } from '../plan.ts'
import { promptTokens } from '../prompt.ts'
import type { SimulatedRequest } from '../request.ts'
import { sse, type SimulatedResponse, type EventStream } from '../simulated-response.ts'
import { countUsage, figure } from '../usage.ts'

const CONTENT_TYPES: ReadonlyMap<string, string> = new Map(Object.entries({
  mp3: 'audio/mpeg', opus: 'audio/opus', aac: 'audio/aac', flac: 'audio/flac',
  wav: 'audio/wav', pcm: 'audio/pcm',
}))

/** A frame of silence for MP3: MPEG-1 layer III, 128 kbit/s, 44.1 kHz, 26 ms. */
const MP3_FRAME = frame([0xff, 0xfb, 0x90, 0x64], 417)
/** A frame of silence for PCM: 20 ms of 24 kHz, 16 bit, mono. */
const PCM_FRAME = frame([], 960)

/**
 * POST /v1/audio/speech: responds with one frame of silence for each token. MP3, WAV and PCM can be played. For other formats, only the
 * content type is right.
 */
export function speak(request: SimulatedRequest): SimulatedResponse {
  const { json: body, behaviour } = request
  const format = string(body['response_format'], 'mp3')
  const frames = framesOf(request, format)
  if (body['stream_format'] === 'sse') return asEvents(request, frames)
  return {
    headers: { 'content-type': CONTENT_TYPES.get(format) ?? 'audio/mpeg' },
    sse: false,
    events: behaviour.huge === undefined ? frames : [Buffer.alloc(behaviour.huge)],
    last: null,
    error: null,
  }
}

function asEvents(request: SimulatedRequest, frames: Iterable<Buffer>): EventStream {
  const { behaviour } = request
  const { input, output } = countUsage(behaviour, promptTokens(request.json['input']), tokensOf(request), 0)
  const usage = behaviour.usage === 'none' ? undefined : {
    input_tokens: figure(behaviour, input),
    output_tokens: figure(behaviour, output),
    total_tokens: figure(behaviour, input + output),
  }
  const events = function* () {
    for (const audio of frames) {
      yield event({ type: 'speech.audio.delta', audio: audio.toString('base64') }, 'speech.audio.delta')
    }
  }
  const last = () => event({ type: 'speech.audio.done', usage }, 'speech.audio.done')
  return sse(events(), last, () => errorEvent('chat', ''))
}

function* framesOf(request: SimulatedRequest, format: string): Generator<Buffer, void, undefined> {
  const raw = format === 'wav' || format === 'pcm'
  if (format === 'wav') yield WAV_HEADER
  for (let i = 0; i < tokensOf(request); i++) yield raw ? PCM_FRAME : MP3_FRAME
}

function tokensOf(request: SimulatedRequest): number {
  return request.behaviour.tokens ?? DEFAULT_TOKENS
}

function frame(head: readonly number[], length: number): Buffer {
  return Buffer.concat([Buffer.from(head)], length)
}

/** Header for a stream of unknown length: both length fields mean "to the end". */
const WAV_HEADER = wavHeader(24_000)

function wavHeader(rate: number): Buffer {
  const header = Buffer.alloc(44)
  header.write('RIFF', 0)
  header.writeUInt32LE(0xffffffff, 4)
  header.write('WAVEfmt ', 8)
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(1, 20)
  header.writeUInt16LE(1, 22)
  header.writeUInt32LE(rate, 24)
  header.writeUInt32LE(rate * 2, 28)
  header.writeUInt16LE(2, 32)
  header.writeUInt16LE(16, 34)
  header.write('data', 36)
  header.writeUInt32LE(0xffffffff, 40)
  return header
}
