import { createHash } from 'node:crypto'
import type { BodyObject } from './body-object.ts'
import type { Accepts } from '../accepts.ts'
import { registeredType } from '../media-type.ts'
import { plainText } from '../plain-text.ts'
import type { TranslationReport } from '../report.ts'
import type { CacheMark, MediaSource, OutputFormat, Reasoning, ServiceTier, ToolResultPart } from '../request.ts'

/* Parts of requests that OpenAI's protocols have in common. */

const DATA_SCHEME = /^data:/i
const BASE64 = /;base64$/i
/** Maximum characters before the content of a data URL. No media type is longer. */
const MAX_DATA_HEAD = 1024

/** Reads a URL, a data URL, or plain base64. */
export function urlSource(url: string): MediaSource {
  const head = DATA_SCHEME.test(url) ? url.slice('data:'.length, MAX_DATA_HEAD).split(',', 1)[0] as string : ''
  if (BASE64.test(head)) return { kind: 'base64', mediaType: registeredType(head) || 'application/octet-stream', data: url.slice('data:,'.length + head.length) }
  if (/^[a-z][a-z0-9+.-]{0,63}:/i.test(url)) return { kind: 'url', url, mediaType: null }
  return { kind: 'base64', mediaType: 'application/pdf', data: url }
}

/** Reads the cache mark of OpenAI, or of Anthropic: some servers forward Anthropic's mark. */
export function cacheMarkOf(part: BodyObject): CacheMark | null {
  const own = part.object('prompt_cache_breakpoint')
  const mark = part.object('cache_control') ?? own
  // `mode` and `type` can be ignored, because each has only one value.
  mark?.ignore('mode', 'type')
  const ttl = mark?.text('ttl') ?? null
  // Anthropic has only two lifetimes: five minutes and one hour.
  return mark === null ? null : { ttl: ttl === null || ttl === '5m' ? ttl : '1h' }
}

export function readServiceTier(body: BodyObject): ServiceTier | null {
  const tier = body.known('service_tier', ['auto', 'default', 'flex', 'priority', 'fast', 'scale'])
  return tier === 'fast' || tier === 'scale' ? 'priority' : tier
}

/* Source of the values: openai 7.55, ResponseTextConfig, ImageDetail, Reasoning. */
export const VERBOSITIES = ['low', 'medium', 'high'] as const
export const IMAGE_DETAILS = ['auto', 'low', 'high', 'original'] as const
export const REASONING_SUMMARIES = ['auto', 'concise', 'detailed'] as const

/** @param format the `json_schema` of an output format, or an object with the same members */
export function readOutputSchema(format: BodyObject): OutputFormat {
  return {
    type: 'json_schema', name: format.text('name'), description: format.text('description'),
    schema: format.json('schema') ?? {}, strict: format.boolean('strict'),
  }
}

/** Reads audio. Without a format, the audio is `wav`. */
export function readAudio(part: BodyObject): MediaSource {
  const audio = part.object('input_audio')
  return { kind: 'base64', mediaType: registeredType(`audio/${audio?.text('format') ?? 'wav'}`), data: audio?.text('data') ?? '' }
}

/** @throws GatewayError not_translatable if the request does not contain the content */
export function inlineSource(source: MediaSource, path: string, report: TranslationReport): MediaSource & { readonly kind: 'base64' } {
  if (source.kind === 'base64') return source
  return report.refuse(path, source.kind === 'file'
    ? 'a file uploaded to one provider does not exist at another; send its content as base64'
    : 'the target does not accept a URL here; send the content as base64')
}

export function dataUrl({ mediaType, data }: MediaSource & { readonly kind: 'base64' }): string {
  return `data:${mediaType};base64,${data}`
}

/** Maximum characters of `user`. */
const MAX_USER_LENGTH = 64

/** Replaces a name that is too long by its hash. */
export function writeUserName(user: string | null): string | null {
  return user !== null && user.length > MAX_USER_LENGTH ? createHash('sha256').update(user).digest('hex') : user
}

/** Efforts by the maximum thinking budget, in tokens, for which each effort is used; ascending. */
const BUDGETS: readonly (readonly [effort: string, tokens: number])[] = [['minimal', 1024], ['low', 4096], ['medium', 16_384]]

/** Writes the effort only if the client asks for reasoning, because models that do not reason refuse the field. */
export function writeEffort({ enabled, effort, budgetTokens }: Reasoning, { efforts }: Accepts, report: TranslationReport): string | null {
  if (enabled === false) {
    if (efforts?.includes('none')) return 'none'
    report.dropField('reasoning')
    return null
  }
  if (effort !== null) return effort
  if (budgetTokens === null) return null
  return BUDGETS.find(([, tokens]) => budgetTokens <= tokens)?.[0] ?? 'high'
}

/** The text of a tool result. If the call failed, the text begins with `Error`, because OpenAI's protocols have no field for that. */
export function resultText({ parts, isError }: ToolResultPart): string {
  const text = parts.map(plainText).filter(text => text !== null).join('\n')
  return isError && !/^error/i.test(text) ? `Error: ${text}` : text
}
