import type { EndpointName } from './names.ts'
import { readServingModels, readMessages } from './readers-messages.ts'
import type { ServingModels } from './readers-messages.ts'
import { Figures, MAX_COUNT, isObject, remainder, clampTo } from './usage-figures.ts'
import type { JsonObject } from './usage-figures.ts'
import { blankUsage } from './usage.ts'
import type { Usage } from './usage.ts'

/** What an upstream said it used, in the gateway's own vocabulary. */
export interface ReportedUsage {
  readonly usage: Usage
  /** A figure was nonsense and reads as null, or figures contradict each other. */
  readonly suspect: boolean
  /** Absent: all of it is of the model that was asked. */
  readonly servingModels?: ServingModels
}

type Reader = (usage: JsonObject, figures: Figures, final: boolean) => Usage

const READERS: Partial<Record<EndpointName, Reader>> = {
  'chat.completions': readChat,
  'completions': readChat,
  'responses': readResponses,
  'responses.compact': readResponses,
  'decisions': readResponses,
  'realtime': readRealtime,
  'embeddings': readEmbeddings,
  'images.generations': readImages,
  'images.edits': readImages,
  'audio.transcriptions': readTranscription,
  'audio.translations': readTranscription,
  'audio.speech': readSpeech,
  'messages': readMessages,
  'generate.content': readGenerate,
  'generate.stream': readGenerate,
  'interactions': readInteraction,
  'generate.embed': readGenerateEmbedding,
  'generate.batch_embed': readGenerateEmbedding,
}

/**
 * Reads a protocol's usage object (`usage`, or `usageMetadata` for generate).
 * What is not an object at all is suspect and says nothing.
 *
 * @param final false while the answer was still under way when it was sent
 * @returns null where there is none, or where the endpoint is known to have none
 *   (counting tokens, listing models).
 */
export function readUsage(endpoint: EndpointName, value: unknown, final = true): ReportedUsage | null {
  const reader = READERS[endpoint]
  if (!reader || value === undefined || value === null) return null
  if (!isObject(value)) return { usage: blankUsage(), suspect: true }
  const figures = new Figures()
  const usage = reader(value, figures, final)
  const makers = endpoint === 'messages' ? readServingModels(value, figures) : null
  return { usage, suspect: figures.suspect, ...makers && { servingModels: makers } }
}

/** Chat and legacy completions: prompt_tokens includes what was cached. */
function readChat(usage: JsonObject, f: Figures): Usage {
  const prompt = f.object(usage.prompt_tokens_details)
  const completion = f.object(usage.completion_tokens_details)
  const inputTokens = f.required(usage.prompt_tokens)
  // DeepSeek and Moonshot report cache hits at the top.
  const cached = prompt.cached_tokens ?? usage.prompt_cache_hit_tokens ?? usage.cached_tokens
  const outputTokens = f.required(usage.completion_tokens)
  const reasoning = completion.reasoning_tokens ?? usage.reasoning_tokens
  const unexplained = isPerplexitySearch(usage)
    ? f.count(reasoning) : unexplainedTokens(usage.total_tokens, inputTokens, outputTokens)
  // Where it may be what was cached, or Mistral's sound, it is not taken for thoughts that nobody told.
  const isThought = (cached ?? usage.prompt_audio_seconds ?? null) === null
  const details = { ...completion, reasoning_tokens: reasoning ?? (isThought ? unexplained : null) }
  return {
    ...blankUsage(),
    ...splitInput(f, inputTokens, cached, prompt),
    ...splitOutput(f, outputTokens, details, unexplained),
  }
}

/**
 * Perplexity's, whose reasoning is beside the completion and in no total; at SGLang, which tells it in the same
 * place, it is a part.
 *
 * Source: Perplexity's API reference, "UsageInfo", and its pricing of Sonar Deep Research.
 */
function isPerplexitySearch({ num_search_queries: searches, citation_tokens: citations }: JsonObject): boolean {
  return (searches ?? citations ?? null) !== null
}

