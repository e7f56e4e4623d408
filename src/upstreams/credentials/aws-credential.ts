import type { Clock } from '../../base/clock.ts'
import { credentialUnavailable } from '../../base/errors.ts'
import type { AwsAuth } from '../../config/auth-types.ts'
import { AwsAuthorization, createSha256 } from './aws-authorization.ts'
import type { Authorization, HeaderList } from './credential.ts'
import type { FaultReporter } from './fault-reporter.ts'
import { RefreshingCredential, type FetchedCredential } from './refreshing-credential.ts'
import { ServerClock } from './server-clock.ts'

const SERVICE = 'bedrock'
/** Milliseconds after which credentials without an expiry are read again, because their files may have changed. */
const DEFAULT_LIFETIME = 60 * 60_000
/** Error names of this form are reported. */
const ERROR_NAME = /^[A-Za-z]{1,60}$/

/** Signs requests with the AWS credentials that AWS's library finds. */
export class AwsCredential extends RefreshingCredential {
  readonly #serverClock: ServerClock

  constructor(auth: AwsAuth, { clock, reporter }: { readonly clock: Clock, readonly reporter: FaultReporter }) {
    const serverClock = new ServerClock(clock)
    super({ clock, reporter, expires: true, fetch: () => fetchAwsCredentials(auth, serverClock) })
    this.#serverClock = serverClock
  }

  responded(_authorization: Authorization, _status: number, headers: HeaderList): void {
    this.#serverClock.observe(headers)
  }
}

async function fetchAwsCredentials(auth: AwsAuth, clock: ServerClock): Promise<FetchedCredential> {
  const [found, { SignatureV4: Signer }] = await Promise.all([awsIdentity(auth), import('@smithy/signature-v4')])
  const { expiration } = found
  const signer = new Signer({ service: SERVICE, region: auth.region, credentials: found, sha256: createSha256(), applyChecksum: false })
  const lifetimeMs = expiration === undefined ? DEFAULT_LIFETIME : expiration.getTime() - clock.now
  return { authorization: new AwsAuthorization(signer, clock), lifetimeMs }
}

interface AwsIdentity {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
  /** absent = never */
  readonly expiration?: Date
}

/** @throws GatewayError credential_unavailable */
async function awsIdentity({ profile, roleArn, region }: AwsAuth): Promise<AwsIdentity> {
  const { fromNodeProviderChain, fromTemporaryCredentials } = await import('@aws-sdk/credential-providers')
  // Create a new chain for each read, because a chain caches the credentials that it finds.
  const chain = fromNodeProviderChain({ ignoreCache: true, clientConfig: { region }, logger: SILENT, ...profile !== null && { profile } })
  try {
    if (roleArn === null) return await chain()
    const params = { RoleArn: roleArn, RoleSessionName: 'model-gateway' }
    return await fromTemporaryCredentials({ masterCredentials: chain, params, clientConfig: { region }, logger: SILENT })()
  } catch (error) {
    throw credentialUnavailable(reasonOf(error as Error, profile))
  }
}

/** A logger that drops the library's warnings, which otherwise go to standard output. */
const SILENT = { debug: noop, info: noop, warn: noop, error: noop }

function noop(): void {}

function reasonOf({ name }: Error, profile: string | null): string {
  if (name === 'CredentialsProviderError') return profile === null ? 'no AWS credentials were found' : `the AWS profile ${profile} gives no credentials`
  return `no AWS credentials: ${ERROR_NAME.test(name) ? name : 'their source failed'}`
}
