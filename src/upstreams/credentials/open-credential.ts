import type { Auth, ClientAuth } from '../../config/auth-types.ts'
import { AwsCredential } from './aws-credential.ts'
import { azureTokens } from './azure-tokens.ts'
import { runCommand } from './command.ts'
import { headerAuthorization, staticCredential, type Credential } from './credential.ts'
import { FaultReporter } from './fault-reporter.ts'
import { FileCredential } from './file-credential.ts'
import { googleTokens } from './google-tokens.ts'
import { fetchOAuth2Token } from './oauth2.ts'
import { PoolCredential, type CredentialOptions } from './pool-credential.ts'
import { RefreshingCredential, type FetchedCredential } from './refreshing-credential.ts'

/** Nothing is fetched before the first request. */
export function openCredential(auth: Exclude<Auth, ClientAuth>, options: CredentialOptions): Credential {
  const { clock, log, upstream } = options
  const reporter = new FaultReporter(log, upstream)
  switch (auth.kind) {
    case 'static': return staticCredential(auth.headers[0], auth.value)
    case 'file': return new FileCredential(auth, { clock, reporter })
    case 'oauth2': return new RefreshingCredential({ clock, reporter, expires: true, fetch: signal => fetchOAuth2Token(auth, signal) })
    case 'azure': return new RefreshingCredential({ clock, reporter, expires: true, fetch: azureTokens(auth) })
    case 'aws': return new AwsCredential(auth, { clock, reporter })
    case 'google': return new RefreshingCredential({ clock, reporter, expires: true, fetch: googleTokens(auth, clock) })
    case 'pool': return new PoolCredential(auth.pool.map(member => openCredential(member, options)), options)
    case 'command': {
      const { headers: [header], prefix, command, every } = auth
      const fetch = async (signal: AbortSignal): Promise<FetchedCredential> =>
        ({ authorization: headerAuthorization(header, prefix, await runCommand(command, signal)), lifetimeMs: every })
      return new RefreshingCredential({ clock, reporter, expires: false, fetch })
    }
  }
}
