import { GatewayError } from '../../base/errors.ts'
import type { NativeRequest, Provider, ProviderAddress } from '../shared/provider.ts'
import { countBody, invokeBody } from './body.ts'
import { readResponse } from './response.ts'

/** Anthropic's headers are sent in the body. Without `accept-encoding`, the response is not compressed. The path decides the format. */
const DROPPED_HEADERS = new Set(['anthropic-version', 'anthropic-beta', 'accept', 'accept-encoding'])

/**
 * Serves Anthropic's models by InvokeModel, InvokeModelWithResponseStream and CountTokens, and all models by Converse and ConverseStream.
 * Source: "Amazon Bedrock API Reference", "Anthropic Claude Messages API" in the user guide.
 */
export function bedrock(): Provider {
  return {
    addressOf,
    bodyOf: ({ endpoint: { name } }, body, headers) => {
      if (name === CONVERSE) return body
      return name === COUNT ? countBody(body, headers) : invokeBody(body, headers)
    },
    droppedHeaders: DROPPED_HEADERS,
    readResponse,
  }
}

const COUNT = 'messages.count_tokens'
const CONVERSE = 'converse'
/** The operations of each endpoint: first without a stream, then with a stream. */
const OPERATIONS: ReadonlyMap<string, readonly [string, string]> = new Map(Object.entries({
  messages: ['invoke', 'invoke-with-response-stream'], [COUNT]: ['count-tokens', 'count-tokens'], [CONVERSE]: ['converse', 'converse-stream'],
}))

/** @throws GatewayError not_translatable */
function addressOf({ endpoint: { name }, model, stream }: NativeRequest): ProviderAddress {
  const operations = OPERATIONS.get(name)
  if (operations === undefined || model === null || /^\.*$/.test(model)) {
    throw new GatewayError('not_translatable', `the provider of the target does not serve ${name}`)
  }
  return { path: `/model/${encodeModel(model)}/${operations[stream ? 1 : 0]}`, query: '' }
}

/** Encodes the name or ARN of a model or inference profile. All characters are encoded that RFC 3986 section 2.3 does not list. */
function encodeModel(model: string): string {
  return encodeURIComponent(model).replace(/[!'()*]/g, character => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
}
