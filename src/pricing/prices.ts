import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type * as GenaiPrices from '@pydantic/genai-prices'
import { parseDecimal } from '../base/decimal.ts'
import type { Model, Price } from '../config/price-types.ts'
import { fromCatalogue } from './catalogue.ts'

export interface QuotedPrice {
  readonly price: Price
  /** The source of the price: `genai-prices 0.1.8`, or `config 1f3870be274f` (a digest of the operator's price). */
  readonly version: string
  /** Prices of service tiers, by tier. Their `version` names the tier, such as `config 8d969eef6eca, flex`. */
  readonly serviceTiers?: ReadonlyMap<string, QuotedPrice>
}

/** In tokens; null = unknown. */
export type ModelSize = Pick<Model, 'context' | 'output'>

interface CatalogueEntry {
  readonly price: QuotedPrice | null
  readonly context: number | null
}

/** Clients choose names of models, so few are kept. */
const MAX_ENTRIES = 1_000

/** Hosts of vendors that are missing in the catalogue, such as regional hosts. */
const OTHER_HOSTS: readonly (readonly [RegExp, string])[] = [
  [/^[a-z]+\.api\.openai\.com$/, 'openai'],
  [/^[a-z\d]+\.api\.cognitive\.microsoft\.com$/, 'azure'],
  [/^bedrock-(?:runtime-fips\.[a-z\d-]+\.amazonaws\.com|runtime\.[a-z\d-]+\.amazonaws\.com\.cn|mantle\.[a-z\d-]+\.api\.aws)$/, 'aws'],
  [/\.bedrock-runtime\.[a-z\d-]+\.vpce\.amazonaws\.com$/, 'aws'],
  [/^api\.together\.ai$/, 'together'],
]
/** Model names that belong to one vendor and that the catalogue does not recognize. */
const OTHER_MODELS: readonly (readonly [RegExp, string])[] = [
  [/^(?:text-embedding-(?:3-|ada)|chatgpt-|codex-mini|computer-use|text-davinci-)/, 'openai'],
  [/^embed-v\d/, 'cohere'],
]
/** Names of Ollama's models, such as `deepseek-r1:7b`, `:latest` and `:671b-cloud`. Vendors do not use such names. */
const TAGGED = /:(?:latest|cloud|[a-z]?\d[\w.]*[bmt])\b/i
/** A reseller of all vendors' models. Its names of models are `vendor/model`. */
const RESELLER = 'openrouter'
/** The catalogue's id of deepseek-r1. It is ignored for names that match DISTILLED: other vendors' small models, which it matches too. */
const R1 = 'deepseek-reasoner'
const DISTILLED = /distill|-(?:qwen|llama)/i
const FREE: Price = Object.freeze({ input: '0', output: '0' })

/**
 * Uses the prices of the configuration, and the catalogue in the package @pydantic/genai-prices. Nothing is downloaded.
 * @throws RangeError a price of the configuration is not a decimal
 */
export function createPriceBook({ models }: { readonly models: ReadonlyMap<string, Model> }): PriceBook {
  const own = new Map<string, QuotedPrice>()
  for (const { name, price, serviceTiers } of models.values()) {
    if (!price) continue
    const quoted = quote(price)
    own.set(name, serviceTiers.size === 0 ? quoted : {
      ...quoted,
      serviceTiers: new Map([...serviceTiers].map(([tier, price]) => [tier, quote(price, `, ${tier}`)])),
    })
  }
  return new PriceBook(own, models, `genai-prices ${catalogueVersion()}`)
}

export class PriceBook {
  readonly #configured: ReadonlyMap<string, QuotedPrice>
  readonly #baseModels: ReadonlyMap<string, string>
  readonly #version: string
  readonly #providers = new Map<string, string | null>()
  #catalogueModule: typeof GenaiPrices | null = null
  readonly #sizes: ReadonlyMap<string, ModelSize>
  readonly #entries = new Map<string, CatalogueEntry | null>()
  /** The minute of `#entries`, since 1970. */
  #minute = 0
  // Caches converted prices, because the catalogue does not change.
  readonly #translated = new WeakMap<object, QuotedPrice | null>()

  constructor(own: ReadonlyMap<string, QuotedPrice>, models: ReadonlyMap<string, Model>, version: string) {
    this.#configured = own
    this.#sizes = models
    this.#baseModels = new Map([...models.values()].flatMap(({ name, baseModel }) => (baseModel === null ? [] : [[name, baseModel]])))
    this.#version = version
  }

  /**
   * The price of a model at the time `at`, because some prices change with the date or the hour. Uses the first of these that exists: the
   * operator's price for the upstream's name of the model (`model`), for the client's name (`alias`), for the base model; the catalogue's
   * price for the base model or, without a base model, for `model`.
   * @param upstream decides between vendors and resellers; null, or a host that is not in the catalogue = search by the model's name only
   */
  priceOf(upstream: URL | null, model: string, at: Date, alias?: string): QuotedPrice | null {
    const own = this.#configured.get(model) ?? (alias === undefined ? undefined : this.#configured.get(alias))
    if (own !== undefined) return own
    const name = this.#baseOf(model, alias) ?? model
    return this.#configured.get(name) ?? this.#entry(upstream, catalogueName(name), at)?.price ?? null
  }

