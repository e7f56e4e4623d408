import type { AzureConfig } from '../../config/types.ts'
import type { NativeRequest, Provider, ProviderAddress } from '../shared/provider.ts'

/** The prefix of a path in OpenAI's API, in Azure's current API and in Azure's older API. */
const PREFIX = /^(?:\/openai)?(?:\/v1)?(?:\/(?:deployments|engines)\/[^/]+)?(?=\/)/i
/** In Azure's older API, these paths are below the deployment, and all other paths are below /openai. */
const DEPLOYMENT_PATH = /^\/(?:chat\/completions|completions|embeddings|audio\/(?:transcriptions|translations|speech)|images\/(?:generations|edits))\/?$/i

/**
 * With `api_version: v1`, Azure serves OpenAI's API below another prefix, and the model names a deployment. With a date as the version, the
 * path names the deployment.
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

/** The client's query parameters without `api-version`, because the operator chooses the version. */
function parametersOf(query: string): string[] {
  return query.slice(1).split('&').filter(parameter => parameter !== '' && !/^api-version(?:=|$)/i.test(parameter))
}

function queryOf(parameters: readonly string[]): string {
  return parameters.length === 0 ? '' : `?${parameters.join('&')}`
}
