import type { Behaviour } from '../behaviour.ts'
import { errorBody } from '../error.ts'
import { NUMBER, template, TEXT } from '../event.ts'
import { count, list, member, record, string, type Json } from '../json.ts'
import { planOutput, reasoningOf, textOf, reasoningWords, words, type Plan } from '../plan.ts'
import { endsInToolResult, prefillOf, promptTokens } from '../prompt.ts'
import type { SimulatedRequest } from '../request.ts'
import { json, sse, type SimulatedResponse } from '../simulated-response.ts'
import { callTool, readTool, type ToolCall } from '../tool.ts'
import { countUsage, figure, type Counts } from '../usage.ts'

const MAX_CANDIDATES = 8
const ARRAY_HEADERS = { 'content-type': 'application/json; charset=UTF-8' }
/** Signature of a thought. Clients must send it back unchanged, as only the provider can read a signature. */
const SIGNATURE = Buffer.from('simulated signature of a thought').toString('base64')

/** POST /v1beta/models/{model}:generateContent */
export function generateContent(request: SimulatedRequest): SimulatedResponse {
  const spoken = planResponse(request)
  const { plan, call } = spoken
  const parts: Json[] = []
  if (plan.reasoning > 0 && spoken.showThoughts) parts.push({ text: reasoningOf(plan), thought: true })
  if (call) parts.push(functionCall(request, call))
  else parts.push({ text: textOf(plan), ...signature(plan) })
  return json(finalResponse(spoken, parts, request.behaviour))
}

/**
 * POST /v1beta/models/{model}:streamGenerateContent. With `?alt=sse`, the response is a stream of events; otherwise it is one JSON array.
 */
export function streamGenerateContent(request: SimulatedRequest): SimulatedResponse {
  const spoken = planResponse(request)
  const lines = request.query.get('alt') === 'sse' ? SSE_FRAMING : arrayFraming()
  const events = function* () {
    for (const chunk of chunks(request, spoken)) yield lines.wrap(chunk)
  }
  const last = () => {
    const parts = [{ text: '', ...signature(spoken.plan) }]
    return lines.wrap(JSON.stringify(finalResponse(spoken, parts, request.behaviour)), true)
  }
  const error = () =>
    lines.wrap(JSON.stringify(errorBody('generate', 503, 'The simulated model is overloaded.', '')), true)
  if (lines === SSE_FRAMING) return sse(events(), last, error)
  return { headers: ARRAY_HEADERS, sse: false, events: events(), last, error }
}

/** POST /v1beta/models/{model}:countTokens */
export function countTokens(request: SimulatedRequest): SimulatedResponse {
  const { json: body, behaviour } = request
  const inner = record(member(body, 'generateContentRequest'))
  const tokens = behaviour.input
    ?? promptTokens(body['contents'], inner['contents'], member(inner, 'systemInstruction'))
  return json({ totalTokens: tokens, promptTokensDetails: [{ modality: 'TEXT', tokenCount: tokens }] })
}

interface PlannedOutput {
  readonly plan: Plan
  readonly call: ToolCall | null
  readonly counts: Counts
  readonly candidates: number
  readonly finish: string
  /** true if the response contains thoughts. */
  readonly showThoughts: boolean
  readonly version: string
  readonly id: string
}

function planResponse(request: SimulatedRequest): PlannedOutput {
  const { json: body, behaviour } = request
  const config = record(member(body, 'generationConfig'))
  const thinking = record(member(config, 'thinkingConfig'))
  const call = chooseTool(body, behaviour)
  const plan = planOutput(behaviour, {
    limit: count(member(config, 'maxOutputTokens'), null),
    reasons: Object.keys(thinking).length > 0 && member(thinking, 'thinkingBudget') !== 0,
    prefill: prefillOf(body['contents'], 'model'),
  })
  const candidates = Math.min(Math.max(count(member(config, 'candidateCount'), 1), 1), MAX_CANDIDATES)
  const input = promptTokens(member(body, 'systemInstruction'), body['contents'])
  const text = (call?.tokens ?? plan.tokens) * candidates
  return {
    plan, call, candidates,
    counts: countUsage(behaviour, input, text, plan.reasoning),
    finish: plan.clipped && !call ? 'MAX_TOKENS' : 'STOP',
    showThoughts: member(thinking, 'includeThoughts') === true,
    version: request.model,
    id: request.id('sim'),
  }
}

