import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import type { Auth } from '../../config/auth-types.ts'
import { AwsCredential } from './aws-credential.ts'
import { azureTokens } from './azure-tokens.ts'
import { runCommand } from './command.ts'
import { headerAuthorization, staticCredential } from './credential.ts'
import type { Credential } from './credential.ts'
import { FaultReporter } from './fault-reporter.ts'
import { FileCredential } from './file-credential.ts'
import { googleTokens } from './google-tokens.ts'
import { fetchOAuth2Token } from './oauth2.ts'
import { PoolCredential } from './pool-credential.ts'
import { RefreshingCredential } from './refreshing-credential.ts'

export interface CredentialOptions {
  readonly clock: Clock
  readonly log: Logger
  /** The upstream's name, for the log. */
  readonly upstream: string
}

/** Opens the credential that a configuration describes. Nothing is fetched before the first request. */
export function openCredential(auth: Auth, options: CredentialOptions): Credential {
  const { clock, log, upstream } = options
  const reporter = new FaultReporter(log, upstream)
  switch (auth.kind) {
    case 'static':
      return staticCredential(auth.headers[0], auth.value)
    case 'file':
      return new FileCredential(auth, { clock, reporter })
    case 'oauth2':
      return new RefreshingCredential({
        clock, reporter, expires: true, fetch: signal => fetchOAuth2Token(auth, signal),
      })
    case 'azure':
      return new RefreshingCredential({ clock, reporter, expires: true, fetch: azureTokens(auth) })
    case 'aws':
      return new AwsCredential(auth, { clock, reporter })
    case 'google':
      return new RefreshingCredential({ clock, reporter, expires: true, fetch: googleTokens(auth, clock) })
    case 'pool':
      return new PoolCredential(auth.pool.map(member => openCredential(member, options)), options)
    case 'command': {
      const { headers: [header], prefix, command, every } = auth
      return new RefreshingCredential({
        clock,
        reporter,
        expires: false,
        fetch: async signal => ({
          authorization: headerAuthorization(header, prefix, await runCommand(command, signal)),
          lifetimeMs: every,
        }),
      })
    }
  }
}