/** The responses protocol: as chat, under other names. */
function readResponses(usage: JsonObject, f: Figures): Usage {
  const input = f.object(usage.input_tokens_details)
  const inputTokens = f.required(usage.input_tokens)
  const outputTokens = f.required(usage.output_tokens)
  const unexplained = unexplainedTokens(usage.total_tokens, inputTokens, outputTokens)
  return {
    ...blankUsage(),
    ...splitInput(f, inputTokens, input.cached_tokens, input),
    ...splitOutput(f, outputTokens, f.object(usage.output_tokens_details), unexplained),
  }
}

/** A realtime session's responses: what came from the cache stands in its kind, too. */
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

/** What a total has beside input and output; null where that is nothing, or no count. */
function unexplainedTokens(total: unknown, input: number | null, output: number | null): number | null {
  if (typeof total !== 'number' || input === null || output === null) return null
  const rest = total - input - output
  return Number.isInteger(rest) && rest > 0 && rest <= MAX_COUNT ? rest : null
}

/** The parts of an input that includes them, with OpenAI's names for the details. */
function splitInput(f: Figures, inputTokens: number | null, cached: unknown, details: JsonObject) {
  const cachedInputTokens = f.part(cached, inputTokens)
  const uncached = remainder(inputTokens, cachedInputTokens)
  const written = f.part(cacheWrites(details), uncached)
  const { ttl_12h_tokens: half = null } = f.object(details.cache_write_tokens_details)
  const { ephemeral_1h_input_tokens: hour } = f.object(details.cache_creation_token_details)
  const lasting = f.part(half ?? hour, written)
  const fresh = remainder(uncached, written)
  const inputAudioTokens = clampTo(f.part(details.audio_tokens, inputTokens), fresh)
  const image = clampTo(f.part(details.image_tokens, inputTokens), remainder(fresh, inputAudioTokens))
  return {
    inputTokens,
    cachedInputTokens,
    cacheWrite5mTokens: remainder(written, lasting),
    cacheWrite1hTokens: lasting,
    inputAudioTokens,
    inputImageTokens: image,
  }
}

/** OpenAI's name, LiteLLM's, and Qwen's. */
function cacheWrites(details: JsonObject): unknown {
  return details.cache_write_tokens ?? details.cache_creation_tokens ?? details.cache_creation_input_tokens
}

/**
 * The output includes the reasoning, as OpenAI has it. xAI reports the two side by
 * side, and Gemini, as chat, the output alone: then the total has it besides.
 */
function splitOutput(f: Figures, told: number | null, details: JsonObject, unexplained: number | null) {
  const { reasoning_tokens: reasoning } = details
  const isBeside = unexplained !== null && reasoning === unexplained
  const outputTokens = isBeside && told !== null ? f.count(told + unexplained) : told
  const reasoningTokens = f.part(reasoning, outputTokens)
  const visible = remainder(outputTokens, reasoningTokens)
  const outputAudioTokens = f.part(details.audio_tokens, visible)
  return {
    outputTokens,
    reasoningTokens,
    outputAudioTokens,
    outputImageTokens: f.part(details.image_tokens, remainder(visible, outputAudioTokens)),
  }
}

/** Voyage reports total_tokens alone: all of it is input. */
function readEmbeddings(usage: JsonObject, f: Figures): Usage {
  return { ...blankUsage(), inputTokens: f.required(usage.prompt_tokens ?? usage.total_tokens) }
}

/** Output is pictures, except what the details call text. */
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

/** {type:"tokens",...} or {type:"duration",seconds}; from vLLM, whose chunks are a chat's, as chat. */
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

/**
 * Mistral's transcripts: prompt_tokens are the text beside the sound, whose tokens are in the total alone.
 *
 * Source: Mistral's API reference, "UsageInfo".
 */
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

/** Only speech streamed as events reports tokens; its output is sound. */
function readSpeech(usage: JsonObject, f: Figures): Usage {
  const outputTokens = f.required(usage.output_tokens)
  return {
    ...blankUsage(),
    inputTokens: f.required(usage.input_tokens),
    outputTokens,
    outputAudioTokens: outputTokens,
  }
}

