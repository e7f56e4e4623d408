import { readCloud, type CloudEntry } from './litellm-clouds.ts'
import { EntrySettings } from './litellm-entry.ts'
import type { Note } from './litellm-notes.ts'
import { readPrice } from './litellm-prices.ts'
import { RERANK_PROVIDERS, findProvider, providerOf, unsupportedReason, type Provider } from './litellm-providers.ts'
import { notCopied, toReference, variableOf } from './litellm-references.ts'
import { formatPath, type Path, type Source } from './source.ts'

/** An entry of model_list that the gateway can serve. */
export interface Deployment {
  /** The name of the model that clients request. May be a glob. */
  readonly group: string
  /** The name of the upstream in gateway.yaml. */
  readonly upstream: string
  /** The name of the model at the upstream; null = the name that the client sent. */
  readonly model: string | null
  /** A glob of the only paths that the model serves; null = all paths of the upstream's protocols. */
  readonly path: string | null
  readonly weight: number | null
  readonly order: number | null
  /** Timeout in seconds. */
  readonly timeout: number | null
  readonly streamTimeout: number | null
}

export interface ImportedModel {
  /** USD per million tokens, except for names that say otherwise. */
  readonly price?: Readonly<Record<string, number>>
  readonly base_model?: string
}

/** `/v1/rerank` and `/v2/rerank`. No other protocol has reranking. */
const RERANK_PATH = '/v*/rerank'

interface Address {
  readonly url: string
  readonly v1?: string
}

interface Upstream extends Address {
  readonly auth?: { readonly bearer: string } | { readonly header: string; readonly value: string }
  readonly headers?: Readonly<Record<string, string>>
  /** The protocols that the server speaks. Requests of other protocols are translated. */
  readonly speaks: readonly string[]
}

export interface Deployments {
  readonly deployments: readonly Deployment[]
  /** Upstreams of gateway.yaml, by name. */
  readonly upstreams: ReadonlyMap<string, object>
  /** Models of gateway.yaml, by the name of the model at its upstream: prices and base models. */
  readonly models: ReadonlyMap<string, ImportedModel>
  readonly notes: readonly Note[]
}

/** Reads model_list: the models for clients, their upstreams, and their prices. */
export function readDeployments(source: Source): Deployments {
  return new ModelList(source).read()
}

class ModelList {
  readonly #source: Source
  readonly #upstreams = new Map<string, object>()
  readonly #models = new Map<string, ImportedModel>()
  /** Credentials that several entries can use, by name. The values are paths in the file. */
  readonly #credentials = new Map<string, Path>()
  readonly #notes: Note[] = []

  constructor(source: Source) {
    this.#source = source
    for (let index = 0; index < source.length(['credential_list']); index++) {
      const path = ['credential_list', index]
      const name = source.text([...path, 'credential_name'])
      if (name === null) continue
      source.take([...path, 'credential_info'])
      this.#credentials.set(name, [...path, 'credential_values'])
    }
  }

