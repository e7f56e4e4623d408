import { generateKeyPairSync, sign } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import type * as http from 'node:http'
import { Provider } from 'oidc-provider'
import type { Test } from 'tap'
import { bodyOf, startUpstream } from './upstream.ts'

export const CLIENT_ID = 'gateway'
export const CLIENT_SECRET = 'a-secret-of-the-client-0123456789'

export interface TestAccount {
  readonly email?: string
  readonly email_verified?: unknown
  readonly groups?: readonly string[]
  /** Claims of the userinfo endpoint, if they differ from the ID token; needs `inToken`. */
  readonly userinfo?: object
}

export interface ProviderOptions {
  /** true: the ID token has all claims; false: only the userinfo endpoint has all claims. */
  readonly inToken?: boolean
  /** Seconds by which the clock of the provider is ahead. */
  readonly ahead?: number
  readonly withLogout?: boolean
}

export interface TestIdentityProvider {
  readonly issuer: string
  /** Accounts by `sub`. */
  readonly accounts: Map<string, TestAccount>
  /** Paths of its requests, without queries, in order. */
  readonly requests: string[]
  /** Starts to serve the gateway with this console, with new signing keys. */
  register(console: string, options?: ProviderOptions): void
  /** Replaces each response; null = none. */
  fault: ((res: http.ServerResponse) => void) | null
  /**
   * Logs in with a browser at the address to which the gateway redirects.
   *
   * @param account its `sub`; null = the person refuses
   * @returns the address to which the browser is sent back
   */
  logIn(url: string, account: string | null): Promise<string>
}

/** An OpenID Connect provider whose login page asks only for the account. */
export async function startIdentityProvider(t: Test): Promise<TestIdentityProvider> {
  let handle: http.RequestListener = (_, res) => res.writeHead(503).end()
  const { url: issuer } = await startUpstream(t, (req, res) => {
    test.requests.push((req.url ?? '').split('?', 1)[0] as string)
    if (test.fault !== null) test.fault(res)
    else handle(req, res)
  })
  const test: TestIdentityProvider = {
    issuer,
    accounts: new Map(),
    requests: [],
    fault: null,
    register: (console, options = {}) => {
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const provider = new Provider(issuer, configuration(test, privateKey, console, options))
      const serve = provider.callback()
      handle = (req, res) => {
        if (req.url?.startsWith('/interaction/')) void interact(provider, req, res)
        else serve(req, options.ahead !== undefined && req.url === '/token' ? withLaterToken(res, privateKey, options.ahead) : res)
      }
    },
    logIn: (url, account) => logIn(issuer, url, account),
  }
  return test
}

const LOGOUT = '<button form="op.logoutForm" name="logout" value="yes">Yes, sign me out</button>'

function configuration({ accounts }: TestIdentityProvider, privateKey: KeyObject, console: string, options: ProviderOptions): object {
  const { inToken = false, withLogout = true } = options
  const key = privateKey.export({ format: 'jwk' })
  return {
    clients: [{
      client_id: CLIENT_ID,
      client_secret: CLIENT_SECRET,
      id_token_signed_response_alg: 'ES256',
      redirect_uris: [`${console}/console/login/callback`],
      post_logout_redirect_uris: [`${console}/console/`],
    }],
    jwks: { keys: [{ ...key, kid: String(key.x).slice(0, 8), use: 'sig', alg: 'ES256' }] },
    cookies: { keys: ['a key of the cookies'] },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], groups: ['groups'], profile: ['name'] },
    conformIdTokenClaims: !inToken,
    ttl: { IdToken: 3_600, AccessToken: 3_600, AuthorizationCode: 60, Grant: 3_600, Interaction: 3_600, Session: 3_600 },
    features: { devInteractions: { enabled: false }, rpInitiatedLogout: { enabled: withLogout, logoutSource: showLogout } },
    interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    findAccount: (_: unknown, sub: string) => ({ accountId: sub, claims: (use: string) => claimsOf(sub, use, accounts.get(sub)) }),
    loadExistingGrant: async ({ oidc: { provider, client, session, params } }: Consent) => {
      const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId })
      grant.addOIDCScope(params.scope)
      await grant.save()
      return grant
    },
  }
}

function showLogout(context: { body: string }, form: string): void {
  context.body = `<!doctype html><html lang="en"><title>Identity provider</title>${form}${LOGOUT}`
}

interface Consent {
  readonly oidc: {
    readonly provider: Provider
    readonly client: { readonly clientId: string }
    readonly session: { readonly accountId: string }
    readonly params: { readonly scope: string }
  }
}

function claimsOf(sub: string, use: string, { userinfo, ...claims }: TestAccount = {}): object {
  return { sub, ...use === 'userinfo' && userinfo !== undefined ? userinfo : claims }
}

/** Sets the issue time of the ID token in the response `seconds` later. */
function withLaterToken(res: http.ServerResponse, privateKey: KeyObject, seconds: number): http.ServerResponse {
  const end = res.end.bind(res) as (body: string) => http.ServerResponse
  res.end = ((body: string) => {
    const answer = JSON.parse(body) as { id_token: string }
    const [header = '', payload = ''] = answer.id_token.split('.')
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as { iat: number, exp: number }
    const later = Buffer.from(JSON.stringify({ ...claims, iat: claims.iat + seconds, nbf: claims.iat + seconds, exp: claims.exp + seconds })).toString('base64url')
    const signature = sign('sha256', Buffer.from(`${header}.${later}`), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')
    const text = JSON.stringify({ ...answer, id_token: `${header}.${later}.${signature}` })
    return end(res.setHeader('content-length', Buffer.byteLength(text)) && text)
  }) as typeof res.end
  return res
}

const PAGE = `<!doctype html><html lang="en"><title>Identity provider</title><form method="post">
  <label>Account <input name="account"></label><button>Sign in</button><button name="refuse" value="1">Refuse</button></form>`

async function interact(provider: Provider, req: http.IncomingMessage, res: http.ServerResponse): Promise<void> {
  await provider.interactionDetails(req, res)
  if (req.method === 'GET') {
    res.writeHead(200, { 'content-type': 'text/html' }).end(PAGE)
    return
  }
  const form = new URLSearchParams((await bodyOf(req)).toString())
  const result = form.has('refuse') ? { error: 'access_denied' } : { login: { accountId: form.get('account') } }
  await provider.interactionFinished(req, res, result)
}

async function logIn(issuer: string, url: string, account: string | null): Promise<string> {
  const cookies = new Map<string, string>()
  let next = url
  while (next.startsWith(`${issuer}/`)) {
    const isForm = new URL(next).pathname.startsWith('/interaction/')
    const response = await fetch(next, {
      redirect: 'manual',
      headers: { cookie: Array.from(cookies, ([name, value]) => `${name}=${value}`).join('; ') },
      ...isForm && { method: 'POST', body: new URLSearchParams(account === null ? { refuse: '1' } : { account }) },
    })
    for (const set of response.headers.getSetCookie()) {
      const [name = '', value = ''] = (set.split(';', 1)[0] as string).split(/=(.*)/)
      if (value === '') cookies.delete(name)
      else cookies.set(name, value)
    }
    const location = response.headers.get('location')
    if (location === null) throw new Error(`the provider answers ${response.status}: ${await response.text()}`)
    next = new URL(location, next).href
  }
  return next
}
