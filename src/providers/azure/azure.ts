import type { AzureConfig } from '../../config/types.ts'
import type { NativeRequest, Provider, ProviderAddress } from '../shared/provider.ts'

/** The prefix of an API path: at OpenAI, in Azure's current API, and in its older one. */
const PREFIX = /^(?:\/openai)?(?:\/v1)?(?:\/(?:deployments|engines)\/[^/]+)?(?=\/)/i
/** The older API serves these under the deployment, and all others under /openai. */
const DEPLOYMENT_PATH = /^\/(?:chat\/completions|completions|embeddings|audio\/(?:transcriptions|translations|speech)|images\/(?:generations|edits))\/?$/i

/**
 * `api_version: v1`: OpenAI's API under another prefix, and the model is a deployment. A dated version: the deployment is in the path.
 * Source: "Azure OpenAI in Microsoft Foundry Models REST API reference".
 */
export function azure({ apiVersion }: AzureConfig): Provider {
  return { addressOf: request => (apiVersion === 'v1' ? currentAddress(request) : datedAddress(request, apiVersion)) }
}

function currentAddress({ path, query }: NativeRequest): ProviderAddress {
  return { path: `/openai/v1${path.replace(PREFIX, '')}`, query: queryOf(parametersOf(query)) }
}

function datedAddress({ path, query, model }: NativeRequest, apiVersion: string): ProviderAddress {
  const rest = path.replace(PREFIX, '')
  const deployment = model !== null && DEPLOYMENT_PATH.test(rest) ? `/deployments/${encodeURIComponent(model)}` : ''
  return { path: `/openai${deployment}${rest}`, query: queryOf([...parametersOf(query), `api-version=${encodeURIComponent(apiVersion)}`]) }
}

/** The client's parameters, without the API version of its SDK: the operator chooses the upstream's version. */
function parametersOf(query: string): string[] {
  return query.slice(1).split('&').filter(parameter => parameter !== '' && !/^api-version(?:=|$)/i.test(parameter))
}

function queryOf(parameters: readonly string[]): string {
  return parameters.length === 0 ? '' : `?${parameters.join('&')}`
}