  /** The models that have a price of the operator or of the catalogue. */
  knownModels(upstream: URL | null): string[] {
    const { findProvider } = this.#catalogue
    const host = upstream && this.#providerOf(upstream)
    const listed = findProvider({ providerId: host ?? RESELLER })?.models ?? []
    return [...this.#configured.keys(), ...listed.map(({ id }) => (host === null ? id.replace(/^.*\//, '') : id))]
  }

  /**
   * The size of a model, searched in the order of `priceOf`. Each figure that the operator leaves out is that of the catalogue, which has
   * no output limits.
   */
  sizeOf(upstream: URL | null, model: string, alias?: string): ModelSize {
    const base = this.#baseOf(model, alias)
    const configured = [model, alias, base].flatMap(name => this.#sizes.get(name ?? '') ?? [])
    return {
      context: configured.find(({ context }) => context !== null)?.context
        ?? this.#entry(upstream, catalogueName(base ?? model), new Date())?.context ?? null,
      output: configured.find(({ output }) => output !== null)?.output ?? null,
    }
  }

  #baseOf(model: string, alias: string | undefined): string | undefined {
    return this.#baseModels.get(model) ?? (alias === undefined ? undefined : this.#baseModels.get(alias))
  }

  /** Searching the catalogue takes 0.1 to 0.3 ms, so the entries of one minute are kept. No price changes within a minute. */
  #entry(upstream: URL | null, name: string, at: Date): CatalogueEntry | null {
    const minute = Math.floor(at.getTime() / 60_000)
    if (minute !== this.#minute || this.#entries.size >= MAX_ENTRIES) {
      this.#minute = minute
      this.#entries.clear()
    }
    const id = `${upstream === null ? '' : upstream.origin + upstream.pathname} ${name}`
    let entry = this.#entries.get(id)
    if (entry === undefined) {
      entry = this.#search(upstream, name, at)
      this.#entries.set(id, entry)
    }
    return entry
  }

  #search(upstream: URL | null, name: string, at: Date): CatalogueEntry | null {
    const host = upstream && this.#providerOf(upstream)
    if (host === null && TAGGED.test(name)) return null
    const providerId = host ?? OTHER_MODELS.find(([pattern]) => pattern.test(name))?.[1] ?? null
    const model = providerId === 'google' ? name.replace(/^google\//, '') : name
    const { calcPrice } = this.#catalogue
    const found = calcPrice({}, model, { timestamp: at, ...(providerId ? { providerId } : {}) })
    if (found === null || (found.model.id === R1 && DISTILLED.test(model))) return null
    const { id, context_window: context = null } = found.model
    return { context, price: this.#converted(id, found.model_price) }
  }

  #converted(id: string, listed: GenaiPrices.ModelPrice): QuotedPrice | null {
    // Only with `:free`, an entry without prices means that the model is free. Other such models are not billed by tokens.
    if (id.endsWith(':free') && Object.keys(listed).length === 0) return { price: FREE, version: this.#version }
    let quoted = this.#translated.get(listed)
    if (quoted === undefined) {
      const price = fromCatalogue(listed)
      quoted = price && { price, version: this.#version }
      this.#translated.set(listed, quoted)
    }
    return quoted
  }

  /** Loaded at the first request for a model without a price of the operator, because it takes 7 MB and about 50 ms. */
  get #catalogue(): typeof GenaiPrices {
    return this.#catalogueModule ??= createRequire(import.meta.url)('@pydantic/genai-prices') as typeof GenaiPrices
  }

  /** Caches the result by origin and path. The cache stays small, because a configuration has few upstreams. */
  #providerOf(upstream: URL): string | null {
    const url = upstream.origin + upstream.pathname
    let id = this.#providers.get(url)
    if (id === undefined) {
      const { hostname } = upstream
      id = this.#catalogue.findProvider({ providerApiUrl: url })?.id ?? OTHER_HOSTS.find(([pattern]) => pattern.test(hostname))?.[1] ?? null
      this.#providers.set(url, id)
    }
    return id
  }
}

/** Without the prefix of Google's resource names. */
function catalogueName(name: string): string {
  return name.replace(/^(?:publishers\/[^/]+\/)?models\//, '')
}

function quote(price: Price, suffix = ''): QuotedPrice {
  const { tiers = [], ...rates } = price
  for (const rate of [rates, ...tiers.map(tier => tier.price)].flatMap(each => Object.values(each))) parseDecimal(rate)
  const digest = createHash('sha256').update(JSON.stringify(price)).digest('hex').slice(0, 12)
  return { price, version: `config ${digest}${suffix}` }
}

/** @returns the version of the package, which is also the version of its prices */
function catalogueVersion(): string {
  const manifest = new URL('../package.json', import.meta.resolve('@pydantic/genai-prices'))
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version
}
