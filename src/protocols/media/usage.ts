import type { JsonObject } from '../neutral/json.ts'
import type { JsonCursor } from '../json/cursor.ts'
import { members, parsedValue } from '../json/read-members.ts'
import { splitInput, splitOutput } from '../usage/openai-usage.ts'
import { readUsage, type ReportedUsage, type UsageReader } from '../usage/reported-usage.ts'
import { Figures, remainder } from '../usage/usage-figures.ts'
import { blankUsage, type Usage } from '../usage/usage.ts'

const USAGE = Buffer.from('usage')
const DATA = Buffer.from('data')
const DURATION = Buffer.from('duration')

export const REALTIME_USAGE: UsageReader = { read: readRealtime }
export const IMAGE_USAGE: UsageReader = { read: readImages, readBody: readImageBody }
export const TRANSCRIPT_USAGE: UsageReader = { read: readTranscription, readBody: readTranscriptBody }
export const SPEECH_USAGE: UsageReader = { read: readSpeech }

/** The counts of audio and image tokens include the cached tokens of the same modality. */
function readRealtime(usage: JsonObject, f: Figures): Usage {
  const input = f.object(usage.input_token_details)
  const cached = f.object(input.cached_tokens_details)
  const inputTokens = f.required(usage.input_tokens)
  return {
    ...blankUsage(),
    ...splitInput(f, inputTokens, input.cached_tokens, {
      audio_tokens: remainder(f.count(input.audio_tokens), f.count(cached.audio_tokens)),
      image_tokens: remainder(f.count(input.image_tokens), f.count(cached.image_tokens)),
    }),
    ...splitOutput(f, f.required(usage.output_tokens), f.object(usage.output_token_details), null),
  }
}

/** If the usage has no count of image tokens, all output counts as images, except the text tokens in the details. */
function readImages(usage: JsonObject, f: Figures): Usage {
  const input = f.object(usage.input_tokens_details)
  const output = f.object(usage.output_tokens_details)
  const outputTokens = f.required(usage.output_tokens)
  const text = f.part(output.text_tokens, outputTokens)
  return {
    ...blankUsage(),
    ...splitInput(f, f.required(usage.input_tokens), input.cached_tokens, input),
    outputTokens,
    outputImageTokens: f.part(output.image_tokens, outputTokens) ?? remainder(outputTokens, text),
  }
}

/** Counts the images even if the upstream does not report tokens. */
function readImageBody(cursor: JsonCursor): ReportedUsage | null {
  const [usage, images] = members(cursor, [USAGE, parsedValue], [DATA, countElements])
  const reading = readUsage(IMAGE_USAGE, usage)
  if (typeof images !== 'number') return reading
  return { usage: { ...(reading?.usage ?? blankUsage()), images }, suspect: reading?.suspect ?? false }
}

function countElements(cursor: JsonCursor): number | undefined {
  if (!cursor.beginArray()) {
    cursor.skip()
    return undefined
  }
  let count = 0
  while (cursor.nextElement()) {
    if (cursor.skip()) count++
  }
  // The list is incomplete, so more images may have been generated than arrived.
  return cursor.broken ? undefined : count
}

/** Reads `{type: "tokens", ...}`, `{type: "duration", seconds}`, or the usage of chat in chunks of vLLM. */
function readTranscription(usage: JsonObject, f: Figures): Usage {
  if (usage.type === 'duration') return { ...blankUsage(), seconds: f.seconds(usage.seconds) }
  if (usage.prompt_audio_seconds !== undefined) return readMistralTranscript(usage, f)
  const details = f.object(usage.input_token_details)
  const inputTokens = f.required(usage.input_tokens ?? usage.prompt_tokens)
  return {
    ...blankUsage(),
    inputTokens,
    inputAudioTokens: f.part(details.audio_tokens, inputTokens),
    outputTokens: f.required(usage.output_tokens ?? usage.completion_tokens),
  }
}

/** In Mistral's usage, `prompt_tokens` excludes audio; only the total includes audio. Source: Mistral's API reference, "UsageInfo". */
function readMistralTranscript(usage: JsonObject, f: Figures): Usage {
  const outputTokens = f.required(usage.completion_tokens)
  const inputTokens = remainder(f.required(usage.total_tokens), outputTokens)
  return {
    ...blankUsage(),
    inputTokens,
    inputAudioTokens: remainder(inputTokens, f.part(usage.prompt_tokens, inputTokens)),
    outputTokens,
    seconds: f.seconds(usage.prompt_audio_seconds),
  }
}

/** Models that report no usage have the duration in seconds in the `verbose_json` format. */
function readTranscriptBody(cursor: JsonCursor): ReportedUsage | null {
  const [usage, duration] = members(cursor, [USAGE, parsedValue], [DURATION, parsedValue])
  const reading = readUsage(TRANSCRIPT_USAGE, usage)
  if (reading || duration === undefined) return reading
  const figures = new Figures()
  // vLLM sends the duration as text.
  const seconds = typeof duration === 'string' && /^\d+(\.\d+)?$/.test(duration) ? Number(duration) : duration
  return { usage: { ...blankUsage(), seconds: figures.seconds(seconds) }, suspect: figures.suspect }
}

/** Speech reports tokens only if it is streamed as events. */
function readSpeech(usage: JsonObject, f: Figures): Usage {
  const outputTokens = f.required(usage.output_tokens)
  return { ...blankUsage(), inputTokens: f.required(usage.input_tokens), outputTokens, outputAudioTokens: outputTokens }
}