/**
 * Generate: promptTokenCount includes what was cached, thoughts stand beside the
 * candidates, and results of server-side tools are further input.
 */
function readGenerate(meta: JsonObject, f: Figures, final: boolean): Usage {
  const prompt = f.required(meta.promptTokenCount)
  const toolUse = f.count(meta.toolUsePromptTokenCount)
  // An addend that is nonsense leaves the sum unknown; one that is absent is 0.
  const inputTokens = f.suspect || prompt === null ? null : prompt + (toolUse ?? 0)
  const thoughts = f.count(meta.thoughtsTokenCount)
  const candidates = candidateTokens(f, meta, inputTokens, thoughts, final)
  const cachedInputTokens = f.part(meta.cachedContentTokenCount, prompt)
  const cachedParts = f.array(meta.cacheTokensDetails)
  const promptParts = f.array(meta.promptTokensDetails)
  const fresh = remainder(prompt, cachedInputTokens)
  const audio = modality(f, promptParts, 'AUDIO', prompt)
  const image = modality(f, promptParts, 'IMAGE', prompt)
  const inputAudioTokens = clampTo(remainder(audio, modality(f, cachedParts, 'AUDIO', audio)), fresh)
  const room = remainder(fresh, inputAudioTokens)
  const outputParts = f.array(meta.candidatesTokensDetails)
  return {
    ...blankUsage(),
    inputTokens,
    cachedInputTokens,
    outputTokens: candidates === null ? null : candidates + (thoughts ?? 0),
    reasoningTokens: thoughts,
    inputAudioTokens,
    inputImageTokens: clampTo(remainder(image, modality(f, cachedParts, 'IMAGE', image)), room),
    outputAudioTokens: modality(f, outputParts, 'AUDIO', candidates),
    outputImageTokens: modality(f, outputParts, 'IMAGE', candidates),
  }
}

/**
 * proto3 JSON leaves zeros out, and the first chunks of a stream come before
 * anything was counted. So the total speaks for candidates that are absent, and
 * where it leaves none, that is a zero only at the end.
 */
function candidateTokens(
  f: Figures, meta: JsonObject, input: number | null, thoughts: number | null, final: boolean,
): number | null {
  const candidates = f.count(meta.candidatesTokenCount)
  const total = f.count(meta.totalTokenCount)
  const absent = meta.candidatesTokenCount === undefined || meta.candidatesTokenCount === null
  if (!absent || total === null || input === null) return candidates
  const left = f.count(total - input - (thoughts ?? 0))
  return left === 0 && !final ? null : left
}

/**
 * Gemini's interactions: as generate, under other names.
 *
 * Source: Gemini's API reference, "Usage".
 */
function readInteraction(usage: JsonObject, f: Figures, final: boolean): Usage {
  return readGenerate({
    promptTokenCount: usage.total_input_tokens,
    promptTokensDetails: usage.input_tokens_by_modality,
    cachedContentTokenCount: usage.total_cached_tokens,
    cacheTokensDetails: usage.cached_tokens_by_modality,
    toolUsePromptTokenCount: usage.total_tool_use_tokens,
    thoughtsTokenCount: usage.total_thought_tokens,
    candidatesTokenCount: usage.total_output_tokens,
    candidatesTokensDetails: usage.output_tokens_by_modality,
    totalTokenCount: usage.total_tokens,
  }, f, final)
}

function readGenerateEmbedding(meta: JsonObject, f: Figures): Usage {
  return { ...blankUsage(), inputTokens: f.required(meta.promptTokenCount ?? meta.totalTokenCount) }
}

/** Tokens of one modality in a breakdown of `whole`, a list of what has each; null = not listed. */
function modality(f: Figures, parts: readonly unknown[], name: string, whole: number | null): number | null {
  let sum: number | null = null
  for (const part of parts) {
    const { modality: kind, tokenCount, tokens } = f.object(part)
    if (String(kind).toUpperCase() === name) sum = (sum ?? 0) + (f.count(tokenCount ?? tokens) ?? 0)
  }
  return f.part(sum, whole)
}