  read(): Deployments {
    const deployments: Deployment[] = []
    for (let index = 0; index < this.#source.length(['model_list']); index++) {
      const deployment = this.#readEntry(['model_list', index])
      if (deployment) deployments.push(deployment)
    }
    return { deployments, upstreams: this.#upstreams, models: this.#models, notes: this.#notes }
  }

  #readEntry(path: Path): Deployment | null {
    const params = [...path, 'litellm_params']
    const group = this.#source.text([...path, 'model_name'])
    const written = this.#source.text([...params, 'model'])
    if (group === null || written === null) {
      return this.#skip(path, 'an entry needs model_name and litellm_params.model')
    }
    const named = providerOf(written, this.#source.text([...params, 'custom_llm_provider']))
    const { provider } = named
    const credential = this.#source.text([...params, 'litellm_credential_name'])
    if (credential !== null && !this.#credentials.has(credential)) {
      return this.#skip(path, `its credential ${credential} is not in the file`)
    }
    const settings = new EntrySettings(this.#source, params, this.#credentials, (at, text) => this.#note(at, text))
    const cloud = readCloud(provider, named.model, settings)
    if (typeof cloud === 'string') return this.#skip(path, cloud)
    if (cloud !== null) {
      return this.#deployment(path, group, { provider, model: cloud.model, upstream: { ...cloud.upstream, ...headersOf(settings.headers()) } })
    }
    const isRerank = this.#isRerank(path, named.model)
    const found = isRerank && RERANK_PROVIDERS.has(provider) ? RERANK_PROVIDERS.get(provider)! : findProvider(provider)
    if (found === null) return this.#skip(path, `${provider}: ${unsupportedReason(provider)}`)
    const address = this.#address(settings, provider, found)
    if (typeof address === 'string') return this.#skip(path, address)
    return this.#deployment(path, group, {
      provider,
      model: named.model,
      upstream: {
        ...address,
        ...!isRerank && { speaks: [...found.speaks] },
        ...this.#credential(settings, provider, found, address.url),
      },
    })
  }

