import { createHmac } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import { isSecureUrl } from '../../base/secure-url.ts'
import { seal, unseal } from '../../base/secrets/seal.ts'
import type { ConsoleConfig, OidcConfig } from '../../config/types.ts'
import type { Caller } from '../http/caller.ts'
import { LOGIN_TIMEOUT } from '../http/cookies.ts'
import { IdentityProvider, IdentityProviderError, type Account, type LoginChecks } from './identity-provider.ts'
import { ConsoleProblem } from '../http/console-problem.ts'

/** The path to which the provider sends the browser with a code. */
export const CALLBACK_PATH = '/console/login/callback'
/** The path to which the provider sends the browser after a logout. */
const LOGOUT_PATH = '/console/'
/** Maximum characters of the path to return to. */
const MAX_RETURN_PATH = 2_000

/** A login that has begun at the provider. The browser keeps it, encrypted, in a cookie. */
export interface PendingLogin extends LoginChecks {
  readonly issuer: string
  /** The path of the page on which the login began. */
  readonly returnTo: string
  /** Start of the login, in ms since 1970. */
  readonly startedAt: number
}

export class SingleSignOn {
  readonly #key: Buffer
  readonly #clock: Pick<Clock, 'monotonic' | 'wall'>
  /** The providers by their configuration, because a reload can change the provider. */
  readonly #providers = new WeakMap<OidcConfig, IdentityProvider>()

  /** @param secret must be the same for all workers and gateways, because a login may end at another one */
  constructor(secret: Uint8Array, clock: Pick<Clock, 'monotonic' | 'wall'>) {
    this.#key = createHmac('sha256', secret).update('login').digest()
    this.#clock = clock
  }

  /** @returns the URL for the browser, and the pending login, which the browser keeps until the login ends @throws ConsoleProblem */
  async begin(console: ConsoleConfig | null, caller: Caller, returnTo: string): Promise<{ readonly url: string, readonly pending: string }> {
    const oidc = requireOidc(console)
    const redirectUri = originOf(console, caller) + CALLBACK_PATH
    try {
      const { url, checks } = await this.#provider(oidc).begin(redirectUri)
      const login: PendingLogin = { ...checks, issuer: oidc.issuer, returnTo: pathOf(returnTo), startedAt: this.#clock.wall() }
      return { url, pending: seal(this.#key, JSON.stringify(login)) }
    } catch (error) {
      if (!(error instanceof IdentityProviderError)) throw error
      throw new ConsoleProblem('unavailable', `Single sign-on at ${new URL(oidc.issuer).host} is not possible: ${error.message}.`)
    }
  }

  /** @param query query of the redirect URI, with `?` @param pending null = the browser has none @throws IdentityProviderError expired */
  resume({ issuer }: OidcConfig, query: string, pending: string | null): PendingLogin {
    const text = pending === null ? null : unseal(this.#key, pending)
    if (text === null) throw new IdentityProviderError('expired', 'the browser has begun no login')
    const login = JSON.parse(text) as PendingLogin
    const age = this.#clock.wall() - login.startedAt
    const isCurrent = age >= 0 && age < LOGIN_TIMEOUT && login.issuer === issuer
    if (!isCurrent || new URLSearchParams(query).get('state') !== login.state) {
      throw new IdentityProviderError('expired', 'the login took too long, or another one has begun since')
    }
    return login
  }

  /** @param needed paths of further claims that the login needs @throws IdentityProviderError */
  finish(oidc: OidcConfig, query: string, login: PendingLogin, needed: readonly string[]): Promise<Account> {
    return this.#provider(oidc).finish(query, login, needed)
  }

  /** @param idToken the ID token of the login @returns null = the provider has no logout, or is unreachable */
  async logoutUrl(console: ConsoleConfig | null, caller: Caller, idToken: string): Promise<string | null> {
    try {
      return await this.#provider(requireOidc(console)).endSessionUrl(idToken, originOf(console, caller) + LOGOUT_PATH)
    } catch (error) {
      if (error instanceof IdentityProviderError || error instanceof ConsoleProblem) return null
      throw error
    }
  }

  #provider(oidc: OidcConfig): IdentityProvider {
    const provider = this.#providers.get(oidc) ?? new IdentityProvider(oidc, () => this.#clock.monotonic())
    this.#providers.set(oidc, provider)
    return provider
  }
}

/** @throws ConsoleProblem not_found */
export function requireOidc(console: ConsoleConfig | null): OidcConfig {
  if (console === null || console.oidc === null) throw new ConsoleProblem('not_found', 'Single sign-on is not configured.')
  return console.oidc
}

/** The origin of the console in the browser. A Host header is used only if it names this machine. @throws ConsoleProblem */
function originOf(console: ConsoleConfig | null, { secure, host }: Caller): string {
  const own = URL.parse(`${secure ? 'https' : 'http'}://${host}`)
  const publicUrl = console?.publicUrl ?? null
  if (publicUrl === null) {
    if (own !== null && isSecureUrl(new URL(`http://${own.host}`))) return own.origin
    throw new ConsoleProblem('unavailable', 'Single sign-on needs console.public_url: the address of the console in the browser.')
  }
  // The browser sends the pending login only to the host at which the login began.
  if (own?.origin !== publicUrl) throw new ConsoleProblem('unavailable', `Single sign-on works at ${publicUrl}/console/ only. Open the console there.`)
  return publicUrl
}

/** The path of a console page; for any other address, the path of the first page. */
function pathOf(returnTo: string): string {
  const url = URL.parse(returnTo, 'http://console')
  const isPage = url !== null && url.origin === 'http://console' && url.pathname.startsWith('/console/')
  return isPage && returnTo.length <= MAX_RETURN_PATH ? url.pathname + url.search : LOGOUT_PATH
}
