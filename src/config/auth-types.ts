/** The source of an upstream's credential, and how it is sent. */
export type Auth = MemberAuth | PoolAuth | ClientAuth

export type MemberAuth = StaticAuth | FileAuth | CommandAuth | OAuth2Auth | AzureAuth | AwsAuth | GoogleAuth

/** A credential in a header. */
interface HeaderAuth {
  /** Lower-case names of the headers that the credential sets; the client's own are not forwarded. */
  readonly headers: readonly [string]
}

export interface StaticAuth extends HeaderAuth {
  readonly kind: 'static'
  /** The whole value of the header. */
  readonly value: string
}

export interface FileAuth extends HeaderAuth {
  readonly kind: 'file'
  /** Text before the secret in the header: `Bearer `, or ''. */
  readonly prefix: string
  readonly file: string
}

export interface CommandAuth extends HeaderAuth {
  readonly kind: 'command'
  /** As in `FileAuth`. */
  readonly prefix: string
  readonly command: readonly string[]
  /** ms between two runs. */
  readonly every: number
}

/** The client credentials grant; tokens are sent as bearer tokens. */
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
  /** The id of the tenant; null = from the environment. */
  readonly tenant: string | null
  /** The application, or the managed identity; null = from the environment. */
  readonly clientId: string | null
  /** null = a managed identity, a workload identity, or another source in the environment. */
  readonly clientSecret: string | null
  /** The URL of the token server, without a final slash; null = from the environment. */
  readonly authority: string | null
}

/** Requests are signed with AWS credentials (Signature Version 4). */
export interface AwsAuth {
  readonly kind: 'aws'
  /** Of a signature. */
  readonly headers: readonly string[]
  /** Profile in the shared configuration files; null = AWS's default chain of sources. */
  readonly profile: string | null
  /** The ARN of a role to assume; null = none. */
  readonly roleArn: string | null
  readonly region: string
}

/** Access tokens of Google Cloud. */
export interface GoogleAuth {
  readonly kind: 'google'
  /** The second header names the project whose quota is used, if the credentials name one. */
  readonly headers: readonly ['authorization', 'x-goog-user-project']
  /** Path of a JSON file; null = tokens of the metadata server. */
  readonly credentials: string | null
  /** The project, if the file names none; null = unknown. */
  readonly project: string | null
}

/** Each client sends its own credential, in a header of its choice. */
export interface ClientAuth {
  readonly kind: 'client'
  readonly headers: readonly string[]
}

/** Several credentials, which requests take in turn. */
export interface PoolAuth {
  readonly kind: 'pool'
  readonly headers: readonly string[]
  readonly pool: readonly MemberAuth[]
}
