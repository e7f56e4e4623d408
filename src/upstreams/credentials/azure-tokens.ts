import type { DefaultAzureCredential } from '@azure/identity'
import { credentialUnavailable } from '../../base/errors.ts'
import type { AzureAuth } from '../../config/auth-types.ts'
import { headerAuthorization } from './credential.ts'
import { fetchOAuth2Token } from './oauth2.ts'
import type { FetchedCredential } from './refreshing-credential.ts'

/** The OAuth scope of Azure OpenAI and of the other services of an Azure AI resource. */
const SCOPE = 'https://cognitiveservices.azure.com/.default'
const PUBLIC_AUTHORITY = 'https://login.microsoftonline.com'
const ERROR_CODE = /\bAADSTS\d{3,8}\b/

/** @returns a function that fetches a token of Microsoft Entra ID */
export function azureTokens(auth: AzureAuth): (signal: AbortSignal) => Promise<FetchedCredential> {
  const { tenant, clientId, clientSecret, authority } = auth
  if (tenant !== null && clientId !== null && clientSecret !== null) {
    const tokenUrl = `${authority ?? PUBLIC_AUTHORITY}/${encodeURIComponent(tenant)}/oauth2/v2.0/token`
    return signal => fetchOAuth2Token({ tokenUrl, clientId, clientSecret, scope: SCOPE }, signal)
  }
  return identityTokens(auth)
}

/** @returns a function that fetches a token for a managed identity, a workload identity, or another identity of the environment */
function identityTokens({ tenant, clientId, authority }: AzureAuth): (signal: AbortSignal) => Promise<FetchedCredential> {
  let identity: Promise<DefaultAzureCredential> | null = null
  return async signal => {
    identity ??= import('@azure/identity').then(library => new library.DefaultAzureCredential({
      ...tenant !== null && { tenantId: tenant },
      ...clientId !== null && { managedIdentityClientId: clientId, workloadIdentityClientId: clientId },
      ...authority !== null && { authorityHost: authority },
    }))
    try {
      const { token, expiresOnTimestamp } = await (await identity).getToken(SCOPE, { abortSignal: signal })
      return { authorization: headerAuthorization('authorization', 'Bearer ', token), lifetimeMs: expiresOnTimestamp - Date.now() }
    } catch (error) {
      const { name, message } = error as Error
      const code = ERROR_CODE.exec(message)?.[0] ?? name
      throw credentialUnavailable(`Entra ID sent no token: ${code}`)
    }
  }
}
