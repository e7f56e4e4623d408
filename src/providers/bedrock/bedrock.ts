import { GatewayError } from '../../base/errors.ts'
import type { NativeRequest, Provider, ProviderAddress } from '../shared/provider.ts'
import { countBody, invokeBody } from './body.ts'
import { readResponse } from './response.ts'

/**
 * Their place is the body, or the gateway's own headers. Without `accept-encoding` nothing is compressed; the format of
 * a response follows from the path.
 */
const DROPPED_HEADERS = new Set(['anthropic-version', 'anthropic-beta', 'accept', 'accept-encoding'])

/**
 * Amazon Bedrock: the models of Anthropic by InvokeModel, InvokeModelWithResponseStream and CountTokens.
 *
 * Source: "Amazon Bedrock API Reference", "Anthropic Claude Messages API" in the user guide.
 */
export function bedrock(): Provider {
  return {
    addressOf,
    bodyOf: ({ endpoint: { name } }, body, headers) => (name === COUNT ? countBody(body, headers) : invokeBody(body, headers)),
    droppedHeaders: DROPPED_HEADERS,
    readResponse,
  }
}

const COUNT = 'messages.count_tokens'

/** @throws GatewayError not_translatable */
function addressOf({ endpoint: { name }, model, stream }: NativeRequest): ProviderAddress {
  if ((name !== 'messages' && name !== COUNT) || model === null || /^\.*$/.test(model)) {
    throw new GatewayError('not_translatable', `the provider of the target does not serve ${name}`)
  }
  const operation = name === COUNT ? 'count-tokens' : stream ? 'invoke-with-response-stream' : 'invoke'
  return { path: `/model/${encodeModel(model)}/${operation}`, query: '' }
}

/** The name of a model, of an inference profile, or an ARN; RFC 3986 section 2.3 has what stays as it is. */
function encodeModel(model: string): string {
  return encodeURIComponent(model).replace(/[!'()*]/g, character => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
}
