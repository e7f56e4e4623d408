import { GatewayError, credentialUnavailable } from '../../base/errors.ts'
import type { OAuth2Auth } from '../../config/auth-types.ts'
import { boundedFetch } from './bounded-fetch.ts'
import { headerAuthorization } from './credential.ts'
import type { FetchedCredential } from './refreshing-credential.ts'

const DEFAULT_LIFETIME_MS = 10 * 60_000
/** Only error codes of this form (RFC 6749 section 5.2) are reported, because a server can send any text as the code. */
const ERROR_CODE = /^[a-z_]{1,40}$/

/** Fetches a token by the client credentials grant (RFC 6749 section 4.4). @throws GatewayError credential_unavailable */
export async function fetchOAuth2Token(
  { tokenUrl, clientId, clientSecret, scope }: Omit<OAuth2Auth, 'kind' | 'headers'>, signal: AbortSignal,
): Promise<FetchedCredential> {
  const oauth = await import('oauth4webapi')
  const server = { issuer: new URL(tokenUrl).origin, token_endpoint: tokenUrl }
  const client = { client_id: clientId }
  let status: number | null = null
  try {
    const response = await oauth.clientCredentialsGrantRequest(
      server, client, oauth.ClientSecretBasic(clientSecret), scope === null ? {} : { scope },
      {
        signal,
        // Allow http, because the configuration has checked that only loopback addresses use it.
        [oauth.allowInsecureRequests]: true,
        [oauth.customFetch]: boundedFetch,
      },
    )
    status = response.status
    const { access_token: token, expires_in: seconds } = await oauth.processClientCredentialsResponse(server, client, response)
    const lifetimeMs = seconds === undefined ? DEFAULT_LIFETIME_MS : seconds * 1_000
    return { authorization: headerAuthorization('authorization', 'Bearer ', token), lifetimeMs }
  } catch (error) {
    if (error instanceof GatewayError) throw error
    if (error instanceof oauth.ResponseBodyError) {
      const code = ERROR_CODE.test(error.error) ? ` (${error.error})` : ''
      throw credentialUnavailable(`the token server responded ${error.status}${code}`)
    }
    throw status === null ? unreachable(error) : credentialUnavailable(
      status === 200 ? 'the token server sent no valid token' : `the token server responded ${status}`,
    )
  }
}

function unreachable(error: unknown): Error {
  const { cause } = error as { readonly cause?: { readonly code?: string } }
  return credentialUnavailable(`the token server cannot be reached: ${cause?.code ?? 'no response'}`)
}