  /** @param entry the upstream, and the provider's name of the model */
  #deployment(path: Path, group: string, entry: CloudEntry & { readonly provider: string }): Deployment | null {
    const model = upstreamModel(group, entry.model)
    if (model === undefined) {
      return this.#skip(path, `a pattern needs one * here and in model_name, whose * it stands for: ${group} cannot become ${entry.model}`)
    }
    this.#readModel(path, entry.model)
    const params = [...path, 'litellm_params']
    return {
      group,
      model,
      path: this.#isRerank(path, entry.model) ? RERANK_PATH : null,
      upstream: this.#upstreamName(entry.provider, entry.upstream),
      weight: this.#weight(params),
      order: this.#source.number([...params, 'order']),
      timeout: this.#source.number([...params, 'timeout']),
      streamTimeout: this.#source.number([...params, 'stream_timeout']),
    }
  }

  #isRerank(path: Path, model: string): boolean {
    const at = [...path, 'model_info', 'mode']
    const mode = this.#source.peek(at)
    if (mode === 'rerank') this.#source.take(at)
    return mode === undefined ? /(?:^|[/-])rerank/.test(model) : mode === 'rerank'
  }

  #skip(path: Path, text: string): null {
    this.#source.take(path)
    this.#note(path, text)
    return null
  }

  #note(path: Path, text: string): void {
    this.#notes.push({ place: this.#source.place(path), setting: formatPath(path), text })
  }

  /** @returns a text is the reason why there is no address */
  #address(settings: EntrySettings, provider: string, { url, v1, speaks }: Provider): Address | string {
    const path = settings.pathOf('api_base')
    const written = this.#source.text(path) ?? this.#source.text(settings.ownPathOf('base_url'))
    if (written === null) {
      return url === null ? 'an entry of this provider needs api_base' : addressOf(url, v1)
    }
    const base = toReference(written)
    if (base.startsWith('${')) {
      this.#note(
        path, "the variable must hold the address without /v1, which is in the client's path already",
      )
      return { url: base }
    }
    const plain = settings.withoutSecrets(path, base).replace(/\/+$/, '')
    if (!/^https?:$/.test(URL.parse(plain)?.protocol ?? '')) {
      return 'its api_base is no http or https URL such as https://llm.example.com/v1'
    }
    if (provider === 'azure') {
      this.#source.take(settings.pathOf('api_version'))
      return { url: `${plain.replace(/\/openai(\/.*)?$/, '')}/openai` }
    }
    const bare = plain.replace(/\/v1(beta)?$/, '')
    const parsed = URL.parse(bare)
    // OpenAI's SDK appends paths, such as /chat/completions, directly to this address.
    if (speaks.includes('chat') && bare === plain && parsed && parsed.pathname !== '/') {
      this.#note(path, `requests go to ${bare}/chat/completions and so on, as they did`)
      return { url: parsed.origin, v1: parsed.pathname }
    }
    const isUsual = bare === plain && (url === null || url === bare)
    return addressOf(bare, isUsual ? v1 : null)
  }

  #credential(settings: EntrySettings, provider: string, found: Provider, url: string): Omit<Upstream, keyof Address | 'speaks'> {
    const headers = { ...found.headers, ...settings.headers() }
    const secret = this.#secret(settings.pathOf('api_key'), provider, found, url)
    const auth = found.auth === 'bearer'
      ? { bearer: secret ?? '' }
      : { header: found.auth, value: secret ?? '' }
    return { ...secret !== null && { auth }, ...headersOf(headers) }
  }

  /** The secret as a reference to the environment, even if the file contains the secret itself; null = no secret is needed. */
  #secret(path: Path, provider: string, { variable: usual, url: own }: Provider, url: string): string | null {
    const written = this.#source.text(path)
    if (written === null && usual === null) return null
    const named = written === null ? null : variableOf(written)
    // The usual variable contains the provider's own key: do not send that key to another server.
    const isElsewhere = written !== null && own !== null && url !== own && URL.canParse(url)
    const name = named
      ?? (isElsewhere ? `KEY_FOR_${new URL(url).hostname.toUpperCase().replace(/\W+/g, '_')}` : usual)
      ?? `${provider.toUpperCase()}_API_KEY`
    if (written !== null && named === null) {
      this.#note(path, notCopied(name))
    }
    return `\${${name}}`
  }

  #weight(params: Path): number | null {
    const weight = this.#source.number([...params, 'weight'])
    // Without weights, LiteLLM's shuffle strategy uses rpm.
    const share = weight ?? toNumber(this.#source.peek([...params, 'rpm']))
    return share !== null && share >= 0 ? share : null
  }

  /** The name of the upstream with these settings. If there is none, the upstream is added. */
  #upstreamName(provider: string, upstream: object): string {
    const same = JSON.stringify(upstream)
    for (const [name, known] of this.#upstreams) if (JSON.stringify(known) === same) return name
    let name = provider
    for (let number = 2; this.#upstreams.has(name); number++) name = `${provider}-${number}`
    this.#upstreams.set(name, upstream)
    return name
  }

  #readModel(path: Path, model: string): void {
    const price = readPrice(this.#source, path)
    const base = this.#source.text([...path, 'model_info', 'base_model']) ?? this.#source.text([...path, 'litellm_params', 'base_model'])
    if (price === null && base === null) return
    const read = { ...base !== null && { base_model: baseModelOf(base) }, ...price !== null && { price } }
    const known = this.#models.get(model)
    if (known === undefined) this.#models.set(model, read)
    else if (JSON.stringify(known) !== JSON.stringify(read)) {
      this.#note(path, `a model has one price; that of the first entry for ${model} was taken`)
    }
  }
}

/** The base model. LiteLLM writes the provider, and for some providers a region, before the model: `azure/eu/gpt-4.1`. */
function baseModelOf(written: string): string {
  const { provider, model } = providerOf(written, null)
  return provider === 'azure' ? model.replace(/^.*\//, '') : model
}

/** @returns null = the model has the name that the client sent; undefined = a pattern would have to change the name */
function upstreamModel(group: string, model: string): string | null | undefined {
  if (group === model) return null
  const stars = (text: string): number => text.split('*').length - 1
  if (stars(model) === 0) return model
  return group === '*' && model === '*' ? null : stars(group) === 1 && stars(model) === 1 ? model : undefined
}

function toNumber(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}

/** @param v1 the path that replaces /v1; null = /v1 stays */
function addressOf(url: string, v1: string | null): Address {
  return v1 === null ? { url } : { url, v1 }
}

/** The headers as a member of gateway.yaml; absent = no headers. */
function headersOf(headers: Readonly<Record<string, string>>): Pick<Upstream, 'headers'> {
  return Object.keys(headers).length === 0 ? {} : { headers }
}
