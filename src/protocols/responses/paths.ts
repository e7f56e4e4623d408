import { defineEndpoint } from '../endpoint/classified.ts'
import { OPENAI_FORMAT } from '../endpoint/openai-format.ts'
import type { KnownPath, PromptText } from '../endpoint/protocol.ts'
import { RESPONSE_EVENTS, TypedMeter } from './meter.ts'
import { RESPONSES_FORMAT } from './errors.ts'
import { RESPONSES_USAGE } from './usage.ts'

/** Error format for endpoints that do not stream. */
const format = { ...OPENAI_FORMAT, protocol: RESPONSES_FORMAT.protocol }

const PROMPT: PromptText = { members: ['instructions', 'input'] }

export const RESPONSES_PATHS: readonly KnownPath[] = [
  ['/v1/responses', defineEndpoint({
    name: 'responses', format: RESPONSES_FORMAT, metering: 'text', prompt: { ...PROMPT, hasTemplate: true },
    session: { required: false, laneKey: Buffer.from('stream_id'), createConversation: null },
    responseMembers: ['output'], supportsBackground: true, outputBounds: ['max_output_tokens'], boundsThinking: true,
    respondsWithJson: true, usage: RESPONSES_USAGE, hasLargeEvents: true,
    createMeter: limits => new TypedMeter(RESPONSES_USAGE, RESPONSE_EVENTS, limits),
  })],
  ['/v1/responses/compact', defineEndpoint({
    name: 'responses.compact', format, metering: 'text', prompt: PROMPT, respondsWithJson: true, usage: RESPONSES_USAGE,
  })],
  ['/v1/responses/input_tokens', defineEndpoint({
    name: 'responses.input_tokens', format, generatesTokens: false, respondsWithJson: true, prompt: { ...PROMPT, hasTemplate: true },
    tokenCount: tokens => JSON.stringify({ object: 'response.input_tokens', input_tokens: tokens }),
  })],
  ['/v1/decisions', defineEndpoint({
    name: 'decisions', format, modelRequired: true, metering: 'text', prompt: { members: ['input', 'questions'] },
    respondsWithJson: true, usage: RESPONSES_USAGE,
  })],
]
