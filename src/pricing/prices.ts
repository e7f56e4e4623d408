import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type * as GenaiPrices from '@pydantic/genai-prices'
import { parseDecimal } from '../base/decimal.ts'
import type { Model, Price } from '../config/price-types.ts'
import { fromCatalogue } from './catalogue.ts'

export interface QuotedPrice {
  readonly price: Price
  /** The price list: `genai-prices 0.1.8`, or `config 1f3870be274f` (a digest of the operator's price). */
  readonly version: string
  /** Service tiers with their own prices, as `config 8d969eef6eca, flex`. */
  readonly serviceTiers?: ReadonlyMap<string, QuotedPrice>
}

/** Addresses of vendors that the catalogue does not know: regions, and other kinds of access. */
const OTHER_HOSTS: readonly (readonly [RegExp, string])[] = [
  [/^[a-z]+\.api\.openai\.com$/, 'openai'],
  [/^[a-z\d]+\.api\.cognitive\.microsoft\.com$/, 'azure'],
  [/^bedrock-(?:runtime-fips\.[a-z\d-]+\.amazonaws\.com|runtime\.[a-z\d-]+\.amazonaws\.com\.cn|mantle\.[a-z\d-]+\.api\.aws)$/, 'aws'],
  [/\.bedrock-runtime\.[a-z\d-]+\.vpce\.amazonaws\.com$/, 'aws'],
  [/^api\.together\.ai$/, 'together'],
]
/** Names of one vendor's models that the catalogue does not recognize. */
const OTHER_MODELS: readonly (readonly [RegExp, string])[] = [
  [/^(?:text-embedding-(?:3-|ada)|chatgpt-|codex-mini|computer-use|text-davinci-)/, 'openai'],
  [/^embed-v\d/, 'cohere'],
]
/** Ollama's models: `deepseek-r1:7b`, `:latest`, `:671b-cloud`. No vendor sells a model with such a name. */
const TAGGED = /:(?:latest|cloud|[a-z]?\d[\w.]*[bmt])\b/i
/** A reseller of all vendors' models, which it names `vendor/model`. */
const RESELLER = 'openrouter'
/** The catalogue takes every name with this prefix for deepseek-r1, but names that match DISTILLED are other vendors' small models. */
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
  const bases = new Map([...models.values()].flatMap(({ name, baseModel }) => (baseModel === null ? [] : [[name, baseModel]])))
  return new PriceBook(own, bases, `genai-prices ${catalogueVersion()}`)
}

export class PriceBook {
  readonly #configured: ReadonlyMap<string, QuotedPrice>
  readonly #baseModels: ReadonlyMap<string, string>
  readonly #version: string
  readonly #providers = new Map<string, string | null>()
  #catalogueModule: typeof GenaiPrices | null = null
  // Entries are constants, so each is translated once.
  readonly #translated = new WeakMap<object, QuotedPrice | null>()

  constructor(own: ReadonlyMap<string, QuotedPrice>, baseModels: ReadonlyMap<string, string>, version: string) {
    this.#configured = own
    this.#baseModels = baseModels
    this.#version = version
  }

  /**
   * The price of a model at a time: some prices change with the date or the hour. The operator's price wins: for the upstream's name
   * of the model, else for the client's (`alias`), else for the base model. Then the catalogue's price of the base model, if there is
   * one, or of the upstream's name.
   * @param upstream tells resellers' prices apart; null, or a host that the catalogue does not know = by the model's name only
   */
  priceOf(upstream: URL | null, model: string, at: Date, alias?: string): QuotedPrice | null {
    const own = this.#configured.get(model) ?? (alias === undefined ? undefined : this.#configured.get(alias))
    if (own !== undefined) return own
    const base = this.#baseModels.get(model) ?? (alias === undefined ? undefined : this.#baseModels.get(alias))
    const name = base ?? model
    return this.#configured.get(name) ?? this.#cataloguePrice(upstream, name.replace(/^(?:publishers\/[^/]+\/)?models\//, ''), at)
  }

  /** Models with a price of the operator or the catalogue. */
  knownModels(upstream: URL | null): string[] {
    const { findProvider } = this.#catalogue
    const host = upstream && this.#providerOf(upstream)
    const listed = findProvider({ providerId: host ?? RESELLER })?.models ?? []
    return [...this.#configured.keys(), ...listed.map(({ id }) => (host === null ? id.replace(/^.*\//, '') : id))]
  }

  #cataloguePrice(upstream: URL | null, name: string, at: Date): QuotedPrice | null {
    const host = upstream && this.#providerOf(upstream)
    if (host === null && TAGGED.test(name)) return null
    const providerId = host ?? OTHER_MODELS.find(([pattern]) => pattern.test(name))?.[1] ?? null
    const model = providerId === 'google' ? name.replace(/^google\//, '') : name
    const { calcPrice } = this.#catalogue
    const found = calcPrice({}, model, { timestamp: at, ...(providerId ? { providerId } : {}) })
    if (found === null || (found.model.id === R1 && DISTILLED.test(model))) return null
    const listed = found.model_price
    // Without `:free`, an entry without prices means only that the model is not billed by tokens.
    if (found.model.id.endsWith(':free') && Object.keys(listed).length === 0) return { price: FREE, version: this.#version }
    let quoted = this.#translated.get(listed)
    if (quoted === undefined) {
      const price = fromCatalogue(listed)
      quoted = price && { price, version: this.#version }
      this.#translated.set(listed, quoted)
    }
    return quoted
  }

  /** Takes 7 MB, and about 50 ms to read: only at the first request for a model without a price of the operator. */
  get #catalogue(): typeof GenaiPrices {
    return this.#catalogueModule ??= createRequire(import.meta.url)('@pydantic/genai-prices') as typeof GenaiPrices
  }

  /** Cached by origin and path; a configuration has few upstreams. */
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

function quote(price: Price, suffix = ''): QuotedPrice {
  const { tiers = [], ...rates } = price
  for (const rate of [rates, ...tiers.map(tier => tier.price)].flatMap(each => Object.values(each))) parseDecimal(rate)
  const digest = createHash('sha256').update(JSON.stringify(price)).digest('hex').slice(0, 12)
  return { price, version: `config ${digest}${suffix}` }
}

/** The version of the package and of its data. */
function catalogueVersion(): string {
  const manifest = new URL('../package.json', import.meta.resolve('@pydantic/genai-prices'))
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version
}
