/** The source of an upstream's credential, and how it is sent. */
export type Auth = MemberAuth | PoolAuth | ClientAuth

export type MemberAuth = StaticAuth | FileAuth | CommandAuth | OAuth2Auth | AzureAuth | AwsAuth | GoogleAuth

/** A credential that is sent in a header. */
interface HeaderAuth {
  /** Lower-case names of the headers that contain the credential. The client's headers of these names are not forwarded. */
  readonly headers: readonly [string]
}

export interface StaticAuth extends HeaderAuth {
  readonly kind: 'static'
  /** The complete value of the header. */
  readonly value: string
}

export interface FileAuth extends HeaderAuth {
  readonly kind: 'file'
  /** Text before the secret in the header: `Bearer `, or an empty text. */
  readonly prefix: string
  readonly file: string
}

export interface CommandAuth extends HeaderAuth {
  readonly kind: 'command'
  /** Text before the secret in the header, as in `FileAuth`. */
  readonly prefix: string
  readonly command: readonly string[]
  /** ms between two runs of the command. */
  readonly every: number
}

/** OAuth 2.0 with the client credentials grant. Tokens are sent as bearer tokens. */
export interface OAuth2Auth extends HeaderAuth {
  readonly kind: 'oauth2'
  readonly tokenUrl: string
  readonly clientId: string
  readonly clientSecret: string
  /** The requested scope; null = the server's default. */
  readonly scope: string | null
}

/** Tokens of Microsoft Entra ID. */
export interface AzureAuth extends HeaderAuth {
  readonly kind: 'azure'
  /** The id of the tenant; null = from the environment. */
  readonly tenant: string | null
  /** The id of the application, or of the managed identity; null = from the environment. */
  readonly clientId: string | null
  /** null = the credential is from a managed identity, a workload identity, or another source in the environment. */
  readonly clientSecret: string | null
  /** The URL of the token server, without a final slash; null = from the environment. */
  readonly authority: string | null
}

/** AWS credentials, with which requests are signed (Signature Version 4). */
export interface AwsAuth {
  readonly kind: 'aws'
  /** The headers that a signature sets. */
  readonly headers: readonly string[]
  /** Profile in the shared configuration files of AWS; null = AWS's default chain of sources. */
  readonly profile: string | null
  /** The ARN of a role to assume; null = none. */
  readonly roleArn: string | null
  readonly region: string
}

/** Access tokens of Google Cloud. */
export interface GoogleAuth {
  readonly kind: 'google'
  /** The second header names the project whose quota is used. It is sent only if the credentials name a project. */
  readonly headers: readonly ['authorization', 'x-goog-user-project']
  /** Path of a JSON file with credentials; null = the metadata server issues tokens. */
  readonly credentials: string | null
  /** The project to use if the file names no project; null = unknown. */
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
