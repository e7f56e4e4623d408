import { checkSecureUrl } from './auth.ts'
import type { Path } from './document.ts'
import type { Findings } from './findings.ts'
import type { RawUpstream } from './raw.ts'
import type { ProviderConfig } from './types.ts'

/** An upstream at a cloud provider. */
export interface CloudUpstream {
  readonly provider: ProviderConfig
  readonly url: URL | null
  /** The protocols that it serves. */
  readonly speaks: readonly string[]
}

/** Keys of an upstream that replace `url`. */
export const PROVIDER_KEYS = ['azure', 'bedrock'] as const

/** @returns null = the upstream is at a url, or a simulator */
export function buildCloudUpstream(raw: RawUpstream, path: Path, findings: Findings): CloudUpstream | null {
  if (raw.azure !== undefined) {
    const { endpoint, api_version: apiVersion = 'v1' } = raw.azure
    if (!/^(?:v1|\d{4}-\d\d-\d\d(?:-preview)?)$/.test(apiVersion)) {
      findings.error([...path, 'azure', 'api_version'], 'this is neither v1 nor a date such as 2025-04-01-preview')
    }
    return {
      provider: { kind: 'azure', apiVersion },
      url: endpointOf(endpoint, [...path, 'azure', 'endpoint'], findings),
      speaks: ['chat', 'responses', 'media'],
    }
  }
  if (raw.bedrock !== undefined) {
    const { region = '', endpoint } = raw.bedrock
    const host = `bedrock-runtime.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`
    return {
      provider: { kind: 'bedrock' },
      url: endpoint === undefined ? URL.parse(`https://${host}`) : endpointOf(endpoint, [...path, 'bedrock', 'endpoint'], findings),
      speaks: ['messages'],
    }
  }
  return null
}

function endpointOf(text: string | undefined, path: Path, findings: Findings): URL | null {
  if (text === undefined) return null
  checkSecureUrl(text, path, findings)
  const url = URL.parse(text)
  if (url !== null && (url.pathname !== '/' || url.search !== '' || url.hash !== '')) {
    findings.error(path, 'an endpoint is a scheme and a host, without a path')
  }
  return url
}
