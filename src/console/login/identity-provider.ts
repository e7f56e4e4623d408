import type { Configuration, ServerMetadata } from 'openid-client'
import { GatewayError, causeOf } from '../../base/errors.ts'
import { isSecureUrl } from '../../base/secure-url.ts'
import type { OidcConfig } from '../../config/types.ts'
import { boundedFetch } from '../../upstreams/credentials/bounded-fetch.ts'
import { readSecret } from '../../upstreams/credentials/file-credential.ts'
import { hasVerifiedMail, joinClaims, mailOf, type Claims } from './mail-address.ts'

type Library = typeof import('openid-client')

export interface Account {
  readonly subject: string
  /** The mail address in lower case; null = no valid address, or an address that is not verified. */
  readonly mail: string | null
  readonly groups: readonly string[]
  /** The claims of the ID token; those that it lacks are from the userinfo endpoint. */
  readonly claims: Claims
  /** The ID token. At the logout it tells the provider which session ends. */
  readonly idToken: string
}

export interface LoginChecks {
  readonly state: string
  readonly nonce: string
  /** The code verifier of PKCE (RFC 7636). */
  readonly verifier: string
  readonly redirectUri: string
}

/**
 * Failures for which the login page has a text. `denied`: by the provider or the user; `expired`: the login is too old, or was used;
 * `unavailable`: try again later; `clock`: the clock of the gateway or the provider is wrong; `rejected`: the operator must look at the
 * reason.
 */
export type LoginFailure = 'denied' | 'expired' | 'unavailable' | 'clock' | 'rejected'

export class IdentityProviderError extends Error {
  override readonly name = 'IdentityProviderError'
  readonly failure: LoginFailure

  /** @param message for the log; must not contain a secret */
  constructor(failure: LoginFailure, message: string) {
    super(message)
    this.failure = failure
  }
}

/** Seconds for each request to the provider, because a user waits for the page. */
const TIMEOUT_S = 5
/** ms for which the provider's metadata is cached, and ms after a failure before the metadata is read again. */
const METADATA_LIFETIME = 5 * 60_000
const RETRY_MS = 1_000
/** Matches error codes that are logged. Other texts are not logged, because a provider can send any text (RFC 6749 section 4.1.2.1). */
const ERROR_CODE = /^[a-z_]{1,40}$/

/** An OpenID Connect provider. It gets no request before the first login. */
export class IdentityProvider {
  readonly #config: OidcConfig
  readonly #now: () => number
  #metadata: Promise<ServerMetadata> | null = null
  #metadataUntil = 0

  /** @param now returns ms of a monotonic clock */
  constructor(config: OidcConfig, now: () => number) {
    this.#config = config
    this.#now = now
  }

