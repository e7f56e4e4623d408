/** Where the credential of an upstream comes from, and how it is sent. */
export type Auth = MemberAuth | PoolAuth

/** What can be in a pool. */
export type MemberAuth = StaticAuth | FileAuth | CommandAuth | OAuth2Auth | AzureAuth | AwsAuth | GoogleAuth

/** A credential in a header. */
interface HeaderAuth {
  /** Lower-case names of the headers that the credential sets; the client's own never go upstream. */
  readonly headers: readonly [string]
}

export interface StaticAuth extends HeaderAuth {
  readonly kind: 'static'
  /** The whole value of the header. */
  readonly value: string
}

export interface FileAuth extends HeaderAuth {
  readonly kind: 'file'
  /** What comes before the secret in the header: `Bearer `, or nothing. */
  readonly prefix: string
  /** Absolute path. */
  readonly file: string
}

export interface CommandAuth extends HeaderAuth {
  readonly kind: 'command'
  /** As of `FileAuth`. */
  readonly prefix: string
  /** The program and its arguments. */
  readonly command: readonly string[]
  /** Milliseconds between two runs. */
  readonly every: number
}

/** Access tokens by the client credentials grant, sent as bearer. */
export interface OAuth2Auth extends HeaderAuth {
  readonly kind: 'oauth2'
  readonly tokenUrl: string
  readonly clientId: string
  readonly clientSecret: string
  /** null = the server's default. */
  readonly scope: string | null
}

/** Tokens of Microsoft Entra ID. */
export interface AzureAuth extends HeaderAuth {
  readonly kind: 'azure'
  /** The id of the tenant; null = as the environment says. */
  readonly tenant: string | null
  /** The application, or the managed identity; null = as the environment says. */
  readonly clientId: string | null
  /** null = a managed identity, a workload identity, or what else the environment has. */
  readonly clientSecret: string | null
  /** The URL of the token server, without a slash at its end; null = as the environment says. */
  readonly authority: string | null
}

/** Requests are signed with credentials of AWS (Signature Version 4). */
export interface AwsAuth {
  readonly kind: 'aws'
  /** Those of a signature. */
  readonly headers: readonly string[]
  /** Of the shared configuration files; null = AWS's default chain of sources. */
  readonly profile: string | null
  /** The ARN of a role that is assumed with them; null = none is. */
  readonly roleArn: string | null
  readonly region: string
}

/** Access tokens of Google Cloud. */
export interface GoogleAuth {
  readonly kind: 'google'
  /** The second names the project whose quota is used, where the credentials name one. */
  readonly headers: readonly ['authorization', 'x-goog-user-project']
  /** Path of a JSON file; null = the metadata server gives tokens. */
  readonly credentials: string | null
  /** The project, where the file names none; null = no project is known. */
  readonly project: string | null
}

/** Several credentials, which requests take in turn. */
export interface PoolAuth {
  readonly kind: 'pool'
  /** Those of all members. */
  readonly headers: readonly string[]
  readonly pool: readonly MemberAuth[]
}
