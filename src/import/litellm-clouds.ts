import type { EntrySettings } from './litellm-entry.ts'

export interface CloudEntry {
  /** The upstream as an object of gateway.yaml. */
  readonly upstream: object
  /** The name of the model at the cloud. */
  readonly model: string
}

type CloudReader = (settings: EntrySettings, model: string) => CloudEntry | string | null

const CLOUDS: ReadonlyMap<string, CloudReader> = new Map(Object.entries({
  azure: readAzure,
  bedrock: readBedrock,
  bedrock_converse: readBedrock,
  vertex_ai: readVertex,
  vertex_ai_beta: readVertex,
}))

/** Tells whether the text is the prefix of a cloud's models. */
export function isCloud(provider: string): boolean {
  return CLOUDS.has(provider)
}

/**
 * Reads an entry of model_list for a cloud provider.
 *
 * @returns a text is the reason why the gateway cannot serve the entry; null = the provider is no cloud, or the entry names another server
 * in front of the cloud
 */
export function readCloud(provider: string, model: string, settings: EntrySettings): CloudEntry | string | null {
  return CLOUDS.get(provider)?.(settings, model) ?? null
}

function readAzure(settings: EntrySettings, model: string): CloudEntry | string | null {
  const endpoint = settings.address('api_base')?.replace(/\/openai(?:\/.*)?$/, '') ?? null
  if (endpoint === null) return 'an entry of this provider needs api_base'
  if (!/^(?:https:\/\/[^/]+|\$\{\w+\})$/.test(endpoint)) return null
  const version = settings.text('api_version')
  const isVersion = version !== null && /^(?:\d{4}-\d\d-\d\d(?:-preview)?|\$\{.*\})$/.test(version)
  return { model, upstream: { azure: { endpoint, ...isVersion && { api_version: version } }, auth: azureAuth(settings) } }
}

function azureAuth(settings: EntrySettings): object {
  const key = settings.secret('api_key', 'AZURE_API_KEY')
  if (key !== null) return { header: 'api-key', value: key }
  const clientSecret = settings.secret('client_secret', 'AZURE_CLIENT_SECRET')
  const tenant = settings.text('tenant_id')
  const clientId = settings.text('client_id')
  if (clientSecret !== null && tenant !== null && clientId !== null) {
    return { azure: { tenant, client_id: clientId, client_secret: clientSecret } }
  }
  const token = settings.secret('azure_ad_token', 'AZURE_AD_TOKEN')
  return token === null ? { header: 'api-key', value: '${AZURE_API_KEY}' } : { bearer: token }
}

const AWS_KEYS = ['aws_access_key_id', 'aws_secret_access_key', 'aws_session_token']
/** Prefix of a Bedrock model in LiteLLM: the API to call, and the region. */
const BEDROCK_PREFIX = /^(?:converse\/|invoke\/)?(?:([a-z]{2}(?:-[a-z]+)+-\d+)\/)?/

/** Matches models for embeddings, images, video and reranking. */
const WITHOUT_TEXT = /embed|stability\.|canvas|reel|image|rerank/

function readBedrock(settings: EntrySettings, name: string): CloudEntry | string {
  const [prefix = '', place = null] = BEDROCK_PREFIX.exec(name) ?? []
  const model = name.slice(prefix.length)
  if (WITHOUT_TEXT.test(model)) return 'bedrock: of its models, only those that write text are reached'
  const region = settings.text('aws_region_name') ?? place ?? '${AWS_REGION}'
  const endpoint = settings.address('aws_bedrock_runtime_endpoint') ?? settings.address('api_base')
  const key = settings.secret('api_key', 'AWS_BEARER_TOKEN_BEDROCK')
  const profile = settings.text('aws_profile_name')
  const role = settings.text('aws_role_name')
  settings.note(AWS_KEYS, 'keys of AWS are not copied: put them into the environment, or into a profile')
  const aws = { ...profile !== null && { profile }, ...role !== null && { role_arn: role } }
  return {
    model,
    upstream: {
      bedrock: { region, ...endpoint !== null && { endpoint } },
      // Converse serves the models of all vendors. Models of Anthropic keep their own protocol.
      ...!model.includes('anthropic.') && { speaks: ['converse'] },
      auth: key === null ? { aws } : { bearer: key },
    },
  }
}

/** Default location in LiteLLM. */
const DEFAULT_LOCATION = 'us-central1'

function readVertex(settings: EntrySettings, model: string): CloudEntry | string {
  if (!/^(?:claude-|gemini-|text-(?:multilingual-)?embedding-|\*$)/.test(model)) return 'vertex_ai: of its models, only Claude and Gemini are reached'
  const project = settings.text('vertex_project') ?? settings.text('vertex_ai_project')
  const location = settings.text('vertex_location') ?? settings.text('vertex_ai_location') ?? DEFAULT_LOCATION
  const endpoint = settings.address('api_base')
  return {
    model,
    upstream: {
      vertex: { ...project !== null && { project }, location, ...endpoint !== null && { endpoint } },
      auth: { google: googleCredentials(settings) },
    },
  }
}

/** The Google credentials. In LiteLLM the setting is the name of a file, or its content. */
function googleCredentials(settings: EntrySettings): object {
  const setting = 'vertex_credentials'
  const written = settings.text(setting)
  if (written === null) return {}
  if (written.startsWith('${')) {
    settings.note([setting], 'the variable must hold the name of a file, and not what is in it')
    return { credentials: written }
  }
  if (!written.trimStart().startsWith('{')) return { credentials: written }
  settings.note([setting], 'the credentials are not copied: put them into a file, and its name into the environment as GOOGLE_APPLICATION_CREDENTIALS')
  return {}
}
