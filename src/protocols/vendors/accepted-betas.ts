import { parseRequest } from '../../base/json-size.ts'
import { GatewayError } from '../../base/errors.ts'
import { TranslationReport } from '../neutral/report.ts'
import type { InspectedBody } from '../request/inspect.ts'
import type { Edit } from '../json/splice.ts'

interface AcceptedBetas {
  /** All headers of the client, as a flat list of names and values. */
  readonly headers: readonly string[]
  /** Edits that remove the dropped features from the body. */
  readonly edits: readonly Edit[]
  /** Beta features that the target does not get. */
  readonly dropped: readonly string[]
}

const HEADER = 'anthropic-beta'
const MEMBER = 'anthropic_beta'
/** In the list of a target's features: the target has all features. */
const ANY = '*'
/** The names of Anthropic's features at cloud providers. Source: LiteLLM, anthropic_beta_headers_config.json. */
const CLOUD_NAMES: ReadonlyMap<string, string> = new Map(Object.entries({ 'advanced-tool-use-2025-11-20': 'tool-search-tool-2025-10-19' }))

/**
 * Drops beta features of Anthropic's protocol that the target lacks, because the target would refuse the request.
 *
 * @param betasOf returns the target's features; called only if the request names a feature; undefined = all features
 * @param headers headers of the client, as a flat list
 * @throws GatewayError translation_lossy
 */
export function acceptBetas(
  betasOf: () => readonly string[] | undefined, headers: readonly string[], body: InspectedBody | null, isStrict: boolean,
): AcceptedBetas {
  const fields = body?.json?.fields.get(MEMBER) ?? []
  const isAsked = fields.length > 0 || headers.some((header, i) => i % 2 === 0 && isBetaHeader(header))
  const betas = isAsked ? betasOf() : undefined
  if (betas === undefined || betas.includes(ANY)) return { headers, edits: [], dropped: [] }
  const accepted = new Set(betas)
  const report = new TranslationReport(new Map(), new Set())
  const accept = (names: readonly string[]): string[] => names.flatMap(name => {
    const own = [name, CLOUD_NAMES.get(name)].find(each => each !== undefined && accepted.has(each))
    if (own === undefined) report.drop(`${HEADER}.${name}`)
    return own ?? []
  })
  const kept: string[] = []
  for (let i = 0; i < headers.length; i += 2) {
    const [header, value] = [headers[i] as string, headers[i + 1] as string]
    const isBeta = isBetaHeader(header)
    const own = isBeta ? accept(value.split(',').map(name => name.trim()).filter(name => name !== '')).join(',') : value
    if (!isBeta || own !== '') kept.push(header, own)
  }
  const edits = fields.map(({ start, end }) => {
    const value = parseRequest((body as InspectedBody).bytes.toString('utf8', start, end))
    const names = (Array.isArray(value) ? value : [value]).filter(name => typeof name === 'string')
    return { start, end, bytes: Buffer.from(JSON.stringify(accept(names))) }
  })
  const { dropped } = report
  if (isStrict && dropped.length > 0) {
    throw new GatewayError('translation_lossy', `the target does not have these features: ${dropped.join(', ')}`, { param: HEADER })
  }
  return { headers: kept, edits, dropped }
}

function isBetaHeader(name: string): boolean {
  return name.length === HEADER.length && name.toLowerCase() === HEADER
}
