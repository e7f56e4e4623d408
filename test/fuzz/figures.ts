import { ASSUMED_OUTPUT } from './targets.ts'
import type { Figures } from './template.ts'

/** Names of members as the most lenient server reads them: without case, and without `_`, `-` or spaces. */
const BOUNDS = new Set(['maxtokens', 'maxcompletiontokens', 'maxoutputtokens', 'maxtokenstosample'])
const COUNTS = new Set(['n', 'bestof', 'candidatecount'])
/** Objects in which some protocols have them. */
const CONFIGS = new Set(['generationconfig', 'inferenceconfig', 'extrabody'])
/** Tokens: no server generates more. */
const MOST = 1e8
/** Characters of text for one token: it has about four. */
const CHARACTERS_PER_TOKEN = 8
/** Members that are no text to a model. */
const MEDIA = /^(?:data|url|image_url|file_data|fileUri|file_uri|b64_json|audio|image|signature|thoughtSignature|encrypted_content|anthropic_version)$/

/**
 * What an upstream reports that does all it is asked for: as much output as the most lenient reader of the request finds
 * in any spelling of its bounds, for each of the responses that it wants.
 */
export function honestFigures(body: Buffer, isCompletion: boolean): Figures {
  const found: { bound: number | null, count: number } = { bound: null, count: 1 }
  const parsed = parsedOr(null, body)
  read(parsed, found)
  const prompt = isCompletion ? (parsed as { prompt?: unknown } | null)?.prompt : undefined
  const prompts = Array.isArray(prompt) && !prompt.some(item => typeof item === 'number') ? Math.max(1, prompt.length) : 1
  const output = Math.min(MOST, (found.bound ?? ASSUMED_OUTPUT) * found.count * prompts)
  return { input: Math.ceil(textLength(parsed) / CHARACTERS_PER_TOKEN), output }
}

function textLength(value: unknown): number {
  let length = 0
  const waiting = [value]
  while (waiting.length > 0) {
    const one = waiting.pop()
    if (typeof one === 'string') length += one.length
    else if (Array.isArray(one)) for (const item of one) waiting.push(item)
    else if (typeof one === 'object' && one !== null) {
      for (const [key, member] of Object.entries(one)) if (!MEDIA.test(key)) waiting.push(member)
    }
  }
  return length
}

function read(value: unknown, found: { bound: number | null, count: number }): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return
  for (const [key, member] of Object.entries(value)) {
    const name = key.toLowerCase().replaceAll(/[_\s-]/g, '')
    if (CONFIGS.has(name)) read(member, found)
    const figure = typeof member === 'number' || typeof member === 'string' ? Math.floor(Number(String(member).replaceAll('_', '').trim() || 'none')) : Number.NaN
    if (!(figure > 0)) continue
    if (BOUNDS.has(name)) found.bound = Math.max(found.bound ?? 0, Math.min(MOST, figure))
    if (COUNTS.has(name)) found.count = Math.max(found.count, Math.min(MOST, figure))
  }
}

/** @returns the JSON of a body, or `other` where it is none */
export function parsedOr<T>(other: T, body: Buffer): unknown {
  try {
    return JSON.parse(body.toString()) as unknown
  } catch {
    return other
  }
}
