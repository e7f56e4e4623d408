import type { JsonObject } from '../neutral/json.ts'
import { lastMetadata } from '../json/read-members.ts'
import { readUsage, type UsageReader } from '../usage/reported-usage.ts'
import { clampTo, remainder, type Figures } from '../usage/usage-figures.ts'
import { blankUsage, type Usage } from '../usage/usage.ts'

export const GENERATE_USAGE: UsageReader = { read: readGenerate, readBody: cursor => readUsage(GENERATE_USAGE, lastMetadata(cursor)) }
export const GENERATE_EMBEDDING_USAGE: UsageReader = {
  read: readGenerateEmbedding,
  readBody: cursor => readUsage(GENERATE_EMBEDDING_USAGE, lastMetadata(cursor)),
}
export const INTERACTION_USAGE: UsageReader = { read: readInteraction }

/**
 * `promptTokenCount` includes cached tokens. The count of candidate tokens excludes thoughts. Results of server-side tools are additional
 * input.
 */
function readGenerate(meta: JsonObject, f: Figures, final: boolean): Usage {
  const prompt = f.required(meta.promptTokenCount)
  const toolUse = f.count(meta.toolUsePromptTokenCount)
  // If a count is invalid, the sum is unknown. An absent count is 0.
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
 * The number of candidate tokens. If the count is absent (proto3 JSON omits zeros), it is the total without input and thoughts. If that is
 * 0 before the end of the response, the count is unknown, because the upstream may not have counted yet.
 */
function candidateTokens(f: Figures, meta: JsonObject, input: number | null, thoughts: number | null, final: boolean): number | null {
  const candidates = f.count(meta.candidatesTokenCount)
  const total = f.count(meta.totalTokenCount)
  const absent = meta.candidatesTokenCount === undefined || meta.candidatesTokenCount === null
  if (!absent || total === null || input === null) return candidates
  const left = f.count(total - input - (thoughts ?? 0))
  return left === 0 && !final ? null : left
}

/** Reads the usage of interactions, which has the same counts under other names (Gemini's API reference, "Usage"). */
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

/** Adds up the tokens of one modality in the parts of `whole`; null = no part has the modality. */
function modality(f: Figures, parts: readonly unknown[], name: string, whole: number | null): number | null {
  let sum: number | null = null
  for (const part of parts) {
    const { modality: kind, tokenCount, tokens } = f.object(part)
    if (String(kind).toUpperCase() === name) sum = (sum ?? 0) + (f.count(tokenCount ?? tokens) ?? 0)
  }
  return f.part(sum, whole)
}