  /** @returns the URL at which the user logs in, and values that the browser must send back @throws IdentityProviderError */
  async begin(redirectUri: string): Promise<{ readonly url: string, readonly checks: LoginChecks }> {
    return this.#using(async (library, connection) => {
      const checks = { redirectUri, state: library.randomState(), nonce: library.randomNonce(), verifier: library.randomPKCECodeVerifier() }
      const url = library.buildAuthorizationUrl(connection, {
        redirect_uri: redirectUri, scope: this.#config.scopes.join(' '), state: checks.state, nonce: checks.nonce,
        code_challenge: await library.calculatePKCECodeChallenge(checks.verifier), code_challenge_method: 'S256',
      })
      return { url: url.href, checks }
    })
  }

  /**
   * @param query query of the redirect URI, with `?`
   * @param needed paths of further claims that the login needs
   * @throws IdentityProviderError
   */
  async finish(query: string, { redirectUri, state, nonce, verifier }: LoginChecks, needed: readonly string[]): Promise<Account> {
    return this.#using(async (library, connection) => {
      const tokens = await library.authorizationCodeGrant(connection, new URL(redirectUri + query), {
        expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true,
      })
      const claims = tokens.claims()
      if (claims === undefined || tokens.id_token === undefined) throw new IdentityProviderError('rejected', 'no ID token')
      const { groupsClaim } = this.#config
      const isComplete = hasVerifiedMail(claims) && [groupsClaim, ...needed].every(path => claimOf(claims, path) !== undefined)
      const hasMore = connection.serverMetadata().userinfo_endpoint !== undefined
      const more = isComplete || !hasMore ? {} : await library.fetchUserInfo(connection, tokens.access_token, claims.sub)
      const groups = groupsOf(claimOf(claims, groupsClaim) ?? claimOf(more, groupsClaim))
      return { subject: claims.sub, mail: mailOf([claims, more]), groups, claims: joinClaims(claims, more), idToken: tokens.id_token }
    })
  }

  /** Creates the URL of an OpenID Connect RP-Initiated Logout. @returns null = the provider has no logout @throws IdentityProviderError */
  async endSessionUrl(idToken: string, returnUri: string): Promise<string | null> {
    return this.#using(async (library, connection) => {
      if (connection.serverMetadata().end_session_endpoint === undefined) return null
      return library.buildEndSessionUrl(connection, { id_token_hint: idToken, post_logout_redirect_uri: returnUri }).href
    })
  }

  /** Reads the secret and the signing keys for each login, because both can be rotated. Logins are rare, so this costs little. */
  async #using<T>(work: (library: Library, connection: Configuration) => Promise<T>): Promise<T> {
    const library = await import('openid-client')
    try {
      const metadata = await this.#discover(library)
      const authentication = clientAuthentication(library, this.#config, metadata)
      const connection = new library.Configuration(metadata, this.#config.clientId, undefined, authentication)
      connection.timeout = TIMEOUT_S
      connection[library.customFetch] = boundedFetch
      library.enableNonRepudiationChecks(connection)
      if (this.#isLocal) library.allowInsecureRequests(connection)
      return await work(library, connection)
    } catch (error) {
      throw failureOf(library, error)
    }
  }

  #discover(library: Library): Promise<ServerMetadata> {
    if (this.#metadata !== null && this.#now() < this.#metadataUntil) return this.#metadata
    const { issuer, clientId } = this.#config
    const metadata = library.discovery(new URL(issuer), clientId, undefined, undefined, {
      timeout: TIMEOUT_S,
      [library.customFetch]: boundedFetch,
      execute: this.#isLocal ? [library.allowInsecureRequests] : [],
    }).then(connection => connection.serverMetadata())
    this.#metadata = metadata
    this.#metadataUntil = Infinity
    const expireIn = (ms: number) => {
      this.#metadataUntil = this.#now() + ms
    }
    metadata.then(() => expireIn(METADATA_LIFETIME), () => expireIn(RETRY_MS))
    return metadata
  }

  /** true if the provider is at a loopback address with plain http. The configuration allows plain http only for such addresses. */
  get #isLocal(): boolean {
    const issuer = new URL(this.#config.issuer)
    return issuer.protocol === 'http:' && isSecureUrl(issuer)
  }
}

/** The authentication of the client. The default is HTTP Basic (OpenID Connect Discovery, section 3). */
function clientAuthentication({ None, ClientSecretBasic, ClientSecretPost }: Library, { clientSecret }: OidcConfig, server: ServerMetadata) {
  if (clientSecret === null) return None()
  const secret = 'file' in clientSecret ? readSecret(clientSecret.file) : clientSecret.value
  const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
  return methods.includes('client_secret_basic') ? ClientSecretBasic(secret) : ClientSecretPost(secret)
}

/** Reads a claim by its name or its path. The name is tried first, because some providers use dots in names: https://example.com/groups. */
function claimOf(claims: Claims, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path]
  return path.split('.').reduce<unknown>((value, name) => (value instanceof Object && Object.hasOwn(value, name) ? (value as Claims)[name] : undefined), claims)
}

function groupsOf(claim: unknown): string[] {
  return [claim].flat().filter(group => typeof group === 'string')
}

function failureOf(library: Library, error: unknown): IdentityProviderError {
  if (error instanceof IdentityProviderError) return error
  if (error instanceof GatewayError) return new IdentityProviderError('rejected', causeOf(error) ?? error.message)
  if (error instanceof library.AuthorizationResponseError) {
    const failure = error.error === 'access_denied' ? 'denied' : /^(?:server_error|temporarily_unavailable)$/.test(error.error) ? 'unavailable' : 'rejected'
    return new IdentityProviderError(failure, `the provider answers ${nameOf(error.error)}`)
  }
  if (error instanceof library.ResponseBodyError) {
    const failure = error.error === 'invalid_grant' ? 'expired' : error.status >= 500 ? 'unavailable' : 'rejected'
    return new IdentityProviderError(failure, `the provider answers ${error.status} ${nameOf(error.error)}`)
  }
  const { code, message, cause } = error as { readonly code?: string, readonly message: string, readonly cause?: unknown }
  if (error instanceof TypeError) {
    const { code: networkError } = (cause ?? {}) as { readonly code?: string }
    return new IdentityProviderError('unavailable', `the provider cannot be reached: ${networkError ?? 'no response'}`)
  }
  if (cause instanceof GatewayError) return new IdentityProviderError('rejected', causeOf(cause) ?? cause.message)
  if (code === 'OAUTH_TIMEOUT') return new IdentityProviderError('unavailable', `the provider does not respond within ${TIMEOUT_S} s`)
  if (code === 'OAUTH_JWT_TIMESTAMP_CHECK_FAILED') return new IdentityProviderError('clock', 'the ID token is of another time')
  if (code === 'OAUTH_RESPONSE_IS_NOT_CONFORM') {
    const { status } = cause as { readonly status?: number }
    return new IdentityProviderError((status ?? 500) >= 500 ? 'unavailable' : 'rejected', `the provider answers ${status}`)
  }
  const { attribute, body } = (cause ?? {}) as { readonly attribute?: string, readonly body?: { readonly issuer?: unknown } }
  if (attribute === 'issuer') {
    return new IdentityProviderError('rejected', `the provider calls itself ${URL.parse(String(body?.issuer))?.href.slice(0, 200) ?? 'something else'}`)
  }
  return new IdentityProviderError('rejected', `${message}${code === undefined ? '' : ` (${code})`}`)
}

function nameOf(error: string): string {
  return ERROR_CODE.test(error) ? error : 'an error'
}