function chooseTool(body: Json, behaviour: Behaviour): ToolCall | null {
  const config = record(member(record(member(body, 'toolConfig')), 'functionCallingConfig'))
  const asked = behaviour.tool_call === true && !endsInToolResult(body['contents'])
  if (!asked && !(config['mode'] === 'ANY' && list(body['tools']).length > 0)) return null
  const tools = list(body['tools'])
    .flatMap(tool => list(member(record(tool), 'functionDeclarations')).map(readTool))
  return callTool(tools, string(list(member(config, 'allowedFunctionNames'))[0]))
}

/** All chunks except the last, as JSON. Each chunk reports the usage up to that chunk. */
function* chunks(request: SimulatedRequest, spoken: PlannedOutput): Generator<string, void, undefined> {
  const { plan, call, counts } = spoken
  const reported = request.behaviour.usage === undefined
  const fill = (index: number, part: Json) => template(JSON.stringify(response(
    spoken,
    [candidate(index, [part], null)],
    reported ? usageMetadata(counts.input, NUMBER, NUMBER, counts.reasoning, counts.cached) : undefined,
  )))
  const each = Array.from({ length: spoken.candidates }, (_, index) => index)
  const before = counts.input + counts.reasoning
  let said = 0
  if (spoken.showThoughts) {
    const thought = each.map(i => fill(i, { text: TEXT, thought: true }))
    for (const piece of reasoningWords(plan)) for (const one of thought) yield one(piece, 0, before)
  }
  if (call) {
    for (const i of each) yield fill(i, functionCall(request, call))(call.tokens, before + call.tokens)
  } else {
    const text = each.map(i => fill(i, { text: TEXT }))
    for (const piece of words(plan)) {
      for (const one of text) {
        said++
        yield one(piece, said, before + said)
      }
    }
  }
}

interface ChunkFraming {
  /** Formats a chunk for the stream. The last chunk also ends the format, such as the array. */
  wrap(chunk: string, last?: boolean): string
}

const SSE_FRAMING: ChunkFraming = { wrap: chunk => `data: ${chunk}\n\n` }

function arrayFraming(): ChunkFraming {
  let before = '['
  return {
    wrap: (chunk, last) => {
      const line = `${before}${chunk}${last ? ']' : ''}`
      before = ',\r\n'
      return line
    },
  }
}

/** The whole response, or the last chunk of a stream, which reports the reason of the end and the usage. */
function finalResponse(spoken: PlannedOutput, parts: readonly Json[], behaviour: Behaviour): Json {
  const { candidates, finish, counts } = spoken
  const all = Array.from({ length: candidates }, (_, index) => candidate(index, parts, finish))
  return response(spoken, all, finalUsage(counts, behaviour))
}

function response(spoken: PlannedOutput, candidates: readonly Json[], usage: Json | undefined): Json {
  return { candidates, usageMetadata: usage, modelVersion: spoken.version, responseId: spoken.id }
}

function candidate(index: number, parts: readonly Json[], finish: string | null): Json {
  const content = { parts, role: 'model' }
  return finish === null ? { content, index } : { content, finishReason: finish, index }
}

function functionCall(request: SimulatedRequest, call: ToolCall): Json {
  const args: unknown = JSON.parse(call.arguments)
  return { functionCall: { id: request.id('call_'), name: call.name, args }, thoughtSignature: SIGNATURE }
}

function signature(plan: Plan): Json {
  return plan.reasoning > 0 ? { thoughtSignature: SIGNATURE } : {}
}

/** The usage at the end. `candidatesTokenCount` excludes thoughts, and `totalTokenCount` includes them. */
function finalUsage(counts: Counts, behaviour: Behaviour): Json | undefined {
  if (behaviour.usage === 'none') return undefined
  const said = Math.max(counts.output - counts.reasoning, 0)
  const [prompt, candidates, total, thoughtsCount, cached] =
    [counts.input, said, counts.input + said + counts.reasoning, counts.reasoning, counts.cached]
      .map(tokens => figure(behaviour, tokens))
  return usageMetadata(prompt, candidates, total, counts.reasoning && thoughtsCount, counts.cached && cached)
}

/** The usage. Counts of reasoning and of cached tokens are present only if they are not 0. */
function usageMetadata(
  prompt: unknown, candidates: unknown, total: unknown, reasoning: unknown, cached: unknown,
): Json {
  return {
    promptTokenCount: prompt,
    candidatesTokenCount: candidates,
    totalTokenCount: total,
    ...(cached === 0 ? {} : { cachedContentTokenCount: cached }),
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: prompt }],
    ...(reasoning === 0 ? {} : { thoughtsTokenCount: reasoning }),
  }
}
